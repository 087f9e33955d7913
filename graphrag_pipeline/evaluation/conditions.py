"""Conditions: the ways to answer that an evaluation compares, under one name each.

A name is a search method or a baseline, with a variant or options behind it: `local`, `local:graph`, `bm25`,
`global:dynamic:max_level=1`. The names are those of `settings/search_names.py` (`describe_conditions`). `:KEY=VALUE` is
an option of the method's settings, and `C1` is `global:static:level=1`. A condition answers questions
(`answer_question`). One that reads ranked text units also ranks them (`rank_text_units`). C0 to C3, TS and SS are those
of the GraphRAG paper (Edge et al. 2024, arXiv 2404.16130). Keep out: judging.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.questions import SEED
from graphrag_pipeline.query import records
from graphrag_pipeline.query.context import pack_rows, row_costs
from graphrag_pipeline.query.index.graph_index import prepare_baseline, run_steps
from graphrag_pipeline.query.methods.registry import METHODS
from graphrag_pipeline.query.methods.state import SearchRequest, SearchState
from graphrag_pipeline.query.methods.steps import take_relevant
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.search.lazy import LazySelection
from graphrag_pipeline.query.search.raters import RatedUnit
from graphrag_pipeline.query.selection.hybrid_ranking import TEXT_UNIT_VECTORS, searched_words
from graphrag_pipeline.query.selection.hybrid_ranking import rank_text_units as rank_basically
from graphrag_pipeline.settings.file import parse_yaml
from graphrag_pipeline.settings.search_names import PAPER_LEVELS, VARIANTS, describe_conditions, list_conditions

if TYPE_CHECKING:
    from graphrag_pipeline.query.index.graph_index import GraphIndex

Ranker = Callable[["GraphIndex", str, int], list[str]]
"""Ids of the k text units that answer a question, best first."""


def rank_by_words(index: GraphIndex, question: str, k: int) -> list[str]:
    """Rank by BM25."""
    found = index.snapshot.vectors(TEXT_UNIT_VECTORS).search_text(searched_words(question), k)
    return [unit_id for unit_id, _ in found]


def rank_by_vector(index: GraphIndex, question: str, k: int) -> list[str]:
    """Rank by the vectors of whole text units."""
    found = index.snapshot.vectors(TEXT_UNIT_VECTORS).search(index.embed_question(question), k)
    return [unit_id for unit_id, _ in found]


_BARE_RANKERS: dict[str, Ranker] = {"bm25": rank_by_words, "SS": rank_by_vector}
_OF_PAPER = {f"C{level}": ("global", {"selection": "static", "level": level}) for level in PAPER_LEVELS}
_NAMES = {name.casefold(): name for name in describe_conditions() if ":" not in name} | {"vector": "SS"}


@dataclass(frozen=True)
class Condition:
    """One way to answer.

    Attributes:
        name: as the user wrote it.
        method: one of `registry.METHODS`, or SS, bm25, TS.
        options: over the settings of the method; those of `basic_search` for SS and bm25, `lazy_search` for TS.
    """

    name: str
    method: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def section(self) -> str:
        """The method whose settings the condition uses."""
        return {"TS": "lazy"}.get(self.method, "basic" if self.method in _BARE_RANKERS else self.method)

    @property
    def finds_text_units(self) -> bool:
        """Whether its context holds ranked text units."""
        return self.method not in ("global", "TS")

    def settings_of(self, index: GraphIndex) -> Any:
        """Return the settings of its search.

        Raises:
            PipelineError: an option is unknown, or does not validate.
        """
        return METHODS[self.section].settings_of(index.settings, None, self.options)


def parse_condition(text: str) -> Condition:
    """Read `method[:variant][:key=value ...]`.

    Raises:
        PipelineError: the method is unknown, or it has no variants.
    """
    head, *rest = (part.strip() for part in text.split(":"))
    name = _NAMES.get(head.casefold())
    if name is None:
        raise PipelineError(f"no way to answer is called {head!r}; valid: {list_conditions()}")
    method, options = _OF_PAPER.get(name, (name, {}))
    options = dict(options)
    for part in rest:
        key, is_option, value = part.partition("=")
        if not is_option:
            key, value = VARIANTS.get(method, ("", ()))[0], part
            if not key:
                raise PipelineError(f"{text!r}: {name} has no variant {part!r}; an option is written key=value")
            options[key] = value
        else:
            options[key.strip()] = parse_yaml(value)
    return Condition(text.strip(), method, options)


# ------------------------------------------------------------------------------------------------------------ retrieval


def rank_text_units(condition: Condition, index: GraphIndex, question: str, k: int) -> list[str]:
    """Return the ids of the first k text units in the order of the search; fewer if its budget ends before."""
    if condition.method in _BARE_RANKERS:
        return _BARE_RANKERS[condition.method](index, question, k)
    if condition.method == "basic" and not condition.options:
        # Rank by basic search's fusion of both, cut off by k alone.
        return [unit_id for unit_id, _ in rank_basically(index, question, k)]
    found = index.search(question, condition.method, context_only=True, **condition.options)
    return [unit.id for unit in found.context.text_units[:k]]


# -------------------------------------------------------------------------------------------------------------- answers


@dataclass(frozen=True)
class ConditionAnswer:
    """An answer, in markdown without its list of sources, and the seconds it took.

    Attributes:
        context: the records that it was written from.
        engine: "embedded" or "model", whichever wrote it.
        failure: why a model gave no answer; "" if it did, or if no model was used.
    """

    text: str
    seconds: float
    context: Context
    engine: str
    failure: str = ""


def answer_question(condition: Condition, index: GraphIndex, question: str) -> ConditionAnswer:
    """Answer by a condition.

    Raises:
        PipelineError: no call to the model can be answered, or the budget is spent.
    """
    started = time.perf_counter()
    if condition.method in METHODS:
        result = index.search(question, condition.method, **condition.options)
        text, context, how = result.answer, result.context, result.answering
        return ConditionAnswer(text, time.perf_counter() - started, context, how["engine"], how["failure"])
    state = _answer_from_text(condition, index, question)
    answer = state.noted_answer
    return ConditionAnswer(answer.text, time.perf_counter() - started, state.read, answer.engine, answer.failure)


def _answer_from_text(condition: Condition, index: GraphIndex, question: str) -> SearchState:
    """Answer with the steps that follow the choice of a context; the baseline chooses the context itself."""
    request = SearchRequest(question, condition.section, options=condition.options)
    query = prepare_baseline(index, request)
    if condition.method == "TS":
        selection = select_all_text(index, question, query.settings.threshold, SEED)
        state = take_relevant(index, SearchState(query), selection)
    else:
        ids = _BARE_RANKERS[condition.method](index, question, query.settings.top_k)
        rows = index.snapshot.rows_of("text_units", ids)
        costs = row_costs(index.column("text_units", "n_tokens")[rows].tolist())
        kept = pack_rows(costs, query.settings.max_context_tokens)
        units = records.read_text_units(index, rows[kept], np.zeros(len(kept)))
        state = SearchState(query, context=Context(text_units=units))
    return run_steps(index, METHODS[condition.section].steps[1:], state)


def select_all_text(index: GraphIndex, question: str, threshold: int, seed: int) -> LazySelection:
    """Return every text unit, shuffled with a seed, as if all had passed their tests: TS maps them."""
    n_units = index.snapshot.n_rows("text_units")
    rows = list(range(n_units))
    random.Random(seed).shuffle(rows)
    units = tuple(RatedUnit(row, threshold, place) for place, row in enumerate(rows))
    return LazySelection((question,), units, threshold, n_units, n_units)
