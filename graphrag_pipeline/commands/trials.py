"""Command `try`: runs a changed prompt, model or setting on a sample and shows old and new results side by side.

Keep out: running the trial (`inspection/stage_trial.py`).
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_pipeline.commands.completion import complete_choice
from graphrag_pipeline.commands.terminal import (
    INSPECT_GROUP,
    JsonOption,
    RootOption,
    echo,
    logging_costs,
    open_root,
    print_json,
)

if TYPE_CHECKING:
    from graphrag_pipeline.inspection.estimates import StageEstimate
    from graphrag_pipeline.inspection.stage_trial import Trial, TriedRecord

_MIN_WIDTH = 60
_WIDTH = 120
"""Columns of output that does not go to a terminal."""


def add_trial_commands(app: typer.Typer) -> None:
    """Mount the commands of this module."""
    app.command("try", rich_help_panel=INSPECT_GROUP)(try_stage)


def try_stage(
    stage: Annotated[
        str,
        typer.Argument(
            help="Stage (extracted_graph, summarized_descriptions or community_reports) or its settings section.",
            autocompletion=complete_choice("extracted_graph", "summarized_descriptions", "community_reports"),
        ),
    ],
    sample: Annotated[int, typer.Option(min=1, help="Number of records in the sample, spread evenly over all.")] = 20,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a stage with the present settings on a sample and compare with the index, which does not change."""
    from graphrag_pipeline.inspection.stage_trial import find_tried_stage
    from graphrag_pipeline.inspection.stage_trial import try_stage as run_trial

    project, tried = open_root(root), find_tried_stage(stage)
    project.pull()
    with logging_costs(project, "try", tried.name) as counted:
        trial = run_trial(counted, tried, sample)
    if as_json:
        print_json(asdict(trial))
        return
    for line in render_trial(trial, max(shutil.get_terminal_size((_WIDTH, 0)).columns, _MIN_WIDTH)):
        echo(line)


def render_trial(trial: Trial, width: int) -> Iterator[str]:
    """Render a trial; lines of text have at most `width` characters."""
    yield f"{trial.stage}: {len(trial.records):,} of {trial.n_records:,} records, by {trial.made_by}"
    changes = [f"  {change.to_line()}" for change in trial.changes]
    if not changes and not trial.stale_above:
        changes = ["  its prompts, model, settings and code are those of the index"]
    yield from changes
    yield from (f"  stale above it: {line}" for line in trial.stale_above)
    if trial.stale_above:
        yield "  the sample reads the present results of these stages; `graphrag-pipeline index` runs them first"
    for number, record in enumerate(trial.records, 1):
        yield ""
        yield f"{number}/{len(trial.records)}  {record.name}  ({record.id})"
        yield from _render_record(record, (width - 3) // 2)
    yield ""
    n_changed = sum(record.is_changed for record in trial.records if not record.failure)
    n_failed = sum(bool(record.failure) for record in trial.records)
    yield f"{n_changed:,} of {len(trial.records):,} changed" + (f", {n_failed:,} failed" if n_failed else "")
    yield from _render_costs(trial)
    yield "The index did not change; `graphrag-pipeline index` runs the stage on all records."


def _render_record(record: TriedRecord, half: int) -> Iterator[str]:
    if record.failure:
        yield f"failed: {record.failure}"
        return
    if not record.is_changed:
        yield "unchanged:"
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
        ("all records, scaled from the sample", trial.backfill),
        ("remaining for a backfill, estimated", trial.estimate),
    )
    known = [(label, figures) for label, figures in rows if figures]
    if not known:
        return
    yield f"{'':38}{'calls':>9}{'cached':>9}{'prompt tokens':>15}{'reply tokens':>14}{'USD':>10}"
    yield from (_cost_line(label, figures) for label, figures in known)
    yield "The replies are stored: a backfill with these prompts, model and settings does not pay for them again."


def _cost_line(label: str, figures: StageEstimate) -> str:
    cost = "?" if figures.cost is None else f"{figures.cost:.4f}"
    return (
        f"{label:38}{figures.n_calls:>9,}{figures.n_cached:>9,}{figures.prompt_tokens:>15,}"
        f"{figures.completion_tokens:>14,}{cost:>10}"
    )
