"""Command `try`: runs a changed prompt, model or setting on a sample and shows old and new results side by side.

Keep out: running the trial (`inspection/stage_trial.py`).
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_pipeline.commands.completion import complete_choice
from graphrag_pipeline.commands.terminal import (
    INSPECT_GROUP,
    JsonOption,
    Line,
    RootOption,
    diff_lines,
    echo_lines,
    logging_costs,
    open_root,
    print_json,
)

if TYPE_CHECKING:
    from graphrag_pipeline.inspection.stage_estimates import StageEstimate
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
    shows_all: Annotated[
        bool, typer.Option("--all", help="Also show the records and lines that did not change.")
    ] = False,
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
    echo_lines(render_trial(trial, max(shutil.get_terminal_size((_WIDTH, 0)).columns, _MIN_WIDTH), shows_all))


def render_trial(trial: Trial, width: int, shows_all: bool = False) -> Iterator[Line | str]:
    """Render a trial; lines of text have at most `width` characters.

    Args:
        shows_all: also the records and lines that did not change; else only their number.
    """
    yield Line(f"{trial.stage}: {len(trial.records):,} of {trial.n_records:,} records, by {trial.made_by}", "heading")
    yield from _render_changes(trial)
    for number, record in enumerate(trial.records, 1):
        if record.is_changed or record.failure or shows_all:
            yield ""
            yield Line(f"{number}/{len(trial.records)}  {record.name}  ({record.id})", "heading")
            yield from _render_record(record, (width - 3) // 2, shows_all)
    yield ""
    n_changed = sum(record.is_changed for record in trial.records if not record.failure)
    n_failed = sum(bool(record.failure) for record in trial.records)
    n_same = len(trial.records) - n_changed - n_failed
    same = f"; {n_same:,} that did not change are not shown (`--all` shows them)" if n_same and not shows_all else ""
    yield f"{n_changed:,} of {len(trial.records):,} changed" + (f", {n_failed:,} failed" if n_failed else "") + same
    yield from _render_costs(trial)
    yield "The index did not change; `graphrag-pipeline index` runs the stage on all records."


def _render_changes(trial: Trial) -> Iterator[Line | str]:
    """Yield what differs from the index: changes, differences of prompts, and stale stages above."""
    yield from (Line(f"  {change.to_line()}", "warning") for change in trial.changes)
    if not trial.changes and not trial.stale_above:
        yield "  its prompts, model, settings and code are those of the index"
    yield from diff_lines(trial.prompt_differences)
    yield from (Line(f"  stale above it: {line}", "warning") for line in trial.stale_above)
    if trial.stale_above:
        yield "  the sample reads the present results of these stages; `graphrag-pipeline index` runs them first"


def _render_record(record: TriedRecord, half: int, shows_all: bool) -> Iterator[Line | str]:
    if record.failure:
        yield Line(f"failed: {record.failure}", "error")
        return
    if not record.is_changed:
        yield "unchanged:"
        yield from _wrap(record.old, 2 * half)
        return
    yield Line(_beside("OLD", "NEW", half), "faint")
    yield from _render_both(record.old.splitlines(), record.new.splitlines(), half, shows_all)
    yield from (Line(f"+ {name}", "added") for name in record.added)
    yield from (Line(f"- {name}", "removed") for name in record.removed)


def _render_both(old: Sequence[str], new: Sequence[str], half: int, shows_all: bool) -> Iterator[Line | str]:
    """Yield both texts side by side; of lines that are the same only their number."""
    for kind, old_from, old_to, new_from, new_to in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal" and not shows_all:
            n_same = old_to - old_from
            yield Line(f"({n_same:,} {'line' if n_same == 1 else 'lines'} the same in both)", "faint")
            continue
        left, right = (
            [part for line in lines for part in _wrap(line, half)]
            for lines in (old[old_from:old_to], new[new_from:new_to])
        )
        yield from (_beside(a, b, half) for a, b in zip_longest(left, right, fillvalue=""))


def _beside(left: str, right: str, half: int) -> str:
    return f"{left:{half}} | {right}".rstrip()


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
    cost = "not known" if figures.cost is None else f"{figures.cost:.4f}"
    return (
        f"{label:38}{figures.n_calls:>9,}{figures.n_cached:>9,}{figures.prompt_tokens:>15,}"
        f"{figures.completion_tokens:>14,}{cost:>10}"
    )
