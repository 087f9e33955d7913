"""Global search by a chat model: ratings, points, what is lost alone, and an answer only where there is a point."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.citations import split_written
from graphrag_pipeline.engines.model.answers.points import batch_reports, find_weights, pack_batches, read_points
from graphrag_pipeline.engines.model.answers.writing import list_points
from graphrag_pipeline.engines.model.rating import UNREADABLE, read_rating, read_ratings
from graphrag_pipeline.models.ports import ReplyFormatError
from graphrag_pipeline.models.prompts import default_prompts, load_prompt
from graphrag_pipeline.query import records
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.results import ReportRecord
from graphrag_pipeline.query.search.community_selection import rate_reports
from graphrag_pipeline.query.search.global_ import NO_REPORT, Point
from graphrag_pipeline.settings.settings import GlobalSearchSettings
from graphrag_pipeline.text.tokens import count_tokens_each
from graphrag_pipeline_tests.model_server import Fault, ReceivedRequest, Reply, running_model_server
from graphrag_pipeline_tests.support.models.model_index import open_with_model

SMALL = 3


@pytest.fixture(scope="module")
def reports(carol: GraphIndex) -> tuple[ReportRecord, ...]:
    rows = np.arange(carol.snapshot.n_rows("community_reports"))
    return records.read_reports(carol, rows, np.zeros(len(rows)))


def test_reports_on_tiny_communities_are_shuffled_with_the_others(
    carol: GraphIndex, reports: tuple[ReportRecord, ...]
) -> None:
    batches = batch_reports(carol, reports, 8000, 86)
    n_small = [sum(report.size < SMALL for report in batch.reports) for batch in batches]
    assert sum(n_small[: len(batches) // 2]) > sum(n_small) / 4 and n_small[0] > 0
    expected = sorted(reports, key=lambda report: (-report.level, report.community))
    random.seed(86)
    random.shuffle(expected)
    ends = np.cumsum([len(batch.reports) for batch in batches])
    for batch, end in zip(batches, ends, strict=True):
        shuffled = expected[end - len(batch.reports) : end]
        assert {report.community for report in batch.reports} == {report.community for report in shuffled}


def test_batches_depend_on_the_seed_alone_and_keep_the_limit(
    carol: GraphIndex, reports: tuple[ReportRecord, ...]
) -> None:
    batches = batch_reports(carol, reports, 3000, 1)
    assert batches == batch_reports(carol, reports[::-1], 3000, 1) != batch_reports(carol, reports, 3000, 2)
    assert all(batch.n_tokens <= 3000 or len(batch.reports) == 1 for batch in batches)
    assert sorted(r.id for batch in batches for r in batch.reports) == sorted(report.id for report in reports)


def test_inside_a_batch_the_report_that_most_text_units_mention_comes_first(
    carol: GraphIndex, reports: tuple[ReportRecord, ...]
) -> None:
    weights = dict(zip((report.id for report in reports), find_weights(carol, reports), strict=True))
    assert max(weights.values()) == 1 and min(weights.values()) > 0
    for batch in batch_reports(carol, reports, 8000, 86):
        order = [(weights[report.id], report.rank) for report in batch.reports]
        assert order == sorted(order, reverse=True)
        assert f"(occurrence weight {order[0][0]:.2f}, rank {order[0][1]:g})" in batch.reports[0].title


def test_points_are_added_until_one_does_not_fit() -> None:
    long, short = "A point of many words. " * 20, "Short."
    points = [Point(NO_REPORT, "", text, score, batch) for batch, (text, score) in
              enumerate([(short, 90), (long, 80), (short, 70)])]  # fmt: skip
    texts = list_points(points, 10_000)
    assert texts[1].startswith("----Analyst 2----\nImportance Score: 80\nA point")
    costs = count_tokens_each(texts)
    assert list_points(points, sum(costs)) == texts and list_points(points, sum(costs) - 1) == texts[:2]
    assert list_points(points, sum(costs[:2]) - 1) == texts[:1], "the third would fit, but the second does not"
    assert list_points(points, 1) == texts[:1], "the best point is always read"


QUESTION = "What becomes of Scrooge?"
SHOWN = {"Reports": frozenset({2, 7}), "Entities": frozenset({5})}
ALONE = {"small_reports_per_call": 1}
RATING = {"rating": {"engine": "model"}, "global_search": ALONE}
"""Each report is rated in a call of its own."""


def points(*pairs: tuple[object, object]) -> str:
    return json.dumps({"points": [{"description": text, "score": score} for text, score in pairs]})


@pytest.mark.parametrize(
    ("score", "read"),
    [(85, 85), (85.6, 85), ("85", 85), ("85/100", 85), ("85 %", 85), (0.85, 85),
     ("0.85", 85), ("8.5 out of 10", 85), ("8/10", 80), ("9/5", None), (1.0, 1), (0, None), (101, None),
     (-1, None), ("high", None), (None, None), (True, None), ([85], None)],
)  # fmt: skip
def test_one_bad_score_loses_that_point_alone(score: object, read: int | None) -> None:
    found = read_points(points(("Good.", 40), ("Tried.", score), ("Also good.", 30)), SHOWN)
    assert [text for text, _ in found.points] == ["Good.", *(["Tried."] if read else []), "Also good."]
    assert dict(found.points).get("Tried.") == read
    assert sum(found.lost.values()) == (read is None)


@pytest.mark.parametrize(
    "reply",
    ['{"points": [{"description": "x [Data: Reports (2)]"}]}', '{"points": ["a fact"]}',
     '{"points": [{"description": "", "score": 9}]}', points(("x [Data: Reports (2)]", "high"), ("y", 0))],
)  # fmt: skip
def test_points_that_cannot_be_read_are_no_empty_list(reply: str) -> None:
    with pytest.raises(ReplyFormatError, match=r"the reply has only points without (a score|text)"):
        read_points(reply, SHOWN)


def test_a_point_without_text_is_lost_alone_and_zero_is_dropped() -> None:
    reply = '```json\n{"points": ["no point", {"description": "", "score": 9}, {"description": "x", "score": 0}, '
    found = read_points(reply + '{"description": "Kept", "score": 9}, {"description": "cut of', SHOWN)
    assert found.points == (("Kept", 9),)
    assert found.lost["points of score 0"] == 1 and sum(found.lost.values()) >= 3


def test_citations_of_what_was_not_shown_are_removed_from_points() -> None:
    found = read_points(points(("A [Data: Reports (2, 3); Entities (5, 6)]. B [Data: Claims (1)].", 50)), SHOWN)
    assert found.points == (("A [Data: Reports (2); Entities (5)]. B.", 50),)
    assert found.lost["invented citations"] == 3


ECHOES = load_prompt(None, "global_search_map").echoes
PLACEHOLDER = "What the reports say about the question [Data: Reports (2)]"


def test_points_copied_from_the_prompt_are_dropped_and_a_reply_of_them_alone_is_refused() -> None:
    own = ("Scrooge changes [Data: Reports (2)].", 80)
    found = read_points(points((PLACEHOLDER, 90), ("What the reports support", 100), own), SHOWN, ECHOES)
    assert found.points == (own,) and found.lost == {"points that repeat the prompt": 2}
    with pytest.raises(ReplyFormatError, match=r"only points that repeat the prompt \(1\)"):
        read_points(points((PLACEHOLDER, 0)), SHOWN, ECHOES)
    assert read_points(points((PLACEHOLDER, 0), ("Nothing of this is said.", 0)), SHOWN, ECHOES).points == ()


def test_a_point_needs_a_citation_of_what_was_shown_unless_a_setting_says_otherwise() -> None:
    mixed = points(("A [Data: Reports (2)].", 50), ("B [Data: Reports (77)].", 60), ("C.", 70))
    found = read_points(mixed, SHOWN, is_citation_needed=True)
    assert found.points == (("A [Data: Reports (2)].", 50),)
    assert found.lost == {"points without a citation": 2, "invented citations": 1}
    assert len(read_points(mixed, SHOWN).points) == 3
    with pytest.raises(ReplyFormatError, match=r"only points without a citation \(1\)"):
        read_points(points(("C.", 70), ("D.", 0)), SHOWN, is_citation_needed=True)


def test_the_numbers_of_the_examples_belong_to_no_record() -> None:
    for file, text in default_prompts().items():
        cited = [int(n) for _, _, cited in split_written(text) for _, ns in cited or () for n in ns]
        assert all(number >= 900_000_000 for number in cited), file


def test_the_scores_and_ratings_of_the_examples_are_no_numbers_that_may_be_copied() -> None:
    for file, text in default_prompts().items():
        if file.startswith(("rate_", "drift_primer", "drift_follow", "global_search_map", "lazy_search_map")):
            [shown] = re.findall(r'"(?:score|rating)": ("[^"]*"|[\d.]+)', text)
            assert shown in ('"0 to 5"', '"0 to 100"'), file
    with pytest.raises(ReplyFormatError, match="rating is '0 to 5'"):
        read_rating('{"reason": "It says so.", "rating": "0 to 5"}')
    with pytest.raises(ReplyFormatError, match="without a score"):
        read_points('{"points": [{"description": "Kept", "score": "0 to 100"}]}', SHOWN)


def test_a_reply_without_points_is_refused_and_an_empty_list_is_not() -> None:
    assert read_points('{"points": []}', SHOWN).points == ()
    assert read_points('[{"description": "Bare.", "score": 3}]', SHOWN).points == (("Bare.", 3),)
    for reply in ("I do not know.", '{"score": 3}', "[]"):
        with pytest.raises(ReplyFormatError, match="list of points"):
            read_points(reply, SHOWN)


@pytest.mark.parametrize(
    ("rating", "read"), [(4, 4), (3.6, 3), ("4", 4), ("4/5", 4), (0, 0), (6, None), (-1, None), ("good", None)]
)
def test_a_rating_is_a_number_from_0_to_5(rating: object, read: int | None) -> None:
    reply = json.dumps({"reason": "x", "rating": rating})
    if read is None:
        with pytest.raises(ReplyFormatError, match="not a number from 0 to 5"):
            read_rating(reply)
    else:
        assert read_rating(reply) == read


@given(st.lists(st.integers(1, 900), max_size=40), st.integers(100, 1000))
def test_batches_hold_everything_once_in_order_and_within_the_budget(costs: list[int], max_tokens: int) -> None:
    batches = pack_batches(costs, max_tokens)
    assert [position for batch in batches for position in batch] == list(range(len(costs)))
    assert all(sum(costs[i] for i in batch) <= max_tokens or len(batch) == 1 for batch in batches)


# ----------------------------------------------------------------------------------------------------------- end to end


def is_map(request: ReceivedRequest) -> bool:
    return request.kind == "map"


def answer_all(request: ReceivedRequest) -> Any:
    """Rates by the default rule; one point for each batch; an answer that keeps the points' citations."""
    if request.kind == "map":
        number = request.prompt.partition("# Reports\n[")[2].partition("]")[0]
        return points((f"Scrooge changes [Data: Reports ({number})].", 80), ("Nothing.", 0))
    return None


def test_global_search_by_a_model_rates_maps_reduces_and_accounts(carol: GraphIndex, tmp_path: Path) -> None:
    with running_model_server(answer_all) as server:
        options = {"max_context_tokens": 3000, "threshold": 4}
        index = open_with_model(carol, tmp_path, server, rating=RATING["rating"], global_search=ALONE | options)
        result = index.search(QUESTION, method="global")
        n_map, n_rated = server.count("map"), server.count("rating") + server.count("ratings")
        *pieces, _ = index.stream(QUESTION, method="global")
    static = rate_reports(carol, QUESTION, GlobalSearchSettings(selection="static"))
    selection = result.selection
    assert selection["rated"] == selection["rated_by_model"] >= n_rated > 0 and selection["failed_ratings"] == 0
    assert selection["map"]["batches"] == n_map > 1 and selection["map"]["failed"] == 0 and selection["points"] == n_map
    assert selection["map"]["lost"] == {"points of score 0": n_map}
    assert selection["static_search"]["reports"] == len(static.kept) and selection["static_search"]["calls"] > n_map
    assert selection["static_search"]["prompt_tokens"] > selection["map"]["prompt_tokens"] > 0
    assert "Scrooge changes [1]" in result.answer and result.citations[0].kind == "report"
    assert all(citation.quote for citation in result.citations)
    assert result.usage.by_model["test-chat"].calls == n_rated + n_map + 1
    assert "".join(map(str, pieces)) == result.answer
    assert server.count() == n_rated + n_map + 1, "nothing is paid twice"


@pytest.mark.parametrize("budget", [20_000, 60_000])
def test_a_budget_pays_for_the_map_first_and_names_what_it_kept_from_the_model(
    carol: GraphIndex, tmp_path: Path, budget: int
) -> None:
    def rate_all_high(request: ReceivedRequest) -> Any:
        return {"reason": "x", "rating": 5} if request.kind == "rating" else answer_all(request)

    with running_model_server(rate_all_high) as server:
        index = open_with_model(carol, tmp_path, server, **RATING, reports={"min_report_size": 1})
        result = index.search(QUESTION, method="global", budget=budget)
    selection, n_asked = result.selection, server.count("rating")
    assert selection["rated_by_model"] == n_asked > 0 and selection["failed_ratings"] == 0
    of_budget = selection["options_used"]["budget"]
    assert of_budget["rated_by_embedded"] == selection["rated"] - n_asked > 0
    assert selection["pruned"] == 0, "the model prunes none"
    assert 0 < selection["pruned_by_embedded"] <= of_budget["rated_by_embedded"]
    assert selection["kept"] + selection["pruned_by_embedded"] == selection["rated"]
    assert selection["map"]["batches"] > 0 and selection["map"]["failed"] == 0
    assert "Scrooge changes [1]" in result.answer and server.count("answer") == 1
    assert result.usage.by_model["test-chat"].calls == server.count()


def test_the_rating_model_may_be_another_and_answers_stay_embedded(carol: GraphIndex, tmp_path: Path) -> None:
    rating = {"engine": "model", "model": {"model": "cheap-chat"}, "rated_text": "summary"}
    with running_model_server() as server:
        index = open_with_model(carol, tmp_path, server, rating=rating, answers={"engine": "embedded"})
        result = index.search(QUESTION, method="global")
    assert {call.model for call in server.calls} == {"cheap-chat"} and {call.kind for call in server.calls} <= {
        "rating",
        "ratings",
    }
    assert result.answer.startswith("Extractive answer") and set(result.usage.by_model) == {"embedded", "cheap-chat"}


def test_one_bad_rating_loses_itself_alone(carol: GraphIndex, tmp_path: Path) -> None:
    with running_model_server() as server:
        index = open_with_model(carol, tmp_path, server, **RATING)
        roots = rate_reports(index, QUESTION, index.settings.search("global", max_level=0))
    spoilt = roots.rated[0]
    content = carol.snapshot.take("community_reports", [spoilt.row], ["full_content"])[0]["full_content"]
    with running_model_server([(content[:200], '{"reason": "x", "rating": 9}')]) as server:
        (tmp_path / "again").mkdir()
        index = open_with_model(carol, tmp_path / "again", server, **RATING)
        again = rate_reports(index, QUESTION, index.settings.search("global", max_level=0))
    assert again.rating == {"rated_by_model": len(roots.rated) - 1, "failed_ratings": 1}
    expected = {report.row: report.rating for report in roots.rated} | {spoilt.row: UNREADABLE}
    assert {report.row: report.rating for report in again.rated} == expected


def test_of_many_ratings_those_that_can_be_read_are_read() -> None:
    reply = {"ratings": [{"number": 1, "rating": 3}, {"number": 99, "rating": 1}, {"number": 2, "rating": "?"}, 4]}
    assert read_ratings(json.dumps(reply), [1, 2]) == {1: 3}
    with pytest.raises(ReplyFormatError, match="no rating of a report"):
        read_ratings('{"ratings": []}', [1])


def test_repeats_are_independent_and_the_majority_counts(carol: GraphIndex, tmp_path: Path) -> None:
    seen: dict[str, int] = {}

    def rate(request: ReceivedRequest) -> dict[str, object]:
        seen[request.prompt] = seen.get(request.prompt, 0) + 1
        return {"reason": "x", "rating": (0, 3, 3)[seen[request.prompt] - 1]}

    reports = {"min_report_size": 1}
    with running_model_server(rate) as server:
        rating = {"engine": "model", "num_repeats": 3}
        index = open_with_model(carol, tmp_path, server, reports=reports, rating=rating, global_search=ALONE)
        selection = rate_reports(index, QUESTION, index.settings.search("global"))
    assert set(seen.values()) == {3} and {report.rating for report in selection.rated} == {3}


def test_a_question_may_say_how_reports_are_rated(small: GraphIndex, tmp_path: Path) -> None:
    options = {"num_repeats": 2, "rated_text": "summary", "max_level": 0}
    with running_model_server() as server:
        index = open_with_model(small, tmp_path, server, **RATING, reports={"min_report_size": 1})
        selection = index.search("Who is Marley?", method="global", **options).selection
    prompts = [json.dumps(call.body["messages"]) for call in server.calls if call.kind == "rating"]
    assert len(prompts) == 2 * selection["rated"] and len(set(prompts)) == selection["rated"]
    assert all("A summary." in prompt and "## Finding" not in prompt for prompt in prompts)


def test_without_a_point_nothing_is_written_and_what_was_read_is_told(carol: GraphIndex, tmp_path: Path) -> None:
    with running_model_server([(is_map, points(("Nothing.", 0)))]) as server:
        result = open_with_model(carol, tmp_path, server, **RATING).search(QUESTION, method="global")
    assert server.count("map") > 0 and server.count("answer") == 0
    assert result.answer.startswith("Not in the index: ") and "community reports rated" in result.answer
    assert "read in" in result.answer and result.citations == ()


def test_a_batch_that_fails_is_counted_and_the_others_answer(carol: GraphIndex, tmp_path: Path) -> None:
    n_maps = 0

    def fail_first(request: ReceivedRequest) -> Any:
        nonlocal n_maps
        n_maps += request.kind == "map"
        return Fault("refused") if request.kind == "map" and n_maps == 1 else answer_all(request)

    with running_model_server(fail_first) as server:
        index = open_with_model(carol, tmp_path, server, global_search={"max_context_tokens": 3000})
        selection = index.search(QUESTION, method="global").selection
    assert selection["map"]["failed"] == 1 and "refused" in selection["map"]["failures"][0]
    assert selection["points"] == selection["map"]["batches"] - 1 > 0


def test_a_batch_that_fails_beside_others_that_say_nothing_is_told(carol: GraphIndex, tmp_path: Path) -> None:
    n_maps = 0

    def fail_first(request: ReceivedRequest) -> Any:
        nonlocal n_maps
        n_maps += request.kind == "map"
        return Fault("refused") if n_maps == 1 else points(("Nothing.", 0)) if request.kind == "map" else None

    with running_model_server(fail_first) as server:
        index = open_with_model(carol, tmp_path, server, global_search={"max_context_tokens": 3000})
        result = index.search(QUESTION, method="global")
    unread = result.answering["unread"]
    assert unread["n_failed"] == 1 and unread["n_parts"] == result.selection["map"]["batches"] > 1
    assert "Not in the index" not in result.answer and "could not be read" in result.answer and result.citations


@pytest.mark.parametrize("kind", ["map", "answer"])
def test_where_a_step_fails_the_embedded_engine_answers_and_says_so(
    carol: GraphIndex, tmp_path: Path, kind: str
) -> None:
    with running_model_server(
        lambda request: Fault("refused") if request.kind == kind else answer_all(request)
    ) as server:
        result = open_with_model(carol, tmp_path, server).search(QUESTION, method="global")
    assert result.answer.startswith("The model gave no answer (the model refused")
    assert result.answer.endswith(carol.search(QUESTION, method="global").answer)


def test_the_model_decides_whether_the_reports_answer(carol: GraphIndex, tmp_path: Path) -> None:
    question = "How are lithium batteries recycled?"
    with running_model_server(answer_all) as server:
        result = open_with_model(carol, tmp_path, server).search(question, method="global")
    assert result.selection["map"]["batches"] == server.count("map") > 0 and result.answering["engine"] == "model"


def test_static_search_rates_nothing_and_sends_its_batches_side_by_side(carol: GraphIndex, tmp_path: Path) -> None:
    with running_model_server(answer_all, n_together=2) as server:
        index = open_with_model(carol, tmp_path, server, **RATING)
        result = index.search(QUESTION, method="global", selection="static")
    assert server.count("rating") + server.count("ratings") == 0 and result.selection["rated"] == 0
    assert server.log.most_in_flight > 1, "the answer is written after all of them"
    assert result.selection["map"]["prompt_tokens"] == result.selection["static_search"]["prompt_tokens"]


def test_a_map_reply_that_was_cut_off_keeps_its_whole_points_and_is_counted(carol: GraphIndex, tmp_path: Path) -> None:
    def cut(request: ReceivedRequest) -> Any:
        if request.kind != "map":
            return None
        number = request.prompt.partition("# Reports\n[")[2].partition("]")[0]
        whole = points((f"Scrooge changes [Data: Reports ({number})].", 80), ("He ", 70))
        return Reply(whole[: whole.index("He ") + 2], finish_reason="length")

    with running_model_server(cut) as server:
        selection = open_with_model(carol, tmp_path, server).search(QUESTION, method="global").selection
    assert selection["map"]["failed"] == 0 and selection["points"] == selection["map"]["batches"]
    assert selection["map"]["lost"]["replies cut off"] == selection["map"]["batches"] == server.count("map")


def reply_at_length(request: ReceivedRequest) -> Any:
    """Give six points of 45 words for each report: many more words than the prompt asks for."""
    if request.kind != "map":
        return None
    numbers = re.findall(r"^\[(\d+)\] .* \(occurrence weight", request.prompt, re.MULTILINE)
    words = [f"word{n}" for n in range(45)]
    texts = [f"{place} {' '.join(words)} [Data: Reports ({n})]" for n in numbers for place in range(6)]
    return points(*((text, 50) for text in texts))


def test_long_map_replies_lose_no_point_unless_a_cap_is_set(carol: GraphIndex, tmp_path: Path) -> None:
    asked, options = {}, {"selection": "static", "level": 0}
    runs = {"none": ({}, {}), "cap": ({"max_map_tokens": 900}, {}), "budget": ({}, {"budget": 2_000_000})}
    with running_model_server(reply_at_length) as server:
        for name, (answers, more) in runs.items():
            folder = tmp_path / name
            folder.mkdir()
            index = open_with_model(carol, folder, server, answers={"engine": "model", **answers})
            n_before = len(server.calls)
            selection = index.search(QUESTION, method="global", **options, **more).selection
            maps = [call for call in server.calls[n_before:] if call.kind == "map"]
            asked[name] = (selection["points"], selection["map"]["lost"].get("replies cut off", 0), len(maps))
            n_kept = selection["kept"]
    assert asked["none"][:2] == (6 * n_kept, 0)
    assert asked["cap"][0] < asked["budget"][0] < 6 * n_kept
    assert asked["cap"][1] == asked["cap"][2] and asked["budget"][1] > 0
