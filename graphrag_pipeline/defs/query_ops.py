"""The steps of each search as ops: the question is pinned to a snapshot first, so that all ops read one index.

Between ops go the values of the search's steps (`Found`), with what models were asked for so far, so that the token
budget of a question holds over all its ops, and its answer is kept with the whole account (`answers_asset.py`). Keep
out: how a method searches, and which ops make a job (`query_jobs.py`).
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import dagster as dg
from pydantic import Field

from graphrag_pipeline.defs.answers_asset import KeptAnswer, keep_answer
from graphrag_pipeline.defs.resources import IndexRoot
from graphrag_pipeline.query import basic_search, engines, global_search, lazy_search, local_search
from graphrag_pipeline.query.auto_search import choose_method as choose_by_question
from graphrag_pipeline.query.graph_index import GraphIndex
from graphrag_pipeline.query.methods import METHODS
from graphrag_pipeline.query.model_accounts import Account, accounted
from graphrag_pipeline.query.question import read_question
from graphrag_pipeline.query.results import Answer, Context
from graphrag_pipeline.query.token_budget import TokenBudget, limited
from graphrag_pipeline.query.usage import Usage
from graphrag_pipeline.stages import SNAPSHOT

CHOOSABLE = tuple(method for method in METHODS if method != "auto")


class QuestionConfig(dg.Config):
    """What to ask; `settings` override the method's section of settings.yaml."""

    question: str = Field(description="The question, in words.")
    snapshot: str | None = Field(default=None, description="Id of the snapshot to ask; default: the published one.")
    settings: dict[str, Any] = Field(default={}, description="Options of the method, such as {top_k_entities: 20}.")
    filters: list[str] = Field(default=[], description="Read only documents that pass all, such as year>=2024.")


class LocalQuestionConfig(QuestionConfig):
    """A question for local search."""

    strategy: str | None = Field(
        default=None, description="Text unit selection strategy; default: that of the settings."
    )


@dataclass(frozen=True)
class Query:
    """A question pinned to a snapshot, with the settings it is answered by and the most tokens it may spend."""

    question: str
    method: str
    snapshot: str
    settings: Any
    budget: int | None
    filters: tuple[str, ...] = ()


@dataclass(frozen=True)
class Found:
    """What a step found, and what the question has cost by then.

    Attributes:
        spent: tokens off its budget.
        seconds: of the steps themselves.
    """

    value: Any
    spent: int
    usage: Usage
    seconds: float


@dataclass(frozen=True)
class Step:
    """An index to ask, what its models are asked for meanwhile, and what the steps before cost."""

    index: GraphIndex
    account: Account
    budget: TokenBudget
    before: Found
    started: float

    def paid(self) -> dict[str, Any]:
        """What models were asked for in this op; empty where none was."""
        line = Usage(self.account.by_model(self.index.settings)).to_line()
        return {"models": line} if line else {}

    def found(self, context: dg.OpExecutionContext, value: Any, told: dict[str, Any]) -> Found:
        """A value for the next op; what is told of it shows in the UI."""
        context.add_output_metadata(told | self.paid())
        return Found(value, self.budget.spent, self.usage(), self.seconds())

    def usage(self) -> Usage:
        """What models were asked for by now, for this question."""
        return self.before.usage + Usage(self.account.by_model(self.index.settings))

    def seconds(self) -> float:
        """Time of the question's steps by now."""
        return self.before.seconds + time.perf_counter() - self.started


_NOTHING = Found(None, 0, Usage(), 0.0)


@contextmanager
def step(index_root: IndexRoot, query: Query, before: Found = _NOTHING) -> Iterator[Step]:
    """Open the pinned snapshot for one op; what the ops before it spent is off the budget."""
    started = time.perf_counter()
    index = GraphIndex.open(index_root.path, snapshot=query.snapshot).where(query.filters)
    with accounted() as account, limited(query.budget, before.spent) as budget:
        yield Step(index, account, budget, before, started)


# ---------------------------------------------------------------------------------------------------------------- open


def _pin(context: dg.OpExecutionContext, root: IndexRoot, config: QuestionConfig, method: str) -> Query:
    strategy = config.strategy if isinstance(config, LocalQuestionConfig) else None
    index = GraphIndex.open(root.path, snapshot=config.snapshot).where(config.filters)
    settings = METHODS[method].settings_of(index.settings, strategy, config.settings)
    question = read_question(config.question)
    shown = {"snapshot": index.snapshot.id, "question": question, "job": context.job_name}
    if index.passing is not None:
        shown |= {"filters": " and ".join(config.filters), "documents passing": str(index.passing.n_documents)}
    context.log_event(dg.AssetObservation(asset_key=SNAPSHOT.name, metadata=shown))
    budget = METHODS[method].budget_of(settings)
    return Query(question, method, index.snapshot.id, settings, budget, tuple(config.filters))


@dg.op(description="Pin the snapshot and read the question.")
def open_snapshot_for_local_search(
    context: dg.OpExecutionContext, config: LocalQuestionConfig, index_root: IndexRoot
) -> Query:
    return _pin(context, index_root, config, "local")


def _opening_op(method: str) -> dg.OpDefinition:
    @dg.op(name=f"open_snapshot_for_{method}_search", description="Pin the snapshot and read the question.")
    def open_snapshot(context: dg.OpExecutionContext, config: QuestionConfig, index_root: IndexRoot) -> Query:
        return _pin(context, index_root, config, method)

    return open_snapshot


OPENING_OPS = {"local": open_snapshot_for_local_search} | {
    method: _opening_op(method) for method in METHODS if method != "local"
}


# ------------------------------------------------------------------------------------------------------ local and basic


@dg.op(description="Match entities and select the records and text units around them.")
def select_local_context(context: dg.OpExecutionContext, index_root: IndexRoot, query: Query) -> Found:
    with step(index_root, query) as now:
        found = local_search.select_local_context(now.index, query.question, query.settings)
        return now.found(context, found, _counts(found))


@dg.op(description="Select text units by full text and vectors.")
def select_basic_context(context: dg.OpExecutionContext, index_root: IndexRoot, query: Query) -> Found:
    with step(index_root, query) as now:
        found = basic_search.select_basic_context(now.index, query.question, query.settings)
        return now.found(context, found, _counts(found))


@dg.op(description="Write the answer from the context, each statement cited.")
def answer_question(
    context: dg.OpExecutionContext, index_root: IndexRoot, query: Query, found: Found
) -> dict[str, Any]:
    with step(index_root, query, found) as now:
        return _show(context, query, engines.write_answer(now.index, query.question, found.value), now)


# --------------------------------------------------------------------------------------------------------------- global


@dg.op(description="Rate community reports against the question and keep those that matter.")
def rate_reports(context: dg.OpExecutionContext, index_root: IndexRoot, query: Query) -> Found:
    with step(index_root, query) as now:
        selection = global_search.rate_reports(now.index, query.question, query.settings)
        return now.found(context, selection, _told(selection.account()))


@dg.op(description="Map the kept reports to scored points.")
def map_points(context: dg.OpExecutionContext, index_root: IndexRoot, query: Query, selection: Found) -> Found:
    with step(index_root, query, selection) as now:
        mapped = engines.map_points(now.index, query.question, selection.value, query.settings)
        return now.found(context, mapped, {"points": len(mapped.points), **mapped.details()})


@dg.op(description="Reduce the points to one answer, each statement cited.")
def reduce_points(
    context: dg.OpExecutionContext, index_root: IndexRoot, query: Query, selection: Found, mapped: Found
) -> dict[str, Any]:
    with step(index_root, query, mapped) as now:
        answer = engines.write_global_answer(now.index, query.question, mapped.value, selection.value, query.settings)
        return _show(context, query, answer, now)


# ---------------------------------------------------------------------------------------------------------------- drift


@dg.op(description="Read the reports nearest to the question and find what they leave open.")
def start_drift(context: dg.OpExecutionContext, index_root: IndexRoot, query: Query) -> Found:
    with step(index_root, query) as now:
        primer = engines.start_drift(now.index, query.question, query.settings)
        told = {"reports": len(primer.selection.kept), "open": [q for s in primer.steps for q in s.follow_ups]}
        return now.found(context, primer, told)


@dg.op(description="Ask follow-up questions, round by round.")
def follow_drift(context: dg.OpExecutionContext, index_root: IndexRoot, query: Query, primer: Found) -> Found:
    with step(index_root, query, primer) as now:
        drift = engines.follow_drift(now.index, query.question, primer.value, query.settings)
        return now.found(context, drift, drift.account())


@dg.op(description="Write one answer from all steps, each statement cited.")
def answer_by_drift(
    context: dg.OpExecutionContext, index_root: IndexRoot, query: Query, drift: Found
) -> dict[str, Any]:
    with step(index_root, query, drift) as now:
        answer = engines.write_drift_answer(now.index, query.question, drift.value, query.settings)
        return _show(context, query, answer, now)


# ----------------------------------------------------------------------------------------------------------------- lazy


@dg.op(description="Test text units for relevance, best first by community, within the budget.")
def find_relevant_text_units(context: dg.OpExecutionContext, index_root: IndexRoot, query: Query) -> Found:
    with step(index_root, query) as now:
        selection = engines.find_relevant(now.index, query.question, query.settings)
        context_found = lazy_search.select_lazy_context(now.index, selection, query.settings.max_context_tokens)
        return now.found(context, selection, _told(selection.account()) | {"tokens": context_found.n_tokens})


@dg.op(description="Map the relevant text units to scored points, where they are too many to be read at once.")
def map_text_units(context: dg.OpExecutionContext, index_root: IndexRoot, query: Query, selection: Found) -> Found:
    with step(index_root, query, selection) as now:
        mapped = engines.map_relevant(now.index, query.question, selection.value, query.settings)
        return now.found(context, mapped, {"points": len(mapped.points), **mapped.details()})


@dg.op(description="Write the answer from what is relevant, each statement cited.")
def answer_lazily(
    context: dg.OpExecutionContext, index_root: IndexRoot, query: Query, selection: Found, mapped: Found
) -> dict[str, Any]:
    with step(index_root, query, mapped) as now:
        answer = engines.write_lazy_answer(now.index, query.question, mapped.value, selection.value, query.settings)
        return _show(context, query, answer, now)


# ----------------------------------------------------------------------------------------------------------------- auto


@dg.op(
    description="Pick the method by the question; the ops of the others are skipped.",
    out={f"{method}_search": dg.Out(Query, is_required=False) for method in CHOOSABLE},
)
def choose_method(context: dg.OpExecutionContext, index_root: IndexRoot, query: Query) -> Iterator[dg.Output[Query]]:
    with step(index_root, query) as now:
        choice = choose_by_question(now.index, query.question, query.settings)
        method = METHODS[choice.method]
        options = method.limited_options(choice.options, query.budget)
        settings = method.settings_of(now.index.settings, None, options)
    chosen = replace(query, method=choice.method, settings=settings, budget=method.budget_of(settings))
    told = {"method": choice.method, "reason": choice.reason, **choice.options}
    yield dg.Output(chosen, output_name=f"{choice.method}_search", metadata=told)


def _counts(found: Context) -> dict[str, Any]:
    return {name: len(records) for name, records in vars(found).items()} | {"tokens": found.n_tokens}


def _told(account: dict[str, Any]) -> dict[str, Any]:
    return {key: str(value) for key, value in account.items()}


def _show(context: dg.OpExecutionContext, query: Query, answer: Answer, now: Step) -> dict[str, Any]:
    """The answer as markdown in the UI, and in the history of answers; as a value for what comes after."""
    markdown = answer.to_markdown()
    told = {"question": query.question, "snapshot": query.snapshot}
    shown = told | {"answer": dg.MetadataValue.md(markdown), **now.paid()}
    if answer.n_invented:
        shown["invented citations removed"] = answer.n_invented
    context.add_output_metadata(shown)
    kept = KeptAnswer(
        query.question, markdown, query.method, query.snapshot, now.usage(), now.seconds(), len(answer.citations)
    )
    keep_answer(context, kept, query.filters)
    return told | {"answer": answer.text}
