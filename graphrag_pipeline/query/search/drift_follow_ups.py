"""DRIFT search without a model: follow-up questions from the parts of the graph that are near the question.

A lead (`leads.py`) whose entities no question has named yet becomes a follow-up question: it asks for the connection of
its two entities, or of one with the first entity that the question names. Keep out: how many questions are followed,
and what is done with the contexts.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.search.community_selection import Selection, select_global_context
from graphrag_pipeline.query.search.drift import DriftStep, Primer, merge_contexts, read_locally, read_primer
from graphrag_pipeline.query.search.leads import Lead, LeadFinder
from graphrag_pipeline.settings.settings import DriftSearchSettings

MAX_FOLLOW_UPS = 10
"""Follow-up questions kept of one step."""


class GraphFollower:
    """Follows names through the graph (see the module); a `drift.Follower`.

    Args:
        question: the user's.
    """

    def __init__(self, index: IndexReader, question: str, settings: DriftSearchSettings) -> None:
        self._index = index
        self._question = question
        self._settings = settings
        self._named = index.names.find(question)
        self._leads = LeadFinder(index, question)

    def start(self, selection: Selection) -> Primer:
        """Return the first step: a local search of the question, and what it and the findings leave open.

        Nothing can be followed for a question that names nothing specific: then only the reports are read.
        """
        limit = min(self._settings.budget, self._index.settings.local_search.max_context_tokens)
        if selection.is_overview:
            context = read_primer(self._index, self._question, selection, limit)
            return Primer(selection, (DriftStep(self._question, 0, context),))
        primer = select_global_context(self._index, selection)
        context = read_locally(self._index, self._question, limit)
        leads = [*self._leads.of_findings(selection), *self._leads.of_relationships(context)]
        return Primer(selection, (self._step(self._question, 0, merge_contexts([context, primer]), leads),))

    def follow(self, questions: Sequence[str], depth: int, steps: Sequence[DriftStep]) -> list[DriftStep]:
        """Make steps as `drift.Follower.follow` says."""
        left = self._settings.budget - sum(step.context.n_tokens for step in steps)
        made = []
        for question in questions:
            if left < self._settings.max_context_tokens:
                break
            context = read_locally(self._index, question, self._settings.max_context_tokens)
            made.append(self._step(question, depth, context, self._leads.of_relationships(context)))
            left -= context.n_tokens
        return made

    def _step(self, question: str, depth: int, context: Context, leads: Sequence[Lead]) -> DriftStep:
        asked = {*self._named, *self._index.names.find(question)}
        best = sorted(leads, key=lambda lead: (-lead.score, lead.entities))
        new = [lead for lead in best if not asked.issuperset(lead.entities)][:MAX_FOLLOW_UPS]
        follow_ups = tuple(dict.fromkeys(self._leads.ask(lead) for lead in new))
        return DriftStep(question, depth, context, score=new[0].score if new else 0, follow_ups=follow_ups)
