"""Metadata of assets and materializations in the UI: schemas, rows, tokens, model calls, tables of markdown.

Pure: tables in, Dagster metadata out. Numbers are plain numbers, so that Dagster plots them over time.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.defs.assets.pages.columns import column_lineage, column_schema
from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.pipeline.stages import Stage
from graphrag_pipeline.text.safe_output import neutralize_markdown

COST = "model cost (USD)"
"""Name of what models cost, everywhere in the UI."""

_CELL_CHARACTERS = 160
_LISTED = 6  # items of a list in a cell
_CALLS = {
    "calls": "model calls",
    "cached_calls": "model replies from the store",
    "retries": "model calls tried again",
    "timeouts": "model calls timed out",
    "unpriced_calls": "model calls without a price",
    "prompt_tokens": "tokens sent to models",
    "completion_tokens": "tokens received from models",
    "cost_usd": COST,
    "latency_p50_s": "median seconds of a model call",
    "latency_p95_s": "95th percentile of the seconds of a model call",
}
"""Names of `CallStats.as_metadata` in the UI."""


def of_stage(stage: Stage) -> dict[str, Any]:
    """Return the columns of the tables a stage owns."""
    schema = column_schema(stage)
    return {"dagster/column_schema": schema} if schema.columns else {}


def of_origins(stage: Stage, key_prefix: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the columns of other assets that a stage's columns are made from."""
    lineage = column_lineage(stage.name, key_prefix)
    return {"dagster/column_lineage": lineage} if lineage.deps_by_column else {}


def of_rows(counts: Mapping[str, int], is_bucket: bool = False) -> dict[str, int]:
    """Return the rows of each table; under Dagster's own key if it is the only table beside its failures.

    Args:
        is_bucket: whether these are the rows of one partition.
    """
    is_alone = sum(not name.endswith("_failures") for name in counts) == 1
    own = "dagster/partition_row_count" if is_bucket else "dagster/row_count"
    names = (own if is_alone and not at else f"rows of {name}" for at, name in enumerate(counts))
    return dict(zip(names, counts.values(), strict=True))


def as_table(names: Sequence[str], rows: Iterable[Iterable[Any]], max_characters: int = _CELL_CHARACTERS) -> str:
    """Return a markdown table; cells are one line of at most `max_characters`."""
    lines = [" | ".join(names), " | ".join("---" for _ in names)]
    lines += [" | ".join(_cell(value, max_characters) for value in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def _cell(value: Any, max_characters: int) -> str:
    text = " ".join(_as_words(value).split())
    shown = text if len(text) <= max_characters else text[: max_characters - 1] + "\u2026"
    return neutralize_markdown(shown).replace("|", "\\|")


def _as_words(value: Any) -> str:
    """Return a value as a person writes it: no `None`, no brackets of a list, at most four digits of a fraction."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    if isinstance(value, list | tuple):
        more = f" and {len(value) - _LISTED:,} more" if len(value) > _LISTED else ""
        return ", ".join(map(_as_words, value[:_LISTED])) + more
    return str(value)


def round_figures(value: Any) -> Any:
    """Return a value of JSON with its fractions rounded to four significant digits."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, Mapping):
        return {name: round_figures(each) for name, each in value.items()}
    return [round_figures(each) for each in value] if isinstance(value, list | tuple) else value


def as_markdown(text: str) -> dg.MarkdownMetadataValue:
    """Return text of documents or models as markdown in which no image is fetched and no link leads anywhere."""
    return dg.MetadataValue.md(neutralize_markdown(text))


def of_kept_communities(communities: pa.Table, published: pa.Table | None) -> dict[str, Any]:
    """Return how many communities equal published ones; nothing after a cold run."""
    if published is None:
        return {}
    is_kept = pc.is_in(communities["id"], value_set=published["id"].combine_chunks())
    return {"communities kept": pc.sum(is_kept, min_count=0).as_py(), "communities published": published.num_rows}


def of_tokens(subject: str, counts: Iterable[int] | pa.ChunkedArray) -> dict[str, Any]:
    """Return how many tokens of what a stage worked on."""
    n_tokens = (pc.sum(counts).as_py() or 0) if isinstance(counts, pa.ChunkedArray) else sum(counts)
    return {f"tokens of {subject}": n_tokens}


def of_calls(account: CallStats) -> dict[str, Any]:
    """Return counts, tokens and cost of model calls, which plot over time; nothing if no call was needed.

    The cost is left out if the price of some calls is unknown: a sum over the others would look complete.
    """
    if not (account.n_calls or account.n_cached or account.n_retries):
        return {}
    shown = account.as_metadata()
    if account.n_unpriced:
        del shown["cost_usd"]
    return {_CALLS[name]: value for name, value in shown.items()}


def of_counts(title: str, counts: Mapping[str, int]) -> dict[str, Any]:
    """Return counts by name under a title; nothing without counts."""
    return {title: dg.MetadataValue.md(as_table(("what", "number"), counts.items()))} if counts else {}


def of_lines(title: str, lines: Sequence[str]) -> dict[str, Any]:
    """Return lines of text as a list under a title; nothing without lines."""
    return {title: as_markdown("\n".join(f"- {line}" for line in lines))} if lines else {}


def plot_bars(title: str, bars: list[tuple[str, int]] | list[tuple[str, float]]) -> dg.MarkdownMetadataValue:
    """Return a bar chart as an SVG picture inside markdown, on a white ground for the light and the dark theme."""
    height, width = 22, 520
    most = max(count for _, count in bars)
    rows = []
    for row, (label, count) in enumerate(bars):
        y, length = 30 + row * height, max(1, round(360 * count / (most or 1)))
        rows.append(f'<text x="70" y="{y + 14}" text-anchor="end">{label}</text>')
        rows.append(f'<rect x="78" y="{y + 2}" width="{length}" height="{height - 6}" fill="#4f43dd"/>')
        rows.append(f'<text x="{84 + length}" y="{y + 14}">{count:,}</text>')
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{40 + len(bars) * height}" '
        f'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="#fff"/>'
        f'<text x="10" y="18" font-weight="bold">{title}</text>{"".join(rows)}</svg>'
    )
    encoded = base64.b64encode(svg.encode()).decode()
    return dg.MetadataValue.md(f"![{title}](data:image/svg+xml;base64,{encoded})")
