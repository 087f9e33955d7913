"""Leads: parts of the graph that are near a question, and the question that each leaves open.

Findings of reports, and descriptions of relationships in a context, are compared with the question by
`understanding/relevance.py`. If one that is near names an entity, a further question can ask for the connection of that
entity with another one: the other end of the relationship, or the first entity that the question names. Keep out: which
leads are followed.
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
from graphrag_pipeline.query.search.community_selection import Selection
from graphrag_pipeline.query.search.global_ import map_points, point_score
from graphrag_pipeline.query.understanding.relevance import make_background, score_relevance


@dataclass(frozen=True)
class Lead:
    """A finding or relationship near a question.

    Attributes:
        score: nearness, 0-100.
        entities: their rows, one or two.
        weight: of the relationship; 0 for a finding.
    """

    score: int
    entities: tuple[int, ...]
    weight: float = 0.0


class LeadFinder:
    """Finder of leads near one question.

    Args:
        question: the user's.
    """

    def __init__(self, index: IndexReader, question: str) -> None:
        self._index = index
        self._question = question
        self._named = index.names.find(question)

    def ask(self, lead: Lead) -> str:
        """Return the question about a lead; names are in row order, so that equal leads give equal questions."""
        rows = lead.entities if len(lead.entities) > 1 else sorted({*lead.entities, *self._named[:1]})
        names = list(dict.fromkeys(self.names_of(rows)))
        if not is_latin(self._question):
            return " ".join(names)
        return f"What does {names[0]} have to do with {names[1]}?" if len(names) > 1 else f"What is said of {names[0]}?"

    def names_of(self, rows: Sequence[int]) -> Iterator[str]:
        """Yield names as the texts write them."""
        for entity in self._index.snapshot.take("entities", list(rows), ["title", "names"]):
            written = entity["names"] or [entity["title"]]
            alike = [name for name in written if normalize_title(name) == entity["title"]] or written
            yield next((name for name in alike if not name.isupper()), alike[0])

    def of_findings(self, selection: Selection) -> list[Lead]:
        """Return the leads of the records that the findings of kept reports cite."""
        finder = CitedRecords(self._index)
        leads = []
        for point in map_points(self._index, self._question, selection):
            for cited in finder.read_cited(f"{point.summary} {point.explanation}"):
                if cited.kind == "relationship":
                    leads.append(Lead(point.score, self._ends_of([cited.id])[0]))
                elif cited.kind == "entity":
                    [row] = self._index.snapshot.rows_of("entities", [cited.id]).tolist()
                    leads.append(Lead(point.score, (row,)))
        return [lead for lead in leads if self.has_names(lead)]

    def of_relationships(self, context: Context, least_score: int = 1) -> list[Lead]:
        """Return the leads of the relationships of a context that score at least this; 0: all."""
        found = context.relationships
        texts = [pair.description for pair in found]
        words, vectors = [content_words(text) for text in texts], self._index.embed_passages(texts)
        background = make_background(self._question, self._index.embed_passages, words, vectors)
        scores = [point_score(value) for value in score_relevance(background, words, vectors)]
        ends = self._ends_of([pair.id for pair in found])
        every = zip(scores, ends, found, strict=True)
        leads = [Lead(score, rows, pair.weight) for score, rows, pair in every if score >= least_score]
        return [lead for lead in leads if self.has_names(lead)]

    def _ends_of(self, ids: Sequence[str]) -> list[tuple[int, ...]]:
        """Return the rows of the two entities of each relationship."""
        rows, adjacency = self._index.snapshot.rows_of("relationships", list(ids)), self._index.snapshot.adjacency
        ends = np.sort([adjacency.array("relationship_source")[rows], adjacency.array("relationship_target")[rows]], 0)
        return [tuple(pair) for pair in ends.T.tolist()]

    def has_names(self, lead: Lead) -> bool:
        """Return whether all entities have names; "door" and "Scrooge's clerk" are not names."""
        return not any(name.islower() or "'s " in name.casefold() for name in self.names_of(lead.entities))
