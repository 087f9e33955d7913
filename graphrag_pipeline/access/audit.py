"""The audit log: one line of JSON for each request, with who asked, what, and which documents the answer names.

    {"time": "2026-11-22T22:31:05Z", "principal": "analyst", "method": "POST", "route": "/search", "status": 200,
     "root": "news", "snapshot": "0a5c...", "documents": ["9f2c..."], "seconds": 0.031}

Texts of requests are logged only if `audit.texts` is set, texts of answers never. Keep out: HTTP.
"""

from __future__ import annotations

import json
import os
import re
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

from graphrag_pipeline.access.access_file import AuditRules
from graphrag_pipeline.filesystem import files

_DOCUMENT = re.compile(rb'document_id\\*":\s*\\*"([^"\\]{1,200})')
_SNAPSHOT = re.compile(rb'\\*"snapshot\\*":\s*\\*"([0-9a-f]{16})')
_ROOT = re.compile(rb'\\*"root\\*":\s*\\*"([A-Za-z0-9_.-]{1,100})\\*"')
_OVERLAP = 400
"""Bytes of a piece of an answer that are looked at again with the next one, since a name may be cut."""
_MEGABYTE = 1_000_000


class AnswerTrace:
    """The root, the snapshot and the documents that an answer names, found in its bytes while they are sent."""

    def __init__(self) -> None:
        self.snapshot = ""
        self.root = ""
        self._documents: dict[str, None] = {}
        self._end = b""

    def add(self, piece: bytes) -> None:
        """Look at the next piece of the answer."""
        content = self._end + piece
        self._documents |= {found.decode("utf-8", "replace"): None for found in _DOCUMENT.findall(content)}
        if not self.snapshot and (match := _SNAPSHOT.search(content)):
            self.snapshot = match.group(1).decode()
        if not self.root and (match := _ROOT.search(content)):
            self.root = match.group(1).decode()
        self._end = content[-_OVERLAP:]

    @property
    def documents(self) -> list[str]:
        """Ids of the documents, in the order of the answer."""
        return list(self._documents)


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
