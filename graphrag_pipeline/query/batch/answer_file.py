"""A file of answers: JSON lines, added to as answers come, put in order at the end.

Each line is whole or, after a kill, the last; so what was answered is read again and not asked again. Keep out: asking.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files

_OPENING = b'{"key": '


class AnswerFile:
    """Answers at a path, made if it is not there.

    Attributes:
        whole: where the lines that need no asking again lie, by their key: (offset, bytes).

    Raises:
        PipelineError: the file holds something else, another process writes it, or it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.whole: dict[str, tuple[int, int]] = {}
        self._failed: dict[str, tuple[int, int]] = {}
        if not path.parent.is_dir():
            raise PipelineError(f"{path}: there is no folder {path.parent}; make it, or name another file")
        try:
            self._file = path.open("r+b" if path.exists() else "x+b")
        except OSError as error:
            raise files.write_error(path, error) from error
        try:
            self._lock()
            self._read()
        except PipelineError:
            self._file.close()
            raise

    def __enter__(self) -> AnswerFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, answer: dict[str, Any]) -> None:
        """Put an answer at the end.

        Raises:
            PipelineError: the disk is full.
        """
        line = json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        try:
            start = self._file.seek(0, 2)
            self._file.write(line)
            self._file.flush()
        except OSError as error:
            raise files.write_error(self.path, error) from error
        self._place(answer, (start, len(line)))

    def put_in_order(self, keys: Iterable[str]) -> None:
        """Leave one line for each key, in their order, and nothing else."""
        places = {**self._failed, **self.whole}
        ordered = [places[key] for key in keys]

        def write(file: BinaryIO) -> None:
            for start, size in ordered:
                self._file.seek(start)
                file.write(self._file.read(size))

        files.replace_by(self.path, write)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PipelineError(f"{self.path}: another batch writes it; wait for that, or name another file") from None

    def _read(self) -> None:
        end = 0
        for number, line in enumerate(self._file, start=1):
            answer = _parse(line)
            if answer is None and not _is_broken_off(line):
                raise PipelineError(f"{self.path}: line {number} is no answer of a batch; name another file")
            if answer is not None:
                self._place(answer, (end, len(line)))
                end += len(line)
        self._file.truncate(end)

    def _place(self, answer: dict[str, Any], place: tuple[int, int]) -> None:
        is_whole = "error" not in answer and not answer.get("answering", {}).get("failure")
        (self.whole if is_whole else self._failed)[answer["key"]] = place


def _is_broken_off(line: bytes) -> bool:
    """Whether a line is the beginning of an answer."""
    return not line.endswith(b"\n") and line[: len(_OPENING)] == _OPENING[: len(line)]


def _parse(line: bytes) -> dict[str, Any] | None:
    """An answer; None where it is none, or only a part of one."""
    if not line.endswith(b"\n"):
        return None
    try:
        answer = json.loads(line)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) and isinstance(answer.get("key"), str) else None
