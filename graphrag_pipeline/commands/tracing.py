"""Command `trace`: follows a citation of an answer to documents, prompts, models and runs.

Keep out: building the trace (`inspection/tracing.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.commands.terminal import (
    READ_GROUP,
    JsonOption,
    Line,
    PagerOption,
    RootOption,
    SnapshotOption,
    echo_lines,
    open_root,
    page_lines,
    print_json,
)
from graphrag_pipeline.commands.wrapping import text_width, wrap

if TYPE_CHECKING:
    from graphrag_pipeline.inspection.trace_origins import Origin
    from graphrag_pipeline.inspection.tracing import Trace, TraceNode

_MAX_NAME = 200
"""Maximum characters of a text in a tree."""
_DIGITS = 8
"""Digits of code versions and hashes in a tree; JSON has all digits."""


def add_tracing_commands(app: typer.Typer) -> None:
    """Mount the commands of this module."""
    app.command(rich_help_panel=READ_GROUP)(trace)


def trace(
    citation: Annotated[str, typer.Argument(help='Citation as in answers, "[Data: Entities (12)]", or Entities:12.')],
    most: Annotated[
        int, typer.Option(min=1, help="Maximum text units, mentions, findings and cited records to show.")
    ] = 3,
    snapshot: SnapshotOption = None,
    pager: PagerOption = True,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Follow a citation to text units and documents, with the prompt, model and run of each record."""
    from graphrag_pipeline.defs.runs.lookup import finding_runs
    from graphrag_pipeline.inspection.tracing import trace_citation
    from graphrag_pipeline.query.index.graph_index import GraphIndex
    from graphrag_pipeline.storage.snapshot_store import find_snapshot

    project = open_root(root)
    chosen = find_snapshot(project.snapshots, snapshot) if snapshot else None
    with finding_runs(project) as find_run, GraphIndex.open(project.path, chosen) as index:
        project.fetch_stages(index.snapshot.id)
        traced = trace_citation(project, index, citation, find_run, most)
    if as_json:
        print_json(asdict(traced))
        return
    (page_lines if pager else echo_lines)(render_trace(traced, text_width()))


def render_trace(traced: Trace, width: int = 0) -> Iterator[Line]:
    """Render a trace as an indented tree; the origin of a partition is shown in full once.

    Args:
        width: maximum of columns of the text of a report; 0 does not wrap.
    """
    published = f", published by run {traced.published_by}" if traced.published_by else ""
    yield Line(f"{traced.citation} in snapshot {traced.snapshot}{published}")
    shown: set[tuple[str, str]] = set()
    for node in traced.nodes:
        yield from _render_node(node, "", shown, width)
    if traced.missing:
        yield Line(f"not in this snapshot: {', '.join(traced.missing)}", "warning")


def _render_node(node: TraceNode, indent: str, shown: set[tuple[str, str]], width: int) -> Iterator[Line]:
    number = "" if node.number is None else f" {node.number}"
    yield Line(f"{indent}{node.kind}{number}{f': {_shorten(node.name)}' if node.name else ''}", "heading")
    inner = indent + "  "
    if facts := "; ".join(_render_facts(node.facts)):
        yield Line(f"{inner}{facts}")
    if node.origin:
        yield Line(f"{inner}made by {_render_origin(node.origin, shown)}", "faint")
    if node.text:
        yield Line(f"{inner}text", "heading")
        yield from (Line(line) for line in wrap(node.text.strip(), width, inner + "  "))
    for below in node.below:
        yield from _render_node(below, inner, shown, width)
    if node.n_left_out:
        yield Line(f"{inner}and {node.n_left_out:,} more (--most)")


def _render_facts(facts: Mapping[str, Any]) -> Iterator[str]:
    if "start" in facts:
        yield f"characters {facts['start']:,}-{facts['end']:,}"
    for name, value in facts.items():
        if name not in ("start", "end") and value not in (None, "", [], False):
            yield f"{name} {_shorten(_in_words(value))}"


def _in_words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_in_words(one)}" for key, one in value.items())
    return ", ".join(map(_in_words, value)) if isinstance(value, list | tuple) else str(value)


def _render_origin(origin: Origin, shown: set[tuple[str, str]]) -> str:
    parts = [origin.asset]
    if (origin.stage, origin.partition) in shown:
        parts[0] += " as above"
    else:
        shown.add((origin.stage, origin.partition))
        parts += _render_code(origin)
    if origin.request_key:
        parts.append(f"request {origin.request_key}" + ("" if origin.reply else " (its reply is no longer stored)"))
    elif origin.model:
        parts.append("without a model call")
    return "; ".join(parts)


def _render_code(origin: Origin) -> Iterator[str]:
    yield f"code version {origin.code_version[:_DIGITS]}"
    if origin.model is None:
        model = (origin.reply or {}).get("model")
        yield (f"model {model}, " if model else "") + "prompts of an earlier version that are no longer stored"
    elif origin.model:
        prompts = ", ".join(f"{name} {value[:_DIGITS]}" for name, value in origin.prompts.items())
        yield f"model {origin.model}; prompts {prompts}"
    elif origin.is_embedded:
        yield "embedded engine"
    yield f"run {origin.run or 'not known'}"


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_NAME else f"{line[:_MAX_NAME]} ..."
