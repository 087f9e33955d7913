"""Commands that try a stage and measure answers: `try` and `evaluate`."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_pipeline.commands.terminal import (
    JsonOption,
    Line,
    RootOption,
    SnapshotOption,
    complete_choice,
    diff_lines,
    echo,
    echo_lines,
    open_root,
    print_json,
)
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.accounting import paid_run
from graphrag_pipeline.settings.search_names import list_conditions
from graphrag_pipeline.text.counted import counted

if TYPE_CHECKING:
    from graphrag_pipeline.evaluation.measurement import Wanted
    from graphrag_pipeline.inspection.costs import StageEstimate
    from graphrag_pipeline.inspection.stage_trial import Trial, TriedRecord
    from graphrag_pipeline.pipeline.root import Root
    from graphrag_pipeline.query.index.graph_index import GraphIndex

_MIN_WIDTH = 60
_WIDTH = 120
"""Columns of output that does not go to a terminal."""


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
    with paid_run("try", tried.name):
        trial = run_trial(project, tried, sample)
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
    # What differs from the index: changes, differences of prompts, and stale stages above.
    yield from (Line(f"  {change.to_line()}", "warning") for change in trial.changes)
    if not trial.changes and not trial.stale_above:
        yield "  its prompts, model, settings and code are those of the index"
    yield from diff_lines(trial.prompt_differences)
    yield from (Line(f"  stale above it: {line}", "warning") for line in trial.stale_above)
    if trial.stale_above:
        yield "  the sample reads the present results of these stages; `graphrag-pipeline index` runs them first"
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


_MAX_UNKNOWN = 5


def evaluate(
    questions: Annotated[
        Path | None,
        typer.Argument(help="JSON lines or CSV file (question, evidence, answer); default: "
                       "publishing.golden_questions."),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(help=f"Methods to measure, comma-separated: {list_conditions()}; with options such as local:graph "
                     "or local:top_k_entities=5. Default: retrieval by baselines and by local search with every "
                     "strategy, answers by every search."),
    ] = None,
    k: Annotated[int, typer.Option("--k", help="Number of text units in which evidence is looked for.")] = 5,
    answers: Annotated[
        bool | None,
        typer.Option("--answers/--no-answers", help="Whether to compare answers with the reference answers of the "
                     "file. Default: yes, unless a model writes the answers, which costs money."),
    ] = None,
    judge: Annotated[
        bool | None,
        typer.Option("--judge/--no-judge", help="Whether a model judges covered claims and faithfulness. Default: yes "
                     "with --answers if a model is named in chat_model or evaluation."),
    ] = None,
    snapshot: SnapshotOption = None,
    against: Annotated[
        str | None, typer.Option(help="Another snapshot or another method to compare the figures with.")
    ] = None,
    generate: Annotated[
        int | None, typer.Option(min=1, help="Number of questions about the corpus to write into the file, with "
                     "reference answers: by a model if one is named, else local ones from sentences.")
    ] = None,
    kind: Annotated[str, typer.Option(help="Kind of generated questions: global, local or both.")] = "both",
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="A B", help="Let a model compare answers of two methods, such as local:graph and "
                     "global:static:level=1."),
    ] = None,
    raters: Annotated[
        tuple[str, str] | None,
        typer.Option("--compare-raters", metavar="A B", help="Compare two raters of community reports, each `embedded` "
                     "or a chat model: agreement, kept reports, tokens."),
    ] = None,
    is_of_index: Annotated[
        bool, typer.Option("--index", help="Measure the index itself, without questions and without a model: coverage, "
                           "duplicates, citations, placeholders, agreement between engines.")
    ] = False,
    fail_on_warnings: Annotated[
        bool, typer.Option("--fail-on-warnings", help="With --index: exit with status 1 if a figure is beyond its "
                           "threshold (section `quality` of the settings).")
    ] = False,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Measure the index on gold questions, or the index itself.

    On questions: retrieval, answers against reference answers, or a comparison by a judge.
    """
    from graphrag_pipeline.evaluation.measurement import Wanted
    from graphrag_pipeline.query.index.graph_index import GraphIndex
    from graphrag_pipeline.storage.snapshot_store import find_snapshot

    project = open_root(root)
    project.follow()
    chosen = find_snapshot(project.snapshots, snapshot) if snapshot else None
    if is_of_index or fail_on_warnings:
        _refuse_questions(is_of_index, questions=questions, methods=methods, generate=generate, compare=compare,
                          compare_raters=raters, answers=answers, judge=judge)  # fmt: skip
        _measure_index(project, chosen, against, as_json, fail_on_warnings)
        return
    path = _find_questions(project, questions, bool(generate))
    about = "questions" if generate else "comparison" if compare or raters else "answers" if answers else "recall"
    with paid_run("evaluate", about), GraphIndex.of_root(project, chosen) as index:
        if generate:
            _generate(index, path, generate, kind)
        elif compare:
            _compare(project, index, path, compare, as_json)
        elif raters:
            _compare_raters(project, index, path, raters, as_json)
        else:
            wanted = Wanted(tuple((methods or "").split(",")) if methods else (), k, answers, judge)
            _measure(project, index, path, wanted, against, as_json)


def _refuse_questions(is_of_index: bool, **given: object) -> None:
    """Refuse `--fail-on-warnings` without `--index`, and `--index` with options of questions."""
    if not is_of_index:
        raise typer.BadParameter("needs --index", param_hint="--fail-on-warnings")
    named = [
        name if name == "questions" else f"--{name.replace('_', '-')}"
        for name, value in given.items()
        if value is not None
    ]
    if named:
        raise typer.BadParameter(
            f"measures the index without questions; leave out {', '.join(named)}", param_hint="--index"
        )


def _find_questions(root: Root, named: Path | None, is_new: bool) -> Path:
    """Return the named file, relative to the current directory, else that of the settings, relative to the root."""
    from graphrag_pipeline.evaluation.regression_gate import find_golden_questions

    if named is None:
        return find_golden_questions(root)
    path, in_root = named.absolute(), root.path.absolute() / named
    if not is_new and not path.exists() and in_root.exists():
        raise PipelineError(
            f"`{path}` does not exist; did you mean `{in_root}`? The argument is relative to the current directory, "
            "`publishing.golden_questions` to the root"
        )
    return path


# ------------------------------------------------------------------------------------------------------------- measured


def _measure(root: Root, index: GraphIndex, path: Path, wanted: Wanted, against: str | None, as_json: bool) -> None:
    from graphrag_pipeline.evaluation.confidence import INTERVALS
    from graphrag_pipeline.evaluation.measurement import measure
    from graphrag_pipeline.evaluation.questions import read_gold

    questions = read_gold(path)
    found = measure(root, index, questions, wanted, against, lambda line: echo(line, err=True))
    for line in (*found.list_failures(), *([found.unmeasured] if found.unmeasured else [])):
        echo(line, err=True)
    if as_json:
        print_json(found.to_dict())
        return
    for line in found.render():
        echo(line)
    subject = f"{counted(len(questions), 'questions')} of {path.name}, snapshot {index.snapshot.id}"
    echo(INTERVALS)
    echo(f"{subject}, compared with {found.against}" if against else subject)
    if found.against == index.snapshot.id:
        echo("both are the same snapshot, so they do not differ; name another one or a method", err=True)
    for line in found.unknown_evidence[:_MAX_UNKNOWN]:
        echo(f"not in the index, counted as not found: {line}", err=True)
    if (n_more := len(found.unknown_evidence) - _MAX_UNKNOWN) > 0:
        echo(f"and {n_more:,} more", err=True)


# ------------------------------------------------------------------------------------------------------------- of index


def _measure_index(root: Root, chosen: str | None, against: str | None, as_json: bool, fail_on_warnings: bool) -> None:
    from graphrag_pipeline.evaluation.index_quality.measurement import measure_quality, render_quality
    from graphrag_pipeline.storage.snapshot_store import find_snapshot

    settings = root.settings.quality
    other = find_snapshot(root.snapshots, against) if against else None
    measured = measure_quality(root, root.snapshots.open(chosen))
    before = measure_quality(root, root.snapshots.open(other)) if other else None
    if as_json:
        compared = {"against": before.to_dict(settings)} if before else {}
        print_json({**measured.to_dict(settings), **compared})
    else:
        for line in render_quality(measured, settings, before):
            echo(line)
    if fail_on_warnings and measured.warnings(settings):
        raise typer.Exit(1)


# ------------------------------------------------------------------------------------------------------------- by model


def _generate(index: GraphIndex, path: Path, n: int, kind: str) -> None:
    from graphrag_pipeline.evaluation.generated_questions import KINDS, generate_questions
    from graphrag_pipeline.evaluation.questions import write_questions

    if kind not in (*KINDS, "both"):
        raise typer.BadParameter(f"{kind!r} is not one of {', '.join(KINDS)}, both", param_hint="--kind")
    if path.exists():
        raise PipelineError(f"`{path}` exists and is not overwritten; name another file, or move it away")
    found = generate_questions(index, n, KINDS if kind == "both" else (kind,))
    write_questions(path, found)
    fewer = f", {n - len(found):,} fewer than requested" if len(found) < n else ""
    echo(f"wrote {counted(len(found), 'questions')} to {path}{fewer}")


def _compare(root: Root, index: GraphIndex, path: Path, names: tuple[str, str], as_json: bool) -> None:
    from graphrag_pipeline.evaluation.comparison import compare_conditions, render_comparison
    from graphrag_pipeline.evaluation.conditions import parse_condition
    from graphrag_pipeline.evaluation.figures_store import name_comparison, save_comparison
    from graphrag_pipeline.evaluation.questions import read_questions

    first, second = (parse_condition(name) for name in names)
    questions = read_questions(path)
    found = compare_conditions(index, questions, first, second, lambda line: echo(line, err=True))
    save_comparison(root.path, index.snapshot.id, name_comparison(questions, found), found)
    if as_json:
        print_json({"snapshot": index.snapshot.id, **found.to_dict()})
        return
    for line in render_comparison(found):
        echo(line)


def _compare_raters(root: Root, index: GraphIndex, path: Path, names: tuple[str, str], as_json: bool) -> None:
    from graphrag_pipeline.evaluation.comparison import compare_raters, render_raters
    from graphrag_pipeline.evaluation.questions import read_questions

    found = compare_raters(root, index, read_questions(path), names)
    if as_json:
        print_json({"snapshot": index.snapshot.id, **found.to_dict()})
        return
    for line in render_raters(found):
        echo(line)
