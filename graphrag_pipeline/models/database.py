"""Shared database of all processes of a root: stored replies, vectors, spending, rate limits, known forms and batches.

By default it is an SQLite file. It uses a write-ahead log with `synchronous=normal`, so that a killed process loses no
committed row. A URL selects PostgreSQL or another database. Each process writes in one thread. Writes that arrive
during a transaction are committed together in the next one, so 1,000 tasks with a reply each need few commits.

Add here: how a transaction is made. Keep out: the meaning of the tables (`cache.py`, `spending.py`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    Column,
    Connection,
    Double,
    Engine,
    Integer,
    LargeBinary,
    MetaData,
    Select,
    String,
    Table,
    Text,
    create_engine,
    event,
    func,
    make_url,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DatabaseError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.schema import CreateTable

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.settings.urls import hide_secrets, mask_url, secrets_of

T = TypeVar("T")
Insert = sqlite.Insert | postgresql.Insert

_Write = Callable[[Connection], Any] | tuple[Insert, Sequence[Mapping[str, Any]]]

CHUNK = 900  # values in an IN: older SQLite versions allow 999 variables
BUSY_TIMEOUT_S = 60
_GATHER_S = 0.002  # window in which writes of calls that end together join one transaction
_ADVISORY_LOCK = 0x67726170  # any number of our own

_metadata = MetaData()
RESPONSES = Table(
    "responses",
    _metadata,
    Column("request_key", String(32), primary_key=True),
    Column("model", Text, nullable=False),
    Column("stage", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("finish_reason", Text, nullable=False),
    Column("prompt_tokens", Integer, nullable=False),
    Column("completion_tokens", Integer, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("cost", Double),
)
VECTORS = Table(
    "vectors",
    _metadata,
    Column("fingerprint", String(32), primary_key=True),
    Column("text_hash", String(32), primary_key=True),
    Column("vector", LargeBinary, nullable=False),  # float32, little endian
)
SPENDING = Table(
    "spending",
    _metadata,
    Column("scope", Text, primary_key=True),
    Column("tokens", Integer, nullable=False),
    Column("cost", Double, nullable=False),
)
LEDGER = Table(
    "ledger",
    _metadata,
    Column("run", String(32), primary_key=True),
    Column("day", String(10), primary_key=True),  # of the calls, in UTC
    Column("stage", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("command", Text, nullable=False),
    Column("about", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("process", Integer, nullable=False),
    Column("begun", Double, nullable=False),  # seconds since 1970
    Column("ended", Double),
    Column("status", Text, nullable=False),
    Column("n_calls", Integer, nullable=False),
    Column("n_unpriced", Integer, nullable=False),
    Column("prompt_tokens", Integer, nullable=False),
    Column("completion_tokens", Integer, nullable=False),
    Column("cost", Double, nullable=False),
)
RESERVATIONS = Table(
    "reservations",
    _metadata,
    Column("id", String(32), primary_key=True),
    Column("scope", Text, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("cost", Double, nullable=False),
    Column("expires_at", Double, nullable=False),  # seconds since 1970
)
RATES = Table(
    "rates",
    _metadata,
    Column("name", Text, primary_key=True),
    Column("requests_free_at", Double, nullable=False),  # seconds since 1970
    Column("tokens_free_at", Double, nullable=False),
)
REPLY_FORMS = Table(
    "reply_forms",
    _metadata,
    Column("model_key", String(32), primary_key=True),  # hash of base URL and model: a URL may hold a password
    Column("form", Text, nullable=False),
)
BATCH_SIZES = Table(
    "batch_sizes",
    _metadata,
    Column("model_key", String(32), primary_key=True),  # hash of base URL, path and model
    Column("n_texts", Integer, nullable=False),
)

BATCH_ITEMS = Table(
    "batch_items",
    _metadata,
    Column("request_key", String(32), primary_key=True),
    Column("digest", String(32), nullable=False),  # of the conversation or the texts
    Column("batch", String(32), nullable=False),  # our name of the batch, which is in its metadata
    Column("batch_id", Text),  # null until the batch is made
    Column("claimed_at", Double, nullable=False),  # seconds since 1970
)


class SharedDatabase:
    """A database that reads in the calling thread and writes in order in one thread of its own.

    Safe for threads, event loops and other processes.

    Args:
        location: a file for SQLite, or a database URL (`postgresql://user@host/name`, with psycopg installed).

    Raises:
        PipelineError: the file is damaged or the database cannot be reached.
    """

    def __init__(self, location: Path | str) -> None:
        self._engine = _open(location)
        self._reader = self._engine.execution_options(is_read=True)
        self._name = location if isinstance(location, Path) else mask_url(location)
        self._secrets = set[str]() if isinstance(location, Path) else secrets_of(location)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="cache-writer")
        self._lock = threading.Lock()
        self._queue: list[tuple[_Write, Future[Any]]] = []
        with self._translated():
            self._create_tables(location)

    def read(self, statement: Select[Any], parameters: Mapping[str, Any] | None = None) -> Sequence[Any]:
        """Return all rows of a query."""
        with self._translated(), self._reader.connect() as connection:
            return connection.execute(statement, parameters).all()

    def submit(self, change: Callable[[Connection], T]) -> Future[T]:
        """Queue a change; the future is done when the change is committed.

        Args:
            change: executes its statements. It is repeated if another change of its transaction fails.
        """
        return self._enqueue(change)

    def submit_rows(self, statement: Insert, rows: Sequence[Mapping[str, Any]]) -> Future[None]:
        """Queue rows; queue neighbours with the identical statement object are sent together."""
        return self._enqueue((statement, rows))

    def insert(self, table: Table) -> Insert:
        """Return an INSERT that supports ON CONFLICT in this database's dialect."""
        return postgresql.insert(table) if self._engine.dialect.name == "postgresql" else sqlite.insert(table)

    def now(self, connection: Connection) -> float:
        """Return the seconds since 1970 by one clock for all machines: that of PostgreSQL, else that of this one."""
        if self._engine.dialect.name != "postgresql":
            return time.time()
        return float(connection.execute(select(func.extract("epoch", func.clock_timestamp()))).scalar_one())

    def flush(self) -> None:
        """Wait until all queued writes are committed; at the end of the process they are."""
        with suppress(RuntimeError):  # the writer was shut down, which finishes the queue
            self.submit(lambda connection: None).result()

    def write(self, change: Callable[[Connection], object]) -> None:
        """Run a change in a transaction of this thread, also when the process ends."""
        with self._translated(), self._engine.begin() as connection:
            change(connection)

    def compact(self) -> None:
        """Rewrite the SQLite file without deleted rows; PostgreSQL reclaims their space by itself."""
        if self._engine.dialect.name == "postgresql":
            return
        with self._translated(), self._reader.connect() as connection:
            connection.exec_driver_sql("VACUUM")
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Finish the queued writes and close the database."""
        self._writer.shutdown()
        self._engine.dispose()

    def _enqueue(self, write: _Write) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            if not self._queue:  # before the write is queued: the writer may be shut down, and nothing would drain it
                self._writer.submit(self._drain)
            self._queue.append((write, future))
        return future

    def _drain(self) -> None:
        time.sleep(_GATHER_S)
        with self._lock:
            batch, self._queue = self._queue, []
        try:
            self._commit(batch)
        except SQLAlchemyError:
            for entry in batch:
                try:
                    with self._translated():
                        self._commit([entry])
                except PipelineError as error:
                    entry[1].set_exception(error)
        finally:
            for _, future in batch:
                if not future.done():  # the change itself has a bug: its caller must not wait forever
                    future.set_exception(PipelineError(f"{self._name}: a write failed; see the log of this process"))

    def _commit(self, batch: Sequence[tuple[_Write, Future[Any]]]) -> None:
        results: list[Any] = []
        with self._engine.begin() as connection:
            for statement, writes in groupby((write for write, _ in batch), key=_statement_of):
                results += _run(connection, statement, list(writes))
        for (_, future), result in zip(batch, results, strict=True):
            future.set_result(result)

    def _create_tables(self, location: Path | str) -> None:
        if isinstance(location, Path):
            from filelock import FileLock

            with FileLock(location.with_suffix(".lock")), self._reader.connect() as connection:
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        with self._engine.begin() as connection:
            for table in _metadata.sorted_tables:
                connection.execute(CreateTable(table, if_not_exists=True))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            problem = str(error.orig if isinstance(error, DatabaseError) else error).partition("\n")[0]
            raise PipelineError(_explain(self._name, hide_secrets(problem, self._secrets))) from None


def _statement_of(write: _Write) -> Insert | None:
    return write[0] if isinstance(write, tuple) else None


def _run(connection: Connection, statement: Insert | None, writes: Sequence[Any]) -> list[Any]:
    """Run changes one by one, or send the rows of one statement together; return one result per write."""
    if statement is None:
        return [change(connection) for change in writes]
    connection.execute(statement, [row for _, rows in writes for row in rows])
    return [None] * len(writes)


def _explain(name: Path | str, problem: str) -> str:
    if not isinstance(name, Path):
        return f"cache database {name}: {problem}; check that the server runs and that this user may write to it"
    if "locked" in problem:
        return f"{name}: another process has locked the response cache for {BUSY_TIMEOUT_S} s; end it or run again"
    if "malformed" in problem or "not a database" in problem:
        return (
            f"{name}: the response cache is damaged ({problem}); move it and its -wal and -shm files away. The index "
            "is not affected; replies that are needed again are paid again"
        )
    return f"{name}: the response cache cannot be used ({problem}); check free disk space and permissions"


def _open(location: Path | str) -> Engine:
    if isinstance(location, str):
        try:
            if "@" in (make_url(location).host or ""):
                raise ValueError("a password with @")
            engine = create_engine(location, pool_pre_ping=True)
        except (ArgumentError, NoSuchModuleError, ModuleNotFoundError, ValueError) as error:
            raise PipelineError(
                f"cache database: the URL in `storage.cache_url` cannot be used ({type(error).__name__}); write it as "
                "postgresql+psycopg://user:password@host/name, with %40 for @ in the password, and install psycopg"
            ) from None
        if engine.dialect.name == "postgresql":
            event.listen(engine, "begin", _lock_out_writers)
        return engine
    location.parent.mkdir(parents=True, exist_ok=True)
    # Begin transactions by hand: those of sqlite3 begin without a lock and fail if another process writes first.
    arguments = {"timeout": BUSY_TIMEOUT_S, "isolation_level": None}
    engine = create_engine(f"sqlite:///{location}", connect_args=arguments)
    event.listen(engine, "connect", _set_pragmas)
    event.listen(engine, "begin", _begin)
    return engine


def _set_pragmas(connection: Any, _record: object) -> None:
    connection.execute("PRAGMA synchronous=NORMAL")


def _begin(connection: Connection) -> None:
    if not connection.get_execution_options().get("is_read"):
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _lock_out_writers(connection: Connection) -> None:
    """Allow one writing transaction at a time, as in SQLite: a budget is read and then reserved in one transaction."""
    if not connection.get_execution_options().get("is_read"):
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})")
