"""The steps of each search as ops, generated from the declared steps of the methods (`query/methods/`).

The first op of a job pins the question to a snapshot, so that all ops read one index. One value goes from op to op, the
state of the search; the last op keeps the answer with its cost (`answers_asset.py`). Keep out: how a method searches,
and which ops make a job (`queries.py`).
"""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from graphrag_pipeline.defs.assets.pages.metadata import as_markdown, round_figures
from graphrag_pipeline.defs.jobs.answers_asset import KeptAnswer, keep_answer
from graphrag_pipeline.defs.jobs.question_config import OPTIONS, WITHOUT_VALUE, AskedQuestion, refuse_contradiction
from graphrag_pipeline.defs.runs.errors import in_words
from graphrag_pipeline.defs.runs.naming import asset_key
from graphrag_pipeline.defs.runs.resources import IndexRoot
from graphrag_pipeline.models.accounting import paid_run
from graphrag_pipeline.pipeline.stages import SNAPSHOT
from graphrag_pipeline.query.index.graph_index import GraphIndex, prepare_query, run_step
from graphrag_pipeline.query.methods.method import SearchMethod, SearchStep
from graphrag_pipeline.query.methods.state import SearchRequest, SearchState
from graphrag_pipeline.query.rendering import render_answer
from graphrag_pipeline.settings.search_names import CHOOSABLE_METHODS


class MethodOptions(dg.PermissiveConfig):
    """Options of a method by name; null is a value, too."""


class PinnedQuestion(dg.Config):
    """A question as the job's configuration (`question_config.py`) hands it to the first op."""

    question: str
    filters: list[str]
    snapshot: str | None = None
    strategy: str | None = None
    options: MethodOptions = MethodOptions()


# ---------------------------------------------------------------------------------------------------------------- open


def pin_question(asked: AskedQuestion) -> PinnedQuestion:
    """Return a job's configuration as plain values for its first op."""
    values = asked.model_dump(mode="json", warnings=False)
    options = values.pop(OPTIONS)
    options.pop(WITHOUT_VALUE, None)
    return PinnedQuestion(**values, options=MethodOptions(**options))


def build_opening_op(method: SearchMethod) -> dg.OpDefinition:
    """Build the op that pins a question of a method to a snapshot; its configuration is the question."""

    @dg.op(name=opening_op_name(method), description="Pin the snapshot and read the question.")
    def open_snapshot(
        context: dg.OpExecutionContext,
        config: PinnedQuestion,
        index_root: IndexRoot,
    ) -> SearchState:
        with in_words():
            refuse_contradiction(context.run.run_config)
            return _pin(context, index_root, config, method.name)

    return open_snapshot


def opening_op_name(method: SearchMethod) -> str:
    """Return the name of a method's first op."""
    return f"open_snapshot_for_{method.name}_search"


def _pin(context: dg.OpExecutionContext, root: IndexRoot, config: PinnedQuestion, method: str) -> SearchState:
    index = GraphIndex.open(root.path, snapshot=config.snapshot)
    request = SearchRequest(
        config.question, method, config.strategy, tuple(config.filters), config.options.model_dump()
    )
    query = prepare_query(index, request)
    shown = {"snapshot": query.snapshot, "question": query.user_question, "job": context.job_name}
    if document_mask := index.where(query.filters).document_mask:
        shown |= {"filters": " and ".join(query.filters), "documents passing": str(document_mask.n_documents)}
    context.log_event(dg.AssetObservation(asset_key(root.open(), SNAPSHOT.name), metadata=shown))
    return SearchState(query)


# --------------------------------------------------------------------------------------------------------------- steps


def build_step_op(step: SearchStep) -> dg.OpDefinition:
    """Build the op of a step in the middle of a search."""

    @dg.op(name=step.name, description=step.description)
    def run(context: dg.OpExecutionContext, index_root: IndexRoot, state: SearchState) -> SearchState:
        after = _run(context, index_root, step, state)
        context.add_output_metadata(round_figures(step.show(after)) | _models(after))
        return after

    return run


def build_answering_op(step: SearchStep) -> dg.OpDefinition:
    """Build the op of a search's last step: the answer as markdown in the UI and in the history of answers."""

    @dg.op(name=step.name, description=step.description)
    def run(context: dg.OpExecutionContext, index_root: IndexRoot, state: SearchState) -> dict[str, Any]:
        after = _run(context, index_root, step, state)
        query, answer = after.query, after.noted_answer
        markdown = render_answer(answer.text, answer.citations)
        output = {"question": query.user_question, "snapshot": query.snapshot}
        shown = output | {"answer": as_markdown(markdown), **_models(after)}
        if answer.n_invented:
            shown["invented citations removed"] = answer.n_invented
        if answer.n_copied:
            shown["sentences copied from the prompt"] = answer.n_copied
        if answer.unread:
            shown["not read"] = answer.unread.describe()
        if answer.uncited:
            shown["sentences without support"] = sum(sentence.citation is None for sentence in answer.uncited)
        context.add_output_metadata(shown)
        kept = KeptAnswer(
            question=query.user_question,
            markdown=markdown,
            method=query.method,
            snapshot=query.snapshot,
            usage=after.whole_usage,
            seconds=after.seconds,
            n_citations=len(answer.citations),
            selection={**after.selection, **step.show(after), **query.time.account},
            options=query.options,
        )
        keep_answer(context, index_root.open(), kept, query.filters)
        context.log.info(f"The answer, by {query.method} search of snapshot {query.snapshot}:\n\n{markdown}")
        return output | {"answer": answer.text}

    return run


def build_choosing_op(step: SearchStep) -> dg.OpDefinition:
    """Build the op that picks a method: an output for each, of which one is given."""

    @dg.op(
        name=step.name,
        description=step.description,
        out={method_output(method): dg.Out(SearchState, is_required=False) for method in CHOOSABLE_METHODS},
    )
    def run(
        context: dg.OpExecutionContext, index_root: IndexRoot, state: SearchState
    ) -> Iterator[dg.Output[SearchState]]:
        after = _run(context, index_root, step, state)
        yield dg.Output(after, output_name=method_output(after.query.method), metadata=round_figures(step.show(after)))

    return run


def method_output(method: str) -> str:
    """Return the name of the choosing op's output for a method."""
    return f"{method}_search"


def _run(context: dg.OpExecutionContext, root: IndexRoot, step: SearchStep, state: SearchState) -> SearchState:
    index = GraphIndex.open(root.path, snapshot=state.query.snapshot).where(state.query.filters)
    with in_words(), paid_run("query", f"dagster {context.run_id}", context.run_id):
        return run_step(index, step, state)


def _models(after: SearchState) -> dict[str, Any]:
    """Return the calls to models of this op; an empty dict if there were none."""
    line = after.step_usage.to_line()
    return {"models": line} if line else {}
