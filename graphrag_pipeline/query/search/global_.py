"""Global search without a model: the findings of kept reports mapped to points, and the points reduced.

Map-reduce over community reports is that of the GraphRAG paper (Edge et al. 2024, arXiv 2404.16130). A point is a
finding, with score = 100 (relevance - POINT_FLOOR) / (1 - POINT_FLOOR), from 0 to 100. For a question that names
nothing specific ("What are the main themes?") the reports' own ranks count. A chat model may map
(`engines/model/answers/points.py`) and answer (`engines/model/answers/answerer.py`) instead.

Leads: parts of the graph that are near a question, and the question that each leaves open.

Findings of reports, and descriptions of relationships in a context, are compared with the question by
`understanding/relevance.py`. If one that is near names an entity, a further question can ask for the connection of that
entity with another one: the other end of the relationship, or the first entity that the question names.

Keep out: which reports are read
(`community_selection.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from graphrag_pipeline.citations import strip_citations
from graphrag_pipeline.identity import best_name
from graphrag_pipeline.query.cited_records import CitedRecords
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import content_words, is_latin
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.search.community_selection import Selection
from graphrag_pipeline.query.search.raters import (
    RatedReport,
    read_background,
)
from graphrag_pipeline.query.understanding.relevance import make_background, score_relevance
from graphrag_pipeline.text.extractive import is_near_repeat, words_of
from graphrag_pipeline.text.tokens import count_tokens_each


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
            yield best_name(entity["title"], entity["names"])

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


POINT_FLOOR = 0.3
"""A finding with a relevance below this gets score 0."""
REPORT_SHARE = 0.2
"""Share of the whole report's relevance in the relevance of each of its findings."""
OVERVIEW_SHARE = 0.4
"""For an overview question: score of a report's first finding, as a share of its summary's."""
REPEAT_COSINE = 0.9
NO_REPORT = -1


@dataclass(frozen=True)
class Point:
    """One finding of a report, and how relevant it is to the question, 1-100; its texts cite human-readable ids.

    A model's point has no summary; its report is the first that it cites, or `NO_REPORT` if it was made from text
    units.

    Attributes:
        batch: of a model's point: position of the call that gave it, from 0.
    """

    report_row: int
    summary: str
    explanation: str
    score: int
    batch: int = 0


def map_points(index: IndexReader, question: str, selection: Selection) -> tuple[Point, ...]:
    """Score the findings of the kept reports; findings of score 0 are dropped.

    Returns:
        Points, best first. For an overview question every report's title and summary is a point with the report's rank
        as its score, so that an answer covers the communities; findings score less.
    """
    kept = selection.kept
    rows = np.array([report.row for report in kept], dtype=np.int64)
    reports = index.snapshot.take("community_reports", rows, ["title", "summary", "findings"])
    score = _score_overview if selection.is_overview else partial(_score_findings, index, question, selection)
    points = [
        Point(kept[i].row, finding["summary"], finding["explanation"], points)
        for i, finding, points in score(kept, reports)
        if points > 0
    ]
    return tuple(sorted(points, key=lambda point: -point.score))


_Scored = Iterator[tuple[int, dict[str, str], int]]
"""Position of a report, one of its findings, and the finding's score."""


def _score_overview(kept: Sequence[RatedReport], reports: Sequence[dict[str, Any]]) -> _Scored:
    for i, report in enumerate(reports):
        yield i, {"summary": report["title"], "explanation": report["summary"]}, round(10 * kept[i].rank)
        for place, finding in enumerate(report["findings"]):
            yield i, finding, round(10 * kept[i].rank * OVERVIEW_SHARE * 0.9**place)


def _score_findings(
    index: IndexReader, question: str, selection: Selection, kept: Sequence[RatedReport], reports: Sequence[dict]
) -> _Scored:
    found = [(i, finding) for i, report in enumerate(reports) for finding in _findings(report)]
    texts = [strip_citations(f"{finding['summary']} {finding['explanation']}") for _, finding in found]
    background = selection.background or read_background(index, question)
    own = score_relevance(background, [content_words(text) for text in texts], index.embed_passages(texts))
    whole = np.array([kept[i].relevance for i, _ in found])
    relevance = np.where(own < POINT_FLOOR, 0.0, own + REPORT_SHARE * (whole - own))
    return ((i, finding, point_score(value)) for (i, finding), value in zip(found, relevance, strict=True))


def _findings(report: dict[str, Any]) -> list[dict[str, str]]:
    """Return a report's findings; if it has none, as on a tiny community, its title and summary."""
    return report["findings"] or [{"summary": report["title"], "explanation": report["summary"]}]


def point_score(relevance: float) -> int:
    """Return the score, 0-100, of a relevance of 0-1."""
    return max(0, min(100, round(100 * (float(relevance) - POINT_FLOOR) / (1 - POINT_FLOOR))))


def reduce_points(index: IndexReader, points: tuple[Point, ...], max_tokens: int, max_points: int) -> tuple[Point, ...]:
    """Return the best points until one does not fit the budget, without those that repeat an earlier one."""
    texts = [strip_citations(f"{point.summary} {point.explanation}") for point in points]
    vectors = index.embed_passages(texts)
    chosen: list[int] = []
    left = max_tokens
    for i, n_tokens in enumerate(count_tokens_each(texts)):
        if len(chosen) == max_points or n_tokens > left:
            break
        repeats = is_near_repeat(words_of(texts[i]), (words_of(texts[j]) for j in chosen))
        if not repeats and not any(vectors[i] @ vectors[j] >= REPEAT_COSINE for j in chosen):
            chosen.append(i)
            left -= n_tokens
    return tuple(points[i] for i in chosen)
