"""Ratings of community reports against a question, 0 to 5: the protocol of a rater, and the embedded engine's rater.

Without a model a rating is the report's relevance to the question (`understanding/relevance.py`), in `RATING_STEPS`.
Relevance does not separate reports for a question that names nothing specific: then the reports' own ranks count
(`worth`). A chat model may rate instead (`model_rating.py`). Keep out: what a rating leads to
(`community_selection.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from graphrag_pipeline.citations import strip_citations
from graphrag_pipeline.query import records
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import content_words, is_overview
from graphrag_pipeline.query.understanding.relevance import Background, make_background, score_relevance

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
