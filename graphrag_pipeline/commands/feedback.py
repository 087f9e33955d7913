"""`feedback`: what readers of answers thought, and gold questions made from it."""

from __future__ import annotations

from typing import Annotated

import typer

from graphrag_pipeline.commands.terminal import JsonOption, RootOption, echo, open_root, print_json

feedback = typer.Typer(help="Read the thumbs and corrections of readers.", no_args_is_help=True)


@feedback.command("list")
def list_feedback(root: RootOption = None, as_json: JsonOption = False) -> None:
    """List feedback, oldest first; `--json` has the answers, too."""
    from dataclasses import asdict

    from graphrag_pipeline.evaluation.feedback import find_gold_file, find_promoted, read_feedback

    project = open_root(root)
    found, promoted = read_feedback(project.path), find_promoted(project)
    if as_json:
        print_json([{**asdict(one), "is_promoted": one.id in promoted} for one in found])
        return
    for one in found:
        correction = f" -> {one.correction!r}" if one.correction else ""
        mark = f"  promoted to {find_gold_file(project).name}" if one.id in promoted else ""
        echo(f"{one.id}  {one.time}  {one.by}  {one.rating}  {one.question!r}{correction}{mark}")
    if not found:
        echo("no feedback yet; readers give it below an answer of the explorer, or by POST /feedback")


@feedback.command()
def export(root: RootOption = None) -> None:
    """Print all feedback with its answers as JSON lines, oldest first."""
    import json
    from dataclasses import asdict

    from graphrag_pipeline.evaluation.feedback import read_feedback

    for one in read_feedback(open_root(root).path):
        echo(json.dumps(asdict(one)))


@feedback.command()
def promote(
    feedback_id: Annotated[str, typer.Argument(metavar="ID", help="Feedback or its first digits.")],
    answer: Annotated[str, typer.Option(help="Reference answer; default: the correction.")] = "",
    evidence: Annotated[
        list[str] | None,
        typer.Option(help="Path of a document that answers; repeatable; default: those cited by a good answer."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Change a gold question with the same text and another answer.")
    ] = False,
    root: RootOption = None,
) -> None:
    """Make a gold question from feedback, which a publication must not answer worse."""
    from graphrag_pipeline.evaluation.feedback import promote as promote_feedback

    project = open_root(root)
    path = promote_feedback(project, feedback_id, answer, evidence or (), replace)
    echo(f"the gold question is in {path}")
    publishing = project.settings.publishing
    is_compared = publishing.max_passage_drop is not None and project.settings.answers.engine == "embedded"
    if publishing.max_f1_drop is None and not is_compared:
        echo("Publications compare its evidence; its answer only with publishing.max_f1_drop.")
    if not publishing.golden_questions:
        echo(f"To compare publications by it, set publishing.golden_questions: {path.name} in settings.yaml.")
