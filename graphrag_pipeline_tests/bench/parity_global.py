"""Global searches of ours and of Microsoft GraphRAG with one scripted model: the `global` part of `parity.py`.

Both read `graphrag_pipeline_tests/data/microsoft_christmas_carol`, imported and exported again in Microsoft's layout.
In 100 cases both get the same options, the same rating of each report and the same points of each report. Compared are
the reports rated, their ratings, the reports kept, the batches of the map step in order, and the points that the final
answer is written from. Our side runs whole: model calls go by HTTP to the model server, which replies by script.

The options are those that Microsoft GraphRAG has, under our names (`peer_options`). In every tenth case one score is
not a number. There Microsoft GraphRAG loses the whole batch, so those cases differ by design.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphrag_pipeline.interchange.graphrag_import import import_graphrag
from graphrag_pipeline.interchange.index_export import export_snapshot
from graphrag_pipeline.models.static_embeddings import load_static_embeddings
from graphrag_pipeline.query.answers.answering import choose_answerer
from graphrag_pipeline.query.answers.map_batches import batch_reports
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.search.community_selection import rate_reports, select_global_context
from graphrag_pipeline.settings.settings import GlobalSearchSettings, Settings
from graphrag_pipeline.text import tokens
from graphrag_pipeline_tests.bench.parity import Comparison, Peer, compare
from graphrag_pipeline_tests.model_server import ReceivedRequest, running_model_server
from graphrag_pipeline_tests.support.models.model_index import open_with_model
from graphrag_pipeline_tests.support.models.scripted_ratings import ScriptedRatings
from graphrag_pipeline_tests.support.paths import MICROSOFT_INDEX

RECORDING = "global"
FINEST = 3
ONE_BAD_SCORE = "one bad score loses that point alone, and Microsoft GraphRAG loses its whole batch"
SHARE = "a score between 0 and 1 is read as a share of 100, and Microsoft GraphRAG cuts it to 0"
WHAT = {
    "asked": "reports rated, and how often",
    "ratings": "ratings",
    "kept": "reports kept",
    "batches": "batches of the map step, in order",
    "reduced": "points of the final answer",
}
_BATCHED = re.compile(r"^\[(\d+)\] .* \(occurrence weight \d\.\d\d, rank [\d.]+\)$", re.MULTILINE)
_DATA = re.compile(r"<data>\n(.*)\n</data>", re.DOTALL)


@dataclass(frozen=True)
class Case:
    """One question with its options and scripts.

    Attributes:
        settings: of ours.
        ratings: of each community, one for each repeat; None is a reply that cannot be read.
        points: of each community, as a map call replies.
    """

    place: int
    settings: GlobalSearchSettings
    ratings: dict[int, list[int | None]]
    points: dict[int, dict[str, Any]]

    @property
    def question(self) -> str:
        return f"What becomes of Scrooge, case {self.place}?"

    @property
    def has_bad_score(self) -> bool:
        return self.place % 10 == 9

    @property
    def has_share(self) -> bool:
        """Whether a score is a number between 0 and 1."""
        scores = [point["score"] for point in self.points.values()]
        return any(isinstance(score, float) and 0 < score < 1 for score in scores)


def make_cases(levels: dict[int, int], n: int) -> list[Case]:
    """Return cases that go through all options; `levels` has the level of each community."""
    return [_make_case(place, levels) for place in range(n)]


def _make_case(place: int, levels: dict[int, int]) -> Case:
    n_repeats = 1 + place % 3
    settings = GlobalSearchSettings(
        selection="static" if place % 4 == 3 else "dynamic",
        level=place // 4 % (FINEST + 1),
        all_levels=True,
        max_level=None if place % 8 == 0 else place // 2 % (FINEST + 1),
        threshold=1 + place // 5 % 4,
        keep_parent=place // 2 % 2 == 0,
        fallback_level=place // 3 % (FINEST + 1),
        num_repeats=n_repeats,
        rated_text="summary" if place % 5 == 4 else "full_content",
        max_context_tokens=(2000, 8000, 12000)[place % 3],
        max_answer_tokens=(200, 1000, 12000)[place // 3 % 3],
    )
    ratings = {c: [_rate(place, c, level, repeat) for repeat in range(n_repeats)] for c, level in levels.items()}
    points = {c: _make_point(place, c) for c in levels}
    return Case(place, settings, ratings, points)


def _draw(*key: int) -> int:
    """Return a number that depends on a key only."""
    return int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:4], "big")


def _rate(place: int, community: int, level: int, repeat: int) -> int | None:
    """Return 5 for all in some cases, 0 for all, 0 above a level; else a rating of 0 to 5, rarely an unreadable one."""
    if place % 20 in (4, 5):
        return 5 * (place % 20 == 4)
    if place % 5 == 2 and level < 1 + place % 2:
        return 0
    if _draw(place, community) % 25 == 0:
        return None
    return max(0, _draw(place, community, repeat) % 9 - 3)


def _make_point(place: int, community: int) -> dict[str, Any]:
    drawn = _draw(place, community, 77)
    score: Any = drawn % 101 * (drawn % 4 > 0)
    if drawn % 11 == 0:
        score = min(score, 99) + 0.7
    elif drawn % 13 == 0:
        score = str(score)
    if place % 10 == 9 and community == 9:
        score = "high"
    return {"description": f"Report {community} says so. " * (1 + drawn % 5) + "So it is.", "score": score}


def peer_options(settings: GlobalSearchSettings) -> dict[str, Any]:
    """Return the options of Microsoft GraphRAG that mean the same."""
    is_dynamic = settings.selection == "dynamic"
    return {
        "is_dynamic": is_dynamic,
        "level": settings.max_level if is_dynamic else settings.level,
        "threshold": settings.threshold,
        "keep_parent": settings.keep_parent,
        "num_repeats": settings.num_repeats,
        "use_summary": settings.rated_text == "summary",
        "max_level": settings.fallback_level,
        "max_context_tokens": settings.max_context_tokens,
        "max_data_tokens": settings.max_answer_tokens,
    }


# ----------------------------------------------------------------------------------------------------------------- ours


class _Script:
    """The model server's replies for one case; notes the data of the final answer's prompt."""

    def __init__(self, index: GraphIndex, case: Case) -> None:
        self.ratings = ScriptedRatings(index, lambda community, repeat: case.ratings[community][repeat])
        self.reduced = ""
        self._points = case.points
        numbers, communities = (
            index.column("community_reports", name).tolist() for name in ("human_readable_id", "community")
        )
        self._communities = dict(zip(numbers, communities, strict=True))

    def __call__(self, request: ReceivedRequest) -> Any:
        data = _DATA.search(request.body["messages"][0]["content"]) if "messages" in request.body else None
        if request.kind == "map" and data:
            found = [self._communities[int(number)] for number in _BATCHED.findall(data[1])]
            return {"points": [self._points[community] for community in found]}
        if request.kind == "answer" and data:
            self.reduced = data[1]
            return "The answer."
        return self.ratings(request)


def run_ours(index: GraphIndex, cases: Sequence[Case], folder: Path) -> list[dict[str, Any]]:
    """Return what `peer_global.py` returns, of ours."""
    scripts = {case.question: _Script(index, case) for case in cases}

    def reply(request: ReceivedRequest) -> Any:
        return scripts[request.body["messages"][1]["content"]](request)

    with running_model_server(reply) as server:
        answers = {"engine": "model", "cited_points_only": False}
        asking = open_with_model(index, folder, server, rating={"engine": "model"}, answers=answers)
        return [_run_case(asking, case, scripts[case.question]) for case in cases]


def _run_case(index: GraphIndex, case: Case, script: _Script) -> dict[str, Any]:
    selection = rate_reports(index, case.question, case.settings)
    answerer = choose_answerer(index)
    mapped = answerer.map_reports(case.question, selection, case.settings)
    answerer.write_from_reports(case.question, mapped, selection, case.settings)
    reports = select_global_context(index, selection).reports
    batches = batch_reports(index, reports, case.settings.max_context_tokens, case.settings.seed)
    is_rated = selection.method == "dynamic"
    return {
        "asked": {str(community): n for community, n in script.ratings.rated.items()},
        "ratings": {str(report.community): report.rating for report in selection.rated} if is_rated else {},
        "kept": [str(number) for number in sorted(report.community for report in selection.kept)],
        "batches": [[str(report.community) for report in batch.reports] for batch in batches],
        "reduced": script.reduced,
    }


# ---------------------------------------------------------------------------------------------------------- comparisons


def levels_of(index: GraphIndex) -> dict[int, int]:
    """Return the level of each community that has a report."""
    numbers, levels = (index.column("community_reports", name) for name in ("community", "level"))
    order = np.argsort(numbers)
    return dict(zip(numbers[order].tolist(), levels[order].tolist(), strict=True))


def compare_with_peer(peer: Peer, folder: Path, n_questions: int) -> list[Comparison]:
    """Compare the first cases."""
    import_graphrag(MICROSOFT_INDEX, folder / "root", load_static_embeddings(), Settings())
    with GraphIndex.open(folder / "root") as index:
        cases = make_cases(levels_of(index), n_questions)
        export_snapshot(index.snapshot, folder / "exported", "graphrag")
        request = {
            "ranks": str(tokens._RANKS),
            "tables": str(folder / "exported"),
            "cases": [_request(case) for case in cases],
        }
        theirs = peer.run_recorded("peer_global.py", json.loads(json.dumps(request)), RECORDING)
        (folder / "asking").mkdir()
        ours = run_ours(index, cases, folder / "asking")
    return compare_cases(cases, ours, theirs)


def _request(case: Case) -> dict[str, Any]:
    options = peer_options(case.settings)
    return {"question": case.question, "options": options, "ratings": case.ratings, "points": case.points}


def compare_cases(cases: Sequence[Case], ours: Sequence[Any], theirs: Sequence[Any]) -> list[Comparison]:
    """Compare each output of our searches and the peer's, case by case."""

    def reason_of(place: int) -> str:
        if ours[place]["batches"] != theirs[place]["batches"]:
            return ""
        return ONE_BAD_SCORE if cases[place].has_bad_score else SHARE if cases[place].has_share else ""

    questions = [case.question for case in cases]
    return [
        compare(
            f"global: {what}",
            questions,
            [found[name] for found in ours],
            [found[name] for found in theirs],
            reason_of if name == "reduced" else lambda _: "",
        )
        for name, what in WHAT.items()
    ]
