"""Global searches of ours and of Microsoft GraphRAG with one scripted model: the `global` part of `parity.py`.

Both read `graphrag_pipeline_tests/data/microsoft_christmas_carol`, imported and exported again in Microsoft's layout.
In 100 cases both get the same options, the same rating of each report and the same points of each report. Compared are
the reports rated, their ratings, the reports kept, the batches of the map step in order, and the points that the final
answer is written from. Our side runs whole: model calls go by HTTP to the model server, which replies by script.

The options are those that Microsoft GraphRAG has, under our names (`peer_options`). In seven of ten cases all scores
are numbers from 0 to 100 that both read alike: no difference is allowed. Three of ten have odd scores, which both read
differently by design: shares such as 0.7, one that is not a number, or both. There a difference has a reason only if
it is proved: Microsoft GraphRAG gets the case again with the odd scores as we read them (`repair`), and must then write
from the points that we wrote from. In the cases with exact budgets (`_exact_budget`) all points have the same number of
tokens, and the limit is a multiple of it or one less.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.engines.model.answers.points import batch_reports
from graphrag_pipeline.interchange.graphrag_import import import_graphrag
from graphrag_pipeline.interchange.index_export import export_snapshot
from graphrag_pipeline.query.answers.answering import choose_answerer
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
REASONS = {
    "shares": "a score between 0 and 1 is read as a share of 100, and Microsoft GraphRAG cuts it to 0",
    "words": "one score that is no number loses that point alone, and Microsoft GraphRAG loses its whole batch",
    "both": "of both kinds of scores together",
}
"""Repair of a case's scores -> why its points differ, if the peer's points after the repair are ours before it."""
ODD_SCORES = {7: "both", 8: "shares", 9: "words"}
"""Last digit of a case's place -> its odd scores; the other cases have none."""
REDUCED = "reduced"
WHAT = {
    "asked": "reports rated, and how often",
    "ratings": "ratings",
    "kept": "reports kept",
    "batches": "batches of the map step, in order",
}
"""Outputs that no case may differ in; the points of the final answer are compared by kind of score."""
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
    def odd_scores(self) -> str:
        """Which scores both programs read differently, a key of `REASONS`; "" if there are none."""
        return ODD_SCORES.get(self.place % 10, "")


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
        small_reports_per_call=1,
        num_repeats=n_repeats,
        rated_text="summary" if place % 5 == 4 else "full_content",
        max_context_tokens=(2000, 8000, 12000)[place % 3],
        max_answer_tokens=_exact_budget(place) if _is_exact(place) else (200, 1000, 12000)[place // 3 % 3],
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


def _is_exact(place: int) -> bool:
    """Whether the points of a case have one number of tokens, and its limit is at a multiple of it."""
    return place % 10 in (0, 4)


def _exact_budget(place: int) -> int:
    """Return a limit that some points fill to the last token, or one token less."""
    example = f"----Analyst 1----\nImportance Score: 50\n{_describe_point(1, 1)}"
    return tokens.count_tokens(example) * (4 + place // 10) - (place // 2 % 2)


def _describe_point(community: int, n_sentences: int) -> str:
    return f"Report {community} says so. " * n_sentences + "So it is."


def _make_point(place: int, community: int) -> dict[str, Any]:
    drawn = _draw(place, community, 77)
    score: Any = drawn % 101 * (drawn % 4 > 0)
    if drawn % 11 == 0:
        score = max(1, min(score, 99)) + 0.7
    elif drawn % 13 == 0:
        score = str(score)
    odd = ODD_SCORES.get(place % 10)
    if odd in ("shares", "both") and drawn % 7 == 0:
        score = drawn % 9 / 10 + 0.1
    if odd in ("words", "both") and community == 9:
        score = "high"
    n_sentences = 1 if _is_exact(place) else 1 + drawn % 5
    return {"description": _describe_point(community, n_sentences), "score": score}


def repair(case: Case, name: str) -> Case:
    """Return a case with some odd scores as we read them: shares are of 100, a point with another word is left out.

    Args:
        name: a key of `REASONS`.
    """
    points = case.points
    if name in ("shares", "both"):
        points = {c: {**point, "score": _read_share(point["score"])} for c, point in points.items()}
    if name in ("words", "both"):
        points = {c: point for c, point in points.items() if point["score"] != "high"}
    return replace(case, points=points)


def _read_share(score: Any) -> Any:
    return round(100 * score) if isinstance(score, float) and 0 < score < 1 else score


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
            return {"points": [self._points[community] for community in found if community in self._points]}
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
        runs = {"": cases, **repaired_cases(cases)}
        request = {
            "ranks": str(tokens._RANKS),
            "tables": str(folder / "exported"),
            "cases": [request_of(case) for run in runs.values() for case in run],
        }
        replies = iter(peer.run("peer_global.py", json.loads(json.dumps(request))))
        theirs = {name: [next(replies) for _ in run] for name, run in runs.items()}
        peer.record(RECORDING, theirs)
        (folder / "asking").mkdir()
        (folder / "repaired").mkdir()
        ours = run_ours(index, cases, folder / "asking")
        repaired = run_ours(index, runs["both"], folder / "repaired")
    return [*compare_cases(cases, ours, theirs), compare_repaired(runs["both"], repaired, theirs)]


def repaired_cases(cases: Sequence[Case]) -> dict[str, list[Case]]:
    """Return the cases with odd scores after each repair of `REASONS`."""
    return {name: [repair(case, name) for case in cases if case.odd_scores] for name in REASONS}


def request_of(case: Case) -> dict[str, Any]:
    """Return a case as `peer_global.py` reads it."""
    options = peer_options(case.settings)
    return {"question": case.question, "options": options, "ratings": case.ratings, "points": case.points}


def compare_cases(cases: Sequence[Case], ours: Sequence[Any], theirs: Mapping[str, Sequence[Any]]) -> list[Comparison]:
    """Compare each output of our searches and the peer's, case by case.

    Args:
        theirs: outputs of the cases at ""; of those with odd scores after each repair.
    """
    questions, plain = [case.question for case in cases], theirs[""]
    compared = [
        compare(f"global: {what}", questions, [found[name] for found in ours], [found[name] for found in plain])
        for name, what in WHAT.items()
    ]
    return [*compared, _compare_plain_points(cases, ours, plain), _compare_odd_points(cases, ours, theirs)]


def _compare_plain_points(cases: Sequence[Case], ours: Sequence[Any], theirs: Sequence[Any]) -> Comparison:
    """Compare the points of the final answer where all scores are whole numbers or round down to one: all are equal."""
    places = [place for place, case in enumerate(cases) if not case.odd_scores]
    return _compare_points("plain scores", cases, ours, theirs, places)


def _compare_odd_points(cases: Sequence[Case], ours: Sequence[Any], theirs: Mapping[str, Sequence[Any]]) -> Comparison:
    """Compare those of cases with odd scores; a reason is the repair after which the peer's points are ours."""
    places = [place for place, case in enumerate(cases) if case.odd_scores]

    def name_reason(odd: int) -> str:
        our = ours[places[odd]][REDUCED]
        return next((why for name, why in REASONS.items() if theirs[name][odd][REDUCED] == our), "")

    return _compare_points("odd scores", cases, ours, theirs[""], places, name_reason)


def compare_repaired(cases: Sequence[Case], ours: Sequence[Any], theirs: Mapping[str, Sequence[Any]]) -> Comparison:
    """Compare the points of both programs after both repairs: all are equal."""
    return _compare_points("odd scores repaired", cases, ours, theirs["both"], range(len(cases)))


def _compare_points(
    scores: str,
    cases: Sequence[Case],
    ours: Sequence[Any],
    theirs: Sequence[Any],
    places: Sequence[int],
    reason_of: Callable[[int], str] = lambda _: "",
) -> Comparison:
    return compare(
        f"global, {scores}: points of the final answer, in order",
        [cases[place].question for place in places],
        [ours[place][REDUCED] for place in places],
        [theirs[place][REDUCED] for place in places],
        reason_of,
    )
