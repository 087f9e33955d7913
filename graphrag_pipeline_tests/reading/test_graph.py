"""Parts of the graph as it is drawn: what each holds, what a type or a filter leaves out, and old snapshots."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.reading.graph import (
    GraphPart,
    draw_community,
    draw_level,
    draw_path,
    draw_surroundings,
    draw_top,
)
from graphrag_pipeline.reading.lookup import RecordNameError
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline_tests.support.corpora import small_index


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexReader]:
    snapshot = small_index.freeze(tmp_path_factory.mktemp("graph"))
    with IndexReader(snapshot, Settings(), load_static_embeddings()) as opened:
        yield opened


def titles(part: GraphPart) -> list[str]:
    return [node.title for node in part.nodes]


def number_of(reader: IndexReader, key: str) -> int:
    return int(reader.column("communities", "community")[reader.snapshot.rows_of("communities", [key])[0]])


def test_a_level_shows_its_communities_largest_first(reader: IndexReader) -> None:
    part = draw_level(reader, 0)
    assert [(node.kind, node.size, node.level, node.has_parts) for node in part.nodes] == [
        ("community", 4, 0, True),
        ("community", 1, 0, False),
    ]
    assert (part.n_nodes, part.n_levels) == (2, 2)
    assert [node.name for node in part.nodes] == ["Scrooge", "Fog"]
    assert len(draw_level(reader, 0, n_most=1).nodes) == 1
    assert draw_level(reader, 0, n_most=1).n_nodes == 2
    assert draw_level(reader, 7).nodes == ()


def test_communities_of_a_level_are_joined_by_the_sum_of_their_relationships(reader: IndexReader) -> None:
    [edge] = draw_level(reader, 1).edges
    weights = {
        (one["source"], one["target"]): one["weight"] for one in reader.snapshot.table("relationships").to_pylist()
    }
    assert edge.weight == pytest.approx(weights["BOB CRATCHIT", "SCROOGE"])


def test_a_community_opens_into_its_parts_inside_its_disc(reader: IndexReader) -> None:
    [outer] = [node for node in draw_level(reader, 0).nodes if node.size == 4]
    part = draw_community(reader, str(outer.number))
    assert {node.number for node in part.nodes} == {
        number_of(reader, small_index.LEFT),
        number_of(reader, small_index.RIGHT),
    }
    for node in part.nodes:
        assert np.hypot(node.x - outer.x, node.y - outer.y) + node.radius <= outer.radius + 0.02
        assert node.parent == outer.number


def test_a_community_without_parts_opens_into_its_entities(reader: IndexReader) -> None:
    part = draw_community(reader, str(number_of(reader, small_index.LEFT)))
    assert sorted(titles(part)) == ["MARLEY", "SCROOGE"]
    assert [(edge.source, edge.target) for edge in part.edges] in ([(0, 1)], [(1, 0)])


def test_surroundings_begin_with_the_entity_and_grow_with_the_depth(reader: IndexReader) -> None:
    assert titles(draw_surroundings(reader, "Tiny Tim")) == ["TINY TIM", "BOB CRATCHIT"]
    assert titles(draw_surroundings(reader, "Tiny Tim", depth=3)) == ["TINY TIM", "BOB CRATCHIT", "SCROOGE", "MARLEY"]
    part = draw_surroundings(reader, "Tiny Tim", depth=3, n_most=2)
    assert (len(part.nodes), part.n_nodes, len(part.edges)) == (2, 4, 1)
    with pytest.raises(RecordNameError):
        draw_surroundings(reader, "Nobody at all")


def test_a_path_leads_over_the_fewest_relationships_or_there_is_none(reader: IndexReader) -> None:
    part = draw_path(reader, "Tiny Tim", "Marley")
    assert titles(part) == ["TINY TIM", "BOB CRATCHIT", "SCROOGE", "MARLEY"]
    assert {frozenset((edge.source, edge.target)) for edge in part.edges} == {frozenset((i, i + 1)) for i in range(3)}
    assert titles(draw_path(reader, "Marley", "Marley")) == ["MARLEY"]
    assert draw_path(reader, "Marley", "Fog").nodes == ()
    with pytest.raises(RecordNameError):
        draw_path(reader, "Marley", "Nobody at all")


def test_types_leave_out_other_entities_and_empty_communities(reader: IndexReader) -> None:
    [kind] = {row["type"] for row in reader.snapshot.table("entities").to_pylist() if row["title"] == "FOG"}
    assert draw_level(reader, 0, types=["NO SUCH TYPE"]).nodes == ()
    assert sum(node.size for node in draw_level(reader, 0, types=[kind]).nodes) >= 1
    assert titles(draw_surroundings(reader, "Tiny Tim", types=["NO SUCH TYPE"])) == ["TINY TIM"]


def test_a_filter_shows_only_what_passes(reader: IndexReader) -> None:
    passed = reader.where("path=a.txt")
    assert titles(draw_surroundings(passed, "Scrooge", depth=3)) == ["SCROOGE", "MARLEY"]
    assert titles(draw_path(passed, "Scrooge", "Marley")) == ["SCROOGE", "MARLEY"]
    with pytest.raises(RecordNameError):
        draw_path(passed, "Marley", "Tiny Tim")
    assert draw_level(passed, 0).edges == ()
    assert {node.size for node in draw_level(passed, 1).nodes} <= {1, 2}


def test_a_relationship_that_does_not_pass_joins_nothing(reader: IndexReader, monkeypatch: pytest.MonkeyPatch) -> None:
    passed = reader.where("path=a.txt")
    assert titles(draw_top(passed, 9)) == ["SCROOGE", "MARLEY"] and draw_top(passed, 9).edges
    mask = passed.row_mask
    hidden = np.zeros(len(mask("relationships")), dtype=bool)  # both entities pass by another text unit
    monkeypatch.setattr(passed, "row_mask", lambda table: hidden if table == "relationships" else mask(table))
    assert titles(draw_surroundings(passed, "Scrooge", depth=3)) == ["SCROOGE"]
    assert draw_top(passed, 9).edges == () and draw_path(passed, "Scrooge", "Marley").nodes == ()
