"""Query jobs: the steps of each search as visible ops, run from the Launchpad; the answer shows as markdown.

The question is configuration of the first op alone, which records an observation of `index_snapshot`, so that lineage
shows which index answered. The job of `auto` holds the ops of all methods and runs those of the one it picks. Keep out:
how a method searches, and what an op does (`query_ops.py`).
"""

from typing import Any

import dagster as dg

from graphrag_pipeline.defs.jobs import query_ops as ops

WHO = "Who is Ebenezer Scrooge's clerk?"
THEMES = "What are the main themes of the story?"
BOTH = "Who is Scrooge's clerk and what does he have to do with Tiny Tim?"


def _ask(method: str, question: str) -> dict[str, Any]:
    """What the Launchpad shows at first: a question to replace."""
    return {"ops": {f"open_snapshot_for_{method}_search": {"config": {"question": question}}}}


def _search_locally(query: Any, answer: Any = ops.answer_question) -> None:
    answer(query, ops.select_local_context(query))


def _search_basically(query: Any, answer: Any = ops.answer_question) -> None:
    answer(query, ops.select_basic_context(query))


def _search_globally(query: Any) -> None:
    selection = ops.rate_reports(query)
    ops.reduce_points(query, selection, ops.map_points(query, selection))


def _search_by_drift(query: Any) -> None:
    ops.answer_by_drift(query, ops.follow_drift(query, ops.start_drift(query)))


def _search_lazily(query: Any) -> None:
    selection = ops.find_relevant_text_units(query)
    ops.answer_lazily(query, selection, ops.map_text_units(query, selection))


@dg.job(description="Local search: entities near the question and what surrounds them.", config=_ask("local", WHO))
def local_search_job() -> None:
    _search_locally(ops.OPENING_OPS["local"]())


@dg.job(description="Global search: community reports rated, mapped and reduced.", config=_ask("global", THEMES))
def global_search_job() -> None:
    _search_globally(ops.OPENING_OPS["global"]())


@dg.job(description="Basic search: full text and vectors over text units, no graph.", config=_ask("basic", WHO))
def basic_search_job() -> None:
    _search_basically(ops.OPENING_OPS["basic"]())


@dg.job(
    description="DRIFT search: from the nearest reports, by follow-up questions, into the graph.",
    config=_ask("drift", BOTH),
)
def drift_search_job() -> None:
    _search_by_drift(ops.OPENING_OPS["drift"]())


@dg.job(
    description="Lazy search: text units tested for relevance, best first; no reports needed.",
    config=_ask("lazy", BOTH),
)
def lazy_search_job() -> None:
    _search_lazily(ops.OPENING_OPS["lazy"]())


@dg.job(description="Picks one of the other searches by the question, and says why.", config=_ask("auto", BOTH))
def auto_search_job() -> None:
    chosen = ops.choose_method(ops.OPENING_OPS["auto"]())
    _search_locally(chosen.local_search, ops.answer_question.alias("answer_locally"))
    _search_basically(chosen.basic_search, ops.answer_question.alias("answer_basically"))
    _search_globally(chosen.global_search)
    _search_by_drift(chosen.drift_search)
    _search_lazily(chosen.lazy_search)


QUERY_JOBS = [
    local_search_job,
    global_search_job,
    basic_search_job,
    drift_search_job,
    lazy_search_job,
    auto_search_job,
]
