"""A file of answers: JSON lines, appended as answers arrive, and put in order at the end.

An answer to a question that is not asked now stays. One to a question that is asked again is replaced.

After a crash only the last line may be incomplete. The next run drops it and keeps all other answers. Keep out: search.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.query.batch.question_files import BatchQuestion
from graphrag_pipeline.query.question import valid_unicode

_OPENING = b'{"key": '


class AnswerFile:
    """Answer file at a path, locked for one process; a new file is created.

    Attributes:
        whole: places of the lines that need no new search, by key: (offset, bytes).

    Raises:
        PipelineError: the file has other content, another process is writing it, or it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.whole: dict[str, tuple[int, int]] = {}
        self._failed: dict[str, tuple[int, int]] = {}
        self._questions: dict[str, str] = {}
        if not path.parent.is_dir():
            raise PipelineError(f"{path}: folder `{path.parent}` does not exist; create it, or choose another file")
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
        """Append an answer.

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

    def put_in_order(self, keys: Iterable[str], questions: Iterable[BatchQuestion]) -> int:
        """Rewrite the file: one line for each key, in that order, then the answers to other questions.

        Args:
            questions: those that are asked now; other lines of theirs are dropped, and so are other errors.

        Returns:
            Number of answers to other questions.
        """
        places = {**self._failed, **self.whole}
        asked = {name for asks in questions for name in (asks.key, _name_by_text(asks.id, asks.question))}
        others = [key for key, question in self._questions.items() if question not in asked]
        ordered = [places[key] for key in keys] + sorted(places[key] for key in others)

        def write(file: BinaryIO) -> None:
            for start, size in ordered:
                self._file.seek(start)
                file.write(self._file.read(size))

        files.replace_by(self.path, write)
        return len(others)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PipelineError(
                f"{self.path}: another batch is writing it; wait until that ends, or choose another file"
            ) from None

    def _read(self) -> None:
        end = 0
        for number, line in enumerate(self._file, start=1):
            answer = _parse(line)
            if answer is None and not _is_broken_off(line):
                raise PipelineError(f"{self.path}: line {number} is not an answer of a batch; choose another file")
            if answer is not None:
                self._place(answer, (end, len(line)))
                end += len(line)
        self._file.truncate(end)

    def _place(self, answer: dict[str, Any], place: tuple[int, int]) -> None:
        is_whole = "error" not in answer and not answer.get("answering", {}).get("failure")
        (self.whole if is_whole else self._failed)[answer["key"]] = place
        if "error" not in answer:
            self._questions[answer["key"]] = _name(answer)


def _name(answer: dict[str, Any]) -> str:
    """Return the name of the question of an answer: its key, or id and text in an answer of an earlier release."""
    return str(answer.get("question_key") or _name_by_text(str(answer.get("id", "")), str(answer.get("question"))))


def _name_by_text(id: str, question: str) -> str:
    return json.dumps([id, valid_unicode(question)])


def _is_broken_off(line: bytes) -> bool:
    """Return whether a line is the beginning of an answer."""
    return not line.endswith(b"\n") and line[: len(_OPENING)] == _OPENING[: len(line)]


def _parse(line: bytes) -> dict[str, Any] | None:
    """Return the answer of a line; None if the line is something else or incomplete."""
    if not line.endswith(b"\n"):
        return None
    try:
        answer = json.loads(line)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) and isinstance(answer.get("key"), str) else None
