"""A scripted rater: the model server rates each report as a test wants it, by the report's community."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from graphrag_pipeline.query import records
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.model_requests import as_data
from graphrag_pipeline_tests.model_server import ReceivedRequest

RatingOf = Callable[[int, int], int | None]
"""Community, and how many times it was rated before -> its rating; None is a reply that cannot be read."""

_DATA = re.compile(r"<data>\n(.*)\n</data>", re.DOTALL)
_NUMBERED = re.compile(r"^\[(\d+)\]", re.MULTILINE)


class ScriptedRatings:
    """Reply rule of a model server for prompts that rate reports; it leaves other requests to the server's rules.

    Attributes:
        rated: number of ratings of each community; asking again after an unreadable reply does not count.
    """

    def __init__(self, index: GraphIndex, rating_of: RatingOf) -> None:
        self.rated: Counter[int] = Counter()
        self._rating_of = rating_of
        rows = np.arange(index.snapshot.n_rows("community_reports"))
        reports = records.read_reports(index, rows, np.zeros(len(rows)))
        self._of_text = {as_data(f"{report.title}\n\n{report.summary}"): report.community for report in reports}
        self._of_text |= {as_data(report.content): report.community for report in reports}
        self._of_number = {report.human_readable_id: report.community for report in reports}

    def __call__(self, request: ReceivedRequest) -> Any:
        """Return the reply to a request, or None for the server's own."""
        if request.kind not in ("rating", "ratings"):
            return None
        found = _DATA.search(request.body["messages"][0]["content"])
        assert found, "a prompt that rates holds its data between marks"
        if request.kind == "rating":
            is_retry = len(request.body["messages"]) > 2
            rating = self._rate(self._of_text[found[1]], is_retry)
            return "I cannot say." if rating is None else {"reason": "scripted", "rating": rating}
        numbers = [int(number) for number in _NUMBERED.findall(found[1]) if int(number) in self._of_number]
        return {"ratings": [{"number": n, "rating": self._rate(self._of_number[n])} for n in numbers]}

    def _rate(self, community: int, is_retry: bool = False) -> int | None:
        self.rated[community] += not is_retry
        return self._rating_of(community, self.rated[community] - 1)
