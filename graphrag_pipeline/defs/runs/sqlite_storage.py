"""Dagster's SQLite storages for a process that writes many small runs.

Dagster opens a connection, and so an engine, for every event and every change of a run, flushes every commit to disk,
and creates every database table by table. This takes a third of the time of a small index. Here connections stay open,
commits do not flush, statements are compiled once a process, and a new database starts as a copy of an empty one. The
files keep Dagster's layout, so the UI reads them. An event that a power cut loses is reported again from the heads; the
record of its run may be lost.
"""

import functools
import os
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, NullPool, create_engine, event

from graphrag_pipeline.defs.runs.private_api import (
    NO_COMPUTE_LOGS,
    SqliteEventLogStorage,
    SqliteRunStorage,
    SqliteScheduleStorage,
)
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.settings.file import parse_yaml

_BUSY_TIMEOUT_S = 30
_MAX_OPEN = 4  # the index, the run that is written, and some that are read
_INDEX, _RUNS = "index.db", "runs.db"
_opened = threading.local()  # `path` of the database that the shared engine opens next


class OpenSqliteEventLog(SqliteEventLogStorage):
    """`SqliteEventLogStorage` that keeps connections to the last used databases open."""

    def __init__(self, base_dir: str, inst_data: Any = None) -> None:
        self._connections: dict[str, Connection] = {}
        self._found: set[tuple[str, str]] = set()  # tables, columns and indexes of the index; none is ever dropped
        _make(Path(base_dir) / _INDEX, _empty_index)
        super().__init__(base_dir, inst_data)

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> "OpenSqliteEventLog":
        return cls(inst_data=inst_data, **config_value)

    def has_table(self, table_name: str) -> bool:
        """Return whether the index has a table. Dagster asks for each event."""
        return self._find("table", table_name, lambda: super(OpenSqliteEventLog, self).has_table(table_name))

    def has_secondary_index(self, name: str) -> bool:
        """Return whether an index over all runs is built. Dagster asks for each query of assets."""
        return self._find("index", name, lambda: super(OpenSqliteEventLog, self).has_secondary_index(name))

    def _has_asset_key_col_on_connection(self, conn: Connection, column_name: str) -> bool:
        inspect = super()._has_asset_key_col_on_connection
        return self._find("column", column_name, lambda: inspect(conn, column_name))

    def _find(self, kind: str, name: str, inspect: Callable[[], bool]) -> bool:
        """Return what an inspection of the index returns; once it was found, look no more."""
        if (kind, name) not in self._found and inspect():
            self._found.add((kind, name))
        return (kind, name) in self._found

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        with self._db_lock:
            connection = self._connection_to(shard)
            try:
                with connection.begin():
                    yield connection
            except BaseException:
                self._connections.pop(shard).close()
                raise

    def _connection_to(self, shard: str) -> Connection:
        connection = self._connections.pop(shard, None)
        if connection is None:
            _opened.path = self.path_for_shard(shard)
            self._initialize(shard, Path(_opened.path))
            connection = _shared_engine().connect()
        self._connections[shard] = connection  # the last used one is last
        while len(self._connections) > _MAX_OPEN:
            self._connections.pop(next(iter(self._connections))).close()
        return connection

    def _initialize(self, shard: str, path: Path) -> None:
        """Create the tables of a database if it has none."""
        if shard in self._initialized_dbs:
            return
        _make(path, _empty_run)
        if not _has_tables(path):
            self._initdb(create_engine(self.conn_string_for_shard(shard), poolclass=NullPool))
        self._initialized_dbs.add(shard)

    def dispose(self) -> None:
        """Close all connections."""
        while self._connections:
            self._connections.popitem()[1].close()
        super().dispose()


class OpenSqliteRunStorage(SqliteRunStorage):
    """`SqliteRunStorage` that keeps its connections open."""

    def __init__(self, conn_string: str, inst_data: Any = None) -> None:
        self._engine = create_engine(conn_string)
        event.listen(self._engine, "connect", _do_not_flush)
        super().__init__(conn_string, inst_data)

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> "OpenSqliteRunStorage":
        path = Path(config_value["base_dir"]) / _RUNS
        _make(path, _empty_runs)
        if _has_tables(path, "instance_info"):
            return cls(f"sqlite:///{path.absolute()}", inst_data)
        return cls.from_local(inst_data=inst_data, **config_value)

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """Yield a connection in a transaction."""
        with self._engine.begin() as connection:
            yield connection

    def dispose(self) -> None:
        """Close all connections."""
        self._engine.dispose()
        super().dispose()


class LateSqliteScheduleStorage(SqliteScheduleStorage):
    """`SqliteScheduleStorage` that makes its database at its first use: an index run has no schedules."""

    _folder: str | None = None

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> "LateSqliteScheduleStorage":
        folder = config_value["base_dir"]
        storage = cls(f"sqlite:///{Path(folder).absolute() / 'schedules.db'}", inst_data)
        storage._folder = folder
        return storage

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """Yield a connection in a transaction."""
        if self._folder:
            SqliteScheduleStorage.from_local(self._folder)
            self._folder = None
        with super().connect() as connection:
            yield connection


def _do_not_flush(connection: sqlite3.Connection, _record: object = None) -> None:
    connection.execute("PRAGMA synchronous = NORMAL")  # flush at checkpoints of the log only


@functools.cache
def _shared_engine() -> Engine:
    """Return an engine whose connections lead to `_opened.path`: each engine compiles all statements for itself."""

    def connect() -> sqlite3.Connection:
        # Other threads may use it, one at a time.
        connection = sqlite3.connect(_opened.path, timeout=_BUSY_TIMEOUT_S, check_same_thread=False)
        _do_not_flush(connection)
        return connection

    return create_engine("sqlite://", creator=connect, poolclass=NullPool)


def _empty_index() -> bytes:
    return _empty_logs()[0]


def _empty_run() -> bytes:
    return _empty_logs()[1]


@functools.cache
def _empty_logs() -> tuple[bytes, bytes]:
    """Return empty databases of the index, with marks of what is built over all runs, and of a run, without them."""
    with tempfile.TemporaryDirectory() as folder:
        SqliteEventLogStorage(folder)
        with closing(sqlite3.connect(Path(folder) / _INDEX)) as database:
            index = database.serialize()
            database.execute("DELETE FROM secondary_indexes")
            database.commit()
            return index, database.serialize()


@functools.cache
def _empty_runs() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        SqliteRunStorage.from_local(folder)
        return _contents(Path(folder) / _RUNS)


def _contents(path: Path) -> bytes:
    with closing(sqlite3.connect(path)) as connection:
        return connection.serialize()


def _make(path: Path, empty: Callable[[], bytes]) -> None:
    """Create a database as a copy of an empty one unless it exists; another process may do so at the same time."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = files.temporary_path(path.parent)
    try:
        temporary.write_bytes(empty())
        with suppress(OSError):  # it exists now, or there are no hard links: then Dagster creates its tables
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _has_tables(path: Path, needed: str = "alembic_version") -> bool:
    """Return whether Dagster's tables are in a database. To ask Alembic takes 30 ms: it reads all its migrations."""
    if not path.exists():
        return False
    with closing(sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S)) as connection, suppress(sqlite3.Error):
        connection.execute(f"SELECT * FROM {needed} LIMIT 1")
        return bool(connection.execute("SELECT version_num FROM alembic_version").fetchone())
    return False


def overrides_for(home: Path) -> dict[str, Any]:
    """Return changes to the settings of a Dagster home for a process that writes many runs to it.

    The output of steps is not captured: that would start two processes a run, and our steps print nothing. A home that
    keeps its events, runs or schedules elsewhere (such as PostgreSQL) is left so.
    """
    changes: dict[str, Any] = {"compute_logs": NO_COMPUTE_LOGS}
    settings = parse_yaml((home / "dagster.yaml").read_text(encoding="utf-8")) or {}
    history = home / "history"
    for name, storage, folder in (
        ("event_log_storage", OpenSqliteEventLog, history / "runs"),
        ("run_storage", OpenSqliteRunStorage, history),
        ("schedule_storage", LateSqliteScheduleStorage, home / "schedules"),
    ):
        if not {"storage", name} & settings.keys():
            changes[name] = {"module": __name__, "class": storage.__name__, "config": {"base_dir": str(folder)}}
    return changes
