"""Global search without a model: the findings of kept reports mapped to points, and the points reduced.

Map-reduce over community reports is that of the GraphRAG paper (Edge et al. 2024, arXiv 2404.16130). A point is a
finding, with score = 100 (relevance - POINT_FLOOR) / (1 - POINT_FLOOR), from 0 to 100. For a question that names
nothing specific ("What are the main themes?") the reports' own ranks count. A chat model may map
(`answers/model_points.py`) and answer (`answers/model_answerer.py`) instead. Keep out: which reports are read
(`community_selection.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from graphrag_pipeline.citations import strip_citations
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import content_words
from graphrag_pipeline.query.search.community_selection import Selection
from graphrag_pipeline.query.search.report_rating import (
    RatedReport,
    read_background,
)
from graphrag_pipeline.query.understanding.relevance import score_relevance
from graphrag_pipeline.text.extractive import is_near_repeat, words_of
from graphrag_pipeline.text.tokens import count_tokens_each

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
