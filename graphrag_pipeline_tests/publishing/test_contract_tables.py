"""Contract tables: cross references, numbers carried over and never reused, citations as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from graphrag_pipeline.citations import strip_citations
from graphrag_pipeline.defs.assets.stage_run import StageRun
from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.identity import WHOLE, entity_id, relationship_id
from graphrag_pipeline.indexing.embeddings import embedded_texts
from graphrag_pipeline.pipeline.stages import CANDIDATE
from graphrag_pipeline.publishing import contract_tables
from graphrag_pipeline.publishing.contract_tables import (
    COUNTED_TEXTS,
    Numbering,
    TokenCounts,
    join_contract_tables,
    with_full_content,
)
from graphrag_pipeline.tables import CONTRACT_TABLES
from graphrag_pipeline.text.tokens import count_tokens_each
from graphrag_pipeline_tests.support.corpora import small_index
from graphrag_pipeline_tests.support.roots import make_root


def by_title(table: pa.Table) -> dict[str, dict]:
    return {row["title"]: row for row in table.to_pylist()}


def test_tables_have_the_contract_schemas_in_number_order() -> None:
    tables = small_index.contract_tables()
    assert tables.keys() == CONTRACT_TABLES.keys()
    for name, rows in tables.items():
        assert rows.schema.equals(CONTRACT_TABLES[name].schema), name
        if "human_readable_id" in rows.schema.names:
            numbers = rows["human_readable_id"].to_pylist()
            assert numbers == sorted(numbers) == list(range(len(numbers)))


def test_numbers_follow_reading_order() -> None:
    tables = small_index.contract_tables()
    assert tables["documents"]["path"].to_pylist() == ["a.txt", "b.txt", "c.txt"]
    assert tables["text_units"]["text"].to_pylist() == [small_index.TEXTS[p] for p in ("a.txt", "b.txt", "c.txt")]
    assert set(tables["entities"]["title"].to_pylist()[:2]) == {"MARLEY", "SCROOGE"}
    assert tables["communities"]["size"].to_pylist() == [4, 1, 2, 2]


def test_cross_references_point_both_ways() -> None:
    tables = small_index.contract_tables()
    units = {row["id"]: row for row in tables["text_units"].to_pylist()}
    unit = units[small_index.unit_id("a.txt")]
    assert set(unit["entity_ids"]) == {entity_id("MARLEY"), entity_id("SCROOGE")}
    assert unit["relationship_ids"] == [relationship_id("MARLEY", "SCROOGE")]
    assert unit["covariate_ids"] == ["claim"]
    scrooge = by_title(tables["entities"])["SCROOGE"]
    assert scrooge["text_unit_ids"] == [small_index.unit_id("a.txt"), small_index.unit_id("b.txt")]
    assert scrooge["description"] == "About SCROOGE."
    documents = {row["path"]: row for row in tables["documents"].to_pylist()}
    assert documents["b.txt"]["text_unit_ids"] == [small_index.unit_id("b.txt")]


def test_communities_know_their_family_relationships_and_text_units() -> None:
    communities = {row["id"]: row for row in small_index.contract_tables()["communities"].to_pylist()}
    root, left = communities[small_index.ROOT], communities[small_index.LEFT]
    assert root["parent"] == -1
    assert left["parent"] == root["community"]
    assert root["children"] == sorted(communities[key]["community"] for key in (small_index.LEFT, small_index.RIGHT))
    assert len(root["relationship_ids"]) == 3
    assert left["relationship_ids"] == [relationship_id("MARLEY", "SCROOGE")]
    assert left["text_unit_ids"] == [small_index.unit_id("a.txt"), small_index.unit_id("b.txt")]
    assert communities[small_index.LONE]["text_unit_ids"] == [small_index.unit_id("c.txt")]


def test_reports_cite_numbers_and_embed_the_same_text_as_their_stage() -> None:
    tables = small_index.contract_tables()
    entities = by_title(tables["entities"])
    stage = with_full_content(small_index.stage_tables()["community_reports"])
    staged = dict(
        zip(stage["community_id"].to_pylist(), embedded_texts("default-community-full_content", stage), strict=True)
    )
    numbers = dict(
        zip(tables["communities"]["id"].to_pylist(), tables["communities"]["community"].to_pylist(), strict=True)
    )
    reports = {row["community"]: row for row in tables["community_reports"].to_pylist()}
    lone = reports[numbers[small_index.LONE]]
    assert f"[Data: Entities ({entities['FOG']['human_readable_id']})]" in lone["full_content"]
    for community, number in numbers.items():
        assert strip_citations(reports[number]["full_content"]) == staged[community]


def test_numbers_are_carried_over_and_never_reused() -> None:
    def assign(numbering: Numbering, *ids: str) -> list[int]:
        return numbering.assign("entity", pa.array(ids)).tolist()

    first = Numbering(None)
    assert assign(first, "x", "y", "z") == [0, 1, 2]
    second = Numbering(first.table())
    assert assign(second, "w", "x") == [3, 0]
    third = Numbering(second.table())
    assert assign(third, "z", "w") == [4, 3]
    assert third.find("entity", ["w", "x", "z"]) == {"w": 3, "z": 4}


def test_second_join_with_the_numbers_of_the_first_changes_nothing() -> None:
    first = small_index.contract_tables()
    second = small_index.contract_tables(first["record_numbers"])
    assert all(first[name].equals(second[name]) for name in first)


def test_join_does_not_depend_on_row_order() -> None:
    reversed_rows = {name: rows[::-1] for name, rows in small_index.stage_tables().items()}
    shuffled = join_contract_tables(reversed_rows, None, count_tokens_each)
    for name, rows in small_index.contract_tables().items():
        assert rows.equals(shuffled[name]), name


def test_descriptions_older_than_the_graph_are_an_error() -> None:
    tables = small_index.stage_tables()
    tables["descriptions"] = tables["descriptions"].slice(1)
    with pytest.raises(KeyError, match="older than the graph"):
        join_contract_tables(tables, None, count_tokens_each)


def test_an_empty_corpus_joins_to_empty_tables() -> None:
    empty = {name: rows.slice(0, 0) for name, rows in small_index.stage_tables().items()}
    tables = join_contract_tables(empty, None, count_tokens_each)
    assert {name: rows.num_rows for name, rows in tables.items() if name != "record_numbers"} == {
        name: 0 for name in CONTRACT_TABLES if name != "record_numbers"
    }


def entities(*rows: tuple[str, str, str]) -> pa.Table:
    return pa.table(dict(zip(("id", "title", "description"), map(list, zip(*rows, strict=True)), strict=True)))


@pytest.mark.parametrize("slice_rows", [1, 2, 65_536])
def test_only_new_and_changed_texts_are_counted(monkeypatch: pytest.MonkeyPatch, slice_rows: int) -> None:
    monkeypatch.setattr(contract_tables, "_SLICE_ROWS", slice_rows)
    before = entities(("a", "FOG", "It is cold."), ("b", "BOB", "He is a clerk."), ("c", "GONE", ""))
    known = before.append_column("n_tokens", pa.array([100, 200, 300], pa.int64()))
    now = entities(("b", "BOB", "He is a clerk."), ("d", "NEW", "It is new."), ("a", "FOG", "It is thick."))
    counted: list[str] = []

    def count(texts: Sequence[str]) -> list[int]:
        counted.extend(texts)
        return [len(text) for text in texts]

    found = TokenCounts(count, {"entities": known}).add("entities", now)
    assert counted == ["NEW It is new.", "FOG It is thick."]
    assert found["n_tokens"].to_pylist() == [200, 14, 16]


def test_a_join_with_counts_of_an_earlier_one_has_the_same_tables() -> None:
    first = small_index.contract_tables()

    def refuse(texts: Sequence[str]) -> list[int]:
        assert not texts
        return []

    stage = small_index.stage_tables()
    again = join_contract_tables(stage, first["record_numbers"], refuse, first)
    assert all(first[name].equals(again[name]) for name in first)
    shorter = {name: rows.slice(1) for name, rows in first.items() if name in COUNTED_TEXTS}
    once_more = join_contract_tables(stage, first["record_numbers"], count_tokens_each, shorter)
    assert all(first[name].equals(once_more[name]) for name in first)


def test_counts_are_taken_only_from_whole_files_of_the_same_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    root = make_root(tmp_path / "root", settings="storage: {n_buckets: 1}\n")
    snapshot = root.snapshots.open(run_index(root).snapshot)
    frozen = StageRun(root, CANDIDATE, WHOLE).frozen_before(COUNTED_TEXTS)
    assert {name: rows.equals(snapshot.table(name)) for name, rows in frozen.items()} == dict.fromkeys(
        COUNTED_TEXTS, True
    )
    mapped, stored = snapshot.mapped_path("entities"), snapshot.table_path("entities")
    for path in (mapped, stored):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        frozen = StageRun(root, CANDIDATE, WHOLE).frozen_before(["entities"])
        assert frozen.keys() == ({"entities"} if path == mapped else set()), "the other file of the table serves"
    other = StageRun(root, CANDIDATE, WHOLE)
    other.code = {**other.code, "text_units.encoding": "another"}
    assert other.frozen_before(["relationships"]) == {}
