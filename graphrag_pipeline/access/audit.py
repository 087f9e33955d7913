"""The audit log: one line of JSON for each request, with who asked, what, and which documents the answer names.

    {"time": "2026-11-22T22:31:05Z", "principal": "analyst", "method": "POST", "route": "/search", "status": 200,
     "root": "news", "snapshot": "0a5c...", "documents": ["9f2c..."], "seconds": 0.031}

Texts of requests are logged only if `audit.texts` is set, texts of answers never. Keep out: HTTP.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from graphrag_pipeline.access.access_file import AuditRules
from graphrag_pipeline.filesystem import files

_MEGABYTE = 1_000_000
_OF_DOCUMENTS = frozenset({"metadata", "options", "values"})
"""Keys below which documents and requests choose the names, so that nothing there is read as an id."""


class AnswerTrace:
    """The root, the snapshot and the documents that an answer names.

    The answer is read as JSON, or as events of JSON, when it is complete: text inside it, of a question or of a
    document, is never taken for a name.
    """

    def __init__(self) -> None:
        self.snapshot = ""
        self.root = ""
        self._documents: dict[str, None] = {}
        self._pieces: list[bytes] = []

    def add(self, piece: bytes) -> None:
        """Keep the next piece of the answer."""
        self._pieces.append(piece)

    def finish(self) -> None:
        """Read the answer."""
        for value in _read_values(b"".join(self._pieces)):
            for part in (value, _part(value, "result", "structuredContent")):
                self.snapshot = self.snapshot or _text(part, "snapshot")
                self.root = self.root or _text(part, "root")
            self._documents |= dict.fromkeys(_document_ids(value))
        self._pieces.clear()

    @property
    def documents(self) -> list[str]:
        """Ids of the documents, in the order of the answer."""
        return list(self._documents)


def _read_values(content: bytes) -> list[Any]:
    """Return the JSON of an answer: one value, or one for each event; none if it is something else."""
    try:
        return [json.loads(content)]
    except ValueError:
        events = [line[6:] for line in content.splitlines() if line.startswith(b"data: ")]
    found = []
    for event in events:
        with suppress(ValueError):
            found.append(json.loads(event))
    return found


def _part(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _text(value: Any, key: str) -> str:
    found = _part(value, key)
    return found if isinstance(found, str) else ""


def _document_ids(value: Any) -> Iterator[str]:
    """Yield the ids of documents: values of `document_id`, and `id` of what stands at `document` and `documents`."""
    if isinstance(value, list):
        for element in value:
            yield from _document_ids(element)
    for key, held in value.items() if isinstance(value, dict) else ():
        if key == "document_id" and isinstance(held, str):
            yield held
        elif key == "document":
            yield from filter(None, [_text(held, "id")])
        elif key == "documents" and isinstance(held, list):
            yield from filter(None, (_text(one, "id") for one in held))
        if key not in _OF_DOCUMENTS:
            yield from _document_ids(held)


class AuditLog:
    """The log file of one server.

    Args:
        folder: that a relative path starts from.

    Raises:
        PipelineError: it cannot be written.
    """

    def __init__(self, rules: AuditRules, folder: Path) -> None:
        self.has_texts = rules.texts
        self._path = folder / rules.file
        self._max_bytes = round(rules.max_mb * _MEGABYTE)
        self._n_kept = rules.n_kept
        self._lock = threading.Lock()
        self._append(b"")

    def write(self, entry: dict[str, Any]) -> None:
        """Add a line; several servers may write one file.

        Raises:
            PipelineError: it cannot be written.
        """
        line = json.dumps({name: value for name, value in entry.items() if value not in ("", [], None)})
        with self._lock:
            self._append(line.encode() + b"\n")
            if self._max_bytes and self._path.stat().st_size >= self._max_bytes:
                self._rotate()

    def _append(self, line: bytes) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(descriptor, line)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise files.write_error(self._path, error) from error

    def _rotate(self) -> None:
        """Rename the file to `.1`, `.1` to `.2` and so on; the last one is removed."""
        names = [self._path, *(self._path.with_name(f"{self._path.name}.{n}") for n in range(1, self._n_kept + 1))]
        for younger, older in reversed([*pairwise(names)]):
            if younger.exists():
                os.replace(younger, older)
