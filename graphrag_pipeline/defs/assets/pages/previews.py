"""Previews of tables for people: the highest records first, with titles instead of ids, and readable text.

`PREVIEWS` lists one per table. Add a table's preview there. Vectors and numbers of records have none. Keep out:
Dagster's values (`metadata.py`), and where tables are read from (`stage_contents.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.citations import render_full_content, strip_citations
from graphrag_pipeline.defs.assets.pages.stage_contents import StageContents

N_ROWS = 10
_N_TITLES = 8  # entities that a line names
_Row: TypeAlias = dict[str, Any]
_Cell: TypeAlias = str | Callable[[_Row], Any]
"""A column, or a function of the row."""


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


def _highest(rows: pa.Table, *columns: str) -> list[_Row]:
    """Return the first rows by the values in some columns, the highest first; ties as in the table.

    Args:
        columns: "length of X" stands for the number of characters of X.
    """
    for column in columns:
        if text := column.removeprefix("length of ") * column.startswith("length of "):
            rows = rows.append_column(column, pc.utf8_length(rows[text]))
    return rows.take(_rank(rows.select(columns))).to_pylist()


def _rank(rows: pa.Table) -> pa.Array:
    """Return the numbers of the first rows by the values in the columns in turn."""
    order = [(column, "descending") for column in rows.schema.names]
    numbered = rows.append_column("_row", pa.array(range(rows.num_rows), pa.int64()))
    return pc.sort_indices(numbered, [*order, ("_row", "ascending")])[:N_ROWS]


def _show(rows: pa.Table, order: str, by: Sequence[str], cells: Mapping[str, _Cell]) -> Preview:
    """Return the preview of rows: the highest by some columns, each as cells by heading."""
    first = _highest(rows, *by) if by else rows.slice(0, N_ROWS).to_pylist()
    shown = [tuple(row[cell] if isinstance(cell, str) else cell(row) for cell in cells.values()) for row in first]
    return Preview(order, tuple(cells), shown, rows.num_rows)


def _manifest(contents: StageContents) -> Preview:
    rows = contents.read("corpus_manifest", ("path", "record", "format", "n_bytes", "problem", "note"))
    state: _Cell = lambda row: row["problem"] or row["note"] or "read"  # noqa: E731 - a cell of the row
    cells = {"file": "path", "record": "record", "format": "format", "bytes": "n_bytes", "problem or note": state}
    return _show(rows, "largest first", ["n_bytes"], cells)


def _documents(contents: StageContents) -> Preview:
    units = ["text_unit_ids"] if contents.is_contract else []
    rows = contents.read("documents", ("title", "path", "record", "text", *units))
    cells: dict[str, _Cell] = {
        "document": "title",
        "file": "path",
        "record": "record",
        "characters": lambda row: len(row["text"]),
        **({"text units": lambda row: len(row["text_unit_ids"])} if units else {}),
        "begins": lambda row: row["text"][:400],
    }
    return _show(rows, "longest first", ["length of text"], cells)


def _text_units(contents: StageContents) -> Preview:
    rows = contents.read("text_units", ("document_id", "start", "n_tokens", "text"))
    titles = contents.titles_of("documents")
    title: _Cell = lambda row: titles.get(row["document_id"], "")  # noqa: E731 - a cell of the row
    cells = {"document": title, "from character": "start", "tokens": "n_tokens", "text": "text"}
    return _show(rows, "longest first", ["n_tokens"], cells)


def units_by_document(contents: StageContents) -> Preview:
    """Return the documents of a partition with the number and the tokens of their text units."""
    units = contents.read("text_units", ("document_id", "n_tokens"))
    sums = units.group_by("document_id").aggregate([("n_tokens", "sum"), ("n_tokens", "count")])
    titles, paths = contents.titles_of("documents"), contents.titles_of("documents", "path")
    cells: dict[str, _Cell] = {
        "document": lambda row: titles.get(row["document_id"], ""),
        "file": lambda row: paths.get(row["document_id"], ""),
        "text units": "n_tokens_count",
        "tokens": "n_tokens_sum",
    }
    return _show(sums.sort_by("document_id"), "longest first", ["n_tokens_sum"], cells)


def _mentions(
    contents: StageContents, table: str, names: Mapping[str, str], order: str, sums: Mapping[str, str]
) -> Preview:
    """Return the preview of mentions, counted by name or pair.

    Args:
        names: heading -> column of the name or of an end of the pair.
        sums: heading -> column that is summed up; then this sum ranks the rows, not the number of mentions.
    """
    keys = list(names.values())
    rows = contents.read(table, (*keys, "description", *sums.values())).to_pandas()
    groups = rows.assign(text=rows["description"].where(rows["description"] != "")).groupby(keys, as_index=False)
    totals = {column: (column, "sum") for column in sums.values()}
    found = groups.agg(**totals, n=("text", "size"), text=("text", "first"))
    ranked = found.sort_values([*totals, "n"][0], ascending=False, kind="stable").head(N_ROWS).fillna({"text": ""})
    headings = (*names, *sums, "mentions", "first description")
    return Preview(order, headings, list(ranked.itertuples(index=False, name=None)), len(found))


def _claims(contents: StageContents, table: str, about: str, other: str) -> Preview:
    cells = {"about": about, "other entity": other, "type": "type", "status": "status", "claim": "description"}
    return _show(contents.read(table, tuple(cells.values())), "longest first", ["length of description"], cells)


def _entities(contents: StageContents) -> Preview:
    text, by = "description" if contents.is_contract else "descriptions", ("degree", "frequency")
    cells: dict[str, _Cell] = {
        "entity": "title",
        "type": "type",
        "relationships": "degree",
        "text units": "frequency",
        "written as": "names",
        "description": lambda row: _as_text(row[text]),
    }
    columns = ("title", "type", "names", "degree", "frequency", text)
    return _show_few(contents, "entities", columns, "most relationships first", by, cells)


def _relationships(contents: StageContents) -> Preview:
    text, by = "description" if contents.is_contract else "descriptions", ("weight", "combined_degree")
    cells: dict[str, _Cell] = {
        "one entity": "source",
        "other entity": "target",
        "weight": "weight",
        "text units": lambda row: len(row["text_unit_ids"]),
        "description": lambda row: _as_text(row[text]),
    }
    columns = ("source", "target", "weight", "combined_degree", "text_unit_ids", text)
    return _show_few(contents, "relationships", columns, "heaviest first", by, cells)


def _show_few(
    contents: StageContents,
    table: str,
    columns: Sequence[str],
    order: str,
    by: Sequence[str],
    cells: Mapping[str, _Cell],
) -> Preview:
    """Return the preview of a table of which only the columns `by` are read whole: its texts are large."""
    ranks = contents.read(table, by)
    first = contents.read(table, columns, _rank(ranks))
    return replace(_show(first, order, by, cells), n_rows=ranks.num_rows)


def _as_text(value: str | Sequence[str]) -> str:
    return value if isinstance(value, str) else max(value, key=len, default="")


def _entity_merges(contents: StageContents) -> Preview:
    rows = contents.read("entity_merges", ("name", "title", "rule", "score", "evidence"))
    lowest = rows.sort_by([("score", "ascending"), ("title", "ascending"), ("name", "ascending")])
    cells = {"written form": "name", "became": "title", "rule": "rule", "certainty": "score", "evidence": "evidence"}
    return _show(lowest, "least certain first", [], cells)


def _descriptions(contents: StageContents) -> Preview:
    rows = contents.read("descriptions", ("description_key", "kind", "n_descriptions", "description"))
    keys = pa.array([row["description_key"] for row in _highest(rows, "n_descriptions")], pa.string())
    subjects = {}  # description key -> title of the entity, or both ends of the relationship
    for table, columns in (("entities", ("title",)), ("relationships", ("source", "target"))):
        described = contents.read(table, ("description_key", *columns))
        for row in described.filter(pc.is_in(described["description_key"], value_set=keys)).to_pylist():
            subjects[row["description_key"]] = " \u2013 ".join(row[name] for name in columns)
    subject: _Cell = lambda row: subjects.get(row["description_key"], "")  # noqa: E731 - a cell of the row
    cells = {"of": subject, "kind": "kind", "texts summarized": "n_descriptions", "description": "description"}
    return _show(rows, "most summarized first", ["n_descriptions"], cells)


def _communities(contents: StageContents) -> Preview:
    entities = contents.read("entities", ("id", "title", "degree"))
    columns = (entities[name].to_pylist() for name in ("id", "title", "degree"))
    known = {key: (-degree, title) for key, title, degree in zip(*columns, strict=True)}

    def name_strongest(row: _Row) -> str:
        ranked = sorted(known[key] for key in row["entity_ids"] if key in known)
        return ", ".join(title for _, title in ranked[:_N_TITLES])

    cells: dict[str, _Cell] = {"level": "level", "entities": "size", "with the most relationships": name_strongest}
    return _show(contents.read("communities", ("level", "size", "entity_ids")), "largest first", ["size"], cells)


def _reports(contents: StageContents) -> Preview:
    rows = contents.read("community_reports", ("title", "level", "rank", "summary", "findings"))
    cells: dict[str, _Cell] = {
        "report": "title",
        "level": "level",
        "rank (0 to 10)": "rank",
        "findings": lambda row: len(row["findings"]),
        "summary": lambda row: strip_citations(row["summary"]),
    }
    return _show(rows, "highest rank first", ["rank"], cells)


def render_highest_reports(contents: StageContents) -> str:
    """Return the reports of the highest rank in full, as markdown without citations; "" without reports."""
    columns = ("title", "level", "rank", "rating_explanation", "summary", "findings")
    return "\n\n---\n\n".join(map(_render_report, _highest(contents.read("community_reports", columns), "rank")))


def _render_report(row: Mapping[str, Any]) -> str:
    text = strip_citations(render_full_content(row["title"], row["summary"], row["findings"]))
    title, _, rest = text.partition("\n")
    reason = f" {row['rating_explanation']}" if row["rating_explanation"] else ""
    return f"{title}\n\n*Rank {row['rank']:g} of 10, level {row['level']}.{reason}*\n{rest}"


def _failures(contents: StageContents, table: str) -> Preview:
    cells = {**({"stage": "stage"} if table == "failures" else {}), "reason": "reason", "reply begins": "reply"}
    return _show(contents.read(table, tuple(cells.values())), "in the order of the table", [], cells)


PREVIEWS: Mapping[str, Callable[[StageContents], Preview]] = {
    "corpus_manifest": _manifest,
    "documents": _documents,
    "text_units": _text_units,
    "entity_mentions": partial(
        _mentions,
        table="entity_mentions",
        names={"name": "name", "type": "type"},
        order="most mentioned first",
        sums={},
    ),
    "relationship_mentions": partial(
        _mentions,
        table="relationship_mentions",
        names={"from": "source", "to": "target"},
        order="strongest first",
        sums={"summed strength": "strength"},
    ),
    "claim_mentions": partial(_claims, table="claim_mentions", about="subject", other="object"),
    "entities": _entities,
    "relationships": _relationships,
    "covariates": partial(_claims, table="covariates", about="subject_id", other="object_id"),
    "entity_merges": _entity_merges,
    "descriptions": _descriptions,
    "communities": _communities,
    "community_reports": _reports,
    "failures": partial(_failures, table="failures"),
}
"""The preview of each table that has readable rows."""


def preview_of(contents: StageContents, table: str) -> Preview | None:
    """Return the preview of a table; None for a table of vectors or numbers."""
    if table.endswith("_failures"):
        return _failures(contents, table)
    return PREVIEWS[table](contents) if table in PREVIEWS else None
