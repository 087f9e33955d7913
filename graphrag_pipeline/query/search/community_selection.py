"""Selection of the community reports that a global search reads: static or dynamic, and the options of either.

Static selection reads the reports of one level (Edge et al. 2024, arXiv 2404.16130). Dynamic community selection
(Microsoft Research, 2024) rates reports from the roots down. An irrelevant report hides all below it, the children of a
relevant one are rated next, and only relevant reports are kept. If none is relevant, none is kept.

The embedded engine goes beyond that, because words and vectors rate less well than a model: `nearest_reports`,
`best_roots` and `overview_roots` keep reports that its ratings alone would not. `fallback_level` and
`keep_parent: false` are ways of Microsoft GraphRAG. `Selection.options_used` says what each changed. Keep out: ratings
(`raters.py`, `engines/model/rating.py`), and what is made of the reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from graphrag_pipeline.query import records
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import is_overview
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.search.raters import (
    MAX_UNSEPARATED_ROOTS,
    REPORT_VECTORS,
    RatedReport,
    RelevanceRater,
    ReportRater,
    are_representative,
    choose_rater,
    worth,
)
from graphrag_pipeline.query.understanding.document_dates import newest_days
from graphrag_pipeline.query.understanding.relevance import Background
from graphrag_pipeline.settings.settings import GlobalSearchSettings

NEAREST_REPORTS = 200
"""Reports nearest to the question by vector that are rated although a report above them is irrelevant."""
MAX_DATED = 200
"""Most roots, equal by rating and size, for which the newest document is looked up."""


@dataclass(frozen=True)
class Selection:
    """The reports to read, and how they were chosen.

    Attributes:
        rated: all reports that were rated, by level, then best first.
        is_separated: False if ratings chose no report: none is kept, or the best roots are.
        rating: counts of ratings, if a model rated (`engines/model/rating.py`).
        options_used: what each option did that goes beyond dynamic community selection.
        background: of the question, for the relevance of findings.
    """

    method: str
    rated: tuple[RatedReport, ...]
    threshold: int
    is_overview: bool
    is_separated: bool
    rating: Mapping[str, int] = field(default_factory=dict)
    options_used: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    background: Background | None = field(default=None, compare=False, repr=False)

    @property
    def kept(self) -> list[RatedReport]:
        """The kept reports, best first; ties to the larger community, then to the one with the newest documents."""
        return sorted((r for r in self.rated if r.is_kept), key=worth(self.is_overview, bool(self.rating)))

    @property
    def is_irrelevant(self) -> bool:
        """Whether reports were rated and none is kept, although the token budget paid for all ratings."""
        return self._has_none and not self.n_unpaid

    @property
    def is_unpaid(self) -> bool:
        """Whether none is kept, and the token budget did not pay for all ratings."""
        return self._has_none and bool(self.n_unpaid)

    @property
    def _has_none(self) -> bool:
        return self.method == "dynamic" and bool(self.rated) and not any(report.is_kept for report in self.rated)

    @property
    def n_unpaid(self) -> int:
        """Number of reports that the model did not rate, because the token budget of the question does not allow it."""
        return self.options_used.get("budget", {}).get("rated_by_embedded", 0)

    def describe(self) -> str:
        """Return a summary: "12 community reports rated (2 by the model), none of them relevant to the question".

        It says how many the model rated if the embedded engine rated others in its place.
        """
        n_rated, n_kept = len(self.rated), len(self.kept)
        n_by_model = self.rating.get("rated_by_model", n_rated)
        by_model = f" ({n_by_model} by the model)" if n_by_model < n_rated else ""
        rated = f"{n_rated} community report{'s' * (n_rated != 1)} rated{by_model}"
        return f"{rated}, {n_kept or 'none'} of them relevant to the question"

    def account(self) -> dict[str, Any]:
        """Return the counts of reports that were rated, kept and pruned.

        With a model, `pruned` counts reports that it rated; `pruned_by_embedded` counts those that the embedded engine
        rated in its place. Both, `kept`, and the parents that `options_used.keep_parent` counts add up to `rated`.
        """
        left_out = [report for report in self.rated if not report.is_kept and self.method == "dynamic"]
        pruned = [report for report in left_out if not report.is_replaced]
        by_embedded = {"pruned_by_embedded": sum(report.is_unasked for report in pruned)} if self.rating else {}
        return {
            "method": self.method,
            "rated": len(self.rated) if self.method == "dynamic" else 0,
            "kept": sum(report.is_kept for report in self.rated),
            "pruned": sum(not report.is_unasked for report in pruned),
            **by_embedded,
            "is_overview": self.is_overview,
            "is_separated": self.is_separated,
            **self.rating,
            "options_used": {name: dict(counts) for name, counts in self.options_used.items()},
        }


def select_global_context(index: IndexReader, selection: Selection) -> Context:
    """Return the kept reports as records, best first."""
    kept = selection.kept
    rows, ratings = np.array([r.row for r in kept], dtype=np.int64), np.array([r.rating for r in kept])
    return Context(reports=records.read_reports(index, rows, ratings))


def rate_reports(index: IndexReader, question: str, settings: GlobalSearchSettings) -> Selection:
    """Choose the reports to read, by `settings.selection`."""
    if is_overview(question) and not are_representative(index):
        return Selection(settings.selection, (), settings.threshold, True, False)
    by_relevance = RelevanceRater(index, question)
    if settings.selection == "static":
        selection = _select_static(index, by_relevance, settings)
    else:
        selection = _select_dynamic(
            index, by_relevance, choose_rater(index).of_reports(by_relevance, settings), settings
        )
    return replace(selection, background=by_relevance.background)


def rate_without_model(index: IndexReader, question: str, settings: GlobalSearchSettings) -> Selection:
    """Choose the reports to read by dynamic selection of the embedded engine, which costs nothing."""
    by_relevance = RelevanceRater(index, question)
    selection = _select_dynamic(index, by_relevance, by_relevance, settings)
    return replace(selection, background=by_relevance.background)


def _select_static(index: IndexReader, rater: ReportRater, settings: GlobalSearchSettings) -> Selection:
    """Keep all reports of the frontier at a level: never a parent and its child, unless `all_levels` is set."""
    is_large = find_large(index, settings)
    is_read = records.frontier_mask(index, settings.level) & is_large
    options = _describe_hidden(index, is_large)
    if settings.all_levels:
        n_frontier = int(is_read.sum())
        is_read = is_read | (
            index.row_mask("communities") & (index.column("communities", "level") <= settings.level) & is_large
        )
        options["all_levels"] = {"kept": int(is_read.sum()) - n_frontier}
    rated = [replace(report, is_kept=True) for report in rater.rate(np.flatnonzero(is_read))]
    return Selection("static", tuple(rated), settings.threshold, rater.is_overview, True, options_used=options)


# -------------------------------------------------------------------------------------------------------------- dynamic


def _select_dynamic(
    index: IndexReader, by_relevance: RelevanceRater, rater: ReportRater, settings: GlobalSearchSettings
) -> Selection:
    """Rate from the roots down (see the module)."""
    roots = rater.rate(np.flatnonzero(records.root_mask(index) & find_large(index, settings)))
    is_embedded = rater is by_relevance
    if is_embedded and rater.is_overview:
        return _keep_best_roots(index, rater, settings, roots, roots, "overview_roots")
    opened = _find_opened(by_relevance, settings) if is_embedded else _Opened()
    descent = _Descent(index, rater, settings, opened)
    descent.run(roots)
    options = descent.options_used()
    if is_embedded and not descent.kept:
        best = _keep_best_roots(index, rater, settings, roots, descent.rated, "best_roots")
        return replace(best, options_used={**options, **best.options_used})
    rated = tuple(
        replace(report, is_kept=report.community in descent.kept, is_replaced=report.community in descent.replaced)
        for report in descent.rated
    )
    is_separated = bool(descent.kept)
    return Selection(
        "dynamic", rated, settings.threshold, rater.is_overview, is_separated, dict(rater.account), options
    )


def find_large(index: IndexReader, settings: GlobalSearchSettings) -> np.ndarray:
    """Return which communities have `min_community_size` entities, bool (n communities,)."""
    is_large: np.ndarray = index.column("communities", "size") >= settings.min_community_size
    return is_large


def _describe_hidden(index: IndexReader, is_large: np.ndarray) -> dict[str, dict[str, int]]:
    n_hidden = int((index.row_mask("communities") & ~is_large).sum())
    return {"min_community_size": {"not_read": n_hidden}} if n_hidden else {}


class _Descent:
    """The way down from the roots.

    Attributes:
        rated: the reports on the way, by level.
        kept: communities whose reports are kept.
        replaced: communities whose relevant reports give way to relevant ones below them (`keep_parent: false`).
    """

    def __init__(self, index: IndexReader, rater: ReportRater, settings: GlobalSearchSettings, opened: _Opened) -> None:
        self.rated: list[RatedReport] = []
        self.kept: set[int] = set()
        self.replaced: set[int] = set()
        self._rater, self._settings, self._opened = rater, settings, opened
        self._index = index
        self._numbers, self._levels, self._parents = (
            index.column("communities", name) for name in ("community", "level", "parent")
        )
        self._is_large = find_large(index, settings)
        self._added: dict[str, set[int]] = {"nearest_reports": set(), "fallback_level": set()}

    def run(self, roots: list[RatedReport]) -> None:
        """Rate level by level until no report is left to rate."""
        generation, level = roots, 0
        while generation:
            self.rated += generation
            passed = [report for report in generation if report.rating >= self._settings.threshold]
            self._keep(passed)
            level += 1
            communities = self._find_next(generation, passed, level)
            generation = self._rater.rate(communities) if len(communities) else []

    def _keep(self, passed: list[RatedReport]) -> None:
        numbers = {report.community for report in passed}
        self.kept |= numbers
        if not self._settings.keep_parent:
            rows = self._index.rows_of_numbers("communities", "community", sorted(numbers))
            replaced = self.kept.intersection(self._parents[rows].tolist())
            self.replaced |= replaced
            self.kept -= replaced

    def _find_next(self, generation: list[RatedReport], passed: list[RatedReport], level: int) -> np.ndarray:
        """Return the rows of the communities to rate next: children, opened ones, or the fallback's."""
        is_child = np.isin(self._parents, [report.community for report in passed])
        is_opened = np.isin(self._numbers, list(self._opened.communities)) & ~is_child
        is_opened &= np.isin(self._parents, [report.community for report in generation])
        found = self._within(is_child | is_opened)
        self._added["nearest_reports"].update(self._numbers[self._within(is_opened)].tolist())
        self._add_below(found)
        if len(found) or self.kept or level > self._settings.fallback_level:
            return found
        is_rated = np.isin(self._numbers, [report.community for report in self.rated])
        found = self._within((self._levels == level) & self._index.row_mask("communities") & ~is_rated)
        self._added["fallback_level"].update(self._numbers[found].tolist())
        return found

    def _add_below(self, communities: np.ndarray) -> None:
        """Count reports to an option if the report above them was rated only through it."""
        numbers, parents = self._numbers[communities], self._parents[communities]
        for added in self._added.values():
            added.update(numbers[np.isin(parents, list(added))].tolist())

    def _within(self, mask: np.ndarray) -> np.ndarray:
        """Return the rows of a mask down to `max_level`; with filters, a root may be deeper."""
        most = self._settings.max_level
        mask = mask & self._is_large
        return np.flatnonzero(mask if most is None else mask & (self._levels <= most))

    def options_used(self) -> dict[str, Mapping[str, int]]:
        """Return what the options changed: reports that only they let be rated and kept, and parents replaced."""
        used: dict[str, Mapping[str, int]] = {
            **_describe_hidden(self._index, self._is_large),
            **self._rater.options_used,
        }
        looked_up = {"looked_up": self._opened.n_looked_up} if self._opened.n_looked_up else {}
        for name, added in self._added.items():
            n_found = looked_up if name == "nearest_reports" else {}
            n_added = {"rated": sum(r.community in added for r in self.rated), "kept": len(self.kept & added)}
            used |= {name: n_found | n_added} if n_found or added else {}
        if self.replaced:
            used["keep_parent"] = {"dropped": len(self.replaced)}
        return used


@dataclass(frozen=True)
class _Opened:
    """Communities whose reports are rated below irrelevant ones too, and how many reports were looked up for them."""

    communities: frozenset[int] = frozenset()
    n_looked_up: int = 0


def _find_opened(relevance: RelevanceRater, settings: GlobalSearchSettings) -> _Opened:
    """Return relevant communities among those nearest to the question by vector, and all communities above them.

    A report on hundreds of entities names few of them, so its own words may hide reports below it that answer.
    `graphrag_pipeline_tests/bench/global_tokens.py` measures how many of the reports that matter are kept with these
    communities and without. Their children are opened too.
    """
    if relevance.is_overview:
        return _Opened()
    index = relevance.index
    near = index.snapshot.vectors(REPORT_VECTORS).search(index.embed_question(relevance.question), NEAREST_REPORTS)
    rows = index.snapshot.rows_of("community_reports", [report_id for report_id, _ in near])
    communities = _community_rows(index, index.column("community_reports", "community")[rows])
    found = [report.community for report in relevance.rate(communities) if report.rating >= settings.threshold]
    parents = index.column("communities", "parent")
    opened = set(found)
    above = _community_rows(index, found)
    while len(above):
        numbers = np.unique(parents[above])
        opened.update(numbers.tolist())
        above = _community_rows(index, numbers)
    is_child = np.isin(parents, list(opened - {-1}))
    opened.update(index.column("communities", "community")[is_child].tolist())
    return _Opened(frozenset(opened - {-1}), len(communities))


def _community_rows(index: IndexReader, numbers: Iterable[int]) -> np.ndarray:
    """Return the rows of communities that may be read, by number."""
    rows = index.rows_of_numbers("communities", "community", numbers)
    return rows[rows >= 0]


def _keep_best_roots(
    index: IndexReader,
    rater: ReportRater,
    settings: GlobalSearchSettings,
    roots: list[RatedReport],
    rated: list[RatedReport],
    option: str,
) -> Selection:
    """Keep the best roots by rating, size and recency; dates are looked up only for roots that are equal otherwise.

    Args:
        option: `best_roots` or `overview_roots`, for the account.
    """
    most = MAX_UNSEPARATED_ROOTS
    key = worth(rater.is_overview, bool(rater.account))
    best = sorted(roots, key=key)
    bound = key(best[min(most, len(best)) - 1])[:-2] if best else ()
    contenders = [report for report in best if key(report)[:-2] <= bound][: MAX_DATED + most]
    days = newest_days(index, index.rows_of_numbers("communities", "community", (r.community for r in contenders)))
    dated = {r.row: replace(r, newest_day=day) for r, day in zip(contenders, days, strict=True)}
    stay = {report.row for report in sorted(dated.values(), key=key)[:most]}
    final = tuple(replace(dated.get(report.row, report), is_kept=report.row in stay) for report in rated)
    hidden = _describe_hidden(index, find_large(index, settings))
    options = {**hidden, **rater.options_used, option: {"kept": len(stay)}}
    return Selection("dynamic", final, settings.threshold, rater.is_overview, False, dict(rater.account), options)
