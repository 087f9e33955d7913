"""Query jobs: the steps of each search as ops, run from the Launchpad; the answer shows as markdown.

The question is configuration of the first op alone. It pins the snapshot, so that all ops read one index, and records
an observation of `index_snapshot`, so that lineage shows which index answered. Keep out: how a method searches.
"""

from dataclasses import dataclass
from typing import Any

import dagster as dg
from pydantic import Field

from graphrag_pipeline.defs.resources import IndexRoot
from graphrag_pipeline.query import basic_search, engines, global_search, local_search
from graphrag_pipeline.query.graph_index import METHODS, GraphIndex
from graphrag_pipeline.query.model_accounts import Account, accounted
from graphrag_pipeline.query.model_points import MappedPoints
from graphrag_pipeline.query.question import read_question
from graphrag_pipeline.query.results import Answer, Context
from graphrag_pipeline.query.usage import Usage
from graphrag_pipeline.stages import SNAPSHOT


class QuestionConfig(dg.Config):
    """What to ask; `settings` override the method's section of settings.yaml."""

    question: str = Field(description="The question, in words.")
    snapshot: str | None = Field(default=None, description="Id of the snapshot to ask; default: the published one.")
    settings: dict[str, Any] = Field(default={}, description="Options of the method, such as {top_k_entities: 20}.")


class LocalQuestionConfig(QuestionConfig):
    """A question for local search."""

    strategy: str | None = Field(
        default=None, description="Text unit selection strategy; default: that of the settings."
    )


@dataclass(frozen=True)
class Query:
    """A question pinned to a snapshot, with the settings it is answered by."""

    question: str
    snapshot: str
    settings: Any

    def open(self, index_root: IndexRoot) -> GraphIndex:
        return GraphIndex.open(index_root.path, snapshot=self.snapshot)


def _pin(context: dg.OpExecutionContext, root: IndexRoot, config: QuestionConfig, method: str) -> Query:
    strategy = config.strategy if isinstance(config, LocalQuestionConfig) else None
    index = GraphIndex.open(root.path, snapshot=config.snapshot)
    settings = METHODS[method].settings_of(index.settings, strategy, config.settings)
    question = read_question(config.question)
    shown = {"snapshot": index.snapshot.id, "question": question, "job": context.job_name}
    context.log_event(dg.AssetObservation(asset_key=SNAPSHOT.name, metadata=shown))
    return Query(question, index.snapshot.id, settings)


@dg.op(description="Pin the snapshot and read the question.")
def open_snapshot_for_local_search(
    context: dg.OpExecutionContext, config: LocalQuestionConfig, index_root: IndexRoot
) -> Query:
    return _pin(context, index_root, config, "local")


@dg.op(description="Pin the snapshot and read the question.")
def open_snapshot_for_global_search(
    context: dg.OpExecutionContext, config: QuestionConfig, index_root: IndexRoot
) -> Query:
    return _pin(context, index_root, config, "global")


@dg.op(description="Pin the snapshot and read the question.")
def open_snapshot_for_basic_search(
    context: dg.OpExecutionContext, config: QuestionConfig, index_root: IndexRoot
) -> Query:
    return _pin(context, index_root, config, "basic")


@dg.op(description="Match entities and select the records and text units around them.")
def select_local_context(context: dg.OpExecutionContext, index_root: IndexRoot, query: Query) -> Context:
    found = local_search.select_local_context(query.open(index_root), query.question, query.settings)
    context.add_output_metadata(_counts(found))
    return found


@dg.op(description="Select text units by full text and vectors.")
def select_basic_context(context: dg.OpExecutionContext, index_root: IndexRoot, query: Query) -> Context:
    found = basic_search.select_basic_context(query.open(index_root), query.question, query.settings)
    context.add_output_metadata(_counts(found))
    return found


@dg.op(description="Write the answer from the context, each statement cited.")
def answer_question(
    context: dg.OpExecutionContext, index_root: IndexRoot, query: Query, found: Context
) -> dict[str, Any]:
    index = query.open(index_root)
    with accounted() as account:
        answer = engines.write_answer(index, query.question, found)
    return _show(context, query, answer, _paid(index, account))


@dg.op(description="Rate community reports against the question and keep those that matter.")
def rate_reports(context: dg.OpExecutionContext, index_root: IndexRoot, query: Query) -> global_search.Selection:
    index = query.open(index_root)
    with accounted() as account:
        selection = global_search.rate_reports(index, query.question, query.settings)
    context.add_output_metadata({key: str(value) for key, value in selection.account().items()} | _paid(index, account))
    return selection


@dg.op(description="Map the kept reports to scored points.")
def map_points(
    context: dg.OpExecutionContext, index_root: IndexRoot, query: Query, selection: global_search.Selection
) -> MappedPoints:
    index = query.open(index_root)
    with accounted() as account:
        mapped = engines.map_points(index, query.question, selection, query.settings)
    context.add_output_metadata({"points": len(mapped.points), **mapped.details(), **_paid(index, account)})
    return mapped


@dg.op(description="Reduce the points to one answer, each statement cited.")
def reduce_points(
    context: dg.OpExecutionContext,
    index_root: IndexRoot,
    query: Query,
    selection: global_search.Selection,
    mapped: MappedPoints,
) -> dict[str, Any]:
    index = query.open(index_root)
    with accounted() as account:
        answer = engines.write_global_answer(index, query.question, mapped, selection, query.settings)
    return _show(context, query, answer, _paid(index, account))


def _counts(found: Context) -> dict[str, Any]:
    return {name: len(records) for name, records in vars(found).items()} | {"tokens": found.n_tokens}


def _paid(index: GraphIndex, account: Account) -> dict[str, Any]:
    """What models were asked for in an op; empty where none was."""
    line = Usage(account.by_model(index.settings)).to_line()
    return {"models": line} if line else {}


def _show(context: dg.OpExecutionContext, query: Query, answer: Answer, paid: dict[str, Any]) -> dict[str, Any]:
    """The answer as markdown in the UI; as a value for what comes after."""
    shown = {
        "question": query.question,
        "answer": dg.MetadataValue.md(answer.to_markdown()),
        "snapshot": query.snapshot,
        **paid,
    }
    if answer.n_invented:
        shown["invented citations removed"] = answer.n_invented
    context.add_output_metadata(shown)
    return {"question": query.question, "snapshot": query.snapshot, "answer": answer.text}


def _ask(op: str, question: str) -> dict[str, Any]:
    """What the Launchpad shows at first: a question to replace."""
    return {"ops": {op: {"config": {"question": question}}}}


@dg.job(
    description="Local search: entities near the question and what surrounds them.",
    config=_ask("open_snapshot_for_local_search", "Who is Ebenezer Scrooge's clerk?"),
)
def local_search_job() -> None:
    query = open_snapshot_for_local_search()
    answer_question(query, select_local_context(query))


@dg.job(
    description="Global search: community reports rated, mapped and reduced.",
    config=_ask("open_snapshot_for_global_search", "What are the main themes of the story?"),
)
def global_search_job() -> None:
    query = open_snapshot_for_global_search()
    selection = rate_reports(query)
    reduce_points(query, selection, map_points(query, selection))


@dg.job(
    description="Basic search: full text and vectors over text units, no graph.",
    config=_ask("open_snapshot_for_basic_search", "Who is Ebenezer Scrooge's clerk?"),
)
def basic_search_job() -> None:
    query = open_snapshot_for_basic_search()
    answer_question(query, select_basic_context(query))


QUERY_JOBS = [local_search_job, global_search_job, basic_search_job]
