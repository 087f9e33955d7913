"""Canary documents: a principal without the right gets what a root without them gives, byte for byte."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from graphrag_pipeline.access.access_file import ViewRules, add_key, load_access_file
from graphrag_pipeline.access.audit import AuditLog
from graphrag_pipeline.access.rules import FollowedRules
from graphrag_pipeline.access.view_settings import find_view
from graphrag_pipeline.access.views import build_view, check_view
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.serve.gate import Audit
from graphrag_pipeline.tables import CONTRACT_TABLES
from graphrag_pipeline_tests.support import canaries
from graphrag_pipeline_tests.support.canaries import MAX_CANARIES, make_canaries, open_rows
from graphrag_pipeline_tests.support.roots import build_tables, built_once, make_root
from graphrag_pipeline_tests.support.serving import RunningServer, running_server
from graphrag_pipeline_tests.support.thoroughness import IS_THOROUGH

N_CANARIES = 15


class World(NamedTuple):
    """A server of a root with canaries, and one of a root that was made without them, under one name."""

    server: RunningServer
    reference: RunningServer
    canaries: list[canaries.Canary]
    restricted: str
    whole: str
    root: Root
    alone: Root
    audit: Path


def _index_rows(rows: list[dict], path: Path) -> None:
    root = make_root(path, {})
    canaries.write_rows(root.path, rows)
    (root.path / "input" / "unread.txt").write_bytes(b"")
    build_tables(root, tuple(ALL_STAGES))


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Iterator[World]:
    folder, found = tmp_path_factory.mktemp("canaries"), canaries.make_canaries(N_CANARIES)
    open_rows = canaries.open_rows(12)
    secret = [canaries.restricted_row(one, number) for number, one in enumerate(found)]
    roots = {}
    for name, rows in (("all", canaries.mix(open_rows, secret)), ("alone", open_rows)):
        roots[name] = built_once(folder / name, f"canaries {name}", partial(_index_rows, rows))
    path = folder / "access.yaml"
    restricted = add_key(path, "reader", ["news"], [canaries.FILTER])
    whole = add_key(path, "editor", ["news"], is_whole=True)
    build_view("news", roots["all"], (canaries.FILTER,), ViewRules())
    rules, log = FollowedRules(path), load_access_file(path).audit
    audit = Audit(AuditLog(log, folder))
    with (
        running_server({"news": roots["all"].path}, find_view, rules=rules, audit=audit) as server,
        running_server({"news": roots["alone"].path}) as reference,
    ):
        yield World(server, reference, found, restricted, whole, roots["all"], roots["alone"], folder / "audit.jsonl")


def _requests(world: World) -> list[canaries.Asked]:
    hidden = [row for row in world.root.open_snapshot().table("documents").to_pylist() if "secret" in row["metadata"]]
    keys = ["0", "1", "Bob Cratchit", hidden[-1]["id"]]
    openapi = world.server.client.get("/openapi.json").json()
    words = world.canaries[0].words
    listed = list(canaries.list_requests(openapi, words, keys, "news"))
    return [*(listed if IS_THOROUGH else _spread(listed)), *canaries.list_tool_calls(words, keys)]


def _spread(listed: list[canaries.Asked]) -> Iterator[canaries.Asked]:
    """Yield each parameter of each path with a value that names a canary and one that does not, and each body that
    names none; of bodies that name one, two a path.
    """
    seen: Counter[tuple[object, ...]] = Counter()
    for asked in listed:
        kind = (asked.method, asked.path, *(name for name, _ in asked.params), asked.names_canary)
        seen[kind] += 1
        most = 1 if asked.method == "GET" else 2 if asked.names_canary else len(listed)
        if seen[kind] <= most:
            yield asked


def test_every_answer_is_that_of_a_root_without_the_canaries(world):
    asked = _requests(world)
    differing, statuses = [], set()
    words = [word for one in world.canaries for word in one.words]
    for request in asked:
        status, text = canaries.send(world.server.client, request, world.restricted)
        expected = canaries.send(world.reference.client, request)
        statuses.add((request.path.split("/")[1], status))
        if not request.names_canary:
            assert not [word for word in words if word.lower() in text.lower()], request
        if request.path.startswith(canaries.WITHHELD):
            continue
        if not canaries.is_same((status, text), expected):
            differing.append((request, status, expected[0]))
    assert differing == []
    assert len(asked) > 100
    assert {
        ("search", 200),
        ("explain", 200),
        ("mcp", 200),
        ("v1", 200),
        ("entities", 200),
        ("documents", 200),
    } <= statuses


def test_of_documents_that_could_not_be_read_only_the_reader_of_the_root_is_told(world):
    asked = canaries.Asked("GET", "/unread-documents")
    answers = [canaries.send(world.server.client, asked, key)[1] for key in (world.whole, world.restricted)]
    of_all, of_part = map(json.loads, answers)
    assert [one["path"] for one in of_all["unread"]] == ["unread.txt"] and not of_all["is_withheld"]
    assert (of_part["unread"], of_part["total"], of_part["is_withheld"]) == ([], 0, True)


def test_with_the_right_every_canary_is_found(world):
    for one in world.canaries:
        body = json.dumps({"question": f"Who is {one.person}?", "method": "basic", "context_only": True})
        asked = canaries.Asked("POST", "/search", (), body)
        _, text = canaries.send(world.server.client, asked, world.whole)
        assert all(word in text for word in (one.alias, one.place, one.number)), one
        _, without = canaries.send(world.server.client, asked, world.restricted)
        assert one.place not in without


def test_the_tables_of_the_view_are_those_of_a_root_without_the_canaries(world):
    view = Root(find_view(world.root.path, (canaries.FILTER,)))
    made, expected = view.open_snapshot(), world.alone.open_snapshot()
    for name in CONTRACT_TABLES:
        assert made.table(name).equals(expected.table(name)), name
    assert check_view("news", world.root, (canaries.FILTER,), ViewRules()).problems == ()


def test_nothing_of_a_canary_is_written_into_the_folder_of_the_view(world):
    import pyarrow.parquet as pq

    words = [word.lower().encode() for one in world.canaries for word in one.words]
    place = find_view(world.root.path, (canaries.FILTER,))
    seen, whole = (set(root.open_snapshot().table("documents")["id"].to_pylist()) for root in (Root(place), world.root))
    hidden = {one.encode() for one in whole - seen}
    n_read = 0
    for path in sorted(path for path in place.rglob("*") if path.is_file()):
        content = path.read_bytes()
        if path.suffix == ".parquet":
            content += str(pq.read_table(path).to_pylist()).encode()
        n_read += 1
        assert not [word for word in words if word in content.lower()], path
        assert not [one for one in hidden if one in content], path
    assert n_read > 50


def test_an_earlier_snapshot_of_a_view_and_roots_of_others_are_not_found(world):
    for params in ({"root": "news", "snapshot": "0" * 16}, {"root": "other"}):
        body = {"question": "x"} | ({"snapshot": params["snapshot"]} if "snapshot" in params else {})
        found = world.server.client.post(
            "/search",
            params={"root": params["root"]},
            json=body,
            headers={"authorization": f"Bearer {world.restricted}"},
        )
        assert found.status_code == 404
        if "snapshot" in params:
            assert "Leave `snapshot` out" in found.json()["error"]["what_to_do"]
    whole = world.root.open_snapshot().id
    for snapshot, status in ((whole, 200), (whole[:8], 404)):
        found = world.server.client.post(
            "/search",
            json={"question": "x", "snapshot": snapshot},
            headers={"authorization": f"Bearer {world.restricted}"},
        )
        assert found.status_code == status
        assert whole not in found.text
    for header in ({}, {"authorization": "Bearer wrong"}):
        assert world.server.client.get("/roots", headers=header).status_code == 401


def test_a_link_of_one_reader_opens_the_same_passage_for_another_who_may_read_it(world):
    statuses = {"plain.jsonl": set(), "named.jsonl": set(), "table.csv": set(), "columns.parquet": set()}
    for key, other in ((world.whole, world.restricted), (world.restricted, world.whole)):
        for number in range(12):
            link, quote, path = _cite(world, key, f"What happened on day {number}?")
            own, opened = (world.server.client.get(link, headers=_bearer(one)) for one in (key, other))
            assert own.json()["document"]["text"] == quote
            if opened.status_code == 200:
                assert opened.json()["document"]["text"] == quote
            statuses[path].add(opened.status_code)
    assert all(200 in found for found in statuses.values())
    link, quote, _ = _cite(world, world.whole, f"Who is {world.canaries[0].person}?")
    assert world.canaries[0].words[0] in quote
    refused = world.server.client.get(link, headers=_bearer(world.restricted))
    absent = world.reference.client.get(link.partition("&snapshot")[0])
    assert (refused.status_code, refused.json()) == (absent.status_code, absent.json()) and absent.status_code == 404


def _cite(world: World, key: str, question: str) -> tuple[str, str, str]:
    """Return the link of the first citation of an answer, its quotation, and the path of its document."""
    body = {"model": "news:basic", "messages": [{"role": "user", "content": question}]}
    answer = world.server.client.post("/v1/chat/completions", json=body, headers=_bearer(key)).json()
    cited = answer["choices"][0]["message"]["annotations"][0]["url_citation"]
    place = f"/documents/{cited['document_id']}"
    path = world.server.client.get(place, headers=_bearer(key)).json()["document"]["path"]
    return "/documents/" + cited["url"].partition("/documents/")[2], cited["quote"], path


def _bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def test_the_audit_log_says_who_read_what_and_no_text(world):
    body = {"question": "Who met Bob Cratchit?", "method": "basic"}
    answer = world.server.client.post(
        "/search", json=body, headers={"authorization": f"Bearer {world.restricted}"}
    ).json()
    line = json.loads(world.audit.read_text().splitlines()[-1])
    assert (line["principal"], line["route"], line["status"]) == ("reader", "/search", 200)
    assert (line["snapshot"], line["root"]) == (answer["snapshot"], "news")
    assert {citation["document_id"] for citation in answer["citations"]} <= set(line["documents"])
    assert "Cratchit" not in world.audit.read_text()
    world.server.client.get("/roots", headers={"authorization": "Bearer wrong"})
    assert json.loads(world.audit.read_text().splitlines()[-1])["status"] == 401


@pytest.mark.parametrize("seed", [7, 8])
def test_no_word_of_a_canary_is_in_another_one_or_in_an_open_text(seed):
    words = [word.lower() for one in make_canaries(300, seed) for word in one.words]
    opened = "\n".join(str(row) for row in open_rows(300)).lower()
    text = "\n".join(words)
    assert [word for word in words if text.count(word) != 1 or word in opened] == []


def test_the_same_seed_gives_the_same_canaries():
    assert make_canaries(3) == make_canaries(3) != make_canaries(3, seed=8)


def test_more_canaries_than_there_are_words_for_are_refused():
    with pytest.raises(ValueError, match=f"at most {MAX_CANARIES:,}"):
        make_canaries(MAX_CANARIES + 1)
