"""Tokens of a question's budget that stay for the map and the answer while a model rates reports.

Every report that is kept is mapped, so each rating needs room for the report itself. Without a token budget, all
ratings are made and all relevant reports are read. Keep out: the map's calls (`answers/model_points.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.search.report_rating import RatedReport
from graphrag_pipeline.query.token_budget import answer_cost, reply_tokens
from graphrag_pipeline.settings.settings import GlobalSearchSettings
from graphrag_pipeline.text.tokens import count_tokens_each

ROW_TOKENS = 50
"""Most tokens of a report in a prompt besides its text: its number, title line and weight."""
HEADING_TOKENS = 50
"""Most tokens of a prompt's headings and marks."""


class MapReserve:
    """What the map of the reports kept so far needs, and whether the budget pays for more.

    Attributes:
        kept: tokens of each report that is kept.
    """

    def __init__(self, index: IndexReader, question: str, settings: GlobalSearchSettings) -> None:
        self.kept: list[int] = []
        self._index = index
        self._limit = settings.max_context_tokens
        self._is_paid = index.settings.answers.engine == "model"
        self._answer = answer_cost(index.settings, settings.max_answer_tokens) if self._is_paid else 0
        fixed = sum(count_tokens_each([index.prompt("global_search_map").text, question])) + HEADING_TOKENS
        self._call = fixed + reply_tokens(index.settings, "answers")

    @property
    def has_limit(self) -> bool:
        """Whether the question has a token budget."""
        return self._index.calls.budget.most is not None

    def sizes(self, reports: Sequence[RatedReport]) -> list[int]:
        """Return the tokens of each report in the map's prompt."""
        column = self._index.column("community_reports", "n_tokens")
        return [int(column[report.row]) + ROW_TOKENS for report in reports]

    def allows(self, n_tokens: int, more: Sequence[int] = ()) -> bool:
        """Return whether the budget pays for so many tokens, for a map with more reports, and for the answer."""
        return self._index.calls.budget.is_affordable(n_tokens + self.needed(more))

    def needed(self, more: Sequence[int] = ()) -> int:
        """Return the most tokens of a map with more reports, and of the answer."""
        return self._answer + self._map_cost([*self.kept, *more])

    def _map_cost(self, sizes: Sequence[int]) -> int:
        """Return the most tokens of the map; each call but the last is full up to the largest report."""
        if not self._is_paid or not sizes:
            return 0
        n_calls = min(len(sizes), 1 + sum(sizes) // max(self._limit - max(sizes) - HEADING_TOKENS, 1))
        return sum(sizes) + n_calls * self._call
