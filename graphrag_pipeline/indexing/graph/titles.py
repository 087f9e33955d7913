"""Titles of the names in mentions: normal spelling, the user's overrides, and the rules of resolution.

This is the first step of `graph`. It reads names from the mentions in DuckDB and creates the tables that the other
steps join. Keep out: aggregating mentions (`merge.py`), the rules (`merge_proposals.py`, `resolution.py`).
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.indexing.graph.merge_proposals import propose_merges
from graphrag_pipeline.indexing.graph.overrides import KEEP_APART, MERGE, split_rows
from graphrag_pipeline.indexing.graph.repeats import PLACE, mark_repeats
from graphrag_pipeline.indexing.graph.resolution import (
    RULES,
    TIE_RULES,
    Merge,
    TitleRecord,
    explain_tie,
    resolve_titles,
)
from graphrag_pipeline.settings.settings import OVERRIDES_FILE
from graphrag_pipeline.tables import ENTITY_MERGES

if TYPE_CHECKING:
    import duckdb

_ROWS_AT_ONCE = 65_536


@dataclass(frozen=True, slots=True)
class NamePolicy:
    """What decides which names are one entity, besides their normal spelling.

    Attributes:
        overrides: the user's decisions, from `overrides.read_overrides`.
        proposals: merges that `semantic_resolution.py` found in an earlier result.
        rules: the rules of `resolution.RULES` that apply; overrides always do. A tie of two names inside one document
            is a merge by the rule that explains it; without this rule the written forms are separate entities.
    """

    overrides: pa.Table | None = None
    proposals: Sequence[Merge] = ()
    rules: Collection[str] = RULES


def create_titles(connection: duckdb.DuckDBPyConnection, policy: NamePolicy) -> pa.Table:
    """Create the tables of titles from the views `entity_mentions`, `relationship_mentions` and `claim_mentions`.

    The tables are `names` (name, title_id, part: the title in the hash of an id), `titles` (title_id, title, id;
    numbered in the order of titles) and `written_names` (title_id, name: each written form of the title). If the user
    keeps apart names that one document tied, or the rule of the tie does not apply, the first two views are replaced by
    views that separate these names. Needs the tables of `repeats.create_shared_text`.

    Returns:
        `entity_merges`.
    """
    decided = list(split_rows(policy.overrides)) if policy.overrides is not None else []
    apart = {(a, b) for action, a, b in decided if action == KEEP_APART}
    merged = {(a, b) for action, a, b in decided if action == MERGE}
    _create_forms(connection)
    splits = _find_splits(connection, apart, merged, policy.rules)
    if splits:
        _split_ties(connection, splits)
        _create_forms(connection)
    _create_spelled(connection)
    _create_titles(connection, {})
    ties: defaultdict[str, set[str]] = defaultdict(set)
    for _, own, form in _read_forms(connection):
        if form.isupper():  # EGFR is not eGFR
            ties[normalize_title(form)].add(own)
    decided_merges = [*_decided_merges(connection, merged), *policy.proposals]
    merges = _resolve(connection, decided_merges, apart, policy.rules, ties)
    if merges:
        _create_titles(connection, {title: merge.into for title, merge in merges.items()})
    return _merge_rows(connection, merges)


def _create_forms(connection: duckdb.DuckDBPyConnection) -> None:
    """Create `forms` (name, form): the written forms of each name that differ from it, with white space folded."""
    connection.execute(f"""
        CREATE OR REPLACE TABLE forms AS
        SELECT DISTINCT name, {_FOLDED} AS form FROM entity_mentions
        WHERE written IS NOT NULL AND form <> name AND form <> ''""")


def _create_spelled(connection: duckdb.DuckDBPyConnection) -> None:
    """Create `spelled` (name, own): the names of all mentions with their normal spelling, if that is not empty."""
    names = connection.sql("""
        SELECT DISTINCT name FROM (
            SELECT name FROM entity_mentions
            UNION ALL SELECT source FROM relationship_mentions UNION ALL SELECT target FROM relationship_mentions
            UNION ALL SELECT subject FROM claim_mentions UNION ALL SELECT object FROM claim_mentions
        )""").to_arrow_table()
    own = [
        pa.array(map(normalize_title, batch["name"].to_pylist()), pa.string())
        for batch in names.to_batches(max_chunksize=_ROWS_AT_ONCE)
    ]
    with _registered(connection, "content", names.append_column("own", pa.chunked_array(own, pa.string()))):
        connection.execute("CREATE TABLE spelled AS SELECT name, own FROM content WHERE own <> ''")


def _read_forms(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, str, str]]:
    """Yield (name, its normal spelling, written form) of every form."""
    return _iterate(connection, "SELECT name, own, form FROM forms JOIN spelled USING (name)")


def _iterate(connection: duckdb.DuckDBPyConnection, query: str) -> Iterator[tuple]:
    """Yield the rows of a query, of which few are in Python at a time."""
    found = connection.execute(query)
    while rows := found.fetchmany(_ROWS_AT_ONCE):
        yield from rows


@contextmanager
def _registered(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> Iterator[None]:
    connection.register(name, rows)
    yield
    connection.unregister(name)


_FOLDED = r"trim(regexp_replace(regexp_replace(written, '([-‐])\s*\n\s*', '\1', 'g'), '\s+', ' ', 'g'))"


def _decided_merges(connection: duckdb.DuckDBPyConnection, merged: set[tuple[str, str]]) -> list[Merge]:
    """Return the user's merges of known titles; the second name can also be a written form of exactly one title."""
    wanted = {title for pair in merged for title in pair}
    tied: defaultdict[str, set[str]] = defaultdict(set)
    for _, own, form in _read_forms(connection) if merged else ():
        if (title := normalize_title(form)) in wanted:
            tied[title].add(own)
    known = (
        {title for (title,) in _iterate(connection, "SELECT title FROM titles") if title in wanted} if merged else set()
    )
    found = []
    for a, b in sorted(merged):
        ends = sorted({b} if b in known else tied[b])
        if a in known and len(ends) == 1 and ends[0] != a:
            found.append(Merge(a, ends[0], "override", f"merge,{a},{b} in {OVERRIDES_FILE}", 1.0))
    return found


def _find_splits(
    connection: duckdb.DuckDBPyConnection,
    apart: set[tuple[str, str]],
    merged: set[tuple[str, str]],
    rules: Collection[str],
) -> list[tuple[str, str]]:
    """Return (name, written form) of the forms that must not be tied to the name."""
    has_all_ties = set(rules) >= TIE_RULES
    if has_all_ties and not apart and not merged:
        return []
    splits = set()
    for name, written in _iterate(connection, "SELECT name, list(form) FROM forms GROUP BY name"):
        splits |= {(name, form) for form in _forms_to_split(name, set(written), apart, merged)}
        if not has_all_ties:
            splits |= {
                (name, form)
                for form in written
                if normalize_title(form) != normalize_title(name) and explain_tie(form, name).rule not in rules
            }
    return sorted(splits)


def _split_ties(connection: duckdb.DuckDBPyConnection, splits: list[tuple[str, str]]) -> None:
    """Replace the views by ones in which the given written forms of names are separate names.

    An end of a relationship gets the name of the first mention of it in the sentence of the relationship.
    """
    columns = {"name": [name for name, _ in splits], "form": [form for _, form in splits]}
    with _registered(connection, "content", pa.table(columns, schema=_strings("name", "form"))):
        connection.execute("CREATE TABLE splits AS FROM content")
    connection.execute(f"""
        CREATE TABLE split_places AS
        SELECT text_unit_id, name, start, CASE WHEN s.form IS NULL THEN m.name ELSE s.form END AS split_name
        FROM (
            SELECT text_unit_id, name, start, {_FOLDED} AS form FROM entity_mentions SEMI JOIN splits USING (name)
        ) m LEFT JOIN splits s USING (name, form)""")
    connection.execute(f"""
        CREATE OR REPLACE TEMP VIEW entity_mentions AS
        SELECT m.* REPLACE (coalesce(s.form, m.name) AS name)
        FROM (SELECT *, {_FOLDED} AS form FROM stored_entity_mentions) m LEFT JOIN splits s USING (name, form)""")
    connection.execute("""
        CREATE OR REPLACE TEMP VIEW relationship_mentions AS
        WITH parted AS (
            SELECT text_unit_id, position, p.name, arg_min(split_name, p.start) AS split_name
            FROM stored_relationship_mentions r JOIN split_places p USING (text_unit_id)
            WHERE p.name IN (r.source, r.target) AND p.start >= r.start AND p.start < r.end GROUP BY ALL
        )
        SELECT r.* REPLACE (coalesce(s.split_name, r.source) AS source, coalesce(t.split_name, r.target) AS target)
        FROM stored_relationship_mentions r
        LEFT JOIN parted s ON r.text_unit_id = s.text_unit_id AND r.position = s.position AND r.source = s.name
        LEFT JOIN parted t ON r.text_unit_id = t.text_unit_id AND r.position = t.position AND r.target = t.name""")


def _forms_to_split(
    name: str, written: set[str], apart: set[tuple[str, str]], merged: set[tuple[str, str]]
) -> list[str]:
    """Return the forms tied to `name` that are kept apart from it or each other, or merged into another title."""
    by_title: dict[str, set[str]] = {}
    for form in written:
        by_title.setdefault(normalize_title(form), set()).add(form)
    own = normalize_title(name)
    tied = by_title.keys() | {own}
    split = {title for pair in apart if tied.issuperset(pair) for title in pair if title != own}
    split |= {a for a, b in merged if a in by_title and a != own and b not in tied}
    return sorted(form for title in split for form in by_title[title])


def _create_titles(connection: duckdb.DuckDBPyConnection, into: Mapping[str, str]) -> None:
    """Create `names`, `titles` and `written_names`; `into` has the titles that others replace."""
    columns = {"own": list(into), "title": list(into.values())}
    with _registered(connection, "merged", pa.table(columns, schema=_strings("own", "title"))):
        connection.execute("""
            CREATE OR REPLACE TABLE titled AS
            SELECT name, coalesce(title, own) AS title FROM spelled LEFT JOIN merged USING (own);
            CREATE OR REPLACE TABLE titles AS
            SELECT
                (row_number() OVER (ORDER BY title) - 1)::INTEGER AS title_id,
                title,
                stable_hash(hash_part('entity') || hash_part(title)) AS id
            FROM (SELECT DISTINCT title FROM titled);
            CREATE OR REPLACE TABLE names AS
            SELECT name, title_id, unhex(hash_part(title)) AS part FROM titled JOIN titles USING (title);
            CREATE OR REPLACE TABLE written_names AS
            SELECT title_id, name FROM names UNION ALL SELECT title_id, form FROM forms JOIN names USING (name)""")


def _strings(*names: str) -> pa.Schema:
    return pa.schema([(name, pa.string()) for name in names])


def _resolve(
    connection: duckdb.DuckDBPyConnection,
    decided: list[Merge],
    apart: set[tuple[str, str]],
    rules: Collection[str],
    ties: Mapping[str, Collection[str]],
) -> dict[str, Merge]:
    """Return title -> the merge that replaces it."""
    connection.execute(f"""
        CREATE TABLE read_first_rows AS
        SELECT 0 AS range_no, title_id, text_unit_no, coalesce(nullif(upper(trim(type)), ''), 'UNKNOWN') AS type,
            coalesce(is_about, false) AS is_about, coalesce(is_exact, false) AS is_exact, {PLACE}
        FROM entity_mentions m JOIN names USING (name) JOIN text_units u ON m.text_unit_id = u.id""")
    mark_repeats(connection, "first_rows", "title_id", "title_id")
    found = _iterate(
        connection,
        """
        SELECT title, type, n, is_about FROM titles JOIN (
            SELECT title_id, arg_max(type, (type <> 'UNKNOWN', is_exact, n, type)) AS type, sum(n)::BIGINT AS n,
                bool_or(is_about) AS is_about
            FROM (
                SELECT title_id, type, count(*) FILTER (NOT is_repeat) AS n, bool_or(is_about) AS is_about,
                    bool_or(is_exact) AS is_exact
                FROM first_rows GROUP BY title_id, type
            ) GROUP BY title_id
        ) USING (title_id)""",
    )
    records = [TitleRecord(title, sys.intern(kind), n, is_about) for title, kind, n, is_about in found]
    by_rule = propose_merges(records, rules, ties)
    ends = {title for merge in by_rule for title in (merge.title, merge.into)}
    proposed = [*decided, *by_rule]
    into = {merge.into for merge in proposed}
    n_mentions = Counter({record.title: record.n_mentions for record in records if record.title in into})
    del records
    connection.execute("DROP VIEW first_rows; DROP TABLE read_first_rows; DROP TABLE repeats_of_first_rows")
    return resolve_titles(proposed, _neighbours(connection, sorted(ends)), n_mentions, apart)


def _neighbours(connection: duckdb.DuckDBPyConnection, titles: list[str]) -> dict[str, set[str]]:
    """Return title -> titles that it has a relationship with."""
    if not titles:
        return {}
    connection.register("wanted", pa.table({"title": pa.array(titles, pa.string())}))
    rows = connection.execute("""
        WITH ids AS (SELECT title_id FROM titles SEMI JOIN wanted USING (title)),
        pairs AS (
            SELECT DISTINCT s.title_id AS a, t.title_id AS b FROM relationship_mentions r
            JOIN names s ON r.source = s.name JOIN names t ON r.target = t.name
            WHERE s.title_id IN (FROM ids) OR t.title_id IN (FROM ids)
        )
        SELECT x.title, y.title FROM (
            SELECT a, b FROM pairs WHERE a IN (FROM ids) UNION SELECT b, a FROM pairs WHERE b IN (FROM ids)
        ) JOIN titles x ON a = x.title_id JOIN titles y ON b = y.title_id""").fetchall()
    connection.unregister("wanted")
    neighbours: dict[str, set[str]] = {title: set() for title in titles}
    for title, neighbour in rows:
        neighbours[title].add(neighbour)
    return neighbours


def _merge_rows(connection: duckdb.DuckDBPyConnection, merges: dict[str, Merge]) -> pa.Table:
    """Return one row per written form whose normal spelling is not its title; of several reasons the surest one."""
    rows: dict[tuple[str, str], Merge] = {}
    merged = _iterate(connection, "SELECT name, own, name FROM spelled") if merges else ()
    for name, own, form in itertools.chain(_read_forms(connection), merged):
        merge = merges.get(own)
        title = merge.into if merge else own
        reason = _reason(form, name, own, title, merge)
        if reason is not None:
            known = rows.get((form, title), reason)
            rows[form, title] = min(known, reason, key=lambda r: (-r.score, r.rule, r.evidence))
    return ENTITY_MERGES.from_rows(
        [
            {"name": form, "title": title, "rule": why.rule, "evidence": why.evidence, "score": why.score}
            for (form, title), why in rows.items()
        ]
    )


def _reason(form: str, name: str, own: str, title: str, merge: Merge | None) -> Merge | None:
    """Return the reason why a form of a name has a title; None if `normalize_title` alone maps the form to the title.

    Args:
        own: the normal spelling of the name.
    """
    of_form = own if form == name else normalize_title(form)
    if of_form == title:
        return None
    reasons: Iterable[Merge | None] = (explain_tie(form, name) if of_form != own else None, merge)
    found = [reason for reason in reasons if reason is not None]
    least = min(found, key=lambda reason: reason.score)
    return Merge(of_form, title, least.rule, "; ".join(reason.evidence for reason in found), least.score)
