"""Strict packing of local contexts: the budget of each part as Microsoft GraphRAG divides and fills it.

Each part has its share of the budget and no more. It ends at the first row that does not fit, even if a later one
would. Relationships and claims come for a growing number of matched entities, as long as they fit beside the table of
entities; at the first number that does not fit, those of the number before are kept. Rows cost the tokens of their
text (`strict_tables.py`). Keep out: orders (`local_ranking.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphrag_pipeline.query import records
from graphrag_pipeline.query.context_style import ContextStyle
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.search.local_ranking import (
    RankedRelationships,
    rank_claims,
    rank_relationships_of_prefixes,
)
from graphrag_pipeline.query.strict_tables import heading_of, row_of
from graphrag_pipeline.settings.settings import LocalSearchSettings
from graphrag_pipeline.text.tokens import count_tokens, count_tokens_each

_BLOCKS = {"reports": 2, "text_units": 4}
"""Rows of long records that are read and counted at once."""
_BLOCK = 32
"""Rows of other records that are read and counted at once."""


class _Costs:
    """Tokens of the rows of one part, read and counted when they are needed, and kept.

    Args:
        read: rows and their scores -> records, in order.
    """

    def __init__(self, part: str, style: ContextStyle, read: Callable[[np.ndarray, np.ndarray], Sequence[Any]]) -> None:
        self._part, self._style, self._read = part, style, read
        self._records: dict[int, Any] = {}
        self._tokens: dict[tuple[int, float, bool], int] = {}

    def fit(self, rows: np.ndarray, scores: np.ndarray, budget: int, has_links: bool = False) -> tuple[int, int]:
        """Return how many rows, the first in order, fit under the heading, and the tokens of both."""
        spent = count_tokens(heading_of(self._part, self._style, has_links))
        block = _BLOCKS.get(self._part, _BLOCK)
        shown = scores if has_links else np.zeros(len(rows))  # a row shows the score as its links, or not at all
        keys = [(row, score, has_links) for row, score in zip(rows.tolist(), shown.tolist(), strict=True)]
        for n, key in enumerate(keys):
            if key not in self._tokens:
                self._count([k for k in keys[n : n + block] if k not in self._tokens])
            if spent + self._tokens[key] > budget:
                return n, spent
            spent += self._tokens[key]
        return len(rows), spent

    def _count(self, keys: list[tuple[int, float, bool]]) -> None:
        new = np.array([row for row, _, _ in keys if row not in self._records], dtype=np.int64)
        self._records.update(zip(new.tolist(), self._read(new, np.zeros(len(new))), strict=True))
        texts = [row_of(self._part, self._record(row, score), self._style, has_links) for row, score, has_links in keys]
        self._tokens.update(zip(keys, count_tokens_each(texts), strict=True))

    def _record(self, row: int, score: float) -> Any:
        record = self._records[row]
        return replace(record, score=score) if score else record


def fit_reports(
    index: IndexReader, rows: np.ndarray, n_inside: np.ndarray, settings: LocalSearchSettings, limit: int
) -> np.ndarray:
    """Return the positions of the reports that fit; by rank if a model gets the rank, else in order."""
    read = records.read_summaries if settings.use_community_summary else records.read_reports
    costs = _Costs("reports", ContextStyle.of_settings(settings), lambda at, scores: read(index, at, scores))
    n, _ = costs.fit(rows, n_inside, int(limit * settings.community_share))
    if settings.include_community_rank:
        return np.argsort(-index.column("community_reports", "rank")[rows[:n]], kind="stable")
    return np.arange(n)


def fit_text_units(index: IndexReader, rows: np.ndarray, settings: LocalSearchSettings, limit: int) -> int:
    """Return how many text units, the first in order, fit."""
    style = ContextStyle.of_settings(settings)
    costs = _Costs("text_units", style, lambda at, scores: records.read_text_units(index, at, scores))
    return costs.fit(rows, np.zeros(len(rows)), int(limit * settings.text_unit_share))[0]


def fit_local(
    index: IndexReader, entity_rows: np.ndarray, settings: LocalSearchSettings, limit: int
) -> tuple[int, RankedRelationships, int]:
    """Fit entities, relationships and claims into what reports and text units leave.

    Returns:
        The number of entities, the relationships, and the number of claims (`rank_claims`), the first in order.
    """
    style = ContextStyle.of_settings(settings)
    budget = int(limit * (1 - settings.community_share - settings.text_unit_share))
    entities, relationships, claims = _costs_of_tables(index, style)
    has_claims = index.snapshot.n_rows("covariates") > 0
    claim_rows, claimants = rank_claims(index, entity_rows)
    n_entities, entity_tokens = entities.fit(entity_rows, np.zeros(len(entity_rows)), budget)
    ranked = rank_relationships_of_prefixes(
        index, entity_rows, settings.top_k_relationships, settings.relationship_ranking_attribute
    )
    kept, n_claims = RankedRelationships.none(), 0
    for n, found in enumerate(ranked, start=1):
        about = claim_rows[claimants < n]
        has_links = bool(found.n_touched[:1].any())
        fit, cost = relationships.fit(found.rows, found.n_touched, budget, has_links) if len(found.rows) else (0, 0)
        fit_about, about_cost = claims.fit(about, np.zeros(len(about)), budget) if has_claims else (0, 0)
        if entity_tokens + cost + about_cost > budget:
            break
        kept, n_claims = found.take(np.arange(fit)), fit_about
    return n_entities, kept, n_claims


def _costs_of_tables(index: IndexReader, style: ContextStyle) -> tuple[_Costs, _Costs, _Costs]:
    return (
        _Costs("entities", style, lambda rows, scores: records.read_entities(index, rows, scores, [""] * len(rows))),
        _Costs(
            "relationships",
            style,
            lambda rows, scores: records.read_relationships(index, rows, scores, np.zeros(len(rows), dtype=bool)),
        ),
        _Costs("claims", style, lambda rows, scores: records.read_claims(index, rows, scores)),
    )
