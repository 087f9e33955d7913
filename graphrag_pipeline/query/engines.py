"""Who writes: the embedded engine or a chat model, by `answers.engine`; the one place that chooses.

Command line, Python API and Dagster's query jobs answer through these functions. Keep out: how either writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphrag_pipeline.models.ports import CallFailedError
from graphrag_pipeline.query import answers, global_search
from graphrag_pipeline.query.model_answers import Say, replaced_answer, write_from_context, write_from_points
from graphrag_pipeline.query.model_points import MappedPoints, map_reports
from graphrag_pipeline.query.results import Answer, Context
from graphrag_pipeline.settings import GlobalSearchSettings

if TYPE_CHECKING:
    from graphrag_pipeline.query.global_search import Selection
    from graphrag_pipeline.query.graph_index import GraphIndex


def write_answer(index: GraphIndex, question: str, context: Context, say: Say | None = None) -> Answer:
    """The answer to a local or basic search; `say` gets a model's text as it comes.

    Raises:
        PipelineError: no call to the model can be answered, or the budget is spent.
    """
    settings = index.settings.answers
    if settings.engine == "embedded" or context.is_empty:
        return answers.write_answer(index, question, context, settings)
    try:
        return write_from_context(index, question, context, say)
    except CallFailedError as error:
        return replaced_answer(answers.write_answer(index, question, context, settings), error.reason)


def map_points(index: GraphIndex, question: str, selection: Selection, settings: GlobalSearchSettings) -> MappedPoints:
    """The points of the kept reports, best first.

    Raises:
        PipelineError: no call to the model can be answered, or the budget is spent.
    """
    if index.settings.answers.engine == "embedded":
        return MappedPoints(global_search.map_points(index, question, selection))
    return map_reports(index, question, selection, settings)


def write_global_answer(
    index: GraphIndex,
    question: str,
    mapped: MappedPoints,
    selection: Selection,
    settings: GlobalSearchSettings,
    say: Say | None = None,
) -> Answer:
    """The answer to a global search; `say` gets a model's text as it comes.

    Raises:
        PipelineError: no call to the model can be answered, or the budget is spent.
    """
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
            return write_from_points(index, question, mapped.points, settings.max_answer_tokens, looked, say)
        except CallFailedError as error:
            reason = error.reason
    points = MappedPoints(global_search.map_points(index, question, selection))
    return replaced_answer(_write_extractive(index, question, points, selection, settings), reason)


def _write_extractive(
    index: GraphIndex, question: str, mapped: MappedPoints, selection: Selection, settings: GlobalSearchSettings
) -> Answer:
    limits = settings.max_answer_tokens, index.settings.answers.max_sentences
    chosen = global_search.reduce_points(index, mapped.points, *limits)
    return answers.write_global_answer(index, question, chosen, selection)


def _looked(mapped: MappedPoints, selection: Selection) -> str:
    """Such as "12 community reports rated, 3 of them read in 1 call"."""
    n_calls, n_failed = mapped.account.get("calls", 0), mapped.account.get("failed", 0)
    failed = f" ({n_failed} failed: {'; '.join(mapped.failures)})" if n_failed else ""
    calls = f"{n_calls} call{'s' * (n_calls != 1)}{failed}"
    n_kept, n_rated = len(selection.kept), len(selection.rated)
    if selection.method == "static":
        return f"{n_kept} community reports read in {calls}"
    return f"{n_rated} community reports rated, {n_kept} of them read in {calls}"
