"""Vectors in PostgreSQL with the extension pgvector, each collection in two tables of one schema.

`collections` is the catalogue: a name of any length -> a number n. `rows_n` has the rows, `words_n` the texts' words:
    score(row) = sum of idf(w) * weight(w, row) over the words w of a query                                    (BM25)
    weight = tf (K1 + 1) / (tf + K1 (1 - B + B length / mean length)),  idf = ln(1 + (N - df + 0.5) / (df + 0.5))
A word has the numbers of its rows and their weights, so that a search reads nothing but the words of its query. Scores
are summed as integers: their order is the same whatever plan the server chooses.

An index by HNSW holds half-precision vectors, which may have 4,000 dimensions (full ones 2,000) and take half the
memory; exact cosines choose among more rows than wanted, as in `lance.py`. A build is one transaction: it copies the
unchanged rows of the last collection on the server and sends the others. Values are bound as parameters, and names of
tables are made of numbers. Keep out: the pool of connections (`postgres.py`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

import numpy as np
import pyarrow as pa
from psycopg import Connection, sql

from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.storage.vectors.folders import ANN_MIN_ROWS, SEARCHED, VectorFolder, VectorRows
from graphrag_pipeline.storage.vectors.postgres import decode, encode, open_pool
from graphrag_pipeline.storage.vectors.rows import RowKeys
from graphrag_pipeline.storage.vectors.stores import ScoredIds, VectorRecord, VectorStore, collection_of
from graphrag_pipeline.storage.vectors.words import K1, B, count_words

MAX_INDEXED_DIMENSIONS = 4_000
"""Of half-precision vectors in an index of pgvector 0.8; longer vectors are compared one by one."""
_N_REFINED = 4
"""Rows that the index finds for each wanted row, among which exact cosines choose."""
_MAX_INDEXED_K = 1_000
"""A scan of the index ends after 20,000 rows (`hnsw.max_scan_tuples`); for more rows all are compared."""
_NO_KEY = bytes(16)
"""Key of a row that was written alone; no hash of a row equals it, so that a build sends the row again."""
_SCORE_UNITS = 1_000_000

_ROWS = """
CREATE TABLE {rows} (
    number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text COLLATE "C" NOT NULL UNIQUE, text text NOT NULL,
    attributes text NOT NULL, key bytea NOT NULL, words text[] NOT NULL, counts integer[] NOT NULL,
    n_words integer NOT NULL, vector vector({dimensions}) NOT NULL)
"""
_WORDS = """
CREATE TABLE {words} (word text COLLATE "C" PRIMARY KEY, numbers integer[] NOT NULL, weights real[] NOT NULL)
"""
_WEIGH_WORDS = """
INSERT INTO {words}
SELECT word, array_agg(number), array_agg((n * {k1} / (n + {k} * (1 - {b} + {b} * n_words / mean)))::real)
FROM {rows}, (SELECT avg(n_words) AS mean FROM {rows}) AS texts, unnest(words, counts) AS found(word, n) GROUP BY word
"""
_COLUMNS = "id, text, attributes, key, words, counts, n_words, vector"
_COPY_IN = f"COPY {{}} ({_COLUMNS}) FROM STDIN WITH (FORMAT BINARY)"
_COPY_KNOWN = f"INSERT INTO {{rows}} ({_COLUMNS}) SELECT {_COLUMNS} FROM {{known}} WHERE id <> ALL(%(ids)s)"
_SEARCH = """
SELECT id, 1 - distance FROM
    (SELECT id, vector <=> %(vector)s AS distance FROM {source} ORDER BY distance, id LIMIT %(k)s) AS best
WHERE distance <> 'NaN' ORDER BY distance, id
"""
_NEAR = """(
    SELECT id, vector FROM {rows} ORDER BY vector::halfvec({dimensions}) <=> %(vector)s::halfvec({dimensions})
    LIMIT %(n_refined)s) AS near"""
_SEARCH_TEXT = """
WITH asked AS MATERIALIZED (  -- else each element of an array reads the whole array
    SELECT numbers, weights, ln(1 + (%(n_rows)s - n + 0.5::float8) / (n + 0.5)) AS idf
    FROM {words}, cardinality(numbers) AS n WHERE word = ANY(%(words)s)
), best AS (
    SELECT number, sum((idf * weight * {units})::bigint) AS score
    FROM asked, unnest(numbers, weights) AS found(number, weight)
    WHERE {chosen} GROUP BY number ORDER BY score DESC FETCH FIRST %(k)s ROWS WITH TIES
)
SELECT id, score::float8 / {units} FROM best JOIN {rows} USING (number) ORDER BY score DESC, id LIMIT %(k)s
"""


@dataclass(frozen=True)
class _Entry:
    """A row of the catalogue."""

    number: int
    dimensions: int
    has_full_text: bool
    is_indexed: bool
    n_rows: int


_NO_ENTRY = _Entry(0, 0, False, False, 0)


class PgVectorStore(VectorStore):
    """Collections in a schema of a PostgreSQL database; safe to use from several threads.

    Args:
        url: of the database, without a password, which is PGPASSWORD's or that of ~/.pgpass; empty: PGVECTOR_URL of the
            environment, which may hold a password.
        schema: one for each root, since removing a snapshot drops its collections.

    Raises:
        SettingsError: there is no URL, or it holds a password.
    """

    def __init__(self, url: str = "", schema: str = "graphrag") -> None:
        self._schema = schema
        self._database = open_pool(url, schema)

    def build(self, name: str, rows: VectorRows, has_full_text: bool, previous: VectorFolder | None) -> VectorFolder:
        content_hash, keys = rows.hash_content()
        content = stable_hash(name, str(has_full_text), content_hash)
        folder = VectorFolder(name, content, rows.n_rows, rows.dimensions, has_full_text, 0)
        with self._database.session() as connection:
            self._lock(connection, collection_of(folder))
            if self._count(connection, collection_of(folder)) == rows.n_rows:
                return folder
            self._drop(connection, collection_of(folder))
            entry = self._create(connection, collection_of(folder), rows.dimensions, has_full_text)
            known = self._find(connection, collection_of(previous)) if previous else None
            changed = np.arange(rows.n_rows)
            if known and (known.dimensions, known.has_full_text) == (entry.dimensions, has_full_text):
                changed = self._copy_known(connection, known, entry, keys)
            for batch in rows.batches(changed):
                self._write(connection, entry, batch, keys.keys[changed[: len(batch)]])
                changed = changed[len(batch) :]
            if rows.n_rows >= ANN_MIN_ROWS and name in SEARCHED and entry.dimensions <= MAX_INDEXED_DIMENSIONS:
                index = "CREATE INDEX ON {rows} USING hnsw ((vector::halfvec({dimensions})) halfvec_cosine_ops)"
                self._run(connection, index, entry)
                self._run(connection, "UPDATE {collections} SET is_indexed = true WHERE number = {number}", entry)
            self._complete(connection, entry)
        return folder

    def create(self, collection: str, dimensions: int, has_full_text: bool) -> None:
        with self._database.session() as connection:
            self._lock(connection, collection)
            if not self._find(connection, collection):
                self._create(connection, collection, dimensions, has_full_text)

    def drop(self, collection: str) -> None:
        with self._database.session() as connection:
            self._lock(connection, collection)
            self._drop(connection, collection)

    def upsert(self, collection: str, records: Sequence[VectorRecord]) -> None:
        with self._database.session() as connection:
            self._lock(connection, collection)
            entry = self._get(connection, collection)
            if any(record.vector.shape != (entry.dimensions,) for record in records):
                raise ValueError(f"vectors of {collection} have {entry.dimensions} dimensions")
            last = {record.id: record for record in records}
            columns = {
                "id": list(last),
                "text": [record.text for record in last.values()],
                "attributes": [json.dumps(dict(record.attributes), ensure_ascii=False) for record in last.values()],
                "vector": [record.vector for record in last.values()],
            }
            self._run(connection, "DELETE FROM {rows} WHERE id = ANY(%(ids)s)", entry, ids=_encoded(last))
            self._write(connection, entry, pa.record_batch(columns), None)
            self._complete(connection, entry)

    def count(self, collection: str) -> int:
        with self._database.session() as connection:
            return max(0, self._count(connection, collection))

    def is_whole(self, folder: VectorFolder) -> bool:
        with self._database.session() as connection:
            return self._count(connection, collection_of(folder)) == folder.n_rows

    def ids(self, collection: str) -> list[str]:
        with self._database.session() as connection:
            entry = self._find(connection, collection)
            rows = self._run(connection, "SELECT id FROM {rows}", entry) if entry else []
            return [decode(row[0]) for row in rows]

    def get(self, collection: str, ids: Sequence[str]) -> list[VectorRecord]:
        with self._database.session() as connection:
            wanted = "SELECT id, text, attributes, vector FROM {rows} WHERE id = ANY(%(ids)s)"
            rows = self._run(connection, wanted, self._get(connection, collection), ids=_encoded(ids))
        found = {decode(row[0]): row[1:] for row in rows}
        return [
            VectorRecord(i, decode(text), vector.to_numpy().astype(np.float32), json.loads(attributes))
            for i in ids
            if i in found
            for text, attributes, vector in [found[i]]
        ]

    def search(self, collection: str, vector: np.ndarray, k: int, ids: Collection[str] | None = None) -> ScoredIds:
        with self._database.session() as connection:
            entry = self._get(connection, collection)
            if not np.any(vector) or not k:
                return []
            # Only the index has half-precision vectors, so that a search among ids is exact.
            source = "{rows}" if ids is None else "{rows} WHERE id = ANY(%(ids)s)"
            if entry.is_indexed and ids is None and k <= _MAX_INDEXED_K:
                source = _NEAR
                self._run(connection, "SET LOCAL hnsw.iterative_scan = relaxed_order", entry)  # until n_refined rows
            found = self._run(
                connection,
                _SEARCH.replace("{source}", source),
                entry,
                vector=np.asarray(vector, np.float32),
                k=k,
                n_refined=_N_REFINED * k,
                ids=_encoded(ids or ()),
            )
            return [(decode(i), cosine) for i, cosine in found]

    def search_text(self, collection: str, query: str, k: int, ids: Collection[str] | None = None) -> ScoredIds:
        with self._database.session() as connection:
            entry = self._get(connection, collection)
            words = sorted(count_words(query)) if k else []
            chosen = "true" if ids is None else "number IN (SELECT number FROM {rows} WHERE id = ANY(%(ids)s))"
            found = self._run(
                connection,
                _SEARCH_TEXT.replace("{chosen}", chosen),
                entry,
                words=_encoded(words),
                k=k,
                n_rows=entry.n_rows,
                ids=_encoded(ids or ()),
            )
            return [(decode(i), score) for i, score in found]

    def _lock(self, connection: Connection, collection: str) -> None:
        """Wait until no other transaction makes or drops this collection."""
        name = encode(f"{self._schema}/{collection}")
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])

    def _run(
        self,
        connection: Connection,
        query: LiteralString,
        entry: _Entry = _NO_ENTRY,
        known: _Entry = _NO_ENTRY,
        **values: Any,
    ) -> list[Any]:
        """Return the rows of a query: in braces are tables and numbers of a collection, and `known` of another one."""
        names = {
            "collections": sql.Identifier(self._schema, "collections"),
            "rows": sql.Identifier(self._schema, f"rows_{entry.number}"),
            "words": sql.Identifier(self._schema, f"words_{entry.number}"),
            "known": sql.Identifier(self._schema, f"rows_{known.number}"),
        }
        numbers = {"number": entry.number, "dimensions": entry.dimensions, "units": _SCORE_UNITS}
        constants = {name: sql.Literal(value) for name, value in (numbers | {"k": K1, "k1": K1 + 1, "b": B}).items()}
        cursor = connection.execute(sql.SQL(query).format(**names, **constants), values, binary=True)
        return cursor.fetchall() if cursor.description else []

    def _find(self, connection: Connection, collection: str) -> _Entry | None:
        columns = (
            "SELECT number, dimensions, has_full_text, is_indexed, n_rows FROM {collections} WHERE name = %(name)s"
        )
        found = self._run(connection, columns, name=encode(collection))
        return _Entry(*found[0]) if found else None

    def _get(self, connection: Connection, collection: str) -> _Entry:
        if (entry := self._find(connection, collection)) is None:
            raise KeyError(collection)
        return entry

    def _count(self, connection: Connection, collection: str) -> int:
        """Return the number of rows; -1 for a collection that does not exist."""
        entry = self._find(connection, collection)
        return self._run(connection, "SELECT count(*) FROM {rows}", entry)[0][0] if entry else -1

    def _create(self, connection: Connection, collection: str, dimensions: int, has_full_text: bool) -> _Entry:
        added: LiteralString = """
            INSERT INTO {collections} (name, dimensions, has_full_text)
            VALUES (%(name)s, %(dimensions)s, %(has_full_text)s) RETURNING number
        """
        [[number]] = self._run(
            connection, added, name=encode(collection), dimensions=dimensions, has_full_text=has_full_text
        )
        entry = _Entry(number, dimensions, has_full_text, False, 0)
        self._run(connection, _ROWS, entry)
        self._run(connection, _WORDS, entry)
        return entry

    def _drop(self, connection: Connection, collection: str) -> None:
        if entry := self._find(connection, collection):
            self._run(connection, "DROP TABLE IF EXISTS {rows}, {words}", entry)
            self._run(connection, "DELETE FROM {collections} WHERE number = {number}", entry)

    def _copy_known(self, connection: Connection, known: _Entry, entry: _Entry, keys: RowKeys) -> np.ndarray:
        """Copy the rows that another collection has, too, and return the positions of the others."""
        old = self._run(connection, "SELECT id, key FROM {rows}", known)
        old_keys = np.frombuffer(b"".join(row[1] for row in old), np.uint64).reshape(-1, 2)
        changed, deleted = keys.find_changed(RowKeys(pa.array([decode(row[0]) for row in old], pa.string()), old_keys))
        changed_ids = keys.ids.take(pa.array(changed)).to_pylist()
        self._run(connection, _COPY_KNOWN, entry, known, ids=_encoded([*changed_ids, *deleted]))
        return changed

    def _write(self, connection: Connection, entry: _Entry, batch: pa.RecordBatch, keys: np.ndarray | None) -> None:
        """Add rows with the columns `id`, `text`, `attributes` and `vector`.

        Args:
            keys: uint64 (n, 2), or None.
        """
        ids, texts, attributes = (_encoded(batch[name].to_pylist()) for name in ("id", "text", "attributes"))
        vectors = np.asarray(batch["vector"].flatten(), dtype=np.float32).reshape(len(batch), -1)
        into = sql.SQL(_COPY_IN).format(sql.Identifier(self._schema, f"rows_{entry.number}"))
        with connection.cursor().copy(into) as copy:
            copy.set_types(["text", "text", "text", "bytea", "text[]", "int4[]", "int4", "vector"])
            for row, (i, text, described) in enumerate(zip(ids, texts, attributes, strict=True)):
                counts = count_words(text) if entry.has_full_text else Counter[str]()
                key = _NO_KEY if keys is None else keys[row].tobytes()
                words = (list(counts), list(counts.values()), counts.total())
                copy.write_row((i, text, described, key, *words, vectors[row]))

    def _complete(self, connection: Connection, entry: _Entry) -> None:
        """Count the rows and weigh their words, after the last of them was written."""
        self._run(connection, "DELETE FROM {words}", entry)
        self._run(connection, _WEIGH_WORDS, entry)
        counted = "UPDATE {collections} SET n_rows = (SELECT count(*) FROM {rows}) WHERE number = {number}"
        self._run(connection, counted, entry)
        self._run(connection, "ANALYZE {rows}", entry)


def _encoded(texts: Iterable[str]) -> list[str]:
    return [encode(text) for text in texts]
