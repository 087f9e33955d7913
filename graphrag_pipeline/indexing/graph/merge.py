"""Merging mentions into one graph: entities by title, relationships by unordered pair, claims as covariates.

DuckDB aggregates; what is exact stays exact whatever the order of rows, the number of files or of threads: sums are
decimal, lists are sorted and distinct, ties are broken by value. Nothing computed downstream of `graph` is here.

How things are counted: per text unit, as in the GraphRAG paper. Text units overlap, so a sentence in two of them is two
mentions; `frequency` is the number of text units. Which title a name gets is decided in `graph_titles.py`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.indexing.graph.resolution import Merge
from graphrag_pipeline.indexing.graph.titles import create_titles
from graphrag_pipeline.settings.settings import GraphSettings
from graphrag_pipeline.tables import COVARIATES, ENTITIES, RELATIONSHIPS, Table

if TYPE_CHECKING:
    import duckdb
    import pyarrow.dataset as ds

    Mentions: TypeAlias = "pa.Table | ds.Dataset"

_N_THREADS = 2
_MAX_STRENGTH = 1e12
_STRENGTH_DIGITS = 6
_PMI_DIGITS = 6
_SLICE_ROWS = 400_000  # relationships collected at once
MAX_ROWS_IN_MEMORY = 1_000_000
"""So many mentions are merged in memory: for 262,000 that takes 2.2 s of processor, with tables in a file 3.0."""
_MAX_SPILL = "20GB"  # of temporary files: more means a join went wrong, and would fill the disk

# `identity.stable_hash` in SQL: every part as its length (8 bytes) and its bytes, in hexadecimal.
_HASH_MACROS = """
CREATE MACRO hash_part(s) AS printf('%016X', strlen(s)) || hex(encode(s));
CREATE MACRO hash_parts(l) AS array_to_string(list_transform(l, lambda s: hash_part(s)), '');
CREATE MACRO stable_hash(parts) AS substr(sha256(unhex(parts)), 1, 32);
CREATE MACRO sorted_distinct(l) AS list_sort(list_distinct(coalesce(l, []::VARCHAR[])));
"""


def merge_graph(
    entity_mentions: Mentions,
    relationship_mentions: Mentions,
    claim_mentions: Mentions,
    settings: GraphSettings,
    n_threads: int = _N_THREADS,
    overrides: pa.Table | None = None,
    proposals: Sequence[Merge] = (),
) -> dict[str, pa.Table]:
    """Merge the mentions of all text units.

    An entity's key is its normalised title; its type is the most frequent one (ties by name), and UNKNOWN only where no
    mention says better. A relationship's key is the unordered pair of titles. Ends that no entity mention names become
    entities of type UNKNOWN, with no mentions and the text units of their relationships. Names that are empty after
    normalisation are skipped with the relationships they end; a pair of one entity with itself is dropped. Strengths
    count to six decimals, between 0 and 1e12; one that is no number counts 0.

    Args:
        entity_mentions, relationship_mentions, claim_mentions: tables or datasets of these schemas, rows in any order.
        n_threads: DuckDB's threads; the result does not depend on it.
        overrides: what a person decided, from `overrides.read_overrides`; rows with names that no document has do
            nothing (see `overrides.find_unused`).
        proposals: merges that `semantic_resolution.py` found in an earlier result.

    Returns:
        `entities`, `relationships`, `covariates`, `entity_merges` by table name. `entity_merges` has a row for each
        written form that became another title than its own spelling, see `resolution.py`; nothing is lost by it, since
        mentions keep their names. `relationships.pmi` is log2(p(a, b) / (p(a) p(b))) over the text units with mentions:
        high for two that are seen only together, about 0 for a pair with a hub that is seen everywhere.

    Raises:
        PipelineError: the merge needs more disk than it may.
    """
    named = {
        "entity_mentions": entity_mentions,
        "relationship_mentions": relationship_mentions,
        "claim_mentions": claim_mentions,
    }
    is_small = sum(_count_mentions(mentions) for mentions in named.values()) <= MAX_ROWS_IN_MEMORY
    with _connect(settings.max_memory, n_threads, is_small) as connection:
        for name, mentions in named.items():
            connection.register(f"stored_{name}", mentions)
            connection.execute(f"CREATE TEMP VIEW {name} AS FROM stored_{name}")
        entity_merges = create_titles(connection, overrides, proposals)
        weight = "sum(strength)" if settings.weight == "strength" else "count(*)"
        _create_relationship_rows(connection)
        _create_pairs(connection, weight)
        _create_entity_rows(connection)
        return {
            "entities": _select_entities(connection),
            "relationships": _select_relationships(connection),
            "covariates": _select_covariates(connection),
            "entity_merges": entity_merges,
        }


def _count_mentions(mentions: Mentions) -> int:
    return mentions.num_rows if isinstance(mentions, pa.Table) else mentions.count_rows()


@contextmanager
def _connect(max_memory: str, n_threads: int, is_small: bool) -> Iterator[duckdb.DuckDBPyConnection]:
    import duckdb

    with tempfile.TemporaryDirectory(prefix="graphrag-merge-") as folder:
        connection = duckdb.connect(
            ":memory:" if is_small else f"{folder}/merge.duckdb",  # a file, so that tables leave memory
            config={
                "memory_limit": max_memory,
                "threads": n_threads,
                "temp_directory": folder,
                "max_temp_directory_size": _MAX_SPILL,
                "preserve_insertion_order": False,
            },
        )
        try:
            # Joins in the order written: the optimizer may start from "two titles differ", a product of all titles.
            connection.execute("SET disabled_optimizers = 'join_order'")
            connection.execute(_HASH_MACROS)
            yield connection
        except duckdb.OutOfMemoryException as error:
            raise PipelineError(
                f"graph: merging {_MAX_SPILL} of temporary files in {tempfile.gettempdir()} and {max_memory} of memory "
                f"were not enough ({str(error).partition(chr(10))[0]}); raise graph.max_memory in settings.yaml"
            ) from error
        finally:
            connection.close()


def _create_relationship_rows(connection: duckdb.DuckDBPyConnection) -> None:
    """Tables `text_units` (text_unit_no in the order of ids, id) and `relationship_rows` (numbers for names)."""
    connection.execute("""
        CREATE TABLE text_units AS
        SELECT (row_number() OVER (ORDER BY id) - 1)::INTEGER AS text_unit_no, id FROM (
            SELECT text_unit_id AS id FROM entity_mentions UNION SELECT text_unit_id FROM relationship_mentions
        )""")
    connection.execute(f"""
        CREATE TABLE relationship_rows AS
        SELECT
            least(s.title_id, t.title_id) AS source_no,
            greatest(s.title_id, t.title_id) AS target_no,
            text_unit_no,
            CASE WHEN trim(description) <> '' THEN description END AS description,
            CASE WHEN trim(predicate) <> '' THEN predicate END AS predicate,
            CASE WHEN isfinite(strength) THEN least(greatest(strength, 0), {_MAX_STRENGTH}) ELSE 0 END
                ::DECIMAL(38, {_STRENGTH_DIGITS}) AS strength,
        FROM relationship_mentions r JOIN names s ON r.source = s.name JOIN names t ON r.target = t.name
        JOIN text_units u ON r.text_unit_id = u.id
        WHERE s.title_id <> t.title_id""")


def _create_pairs(connection: duckdb.DuckDBPyConnection, weight: str) -> None:
    """Table `pairs`, one row per unordered pair numbered in the order of ids, and `degrees`."""
    connection.execute(f"""
        CREATE TABLE pairs AS
        SELECT *, row_number() OVER (ORDER BY id) - 1 AS pair_no FROM (
            SELECT
                source_no, target_no, weight, n_mentions,
                stable_hash(hash_part('relationship') || hash_part(s.title) || hash_part(t.title)) AS id
            FROM (
                SELECT source_no, target_no, ({weight})::DOUBLE AS weight, count(*) AS n_mentions
                FROM relationship_rows GROUP BY source_no, target_no
            ) JOIN titles s ON source_no = s.title_id JOIN titles t ON target_no = t.title_id
        )""")
    connection.execute("""
        CREATE TABLE degrees AS
        SELECT title_id, count(*) AS degree FROM (
            SELECT source_no AS title_id FROM pairs UNION ALL SELECT target_no FROM pairs
        ) GROUP BY title_id""")


def _select_relationships(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """In slices, so that only the result itself needs memory in proportion to the graph."""
    n_pairs, n_units = _count(connection, "pairs"), _count(connection, "text_units")
    slices = [
        _select_relationship_slice(connection, start, start + _SLICE_ROWS, n_units)
        for start in range(0, max(n_pairs, 1), _SLICE_ROWS)
    ]
    text_unit_ids = _text_unit_ids(connection)
    connection.execute("DROP TABLE relationship_rows")
    return _join_slices(slices, text_unit_ids, RELATIONSHIPS)


def _select_relationship_slice(connection: duckdb.DuckDBPyConnection, start: int, end: int, n_units: int) -> pa.Table:
    return connection.sql(f"""
        WITH slice AS (SELECT * FROM pairs WHERE pair_no >= {start} AND pair_no < {end}),
        collected AS (
            SELECT
                pair_no,
                list_sort(list_distinct(list(text_unit_no))) AS text_unit_ids,
                sorted_distinct(list(description)) AS descriptions,
                sorted_distinct(list(predicate)) AS predicates,
            FROM relationship_rows JOIN slice USING (source_no, target_no) GROUP BY pair_no
        )
        SELECT
            slice.id,
            s.title AS source,
            t.title AS target,
            s.id AS source_id,
            t.id AS target_id,
            descriptions,
            stable_hash(
                hash_part('relationship') || hash_part(s.title || chr(9) || t.title) || hash_parts(descriptions)
            ) AS description_key,
            weight,
            n_mentions,
            a.degree + b.degree AS combined_degree,
            text_unit_ids,
            predicates,
            round(
                log2(
                    len(text_unit_ids)::DOUBLE * {n_units}
                    / greatest(a.frequency, len(text_unit_ids)) / greatest(b.frequency, len(text_unit_ids))
                ), {_PMI_DIGITS}
            ) AS pmi,
        FROM slice JOIN collected USING (pair_no)
        JOIN titles s ON source_no = s.title_id JOIN titles t ON target_no = t.title_id
        JOIN sizes a ON source_no = a.title_id JOIN sizes b ON target_no = b.title_id
        ORDER BY pair_no""").to_arrow_table()


def _create_entity_rows(connection: duckdb.DuckDBPyConnection) -> None:
    """Tables `mentioned` and `ends`: titles with entity mentions, and titles that only relationships name.

    And `sizes` (title_id, frequency, degree) of both.
    """
    connection.execute("""
        CREATE TABLE mentioned AS
        SELECT title_id, types, n_mentions, text_unit_ids, descriptions
        FROM (
            SELECT title_id, list(type ORDER BY type = 'UNKNOWN', n DESC, type) AS types, sum(n)::BIGINT AS n_mentions
            FROM (
                SELECT title_id, coalesce(nullif(upper(trim(type)), ''), 'UNKNOWN') AS type, count(*) AS n
                FROM entity_mentions JOIN names USING (name) GROUP BY ALL
            ) GROUP BY title_id
        ) JOIN (
            SELECT
                title_id,
                list_sort(list_distinct(list(text_unit_no))) AS text_unit_ids,
                sorted_distinct(list(description) FILTER (trim(description) <> '')) AS descriptions,
            FROM entity_mentions m JOIN names USING (name) JOIN text_units u ON m.text_unit_id = u.id GROUP BY title_id
        ) USING (title_id)""")
    connection.execute("""
        CREATE TABLE ends AS
        SELECT title_id, list_sort(list_distinct(list(text_unit_no))) AS text_unit_ids
        FROM (
            SELECT source_no AS title_id, text_unit_no FROM relationship_rows
            UNION ALL SELECT target_no, text_unit_no FROM relationship_rows
        ) ANTI JOIN mentioned USING (title_id) GROUP BY title_id""")
    connection.execute("""
        CREATE TABLE sizes AS
        SELECT title_id, frequency, coalesce(degree, 0) AS degree FROM (
            SELECT title_id, len(text_unit_ids) AS frequency FROM mentioned
            UNION ALL SELECT title_id, len(text_unit_ids) FROM ends
        ) LEFT JOIN degrees USING (title_id)""")


def _select_entities(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    rows = connection.sql("""
        WITH merged AS (
            FROM mentioned
            UNION ALL
            SELECT title_id, ['UNKNOWN'], 0, text_unit_ids, [] FROM ends
        ),
        written AS (SELECT title_id, sorted_distinct(list(name)) AS names FROM written_names GROUP BY title_id)
        SELECT
            id,
            title,
            types[1] AS type,
            types,
            names,
            descriptions,
            stable_hash(hash_part('entity') || hash_part(title) || hash_parts(descriptions)) AS description_key,
            text_unit_ids,
            frequency,
            n_mentions,
            degree,
        FROM merged JOIN titles USING (title_id) JOIN written USING (title_id) JOIN sizes USING (title_id)
        ORDER BY id""").to_arrow_table()
    return _join_slices([rows], _text_unit_ids(connection), ENTITIES)


def _count(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    ((n_rows,),) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
    return n_rows


def _text_unit_ids(connection: duckdb.DuckDBPyConnection) -> pa.ChunkedArray:
    """Ids of text units by their number."""
    return connection.sql("SELECT id FROM text_units ORDER BY text_unit_no").to_arrow_table()["id"]


def _join_slices(slices: list[pa.Table], text_unit_ids: pa.ChunkedArray, table: Table) -> pa.Table:
    """One table of one chunk from slices in file order, column by column to spare memory; text units get their ids."""
    columns = []
    for field in table.schema:
        chunks = [chunk for part in slices for chunk in part[field.name].chunks]
        slices[:] = [part.drop_columns(field.name) for part in slices]
        if field.name == "text_unit_ids":
            chunks = [_name_text_units(chunk, text_unit_ids) for chunk in chunks]
        cast = [chunk.cast(field.type) for chunk in chunks]
        columns.append(pa.concat_arrays(cast) if cast else pa.array([], field.type))
    return pa.Table.from_arrays(columns, schema=table.schema)


def _name_text_units(numbers: pa.ListArray, text_unit_ids: pa.ChunkedArray) -> pa.ListArray:
    return pa.ListArray.from_arrays(_offsets(numbers), text_unit_ids.take(numbers.flatten()).combine_chunks())


def _offsets(lists: pa.ListArray) -> pa.Array:
    """Offsets of the flattened lists, from 0."""
    lengths = np.concatenate(([0], pc.list_value_length(lists).to_numpy(zero_copy_only=False)))
    return pa.array(np.cumsum(lengths), pa.int32())


def _select_covariates(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    rows = connection.sql("""
        SELECT
            stable_hash(hash_parts([
                'claim', text_unit_id, position::VARCHAR, subject_id, object_id, type, status,
                coalesce(start_date, ''), coalesce(end_date, ''), description, source_text
            ])) AS id,
            'claim' AS covariate_type,
            * EXCLUDE (position),
        FROM (
            SELECT c.* EXCLUDE (subject, object),
                coalesce(s.title, '') AS subject_id, coalesce(o.title, '') AS object_id
            FROM claim_mentions c
            LEFT JOIN (names JOIN titles USING (title_id)) s ON c.subject = s.name
            LEFT JOIN (names JOIN titles USING (title_id)) o ON c.object = o.name
        )
        ORDER BY id""").to_arrow_table()
    return rows.select(COVARIATES.schema.names).cast(COVARIATES.schema).combine_chunks()
