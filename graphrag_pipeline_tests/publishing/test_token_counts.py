"""Token counts: kept only for records whose texts are equal, and always those of a count from scratch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from graphrag_pipeline.defs.assets.stage_run import StageRun
from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.pipeline.stages import CANDIDATE
from graphrag_pipeline.publishing import token_counts
from graphrag_pipeline.publishing.contract_tables import join_contract_tables
from graphrag_pipeline.publishing.token_counts import COUNTED_TEXTS, TokenCounts
from graphrag_pipeline.text.tokens import count_tokens_each
from graphrag_pipeline_tests.support.corpora import small_index
from graphrag_pipeline_tests.support.roots import make_root


def entities(*rows: tuple[str, str, str]) -> pa.Table:
    return pa.table(dict(zip(("id", "title", "description"), map(list, zip(*rows, strict=True)), strict=True)))


@pytest.mark.parametrize("slice_rows", [1, 2, 65_536])
def test_only_new_and_changed_texts_are_counted(monkeypatch: pytest.MonkeyPatch, slice_rows: int) -> None:
    monkeypatch.setattr(token_counts, "_SLICE_ROWS", slice_rows)
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
