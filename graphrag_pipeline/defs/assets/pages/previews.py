"""Previews of tables for people: the highest records first, with titles instead of ids, and readable text.

`PREVIEWS` lists one per table. Add a table's preview there. Vectors and numbers of records have none. Keep out:
Dagster's values (`metadata.py`), and where tables are read from (`stage_contents.py`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.citations import render_full_content, strip_citations
from graphrag_pipeline.defs.assets.pages.stage_contents import StageContents

if TYPE_CHECKING:
    import pandas as pd
    from pandas.core.groupby import DataFrameGroupBy

N_ROWS = 10
_N_REPORTS = 10
_N_TITLES = 8  # entities that a line names


@dataclass(frozen=True)
class Preview:
    """The first rows of a table by rank.

    Attributes:
        order: by what the rows are ranked, in words.
        names: heads of the columns.
        rows: at most `N_ROWS`.
        n_rows: rows of the whole table, or distinct records if the preview counts them.
    """

    order: str
    names: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    n_rows: int

    def describe(self) -> str:
        """Return the line above the rows."""
        if len(self.rows) < self.n_rows:
            return f"{len(self.rows):,} of {self.n_rows:,}, {self.order}"
        return f"{self.n_rows:,}, {self.order}"


def _highest(rows: pa.Table, *columns: str, n: int = N_ROWS) -> list[dict[str, Any]]:
    """Return the rows with the highest values in some columns; ties as in the table."""
    order = [(column, "descending") for column in columns]
    ranked = rows.select(columns).append_column("_row", pa.array(range(rows.num_rows), pa.int64()))
    first = pc.sort_indices(ranked, [*order, ("_row", "ascending")])[:n]
    return rows.take(first).to_pylist()


def _longest(rows: pa.Table, column: str) -> list[dict[str, Any]]:
    return _highest(rows.append_column("_length", pc.utf8_length(rows[column])), "_length")


def _manifest(contents: StageContents) -> Preview:
    rows = contents.read("corpus_manifest", ("path", "record", "format", "n_bytes", "problem", "note"))
    shown = [
        (row["path"], row["record"], row["format"], row["n_bytes"], row["problem"] or row["note"] or "read")
        for row in _highest(rows, "n_bytes")
    ]
    return Preview("largest first", ("file", "record", "format", "bytes", "problem or note"), shown, rows.num_rows)


def _documents(contents: StageContents) -> Preview:
    columns = ("title", "path", "record", "text", *(["text_unit_ids"] if contents.is_contract else []))
    rows = contents.read("documents", columns)
    names = ("document", "file", "record", "characters", *(["text units"] if contents.is_contract else []), "begins")
    shown = [
        (row["title"], row["path"], row["record"], len(row["text"]))
        + ((len(row["text_unit_ids"]),) if contents.is_contract else ())
        + (row["text"][:400],)
        for row in _longest(rows, "text")
    ]
    return Preview("longest first", names, shown, rows.num_rows)


def _text_units(contents: StageContents) -> Preview:
    rows = contents.read("text_units", ("document_id", "start", "n_tokens", "text"))
    titles = contents.titles_of("documents")
    shown = [
        (titles.get(row["document_id"], ""), row["start"], row["n_tokens"], row["text"])
        for row in _highest(rows, "n_tokens")
    ]
    return Preview("longest first", ("document", "from character", "tokens", "text"), shown, rows.num_rows)


def units_by_document(contents: StageContents) -> Preview:
    """Return the documents of a partition with the number and the tokens of their text units."""
    units = contents.read("text_units", ("document_id", "n_tokens"))
    sums = units.group_by("document_id").aggregate([("n_tokens", "sum"), ("n_tokens", "count")])
    titles, paths = contents.titles_of("documents"), contents.titles_of("documents", "path")
    shown = [
        (
            titles.get(row["document_id"], ""),
            paths.get(row["document_id"], ""),
            row["n_tokens_count"],
            row["n_tokens_sum"],
        )
        for row in _highest(sums.sort_by("document_id"), "n_tokens_sum")
    ]
    return Preview("longest first", ("document", "file", "text units", "tokens"), shown, sums.num_rows)


def _entity_mentions(contents: StageContents) -> Preview:
    groups = _group_mentions(contents, "entity_mentions", ["name", "type"])
    found = groups.agg(n=("text", "size"), text=("text", "first")).sort_values("n", ascending=False, kind="stable")
    names = ("name", "type", "mentions", "first description")
    return Preview("most mentioned first", names, _first_rows(found), len(found))


def _relationship_mentions(contents: StageContents) -> Preview:
    groups = _group_mentions(contents, "relationship_mentions", ["source", "target"], "strength")
    found = groups.agg(strength=("strength", "sum"), n=("text", "size"), text=("text", "first"))
    found = found.sort_values("strength", ascending=False, kind="stable")
    names = ("from", "to", "summed strength", "mentions", "first description")
    return Preview("strongest first", names, _first_rows(found), len(found))


def _group_mentions(contents: StageContents, table: str, keys: list[str], *others: str) -> "DataFrameGroupBy":
    """Return mentions grouped by some columns, with descriptions that are not empty as `text`."""
    rows = contents.read(table, (*keys, "description", *others)).to_pandas()
    return rows.assign(text=rows["description"].where(rows["description"] != "")).groupby(keys, as_index=False)


def _first_rows(found: "pd.DataFrame") -> list[tuple[Any, ...]]:
    return list(found.head(N_ROWS).fillna({"text": ""}).itertuples(index=False, name=None))


def _claims(contents: StageContents, table: str, about: str, other: str) -> Preview:
    columns = (about, other, "type", "status", "description")
    rows = contents.read(table, columns)
    names = ("about", "other entity", "type", "status", "claim")
    return Preview("longest first", names, _values(_longest(rows, "description"), columns), rows.num_rows)


def _entities(contents: StageContents) -> Preview:
    text = "description" if contents.is_contract else "descriptions"
    rows = contents.read("entities", ("title", "type", "names", "degree", "frequency", text))
    shown = [
        (row["title"], row["type"], row["degree"], row["frequency"], row["names"], _as_text(row[text]))
        for row in _highest(rows, "degree", "frequency")
    ]
    names = ("entity", "type", "relationships", "text units", "written as", "description")
    return Preview("most relationships first", names, shown, rows.num_rows)


def _relationships(contents: StageContents) -> Preview:
    text = "description" if contents.is_contract else "descriptions"
    rows = contents.read("relationships", ("source", "target", "weight", "combined_degree", "text_unit_ids", text))
    shown = [
        (row["source"], row["target"], row["weight"], len(row["text_unit_ids"]), _as_text(row[text]))
        for row in _highest(rows, "weight", "combined_degree")
    ]
    return Preview(
        "heaviest first", ("one entity", "other entity", "weight", "text units", "description"), shown, rows.num_rows
    )


def _as_text(value: str | Sequence[str]) -> str:
    return value if isinstance(value, str) else max(value, key=len, default="")


def _entity_merges(contents: StageContents) -> Preview:
    columns = ("name", "title", "rule", "score", "evidence")
    rows = contents.read("entity_merges", columns)
    lowest = rows.sort_by([("score", "ascending"), ("title", "ascending"), ("name", "ascending")])
    shown = _values(lowest.slice(0, N_ROWS).to_pylist(), columns)
    return Preview(
        "least certain first", ("written form", "became", "rule", "certainty", "evidence"), shown, rows.num_rows
    )


def _descriptions(contents: StageContents) -> Preview:
    rows = contents.read("descriptions", ("description_key", "kind", "n_descriptions", "description"))
    first = _highest(rows, "n_descriptions")
    keys = pa.array([row["description_key"] for row in first], pa.string())
    subjects = _subjects_of(contents, keys)
    shown = [
        (subjects.get(row["description_key"], ""), row["kind"], row["n_descriptions"], row["description"])
        for row in first
    ]
    return Preview("most summarized first", ("of", "kind", "texts summarized", "description"), shown, rows.num_rows)


def _subjects_of(contents: StageContents, keys: pa.Array) -> dict[str, str]:
    """Return description key -> title of the entity, or both ends of the relationship."""
    subjects = {}
    for table, columns in (("entities", ("title",)), ("relationships", ("source", "target"))):
        rows = contents.read(table, ("description_key", *columns))
        for row in rows.filter(pc.is_in(rows["description_key"], value_set=keys)).to_pylist():
            subjects[row["description_key"]] = " \u2013 ".join(row[name] for name in columns)
    return subjects


def _communities(contents: StageContents) -> Preview:
    rows = contents.read("communities", ("level", "size", "entity_ids"))
    strongest = strongest_entities(contents)
    shown = [
        (row["level"], row["size"], ", ".join(strongest(row["entity_ids"], _N_TITLES)))
        for row in _highest(rows, "size")
    ]
    return Preview("largest first", ("level", "entities", "with the most relationships"), shown, rows.num_rows)


def strongest_entities(contents: StageContents) -> Callable[[Iterable[str], int], list[str]]:
    """Return a function that gives the titles of the `n` entities with the most relationships among some ids."""
    entities = contents.read("entities", ("id", "title", "degree"))
    columns = (entities[name].to_pylist() for name in ("id", "title", "degree"))
    known = {key: (-degree, title) for key, title, degree in zip(*columns, strict=True)}

    def choose(ids: Iterable[str], n: int) -> list[str]:
        return [title for _, title in sorted(known[key] for key in ids if key in known)[:n]]

    return choose


def _reports(contents: StageContents) -> Preview:
    rows = contents.read("community_reports", ("title", "level", "rank", "summary", "findings"))
    shown = [
        (row["title"], row["level"], row["rank"], len(row["findings"]), strip_citations(row["summary"]))
        for row in _highest(rows, "rank")
    ]
    return Preview(
        "highest rank first", ("report", "level", "rank (0 to 10)", "findings", "summary"), shown, rows.num_rows
    )


def render_highest_reports(contents: StageContents) -> str:
    """Return the reports of the highest rank in full, as markdown without citations; "" without reports."""
    columns = ("title", "level", "rank", "rating_explanation", "summary", "findings")
    rows = _highest(contents.read("community_reports", columns), "rank", n=_N_REPORTS)
    return "\n\n---\n\n".join(_render_report(row) for row in rows)


def _render_report(row: Mapping[str, Any]) -> str:
    text = strip_citations(render_full_content(row["title"], row["summary"], row["findings"]))
    title, _, rest = text.partition("\n")
    reason = f" {row['rating_explanation']}" if row["rating_explanation"] else ""
    return f"{title}\n\n*Rank {row['rank']:g} of 10, level {row['level']}.{reason}*\n{rest}"


def _failures(contents: StageContents, table: str) -> Preview:
    rows = contents.read(table, ("record", "reason", "reply"))
    shown = [(row["reason"], row["reply"]) for row in rows.slice(0, N_ROWS).to_pylist()]
    return Preview("in the order of their records", ("reason", "reply begins"), shown, rows.num_rows)


def _all_failures(contents: StageContents) -> Preview:
    columns = ("stage", "reason", "reply")
    rows = contents.read("failures", columns)
    shown = _values(rows.slice(0, N_ROWS).to_pylist(), columns)
    return Preview("in the order of their stages", ("stage", "reason", "reply begins"), shown, rows.num_rows)


def _values(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in columns) for row in rows]


PREVIEWS: Mapping[str, Callable[[StageContents], Preview]] = {
    "corpus_manifest": _manifest,
    "documents": _documents,
    "text_units": _text_units,
    "entity_mentions": _entity_mentions,
    "relationship_mentions": _relationship_mentions,
    "claim_mentions": partial(_claims, table="claim_mentions", about="subject", other="object"),
    "entities": _entities,
    "relationships": _relationships,
    "covariates": partial(_claims, table="covariates", about="subject_id", other="object_id"),
    "entity_merges": _entity_merges,
    "descriptions": _descriptions,
    "communities": _communities,
    "community_reports": _reports,
    "failures": _all_failures,
}
"""The preview of each table that has readable rows."""


def preview_of(contents: StageContents, table: str) -> Preview | None:
    """Return the preview of a table; None for a table of vectors or numbers."""
    if table.endswith("_failures"):
        return _failures(contents, table)
    return PREVIEWS[table](contents) if table in PREVIEWS else None
