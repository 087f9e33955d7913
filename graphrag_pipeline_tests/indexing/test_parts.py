"""Parts of the graph: together they are all of it, and what belongs together is in one part."""

from __future__ import annotations

import hashlib

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.indexing.parts import choose_part, choose_subtrees


@given(st.lists(st.integers(0, 30), max_size=60), st.integers(1, 5))
def test_rows_of_one_key_are_in_one_part(numbers: list[int], n_parts: int) -> None:
    keys = [hashlib.sha256(str(number).encode()).hexdigest() for number in numbers]
    rows = pa.table({"description_key": pa.array(keys, pa.string())})
    parts = [choose_part(rows, number, n_parts)["description_key"].to_pylist() for number in range(n_parts)]
    assert sorted(key for part in parts for key in part) == sorted(keys)
    assert sum(len(set(part)) for part in parts) == len(set(keys))


@given(st.lists(st.integers(-1, 20), min_size=1, max_size=40), st.integers(1, 4))
def test_a_tree_of_communities_is_in_one_part(choices: list[int], n_parts: int) -> None:
    parents = [None if choice < 0 or not i else choice % i for i, choice in enumerate(choices)]
    levels: list[int] = []
    for parent in parents:
        levels.append(0 if parent is None else levels[parent] + 1)
    ids = [f"c{i:02}" for i in range(len(parents))]
    columns = {"id": ids, "level": levels, "parent_id": [None if p is None else ids[p] for p in parents]}
    rows = pa.table(columns, schema=pa.schema({"id": pa.string(), "level": pa.int64(), "parent_id": pa.string()}))
    parts = [set(choose_subtrees(rows, number, n_parts)["id"].to_pylist()) for number in range(n_parts)]
    assert sorted(key for part in parts for key in part) == ids
    for own, parent in zip(columns["id"], columns["parent_id"], strict=True):
        assert parent is None or any({own, parent} <= part for part in parts)
