"""The steps of each search as ops: the question is pinned to a snapshot first, so that all ops read one index.

Between ops go the values of the search's steps (`query_steps.py`); the answer is kept with the whole account
(`answers_asset.py`). Keep out: how a method searches, and which ops make a job (`query_jobs.py`).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import dagster as dg
from pydantic import Field

from graphrag_pipeline.defs.jobs.answers_asset import KeptAnswer, keep_answer
from graphrag_pipeline.defs.jobs.query_steps import Found, Query, Step, step
from graphrag_pipeline.defs.runs.resources import IndexRoot
from graphrag_pipeline.pipeline.stages import SNAPSHOT
from graphrag_pipeline.query.answers import answering as engines
from graphrag_pipeline.query.graph_index import GraphIndex
from graphrag_pipeline.query.methods import METHODS, settings_of_choice
from graphrag_pipeline.query.question import read_question
from graphrag_pipeline.query.rendering import render_answer
from graphrag_pipeline.query.results import Answer, Context
from graphrag_pipeline.query.search import basic as basic_search
from graphrag_pipeline.query.search import global_ as global_search
from graphrag_pipeline.query.search import lazy as lazy_search
from graphrag_pipeline.query.search import local as local_search
from graphrag_pipeline.query.search.auto import choose_method as choose_by_question
from graphrag_pipeline.query.understanding.time_scope import read_time_scope
from graphrag_pipeline.query.usage import EMBEDDED, QueryUsage, embedded_usage

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


# ---------------------------------------------------------------------------------------------------------------- open


def _pin(context: dg.OpExecutionContext, root: IndexRoot, config: QuestionConfig, method: str) -> Query:
    strategy = config.strategy if isinstance(config, LocalQuestionConfig) else None
    index = GraphIndex.open(root.path, snapshot=config.snapshot).where(config.filters)
    settings = METHODS[method].settings_of(index.settings, strategy, config.settings)
    asked = read_question(config.question)
    time = read_time_scope(index, asked, METHODS[method].now_of(settings))
    filters = (*config.filters, *time.filters)
    shown = {"snapshot": index.snapshot.id, "question": asked, "job": context.job_name}
    if document_mask := index.where(time.filters).document_mask:
        shown |= {"filters": " and ".join(filters), "documents passing": str(document_mask.n_documents)}
    context.log_event(dg.AssetObservation(asset_key=SNAPSHOT.name, metadata=shown))
    budget = METHODS[method].budget_of(settings)
    return Query(time.question, method, index.snapshot.id, settings, budget, filters, asked, time)


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
        local = query.settings if query.method == "local" else None
        answer = engines.write_answer(now.index, query.question, found.value, local=local)
        return _show(context, query, answer, now, found.value, _counts(found.value))


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
        return now.found(context, mapped, mapped.details())


@dg.op(description="Reduce the points to one answer, each statement cited.")
def reduce_points(
    context: dg.OpExecutionContext, index_root: IndexRoot, query: Query, selection: Found, mapped: Found
) -> dict[str, Any]:
    with step(index_root, query, mapped) as now:
        answer = engines.write_global_answer(now.index, query.question, mapped.value, selection.value, query.settings)
        read = engines.select_global_context(now.index, query.question, selection.value, query.settings)
        read = replace(read, text_units=(*read.text_units, *answer.text_units))
        told = {**selection.value.account(), **mapped.value.details()}
        return _show(context, query, answer, now, read, told)


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
        return _show(context, query, answer, now, drift.value.context, drift.value.account())


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
        return now.found(context, mapped, mapped.details())


@dg.op(description="Write the answer from what is relevant, each statement cited.")
def answer_lazily(
    context: dg.OpExecutionContext, index_root: IndexRoot, query: Query, selection: Found, mapped: Found
) -> dict[str, Any]:
    with step(index_root, query, mapped) as now:
        answer = engines.write_lazy_answer(now.index, query.question, mapped.value, selection.value, query.settings)
        read = lazy_search.select_lazy_context(now.index, selection.value, query.settings.max_context_tokens)
        told = {**selection.value.account(), **mapped.value.details()}
        return _show(context, query, answer, now, read, told)


# ----------------------------------------------------------------------------------------------------------------- auto


@dg.op(
    description="Pick the method by the question; the ops of the others are skipped.",
    out={f"{method}_search": dg.Out(Query, is_required=False) for method in CHOOSABLE},
)
def choose_method(context: dg.OpExecutionContext, index_root: IndexRoot, query: Query) -> Iterator[dg.Output[Query]]:
    with step(index_root, query) as now:
        choice = choose_by_question(now.index, query.question, query.settings)
        settings, ignored = settings_of_choice(now.index.settings, choice, query.settings)
    budget = METHODS[choice.method].budget_of(settings)
    chosen = replace(query, method=choice.method, settings=settings, budget=budget)
    told = {"method": choice.method, "reason": choice.reason, **choice.options}
    if ignored:
        told["ignored options"] = ", ".join(ignored)
    yield dg.Output(chosen, output_name=f"{choice.method}_search", metadata=told)


def _counts(found: Context) -> dict[str, Any]:
    return {name: len(records) for name, records in vars(found).items()} | {"tokens": found.n_tokens}


def _told(account: dict[str, Any]) -> dict[str, Any]:
    return {key: str(value) for key, value in account.items()}


def _show(
    context: dg.OpExecutionContext, query: Query, found: Answer, now: Step, read: Context, selection: dict[str, Any]
) -> dict[str, Any]:
    """The answer as markdown in the UI, and in the history of answers; as a value for what comes after."""
    answer = query.time.tell(found)
    markdown = render_answer(answer.text, answer.citations)
    told = {"question": query.asked, "snapshot": query.snapshot}
    shown = told | {"answer": dg.MetadataValue.md(markdown), **now.paid()}
    if answer.n_invented:
        shown["invented citations removed"] = answer.n_invented
    context.add_output_metadata(shown)
    usage = now.usage() + (embedded_usage(read.n_tokens, 0) if answer.engine == EMBEDDED else QueryUsage())
    kept = KeptAnswer(
        question=query.asked,
        markdown=markdown,
        method=query.method,
        snapshot=query.snapshot,
        usage=usage,
        seconds=now.seconds(),
        n_citations=len(answer.citations),
        selection={**selection, **query.time.account},
    )
    keep_answer(context, kept, query.filters)
    return told | {"answer": answer.text}
