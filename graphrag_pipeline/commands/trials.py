"""The command `try`: a changed prompt, model or setting on a sample, old and new side by side, before all is paid for.

Keep out: trying (`stage_trial.py`).
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_pipeline.commands.terminal import JsonOption, RootOption, logging_costs, open_root, print_json

if TYPE_CHECKING:
    from graphrag_pipeline.inspection.estimates import StageEstimate
    from graphrag_pipeline.inspection.stage_trial import Trial, TriedRecord

_MIN_WIDTH = 60
_WIDTH = 120
"""Columns where the output is no terminal."""


def add_trial_commands(app: typer.Typer) -> None:
    """Mount the commands of this module."""
    app.command("try")(try_stage)


def try_stage(
    stage: Annotated[
        str,
        typer.Argument(
            help="extracted_graph, summarized_descriptions or community_reports; or its section of the settings."
        ),
    ],
    sample: Annotated[int, typer.Option(min=1, help="Records to try it on, spread evenly over all.")] = 20,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a stage as it is set now on a sample, beside what the index holds; the index stays as it is."""
    from graphrag_pipeline.inspection.stage_trial import find_tried_stage
    from graphrag_pipeline.inspection.stage_trial import try_stage as run_trial

    project, tried = open_root(root), find_tried_stage(stage)
    project.pull()
    with logging_costs(project, "try", tried.name):
        trial = run_trial(project, tried, sample)
    if as_json:
        print_json(asdict(trial))
        return
    for line in render_trial(trial, max(shutil.get_terminal_size((_WIDTH, 0)).columns, _MIN_WIDTH)):
        typer.echo(line)


def render_trial(trial: Trial, width: int) -> Iterator[str]:
    """A trial in lines of at most `width` characters where text is concerned."""
    yield f"{trial.stage}: {len(trial.records):,} of {trial.n_records:,} records, by {trial.made_by}"
    changes = [f"  {change.to_line()}" for change in trial.changes]
    if not changes and not trial.stale_above:
        changes = ["  nothing that it depends on changed since the index was made"]
    yield from changes
    yield from (f"  stale above it: {line}" for line in trial.stale_above)
    if trial.stale_above:
        yield "  the sample is of what those stages made before; `graphrag-pipeline index` makes them anew first"
    for number, record in enumerate(trial.records, 1):
        yield ""
        yield f"{number}/{len(trial.records)}  {record.name}  ({record.id})"
        yield from _render_record(record, (width - 3) // 2)
    yield ""
    n_changed = sum(record.is_changed for record in trial.records if not record.failure)
    n_failed = sum(bool(record.failure) for record in trial.records)
    yield f"{n_changed:,} of {len(trial.records):,} came out different" + (f", {n_failed:,} failed" if n_failed else "")
    yield from _render_costs(trial)
    yield "The index is as it was; `graphrag-pipeline index` makes the stage anew."


def _render_record(record: TriedRecord, half: int) -> Iterator[str]:
    if record.failure:
        yield f"failed: {record.failure}"
        return
    if not record.is_changed:
        yield "the same:"
        yield from _wrap(record.old, 2 * half)
        return
    old, new = ([*_wrap(text, half)] for text in (record.old, record.new))
    for left, right in zip_longest(["OLD", *old], ["NEW", *new], fillvalue=""):
        yield f"{left:{half}} | {right}".rstrip()
    for sign, names in (("+", record.added), ("-", record.removed)):
        yield from (f"{sign} {name}" for name in names)


def _wrap(text: str, width: int) -> Iterator[str]:
    for line in text.splitlines():
        yield from textwrap.wrap(line, width) or [""]


def _render_costs(trial: Trial) -> Iterator[str]:
    rows = (
        ("this sample", trial.sample),
        ("all records, scaled from it", trial.backfill),
        ("what a backfill still asks, estimated", trial.estimate),
    )
    asked = [(label, figures) for label, figures in rows if figures]
    if not asked:
        return
    yield f"{'':38}{'calls':>9}{'cached':>9}{'prompt tokens':>15}{'reply tokens':>14}{'USD':>10}"
    yield from (_cost_line(label, figures) for label, figures in asked)
    yield "The replies are stored: a backfill with these prompts, model and settings does not pay for them again."


def _cost_line(label: str, figures: StageEstimate) -> str:
    cost = "?" if figures.cost is None else f"{figures.cost:.4f}"
    return (
        f"{label:38}{figures.n_calls:>9,}{figures.n_cached:>9,}{figures.prompt_tokens:>15,}"
        f"{figures.completion_tokens:>14,}{cost:>10}"
    )
