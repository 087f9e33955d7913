"""Searches in threads of their own: side by side, in pieces, and given up."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.event_loop import CallScope, start_in_loop
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.methods.registry import METHODS
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.search_result import SearchResult
from graphrag_pipeline.query.streams import OnToken, aiterate_tokens, await_search, iterate_tokens
from graphrag_pipeline_tests.model_server import running_model_server
from graphrag_pipeline_tests.support.models.model_index import open_with_model

QUESTION = "Who haunted Scrooge?"
SAFE_S = 60.0
"""What is waited for ends at once; a test that hangs ends after this."""


class EndlessSearch:
    """A search whose model never answers; it says one piece before it asks."""

    def __init__(self) -> None:
        self.is_asking = threading.Event()
        self.is_given_up = threading.Event()

    def run(self, on_token: OnToken, scope: CallScope) -> NoReturn:
        on_token("A piece.")
        future = start_in_loop(asyncio.Event().wait(), scope)
        self.is_asking.set()
        try:
            future.result()
        except CancelledError:
            with pytest.raises(CancelledError):
                start_in_loop(asyncio.sleep(0), scope)  # nor is another call made
            self.is_given_up.set()
            raise
        raise AssertionError("it never ends")


def test_twenty_questions_at_once_get_the_answers_of_one_by_one(small: GraphIndex) -> None:
    words = ("Marley", "Bob Cratchit", "Tiny Tim", "the fog")
    asked = [(f"What of {word} and Scrooge?", method) for word in words for method in list(METHODS)[:5]]
    filters = ["title!=c.txt"]

    async def ask_at_once() -> list[SearchResult]:
        return await asyncio.gather(
            *(small.asearch(question, method, filters=filters[: n % 2]) for n, (question, method) in enumerate(asked))
        )

    together = asyncio.run(ask_at_once())
    for n, (result, (question, method)) in enumerate(zip(together, asked, strict=True)):
        alone = small.search(question, method, filters=filters[: n % 2])
        assert (result.answer, result.citations, result.context) == (alone.answer, alone.citations, alone.context)
        assert result.usage == alone.usage


def test_accounts_of_questions_at_once_do_not_mix(small: GraphIndex, tmp_path: Path) -> None:
    asked = [f"Who is number {n}?" for n in range(8)]

    async def ask_at_once(index: GraphIndex) -> list[SearchResult]:
        return await asyncio.gather(*(index.asearch(question, "basic") for question in asked))

    with running_model_server(lambda request: request.conversation.messages[-1][1][-2]) as server:
        together = asyncio.run(ask_at_once(open_with_model(small, tmp_path, server)))
    assert [result.answer[0] for result in together] == list("01234567")
    assert [result.usage.by_model["test-chat"].calls for result in together] == [1] * 8


def test_an_async_stream_is_the_stream(small: GraphIndex, tmp_path: Path) -> None:
    async def read(index: GraphIndex) -> list[str | SearchResult]:
        return [piece async for piece in index.astream(QUESTION)]

    with running_model_server(lambda request: "Old Marley did, it is said,\n\nand twice.") as server:
        index = open_with_model(small, tmp_path, server)
        *pieces, result = asyncio.run(read(index))
        *again, _ = index.stream(QUESTION)
    assert isinstance(result, SearchResult) and len(pieces) > 3
    assert "".join(map(str, pieces)) == result.answer == "".join(map(str, again))
    embedded = asyncio.run(read(small))
    assert isinstance(embedded[-1], SearchResult) and embedded[:-1] == [embedded[-1].answer]


def test_what_is_wrong_with_a_question_is_raised_to_whoever_awaits(small: GraphIndex) -> None:
    async def read() -> None:
        async for _ in small.astream(" "):
            pass

    for awaited in (small.asearch(""), read()):
        with pytest.raises(PipelineError, match="question is empty"):
            asyncio.run(awaited)


def test_a_search_that_is_cancelled_gives_up_its_calls() -> None:
    search = EndlessSearch()

    async def cancel() -> None:
        task = asyncio.create_task(await_search(lambda scope: search.run(lambda text: None, scope)))
        assert await asyncio.to_thread(search.is_asking.wait, SAFE_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert search.is_given_up.wait(SAFE_S)


def test_an_async_stream_that_is_left_gives_up_its_calls() -> None:
    search = EndlessSearch()

    async def leave() -> None:
        pieces = aiterate_tokens(search.run)
        assert await anext(pieces) == "A piece."
        assert await asyncio.to_thread(search.is_asking.wait, SAFE_S)
        await pieces.aclose()  # type: ignore[attr-defined]

    asyncio.run(leave())
    assert search.is_given_up.wait(SAFE_S)


def test_a_stream_that_is_left_gives_up_its_calls() -> None:
    search = EndlessSearch()
    for piece in iterate_tokens(search.run):
        assert piece == "A piece." and search.is_asking.wait(SAFE_S)
        break
    assert search.is_given_up.wait(SAFE_S)


@pytest.mark.parametrize("method", METHODS)
def test_callbacks_get_the_context_before_the_answer_and_then_its_pieces(small: GraphIndex, method: str) -> None:
    heard: list[object] = []
    pieces: list[str] = []

    def on_token(text: str) -> None:
        pieces.append(text)
        heard.append(text)

    result = small.search(QUESTION, method, on_context=heard.append, on_token=on_token)
    context, *said = heard
    # Global search may read the texts themselves afterwards, where no finding answers.
    expected = replace(result.context, text_units=()) if method in ("global", "auto") else result.context
    assert context in (result.context, expected)
    assert "".join(map(str, said)) == "".join(pieces) == result.answer


def test_callbacks_get_a_models_pieces(small: GraphIndex, tmp_path: Path) -> None:
    pieces: list[str] = []
    with running_model_server(lambda request: "Nobody did, so far as the data says.") as server:
        result = open_with_model(small, tmp_path, server).search(QUESTION, on_token=pieces.append)
    assert len(pieces) > 2 and "".join(pieces) == result.answer


def test_a_context_alone_is_told_too(small: GraphIndex) -> None:
    contexts: list[Context] = []
    result = small.search(QUESTION, context_only=True, on_context=contexts.append)
    assert contexts == [result.context]
