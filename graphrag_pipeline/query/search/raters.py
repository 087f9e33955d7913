"""The port `Rater`: how relevant reports and text units are to a question.

A rating, 0 to 5, is the relevance of words and vectors (`understanding/relevance.py`) in `RATING_STEPS`; a text unit
rates as its best passage does. Relevance does not separate reports for a question that names nothing specific: then the
reports' own ranks count (`worth`). An engine may return it, or rate in its own way (`engines/model/rating.py`) and use
it for ties and for what it does not rate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from graphrag_pipeline.citations import strip_citations
from graphrag_pipeline.ports import load_port
from graphrag_pipeline.query import records
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import content_words, is_overview
from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.query.search.lazy_candidates import RankedUnits
from graphrag_pipeline.query.selection.answer_passages import rank_passages
from graphrag_pipeline.query.selection.local_text_units import N_RESERVED, N_SEEDS
from graphrag_pipeline.query.selection.passages import passages_of, sentences_of, text_of
from graphrag_pipeline.query.understanding.relevance import Background, make_background, score_relevance
from graphrag_pipeline.settings.settings import GlobalSearchSettings, LazySearchSettings

MAX_BACKGROUND_UNITS = 50
NEAREST_RATING = 2
"""Without a model, the least rating of the first candidates."""


@dataclass(frozen=True)
class RatedUnit:
    """A text unit with its rating, 0-5; `row` is its position in the contract table, `place` its rank by similarity."""

    row: int
    rating: int
    place: int


_Passages = tuple[list[frozenset[str]], np.ndarray]
"""Content words and vectors of the passages of a text unit."""


class UnitRater(Protocol):
    """Rates text units against one question."""

    @property
    def account(self) -> Mapping[str, int]:
        """Counts of ratings; empty if no model rates."""
        ...

    def rate(self, batches: Sequence[Sequence[int]]) -> list[list[RatedUnit]]:
        """Rate batches of rows of text units, results in order."""
        ...


class RelevanceUnitRater:
    """The embedded engine's rater: the relevance of the best passage to any subquery.

    Text units that PageRank reaches from the names in the question rate at least by their nearness: the second of two
    facts that a question joins shares few words with it. The first `N_RESERVED` candidates, as many as local search has
    places for, rate at least `NEAREST_RATING`, so that the search is not below basic search. Those that
    PageRank does not reach do not if none of them answers (`selection/answer_passages.py`).
    """

    def __init__(self, index: IndexReader, subqueries: Sequence[str], candidates: RankedUnits) -> None:
        self.account: Mapping[str, int] = {}
        self._index = index
        self._place = {row: place for place, row in enumerate(candidates.rows.tolist())}
        self._nearness = candidates.nearness.copy()
        first = self._read_units(candidates.rows[:N_SEEDS].tolist())
        is_covered = all(rank_passages(index, text, first, 1).is_answer for text in subqueries)
        lifted = self._nearness[:N_RESERVED]
        lifted[(lifted > 0) | is_covered] = np.maximum(lifted, RATING_STEPS[NEAREST_RATING - 1])[
            (lifted > 0) | is_covered
        ]
        background = candidates.rows[:MAX_BACKGROUND_UNITS].tolist()
        read = zip(background, self._split_units(background), strict=True)
        self._kept: dict[int, _Passages] = dict(read)  # they are also the first to be rated
        words, vectors, _ = self._read_passages(background)
        self._backgrounds = [make_background(text, index.embed_passages, words, vectors) for text in subqueries]

    def rate(self, batches: Sequence[Sequence[int]]) -> list[list[RatedUnit]]:
        """Rate as `UnitRater.rate` says."""
        return [self._rate_batch(list(batch)) for batch in batches]

    def _rate_batch(self, rows: list[int]) -> list[RatedUnit]:
        words, vectors, owners = self._read_passages(rows)
        relevance = np.max([score_relevance(background, words, vectors) for background in self._backgrounds], axis=0)
        rated = []
        for i, row in enumerate(rows):
            place = self._place[row]
            value = max(relevance[owners == i].max(initial=0.0), self._nearness[place])
            rated.append(RatedUnit(row, sum(bool(value >= step) for step in RATING_STEPS), place))
        return rated

    def _read_passages(self, rows: list[int]) -> tuple[list[frozenset[str]], np.ndarray, np.ndarray]:
        """Return content words and vectors of the passages of text units, and the position of each one's text unit."""
        other = [row for row in rows if row not in self._kept]
        fresh = dict(zip(other, self._split_units(other), strict=True)) if other else {}
        found = [self._kept[row] if row in self._kept else fresh[row] for row in rows]
        vectors = [some for _, some in found] or [self._index.embed_passages([])]
        owners = np.repeat(np.arange(len(found)), [len(words) for words, _ in found])
        return [one for words, _ in found for one in words], np.concatenate(vectors), owners

    def _split_units(self, rows: list[int]) -> list[_Passages]:
        """Return content words and vectors of the passages of each text unit."""
        texts = [[text_of(passage) for passage in passages_of(sentences_of(unit))] for unit in self._read_units(rows)]
        vectors = self._index.embed_passages([text for some in texts for text in some])
        ends = np.cumsum([len(some) for some in texts])
        split = np.split(vectors, ends[:-1]) if texts else []
        return [(list(map(content_words, some)), own) for some, own in zip(texts, split, strict=True)]

    def _read_units(self, rows: list[int]) -> Sequence[TextUnitRecord]:
        return records.read_text_units(self._index, np.array(rows, dtype=np.int64), np.zeros(len(rows)))


REPORT_VECTORS = "default-community-full_content"
RATING_STEPS = (0.2, 0.3, 0.4, 0.5, 0.6)
"""A report's rating is the number of these that its relevance reaches."""
MAX_UNSEPARATED_ROOTS = 8
"""Number of roots that represent an index where ratings do not separate them."""
MAX_BACKGROUND_REPORTS = 1_000
REPRESENTATIVE_SHARE = 0.5


@dataclass(frozen=True)
class RatedReport:
    """A report with its rating against the question; `row` is its position in the contract table.

    Attributes:
        newest_day: of the documents behind it, as `date.toordinal` counts; 0 if unknown or not looked up.
        is_replaced: whether it is left out because a relevant report below it replaces it (`keep_parent: false`).
        is_unasked: whether the embedded engine rated it in place of the model, which was not asked about it.
    """

    row: int
    community: int
    level: int
    size: int
    rank: float
    relevance: float
    rating: int
    is_kept: bool = False
    newest_day: int = 0
    is_unasked: bool = False
    is_replaced: bool = False


def worth(is_overview: bool, is_by_model: bool) -> Callable[[RatedReport], tuple[float, ...]]:
    """Return the key that sorts reports best first: by rating, size and recency.

    A model's rating counts for an overview question too; without a model the reports' own ranks do.
    """
    if not is_overview:
        return lambda report: (-report.rating, -report.relevance, -report.size, -report.newest_day, report.row)
    if is_by_model:
        return lambda report: (-report.rating, -report.size, -report.newest_day, report.row)
    return lambda report: (-report.rank, -report.size, -report.newest_day, report.row)


def are_representative(index: IndexReader) -> bool:
    """Return whether readable communities hold at least `REPRESENTATIVE_SHARE` of the entities in readable text units.

    Filters hide a community whole if it has a document that they exclude. Entities that many documents mention are in
    such communities, so the reports that are left may be about what a single document names.
    """
    if index.document_mask is None:
        return True
    adjacency, n_entities = index.snapshot.adjacency, index.snapshot.n_rows("entities")
    mentioned = adjacency.of_all("entity_text_units", np.arange(n_entities))[0]
    in_community = np.zeros(n_entities, dtype=bool)
    in_community[adjacency.of_all("entity_communities", np.arange(n_entities))[0]] = True
    has_reports = bool(index.row_mask("community_reports").any())
    return has_reports and float(in_community[mentioned].mean()) >= REPRESENTATIVE_SHARE


class ReportRater(Protocol):
    """Rates the reports of communities against one question.

    Attributes:
        is_overview: the question has no words that could separate reports.
        account: counts of ratings; empty if no model rates.
    """

    is_overview: bool
    account: Counter[str]

    @property
    def options_used(self) -> Mapping[str, Mapping[str, int]]:
        """What each option changed in how reports are rated."""
        ...

    def rate(self, communities: np.ndarray) -> list[RatedReport]:
        """Rate the reports of community rows; best first. A community without a report is left out."""
        ...


class RelevanceRater:
    """Rates reports of communities against one question, by relevance; the largest roots are the background."""

    def __init__(self, index: IndexReader, question: str) -> None:
        self.index, self.question = index, question
        self.account: Counter[str] = Counter()
        self.options_used: Mapping[str, Mapping[str, int]] = {}
        self.is_overview = is_overview(question)
        self.background = read_background(index, question)

    def rate(self, communities: np.ndarray) -> list[RatedReport]:
        """Rate the reports of community rows; best first. A community without a report is left out."""
        index = self.index
        numbers = index.column("communities", "community")[communities]
        rows = index.rows_of_numbers("community_reports", "community", numbers)
        rows = rows[rows >= 0]
        relevance = score_relevance(self.background, *_read_texts(index, rows))
        names = ("community", "level", "size", "rank")
        columns = {name: index.column("community_reports", name)[rows] for name in names}
        rated = [
            RatedReport(
                row=int(row),
                community=int(columns["community"][i]),
                level=int(columns["level"][i]),
                size=int(columns["size"][i]),
                rank=float(columns["rank"][i]),
                relevance=float(relevance[i]),
                rating=sum(bool(relevance[i] >= step) for step in RATING_STEPS),
            )
            for i, row in enumerate(rows)
        ]
        return sorted(rated, key=lambda r: (-r.relevance, -r.size, r.row))


def read_background(index: IndexReader, question: str) -> Background:
    """Return what the largest roots have in common, and the weights of the question's words among them."""
    roots = np.flatnonzero(records.root_mask(index))
    sizes = index.column("communities", "size")[roots]
    largest = np.sort(roots[np.argsort(-sizes, kind="stable")[:MAX_BACKGROUND_REPORTS]])
    numbers = index.column("communities", "community")[largest]
    rows = index.rows_of_numbers("community_reports", "community", numbers)
    return make_background(question, index.embed_passages, *_read_texts(index, rows[rows >= 0]))


def _read_texts(index: IndexReader, rows: np.ndarray) -> tuple[list[frozenset[str]], np.ndarray]:
    """Return content words and vectors of reports."""
    reports = index.snapshot.take("community_reports", rows, ["id", "full_content"])
    texts = [strip_citations(report["full_content"]) for report in reports]
    if index.is_static:
        vectors = index.snapshot.vectors(REPORT_VECTORS).vectors([report["id"] for report in reports])
    else:
        vectors = index.embed_passages(texts)
    return [content_words(text) for text in texts], vectors


class Rater(Protocol):
    """Makes the raters of one question; made from an `IndexReader`."""

    def of_reports(self, by_relevance: RelevanceRater, settings: GlobalSearchSettings) -> ReportRater:
        """Return the rater of community reports for dynamic community selection."""
        ...

    def of_text_units(self, question: str, by_relevance: RelevanceUnitRater, settings: LazySearchSettings) -> UnitRater:
        """Return the rater of text units for lazy search."""
        ...


def choose_rater(index: IndexReader) -> Rater:
    """Return the rater of `rating.engine`.

    Raises:
        PipelineError: no such rater is installed.
    """
    rater: Rater = load_port("rater", index.settings.rating.engine)(index)
    return rater
