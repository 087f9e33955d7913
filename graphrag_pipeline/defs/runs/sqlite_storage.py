"""Dagster's SQLite event log for a process that stores many events, such as `index`.

Dagster makes an engine for every event and flushes every commit to disk. An index of three short documents takes 3.1 s
of processor time with it, 4 to 14 s in all, and 1.5 s with the class here, which keeps the engines of the last used
databases. The files keep Dagster's layout. An event that a power cut loses is reported again from the heads.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event

from graphrag_pipeline.defs.runs.private_api import SqliteEventLogStorage
from graphrag_pipeline.storage.dagster_home import empty_database, make_database

_MAX_OPEN = 4  # the index, events outside of runs, the run that is written, and one that is read


class OpenEventLog(SqliteEventLogStorage):
    """`SqliteEventLogStorage` that keeps connections to the last used databases open."""

    def __init__(self, base_dir: str, inst_data: Any = None) -> None:
        self._engines: dict[str, Engine] = {}
        self._tables: set[str] = set()
        super().__init__(base_dir, inst_data)

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> "OpenEventLog":
        return cls(inst_data=inst_data, **config_value)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        with self._db_lock:
            engine = self._engines.pop(shard, None) or self._open(shard)
            self._engines[shard] = engine  # the last used one is last
            while len(self._engines) > _MAX_OPEN:
                self._engines.pop(next(iter(self._engines))).dispose()
            with engine.begin() as connection:
                yield connection

    def has_table(self, table_name: str) -> bool:
        """Return whether there is a table; Dagster asks at each event, and tables stay."""
        if table_name not in self._tables and super().has_table(table_name):
            self._tables.add(table_name)
        return table_name in self._tables

    def _open(self, shard: str) -> Engine:
        # A copy takes no time; Dagster's own way takes 0.2 s for each run.
        make_database(Path(self.path_for_shard(shard)), empty_database("index", "DELETE FROM secondary_indexes;"))
        engine = create_engine(self.conn_string_for_shard(shard))
        event.listen(engine, "connect", lambda opened, _: opened.execute("PRAGMA synchronous = NORMAL"))
        return engine

    def dispose(self) -> None:
        """Close all connections."""
        while self._engines:
            self._engines.popitem()[1].dispose()
        super().dispose()
