"""The page of a partition in the UI: rows, files, previews and plots of the tables that its stage made.

Everything here follows from the tables alone. So a reused partition shows the same as one that was just made. Keep out:
what belongs to a run, such as model calls (`stage_run.py`).
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import dagster as dg
import pyarrow.compute as pc

from graphrag_pipeline.defs.assets.pages.metadata import as_markdown, as_table, of_rows, of_tokens, plot_bars
from graphrag_pipeline.defs.assets.pages.previews import Preview, preview_of, render_highest_reports, units_by_document
from graphrag_pipeline.defs.assets.pages.stage_contents import StageContents
from graphrag_pipeline.defs.runs.naming import asset_key
from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import CANDIDATE, Stage


def describe_contents(contents: StageContents) -> dict[str, Any]:
    """Return metadata of what a partition holds: counts, files, previews, and what is special to its stage."""
    counts = {name: contents.count(name) for name in contents.tables}
    shown = {name: n for name, n in counts.items() if n or not name.endswith("_failures")}
    previews = {name: preview_of(contents, name) for name in shown}
    return {
        **of_rows(shown, contents.stage.is_partitioned),
        **{f"preview of {name}": show_preview(found, contents.partition) for name, found in previews.items() if found},
        **_EXTRAS.get(contents.stage.name, _nothing)(contents),
        **_files(contents),
    }


_IN_ALL = " in all buckets"
_SUMMED = {
    "corpus_manifest": ("bytes of documents", "corpus_manifest", "n_bytes"),
    **dict.fromkeys(
        ("text_units", "extracted_graph", "sentence_embeddings"), ("tokens of text units", "text_units", "n_tokens")
    ),
}
"""Stage -> name of a number, and the column whose sum it is."""


def describe_totals(root: Root, stage: Stage) -> dict[str, int]:
    """Return the rows and tokens of all buckets of a stage: an asset's own page shows its last event, of one bucket.

    Nothing while a bucket is missing, as at first, and on a machine that holds only the bucket of its run.
    """
    keys = stage.partitions(root.settings)
    if not stage.is_partitioned or not all(root.tables.head(stage.tables[0], key) for key in keys):
        return {}
    heads = {name: [head for key in keys if (head := root.tables.head(name, key))] for name in stage.tables}
    counts = {name: sum(head.n_rows for head in found) for name, found in heads.items()}
    rows = of_rows({name: n for name, n in counts.items() if n or not name.endswith("_failures")})
    totals = {name if name.startswith("dagster/") else name + _IN_ALL: n for name, n in rows.items()}
    if stage.name in _SUMMED:
        name, table, column = _SUMMED[stage.name]
        read = [head for key in keys if (head := root.tables.head(table, key)) and head.files]
        rows_read = root.tables.dataset(read).to_table(columns=[column]) if read else None
        totals[name + _IN_ALL] = (pc.sum(rows_read[column]).as_py() or 0) if rows_read else 0
    return totals


def show_preview(preview: Preview, partition: str) -> dg.MarkdownMetadataValue:
    """Return a preview as a markdown table below a line on its rows."""
    if not preview.rows:
        return dg.MetadataValue.md("no rows" if partition == WHOLE else f"no rows in bucket {partition}")
    used = [at for at in range(len(preview.names)) if any(row[at] not in ("", None) for row in preview.rows)]
    table = as_table([preview.names[at] for at in used], ([row[at] for at in used] for row in preview.rows))
    return dg.MetadataValue.md(f"{preview.describe()}\n\n{table}")


def _files(contents: StageContents) -> dict[str, Any]:
    """Return where the tables are: a file, or a folder if a table has several files."""
    shown: dict[str, Any] = {}
    for name in contents.tables if contents.stage is not CANDIDATE else ():
        head = contents.root.tables.head(name, contents.partition)
        paths = contents.root.tables.paths(head) if head else []
        if paths:
            place, kind = (paths[0], "file") if len(paths) == 1 else (paths[0].parent, "folder")
            shown[f"{kind} of {name}"] = dg.MetadataValue.path(str(place.resolve()))
            if shared := contents.root.shared:
                address = f"{shared.shown_url}/{place.relative_to(contents.root.path).as_posix()}"
                shown[f"{kind} of {name} in the shared store"] = dg.MetadataValue.text(address)
    return shown


def _nothing(_contents: StageContents) -> dict[str, Any]:
    return {}


def _of_manifest(contents: StageContents) -> dict[str, Any]:
    """Return the documents that could not be read, those that were read with a warning, and the sizes."""
    rows = contents.read("corpus_manifest", ("path", "record", "n_bytes", "problem", "note"))
    shown: dict[str, Any] = {"bytes of documents": pc.sum(rows["n_bytes"]).as_py() or 0}
    for title, column in (("documents not readable", "problem"), ("documents read with a note", "note")):
        found = rows.filter(pc.is_valid(rows[column])).select(["path", "record", column])
        shown[title] = found.num_rows
        if found.num_rows:
            table = as_table(("file", "record", column), (row.values() for row in found.to_pylist()), 400)
            shown[f"{title}, each"] = dg.MetadataValue.md(table)
    return shown


def _of_documents(contents: StageContents) -> dict[str, Any]:
    key = "/".join(asset_key(contents.root, "text_units").path)
    page = f"/assets/{key}?view=partitions&partition={contents.partition}"
    link = f"[text units of bucket {contents.partition}]({page})"
    return {"text units of these documents": dg.MetadataValue.md(link)}


def _of_text_units(contents: StageContents) -> dict[str, Any]:
    tokens = of_tokens("text units", contents.read("text_units", ("n_tokens",))["n_tokens"])
    return {"text units by document": show_preview(units_by_document(contents), contents.partition), **tokens}


def _of_graph(contents: StageContents) -> dict[str, Any]:
    degrees = contents.read("entities", ("degree",))["degree"].to_pylist()
    bars = _classes(degrees)
    return {"plot of entities by relationships": plot_bars("entities by number of relationships", bars)} if bars else {}


def _of_descriptions(contents: StageContents) -> dict[str, Any]:
    """Return how many descriptions are empty: local search matches entities by descriptions."""
    descriptions = contents.read("descriptions", ("description",))["description"]
    return {"empty descriptions": pc.sum(pc.equal(descriptions, "")).as_py() or 0}


def _of_communities(contents: StageContents) -> dict[str, Any]:
    rows = contents.read("communities", ("level", "size"))
    levels = sorted(set(rows["level"].to_pylist()))
    shown: dict[str, Any] = {"levels of communities": len(levels)}
    for level in levels:
        sizes = rows.filter(pc.equal(rows["level"], level))["size"].to_pylist()
        shown[f"plot of community sizes at level {level}"] = plot_bars(
            f"communities by number of entities, level {level}", _classes(sizes)
        )
    return shown


def _of_reports(contents: StageContents) -> dict[str, Any]:
    """Return the highest reports in full, and how many are deferred with the largest share of new evidence."""
    shares = contents.read("community_reports", ("new_share",))["new_share"]
    text = render_highest_reports(contents)
    shown: dict[str, Any] = {"reports of the highest rank, in full": as_markdown(text)} if text else {}
    if n_deferred := pc.sum(pc.greater(shares, 0)).as_py() or 0:
        shown["deferred reports"] = n_deferred
        shown["largest share of new evidence of a report"] = round(pc.max(shares).as_py(), 4)
    return shown


def _of_vectors(table: str) -> Callable[[StageContents], dict[str, Any]]:
    """Return a function that gives the length of the vectors of a table."""

    def describe(contents: StageContents) -> dict[str, Any]:
        first = contents.read(table, ("vector",)).slice(0, 1)["vector"].to_pylist()
        return {"dimensions of a vector": len(first[0])} if first else {}

    return describe


def _of_candidate(contents: StageContents) -> dict[str, Any]:
    return of_tokens("text units", contents.read("text_units", ("n_tokens",))["n_tokens"])


_EXTRAS: Mapping[str, Callable[[StageContents], dict[str, Any]]] = {
    "corpus_manifest": _of_manifest,
    "documents": _of_documents,
    "text_units": _of_text_units,
    "graph": _of_graph,
    "summarized_descriptions": _of_descriptions,
    "communities": _of_communities,
    "community_reports": _of_reports,
    **{name: _of_vectors(name) for name in (
        "sentence_embeddings", "text_unit_embeddings", "entity_embeddings", "relationship_embeddings",
        "report_embeddings")},
    CANDIDATE.name: _of_candidate,
}  # fmt: skip
"""What only one stage shows, by stage."""


def _classes(numbers: list[int]) -> list[tuple[str, int]]:
    """Return how many numbers are in each class: 0, 1, 2-3, 4-7 and so on."""
    counts = Counter(0 if number == 0 else 1 << (number.bit_length() - 1) for number in numbers)
    return [(f"{low}" if low < 2 else f"{low}-{2 * low - 1}", counts[low]) for low in sorted(counts)]
