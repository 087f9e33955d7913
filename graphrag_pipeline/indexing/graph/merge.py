"""Merge of mentions into one graph: entities by title, relationships by unordered pair, claims as covariates.

DuckDB aggregates, from files into slices of rows. The rows of mentions are parted by ranges of the ids of their
entities or relationships, and one range at a time is put together, so the memory depends on the number of names, not of
mentions. The result does not depend on the order of rows or on the number of files, ranges and threads: sums are
decimal, lists are sorted and distinct, and ties are broken by value. Mentions are counted per text unit, as in GraphRAG
(Edge et al. 2024, arXiv 2404.16130), but what overlapping text units share counts once (`repeats.py`). `frequency` is
the number of text units.

Claims that overlapping text units or gleanings repeat: one row, with all its text units.

Two claims of one document are the same if subject, object, type, status and dates are equal, and the descriptions too,
without regard to white space and case. A claim that another text unit describes in other words is the same if both
quote the same source text and each text unit has only one description for it. Claims of two documents stay two: each
document is a source.

Keep out: the choice of titles (`titles.py`), claims, stages after `graph`.
"""

from __future__ import annotations

import glob
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.arrow_columns import one_chunk
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem.files import TEMPORARY_PREFIX
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.indexing.graph.repeats import PLACE, create_shared_text, mark_repeats
from graphrag_pipeline.indexing.graph.titles import NamePolicy, create_titles
from graphrag_pipeline.settings.settings import GraphSettings
from graphrag_pipeline.tables import COVARIATES, ENTITIES, RELATIONSHIPS, Table
from graphrag_pipeline.text.name_words import DOUBTFUL, IDENTIFIER

if TYPE_CHECKING:
    import duckdb
    import pyarrow.dataset as ds

    Mentions: TypeAlias = "pa.Table | ds.Dataset"

MAX_ROWS_IN_MEMORY = 1_000_000
"""Up to this many mentions are merged in memory: 262,000 take 2.2 s of processor time, 3.0 s with tables in a file."""
RANGE_ROWS = 1_000_000
"""Mentions of a range, on average: with texts of 500 characters, DuckDB needs about 1 GB for their lists."""
_MAX_RANGES = 256
_MAX_SPILL = "20GB"  # of temporary files; a merge that needs more has a faulty join and would fill the disk
_ROWS_WAITING = 1_000_000
"""Rows of all ranges together that a thread holds until it writes them."""

# `identity.stable_hash` in SQL: the length (8 bytes) and the bytes of each part, in hexadecimal.
_MACROS = """
CREATE MACRO hash_part(s) AS lpad(hex(strlen(s)), 16, '0') || hex(encode(s));
CREATE MACRO hash_parts(l) AS array_to_string(list_transform(l, lambda s: hash_part(s)), '');
CREATE MACRO pair_id(a, b) AS substr(sha256(unhex(hash_part('relationship')) || a || b), 1, 32);
CREATE MACRO stable_hash(parts) AS substr(sha256(unhex(parts)), 1, 32);
CREATE MACRO sorted_distinct(l) AS list_sort(list_distinct(coalesce(l, []::VARCHAR[])));
CREATE MACRO range_of(id, n) AS ('0x' || substr(id, 1, 4))::INTEGER * n // 65536;
"""


@contextmanager
def _connect(
    max_memory: str, n_threads: int, is_small: bool, folder: Path | None
) -> Iterator[tuple[duckdb.DuckDBPyConnection, Path]]:
    """Open an empty database, in memory or in a temporary file.

    Raises:
        PipelineError: the merge needs more memory and temporary files than allowed.
    """
    import duckdb

    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX, dir=folder) as place:
        connection = duckdb.connect(
            ":memory:" if is_small else f"{place}/merge.duckdb",  # in a file, tables can leave memory
            config={
                "memory_limit": max_memory,
                "threads": n_threads,
                "temp_directory": place,
                "max_temp_directory_size": _MAX_SPILL,
                "preserve_insertion_order": False,
            },
        )
        try:
            # Keep joins as written: the optimizer can start with "two titles differ", a cross product, and it does not
            # know how small a range is.
            connection.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
            connection.execute(_MACROS)
            yield connection, Path(place)
        except duckdb.OutOfMemoryException as error:
            raise PipelineError(
                f"graph: the merge needs more than {max_memory} of memory and {_MAX_SPILL} of temporary files in "
                f"{place} ({str(error).partition(chr(10))[0]}); raise graph.max_memory in settings.yaml"
            ) from error
        finally:
            connection.close()


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


_N_THREADS = 2
_MAX_STRENGTH = 1e12
_PMI_DIGITS = 6
_DEFAULT_POLICY = NamePolicy()
_CATEGORY = r"\p{Lu}+[- ]?\d?"
"""A value of a category: a scale has less than ten levels, and tickets have higher numbers."""
_MIN_LABELLED, _MIN_REPEATED = 3, 1.5
"""Documents that have a category, and how many have each value on average: fewer say nothing of a small set."""


def merge_graph(*mentions: Mentions, **others: Any) -> dict[str, pa.Table]:
    """Return the tables of `merge_in_slices`, with the same arguments, whole and in memory."""
    with merge_in_slices(*mentions, **others) as tables:
        return {name: pa.concat_tables(slices).combine_chunks() for name, slices in tables.items()}


@contextmanager
def merge_in_slices(
    entity_mentions: Mentions,
    relationship_mentions: Mentions,
    claim_mentions: Mentions,
    settings: GraphSettings,
    n_threads: int = _N_THREADS,
    text_units: Mentions | None = None,
    policy: NamePolicy = _DEFAULT_POLICY,
    folder: Path | None = None,
) -> Iterator[Mapping[str, Iterator[pa.Table]]]:
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
        folder: for temporary files; they are removed at the end. None: that of the system.

    Yields:
        The slices of `entities`, `relationships`, `covariates` and `entity_merges` by table name, each in file order
        and made when it is read. `entity_merges` has a row for each written form whose title differs from its own
        spelling (see `resolution.py`); mentions keep their names. `relationships.pmi` is the pointwise mutual
        information log2(p(a, b) / (p(a) p(b))) (Church and Hanks 1990), where p is the share of text units with
        mentions. It is high for two entities that occur only together, and about 0 for a pair with an entity that
        occurs everywhere.

    Raises:
        PipelineError: the merge needs more memory and temporary files than allowed.
    """
    named = {
        "entity_mentions": entity_mentions,
        "relationship_mentions": relationship_mentions,
        "claim_mentions": claim_mentions,
    }
    counts = {name: _count_mentions(mentions) for name, mentions in named.items()}
    is_small = sum(counts.values()) <= MAX_ROWS_IN_MEMORY
    n_entity, n_relationship, n_claim = (min(max(1, -(-n // RANGE_ROWS)), _MAX_RANGES) for n in counts.values())
    with _connect(settings.max_memory, n_threads, is_small, folder) as (connection, place):
        for name, mentions in named.items():
            connection.register(f"given_{name}", mentions)
        _leave_out_words(connection)
        for name in named:
            connection.execute(f"CREATE TEMP VIEW {name} AS FROM stored_{name}")
        if text_units is not None:
            connection.register("stored_text_units", text_units)
        create_shared_text(connection, is_known=text_units is not None)
        entity_merges = create_titles(connection, policy)
        _create_rows(connection, "relationship_rows", _RELATIONSHIP_ROWS, n_relationship, place)
        mark_repeats(connection, "relationship_rows", "source_no", "target_no")
        _create_rows(connection, "entity_rows", _ENTITY_ROWS, n_entity, place)
        mark_repeats(connection, "entity_rows", "title_id", "title_id")
        _create_nodes(connection)
        weight = "sum(strength::DECIMAL(38, 6))" if settings.weight == "strength" else "count(*)"
        text_unit_ids = connection.sql("SELECT id FROM text_units ORDER BY text_unit_no").to_arrow_table()["id"]
        by_number = partial(_as_table, text_unit_ids=one_chunk(text_unit_ids))
        yield {
            "entities": (
                by_number(_select_entities(connection, number, n_entity), table=ENTITIES) for number in range(n_entity)
            ),
            "relationships": (
                by_number(_select_relationships(connection, number, weight), table=RELATIONSHIPS)
                for number in range(n_relationship)
            ),
            "covariates": _merge_claims(connection, n_claim, text_units is not None),
            "entity_merges": iter([entity_merges]),
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


_ENTITY_ROWS = f"""
    SELECT title_id, text_unit_no, coalesce(nullif(upper(trim(type)), ''), 'UNKNOWN') AS type,
        coalesce(is_exact, false) AS is_exact, CASE WHEN trim(description) <> '' THEN description END AS description,
        {PLACE}, range_of(t.id, $n_ranges) AS range_no
    FROM entity_mentions m JOIN names USING (name) JOIN titles t USING (title_id)
    JOIN text_units u ON m.text_unit_id = u.id
"""
_RELATIONSHIP_ROWS = f"""
    SELECT least(s.title_id, t.title_id) AS source_no, greatest(s.title_id, t.title_id) AS target_no, text_unit_no,
        CASE WHEN trim(description) <> '' THEN description END AS description,
        CASE WHEN trim(predicate) <> '' THEN predicate END AS predicate,
        CASE WHEN isfinite(strength) THEN least(greatest(strength, 0), {_MAX_STRENGTH}) ELSE 0 END AS strength,
        {PLACE}, range_of(
            CASE WHEN s.title_id < t.title_id THEN pair_id(s.part, t.part) ELSE pair_id(t.part, s.part) END, $n_ranges
        ) AS range_no
    FROM relationship_mentions r JOIN names s ON r.source = s.name JOIN names t ON r.target = t.name
    JOIN text_units u ON r.text_unit_id = u.id
    WHERE s.title_id <> t.title_id
"""


def _create_rows(connection: duckdb.DuckDBPyConnection, rows: str, query: str, n_ranges: int, folder: Path) -> None:
    """Create `read_<rows>`, one row per mention with numbers for names and text units, parted by `range_no`."""
    query = query.replace("$n_ranges", str(n_ranges))
    if n_ranges > 1:
        place = str(folder / rows).replace("'", "''")
        connection.execute(f"SET partitioned_write_flush_threshold = {_ROWS_WAITING // n_ranges}")
        written = f"COPY ({query}) TO '{place}' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (range_no))"
        if connection.execute(written).fetchall() != [(0,)]:
            connection.execute(f"""
                CREATE VIEW read_{rows} AS
                FROM read_parquet('{glob.escape(place)}/*/*.parquet', hive_types = {{'range_no': INTEGER}})""")
            return
    connection.execute(f"CREATE TABLE read_{rows} AS {query}")


def _create_nodes(connection: duckdb.DuckDBPyConnection) -> None:
    """Create `nodes` (the titles with frequency and degree) and `ends`.

    `ends` has the text units of the titles that occur only in relationships.
    """
    connection.execute("""
        CREATE TABLE mentioned AS
        SELECT title_id, count(*) AS frequency FROM (SELECT DISTINCT title_id, text_unit_no FROM read_entity_rows)
        GROUP BY title_id;
        CREATE TABLE ends AS
        SELECT DISTINCT title_id, text_unit_no FROM (
            SELECT source_no AS title_id, text_unit_no FROM read_relationship_rows
            UNION ALL SELECT target_no, text_unit_no FROM read_relationship_rows
        ) ANTI JOIN mentioned USING (title_id);
        CREATE TABLE nodes AS
        SELECT title_id, title, id, frequency, coalesce(degree, 0) AS degree FROM titles JOIN (
            FROM mentioned UNION ALL SELECT title_id, count(*) FROM ends GROUP BY title_id
        ) USING (title_id) LEFT JOIN (
            SELECT title_id, count(*) AS degree FROM (
                SELECT unnest([source_no, target_no]) AS title_id
                FROM (SELECT DISTINCT source_no, target_no FROM read_relationship_rows)
            ) GROUP BY title_id
        ) USING (title_id)""")


def _select_relationships(connection: duckdb.DuckDBPyConnection, range_no: int, weight: str) -> pa.Table:
    """Return the relationships of a range, sorted by id, with numbers of text units."""
    return connection.sql(f"""
        WITH pairs AS (
            SELECT
                source_no, target_no,
                ({weight} FILTER (NOT is_repeat))::DOUBLE AS weight,
                count(*) FILTER (NOT is_repeat) AS n_mentions,
                list_sort(list_distinct(list(text_unit_no))) AS text_unit_ids,
                sorted_distinct(list(description)) AS descriptions,
                sorted_distinct(list(predicate)) AS predicates,
            FROM relationship_rows WHERE range_no = {range_no} GROUP BY source_no, target_no
        )
        SELECT
            pair_id(unhex(hash_part(s.title)), unhex(hash_part(t.title))) AS id,
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
            s.degree + t.degree AS combined_degree,
            text_unit_ids,
            predicates,
            round(
                log2(
                    len(text_unit_ids)::DOUBLE * (SELECT count(*) FROM text_units)
                    / greatest(s.frequency, len(text_unit_ids)) / greatest(t.frequency, len(text_unit_ids))
                ), {_PMI_DIGITS}
            ) AS pmi,
        FROM nodes t JOIN (nodes s JOIN pairs ON source_no = s.title_id) ON target_no = t.title_id
        ORDER BY id""").to_arrow_table()


def _select_entities(connection: duckdb.DuckDBPyConnection, range_no: int, n_ranges: int) -> pa.Table:
    """Return the entities of a range, sorted by id, with numbers of text units."""
    return connection.sql(f"""
        WITH chosen AS (FROM nodes WHERE range_of(id, {n_ranges}) = {range_no}),
        typed AS (
            SELECT
                title_id,
                list(type ORDER BY type = 'UNKNOWN', NOT is_exact, n DESC, type) AS types,
                sum(n)::BIGINT AS n_mentions
            FROM (
                SELECT title_id, type, count(*) FILTER (NOT is_repeat) AS n, bool_or(is_exact) AS is_exact
                FROM entity_rows WHERE range_no = {range_no} GROUP BY title_id, type
            ) GROUP BY title_id
        ),
        merged AS (
            SELECT * FROM typed JOIN (
                SELECT
                    title_id,
                    list_sort(list_distinct(list(text_unit_no))) AS text_unit_ids,
                    sorted_distinct(list(description)) AS descriptions,
                FROM entity_rows WHERE range_no = {range_no} GROUP BY title_id
            ) USING (title_id)
            UNION ALL
            SELECT title_id, ['UNKNOWN'], 0, list_sort(list(text_unit_no)), []
            FROM ends SEMI JOIN chosen USING (title_id) GROUP BY title_id
        ),
        written AS (
            SELECT title_id, sorted_distinct(list(name)) AS names FROM written_names SEMI JOIN chosen USING (title_id)
            GROUP BY title_id
        )
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
        FROM chosen JOIN merged USING (title_id) JOIN written USING (title_id)
        ORDER BY id""").to_arrow_table()


def _as_table(rows: pa.Table, text_unit_ids: pa.Array, table: Table) -> pa.Table:
    """Return selected rows with ids in place of the numbers of text units."""
    lists = one_chunk(rows["text_unit_ids"])
    offsets = np.concatenate(([0], np.cumsum(pc.list_value_length(lists).to_numpy(zero_copy_only=False))))
    named = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), text_unit_ids.take(lists.flatten()))
    return rows.set_column(rows.schema.get_field_index("text_unit_ids"), "text_unit_ids", named).cast(table.schema)


def _merge_claims(connection: duckdb.DuckDBPyConnection, n_ranges: int, is_known: bool) -> Iterator[pa.Table]:
    """Yield `covariates`, read by ranges of documents; text units of unknown documents are documents of their own."""
    places = "LEFT JOIN stored_text_units u ON c.text_unit_id = u.id" if is_known else ""
    document, position = (
        ("coalesce(u.document_id, c.text_unit_id)", "u.position") if is_known else ("text_unit_id", "0")
    )
    parts = []
    for range_no in range(n_ranges):
        rows = connection.sql(f"""
            SELECT c.* EXCLUDE (subject, object), {document} AS document_id, {position} AS unit_position,
                coalesce(s.title, '') AS subject_id, coalesce(o.title, '') AS object_id
            FROM claim_mentions c {places}
            LEFT JOIN (names JOIN titles USING (title_id)) s ON c.subject = s.name
            LEFT JOIN (names JOIN titles USING (title_id)) o ON c.object = o.name
            WHERE hash({document}) % {n_ranges} = {range_no}""").to_arrow_table()
        parts.append(COVARIATES.from_rows(fold_claims(rows.to_pylist())))
    yield COVARIATES.sort(*parts)
