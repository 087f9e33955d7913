"""Hashes that a process remembers."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

from graphrag_pipeline.filesystem.content_hashes import hash_file


def test_a_remembered_hash_is_not_that_of_an_equally_old_file_of_the_same_size(tmp_path: Path) -> None:
    """Unpacked files all have the time 0, and a file may get the inode of one that was removed."""
    path = tmp_path / "unpacked.npy"
    for content in (b"first version", b"other version"):
        path.write_bytes(content)
        os.utime(path, ns=(0, 0))
        time.sleep(0.06)  # old enough to be remembered
        assert hash_file(path) == hash_file(path) == hashlib.sha256(content).hexdigest()
