"""Questions to a model with a small window: contexts become shorter, nothing fails, and what is left out is counted."""

from __future__ import annotations

from pathlib import Path

from graphrag_pipeline.engines.model.answers.shown import shorten_context
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.rendering import render_context
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.text.tokens import count_tokens
from graphrag_pipeline_tests.model_server import running_model_server
from graphrag_pipeline_tests.support.models.model_index import open_with_model

QUESTION = "Who haunted Scrooge?"
RATED = {"answers": {"engine": "model"}, "rating": {"engine": "model", "rated_text": "full_content"},
         "global_search": {"small_reports_per_call": 1}}  # fmt: skip


def prompt_tokens(small: GraphIndex, folder: Path, method: str) -> int:
    folder.mkdir()
    with running_model_server() as server:
        open_with_model(small, folder, server).search(QUESTION, method=method)
        return max(call.prompt_tokens for call in server.calls)


def test_an_answer_is_written_from_what_fits_and_says_what_does_not(small: GraphIndex, tmp_path: Path) -> None:
    window = prompt_tokens(small, tmp_path / "a", "local") - 10
    with running_model_server(dialect="llama.cpp", max_context_tokens=window) as server:
        short = {"engine": "model", "model": {"max_reply_tokens": 20}}
        index = open_with_model(small, tmp_path, server, answers=short)
        result = index.search(QUESTION)
        assert (result.answering["engine"], result.answering["failure"]) == ("model", "")
        assert result.answering["left_out"] >= 1
        assert [call.status for call in server.calls][-1] == 200
        assert all(call.prompt_tokens <= window for call in server.calls if call.status == 200)
        assert index.search(QUESTION).answer == result.answer, "the same again, from the store"


def test_points_without_room_for_a_reply_are_a_failure_that_is_not_paid(small: GraphIndex, tmp_path: Path) -> None:
    window = prompt_tokens(small, tmp_path / "a", "global") - 10
    with running_model_server(dialect="llama.cpp", max_context_tokens=window) as server:
        result = open_with_model(small, tmp_path, server).search(QUESTION, method="global")
        assert [call.status for call in server.calls] == [400], "the window is learnt, and no half fits"
        assert result.selection["map"]["batches"] == result.selection["map"]["failed"]
        assert "do not fit the window of test-chat" in result.answering["failure"]


def test_a_set_window_lowers_the_limit_of_contexts() -> None:
    from graphrag_pipeline.query.methods.registry import look_up_method

    values = {"answers": {"engine": "model"}, "chat_model": {"model": "m", "context_window": 4096}}
    settings = Settings.model_validate(values)
    limits = [look_up_method(name).settings_of(settings, None, {}) for name in ("local", "basic", "drift")]
    assert [getattr(one, "max_context_tokens") for one in limits] == [1671] * 3  # noqa: B009


def test_a_shorter_context_loses_no_more_than_it_must_and_its_first_passage_last(carol: GraphIndex) -> None:
    context = carol.search(QUESTION).context
    whole = count_tokens(render_context(context))
    passage = context.text_units[0].n_tokens
    for room in (passage // 2, 3 * passage, 4 * passage):
        shorter = shorten_context(context, whole - room)
        assert shorter is not None and room / 2 < count_tokens(render_context(shorter)) <= room
        assert bool(shorter.text_units) == (room > passage)


def test_a_learnt_window_leaves_as_much_for_the_context_as_for_one_that_is_set(
    carol: GraphIndex, tmp_path: Path
) -> None:
    with running_model_server(dialect="llama.cpp", max_context_tokens=900) as server:
        result = open_with_model(carol, tmp_path, server, answers={"engine": "model"}).search(QUESTION)
        [answered] = [call for call in server.calls if call.status == 200]
    assert answered.prompt_tokens > 400, "a quarter of the window is left for the reply"
    assert result.answering["engine"] == "model"


def test_follow_ups_of_drift_are_asked_from_what_fits(carol: GraphIndex, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with running_model_server() as server:
        whole = open_with_model(carol, tmp_path / "a", server).search(QUESTION, method="drift", depth=1)
        window = max(call.prompt_tokens for call in server.calls if call.kind == "primer") * 3 // 4
    with running_model_server(dialect="llama.cpp", max_context_tokens=window) as server:
        index = open_with_model(
            carol, tmp_path, server, answers={"engine": "model", "model": {"max_reply_tokens": 300}}
        )
        result = index.search(QUESTION, method="drift", depth=1)
        assert 400 in {call.status for call in server.calls if call.kind == "primer"}
    assert result.answering["engine"] == "model" and result.answering["unread"] is None
    assert result.citations and whole.citations


def test_a_report_that_is_longer_than_the_window_is_rated_by_its_beginning(carol: GraphIndex, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with running_model_server() as server:
        open_with_model(carol, tmp_path / "a", server, **RATED).search(QUESTION, method="global")
        window = max(call.prompt_tokens for call in server.calls if call.kind == "rating") * 3 // 4
    with running_model_server(dialect="llama.cpp", max_context_tokens=window) as server:
        result = open_with_model(carol, tmp_path, server, **RATED).search(QUESTION, method="global")
        answered = [call for call in server.calls if call.kind == "rating" and call.status == 200]
    assert result.selection["failed_ratings"] == 0 and result.selection["shortened_reports"] >= 1
    assert len(answered) == result.selection["rated_by_model"]
