"""Windows and caps of a chat model: read, set or learnt; prompts that do not fit, replies that never exceed them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.models.endpoints.chat_sender import THINKING_TOKENS
from graphrag_pipeline.models.endpoints.windows import (
    MARGIN,
    ModelWindow,
    PromptSize,
    choose_listed,
    least_reply,
    read_model_windows,
    read_refusal,
)
from graphrag_pipeline.models.ports import CallFailedError
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline_tests.model_server import Fault, ReceivedRequest, Reply, running_model_server
from graphrag_pipeline_tests.model_server.dialects import too_long
from graphrag_pipeline_tests.support.models.model_clients import ask, chat_model, complete

FACT = "fact: Marley was dead"
REFUSALS: list[tuple[str, dict[str, Any], int | None, int | None]] = [
    ("request (4338 tokens) exceeds the available context size (2048 tokens), try increasing it", {}, 2048, 4338),
    ("too long", {"n_prompt_tokens": 4338, "n_ctx": 2048}, 2048, 4338),
    ("This model's maximum context length is 8192 tokens. However, your messages had 9000 tokens.", {}, 8192, None),
    ("This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, "
     "1000 in the completion).", {}, 4096, 4000),
    ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", {}, 4096, 5000),
    ("Requested tokens (2113) exceed context window of 2048", {}, 2048, 2113),
    ("prompt is too long: 210000 tokens > 200000 maximum", {}, 200000, 210000),
    ("model is loaded with context length of only 4096 tokens", {}, 4096, None),
    ("Input validation error: `inputs` must have less than 512 tokens. Given: 807", {}, 512, 807),
    ("the prompt exceeds the context", {}, None, None),
]  # fmt: skip


@pytest.mark.parametrize(("message", "fields", "window", "n_prompt"), REFUSALS, ids=range(len(REFUSALS)))
def test_a_refusal_names_the_window_and_the_prompt(
    message: str, fields: dict[str, Any], window: int | None, n_prompt: int | None
) -> None:
    assert read_refusal(fields, message) == (window, n_prompt)


def test_lists_of_models_name_windows_in_several_ways() -> None:
    body = {
        "data": [
            {"id": "llama.cpp", "meta": {"n_ctx": 8192, "n_ctx_train": 32768}},
            {"id": "vllm", "max_model_len": 4096},
            {"id": "openai"},
            {"id": "other", "context_length": 2048},
        ]
    }
    assert read_model_windows(body) == {"llama.cpp": 8192, "vllm": 4096, "openai": None, "other": 2048}
    assert read_model_windows("<html>") == read_model_windows(None) == {}


@given(st.integers(512, 200_000), st.integers(0, 300_000), st.integers(16, 10_000))
def test_a_cap_exceeds_what_the_window_leaves_only_up_to_the_least_reply(window: int, n_tokens: int, cap: int) -> None:
    size = PromptSize(n_tokens, cap)
    fitted = ModelWindow(window).fit_cap(size)
    assert fitted is not None and fitted <= cap
    assert fitted + MARGIN * n_tokens <= window + 1 or fitted <= least_reply(window, cap)
    shorter = PromptSize(max(0, n_tokens - size.excess(window)), cap)
    known = ModelWindow(window)
    assert not known.refuses(shorter), "a prompt without its excess is sent"


def test_a_stage_has_a_cap_and_its_prompts_ask_for_no_more_words() -> None:
    settings = Settings()
    caps = {name: settings.reply_tokens_for(name) for name in ("extraction", "descriptions", "reports", "answers")}
    assert caps == {"extraction": 4000, "descriptions": 1000, "reports": 3000, "answers": 1600}
    assert [settings.words_for(name) for name in ("descriptions", "reports", "answers")] == [500, 1500, 800]
    small = Settings.model_validate(
        {"chat_model": {"parameters": {"max_tokens": 700}}, "answers": {"model": {"context_window": 2048}}}
    )
    assert [small.words_for(name) for name in ("descriptions", "reports", "answers")] == [350, 350, 256]
    assert Settings.model_validate({"reports": {"model": {"max_reply_tokens": 600}}}).words_for("reports") == 300


def test_a_reply_has_the_cap_of_its_stage_and_its_key_does_not(tmp_path: Path) -> None:
    with running_model_server(lambda request: FACT) as server:
        for folder, options in (("a", {}), ("b", {"max_reply_tokens": 500})):
            reply = complete(chat_model(server.base_url, tmp_path / folder, **options), ask("Who?"))
            assert (
                reply.request_key == complete(chat_model(server.base_url, tmp_path / folder), ask("Who?")).request_key
            )
        complete(chat_model(server.base_url, tmp_path, max_reply_tokens=500), ask("What?", max_tokens=90))
        bodies = [call.body or {} for call in server.calls]
    assert [body.get("max_tokens") for body in bodies] == [None, 500, 90]


def test_a_raised_cap_requests_only_what_was_cut(tmp_path: Path) -> None:
    with running_model_server([("long", "fact " * 100), ("short", FACT)]) as server:
        for cap, n_calls in ((50, 2), (50, 2), (200, 3), (200, 3)):
            chat = chat_model(server.base_url, tmp_path, max_reply_tokens=cap)
            replies = [complete(chat, ask(name, keep_whole=str)) for name in ("long", "short")]
            assert [reply.is_cut for reply in replies] == [cap == 50, False]
            assert server.count() == n_calls


@pytest.mark.parametrize("dialect", ["llama.cpp", "vllm", "openai", "ollama"])
def test_a_window_is_learnt_and_the_failure_tells_how_much_is_too_much(tmp_path: Path, dialect: str) -> None:
    with running_model_server([("word", FACT)], dialect=dialect, max_context_tokens=1000) as server:
        chat = chat_model(server.base_url, tmp_path, max_reply_tokens=200)
        with pytest.raises(CallFailedError, match="do not fit the window of test-chat") as caught:
            complete(chat, ask("word " * 1200))
        assert server.count() == 1 and chat.stats.n_retries == 0
        n_left = 1200 - caught.value.n_excess
        assert complete(chat, ask("word " * n_left)).value == FACT
        assert (chat.window is None) == (dialect == "ollama")
        for call in server.calls[1:]:
            assert (call.body or {})["max_tokens"] + call.prompt_tokens <= 1000


@pytest.mark.parametrize("window", [1000, None])
def test_a_prompt_that_leaves_little_for_its_reply_is_not_sent_whether_the_window_is_set_or_learnt(
    tmp_path: Path, window: int | None
) -> None:
    with running_model_server([("word", FACT)], dialect="llama.cpp", max_context_tokens=1000) as server:
        chat = chat_model(server.base_url, tmp_path, max_reply_tokens=400, context_window=window)
        with pytest.raises(CallFailedError):
            complete(chat, ask("word " * 1200))
        n_calls = server.count()
        with pytest.raises(CallFailedError, match="do not fit the window") as caught:
            complete(chat, ask("word " * 800))
        assert server.count() == n_calls == (window is None)
        assert complete(chat, ask("word " * (800 - caught.value.n_excess))).value == FACT


def test_a_set_or_read_window_refuses_without_a_request(tmp_path: Path) -> None:
    with running_model_server(dialect="llama.cpp", max_context_tokens=1000) as server:
        failures = []
        for window in (1000, "read"):
            chat = chat_model(server.base_url, tmp_path, context_window=window, model="test-chat")
            with pytest.raises(CallFailedError) as caught:
                complete(chat, ask("word " * 1200))
            failures.append(caught.value.n_excess)
        assert failures[0] == failures[1] and server.count() == 0


@pytest.mark.parametrize(
    ("name", "listed", "meant"),
    [
        ("a", ("b", "a"), "a"),
        ("a", ("b", "a:latest"), "a:latest"),
        ("a", ("a:latest", "a"), "a"),
        ("a", ("/m/x.gguf",), "/m/x.gguf"),
        ("a", ("b", "c"), None),
        ("a", (), None),
    ],
)
def test_which_listed_model_a_name_means(name: str, listed: tuple[str, ...], meant: str | None) -> None:
    assert choose_listed(name, listed) == meant


def test_the_window_of_the_only_listed_model_is_read_under_any_name(tmp_path: Path) -> None:
    with running_model_server(dialect="llama.cpp", max_context_tokens=1000, models=("/m/x.gguf",)) as server:
        chat = chat_model(server.base_url, tmp_path, context_window="read", model="qwen")
        with pytest.raises(CallFailedError, match="do not fit the window of qwen"):
            complete(chat, ask("word " * 1200))
        assert server.count() == 0


def test_a_cap_that_the_window_does_not_leave_is_lowered_and_sent_once_more(tmp_path: Path) -> None:
    with running_model_server(lambda request: FACT, dialect="vllm", max_context_tokens=1000) as server:
        chat = chat_model(server.base_url, tmp_path, max_reply_tokens=900)
        assert complete(chat, ask("word " * 400)).value == FACT
        assert complete(chat, ask("Again: " + "word " * 400)).value == FACT
        assert [call.status for call in server.calls] == [400, 200, 200]


def _counts_three_for_two(request: ReceivedRequest) -> Reply | Fault:
    """Reply as a model with a window of 1,000 tokens that counts half as many tokens again as this package."""
    n_prompt = 3 * request.prompt.count("word ") // 2
    cap, left = request.body["max_tokens"], 1000 - n_prompt
    if left < cap and request.body["model"] == "checks":
        return too_long("vllm", n_prompt, 1000, cap)
    return Reply(FACT, "length" if left < cap else "stop", prompt_tokens=n_prompt, completion_tokens=min(left, 20))


@pytest.mark.parametrize("model", ["checks", "writes until its window ends"])
def test_a_prompt_that_leaves_its_reply_a_few_tokens_is_made_shorter(tmp_path: Path, model: str) -> None:
    with running_model_server(_counts_three_for_two) as server:
        chat = chat_model(server.base_url, tmp_path, max_reply_tokens=400, context_window=1000, model=model)
        assert complete(chat, ask("word " * 300, keep_whole=str)).value == FACT
        with pytest.raises(CallFailedError, match=r"do not fit the window.*or lower text_units\.size") as caught:
            complete(chat, ask("word " * 650, keep_whole=str))
        assert server.count() == 2, "the window leaves 25 tokens, and an equal request would get no more"
        shorter = "word " * (650 - caught.value.n_excess)
        assert not complete(chat, ask(shorter, keep_whole=str)).is_cut
    assert all((call.body or {})["max_tokens"] >= least_reply(1000, 400) for call in server.calls)


def test_a_cut_reply_without_a_token_count_is_no_sign_that_the_window_ended(tmp_path: Path) -> None:
    """The count is then an estimate, which is too high: 1,003 for 606 tokens."""

    def answer(request: ReceivedRequest) -> Reply:
        return Reply(FACT, "length", prompt_tokens=-1)  # no count

    with running_model_server(answer) as server:
        chat = chat_model(server.base_url, tmp_path, max_reply_tokens=400, context_window=1000)
        for question in ("word " * 600, "Again: " + "word " * 600):
            assert complete(chat, ask(question, keep_whole=str)).is_cut
        assert min((call.body or {})["max_tokens"] for call in server.calls) > 290


@pytest.mark.parametrize("thoughts", ["", "<think>\nI think that"])
def test_a_model_that_thinks_first_gets_room_for_it(tmp_path: Path, thoughts: str) -> None:
    def answer(request: ReceivedRequest) -> Reply:
        is_short = int(request.body["max_tokens"]) < THINKING_TOKENS
        return Reply(thoughts, finish_reason="length") if is_short else Reply("<think>Hm.</think>" + FACT)

    with running_model_server(answer) as server:
        chat = chat_model(server.base_url, tmp_path, max_reply_tokens=100)
        assert complete(chat, ask("Who?")).value == FACT
        assert complete(chat, ask("What?")).value == FACT
    most = 100 + THINKING_TOKENS
    assert [(call.body or {})["max_tokens"] for call in server.calls] == [100, most, most]


def test_the_most_tokens_have_the_name_that_the_model_accepts(tmp_path: Path) -> None:
    def answer(request: ReceivedRequest) -> Fault | str:
        message = "Unsupported parameter: 'max_tokens' is not supported, use 'max_completion_tokens' instead."
        return Fault("400", message=message, param="max_tokens") if "max_tokens" in request.body else FACT

    with running_model_server(answer) as server:
        chat = chat_model(server.base_url, tmp_path, max_reply_tokens=100)
        for question in ("Who?", "What?"):
            complete(chat, ask(question))
    assert [(call.body or {}).get("max_completion_tokens") for call in server.calls] == [None, 100, 100]
