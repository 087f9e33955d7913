"""Numbers of communities: a changed community keeps the number of the one that it matches."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.indexing.communities.numbers import carry_community_numbers, match_communities
from graphrag_pipeline.tables import COMMUNITIES, RECORD_NUMBERS


def community(id: str, members: str, level: int = 0) -> dict:
    return {"id": id, "level": level, "parent_id": None, "entity_ids": sorted(members), "size": len(members)}


def carried(old: list[dict], new: list[dict], numbers: dict[str, int]) -> dict[str, int]:
    """Return the numbers by community id; one entity has a number as well."""
    rows = [{"kind": "community", "id": id, "number": number} for id, number in numbers.items()]
    rows += [{"kind": kind, "id": "", "number": 9} for kind in ("community", "entity")]
    rows.append({"kind": "entity", "id": "a", "number": 3})
    table = RECORD_NUMBERS.sort(RECORD_NUMBERS.from_rows(rows))
    found = carry_community_numbers(table, COMMUNITIES.from_rows(old), COMMUNITIES.from_rows(new)).to_pylist()
    assert [row for row in found if row["kind"] == "entity"] == [
        row for row in table.to_pylist() if row["kind"] == "entity"
    ]
    return {row["id"]: row["number"] for row in found if row["kind"] == "community" and row["id"]}


def test_a_community_with_a_new_member_keeps_its_number():
    assert carried([community("x", "abc")], [community("y", "abcd")], {"x": 5}) == {"y": 5}


def test_a_community_with_half_of_another_or_less_gets_a_new_number():
    assert carried([community("x", "abcd")], [community("y", "ab"), community("z", "cd")], {"x": 5}) == {"x": 5}


def test_an_unchanged_community_keeps_its_number_whatever_is_similar():
    old, new = [community("x", "abcd")], [community("x", "abcd"), community("y", "abc", level=1)]
    assert carried(old, new, {"x": 5}) == {"x": 5}


def test_levels_do_not_match_each_other():
    assert carried([community("x", "abc")], [community("y", "abcd", level=1)], {"x": 5}) == {"x": 5}


def test_without_communities_nothing_changes():
    assert carried([], [community("y", "ab")], {}) == {}
    assert carried([community("x", "ab")], [], {"x": 1}) == {"x": 1}


partitions = st.lists(st.integers(0, 3), min_size=12, max_size=12).map(
    lambda labels: [
        community(f"{label}", "".join("abcdefghijkl"[i] for i in range(12) if labels[i] == label))
        for label in sorted(set(labels))
    ]
)


@given(partitions, partitions)
def test_no_number_is_given_twice(old: list[dict], new: list[dict]):
    rows, columns = match_communities(*(COMMUNITIES.from_rows(p) for p in (old, new)))
    assert max(Counter(rows.tolist()).values(), default=0) <= 1
    assert max(Counter(columns.tolist()).values(), default=0) <= 1
