"""Global search: community reports rated from the roots down, their findings mapped to points, the points reduced.

Map-reduce over community reports is that of the GraphRAG paper (Edge et al. 2024, arXiv 2404.16130); the rating from
the roots down is GraphRAG's dynamic community selection (Microsoft Research, 2024). Steps: `rate_reports`,
`map_points`, `reduce_points`; each result is a frozen value.

In the embedded engine a report's rating is its relevance to the question (`report_rating.py`). A point is a finding,
with score = 100 (relevance - POINT_FLOOR) / (1 - POINT_FLOOR), from 0 to 100. For a question that names nothing
specific ("What are the main themes?") the reports' own ranks count. A chat model may rate (`model_rating.py`), map
(`answers/model_points.py`) and answer (`answers/model_answerer.py`) instead. If filters leave too few reports for an
overview, none is kept, and `methods/global_.py` reads the texts. Keep out: who maps and answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from graphrag_pipeline.citations import strip_citations
from graphrag_pipeline.query import records
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import content_words, is_overview
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.search.model_rating import ModelRater
from graphrag_pipeline.query.search.report_rating import (
    REPORT_VECTORS,
    RatedReport,
    Rater,
    RelevanceRater,
    are_representative,
    read_background,
    worth,
)
from graphrag_pipeline.query.token_budget import answer_cost
from graphrag_pipeline.query.understanding.document_dates import newest_days
from graphrag_pipeline.query.understanding.relevance import Background, score_relevance
from graphrag_pipeline.settings.settings import GlobalSearchSettings
from graphrag_pipeline.text.extractive import is_near_repeat, words_of
from graphrag_pipeline.text.tokens import count_tokens_each

POINT_FLOOR = 0.3
"""A finding with a relevance below this gets score 0."""
REPORT_SHARE = 0.2
"""Share of the whole report's relevance in the relevance of each of its findings."""
OVERVIEW_SHARE = 0.4
"""For an overview question: score of a report's first finding, as a share of its summary's."""
MAX_UNSEPARATED_ROOTS = 8
"""Number of roots that are kept if no root reaches the threshold or nothing separates them."""
MAX_NEAR_REPORTS = {"embedded": 200, "model": 60}
"""By rating engine: number of reports nearest to the question that are rated although their parents rate too low."""
REPEAT_COSINE = 0.9
NO_REPORT = -1
MAX_DATED = 200
"""Most roots, equal by rating and size, for which the newest document is looked up."""


@dataclass(frozen=True)
class Selection:
    """The reports to read, and how they were chosen.

    Attributes:
        rated: all reports that were rated, by level, then best first.
        is_separated: False if no root stood out, so that the best were kept.
        rating: counts of ratings, if a model rated (`model_rating.py`).
        background: of the question, for the relevance of findings.
    """

    method: str
    rated: tuple[RatedReport, ...]
    threshold: int
    is_overview: bool
    is_separated: bool
    rating: Mapping[str, int] = field(default_factory=dict)
    background: Background | None = field(default=None, compare=False, repr=False)

    @property
    def kept(self) -> list[RatedReport]:
        """The kept reports, best first; ties to the larger community, then to the one with the newest documents."""
        return sorted((r for r in self.rated if r.is_kept), key=worth(self.is_overview, bool(self.rating)))

    def account(self) -> dict[str, Any]:
        """Return the counts of reports that were rated, kept and pruned; replaced parents count as pruned."""
        n_kept = sum(report.is_kept for report in self.rated)
        return {
            "method": self.method,
            "rated": len(self.rated) if self.method == "dynamic" else 0,
            "kept": n_kept,
            "pruned": len(self.rated) - n_kept if self.method == "dynamic" else 0,
            "is_overview": self.is_overview,
            "is_separated": self.is_separated,
            **self.rating,
        }


@dataclass(frozen=True)
class Point:
    """One finding of a report, and how relevant it is to the question, 1-100; its texts cite human-readable ids.

    A model's point has no summary; its report is the first that it cites, or `NO_REPORT` if it was made from text
    units.
    """

    report_row: int
    summary: str
    explanation: str
    score: int


def select_global_context(index: IndexReader, selection: Selection) -> Context:
    """Return the kept reports as records, best first."""
    kept = selection.kept
    rows, ratings = np.array([r.row for r in kept], dtype=np.int64), np.array([r.rating for r in kept])
    return Context(reports=records.read_reports(index, rows, ratings))


# --------------------------------------------------------------------------------------------------------------- rating


def rate_reports(index: IndexReader, question: str, settings: GlobalSearchSettings) -> Selection:
    """Choose the reports to read, by `settings.selection`."""
    if is_overview(question) and not are_representative(index):
        return Selection(settings.selection, (), settings.threshold, True, False)
    by_relevance = RelevanceRater(index, question)
    if settings.selection == "static":
        selection = _select_static(index, by_relevance, settings)
    else:
        engine = index.settings.rating.engine
        opened = _find_opened(by_relevance, settings.threshold, MAX_NEAR_REPORTS[engine])
        if engine == "embedded":
            selection = _select_dynamic(index, by_relevance, settings, _with_children(index, opened))
        else:
            selection = _select_dynamic(index, _model_rater(by_relevance, settings), settings, opened)
    return replace(selection, background=by_relevance.background)


def _model_rater(by_relevance: RelevanceRater, settings: GlobalSearchSettings) -> ModelRater:
    """Return a model's rater that leaves enough tokens for a call about reports and one for the answer."""
    index, needed = by_relevance.index, (settings.max_context_tokens, settings.max_answer_tokens)
    reserve = sum(answer_cost(index.settings, n_data) for n_data in needed)
    return ModelRater(index, by_relevance.question, by_relevance, settings, reserve)


def _select_static(index: IndexReader, rater: Rater, settings: GlobalSearchSettings) -> Selection:
    """Keep all reports of the frontier at a level: never a parent and its child."""
    communities = np.flatnonzero(records.frontier_mask(index, settings.level))
    rated = [_kept(report, True) for report in rater.rate(communities)]
    return Selection("static", tuple(rated), settings.threshold, rater.is_overview, True)


def _select_dynamic(index: IndexReader, rater: Rater, settings: GlobalSearchSettings, opened: set[int]) -> Selection:
    """Rate from the roots down: keep a report at or above the threshold and rate its children, prune the others.

    Unless `keep_parent` is set, a report is replaced by its children that are kept. If nothing separates the roots, the
    best are kept and nothing below them is rated.

    Args:
        opened: communities that are rated although the report above them is not kept.
    """
    numbers, levels, parents = (index.column("communities", name) for name in ("community", "level", "parent"))
    roots = rater.rate(np.flatnonzero(records.root_mask(index)))
    if not _are_separated(roots, rater, settings.threshold) and not opened:
        return _keep_best_roots(index, roots, rater, settings.threshold)
    rated: list[RatedReport] = []
    generation = roots
    kept: dict[int, bool] = {}
    for level in range(settings.max_level + 1):
        passed = [report for report in generation if report.rating >= settings.threshold]
        kept.update({report.community: True for report in passed})
        rated += generation
        if not settings.keep_parent and level:
            of_passed = index.rows_of_numbers("communities", "community", (r.community for r in passed))
            kept.update(dict.fromkeys(parents[of_passed].tolist(), False))
        is_opened = np.isin(numbers, list(opened)) & np.isin(parents, [report.community for report in generation])
        is_child = np.isin(parents, [report.community for report in passed]) | is_opened
        children = np.flatnonzero(is_child & (levels <= settings.max_level))  # with filters, a root may be deeper
        if level == settings.max_level or not len(children):
            break
        generation = rater.rate(children)
    if not any(kept.values()):
        return _keep_best_roots(index, roots, rater, settings.threshold)
    final = tuple(_kept(report, kept.get(report.community, False)) for report in rated)
    return Selection("dynamic", final, settings.threshold, rater.is_overview, True, dict(rater.account))


def _are_separated(roots: list[RatedReport], rater: Rater, threshold: int) -> bool:
    """Return whether ratings separate roots; for an overview question only a model's ratings can."""
    ratings = {report.rating for report in roots}
    if rater.is_overview and (not rater.account or len(ratings) == 1):
        return False
    return any(rating >= threshold for rating in ratings)


def _find_opened(relevance: RelevanceRater, threshold: int, n_near: int) -> set[int]:
    """Return relevant communities among those nearest to the question by vector, and all communities above them.

    A report on hundreds of entities names few of them, so its own words may hide reports below it that answer. Share of
    the reports that matter which are kept, measured by `graphrag_pipeline_tests/bench/global_tokens.py`: 0.74 without
    these communities and 0.92 with them; 0.73 and 0.86 if a model rates.
    """
    if relevance.is_overview:
        return set()
    index = relevance.index
    near = index.snapshot.vectors(REPORT_VECTORS).search(index.embed([relevance.question])[0], n_near)
    rows = index.snapshot.rows_of("community_reports", [report_id for report_id, _ in near])
    communities = _community_rows(index, index.column("community_reports", "community")[rows])
    found = [report.community for report in relevance.rate(communities) if report.rating >= threshold]
    parents = index.column("communities", "parent")
    opened = set(found)
    above = _community_rows(index, found)
    while len(above):
        numbers = np.unique(parents[above])
        opened.update(numbers.tolist())
        above = _community_rows(index, numbers)
    return opened - {-1}


def _with_children(index: IndexReader, communities: set[int]) -> set[int]:
    """Return communities and their children: the embedded engine's ratings cost nothing."""
    is_child = np.isin(index.column("communities", "parent"), list(communities))
    return communities.union(index.column("communities", "community")[is_child].tolist())


def _community_rows(index: IndexReader, numbers: Iterable[int]) -> np.ndarray:
    """Return the rows of communities that may be read, by number."""
    rows = index.rows_of_numbers("communities", "community", numbers)
    return rows[rows >= 0]


def _keep_best_roots(index: IndexReader, roots: list[RatedReport], rater: Rater, threshold: int) -> Selection:
    """Keep the best roots by rating, size and recency; dates are looked up only for roots that are equal otherwise."""
    key = worth(rater.is_overview, bool(rater.account))
    best = sorted(roots, key=key)
    bound = key(best[min(MAX_UNSEPARATED_ROOTS, len(best)) - 1])[:-2] if best else ()
    contenders = [report for report in best if key(report)[:-2] <= bound][: MAX_DATED + MAX_UNSEPARATED_ROOTS]
    days = newest_days(index, index.rows_of_numbers("communities", "community", (r.community for r in contenders)))
    dated = {r.row: replace(r, newest_day=day) for r, day in zip(contenders, days, strict=True)}
    stay = {report.row for report in sorted(dated.values(), key=key)[:MAX_UNSEPARATED_ROOTS]}
    rated = tuple(_kept(dated.get(report.row, report), report.row in stay) for report in roots)
    return Selection("dynamic", rated, threshold, rater.is_overview, False, dict(rater.account))


def _kept(report: RatedReport, is_kept: bool) -> RatedReport:
    return replace(report, is_kept=is_kept)


# ---------------------------------------------------------------------------------------------------------- map, reduce


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
    """Return the best points that fit the budget, without those that repeat an earlier one."""
    texts = [strip_citations(f"{point.summary} {point.explanation}") for point in points]
    vectors = index.embed_passages(texts)
    chosen: list[int] = []
    left = max_tokens
    for i, n_tokens in enumerate(count_tokens_each(texts)):
        if len(chosen) == max_points:
            break
        repeats = is_near_repeat(words_of(texts[i]), (words_of(texts[j]) for j in chosen))
        if n_tokens <= left and not repeats and not any(vectors[i] @ vectors[j] >= REPEAT_COSINE for j in chosen):
            chosen.append(i)
            left -= n_tokens
    return tuple(points[i] for i in chosen)
