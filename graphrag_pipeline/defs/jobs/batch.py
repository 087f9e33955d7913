"""The job `batch_job`: a file of questions, answered from one snapshot into a file of answers and the asset `answers`.

The file is configuration of the first op, which pins the snapshot and records an observation of it. Keep out: how a
batch is read and answered (`query/batch/run.py`, `query/batch/question_files.py`).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field

from graphrag_pipeline.defs.assets.pages.metadata import COST
from graphrag_pipeline.defs.jobs.queries import MethodName, count_tokens, keep_answer
from graphrag_pipeline.defs.runs.executor import IndexRoot, job_options
from graphrag_pipeline.defs.runs.naming import ASK, BATCH_JOB, KIND_TAG, asset_key, full_name
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import SNAPSHOT
from graphrag_pipeline.query.batch.question_files import BatchQuestion, read_question_file
from graphrag_pipeline.query.batch.run import CONCURRENCY, BatchAnswer, answer_into_file
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.token_budget import ModelUsage, QueryUsage


class BatchConfig(dg.Config):
    """The questions to answer, and how."""

    questions: str = Field(
        default="questions.txt",
        description="File of questions (txt, csv, jsonl); a relative path is inside the root.",
    )
    answers: str | None = Field(
        default=None, description="JSON lines file for the answers; default: the questions file with .answers.jsonl."
    )
    method: MethodName = Field(default=MethodName("auto"), description="Search method of questions without one.")
    filters: list[str] = Field(default=[], description="Read only matching documents, such as year>=2024.")
    snapshot: str | None = Field(default=None, description="Snapshot id; default: the published snapshot.")
    concurrency: int = Field(default=CONCURRENCY, ge=1, le=64, description="Questions answered at once.")


@dataclass(frozen=True)
class Batch:
    """Questions pinned to a snapshot, and the file for their answers."""

    questions: list[BatchQuestion]
    answers: str
    snapshot: str
    concurrency: int


@dg.op(description="Read the questions and pin the snapshot.")
def open_batch(context: dg.OpExecutionContext, config: BatchConfig, index_root: IndexRoot) -> Batch:
    path = Path(index_root.path) / config.questions
    default = BatchQuestion("", config.method.value, filters=tuple(config.filters))
    questions = read_question_file(path, default)
    with GraphIndex.open(index_root.path, snapshot=config.snapshot) as index:
        index.where(default.filters)
        snapshot = index.snapshot.id
    answers = Path(index_root.path) / config.answers if config.answers else path.with_suffix(".answers.jsonl")
    shown: dict[str, Any] = {"snapshot": snapshot, "questions": len(questions), "job": context.job_name}
    context.log_event(dg.AssetObservation(asset_key(index_root.open(), SNAPSHOT.name), metadata=shown))
    context.add_output_metadata(shown | {"file": dg.MetadataValue.path(str(path))})
    return Batch(questions, str(answers), snapshot, config.concurrency)


@dg.op(description="Answer the questions without an answer in the file; record each answer in the asset `answers`.")
def answer_batch(context: dg.OpExecutionContext, index_root: IndexRoot, batch: Batch) -> dict[str, Any]:
    root = index_root.open()

    def keep(answered: BatchAnswer) -> None:
        if answered.result is None:
            context.log.warning(f"{answered.question.question[:200]!r}: {answered.error}")
        else:
            keep_answer(context, root, answered.result, answered.question.filters)

    with GraphIndex.open(index_root.path, snapshot=batch.snapshot) as index:
        account = answer_into_file(index, batch.questions, Path(batch.answers), batch.concurrency, keep)
    return {"answers": batch.answers, "text": account.to_text(), **account.to_dict()}


@dg.op(
    name="tell_batch_account", description="Report the counts and cost of the batch; fail if a question has no answer."
)
def report_batch_account(context: dg.OpExecutionContext, account: dict[str, Any]) -> dict[str, Any]:
    usage = account["usage"]
    shown = {name: account[name] for name in ("answered", "kept", "failed", "replaced")} | {
        "answers": dg.MetadataValue.path(account["answers"]),
        **count_tokens(QueryUsage({name: ModelUsage(**used) for name, used in usage["by_model"].items()})),
        "model calls": usage["calls"],
        COST: round(usage["cost"], 6),
        "by model": dg.MetadataValue.json(usage["by_model"]),
    }
    if account["failed"]:
        raise dg.Failure(account["text"], metadata=shown, allow_retries=False)
    context.add_output_metadata(shown)
    return account


@dg.config_mapping
def _hand_on(config: BatchConfig) -> dg.RunConfig:
    """Give the configuration of the job to its first op."""
    return dg.RunConfig(ops={"open_batch": config})


def build_batch_job(root: Root) -> dg.JobDefinition:
    """Build the job of a root."""

    @dg.job(
        name=full_name(root, BATCH_JOB),
        description="Answer a file of questions; answers that are in its file of answers are reused.",
        config=_hand_on,
        tags={KIND_TAG: ASK},
        **job_options(root),
    )
    def batch_job() -> None:
        report_batch_account(answer_batch(open_batch()))

    return batch_job
