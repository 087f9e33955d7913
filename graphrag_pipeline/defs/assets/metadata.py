"""Metadata of assets and materializations in the UI: schemas, rows, tokens, previews, plots.

Pure: tables in, Dagster metadata out. Numbers are plain numbers, so that Dagster plots them over time.
"""

import base64
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.defs.assets.columns import column_lineage, column_schema
from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.pipeline.stages import Stage
from graphrag_pipeline.text.safe_output import neutralize_markdown

_PREVIEW_ROWS = 5
_PREVIEW_CHARACTERS = 80


def of_stage(stage: Stage) -> dict[str, Any]:
    """Return the columns of the tables a stage owns."""
    schema = column_schema(stage)
    return {"dagster/column_schema": schema} if schema.columns else {}


def of_origins(stage: Stage, key_prefix: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the columns of other assets that a stage's columns are made from."""
    lineage = column_lineage(stage.name, key_prefix)
    return {"dagster/column_lineage": lineage} if lineage.deps_by_column else {}


def of_tables(tables: Mapping[str, pa.Table]) -> dict[str, Any]:
    """Return rows and a preview of the tables a stage wrote."""
    shown: dict[str, Any] = of_rows({name: rows.num_rows for name, rows in tables.items()})
    return shown | {f"preview of {name}": dg.MetadataValue.md(_preview(rows)) for name, rows in tables.items()}


def of_rows(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the rows of each table; under Dagster's own key if it is the only table beside its failures."""
    is_alone = sum(not name.endswith("_failures") for name in counts) == 1
    names = ("dagster/row_count" if is_alone and not at else f"rows of {name}" for at, name in enumerate(counts))
    return dict(zip(names, counts.values(), strict=True))


def _preview(rows: pa.Table) -> str:
    if not rows.num_rows:
        return "no rows"
    names = [name for name in rows.schema.names if name != "vector"]
    return as_table(names, (row.values() for row in rows.slice(0, _PREVIEW_ROWS).select(names).to_pylist()))


def as_table(names: Sequence[str], rows: Iterable[Iterable[Any]], max_characters: int = _PREVIEW_CHARACTERS) -> str:
    """Return a markdown table; cells are one line of at most `max_characters`."""
    lines = [" | ".join(names), " | ".join("---" for _ in names)]
    lines += [" | ".join(_cell(value, max_characters) for value in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def _cell(value: Any, max_characters: int) -> str:
    text = " ".join(str(value).split())
    shown = text if len(text) <= max_characters else text[: max_characters - 1] + "\u2026"
    return neutralize_markdown(shown).replace("|", "\\|")


def as_markdown(text: str) -> dg.MarkdownMetadataValue:
    """Return text of documents or models as markdown in which no image is fetched and no link leads anywhere."""
    return dg.MetadataValue.md(neutralize_markdown(text))


def of_problems(manifest: pa.Table) -> dict[str, Any]:
    """Return the documents that could not be read, with their number, and those that were read with a warning."""
    problems = manifest.filter(pc.is_valid(manifest["problem"])).select(["path", "record", "problem"])
    notes = manifest.filter(pc.is_valid(manifest["note"])).select(["path", "record", "note"])
    tables = {"documents not read": problems, "notes on documents read": notes}
    shown = {name: dg.MetadataValue.md(_preview(rows)) for name, rows in tables.items() if rows.num_rows}
    return {"problems": problems.num_rows} | shown


def of_descriptions(descriptions: pa.Table) -> dict[str, Any]:
    """Return how many descriptions are empty: local search matches entities by descriptions."""
    return {"empty descriptions": pc.sum(pc.equal(descriptions["description"], "")).as_py() or 0}


def of_degrees(entities: pa.Table) -> dict[str, Any]:
    """Return a plot of entities by number of relationships, in powers of two."""
    counts = Counter(0 if degree == 0 else 1 << (degree.bit_length() - 1) for degree in entities["degree"].to_pylist())
    bars = [(f"{low}" if low < 2 else f"{low}-{2 * low - 1}", counts[low]) for low in sorted(counts)]
    return {"degrees": _plot("entities by degree", bars)} if bars else {}


def of_community_sizes(communities: pa.Table) -> dict[str, Any]:
    """Return plots of community sizes per level, in powers of two."""
    shown: dict[str, Any] = {}
    levels = sorted(set(communities["level"].to_pylist()))
    for level in levels:
        sizes = communities.filter(pc.equal(communities["level"], level))["size"].to_pylist()
        counts = Counter(1 << (size.bit_length() - 1) for size in sizes)
        bars = [(f"{low}" if low < 2 else f"{low}-{2 * low - 1}", counts[low]) for low in sorted(counts)]
        shown[f"sizes at level {level}"] = _plot(f"communities by size, level {level}", bars)
    return shown | {"levels": len(levels)}


def of_kept_communities(communities: pa.Table, published: pa.Table | None) -> dict[str, Any]:
    """Return how many communities equal published ones; nothing after a cold run."""
    if published is None:
        return {}
    is_kept = pc.is_in(communities["id"], value_set=published["id"].combine_chunks())
    return {"communities kept": pc.sum(is_kept, min_count=0).as_py(), "communities published": published.num_rows}


def of_lag(reports: pa.Table) -> dict[str, Any]:
    """Return how many reports are deferred and the largest share of new evidence; nothing if none is deferred."""
    shares = reports["new_share"].to_numpy()
    n_deferred = int((shares > 0).sum())
    return {"deferred reports": n_deferred, "largest new share": round(float(shares.max()), 4)} if n_deferred else {}


def of_contract(tables: Mapping[str, pa.Table]) -> dict[str, Any]:
    """Return rows, tokens and previews of a candidate's tables."""
    return {**of_tables(tables), **of_tokens(tables["text_units"]["n_tokens"])}


def of_tokens(counts: Iterable[int] | pa.ChunkedArray) -> dict[str, Any]:
    """Return how many tokens of text a stage worked on."""
    return {"tokens": (pc.sum(counts).as_py() or 0) if isinstance(counts, pa.ChunkedArray) else sum(counts)}


def of_calls(account: CallStats) -> dict[str, Any]:
    """Return counts, tokens and cost of model calls, which plot over time; nothing if no call was needed.

    The cost is left out if the price of some calls is unknown: a sum over the others would look complete.
    """
    if not (account.n_calls or account.n_cached or account.n_retries):
        return {}
    shown = account.as_metadata()
    if account.n_unpriced:
        del shown["cost_usd"]
    return shown


def of_counts(title: str, counts: Mapping[str, int]) -> dict[str, Any]:
    """Return counts by name under a title; nothing without counts."""
    return {title: dict(counts)} if counts else {}


def _plot(title: str, bars: list[tuple[str, int]]) -> dg.MarkdownMetadataValue:
    """Return a bar chart as an SVG picture inside markdown."""
    height, width = 22, 520
    most = max(count for _, count in bars)
    rows = []
    for row, (label, count) in enumerate(bars):
        y, length = 30 + row * height, max(1, round(360 * count / most))
        rows.append(f'<text x="70" y="{y + 14}" text-anchor="end">{label}</text>')
        rows.append(f'<rect x="78" y="{y + 2}" width="{length}" height="{height - 6}" fill="#4f43dd"/>')
        rows.append(f'<text x="{84 + length}" y="{y + 14}">{count}</text>')
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{40 + len(bars) * height}" '
        f'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="#fff"/>'
        f'<text x="10" y="18" font-weight="bold">{title}</text>{"".join(rows)}</svg>'
    )
    return dg.MetadataValue.md(f"![{title}](data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()})")
