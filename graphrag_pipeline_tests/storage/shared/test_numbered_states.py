"""Only one of two writers publishes a number, and the state of the highest number is current."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.storage.shared.numbered_states import STATES, NumberedStates, state_name
from graphrag_pipeline.storage.shared.objects import open_object_store
from graphrag_pipeline.storage.shared.state import SnapshotMarks, StoreState


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
