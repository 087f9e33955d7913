"""A state survives writing and reading, and a three-way comparison finds the side that changed."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.storage.shared.objects import open_object_store
from graphrag_pipeline.storage.shared.state import (
    STATES,
    DamagedStateError,
    NumberedStates,
    SnapshotMarks,
    StoreState,
    choose,
    find_conflicts,
    heads_to_take,
    state_name,
)
from graphrag_pipeline.storage.table_store import Head, StoredFile, data_version_of

VERSIONS = st.sampled_from("abc")
KEYS = st.sampled_from(["entities/all", "documents/000", "documents/001"])
HEADS = st.dictionaries(KEYS, VERSIONS).map(lambda versions: {key: head(key, v) for key, v in versions.items()})


def head(key: str, version: str) -> Head:
    table, partition = key.split("/")
    stored = StoredFile(f"{version}.parquet", 3, 100)
    return Head(
        table, partition, (stored,), data_version_of([stored]), "code", {"algorithm": 1}, {"input folder": version}, ""
    )


@given(HEADS, st.none() | st.just("0" * 16))
def test_a_state_reads_back_equal_and_equal_states_are_equal_bytes(heads: dict[str, Head], pinned: str | None) -> None:
    marks = {"0" * 16: SnapshotMarks(1_700_000_000_000_000_001, '["a"]', "recall fell by é")}
    state = StoreState(8, heads, marks, "0" * 16, pinned, {"snapshots/vectors/x/y.tar": 2})
    assert StoreState.from_bytes(state.to_bytes(), "here") == state
    shuffled = StoreState(8, dict(reversed(heads.items())), marks, "0" * 16, pinned, state.rewritten)
    assert shuffled.to_bytes() == state.to_bytes()


@pytest.mark.parametrize("data", [b"", b"\x1f\x8b\x08", StoreState().to_bytes()[:-4], b"x" * 40])
def test_a_damaged_state_names_its_place_and_the_remedy(data: bytes) -> None:
    with pytest.raises(
        PipelineError, match=r"s3://bucket/state is damaged .*remove it\. On .* run `graphrag-pipeline index`"
    ):
        StoreState.from_bytes(data, "s3://bucket/state")


def hostile(**changes: object) -> bytes:
    state = StoreState(8, {"entities/all": head("entities/all", "a")}, {"0" * 16: SnapshotMarks(1, None, "")})
    return gzip.compress(json.dumps(json.loads(gzip.decompress(state.to_bytes())) | changes).encode())


@pytest.mark.parametrize(
    "changes",
    [{"current": value} for value in ([], {}, 5, True, "")]
    + [{"pinned": value} for value in ([], {}, 0)]
    + [{"rewritten": value} for value in ("x", None, {"a/b.tar": "x"}, {"a/b.tar": -1})]
    + [{"n_buckets": value} for value in ([], "x", 2**70, -1, True)]
    + [{"heads": value} for value in ([], None, {"entities/all": []}, {"entities/all": {"files": 5}})]
    + [{"snapshots": {"0" * 16: {"created_ns": 1, "checked": None, "refusal": ""} | wrong}} for wrong in (
        {"created_ns": "x"}, {"created_ns": None}, {"created_ns": 1.5}, {"created_ns": -1}, {"created_ns": 2**63},
        {"checked": 5}, {"checked": True}, {"checked": []}, {"refusal": 5}, {"refusal": None}, {"other": 1},
    )],
    ids=str,
)  # fmt: skip
def test_a_value_of_another_type_is_damage(changes: dict[str, object]) -> None:
    with pytest.raises(PipelineError, match="here"):
        StoreState.from_bytes(hostile(**changes), "here")
    StoreState.from_bytes(hostile(), "here")


@given(HEADS, st.data())
def test_a_changed_byte_or_a_cut_is_found(heads: dict[str, Head], data: st.DataObject) -> None:
    state = StoreState(8, heads, {}, "0" * 16, None, {})
    whole = bytearray(state.to_bytes())
    place = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        del whole[place:]
    else:
        whole[place] ^= data.draw(st.integers(1, 255))
    try:
        assert StoreState.from_bytes(bytes(whole), "here") == state  # a byte of gzip's header that says nothing
    except DamagedStateError as error:
        assert "here is damaged" in str(error)


@given(VERSIONS, VERSIONS, VERSIONS)
def test_the_side_that_changed_counts_and_of_both_the_stores(base: str, here: str, there: str) -> None:
    chosen = choose(base, here, there)
    assert chosen in (here, there)
    if here in (base, there):
        assert chosen == there
    elif there == base:
        assert chosen == here
    else:
        assert chosen == there


@given(HEADS, HEADS, HEADS)
def test_no_head_of_the_store_is_lost_and_own_ones_stay_without_another_writer(
    base: dict[str, Head], here: dict[str, Head], there: dict[str, Head]
) -> None:
    taken = heads_to_take(StoreState(heads=base), here, StoreState(heads=there))
    after = {**here, **taken}
    assert there.keys() <= after.keys() and here.keys() <= after.keys()
    for key, found in after.items():
        if key not in there or (there[key] == base.get(key) and key in here):
            assert found == here[key]
        else:
            assert found == there[key]
    assert heads_to_take(StoreState(heads=there), after, StoreState(heads=there)) == {}  # once is enough
    assert set(find_conflicts(StoreState(heads=base), here, taken)) <= taken.keys() & here.keys()


def state(number: int, snapshot: str = "0" * 16) -> StoreState:
    return StoreState(2, snapshots={snapshot: SnapshotMarks(1, None, "")}, current=snapshot, number=number)


def test_a_number_is_published_once(url: str) -> None:
    one, two = NumberedStates(open_object_store(url)), NumberedStates(open_object_store(url))
    assert one.latest() is None
    assert one.publish(state(1))
    assert not two.publish(state(1, "1" * 16))
    assert one.publish(state(1))  # the same once more, like a repeated request
    found = two.latest()
    assert found == state(1) and found is not None and found.number == 1


def test_the_highest_number_counts_and_older_ones_go(url: str) -> None:
    objects = open_object_store(url)
    states = NumberedStates(objects)
    for number in range(1, 12):
        assert states.publish(state(number, f"{number:016d}"))
    objects.write(state_name(3), state(3).to_bytes())  # of a writer that slept very long
    objects.write(f"{STATES}/notes.txt", b"of a person")
    found = states.latest()
    assert found is not None and (found.number, found.current) == (11, f"{11:016d}")
    assert states.publish(state(12))
    assert objects.names(STATES) == [*map(state_name, (10, 11, 12)), f"{STATES}/notes.txt"]
    states.remove_before(12)
    assert objects.names(STATES) == [state_name(12), f"{STATES}/notes.txt"]


def test_a_state_reaches_the_disk_after_its_objects_and_before_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = open_object_store(f"file://{tmp_path}/store")
    objects.write("tables/one", b"1")
    flushed = []
    monkeypatch.setattr(files, "flush_to_disk", lambda folder: flushed.append((folder, objects.names(""))))
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_size))
    assert NumberedStates(objects).publish(state(1))
    before, after = ["tables/one"], [state_name(1), "tables/one"]
    assert flushed == [(tmp_path / "store", before), (tmp_path / "store", after)]
    assert synced == [len(state(1).to_bytes())]


def test_a_damaged_one_is_named(url: str) -> None:
    objects = open_object_store(url)
    NumberedStates(objects).publish(state(1))
    objects.write(state_name(2), b"nonsense")
    with pytest.raises(PipelineError, match=rf"{url}/states/000000002\.json\.gz is damaged"):
        NumberedStates(objects).latest()


def test_a_transfer_that_was_cut_off_is_read_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = open_object_store(url)
    NumberedStates(objects).publish(state(1))
    read, lengths = objects.read, [20]
    monkeypatch.setattr(objects, "read", lambda name: (read(name) or b"")[: lengths.pop() if lengths else None])
    found = NumberedStates(objects).latest()
    assert found is not None and found.number == 1 and not lengths
