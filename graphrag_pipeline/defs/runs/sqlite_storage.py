"""Dagster's SQLite event log and run storage for a process that writes many small runs.

Dagster opens a connection, and so an engine, for every event and every change of a run, flushes every commit to disk,
and creates every run's database table by table. This takes a third of the time of a small index. Here connections stay
open, commits of events do not flush, and the database of a run starts as a copy of an empty one. The files keep
Dagster's layout, so the UI reads them. An event that a power cut loses is reported again from the heads.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event

from graphrag_pipeline.defs.runs.private_api import NO_COMPUTE_LOGS, SqliteEventLogStorage, SqliteRunStorage
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.settings.file import parse_yaml

_BUSY_TIMEOUT_S = 30
_MAX_OPEN = 4  # the index, the run that is written, and some that are read


class OpenSqliteEventLog(SqliteEventLogStorage):
    """`SqliteEventLogStorage` that keeps the engines of the last used databases open."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._engines: dict[str, Engine] = {}
        self._empty: bytes | None = None  # the database of a run without events
        self._tables: set[str] = set()  # of the index; none is ever dropped
        super().__init__(*arguments, **options)

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> "OpenSqliteEventLog":
        return cls(inst_data=inst_data, **config_value)

    def has_table(self, table_name: str) -> bool:
        """Return whether the index has a table. Dagster asks for each event."""
        if table_name not in self._tables and super().has_table(table_name):
            self._tables.add(table_name)
        return table_name in self._tables

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        with self._db_lock, self._engine_of(shard).begin() as connection:
            yield connection

    def _engine_of(self, shard: str) -> Engine:
        engine = self._engines.pop(shard, None)
        if engine is None:
            engine = create_engine(self.conn_string_for_shard(shard), connect_args={"timeout": _BUSY_TIMEOUT_S})
            event.listen(engine, "connect", _do_not_flush)
            if shard not in self._initialized_dbs:
                self._make(Path(self.path_for_shard(shard)), engine)
                self._initialized_dbs.add(shard)
        self._engines[shard] = engine  # the last used one is last
        while len(self._engines) > _MAX_OPEN:
            self._engines.pop(next(iter(self._engines))).dispose()
        return engine

    def _make(self, path: Path, engine: Engine) -> None:
        """Create the database of a run if it does not exist."""
        is_new = not path.exists()
        if is_new and self._empty:
            files.replace(path, self._empty)
            return
        self._initdb(engine)
        if is_new:
            with closing(sqlite3.connect(path)) as connection:
                self._empty = connection.serialize()

    def dispose(self) -> None:
        """Close all engines."""
        while self._engines:
            self._engines.popitem()[1].dispose()
        super().dispose()


class OpenSqliteRunStorage(SqliteRunStorage):
    """`SqliteRunStorage` that keeps its connections open."""

    def __init__(self, conn_string: str, inst_data: Any = None) -> None:
        self._engine = create_engine(conn_string)
        super().__init__(conn_string, inst_data)

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> "OpenSqliteRunStorage":
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


def _do_not_flush(connection: Any, _record: object) -> None:
    connection.execute("PRAGMA synchronous = NORMAL")


def overrides_for(home: Path) -> dict[str, Any]:
    """Return changes to the settings of a Dagster home for a process that writes many runs to it.

    The output of steps is not captured: that would start two processes a run, and our steps print nothing. A home that
    keeps its events or runs elsewhere (such as PostgreSQL) is left so.
    """
    changes: dict[str, Any] = {"compute_logs": NO_COMPUTE_LOGS}
    settings = parse_yaml((home / "dagster.yaml").read_text(encoding="utf-8")) or {}
    history = home / "history"
    for name, storage, folder in (
        ("event_log_storage", OpenSqliteEventLog, history / "runs"),
        ("run_storage", OpenSqliteRunStorage, history),
    ):
        if not {"storage", name} & settings.keys():
            changes[name] = {"module": __name__, "class": storage.__name__, "config": {"base_dir": str(folder)}}
    return changes
