"""Command `evaluate`: recall on golden questions, generated questions, and pairwise comparison of answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.commands.terminal import (
    INSPECT_GROUP,
    JsonOption,
    RootOption,
    logging_costs,
    open_root,
    print_json,
)
from graphrag_pipeline.errors import PipelineError

if TYPE_CHECKING:
    from graphrag_pipeline.evaluation.conditions import Condition
    from graphrag_pipeline.evaluation.questions import Question
    from graphrag_pipeline.evaluation.retrieval_figures import RetrievalFigures
    from graphrag_pipeline.pipeline.root import Root
    from graphrag_pipeline.query.index.graph_index import GraphIndex

_MAX_UNKNOWN = 5


def add_evaluation_commands(app: typer.Typer) -> None:
    """Mount the commands of this module."""
    app.command(rich_help_panel=INSPECT_GROUP)(evaluate)


def evaluate(
    questions: Annotated[
        Path | None,
        typer.Argument(help="JSON lines or CSV file (question, evidence); default: publishing.golden_questions."),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(help="Methods to measure, comma-separated: bm25, vector, basic, local, local:graph, lazy, ...; "
                     "default: baselines and local search with every strategy."),
    ] = None,
    k: Annotated[int, typer.Option("--k", help="Number of text units in which evidence is looked for.")] = 5,
    snapshot: Annotated[
        str | None, typer.Option(help="Snapshot id or its first digits; default: the published snapshot.")
    ] = None,
    against: Annotated[str | None, typer.Option(help="Snapshot id to compare the figures with.")] = None,
    generate: Annotated[
        int | None, typer.Option(min=1, help="Number of questions about the corpus that a model writes into the file.")
    ] = None,
    kind: Annotated[str, typer.Option(help="Kind of generated questions: global, local or both.")] = "both",
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="A B", help="Let a model compare answers of two of local:graph, global:static:level=1, "
                     "global:dynamic, drift, lazy, basic, C0 to C3, TS, SS."),
    ] = None,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Measure answers of the index: recall on golden questions, or a comparison judged by a model."""
    from graphrag_pipeline.query.index.graph_index import GraphIndex
    from graphrag_pipeline.storage.history import find_snapshot

    project = open_root(root)
    project.follow()
    ids = [find_snapshot(project.snapshots, start) if start else None for start in (snapshot, against)]
    path = _find_questions(project, questions, bool(generate))
    about = "questions" if generate else "comparison" if compare else "recall"
    with logging_costs(project, "evaluate", about) as counted, GraphIndex.of_root(counted, ids[0]) as index:
        if generate:
            _generate(index, path, generate, kind)
        elif compare:
            _compare(counted, index, path, compare, as_json)
        else:
            _measure(counted, index, path, methods, k, ids[1], as_json)


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


# ------------------------------------------------------------------------------------------------------------ retrieval


def _measure(
    root: Root, index: GraphIndex, path: Path, methods: str | None, k: int, against: str | None, as_json: bool
) -> None:
    from graphrag_pipeline.evaluation.questions import read_gold
    from graphrag_pipeline.evaluation.retrieval_figures import DEFAULT_METHODS, parse_methods, render_figures

    questions = read_gold(path)
    names = [name for name in methods.split(",") if name.strip()] if methods else DEFAULT_METHODS
    conditions = parse_methods(names)
    figures, unknown = _measure_and_save(root, index, questions, conditions, k)
    others = _figures_of_other(root, against, questions, conditions, k) if against else []
    if as_json:
        print_json(_to_record(index.snapshot.id, figures, unknown, against, others))
        return
    for line in render_figures(figures, others):
        typer.echo(line)
    subject = f"{len(questions):,} questions of {path.name}, snapshot {index.snapshot.id}"
    typer.echo(f"{subject}, compared with {against}" if against else subject)
    for line in unknown[:_MAX_UNKNOWN]:
        typer.echo(f"not in the index, counted as not found: {line}", err=True)
    if len(unknown) > _MAX_UNKNOWN:
        typer.echo(f"and {len(unknown) - _MAX_UNKNOWN:,} more", err=True)


def _measure_and_save(
    root: Root, index: GraphIndex, questions: Sequence[Question], conditions: Sequence[Condition], k: int
) -> tuple[list[RetrievalFigures], tuple[str, ...]]:
    from graphrag_pipeline.evaluation.figures_store import name_retrieval, save_retrieval
    from graphrag_pipeline.evaluation.retrieval_figures import measure_retrieval

    figures, evidence = measure_retrieval(index, questions, conditions, k)
    save_retrieval(root.path, index.snapshot.id, name_retrieval(questions, k, root.settings), figures)
    return figures, evidence.unknown


def _figures_of_other(
    root: Root, snapshot: str, questions: Sequence[Question], conditions: Sequence[Condition], k: int
) -> list[RetrievalFigures]:
    """Return stored figures of another snapshot if questions and settings are the same; else measure it."""
    from graphrag_pipeline.evaluation.figures_store import load_retrieval, name_retrieval
    from graphrag_pipeline.query.index.graph_index import GraphIndex

    kept = load_retrieval(root.path, snapshot, name_retrieval(questions, k, root.settings))
    if all(condition.name in kept for condition in conditions):
        return [kept[condition.name] for condition in conditions]
    with GraphIndex.of_root(root, snapshot) as index:
        return _measure_and_save(root, index, questions, conditions, k)[0]


def _to_record(
    snapshot: str,
    figures: Sequence[RetrievalFigures],
    unknown: Sequence[str],
    against: str | None,
    others: Sequence[RetrievalFigures],
) -> dict[str, Any]:
    record: dict[str, Any] = {
        "snapshot": snapshot,
        "figures": [asdict(row) for row in figures],
        "unknown_evidence": list(unknown),
    }
    return record | ({"against": against, "figures_against": [asdict(row) for row in others]} if against else {})


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
    typer.echo(f"wrote {len(found):,} questions to {path}{fewer}")


def _compare(root: Root, index: GraphIndex, path: Path, names: tuple[str, str], as_json: bool) -> None:
    from graphrag_pipeline.evaluation.comparison import compare_conditions, render_comparison
    from graphrag_pipeline.evaluation.conditions import parse_condition
    from graphrag_pipeline.evaluation.figures_store import name_comparison, save_comparison
    from graphrag_pipeline.evaluation.questions import read_questions

    first, second = (parse_condition(name) for name in names)
    questions = read_questions(path)
    found = compare_conditions(index, questions, first, second, lambda line: typer.echo(line, err=True))
    save_comparison(root.path, index.snapshot.id, name_comparison(questions, found), found)
    if as_json:
        print_json({"snapshot": index.snapshot.id, **found.to_dict()})
        return
    for line in render_comparison(found):
        typer.echo(line)
