"""`review`: look at a candidate before it is published, then publish or reject it."""

from __future__ import annotations

from typing import Annotated

import typer

from graphrag_pipeline.commands.terminal import (
    JsonOption,
    RootOption,
    command_with_root,
    complete_snapshot,
    echo,
    open_root,
    print_json,
)
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.accounting import paid_run

review = typer.Typer(help="Review a candidate before it is published.", no_args_is_help=True)
_Candidate = Annotated[
    str,
    typer.Argument(
        metavar="[ID]", help="Candidate or its first digits; default: the newest.", autocompletion=complete_snapshot
    ),
]


@review.command()
def show(
    candidate: _Candidate = "",
    root: RootOption = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, such as for a comment of CI.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what changed and why, the cost, the checks, gold questions that find other passages, and the quality."""
    from dataclasses import asdict

    from graphrag_pipeline.inspection.review import find_candidate, render_review, review_candidate, to_markdown

    project = open_root(root)
    project.follow()
    with paid_run("review", "gold questions"):
        found = review_candidate(project, find_candidate(project, candidate))
    if as_json:
        print_json(asdict(found))
    elif markdown:
        echo(to_markdown(found), nl=False)
    else:
        for _, heading, lines in render_review(found):
            echo(heading, style="heading")
            for line in lines:
                echo(f"  {line}")
        if found.state == "waiting":
            command = command_with_root(root)
            echo(f"Publish it with `{command} review publish`, or `{command} review reject --reason ...`")


@review.command()
def publish(candidate: _Candidate = "", root: RootOption = None) -> None:
    """Publish the newest candidate, if it passes all checks."""
    from graphrag_pipeline.defs.index_runs.index_run import run_stages
    from graphrag_pipeline.defs.runs.naming import APPROVED_TAG
    from graphrag_pipeline.inspection.review import find_candidate
    from graphrag_pipeline.pipeline.stages import SNAPSHOT
    from graphrag_pipeline.storage.snapshot_store import refuse_rejected

    project = open_root(root)
    newest = find_candidate(project)
    wanted = find_candidate(project, candidate)
    if wanted != newest:
        raise PipelineError(
            f"snapshot {wanted} is not the newest candidate, which is {newest}; to publish an earlier one, run "
            "`graphrag-pipeline snapshots rollback`"
        )
    if not candidate:
        refuse_rejected(project.snapshots, wanted)
    run_stages(project, [SNAPSHOT.name], tags={APPROVED_TAG: wanted})
    published = project.snapshots.current()
    if published != wanted:
        raise PipelineError(
            f"candidate {wanted} is not published: snapshot {published} is pinned; run `snapshots unpin`"
        )
    echo(f"published snapshot {wanted}")


@review.command()
def reject(
    reason: Annotated[str, typer.Option("--reason", help="Why; `status` and `snapshots list` show it.")],
    candidate: _Candidate = "",
    root: RootOption = None,
) -> None:
    """Keep a candidate from being published; another one is made once documents, prompts or settings change."""
    from graphrag_pipeline.inspection.review import find_candidate
    from graphrag_pipeline.storage.snapshot_store import reject_in_review

    project = open_root(root)
    with project.writing():
        wanted = find_candidate(project, candidate)
        if wanted == project.snapshots.current():
            raise PipelineError(
                f"snapshot {wanted} is published; to go back, run `graphrag-pipeline snapshots rollback`"
            )
        reject_in_review(project.snapshots, wanted, reason)
    echo(f"rejected candidate {wanted}: {reason}")
