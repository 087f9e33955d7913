"""Dagster's SQLite storages for a process that writes many small runs.

Dagster opens a connection, and so an engine, for every event and every change of a run, flushes every commit to disk,
and creates every database table by table. This takes a third of the time of a small index. Here connections stay open,
commits do not flush, statements are compiled once a process, and a new database starts as a copy of an empty one
(`storage/dagster_home.py`). The files keep Dagster's layout, so the UI reads them. An event that a power cut loses is
reported again from the heads; the record of its run may be lost.
"""

import functools
import sqlite3
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
from graphrag_pipeline.storage.dagster_home import databases_in, empty_database, make_database

_BUSY_TIMEOUT_S = 30
_MAX_OPEN = 4  # the index, the run that is written, and some that are read
_opened = threading.local()  # `path` of the database that the shared engine opens next


class OpenSqliteEventLog(SqliteEventLogStorage):
    """`SqliteEventLogStorage` that keeps connections to the last used databases open."""

    def __init__(self, base_dir: str, inst_data: Any = None) -> None:
        self._connections: dict[str, Connection] = {}
        self._found: set[tuple[str, str]] = set()  # tables, columns and indexes of the index; none is ever dropped
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
        make_database(path, empty_database("index", "DELETE FROM secondary_indexes;"))
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
        path = Path(config_value["base_dir"]) / "runs.db"
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


class ReadySqliteScheduleStorage(SqliteScheduleStorage):
    """`SqliteScheduleStorage` that does not ask Alembic for the revision of its database: that takes 30 ms."""

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> "ReadySqliteScheduleStorage":
        path = Path(config_value["base_dir"]) / "schedules.db"
        if not _has_tables(path):
            SqliteScheduleStorage.from_local(config_value["base_dir"])
        return cls(f"sqlite:///{path.absolute()}", inst_data)


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
    storages = {
        "event_log_storage": OpenSqliteEventLog,
        "run_storage": OpenSqliteRunStorage,
        "schedule_storage": ReadySqliteScheduleStorage,
    }
    for name, path in databases_in(home).items():
        config = {"base_dir": str(path.parent)}
        changes[name] = {"module": __name__, "class": storages[name].__name__, "config": config}
    return changes
