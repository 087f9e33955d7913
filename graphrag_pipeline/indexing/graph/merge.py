"""Merge of mentions into one graph: entities by title, relationships by unordered pair, claims as covariates.

DuckDB aggregates. The result does not depend on the order of rows or on the number of files and threads: sums are
decimal, lists are sorted and distinct, and ties are broken by value. Mentions are counted per text unit, as in GraphRAG
(Edge et al. 2024, arXiv 2404.16130), but what overlapping text units share counts once (`repeats.py`). `frequency` is
the number of text units. Keep out: the choice of titles (`titles.py`), claims (`claims.py`), stages after `graph`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from graphrag_pipeline.indexing.graph.claims import fold_claims
from graphrag_pipeline.indexing.graph.merge_database import (
    MAX_ROWS_IN_MEMORY,
    connect,
    count_rows,
    join_slices,
    read_text_unit_ids,
)
from graphrag_pipeline.indexing.graph.repeats import PLACE, create_entity_rows, create_shared_text, mark_repeats
from graphrag_pipeline.indexing.graph.titles import NamePolicy, create_titles
from graphrag_pipeline.settings.settings import GraphSettings
from graphrag_pipeline.tables import COVARIATES, ENTITIES, RELATIONSHIPS

if TYPE_CHECKING:
    import duckdb
    import pyarrow.dataset as ds

    Mentions: TypeAlias = "pa.Table | ds.Dataset"

_N_THREADS = 2
_MAX_STRENGTH = 1e12
_STRENGTH_DIGITS = 6
_PMI_DIGITS = 6
_DEFAULT_POLICY = NamePolicy()
_SLICE_ROWS = 400_000  # relationships of one slice


def merge_graph(
    entity_mentions: Mentions,
    relationship_mentions: Mentions,
    claim_mentions: Mentions,
    settings: GraphSettings,
    n_threads: int = _N_THREADS,
    text_units: Mentions | None = None,
    policy: NamePolicy = _DEFAULT_POLICY,
) -> dict[str, pa.Table]:
    """Merge the mentions of all text units.

    The key of an entity is its normalized title. Its type is the most frequent one, ties by name; it is UNKNOWN only if
    no mention has another type. The key of a relationship is the unordered pair of titles. An end without entity
    mentions becomes an entity of type UNKNOWN with 0 mentions and the text units of its relationships. Names that are
    empty after normalization are skipped with their relationships, and so are relationships of an entity with itself.
    A strength has six decimals and is clipped to 0 to 1e12; one that is not a number counts as 0.

    Args:
        entity_mentions, relationship_mentions, claim_mentions: tables or datasets of these schemas, rows in any order.
        n_threads: number of DuckDB's threads; the result does not depend on it.
        text_units: the text units of the mentions; without them, no two of them overlap.
        policy: which names are one entity. Overrides with names that no document contains have no effect (see
            `overrides.find_unused`).

    Returns:
        `entities`, `relationships`, `covariates` and `entity_merges` by table name. `entity_merges` has a row for each
        written form whose title differs from its own spelling (see `resolution.py`); mentions keep their names.
        `relationships.pmi` is the pointwise mutual information log2(p(a, b) / (p(a) p(b))) (Church and Hanks 1990),
        where p is the share of text units with mentions. It is high for two entities that occur only together, and
        about 0 for a pair with an entity that occurs everywhere.

    Raises:
        PipelineError: the merge needs more memory and temporary files than allowed.
    """
    named = {
        "entity_mentions": entity_mentions,
        "relationship_mentions": relationship_mentions,
        "claim_mentions": claim_mentions,
    }
    is_small = sum(_count_mentions(mentions) for mentions in named.values()) <= MAX_ROWS_IN_MEMORY
    with connect(settings.max_memory, n_threads, is_small) as connection:
        for name, mentions in named.items():
            connection.register(f"stored_{name}", mentions)
            connection.execute(f"CREATE TEMP VIEW {name} AS FROM stored_{name}")
        if text_units is not None:
            connection.register("stored_text_units", text_units)
        create_shared_text(connection, is_known=text_units is not None)
        entity_merges = create_titles(connection, policy)
        weight = "sum(strength)" if settings.weight == "strength" else "count(*)"
        _create_relationship_rows(connection)
        _create_pairs(connection, weight)
        create_entity_rows(connection)
        _create_entity_sizes(connection)
        return {
            "entities": _select_entities(connection),
            "relationships": _select_relationships(connection),
            "covariates": _select_covariates(connection, text_units is not None),
            "entity_merges": entity_merges,
        }


def _count_mentions(mentions: Mentions) -> int:
    return mentions.num_rows if isinstance(mentions, pa.Table) else mentions.count_rows()


def _create_relationship_rows(connection: duckdb.DuckDBPyConnection) -> None:
    """Create `relationship_rows`, one row per relationship mention with numbers for names, and mark repeats."""
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
            {PLACE}
        FROM relationship_mentions r JOIN names s ON r.source = s.name JOIN names t ON r.target = t.name
        JOIN text_units u ON r.text_unit_id = u.id
        WHERE s.title_id <> t.title_id""")
    mark_repeats(connection, "relationship_rows", "source_no", "target_no")


def _create_pairs(connection: duckdb.DuckDBPyConnection, weight: str) -> None:
    """Create `pairs`, one row per unordered pair, numbered in the order of ids, and `degrees`."""
    connection.execute(f"""
        CREATE TABLE pairs AS
        SELECT *, row_number() OVER (ORDER BY id) - 1 AS pair_no FROM (
            SELECT
                source_no, target_no, weight, n_mentions,
                stable_hash(hash_part('relationship') || hash_part(s.title) || hash_part(t.title)) AS id
            FROM (
                SELECT source_no, target_no, ({weight})::DOUBLE AS weight, count(*) AS n_mentions
                FROM relationship_rows WHERE NOT is_repeat GROUP BY source_no, target_no
            ) JOIN titles s ON source_no = s.title_id JOIN titles t ON target_no = t.title_id
        )""")
    connection.execute("""
        CREATE TABLE degrees AS
        SELECT title_id, count(*) AS degree FROM (
            SELECT source_no AS title_id FROM pairs UNION ALL SELECT target_no FROM pairs
        ) GROUP BY title_id""")


def _select_relationships(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Return `relationships`, collected in slices, so that only the result takes memory in proportion to the graph."""
    n_pairs, n_units = count_rows(connection, "pairs"), count_rows(connection, "text_units")
    slices = [
        _select_relationship_slice(connection, start, start + _SLICE_ROWS, n_units)
        for start in range(0, max(n_pairs, 1), _SLICE_ROWS)
    ]
    text_unit_ids = read_text_unit_ids(connection)
    connection.execute("DROP TABLE relationship_rows")
    return join_slices(slices, text_unit_ids, RELATIONSHIPS)


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


def _create_entity_sizes(connection: duckdb.DuckDBPyConnection) -> None:
    """Create `mentioned`, `ends` and `sizes`.

    `mentioned` has the titles with entity mentions, `ends` the titles that occur only in relationships, and `sizes`
    title_id, frequency and degree of both.
    """
    connection.execute("""
        CREATE TABLE mentioned AS
        SELECT title_id, types, n_mentions, text_unit_ids, descriptions
        FROM (
            SELECT title_id, list(type ORDER BY type = 'UNKNOWN', n DESC, type) AS types, sum(n)::BIGINT AS n_mentions
            FROM (
                SELECT title_id, type, count(*) FILTER (NOT is_repeat) AS n FROM entity_rows GROUP BY ALL
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
    return join_slices([rows], read_text_unit_ids(connection), ENTITIES)


def _select_covariates(connection: duckdb.DuckDBPyConnection, is_known: bool) -> pa.Table:
    """Return `covariates`; text units of unknown documents are documents of their own."""
    places = "LEFT JOIN stored_text_units u ON c.text_unit_id = u.id" if is_known else ""
    document, position = (
        ("coalesce(u.document_id, c.text_unit_id)", "u.position") if is_known else ("text_unit_id", "0")
    )
    rows = connection.sql(f"""
        SELECT c.* EXCLUDE (subject, object), {document} AS document_id, {position} AS unit_position,
            coalesce(s.title, '') AS subject_id, coalesce(o.title, '') AS object_id
        FROM claim_mentions c {places}
        LEFT JOIN (names JOIN titles USING (title_id)) s ON c.subject = s.name
        LEFT JOIN (names JOIN titles USING (title_id)) o ON c.object = o.name""").to_arrow_table()
    return COVARIATES.from_rows(fold_claims(rows.to_pylist()))
