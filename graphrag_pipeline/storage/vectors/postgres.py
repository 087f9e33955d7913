"""Connections to a PostgreSQL database with the extension pgvector, and its errors in words of the product.

Keep out: tables and queries (`pgvector.py`).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from pgvector.psycopg import register_vector
from psycopg import sql
from psycopg.types import TypeInfo

from graphrag_pipeline.errors import PipelineError, SettingsError
from graphrag_pipeline.settings.urls import has_password, hide_secrets, mask_url, secrets_of

URL_NAME = "PGVECTOR_URL"
_CONNECT_S = 10
_MAX_IDLE = 8
"""Connections that are kept for the next searches."""
_ADVISORY_LOCK = 0x76656374  # any number of our own
_CATALOGUE = """
CREATE TABLE IF NOT EXISTS {} (
    name text COLLATE "C" PRIMARY KEY, number integer GENERATED ALWAYS AS IDENTITY, dimensions integer NOT NULL,
    has_full_text boolean NOT NULL, is_indexed boolean NOT NULL DEFAULT false, n_rows bigint NOT NULL DEFAULT 0)
"""
_ERRORS_OF_EXTENSION = (
    psycopg.errors.FeatureNotSupported,
    psycopg.errors.UndefinedFile,
    psycopg.errors.UndefinedObject,
)


def open_pool(url: str, schema: str) -> Postgres:
    """Return the pool of a schema, the same one each time.

    Args:
        url: without a password; empty: that of the environment.

    Raises:
        SettingsError: there is no URL, or it holds a password.
    """
    if has_password(url):
        raise SettingsError(
            f"vector_store.options: the URL {mask_url(url)} holds a password; set the password in PGPASSWORD, or the "
            f"whole URL in {URL_NAME}"
        )
    found = url or os.environ.get(URL_NAME, "")
    if not found:
        raise SettingsError(
            f"vector_store.options: no database is named; set `url: postgresql://user@host/name`, or {URL_NAME} in the "
            "environment"
        )
    without_driver = found.replace("+psycopg://", "://", 1)  # SQLAlchemy's form, as in `storage.cache_url`
    return _remember_pool(without_driver, schema)


class Postgres:
    """A pool of connections to one database; safe to use from several threads.

    Args:
        schema: it gets a table `collections`.
    """

    def __init__(self, url: str, schema: str) -> None:
        self._url = url
        self._schema = schema
        self._idle: list[psycopg.Connection] = []

    @contextmanager
    def session(self) -> Iterator[psycopg.Connection]:
        """Yield a connection in a transaction, which is committed at the end and rolled back after an error.

        Raises:
            PipelineError: the server is not reachable or refuses, in words without secrets of the URL.
        """
        connection = None
        try:
            connection = self._take()
            with connection.transaction():
                yield connection
        except psycopg.Error as error:
            raise PipelineError(self._explain(error)) from None
        finally:
            if connection is not None:
                if connection.closed or len(self._idle) >= _MAX_IDLE:
                    connection.close()
                else:
                    self._idle.append(connection)

    def _take(self) -> psycopg.Connection:
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread took the last one
                break
            try:
                connection.execute("SELECT 1")
                return connection
            except psycopg.OperationalError:  # the server was restarted
                connection.close()
        # Plans for any values would not use an index that pays for few rows only.
        connection = psycopg.connect(self._url, autocommit=True, prepare_threshold=None, connect_timeout=_CONNECT_S)
        try:
            with connection.transaction():
                self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: psycopg.Connection) -> None:
        """Make extension, schema and catalogue unless they exist; who finds them needs no right to make them."""
        catalogue = sql.Identifier(self._schema, "collections")
        found = connection.execute("SELECT to_regclass(%s)", [catalogue.as_string(connection)]).fetchone()
        if found == (None,) or TypeInfo.fetch(connection, "vector") is None:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [_ADVISORY_LOCK])
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(self._schema)))
            connection.execute(sql.SQL(_CATALOGUE).format(catalogue))
        register_vector(connection)

    def _explain(self, error: psycopg.Error) -> str:
        problem = " ".join(hide_secrets(str(error), secrets_of(self._url)).split())
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            remedy = (
                "let an administrator run CREATE EXTENSION vector in this database, and grant CREATE on it and on the "
                "schema"
            )
        elif isinstance(error, _ERRORS_OF_EXTENSION):
            remedy = "install pgvector 0.8 or later on the server"
        elif isinstance(error, psycopg.OperationalError):
            remedy = f"check that the server runs, and user and password (PGPASSWORD, or the URL in {URL_NAME})"
        else:
            remedy = "run again, and if that does not help read the log of the server"
        return f"vector store {mask_url(self._url)}: {problem}; {remedy}"


_remember_pool = functools.lru_cache(maxsize=8)(Postgres)


def encode(text: str) -> str:
    """Return a text without NUL, which PostgreSQL cannot store; `decode` undoes it, and the order of texts stays."""
    return text.replace("\1", "\1\2").replace("\0", "\1\1")


def decode(text: str) -> str:
    """Return the text that `encode` was called with."""
    return text.replace("\1\1", "\0").replace("\1\2", "\1") if "\1" in text else text
