"""Routes of records and pictures of the graph."""

from __future__ import annotations

from itertools import combinations
from math import dist
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline_tests.support.roots import CAROL, build_tables, make_root
from graphrag_pipeline_tests.support.serving import RunningServer, running_server


def get(server: RunningServer, path: str, **params: Any) -> dict[str, Any]:
    answer = server.client.get(path, params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert found["snapshot"] == server.served.root("carol").snapshot and found["root"] == "carol"
    return found


def test_entities_are_listed_sorted_searched_and_cut(server: RunningServer) -> None:
    everything = get(server, "/entities", limit=1000)
    assert len(everything["entities"]) == everything["total"] > 3
    degrees = [one["degree"] for one in everything["entities"]]
    assert degrees == sorted(degrees, reverse=True)
    titles = [one["title"] for one in get(server, "/entities", sort="title", limit=1000)["entities"]]
    assert titles == sorted(titles, key=str.lower)
    part = get(server, "/entities", sort="title", limit=2, offset=1)
    assert [one["title"] for one in part["entities"]] == titles[1:3] and part["total"] == len(titles)
    found = get(server, "/entities", search="cratch")
    assert {one["title"] for one in found["entities"]} == {"BOB CRATCHIT"} and found["total"] == 1
    kind = everything["entities"][0]["type"]
    assert {one["type"] for one in get(server, "/entities", type=kind)["entities"]} == {kind}
    assert get(server, "/entities", search="' OR 1=1 --")["total"] == 0


def test_an_entity_leads_to_its_neighbours_relationships_and_sentences(server: RunningServer) -> None:
    entity = get(server, "/entities/bob cratchit")["entity"]
    assert entity["title"] == "BOB CRATCHIT"
    assert get(server, f"/entities/{entity['number']}")["entity"] == get(server, f"/entities/{entity['id']}")["entity"]
    for one in entity["sentences"]:
        assert CAROL[one["path"]][one["start"] : one["end"]] == one["text"]
    near = get(server, f"/entities/{entity['number']}/neighbours")["neighbourhood"]
    assert near["entities"][0] == {**near["entities"][0], "distance": 0}
    direct = {one["entity"]["title"] for one in near["entities"][1:]}
    assert direct == {
        one["title"] for one in get(server, f"/entities/{entity['number']}", limit=100)["entity"]["relationships"]
    }
    wider = get(server, f"/entities/{entity['number']}/neighbours", depth=2)["neighbourhood"]
    assert wider["n_entities"] >= near["n_entities"] and len(wider["relationships"]) <= wider["n_relationships"]
    listed = get(server, "/relationships", entity="Bob Cratchit", limit=100)
    assert {"BOB CRATCHIT"} <= {end for one in listed["relationships"] for end in (one["source"], one["target"])}
    assert listed["total"] == entity["n_relationships"]
    one = listed["relationships"][0]
    page = get(server, f"/relationships/{one['number']}")["relationship"]
    assert {page["source"]["title"], page["target"]["title"]} == {one["source"], one["target"]}
    for passage in page["passages"]:
        assert CAROL[passage["path"]][passage["start"] : passage["end"]] == passage["text"]


def test_communities_and_reports_lead_to_each_other(server: RunningServer) -> None:
    communities = get(server, "/communities", limit=100)["communities"]
    for one in communities:
        page = get(server, f"/communities/{one['number']}")["community"]
        assert (page["level"], page["size"], len(page["children"])) == (one["level"], one["size"], one["n_children"])
        if one["parent"] is not None:
            children = get(server, "/communities", parent=one["parent"], limit=100)["communities"]
            assert one["number"] in {child["number"] for child in children}
        members = get(server, "/entities", community=one["number"])
        assert members["total"] == one["size"]
    reports = get(server, "/reports", limit=100)
    assert reports["total"] == sum(one["report"] is not None for one in communities)
    report = get(server, f"/reports/{reports['reports'][0]['number']}")["report"]
    assert report["title"] == reports["reports"][0]["title"]
    assert get(server, "/reports", search=report["title"])["total"] >= 1


def test_documents_have_exact_text_mentions_and_text_units(server: RunningServer) -> None:
    listed = get(server, "/documents", sort="path")["documents"]
    assert [one["path"] for one in listed] == sorted(CAROL)
    for one in listed:
        text = CAROL[one["path"]]
        page = get(server, f"/documents/{one['number']}")["document"]
        assert page["text"] == text and one["n_characters"] == len(text)
        part = get(server, f"/documents/{one['path']}/text", start=3, end=20)["document"]
        assert (part["text"], part["n_characters"]) == (text[3:20], len(text))
        mentions = get(server, f"/documents/{one['id']}/mentions")
        assert mentions["total"] == len(mentions["mentions"]) > 0
        for mention in mentions["mentions"]:
            written = text[mention["start"] : mention["end"]]
            names = get(server, f"/entities/{mention['number']}")["entity"]
            assert written in (mention["title"], *names["names"])
        unit = get(server, f"/text-units/{page['text_units'][0]['number']}")["text_unit"]
        assert text[unit["start"] : unit["end"]] == unit["text"]
    refused = server.client.get(f"/documents/{listed[0]['number']}/text", params={"start": 9, "end": 3})
    assert refused.status_code == 400


def test_documents_that_could_not_be_read_are_listed_with_the_reason(tmp_path: Path) -> None:
    bad = {"empty.txt": "", "list.json": "[1, 2]", "deep/broken.json": "{"}
    root = make_root(tmp_path / "carol", {"one.txt": CAROL["one.txt"], **bad})
    build_tables(root, tuple(ALL_STAGES))
    with running_server({"carol": root.path}) as server:
        found = get(server, "/unread-documents")
        assert [one["path"] for one in found["unread"]] == sorted(bad) and found["total"] == len(bad)
        assert all(one["problem"] and not one["note"] for one in found["unread"])
        assert found["unread"][1] == {**found["unread"][1], "problem": "empty", "n_bytes": 0, "record": ""}
        assert not found["is_withheld"]
        part = get(server, "/unread-documents", limit=1, offset=1)
        assert (part["unread"], part["total"]) == (found["unread"][1:2], len(bad))
        assert [one["path"] for one in get(server, "/documents")["documents"]] == ["one.txt"]


def test_filters_hide_records_of_other_documents(server: RunningServer) -> None:
    body = {"filter": "path=three.md"}
    assert [one["path"] for one in get(server, "/documents", **body)["documents"]] == ["three.md"]
    titles = {one["title"] for one in get(server, "/entities", **body)["entities"]}
    assert "FEZZIWIG" in " ".join(titles) and "BOB CRATCHIT" not in titles
    assert server.client.get("/entities/Bob Cratchit", params=body).status_code == 404
    facets = get(server, "/facets", **body)["facets"]
    assert facets["counts"]["documents"] == 1 and facets["counts"]["entities"] == len(titles)
    assert sum(one["count"] for one in facets["types"]) == len(titles)


def test_snapshots_evaluations_and_costs(server: RunningServer) -> None:
    [facts] = get(server, "/snapshots")["snapshots"]
    assert facts["is_published"] and get(server, f"/snapshots/{facts['id'][:8]}")["facts"]["id"] == facts["id"]
    diff = get(server, "/snapshots/diff", **{"from": facts["id"]})["diff"]
    assert (diff["old"], diff["new"], diff["entities"]) == (facts["id"], facts["id"], [])
    figures = get(server, "/evaluations")
    assert {one["snapshot"] for one in figures["evaluations"]} <= {facts["id"]}
    guides = {one["name"]: (one["threshold"], one["is_minimum"]) for one in figures["guides"]}
    assert guides["text_unit_coverage"] == (0.9, True) and guides["singletons"] == (0.4, False)
    assert get(server, "/costs", by="day")["costs"]["total"]["n_calls"] == 0


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/entities/nobody-at-all", 404),
        ("/entities/99999999", 404),
        ("/relationships/99999999", 404),
        ("/relationships/..%2f..%2fetc", 404),
        ("/documents/..%2F..%2Fsettings.yaml/text", 404),
        ("/text-units/-1", 404),
        ("/snapshots/zzz", 404),
        ("/snapshots/diff", 400),
        ("/snapshots/diff?from=zzz", 404),
        ("/entities?limit=0", 400),
        ("/entities?limit=1001", 400),
        ("/entities?offset=-1", 400),
        ("/entities?sort=__class__", 400),
        ("/entities?community=99999", 404),
        ("/entities?filter=colour%3Dred", 400),
        ("/entities?snapshot=zzz", 404),
        ("/communities?level=x", 400),
        ("/entities/1/neighbours?depth=99", 400),
    ],
)  # fmt: skip
def test_what_does_not_exist_or_validate_is_refused(server: RunningServer, path: str, status: int) -> None:
    answer = server.client.get(path)
    assert (answer.status_code, answer.json()["error"]["status"]) == (status, status)


def test_a_level_its_communities_and_the_surroundings_of_an_entity_are_drawn(server: RunningServer) -> None:
    whole = server.client.get("/graph").json()
    assert whole["snapshot"] and whole["root"] == "carol"
    [first, *_] = whole["graph"]["nodes"]
    assert (first["kind"], first["level"]) == ("community", 0) and first["radius"] > 0
    inside = server.client.get("/graph", params={"community": first["number"]}).json()["graph"]
    assert inside["nodes"] and all(node["parent"] == first["number"] for node in inside["nodes"])
    near = server.client.get("/graph", params={"entity": "Scrooge", "depth": 2}).json()["graph"]
    assert near["nodes"][0]["title"].endswith("SCROOGE") and len(near["nodes"]) > 1 and near["edges"]
    assert all(0 <= edge[end] < len(near["nodes"]) for edge in near["edges"] for end in ("source", "target"))


def test_the_entities_with_most_relationships_are_drawn_apart_from_each_other(server: RunningServer) -> None:
    part = server.client.get("/graph", params={"top": 6}).json()["graph"]
    sizes = [node["size"] for node in part["nodes"]]
    assert 2 < len(sizes) <= 6 < part["n_nodes"] and sizes == sorted(sizes, reverse=True)
    joined = {edge[end] for edge in part["edges"] for end in ("source", "target")}
    assert joined == set(range(len(sizes)))
    places = [(node["x"], node["y"]) for node in part["nodes"]]
    assert min(dist(one, other) for one, other in combinations(places, 2)) > 0.5
    assert server.client.get("/graph", params={"top": 6}).json()["graph"] == part
    assert server.client.get("/graph", params={"top": 5, "type": "NONE SUCH"}).json()["graph"]["nodes"] == []


def test_types_limits_and_filters_narrow_the_picture(server: RunningServer) -> None:
    assert len(server.client.get("/graph", params={"limit": 1}).json()["graph"]["nodes"]) == 1
    assert server.client.get("/graph", params={"type": "NONE SUCH"}).json()["graph"]["nodes"] == []
    params = {"entity": "Scrooge", "depth": 3}
    whole = server.client.get("/graph", params=params).json()["graph"]["nodes"]
    passed = server.client.get("/graph", params={**params, "filter": "path=three.md"}).json()["graph"]["nodes"]
    assert 1 < len(passed) < len(whole)


@pytest.mark.parametrize(
    ("params", "status"),
    [
        ({"level": 0, "entity": "Scrooge"}, 400), ({"top": 9, "level": 0}, 400),
        ({"top": 501}, 400), ({"level": -1}, 400), ({"limit": 0}, 400), ({"depth": 9}, 400),
        ({"entity": "Nobody at all"}, 404), ({"community": "99999"}, 404), ({"filter": "nonsense"}, 400),
    ],
)  # fmt: skip
def test_a_part_that_cannot_be_drawn_is_refused(server: RunningServer, params: dict, status: int) -> None:
    answer = server.client.get("/graph", params=params)
    assert (answer.status_code, answer.json()["error"]["status"]) == (status, status)
