"""DRIFT search as steps: start from the nearest reports, follow what they leave open, answer from all steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from graphrag_pipeline.query.answers.answering import Answerer
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.methods.global_ import are_texts_read, note_missing_reports
from graphrag_pipeline.query.methods.method import SearchMethod, SearchStep
from graphrag_pipeline.query.methods.state import SearchState
from graphrag_pipeline.query.question import is_overview
from graphrag_pipeline.query.search.drift import DriftStep, find_primer, follow_up, read_locally


def _start(index: IndexReader, state: SearchState, answerer: Answerer) -> SearchState:
    question, settings = state.query.question, state.query.settings
    [vector] = index.embed([answerer.imagine_answer(question)])
    selection = find_primer(index, question, vector, settings)
    return replace(state, found=answerer.follower(question, settings).start(selection))


def _follow(index: IndexReader, state: SearchState, answerer: Answerer) -> SearchState:
    """Where all steps fail, the last step is what the embedded engine reads instead."""
    question, settings = state.query.question, state.query.settings
    drift = follow_up(state.found, answerer.follower(question, settings), settings)
    if drift.has_failed:
        reason = drift.failures[0] if drift.failures else "no step was made"
        read = read_locally(index, question, settings.max_context_tokens)
        drift = replace(drift, steps=(*drift.steps, DriftStep(question, 0, read, failure=reason)))
    return replace(state, found=drift, context=drift.context, selection={**state.selection, **drift.account()})


def _answer(index: IndexReader, state: SearchState, answerer: Answerer) -> SearchState:
    question, drift = state.query.question, state.found
    answer = answerer.write_from_steps(question, drift, state.query.settings)
    if is_overview(question) and are_texts_read(index, drift.selection):
        answer = note_missing_reports(index, answer)
    return replace(state, answer=answer)


def _show_primer(state: SearchState) -> dict[str, Any]:
    primer = state.found
    return {
        "reports": len(primer.selection.kept),
        "open": [question for step in primer.steps for question in step.follow_ups],
    }


METHOD = SearchMethod(
    name="drift",
    description="DRIFT search: from the nearest reports, by follow-up questions, into the graph.",
    steps=(
        SearchStep(
            "start_drift",
            "Read the reports nearest to the question and find what they leave open.",
            _start,
            _show_primer,
        ),
        SearchStep(
            "follow_drift",
            "Ask follow-up questions, round by round.",
            _follow,
            lambda state: state.found.account(),
        ),
        SearchStep(
            "answer_by_drift",
            "Write one answer from all steps, each statement cited.",
            _answer,
            lambda state: state.found.account(),
        ),
    ),
    needs=("community_reports",),
    context_share=0.25,
)
