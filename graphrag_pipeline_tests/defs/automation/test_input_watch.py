"""Decisions of the input-folder sensor: wait during a write, run once, retry with a growing delay."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from graphrag_pipeline.defs.automation import sensors
from graphrag_pipeline.defs.automation.sensors import NOTHING_CHANGED, Look, Watch, look_at_input
from graphrag_pipeline.inputs import files as input_files
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, STAGES
from graphrag_pipeline.tables import STAGE_TABLES
from graphrag_pipeline_tests.support.roots import CAROL, build_tables, make_root, put

TWO_BUCKETS = "storage:\n  n_buckets: 2\n"


class Clock:
    """Sensor ticks on a root, a minute apart."""

    def __init__(self, root: Root) -> None:
        self.root = root
        self.now = 1_000.0
        self.watch = Watch()

    def look(self, times: int = 1) -> Look:
        for _ in range(times):
            self.now += 60
            look = look_at_input(Root(self.root.path), self.watch, self.now)
            self.watch = Watch.from_json(look.watch.to_json())
        return look


@pytest.fixture
def root(indexed_root: Root) -> Root:
    return indexed_root


def index(root: Root) -> None:
    build_tables(Root(root.path), ALL_STAGES)


def test_unchanged_input_requests_no_run_and_is_read_once(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(root)
    assert clock.look(2).reason == NOTHING_CHANGED
    monkeypatch.setattr(sensors, "detect_input", lambda root: pytest.fail("read again"))
    assert clock.look(3).reason == NOTHING_CHANGED


def test_a_run_is_requested_once_two_ticks_see_the_same_change(root: Root) -> None:
    clock = Clock(root)
    clock.look(2)
    put(root.path, "four.txt", "They say that Scrooge saw the fog.")
    assert clock.look().run_key is None
    put(root.path, "four.txt", "They say that Scrooge saw the fog. And the fog came in.")
    assert clock.look().run_key is None, "still being written"
    assert clock.look().run_key
    assert clock.look().run_key is None, "requested already"


def test_a_write_that_keeps_size_and_time_is_seen(root: Root) -> None:
    clock = Clock(root)
    clock.look(2)
    path = root.input_folder / "one.txt"
    before = path.stat()
    path.write_text(path.read_text().replace("Marley was dead", "Marley was glad"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert clock.look(2).run_key


def test_a_reverted_edit_gets_another_run_key(root: Root) -> None:
    clock = Clock(root)
    clock.look(2)
    put(root.path, "one.txt", "Scrooge slept.")
    first = clock.look(2).run_key
    index(root)
    put(root.path, "one.txt", CAROL["one.txt"])
    second = clock.look(2).run_key
    index(root)
    put(root.path, "one.txt", "Scrooge slept.")
    third = clock.look(2).run_key
    assert first and second and third and len({first, second, third}) == 3


def test_an_edit_reverted_before_it_was_indexed_requests_no_run(root: Root) -> None:
    clock = Clock(root)
    clock.look(2)
    put(root.path, "one.txt", "Scrooge slept.")
    assert clock.look(2).run_key
    put(root.path, "one.txt", CAROL["one.txt"])
    assert clock.look(2).reason == NOTHING_CHANGED
    put(root.path, "one.txt", "Scrooge slept.")
    assert clock.look(2).run_key, "it was requested before, and lost"


def test_a_failed_run_is_requested_again_with_a_growing_delay(root: Root) -> None:
    clock = Clock(root)
    clock.look(2)
    put(root.path, "one.txt", "Scrooge slept.")
    keys, waits = [clock.look(2).run_key], []
    for _ in range(4):
        asked_at = clock.now
        while not (look := clock.look()).run_key:
            assert "without success" in look.reason
        keys.append(look.run_key)
        waits.append(clock.now - asked_at)
    assert len(set(keys)) == 5
    assert waits == [300, 600, 1200, 2400]
    put(root.path, "one.txt", "Scrooge woke.")
    assert clock.look(2).run_key, "other input does not wait"


def test_a_file_that_changes_while_it_is_read_defers_the_run(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(root)
    put(root.path, "four.txt", "The fog.")
    clock.look()
    read = sensors.detect_input

    def read_slowly(root: Root) -> dict:
        manifests = read(root)
        put(root.path, "four.txt", "The fog came pouring in.")
        return manifests

    monkeypatch.setattr(sensors, "detect_input", read_slowly)
    assert clock.look().reason == "the input folder changed while it was read; the next look reads it again"
    monkeypatch.undo()
    assert clock.look(2).run_key


def test_a_changed_prompt_or_setting_waits_for_a_person(root: Root) -> None:
    clock = Clock(root)
    clock.look(2)
    (root.path / "settings.yaml").write_text(TWO_BUCKETS + "text_units: {size: 200}\n")
    look = clock.look(2)
    assert look.run_key is None
    assert "text_units.size: 1200 -> 200" in look.reason
    settings = "text_units: {size: 200}\nschedule: {run_code_changes: true}\n"
    (root.path / "settings.yaml").write_text(TWO_BUCKETS + settings)
    assert clock.look().run_key


def test_the_sensor_does_not_finish_a_backfill_that_a_person_started(root: Root) -> None:
    clock = Clock(root)
    clock.look(2)
    settings = TWO_BUCKETS + "text_units: {size: 40, overlap: 9}\n"
    (root.path / "settings.yaml").write_text(settings)
    build_tables(Root(root.path), [stage.name for stage in STAGES.values() if stage.is_partitioned])
    look = clock.look(2)
    assert look.run_key is None, "no change is left, but later stages are stale by their data"
    assert "text_units since the last candidate: text_units.overlap: 100 -> 9; " in look.reason
    build_tables(Root(root.path), (*STAGES, "index_candidate"))
    (root.path / "settings.yaml").write_text(settings + "reports: {max_input_tokens: 9000}\n")
    build_tables(Root(root.path), STAGES)  # it comes out equal, so there is no new candidate
    put(root.path, "four.txt", "They say that Scrooge saw the fog.")
    assert clock.look(2).run_key, "the backfill is done"


def test_the_sensor_does_not_finish_an_interrupted_recluster(root: Root) -> None:
    clock = Clock(root)
    clock.look(2)
    head = root.tables.need("communities")
    other = root.tables.read_head(head).slice(1)  # as if a cold run had one community less
    root.tables.write(STAGE_TABLES["communities"], "all", [other], head.code, head.inputs, based_on="")
    look = clock.look(2)
    assert look.run_key is None and "communities since the last candidate: clustered from cold" in look.reason
    settings = TWO_BUCKETS + "schedule: {run_code_changes: true}\n"
    (root.path / "settings.yaml").write_text(settings)
    assert clock.look().run_key, "a setting allows it"
    (root.path / "settings.yaml").write_text(TWO_BUCKETS)
    current = str(root.snapshots.current())
    root.tables.write(STAGE_TABLES["communities"], "all", [other], head.code, head.inputs, based_on=current)
    put(root.path, "four.txt", "They say that Scrooge saw the fog.")
    assert clock.look(2).run_key, "communities that continue the published ones are not a backfill"


def test_overrides_count_as_input(root: Root) -> None:
    clock = Clock(root)
    clock.look(2)
    (root.path / "entity_overrides.csv").write_text("name,entity,action\nFezziwig,OLD FEZZIWIG,merge\n")
    assert clock.look(2).run_key


def test_a_cursor_of_another_release_is_discarded() -> None:
    assert Watch.from_json(None) == Watch.from_json("{") == Watch.from_json('["x"]') == Watch()
    assert Watch.from_json('{"seen": "x", "unknown": 1}') == replace(Watch(), seen="x")


def test_a_fingerprint_follows_names_and_contents(tmp_path: Path) -> None:
    root = make_root(tmp_path / "root")

    def fingerprint() -> str:
        return input_files.fingerprint_input(root.input_folder, root.settings.input)

    first = fingerprint()
    assert fingerprint() == first
    (root.input_folder / "one.txt").rename(root.input_folder / "won.txt")
    second = fingerprint()
    put(root.path, "won.txt", "Scrooge.")
    assert len({first, second, fingerprint()}) == 3
