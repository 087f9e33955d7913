"""The entries of files in the corpus manifest, kept in the cache while a file stays as it is.

A file counts as unchanged while its size, times of change and inode are the same, or what the store behind a URL
reports as its version; then its entry in the corpus manifest is known without opening it. Keep out: texts and metadata
of documents.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.inputs.files import InputFile, state_of
from graphrag_pipeline.inputs.source_records import SourceRecord, version_of_readers
from graphrag_pipeline.settings.input import InputSettings

DETECTED_FILE = "detected.json.gz"
_YOUNG_NS = 2_000_000_000
"""A file that changed so short a time ago may change again without another time of change: some disks count seconds."""
_KEPT = ("document_id", "record", "format", "n_bytes", "content_hash", "problem", "note")


class DetectedFiles:
    """The entries of files that were read before, by the state in which they were read.

    Args:
        path: file that holds them; one that is missing, damaged or made by other readers or settings counts as empty.
    """

    def __init__(self, path: Path, settings: InputSettings) -> None:
        self._path = path
        self._key = version_of_readers(settings)
        self._known: dict[str, tuple[str, list[list[Any]]]] = {}
        with contextlib.suppress(OSError, EOFError, ValueError, KeyError, TypeError):
            stored = json.loads(gzip.decompress(path.read_bytes()))
            if stored["key"] == self._key:
                self._known = stored["files"]
        self._present: dict[str, str] = {}
        self._is_changed = False

    def split(self, listed: Iterable[InputFile]) -> tuple[list[SourceRecord], list[InputFile]]:
        """Return the records of unchanged files, without text, and the files that must be read."""
        records, unknown = [], []
        for file in listed:
            state = "" if file.problem or (file.url_path and not file.version) else state_of(file)
            self._present[file.path] = state
            kept = self._known.get(file.path)
            if state and kept and kept[0] == state:
                records += [_record_of(file.path, row) for row in kept[1]]
            else:
                unknown.append(file)
        return records, unknown

    def add(self, file: InputFile, records: Sequence[SourceRecord]) -> None:
        """Keep what was read from a file that `split` returned, but for its texts."""
        state = self._present[file.path]
        is_known = not any(record.is_unknown for record in records)
        if state and is_known and (file.url_path or _is_old(file)):
            self._known[file.path] = state, [[getattr(record, name) for name in _KEPT] for record in records]
            self._is_changed = True

    def save(self) -> None:
        """Write the entries of the files that are still there, if any changed; without permission nothing is kept."""
        kept = {path: entry for path, entry in self._known.items() if path in self._present}
        if self._is_changed or len(kept) < len(self._known):
            data = json.dumps({"key": self._key, "files": kept}).encode()
            with contextlib.suppress(PipelineError):
                files.replace(self._path, gzip.compress(data, compresslevel=1, mtime=0))


def _is_old(file: InputFile) -> bool:
    try:
        found = os.stat(file.location)
    except OSError:
        return False
    return max(found.st_mtime_ns, found.st_ctime_ns) < time.time_ns() - _YOUNG_NS


def _record_of(path: str, row: list[Any]) -> SourceRecord:
    values = dict(zip(_KEPT, row, strict=True))
    return SourceRecord(path=path, title="", text="", creation_date=None, metadata="{}", **values)
