"""Titles of the names in mentions: normal spelling, the user's overrides, and the rules of resolution.

This is the first step of `graph`. It reads names from the mentions in DuckDB and creates the tables that the other
steps join. Keep out: aggregating mentions (`merge.py`), the rules (`merge_proposals.py`, `resolution.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from graphrag_pipeline.identity import entity_id, normalize_title
from graphrag_pipeline.indexing.graph.merge_proposals import propose_merges
from graphrag_pipeline.indexing.graph.overrides import KEEP_APART, MERGE, split_rows
from graphrag_pipeline.indexing.graph.repeats import create_entity_rows
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

    Forms = dict[str, set[str]]  # name in the mentions -> its written forms


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

    The tables are `names` (name, title_id), `titles` (title_id, title, id; numbered in the order of titles) and
    `written_names` (title_id, name: each written form of the title). If the user keeps apart names that one document
    tied, or the rule of the tie does not apply, the first two views are replaced by views that separate these names.
    Needs the tables of `repeats.create_shared_text`.

    Returns:
        `entity_merges`.
    """
    decided = list(split_rows(policy.overrides)) if policy.overrides is not None else []
    apart = {(a, b) for action, a, b in decided if action == KEEP_APART}
    merged = {(a, b) for action, a, b in decided if action == MERGE}
    forms = _read_forms(connection)
    splits = _find_splits(forms, apart, merged, policy.rules)
    if splits:
        _split_ties(connection, splits)
        forms = _read_forms(connection)
    titles = {name: title for name in _read_names(connection) if (title := normalize_title(name))}
    _register_titles(connection, titles, forms)
    ties: defaultdict[str, set[str]] = defaultdict(set)
    for name in forms:
        for form in forms[name]:
            if form.isupper():  # EGFR is not eGFR
                ties[normalize_title(form)].add(titles[name])
    decided_merges = [*_decided_merges(merged, titles, forms), *policy.proposals]
    merges = _resolve(connection, decided_merges, apart, policy.rules, ties)
    if merges:
        titles = {name: merges[title].into if title in merges else title for name, title in titles.items()}
        _register_titles(connection, titles, forms)
    return _merge_rows(titles, forms, merges)


def _read_names(connection: duckdb.DuckDBPyConnection) -> list[str]:
    rows = connection.execute("""
        SELECT DISTINCT name FROM (
            SELECT name FROM entity_mentions
            UNION ALL SELECT source FROM relationship_mentions UNION ALL SELECT target FROM relationship_mentions
            UNION ALL SELECT subject FROM claim_mentions UNION ALL SELECT object FROM claim_mentions
        )""").fetchall()
    return [name for (name,) in rows]


def _read_forms(connection: duckdb.DuckDBPyConnection) -> Forms:
    """Return the written forms of each name that differ from it, with white space folded."""
    forms: Forms = {}
    for name, written in connection.execute(f"""
        SELECT DISTINCT name, {_FOLDED} AS form FROM entity_mentions
        WHERE written IS NOT NULL AND form <> name AND form <> ''""").fetchall():
        forms.setdefault(name, set()).add(written)
    return forms


_FOLDED = r"trim(regexp_replace(regexp_replace(written, '([-‐])\s*\n\s*', '\1', 'g'), '\s+', ' ', 'g'))"


def _decided_merges(merged: set[tuple[str, str]], titles: dict[str, str], forms: Forms) -> list[Merge]:
    """Return the user's merges of known titles; the second name can also be a written form of exactly one title."""
    known = set(titles.values())
    tied: defaultdict[str, set[str]] = defaultdict(set)
    for name in forms if merged else ():
        for form in forms[name]:
            tied[normalize_title(form)].add(titles[name])
    found = []
    for a, b in sorted(merged):
        ends = sorted({b} if b in known else tied[b])
        if a in known and len(ends) == 1 and ends[0] != a:
            found.append(Merge(a, ends[0], "override", f"merge,{a},{b} in {OVERRIDES_FILE}", 1.0))
    return found


def _find_splits(
    forms: Forms, apart: set[tuple[str, str]], merged: set[tuple[str, str]], rules: Collection[str]
) -> list[tuple[str, str]]:
    """Return (name, written form) of the forms that must not be tied to the name."""
    splits = {(name, form) for name, written in forms.items() for form in _forms_to_split(name, written, apart, merged)}
    if not set(rules) >= TIE_RULES:
        splits |= {
            (name, form)
            for name, written in forms.items()
            for form in written
            if normalize_title(form) != normalize_title(name) and explain_tie(form, name).rule not in rules
        }
    return sorted(splits)


def _split_ties(connection: duckdb.DuckDBPyConnection, splits: list[tuple[str, str]]) -> None:
    """Replace the views by ones in which the given written forms of names are separate names.

    An end of a relationship gets the name of the first mention of it in the sentence of the relationship.
    """
    columns = {"name": [name for name, _ in splits], "form": [form for _, form in splits]}
    connection.register(
        "split_rows", pa.table(columns, schema=pa.schema([("name", pa.string()), ("form", pa.string())]))
    )
    connection.execute("CREATE TABLE splits AS SELECT * FROM split_rows")
    connection.unregister("split_rows")
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


def _register_titles(connection: duckdb.DuckDBPyConnection, titles: dict[str, str], forms: Forms) -> None:
    ordered = sorted(set(titles.values()))
    number = {title: n for n, title in enumerate(ordered)}
    written = [(number[title], form) for name, title in titles.items() for form in (name, *forms.get(name, ()))]
    tables = {
        "names": {
            "name": pa.array(list(titles), pa.string()),
            "title_id": pa.array([number[title] for title in titles.values()], pa.int32()),
        },
        "titles": {
            "title_id": pa.array(range(len(ordered)), pa.int32()),
            "title": pa.array(ordered, pa.string()),
            "id": pa.array([entity_id(title) for title in ordered], pa.string()),
        },
        "written_names": {
            "title_id": pa.array([title_id for title_id, _ in written], pa.int32()),
            "name": pa.array([form for _, form in written], pa.string()),
        },
    }
    for table, columns in tables.items():
        connection.register("content", pa.table(columns))
        connection.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM content")
        connection.unregister("content")


def _resolve(
    connection: duckdb.DuckDBPyConnection,
    decided: list[Merge],
    apart: set[tuple[str, str]],
    rules: Collection[str],
    ties: Mapping[str, Collection[str]],
) -> dict[str, Merge]:
    """Return title -> the merge that replaces it."""
    create_entity_rows(connection)
    records = [
        TitleRecord(*row)
        for row in connection.execute("""
            SELECT title, arg_max(type, (type <> 'UNKNOWN', is_exact, n, type)), sum(n)::BIGINT,
                bool_or(is_about)
            FROM (
                SELECT title_id, type, count(*) FILTER (NOT is_repeat) AS n, bool_or(is_about) AS is_about,
                    bool_or(is_exact) AS is_exact
                FROM entity_rows GROUP BY title_id, type
            ) JOIN titles USING (title_id) GROUP BY title ORDER BY title""").fetchall()
    ]
    by_rule = propose_merges(records, rules, ties)
    ends = sorted({title for merge in by_rule for title in (merge.title, merge.into)})
    n_mentions = Counter({record.title: record.n_mentions for record in records})
    return resolve_titles([*decided, *by_rule], _neighbours(connection, ends), n_mentions, apart)


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


def _merge_rows(titles: dict[str, str], forms: Forms, merges: dict[str, Merge]) -> pa.Table:
    """Return one row per written form whose normal spelling is not its title; of several reasons the surest one."""
    rows: dict[tuple[str, str], Merge] = {}
    for name, title in titles.items():
        own = normalize_title(name)
        merge = merges.get(own)
        for form in (name, *forms.get(name, ())):
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
