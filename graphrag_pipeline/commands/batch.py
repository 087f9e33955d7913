"""Command `batch`: answers a file of questions into a file of answers.

Keep out: answering (`query/batch/run.py`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_pipeline.commands.completion import complete_choice
from graphrag_pipeline.commands.terminal import QUESTION_GROUP, RootOption, echo, logging_costs, open_root
from graphrag_pipeline.settings.search_names import SEARCH_METHODS, describe_methods

if TYPE_CHECKING:
    from graphrag_pipeline.query.batch.question_files import BatchQuestion
    from graphrag_pipeline.query.batch.run import BatchAccount
    from graphrag_pipeline.query.index.graph_index import GraphIndex


def add_batch_commands(app: typer.Typer) -> None:
    """Mount the commands of this module."""
    app.command(rich_help_panel=QUESTION_GROUP)(batch)


def batch(
    file: Annotated[Path, typer.Argument(help="Questions: a text file with one per line, CSV or JSON lines.")],
    out: Annotated[
        Path | None,
        typer.Option(help="JSON lines file for the answers; answers in it are reused. Default: print them."),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help=f"For questions without a method. {describe_methods()}",
            autocompletion=complete_choice(*SEARCH_METHODS),
        ),
    ] = "auto",
    filters: Annotated[
        list[str] | None,
        typer.Option("--filter", help='Read only matching documents, such as "year>=2024"; repeatable.'),
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=64, help="Questions answered at once.")] = 4,
    root: RootOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary (calls, tokens, cost) as JSON.")] = False,
) -> None:
    """Answer a file of questions from one snapshot; exit status 1 if a question fails."""
    from graphrag_pipeline.query.batch.question_files import BatchQuestion, read_question_file
    from graphrag_pipeline.query.batch.run import answer_into_file
    from graphrag_pipeline.query.index.graph_index import GraphIndex
    from graphrag_pipeline.query.methods.registry import look_up_method

    look_up_method(method)
    default = BatchQuestion("", method, filters=tuple(filters or ()))
    questions = read_question_file(file, default)
    project = open_root(root)
    with logging_costs(project, "batch", "answers") as counted, GraphIndex.of_root(counted) as index:
        index.where(default.filters)  # an invalid filter is one error, not one per question
        try:
            account = (
                answer_into_file(index, questions, out, concurrency)
                if out
                else _print_answers(index, questions, concurrency)
            )
        except KeyboardInterrupt:
            echo("interrupted: finished answers are kept; run the command again to continue", err=True)
            raise typer.Exit(130) from None
    is_err = out is None  # answers alone are on standard output
    echo(json.dumps(account.to_dict()) if as_json else account.to_text(), err=is_err)
    if account.failed:
        raise typer.Exit(1)


def _print_answers(index: GraphIndex, questions: list[BatchQuestion], concurrency: int) -> BatchAccount:
    from graphrag_pipeline.query.batch.run import BatchAccount, answer_all

    account = BatchAccount()
    for answered in answer_all(index, questions, concurrency):
        account = account.add(answered)
        echo(json.dumps(answered.to_dict()))
    return account
