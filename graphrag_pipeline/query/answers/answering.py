"""Who writes: the embedded engine or a chat model, by `answers.engine`; the one place that chooses.

Command line, Python API and Dagster's query jobs answer through these functions. Keep out: how either writes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from graphrag_pipeline.models.ports import CallFailedError
from graphrag_pipeline.query.answers import extractive as answers
from graphrag_pipeline.query.answers.model import replaced_answer, write_from_context, write_from_points
from graphrag_pipeline.query.answers.model_drift import ModelFollower, imagine_answer, points_of
from graphrag_pipeline.query.answers.model_lazy import estimate_map, find_by_model, map_text_units
from graphrag_pipeline.query.answers.model_points import MappedPoints, estimate_static, map_reports
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import is_overview
from graphrag_pipeline.query.results import Answer, Context
from graphrag_pipeline.query.search import global_ as global_search
from graphrag_pipeline.query.search.basic import select_basic_context
from graphrag_pipeline.query.search.drift import Drift, DriftStep, Primer, find_primer, follow_up, read_locally
from graphrag_pipeline.query.search.drift_follow_ups import GraphFollower
from graphrag_pipeline.query.search.lazy import (
    LazySelection,
    find_by_relevance,
    read_overview,
    select_lazy_context,
)
from graphrag_pipeline.query.streams import OnToken
from graphrag_pipeline.query.token_budget import is_affordable
from graphrag_pipeline.settings.settings import (
    DriftSearchSettings,
    GlobalSearchSettings,
    LazySearchSettings,
    LocalSearchSettings,
)

if TYPE_CHECKING:
    from graphrag_pipeline.query.search.global_ import Selection


def write_answer(
    index: IndexReader,
    question: str,
    context: Context,
    on_token: OnToken | None = None,
    local: LocalSearchSettings | None = None,
) -> Answer:
    """The answer to a local or basic search; `on_token` gets a model's text as it comes.

    Args:
        local: the settings of a local search, by which a model is told more than the context.

    Raises:
        PipelineError: no call to the model can be answered, or the budget is spent.
    """
    if index.settings.answers.engine == "embedded" or context.is_empty:
        return _quote(index, question, context)
    try:
        return write_from_context(index, question, context, on_token, local)
    except CallFailedError as error:
        return replaced_answer(_quote(index, question, context), error.reason)


def _quote(index: IndexReader, question: str, context: Context) -> Answer:
    """Passages that answer; of an overview question about some of the documents, what their texts say most."""
    is_about_some = index.document_mask is not None and context.text_units and is_overview(question)
    write = answers.write_overview if is_about_some else answers.write_answer
    return write(index, question, context, index.settings.answers)


def map_points(index: IndexReader, question: str, selection: Selection, settings: GlobalSearchSettings) -> MappedPoints:
    """The points of the kept reports, best first.

    Raises:
        PipelineError: no call to the model can be answered, or the budget is spent.
    """
    if index.settings.answers.engine == "embedded":
        static = estimate_static(index, settings)
        return MappedPoints(global_search.map_points(index, question, selection), static=static)
    return map_reports(index, question, selection, settings)


def select_global_context(
    index: IndexReader, question: str, selection: Selection, settings: GlobalSearchSettings
) -> Context:
    """The kept reports; text units where filters leave no report to read."""
    if not _are_texts_read(index, selection):
        return global_search.select_global_context(index, selection)
    if selection.is_overview:
        return read_overview(index, question, settings.max_context_tokens)
    return _read_basically(index, question, settings.max_context_tokens)


def _read_basically(index: IndexReader, question: str, max_tokens: int) -> Context:
    """The text units of basic search, within a budget."""
    settings = index.settings.basic_search.model_copy(update={"max_context_tokens": max_tokens})
    return select_basic_context(index, question, settings)


def _are_texts_read(index: IndexReader, selection: Selection) -> bool:
    return index.document_mask is not None and not index.nothing_to_read and not selection.kept


def _tell_without_reports(index: IndexReader, answer: Answer, on_token: OnToken | None) -> Answer:
    """An answer with a line under it that says why the texts were read."""
    filters = " and ".join(index.document_mask.filters) if index.document_mask else ""
    n_left = int(index.row_mask("community_reports").sum())
    why = (
        "No community report is" if not n_left else f"Only {n_left} community report{'s are' if n_left > 1 else ' is'}"
    )
    line = f"{why} wholly within {filters}: the texts themselves were read."
    if on_token and answer.engine == "model" and not answer.failure:
        on_token(f"\n\n{line}")
    return replace(answer, text=f"{answer.text}\n\n{line}")


def write_global_answer(
    index: IndexReader,
    question: str,
    mapped: MappedPoints,
    selection: Selection,
    settings: GlobalSearchSettings,
    on_token: OnToken | None = None,
) -> Answer:
    """The answer to a global search; `on_token` gets a model's text as it comes.

    Raises:
        PipelineError: no call to the model can be answered, or the budget is spent.
    """
    if _are_texts_read(index, selection):
        context = select_global_context(index, question, selection, settings)
        return _tell_without_reports(index, write_answer(index, question, context, on_token), on_token)
    if index.settings.answers.engine == "embedded" or not selection.kept:
        return _write_extractive(index, question, mapped, selection, settings)
    if mapped.has_failed:
        reason = "; ".join(mapped.failures)
    elif not mapped.points:
        text = f"Not in the index: {_looked(mapped, selection)}; none says anything about the question."
        return Answer(text, engine="model")
    else:
        try:
            looked = _looked(mapped, selection)
            return write_from_points(index, question, mapped.points, settings.max_answer_tokens, looked, on_token)
        except CallFailedError as error:
            reason = error.reason
    points = MappedPoints(global_search.map_points(index, question, selection))
    return replaced_answer(_write_extractive(index, question, points, selection, settings), reason)


def _write_extractive(
    index: IndexReader, question: str, mapped: MappedPoints, selection: Selection, settings: GlobalSearchSettings
) -> Answer:
    limits = settings.max_answer_tokens, index.settings.answers.max_sentences
    chosen = global_search.reduce_points(index, mapped.points, *limits)
    return answers.write_global_answer(index, question, chosen, selection, settings.max_context_tokens)


def _looked(mapped: MappedPoints, selection: Selection) -> str:
    """Such as "12 community reports rated, 3 of them read in 1 call"."""
    n_calls, n_failed = mapped.account.get("calls", 0), mapped.account.get("failed", 0)
    failed = f" ({n_failed} failed: {'; '.join(mapped.failures)})" if n_failed else ""
    calls = f"{n_calls} call{'s' * (n_calls != 1)}{failed}"
    n_kept, n_rated = len(selection.kept), len(selection.rated)
    if selection.method == "static":
        return f"{n_kept} community reports read in {calls}"
    return f"{n_rated} community reports rated, {n_kept} of them read in {calls}"


# --------------------------------------------------------------------------------------------------------------- drift


def start_drift(index: IndexReader, question: str, settings: DriftSearchSettings) -> Primer:
    """The reports that a DRIFT search starts from, and what they leave open.

    Raises:
        PipelineError: no call to the model can be answered, or the budget of the root is spent.
    """
    is_embedded = index.settings.answers.engine == "embedded"
    sought = question if is_embedded else imagine_answer(index, question)
    selection = find_primer(index, question, index.embed([sought])[0], settings)
    return _follower(index, question, settings).start(selection)


def follow_drift(index: IndexReader, question: str, primer: Primer, settings: DriftSearchSettings) -> Drift:
    """The rounds of follow-up questions; where all fail, what the embedded engine reads instead is the last step.

    Raises:
        PipelineError: no call to the model can be answered, or the budget of the root is spent.
    """
    drift = follow_up(primer, _follower(index, question, settings), settings)
    if not drift.has_failed:
        return drift
    reason = drift.failures[0] if drift.failures else "no step was made"
    read = read_locally(index, question, settings.max_context_tokens)
    return replace(drift, steps=(*drift.steps, DriftStep(question, 0, read, failure=reason)))


def _follower(index: IndexReader, question: str, settings: DriftSearchSettings) -> GraphFollower | ModelFollower:
    kind = GraphFollower if index.settings.answers.engine == "embedded" else ModelFollower
    return kind(index, question, settings)


def write_drift_answer(
    index: IndexReader, question: str, drift: Drift, settings: DriftSearchSettings, on_token: OnToken | None = None
) -> Answer:
    """The answer to a DRIFT search; `on_token` gets a model's text as it comes.

    Raises:
        PipelineError: no call to the model can be answered, or the budget of the root is spent.
    """
    answer = _write_drift_answer(index, question, drift, settings, on_token)
    is_without = is_overview(question) and _are_texts_read(index, drift.selection)
    return _tell_without_reports(index, answer, on_token) if is_without else answer


def _write_drift_answer(
    index: IndexReader, question: str, drift: Drift, settings: DriftSearchSettings, on_token: OnToken | None
) -> Answer:
    if index.settings.answers.engine == "embedded":
        return _write_drift_extractive(index, question, drift, settings)
    points, looked = points_of(drift.steps), f"looked at {drift.describe()}"
    if not points and not drift.has_failed:
        return Answer(f"Not in the index: {looked}; none says anything about the question.", engine="model")
    try:
        if points:
            return write_from_points(index, question, points, settings.max_answer_tokens, looked, on_token)
        reason = "; ".join(drift.failures)
    except CallFailedError as error:
        reason = error.reason
    return replaced_answer(_write_drift_extractive(index, question, drift, settings), reason)


def _write_drift_extractive(index: IndexReader, question: str, drift: Drift, settings: DriftSearchSettings) -> Answer:
    if is_overview(question) and drift.selection.kept:
        points = MappedPoints(global_search.map_points(index, question, drift.selection))
        return _write_extractive(index, question, points, drift.selection, index.settings.global_search)
    context = drift.context
    if not context.text_units:  # all that a model was shown were reports
        context = replace(context, text_units=_read_basically(index, question, settings.max_answer_tokens).text_units)
    return _quote(index, question, context)


# ---------------------------------------------------------------------------------------------------------------- lazy


def find_relevant(index: IndexReader, question: str, settings: LazySearchSettings) -> LazySelection:
    """The text units that pass the relevance tests of a lazy search.

    Raises:
        PipelineError: no call to the model can be answered, or the budget of the root is spent.
    """
    is_embedded = index.settings.answers.engine == index.settings.rating.engine == "embedded"
    return (find_by_relevance if is_embedded else find_by_model)(index, question, settings)


def map_relevant(
    index: IndexReader, question: str, selection: LazySelection, settings: LazySearchSettings
) -> MappedPoints:
    """The points of the relevant text units, best first.

    None where one call can read them all, or the token budget allows no more: the answer is then written from as many
    as fit into a context, the most relevant first.

    Raises:
        PipelineError: no call to the model can be answered, or the budget of the root is spent.
    """
    read = select_lazy_context(index, selection, settings.max_context_tokens).text_units
    if index.settings.answers.engine == "embedded" or len(read) == len(selection.relevant):
        return MappedPoints(())
    if read and not is_affordable(estimate_map(index, selection, settings)):
        return MappedPoints(())
    return map_text_units(index, question, selection, settings)


def write_lazy_answer(
    index: IndexReader,
    question: str,
    mapped: MappedPoints,
    selection: LazySelection,
    settings: LazySearchSettings,
    on_token: OnToken | None = None,
) -> Answer:
    """The answer to a lazy search; `on_token` gets a model's text as it comes.

    Raises:
        PipelineError: no call to the model can be answered, or the budget of the root is spent.
    """
    context = select_lazy_context(index, selection, settings.max_context_tokens)
    n_tested, n_relevant = len(selection.tested), len(selection.relevant)
    looked = f"{n_tested} text units tested, {n_relevant} of them relevant"
    if index.settings.answers.engine == "embedded":
        if n_tested and not n_relevant:
            return Answer(f"Not in the index: {looked}; none says anything about the question.")
        return _write_lazy_extractive(index, question, context)
    if not mapped.points and not mapped.has_failed and (context.is_empty or mapped.account):
        return Answer(f"Not in the index: {looked}; none says anything about the question.", engine="model")
    try:
        if mapped.points:
            return write_from_points(index, question, mapped.points, settings.max_answer_tokens, looked, on_token)
        if not mapped.has_failed:
            return write_from_context(index, question, context, on_token)
        reason = "; ".join(mapped.failures)
    except CallFailedError as error:
        reason = error.reason
    return replaced_answer(_write_lazy_extractive(index, question, context), reason)


def _write_lazy_extractive(index: IndexReader, question: str, context: Context) -> Answer:
    write = answers.write_overview if is_overview(question) else answers.write_answer
    return write(index, question, context, index.settings.answers)
