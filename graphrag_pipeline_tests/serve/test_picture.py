"""GET /graph: what it draws, and what it refuses."""

from __future__ import annotations

import pytest

from graphrag_pipeline_tests.support.serving import RunningServer


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
        ({"level": 0, "entity": "Scrooge"}, 400), ({"level": -1}, 400), ({"limit": 0}, 400), ({"depth": 9}, 400),
        ({"entity": "Nobody at all"}, 404), ({"community": "99999"}, 404), ({"filter": "nonsense"}, 400),
    ],
)  # fmt: skip
def test_a_part_that_cannot_be_drawn_is_refused(server: RunningServer, params: dict, status: int) -> None:
    answer = server.client.get("/graph", params=params)
    assert (answer.status_code, answer.json()["error"]["status"]) == (status, status)
