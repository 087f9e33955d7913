"""The command `batch`: a file of questions, answered into a file of answers.

Keep out: answering (`query/batch/run.py`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_pipeline.commands.questions import METHOD_HELP
from graphrag_pipeline.commands.terminal import RootOption, logging_costs, open_root

if TYPE_CHECKING:
    from graphrag_pipeline.query.batch.question_files import BatchQuestion
    from graphrag_pipeline.query.batch.run import BatchAccount
    from graphrag_pipeline.query.graph_index import GraphIndex


def add_batch_commands(app: typer.Typer) -> None:
    """Mount the commands of this module."""
    app.command()(batch)


def batch(
    file: Annotated[Path, typer.Argument(help="Questions: text with one a line, CSV or JSON lines.")],
    out: Annotated[
        Path | None, typer.Option(help="Answers as JSON lines; what it holds is not asked again. Else printed.")
    ] = None,
    method: Annotated[str, typer.Option(help=f"For questions that name none: {METHOD_HELP}")] = "auto",
    filters: Annotated[
        list[str] | None, typer.Option("--filter", help='Read only documents that pass, such as "year>=2024"; repeat.')
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=64, help="Questions at a time.")] = 4,
    root: RootOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the account as JSON.")] = False,
) -> None:
    """Answer a file of questions from one snapshot; exit status 1 if one has no answer."""
    from graphrag_pipeline.query.batch.question_files import BatchQuestion, read_question_file
    from graphrag_pipeline.query.batch.run import answer_into_file
    from graphrag_pipeline.query.graph_index import GraphIndex
    from graphrag_pipeline.query.methods import look_up_method

    look_up_method(method)
    default = BatchQuestion("", method, filters=tuple(filters or ()))
    questions = read_question_file(file, default)
    project = open_root(root)
    with GraphIndex.open(project.path) as index, logging_costs(project, "batch", "answers"):
        index.where(default.filters)  # what no question could pass is one error
        try:
            account = (
                answer_into_file(index, questions, out, concurrency)
                if out
                else _print_answers(index, questions, concurrency)
            )
        except KeyboardInterrupt:
            typer.echo("interrupted: answers that were there are kept; run it again to go on", err=True)
            raise typer.Exit(130) from None
    is_err = out is None  # answers alone are on standard output
    typer.echo(json.dumps(account.to_dict()) if as_json else account.to_text(), err=is_err)
    if account.failed:
        raise typer.Exit(1)


def _print_answers(index: GraphIndex, questions: list[BatchQuestion], concurrency: int) -> BatchAccount:
    from graphrag_pipeline.query.batch.run import BatchAccount, answer_all

    account = BatchAccount()
    for answered in answer_all(index, questions, concurrency):
        account = account.add(answered)
        typer.echo(json.dumps(answered.to_dict()))
    return account
