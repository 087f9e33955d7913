"""Tools for agents, called by MCP's own client over HTTP and over stdio."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client

from graphrag_pipeline.serve.mcp import MAX_CHARS, MAX_PASSAGE
from graphrag_pipeline_tests.support.serving import RunningServer, running_server

TOOLS = {"search", "context", "entity", "neighbours", "report", "document_passage", "filters", "roots"}
QUESTION = "Who is Jacob Marley?"


def call_all(server: Any, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Call tools in a row by one client; `server` is a URL or a transport."""

    async def run() -> list[Any]:
        async with Client(server) as client:
            return [await client.call_tool(name, arguments) for name, arguments in calls]

    return anyio.run(run)


def call(server: RunningServer, tool: str, /, **arguments: Any) -> Any:
    [result] = call_all(f"{server.url}/mcp", (tool, arguments))
    return result


def test_the_tools_are_described_and_read_only(server: RunningServer) -> None:
    async def list_tools() -> Any:
        async with Client(f"{server.url}/mcp") as client:
            return (await client.list_tools()).tools

    tools = anyio.run(list_tools)
    assert {tool.name for tool in tools} == TOOLS
    for tool in tools:
        assert tool.description and tool.annotations.read_only_hint and "ctx" not in tool.input_schema["properties"]
        if filters := tool.input_schema["properties"].get("filters"):
            assert (filters["maxItems"], filters["items"]["maxLength"]) == (32, 1_000)


def test_a_filter_over_its_limit_is_refused_by_name(server: RunningServer) -> None:
    result = call(server, "search", question=QUESTION, filters=["title=" + "1" * 10_000 + "x"])
    assert result.is_error and "filters.0" in result.content[0].text and "1000" in result.content[0].text
    assert len(result.content[0].text) < 1_000


def test_a_citation_leads_to_the_passage_it_quotes(server: RunningServer) -> None:
    result = call(server, "search", question=QUESTION)
    found = result.structured_content
    assert not result.is_error and found["citations"] and found["answer"] in result.content[0].text
    assert found["snapshot"] in result.content[0].text
    for cited in found["citations"]:
        place = {"document": cited["document_id"], "start": cited["start"], "end": cited["end"]}
        passage = call(server, "document_passage", **place).structured_content
        assert passage["text"] == cited["quote"] and passage["snapshot"] == found["snapshot"]


def test_records_are_read_by_their_names(server: RunningServer) -> None:
    context = call(server, "context", question=QUESTION, max_tokens=1000).structured_content
    title = context["entities"][0]["title"]
    page = call(server, "entity", name=title)
    assert page.structured_content["title"] == title and page.structured_content["description"] in page.content[0].text
    near = call(server, "neighbours", name=title, limit=2).structured_content
    assert 0 < len(near["neighbours"]) <= 2 <= near["n_relationships"]
    report = call(server, "report", name=str(context["reports"][0]["number"]))
    assert report.structured_content["title"] == context["reports"][0]["title"]


def test_the_fields_of_filters_are_listed_and_narrow_a_search(server: RunningServer) -> None:
    fields = {one["field"]: one for one in call(server, "filters").structured_content["fields"]}
    title = fields["title"]["values"][0]["value"]
    found = call(server, "context", question=QUESTION, filters=[f"title={title}"]).structured_content
    assert {unit["document"] for unit in found["text_units"]} == {title}


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("search", {"question": "  "}, "question is empty"),
        ("search", {"question": QUESTION, "method": "magic"}, "magic"),
        ("search", {"question": QUESTION, "strategy": "magic"}, "magic"),
        ("search", {"question": QUESTION, "filters": ["nonsense"]}, "FIELD OPERATOR VALUE"),
        ("search", {"question": "x" * 9_000}, "8000"),
        ("search", {}, "question"),
        ("context", {"question": QUESTION, "max_tokens": -1}, "max_tokens"),
        ("entity", {"name": "Nobody of that name"}, "no entity is called"),
        ("report", {"name": "../../etc/passwd"}, "no report is called"),
        ("document_passage", {"document": "../settings.yaml"}, "no document is called"),
        ("document_passage", {"document": "0", "start": 10**9}, "are not in the document"),
        ("entity", {"name": "Scrooge", "root": "another"}, "There is no root"),
        ("entity", {"name": "Scrooge", "snapshot": "0123456789abcdef"}, "no published snapshot"),
    ],
)
def test_a_refusal_is_an_error_that_a_model_can_read(
    server: RunningServer, tool: str, arguments: dict[str, Any], words: str
) -> None:
    result = call(server, tool, **arguments)
    assert result.is_error and words in result.content[0].text and "Traceback" not in result.content[0].text


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_server_without_sessions_keeps_no_stream_open(server: RunningServer, method: str) -> None:
    answer = server.client.request(method, "/mcp", headers={"accept": "text/event-stream"})
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.json()["error"]["code"] == "wrong_method"


def test_replies_are_bounded(server: RunningServer) -> None:
    context = call(server, "context", question=QUESTION, method="basic", max_tokens=100_000)
    assert len(context.content[0].text) <= MAX_CHARS + 100
    passage = call(server, "document_passage", document="0", end=10**9).structured_content
    assert len(passage["text"]) <= MAX_PASSAGE and passage["n_chars"] >= passage["end"]


def test_one_of_several_roots_is_named(served_root: Path) -> None:
    with running_server({"one": served_root, "two": served_root}) as server:
        assert call(server, "roots").structured_content["roots"] == ["one", "two"]
        assert "No root is named" in call(server, "search", question=QUESTION).content[0].text
        assert not call(server, "search", question=QUESTION, root="two").is_error


def test_the_same_tools_over_stdio(served_root: Path, server: RunningServer) -> None:
    command = ["-m", "graphrag_pipeline", "--root", str(served_root), "mcp"]
    stdio = stdio_client(StdioServerParameters(command=sys.executable, args=command))
    calls = [("search", {"question": QUESTION}), ("entity", {"name": "Scrooge"}), ("entity", {"name": "Nobody at all"})]
    here, there = call_all(stdio, *calls), call_all(f"{server.url}/mcp", *calls)
    assert [one.content[0].text for one in here] == [one.content[0].text for one in there]
    assert [one.is_error for one in here] == [False, False, True]
