"""The order of flushes around a publication; `torture/power_cuts.py` tries real cuts."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path

import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filesystem.files import CHECK, read_sealed, seal


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What reaches the disk, in order."""
    done: list[str] = []
    fsync, move = os.fsync, os.replace

    def note_fsync(descriptor: int) -> None:
        fsync(descriptor)
        done.append("folder flushed" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file flushed")

    def note_move(source: Path, target: Path) -> None:
        move(source, target)
        done.append("moved")

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "replace", note_move)
    return done


def test_a_durable_replacement_flushes_the_file_then_moves_it_then_flushes_its_folder(
    tmp_path: Path, steps: list[str]
) -> None:
    path = tmp_path / "current.json"
    path.write_bytes(b"old")
    files.replace_durably(path, b"new")
    assert steps == ["file flushed", "moved", "folder flushed"]
    assert path.read_bytes() == b"new"


def test_a_disk_that_lost_data_stops_the_publication(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(files, "_load_syncfs", lambda: lose)
    with pytest.raises(PipelineError, match=r"cannot be written \(Input/output error\)"):
        files.flush_to_disk(tmp_path)


def test_without_a_flush_of_one_file_system_all_are_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[bool] = []
    monkeypatch.setattr(files, "_load_syncfs", lambda: None)
    monkeypatch.setattr(os, "sync", lambda: flushed.append(True))
    files.flush_to_disk(tmp_path)
    assert flushed == [True]


@pytest.mark.skipif(not hasattr(os, "sync"), reason="no flush on this system")
def test_a_real_folder_is_flushed(tmp_path: Path) -> None:
    files.flush_to_disk(tmp_path)


VALUES = {"alpha": 1, "names": ["Zoë", f'"{CHECK}": "'], "nested": {CHECK: "its own", "x": [1.5, None]}, "zeta": {}}
FIRST, LAST = {"zeta": 1}, {"alpha": 1}
"""Values before and behind which the hash stands."""


@pytest.mark.parametrize("values", [VALUES, FIRST, LAST, {}])
def test_what_was_sealed_is_read(values: dict[str, object]) -> None:
    assert read_sealed(seal(values)) == values


@pytest.mark.parametrize("values", [VALUES, FIRST, LAST])
def test_a_file_as_it_was_written_is_read_without_writing_it_again(
    values: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = seal(values)
    monkeypatch.setattr(files, "_encode", lambda values: pytest.fail("the values are written again"))
    assert read_sealed(data) == values


def test_another_layout_of_the_same_values_is_read() -> None:
    assert read_sealed(json.dumps(json.loads(seal(VALUES))).encode()) == VALUES


def test_every_changed_bit_is_refused() -> None:
    data = seal(VALUES)
    for place in range(len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[place] ^= 1 << bit
            try:
                read = read_sealed(bytes(changed), is_required=True)
            except ValueError:
                continue
            assert read == VALUES, f"bit {bit} of byte {place}"


def test_a_file_without_a_hash_is_refused_if_none_was_ever_written_so() -> None:
    assert read_sealed(b'{"a": 1}') == {"a": 1}
    with pytest.raises(ValueError, match="a byte changed"):
        read_sealed(b'{"a": 1}', is_required=True)
    with pytest.raises(ValueError, match="a byte changed"):
        read_sealed(b'{\n "check": "None"\n}', is_required=True)
