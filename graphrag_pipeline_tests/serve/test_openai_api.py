"""The OpenAI-compatible routes, asked by OpenAI's own client through a real socket."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import openai
import pytest

from graphrag_pipeline.serve.openai_api import FootnoteStream, drop_footnotes, refer
from graphrag_pipeline_tests.support.roots import CAROL
from graphrag_pipeline_tests.support.serving import RunningServer

TEXTS = {name.partition(".")[0]: text for name, text in CAROL.items()}
QUESTION = {"role": "user", "content": "Who is Bob Cratchit?"}


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as opened:
        yield opened


def test_models_are_roots_with_methods(client: openai.OpenAI) -> None:
    names = [model.id for model in client.models.list()]
    assert names == ["carol:local", "carol:global", "carol:basic", "carol:drift", "carol:lazy", "carol:auto"]
    assert client.models.retrieve("carol:drift").id == "carol:drift"
    with pytest.raises(openai.NotFoundError, match="no model"):
        client.models.retrieve("carol:telepathy")


@pytest.mark.parametrize("model", ["carol:local", "carol:global", "carol:auto", "local", "carol"])
def test_an_answer_has_footnotes_and_annotations(client: openai.OpenAI, server: RunningServer, model: str) -> None:
    completion = client.chat.completions.create(model=model, messages=[QUESTION])
    message = completion.choices[0].message
    assert completion.choices[0].finish_reason == "stop" and message.role == "assistant"
    assert completion.system_fingerprint == server.served.root("carol").snapshot
    assert completion.usage is not None and completion.usage.prompt_tokens > 0
    assert message.content and message.annotations
    for annotation in message.annotations:
        cited = annotation.url_citation
        marker = message.content[cited.start_index : cited.end_index]
        assert f"\n{marker}: " in message.content  # its footnote
        text = httpx.get(cited.url).raise_for_status().json()["document"]
        assert text["text"] == cited.quote == TEXTS[text["title"]][text["start"] : text["end"]]  # type: ignore[attr-defined]


def test_a_stream_has_the_same_answer(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model="carol:local", messages=[QUESTION])
    chunks = list(
        client.chat.completions.create(
            model="carol:local", messages=[QUESTION], stream=True, stream_options={"include_usage": True}
        )
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    last = next(chunk.choices[0] for chunk in reversed(chunks) if chunk.choices)
    expected = [one.model_dump() for one in whole.choices[0].message.annotations or ()]
    assert last.finish_reason == "stop" and last.delta.annotations == expected  # type: ignore[attr-defined]
    assert chunks[-1].usage == whole.usage
    assert {chunk.system_fingerprint for chunk in chunks} == {whole.system_fingerprint}


def test_history_system_messages_and_additions_count(client: openai.OpenAI) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Who is Tiny Tim?"},
        {"role": "assistant", "content": "A child [^1].\n\n[^1]: two.txt: “Tiny Tim”"},
        {"role": "user", "content": [{"type": "text", "text": "What did he do then?"}]},
    ]
    completion = client.chat.completions.create(
        model="carol:local", messages=messages, extra_body={"filters": ["path=two.txt"], "strategy": "graph"}
    )  # type: ignore[call-overload]
    content = completion.choices[0].message.content
    assert "Tiny Tim" in content
    assert {one.url_citation.title for one in completion.choices[0].message.annotations} == {"two"}


def test_errors_have_the_form_that_the_client_reads(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="no root"):
        client.chat.completions.create(model="other:local", messages=[QUESTION])
    with pytest.raises(openai.NotFoundError, match="no model"):
        client.chat.completions.create(model="carol:telepathy", messages=[QUESTION])
    with pytest.raises(openai.BadRequestError, match="user"):
        client.chat.completions.create(model="carol:local", messages=[{"role": "system", "content": "Hello"}])
    with pytest.raises(openai.BadRequestError, match="empty"):
        client.chat.completions.create(model="carol:local", messages=[{"role": "user", "content": " "}], stream=True)
    with pytest.raises(openai.BadRequestError, match="colour"):
        client.chat.completions.create(model="carol:local", messages=[QUESTION], extra_body={"filters": ["colour=1"]})
    with pytest.raises(openai.BadRequestError, match="`n`"):
        client.chat.completions.create(model="carol:local", messages=[QUESTION], n=2)


@pytest.mark.parametrize("text", ["He is [1] a clerk [2][3].", "In [2020] he [a] wrote [1](http://x) [12", "[", ""])
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_markers_become_references_in_pieces_of_any_size(text: str, size: int) -> None:
    stream = FootnoteStream()
    pieces = [stream.take(text[place : place + size]) for place in range(0, len(text), size)]
    assert "".join([*pieces, stream.finish()]) == refer(text)


def test_history_holds_no_footnotes() -> None:
    assert drop_footnotes("A clerk [^1].\n\n[^1]: two.txt, characters 1-2: “x”\n[^2]: y") == "A clerk ."
