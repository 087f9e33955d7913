"""DRIFT search without a model: follow-up questions from the parts of the graph that are near the question.

Findings of reports, and descriptions of relationships that a step has read, are compared with the question by
`understanding/relevance.py`. If one that is near names an entity that no question has named yet, the follow-up question
asks for the connection of that entity with another one: the other end of the relationship, or the first entity that the
question names. Keep out: how many questions are followed, and what is done with the contexts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.query.cited_records import CitedRecords
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import content_words, is_latin
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.search.community_selection import Selection, select_global_context
from graphrag_pipeline.query.search.drift import DriftStep, Primer, merge_contexts, read_locally, read_primer
from graphrag_pipeline.query.search.global_ import map_points, point_score
from graphrag_pipeline.query.understanding.relevance import make_background, score_relevance
from graphrag_pipeline.settings.settings import DriftSearchSettings

MAX_FOLLOW_UPS = 10
"""Follow-up questions kept of one step."""


@dataclass(frozen=True)
class _Lead:
    """A finding or relationship near the question, with its score of 1-100 and the rows of its entities, one or two."""

    score: int
    entities: tuple[int, ...]


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
        leads = [*self._lead_from_findings(selection), *self._lead_from_relationships(context)]
        return Primer(selection, (self._step(self._question, 0, merge_contexts([context, primer]), leads),))

    def follow(self, questions: Sequence[str], depth: int, steps: Sequence[DriftStep]) -> list[DriftStep]:
        """Make steps as `drift.Follower.follow` says."""
        left = self._settings.budget - sum(step.context.n_tokens for step in steps)
        made = []
        for question in questions:
            if left < self._settings.max_context_tokens:
                break
            context = read_locally(self._index, question, self._settings.max_context_tokens)
            made.append(self._step(question, depth, context, self._lead_from_relationships(context)))
            left -= context.n_tokens
        return made

    def _step(self, question: str, depth: int, context: Context, leads: Sequence[_Lead]) -> DriftStep:
        asked = {*self._named, *self._index.names.find(question)}
        best = sorted(leads, key=lambda lead: (-lead.score, lead.entities))
        new = [lead for lead in best if not asked.issuperset(lead.entities)][:MAX_FOLLOW_UPS]
        follow_ups = tuple(dict.fromkeys(self._build_request(lead) for lead in new))
        return DriftStep(question, depth, context, score=new[0].score if new else 0, follow_ups=follow_ups)

    def _build_request(self, lead: _Lead) -> str:
        """Return the question about a lead; names are in row order, so that equal leads give equal questions."""
        rows = lead.entities if len(lead.entities) > 1 else sorted({*lead.entities, *self._named[:1]})
        names = list(dict.fromkeys(self._names_of(rows)))
        if not is_latin(self._question):
            return " ".join(names)
        return f"What does {names[0]} have to do with {names[1]}?" if len(names) > 1 else f"What is said of {names[0]}?"

    def _names_of(self, rows: Sequence[int]) -> Iterator[str]:
        """Yield names as the texts write them."""
        for entity in self._index.snapshot.take("entities", list(rows), ["title", "names"]):
            written = entity["names"] or [entity["title"]]
            yield next((name for name in written if normalize_title(name) == entity["title"]), written[0])

    def _lead_from_findings(self, selection: Selection) -> list[_Lead]:
        finder = CitedRecords(self._index)
        leads = []
        for point in map_points(self._index, self._question, selection):
            for cited in finder.read_cited(f"{point.summary} {point.explanation}"):
                if cited.kind == "relationship":
                    leads.append(_Lead(point.score, self._ends_of([cited.id])[0]))
                elif cited.kind == "entity":
                    [row] = self._index.snapshot.rows_of("entities", [cited.id]).tolist()
                    leads.append(_Lead(point.score, (row,)))
        return [lead for lead in leads if self._has_names(lead)]

    def _lead_from_relationships(self, context: Context) -> list[_Lead]:
        found = context.relationships
        texts = [pair.description for pair in found]
        words, vectors = [content_words(text) for text in texts], self._index.embed_passages(texts)
        background = make_background(self._question, self._index.embed_passages, words, vectors)
        scores = [point_score(value) for value in score_relevance(background, words, vectors)]
        ends = self._ends_of([pair.id for pair in found])
        leads = [_Lead(score, pair) for score, pair in zip(scores, ends, strict=True) if score > 0]
        return [lead for lead in leads if self._has_names(lead)]

    def _ends_of(self, ids: Sequence[str]) -> list[tuple[int, ...]]:
        """Return the rows of the two entities of each relationship."""
        rows, adjacency = self._index.snapshot.rows_of("relationships", list(ids)), self._index.snapshot.adjacency
        ends = np.sort([adjacency.array("relationship_source")[rows], adjacency.array("relationship_target")[rows]], 0)
        return [tuple(pair) for pair in ends.T.tolist()]

    def _has_names(self, lead: _Lead) -> bool:
        """Return whether all entities have names; "door" and "Scrooge's clerk" are not names."""
        return not any(name.islower() or "'s " in name.casefold() for name in self._names_of(lead.entities))
