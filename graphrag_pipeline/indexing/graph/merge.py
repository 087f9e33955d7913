"""Merge of mentions into one graph: entities by title, relationships by unordered pair, claims as covariates.

DuckDB aggregates. The result does not depend on the order of rows or on the number of files and threads: sums are
decimal, lists are sorted and distinct, and ties are broken by value. Mentions are counted per text unit, as in GraphRAG
(Edge et al. 2024, arXiv 2404.16130), but what overlapping text units share counts once (`repeats.py`). `frequency` is
the number of text units.

Claims that overlapping text units or gleanings repeat: one row, with all its text units.

Two claims of one document are the same if subject, object, type, status and dates are equal, and the descriptions too,
without regard to white space and case. A claim that another text unit describes in other words is the same if both
quote the same source text and each text unit has only one description for it. Claims of two documents stay two: each
document is a source.

DuckDB database of a merge: memory limits, hash macros, and results as Arrow tables.

Keep out: the choice of titles (`titles.py`), claims, stages after `graph`.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.indexing.graph.repeats import PLACE, create_entity_rows, create_shared_text, mark_repeats
from graphrag_pipeline.indexing.graph.titles import NamePolicy, create_titles
from graphrag_pipeline.settings.settings import GraphSettings
from graphrag_pipeline.tables import COVARIATES, ENTITIES, RELATIONSHIPS, Table
from graphrag_pipeline.text.name_words import DOUBTFUL, IDENTIFIER

if TYPE_CHECKING:
    import duckdb

MAX_ROWS_IN_MEMORY = 1_000_000
"""Up to this many mentions are merged in memory: 262,000 take 2.2 s of processor time, 3.0 s with tables in a file."""
_MAX_SPILL = "20GB"  # of temporary files; a merge that needs more has a faulty join and would fill the disk

# `identity.stable_hash` in SQL: the length (8 bytes) and the bytes of each part, in hexadecimal.
_HASH_MACROS = """
CREATE MACRO hash_part(s) AS printf('%016X', strlen(s)) || hex(encode(s));
CREATE MACRO hash_parts(l) AS array_to_string(list_transform(l, lambda s: hash_part(s)), '');
CREATE MACRO stable_hash(parts) AS substr(sha256(unhex(parts)), 1, 32);
CREATE MACRO sorted_distinct(l) AS list_sort(list_distinct(coalesce(l, []::VARCHAR[])));
"""


@contextmanager
def connect(max_memory: str, n_threads: int, is_small: bool) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an empty database, in memory or in a temporary file.

    Raises:
        PipelineError: the merge needs more memory and temporary files than allowed.
    """
    import duckdb

    with tempfile.TemporaryDirectory(prefix="graphrag-merge-") as folder:
        connection = duckdb.connect(
            ":memory:" if is_small else f"{folder}/merge.duckdb",  # in a file, tables can leave memory
            config={
                "memory_limit": max_memory,
                "threads": n_threads,
                "temp_directory": folder,
                "max_temp_directory_size": _MAX_SPILL,
                "preserve_insertion_order": False,
            },
        )
        try:
            # Keep the written order of joins: the optimizer can start with "two titles differ", a cross product.
            connection.execute("SET disabled_optimizers = 'join_order'")
            connection.execute(_HASH_MACROS)
            yield connection
        except duckdb.OutOfMemoryException as error:
            raise PipelineError(
                f"graph: the merge needs more than {max_memory} of memory and {_MAX_SPILL} of temporary files in "
                f"{tempfile.gettempdir()} ({str(error).partition(chr(10))[0]}); raise graph.max_memory in settings.yaml"
            ) from error
        finally:
            connection.close()


def count_rows(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    """Count the rows of a table."""
    ((n_rows,),) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
    return n_rows


def read_text_unit_ids(connection: duckdb.DuckDBPyConnection) -> pa.ChunkedArray:
    """Return the ids of the text units in the order of their numbers."""
    return connection.sql("SELECT id FROM text_units ORDER BY text_unit_no").to_arrow_table()["id"]


def join_slices(slices: list[pa.Table], text_unit_ids: pa.ChunkedArray, table: Table) -> pa.Table:
    """Join slices in file order to one table with one chunk per column, and replace text unit numbers by ids.

    Columns are joined one at a time and removed from `slices`, to save memory.
    """
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
    """Return the offsets of the flattened lists, from 0."""
    lengths = np.concatenate(([0], pc.list_value_length(lists).to_numpy(zero_copy_only=False)))
    return pa.array(np.cumsum(lengths), pa.int32())


_Row = dict[str, Any]
_SAME = ("document_id", "subject_id", "object_id", "type", "status", "start_date", "end_date")
_HASHED = ("subject_id", "object_id", "type", "status", "start_date", "end_date", "description", "source_text")


def fold_claims(claims: Iterable[_Row]) -> list[_Row]:
    """Return rows of `covariates`, one per claim, sorted by id.

    Args:
        claims: rows of `claim_mentions` with `subject_id`, `object_id`, `document_id` and `unit_position`.

    Returns:
        The first mention of each claim in reading order, with `text_unit_ids`, the sorted ids of all its text units.
    """
    ordered = sorted(claims, key=lambda row: (row["unit_position"] or 0, row["text_unit_id"], row["position"]))
    alike: defaultdict[tuple[str, ...], list[_Row]] = defaultdict(list)
    for row in ordered:
        alike[tuple(_fold(row[column]) for column in _SAME)].append(row)
    folded = [_join(group) for rows in alike.values() for group in _group(rows)]
    return sorted(folded, key=lambda row: row["id"])


def _group(rows: Sequence[_Row]) -> list[list[_Row]]:
    """Group rows of one subject, object, type, status and dates by what they state."""
    descriptions = [_fold(row["description"]) for row in rows]
    label = {text: text for text in descriptions}  # description -> description of the first claim of the group
    for texts in _by_quote(rows, descriptions):
        first, *others = dict.fromkeys(label[text] for text in texts)
        label = {text: first if known in others else known for text, known in label.items()}
    groups: defaultdict[str, list[_Row]] = defaultdict(list)
    for row, text in zip(rows, descriptions, strict=True):
        groups[label[text]].append(row)
    return list(groups.values())


def _by_quote(rows: Sequence[_Row], descriptions: Sequence[str]) -> list[list[str]]:
    """Return the descriptions of each source text that no text unit describes in two ways."""
    quoted: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row, text in zip(rows, descriptions, strict=True):
        if quote := _fold(row["source_text"]):
            quoted[quote][row["text_unit_id"]].append(text)
    return [
        [text for texts in by_unit.values() for text in texts]
        for by_unit in quoted.values()
        if all(len(set(texts)) == 1 for texts in by_unit.values())
    ]


def _join(rows: Sequence[_Row]) -> _Row:
    first = rows[0]
    texts = [first["text_unit_id"], str(first["position"]), *(first[column] or "" for column in _HASHED)]
    joined = first | {
        "id": stable_hash("claim", *texts),
        "covariate_type": "claim",
        "text_unit_ids": sorted({row["text_unit_id"] for row in rows}),
    }
    return {column: joined[column] for column in COVARIATES.schema.names}


def _fold(text: str | None) -> str:
    return " ".join((text or "").split()).casefold()


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
_CATEGORY = r"\p{Lu}+[- ]?\d?"
"""A value of a category: a scale has less than ten levels, and tickets have higher numbers."""
_MIN_LABELLED, _MIN_REPEATED = 3, 1.5
"""Documents that have a category, and how many have each value on average: fewer say nothing of a small set."""


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

    The key of an entity is its normalized title. Its type is an exact one (`entity_mentions.is_exact`), else the most
    frequent, ties by name; it is UNKNOWN only if no mention has another type. The key of a relationship is the
    unordered pair of titles. An end without entity mentions becomes an entity of type UNKNOWN with 0 mentions and the
    text units of its relationships. Names that are empty after normalization are skipped with their relationships, and
    so are relationships of an entity with itself. A strength has six decimals and is clipped to 0 to 1e12; one that is
    not a number counts as 0.

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
            connection.register(f"given_{name}", mentions)
        _leave_out_words(connection)
        for name in named:
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


def _leave_out_words(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the views of the mentions without those of words that only the corpus shows to be no names.

    These are doubtful names that no other mention confirms, and categories: values of a label that has few, each a code
    or an abbreviation with one digit at most, such as "Severity: SEV-1" and "currency: EUR". They stay metadata. What a
    label says of a document has no place in the text and no request, and what a file says exactly is always a name.
    """
    connection.execute(f"""
        CREATE TEMP TABLE left_out AS
        SELECT upper(name) AS name FROM given_entity_mentions WHERE type = '{DOUBTFUL}'
        EXCEPT SELECT upper(unnest([name, written])) FROM given_entity_mentions WHERE type <> '{DOUBTFUL}';
        INSERT INTO left_out
        SELECT upper(unnest(list(target))) FROM given_relationship_mentions
        WHERE start IS NULL AND request_key IS NULL AND predicate IS NOT NULL
        GROUP BY predicate
        HAVING bool_and(regexp_full_match(target, '{_CATEGORY}'))
            AND count(DISTINCT source) >= {_MIN_LABELLED}
            AND count(DISTINCT source) >= {_MIN_REPEATED} * count(DISTINCT target)
        EXCEPT SELECT upper(unnest([name, written])) FROM given_entity_mentions WHERE is_exact;
        CREATE TEMP VIEW stored_entity_mentions AS
        SELECT * REPLACE (CASE WHEN type = '{DOUBTFUL}' THEN '{IDENTIFIER}' ELSE type END AS type)
        FROM given_entity_mentions WHERE upper(name) NOT IN (FROM left_out);
        CREATE TEMP VIEW stored_relationship_mentions AS
        FROM given_relationship_mentions
        WHERE upper(source) NOT IN (FROM left_out) AND upper(target) NOT IN (FROM left_out);
        CREATE TEMP VIEW stored_claim_mentions AS FROM given_claim_mentions""")


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
            SELECT
                title_id,
                list(type ORDER BY type = 'UNKNOWN', NOT is_exact, n DESC, type) AS types,
                sum(n)::BIGINT AS n_mentions
            FROM (
                SELECT title_id, type, count(*) FILTER (NOT is_repeat) AS n, bool_or(is_exact) AS is_exact
                FROM entity_rows GROUP BY title_id, type
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
