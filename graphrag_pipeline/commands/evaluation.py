"""The command `evaluate`: recall on gold questions, generated questions, answers compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.commands.terminal import JsonOption, RootOption, logging_costs, open_root, print_json
from graphrag_pipeline.errors import PipelineError

if TYPE_CHECKING:
    from graphrag_pipeline.evaluation.conditions import Condition
    from graphrag_pipeline.evaluation.questions import Question
    from graphrag_pipeline.evaluation.retrieval_figures import RetrievalFigures
    from graphrag_pipeline.pipeline.root import Root
    from graphrag_pipeline.query.graph_index import GraphIndex

_MAX_UNKNOWN = 5


def add_evaluation_commands(app: typer.Typer) -> None:
    """Mount the commands of this module."""
    app.command()(evaluate)


def evaluate(
    questions: Annotated[
        Path | None,
        typer.Argument(help="JSONL or CSV: question, evidence; default: publishing.golden_questions of settings.yaml."),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(help="Measured, by commas: bm25, vector, basic, local, local:graph, lazy, ...; default: baselines "
                     "and local search with every strategy."),
    ] = None,
    k: Annotated[int, typer.Option("--k", help="So many text units may hold the evidence.")] = 5,
    snapshot: Annotated[str | None, typer.Option(help="Id of a snapshot or its start; default: the published.")] = None,
    against: Annotated[str | None, typer.Option(help="Id of a snapshot to compare the figures with.")] = None,
    generate: Annotated[
        int | None, typer.Option(min=1, help="Let a model write so many questions about the corpus into the file.")
    ] = None,
    kind: Annotated[str, typer.Option(help="Of generated questions: global, local or both.")] = "both",
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="A B", help="Let a model judge the answers of two of local:graph, global:static:level=1, "
                     "global:dynamic, drift, lazy, basic, C0 to C3, TS, SS."),
    ] = None,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Measure how well the index answers: recall on gold questions, or answers judged by a model."""
    from graphrag_pipeline.query.graph_index import GraphIndex
    from graphrag_pipeline.storage.history import find_snapshot

    project = open_root(root)
    project.follow()
    ids = [find_snapshot(project.snapshots, start) if start else None for start in (snapshot, against)]
    path = _find_questions(project, questions, bool(generate))
    about = "questions" if generate else "comparison" if compare else "recall"
    with GraphIndex.open(project.path, ids[0]) as index, logging_costs(project, "evaluate", about):
        if generate:
            _generate(index, path, generate, kind)
        elif compare:
            _compare(project, index, path, compare, as_json)
        else:
            _measure(project, index, path, methods, k, ids[1], as_json)


def _find_questions(root: Root, named: Path | None, is_new: bool) -> Path:
    """The file named, from the current folder on; without one, what the settings name, from the root on."""
    from graphrag_pipeline.evaluation.regression_gate import find_golden_questions

    if named is None:
        return find_golden_questions(root)
    path, in_root = named.absolute(), root.path.absolute() / named
    if not is_new and not path.exists() and in_root.exists():
        raise PipelineError(
            f"{path}: there is no such file; did you mean {in_root}? A file named here is looked for from the current "
            "folder on, publishing.golden_questions from the root on"
        )
    return path


# ------------------------------------------------------------------------------------------------------------ retrieval


def _measure(
    root: Root, index: GraphIndex, path: Path, methods: str | None, k: int, against: str | None, as_json: bool
) -> None:
    from graphrag_pipeline.evaluation.questions import read_gold
    from graphrag_pipeline.evaluation.retrieval_figures import DEFAULT_METHODS, parse_methods, render_figures

    asked = read_gold(path)
    names = [name for name in methods.split(",") if name.strip()] if methods else DEFAULT_METHODS
    conditions = parse_methods(names)
    figures, unknown = _measure_and_save(root, index, asked, conditions, k)
    others = _figures_of_other(root, against, asked, conditions, k) if against else []
    if as_json:
        print_json(_to_record(index.snapshot.id, figures, unknown, against, others))
        return
    for line in render_figures(figures, others):
        typer.echo(line)
    told = f"{len(asked):,} questions of {path.name}, snapshot {index.snapshot.id}"
    typer.echo(f"{told}, compared with {against}" if against else told)
    for line in unknown[:_MAX_UNKNOWN]:
        typer.echo(f"not in the index, counted as not found: {line}", err=True)
    if len(unknown) > _MAX_UNKNOWN:
        typer.echo(f"and {len(unknown) - _MAX_UNKNOWN:,} more", err=True)


def _measure_and_save(
    root: Root, index: GraphIndex, asked: Sequence[Question], conditions: Sequence[Condition], k: int
) -> tuple[list[RetrievalFigures], tuple[str, ...]]:
    from graphrag_pipeline.evaluation.figures_store import name_retrieval, save_retrieval
    from graphrag_pipeline.evaluation.retrieval_figures import measure_retrieval

    figures, evidence = measure_retrieval(index, asked, conditions, k)
    save_retrieval(root.path, index.snapshot.id, name_retrieval(asked, k, root.settings), figures)
    return figures, evidence.unknown


def _figures_of_other(
    root: Root, snapshot: str, asked: Sequence[Question], conditions: Sequence[Condition], k: int
) -> list[RetrievalFigures]:
    """Those kept of it, where questions and settings are the same; else measured now."""
    from graphrag_pipeline.evaluation.figures_store import load_retrieval, name_retrieval
    from graphrag_pipeline.query.graph_index import GraphIndex

    kept = load_retrieval(root.path, snapshot, name_retrieval(asked, k, root.settings))
    if all(condition.name in kept for condition in conditions):
        return [kept[condition.name] for condition in conditions]
    with GraphIndex.open(root.path, snapshot) as index:
        return _measure_and_save(root, index, asked, conditions, k)[0]


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
        raise typer.BadParameter(f"{kind!r} is none of {', '.join(KINDS)} and both", param_hint="--kind")
    if path.exists():
        raise PipelineError(f"{path}: is there already and is not overwritten; name another file, or move it away")
    found = generate_questions(index, n, KINDS if kind == "both" else (kind,))
    write_questions(path, found)
    fewer = f", {n - len(found):,} fewer than asked for" if len(found) < n else ""
    typer.echo(f"wrote {len(found):,} questions to {path}{fewer}")


def _compare(root: Root, index: GraphIndex, path: Path, names: tuple[str, str], as_json: bool) -> None:
    from graphrag_pipeline.evaluation.comparison import compare_conditions, render_comparison
    from graphrag_pipeline.evaluation.conditions import parse_condition
    from graphrag_pipeline.evaluation.figures_store import name_comparison, save_comparison
    from graphrag_pipeline.evaluation.questions import read_questions

    first, second = (parse_condition(name) for name in names)
    asked = read_questions(path)
    found = compare_conditions(index, asked, first, second, lambda line: typer.echo(line, err=True))
    save_comparison(root.path, index.snapshot.id, name_comparison(asked, found), found)
    if as_json:
        print_json({"snapshot": index.snapshot.id, **found.to_dict()})
        return
    for line in render_comparison(found):
        typer.echo(line)
