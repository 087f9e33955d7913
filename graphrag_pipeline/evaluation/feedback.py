"""Feedback of readers on answers, in a file of the root outside the index, and gold questions made from it.

`feedback.jsonl` only grows: one line for each thumb or correction. Keep out: HTTP, and who may give feedback.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.questions import Question, find_evidence, read_questions
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.pipeline.root import Root

FEEDBACK_FILE = "feedback.jsonl"
GOLD_FILE = "gold.jsonl"
"""File that `promote` begins if `publishing.golden_questions` names none."""
_ID_DIGITS = 12
MAX_BYTES = 50_000_000
"""Size at which no more is taken, so that readers cannot fill the disk."""

Rating = Literal["up", "down"]


@dataclass(frozen=True)
class Feedback:
    """What a reader thought of an answer.

    Attributes:
        id: hash of the rest.
        time: ISO 8601 in UTC.
        by: name of the principal.
        correction: what the answer should have said; "" for a thumb alone.
        documents: paths of the documents that the answer cited.
    """

    id: str
    time: str
    by: str
    rating: Rating
    question: str
    answer: str
    correction: str
    snapshot: str
    documents: tuple[str, ...]


def add_feedback(
    root: Path, by: str, rating: Rating, question: str, answer: str, correction: str, snapshot: str,
    documents: Sequence[str],
) -> Feedback:  # fmt: skip
    """Append feedback to the file of a root.

    Raises:
        PipelineError: the file cannot be written, or has reached `MAX_BYTES`.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    texts = now, by, rating, question, answer, correction, snapshot, *documents
    own_id = stable_hash(*texts)[:_ID_DIGITS]
    given = Feedback(own_id, now, by, rating, question, answer, correction, snapshot, tuple(documents))
    line = json.dumps(asdict(given), ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
    path = root / FEEDBACK_FILE
    if path.exists() and path.stat().st_size > MAX_BYTES:
        raise PipelineError(f"`{path}` has {MAX_BYTES:,} bytes and takes no more; move it away")
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line)  # one write, so that concurrent ones lose no line
        finally:
            os.close(descriptor)
    except OSError as error:
        raise files.write_error(path, error) from error
    return given


def read_feedback(root: Path) -> list[Feedback]:
    """Return all feedback, oldest first.

    Raises:
        PipelineError: a line is damaged; the message names it.
    """
    path = root / FEEDBACK_FILE
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines() if path.exists() else [], start=1):
        try:
            values = json.loads(line)
            found.append(Feedback(**{**values, "documents": tuple(values["documents"])}))
        except (ValueError, TypeError, KeyError):
            raise PipelineError(f"`{path}`, line {number}: damaged; repair or remove the line") from None
    return found


def find_gold_file(root: Root) -> Path:
    """Return the path of the file that `promote` writes to."""
    return root.path / (root.settings.publishing.golden_questions or GOLD_FILE)


def find_promoted(root: Root) -> set[str]:
    """Return the ids of the feedback of which a gold question was made; lines that cannot be read are skipped."""
    path = find_gold_file(root)
    rows = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []:
        with suppress(ValueError):
            rows.append(json.loads(line))
    return {one for row in rows if isinstance(row, dict) for one in row.get("feedback", ())}


def promote(root: Root, start: str, answer: str = "", evidence: Sequence[str] = (), is_replacing: bool = False) -> Path:
    """Make a gold question from feedback in the file that gates publications; return the file.

    A gold question with the same text gets what it lacks: evidence, or an answer.

    Args:
        start: id of the feedback or its first digits.
        answer: the reference answer; "" is the correction, or for a thumb up nothing but the cited documents.
        evidence: documents that answer the question; default: those that an answer with a thumb up cited.
        is_replacing: change the answer of a gold question that contradicts, and its evidence if there is any.

    Raises:
        PipelineError: there is no such feedback, nothing says what is right, the index has none of the evidence, or a
            gold question with the same text has another answer.
    """
    matching = [one for one in read_feedback(root.path) if one.id.startswith(start)]
    if len(matching) != 1:
        raise PipelineError(f"{len(matching)} match {start!r}; `graphrag-pipeline feedback list` shows the ids")
    [given] = matching
    reference = answer or given.correction
    named = tuple(evidence) or (given.documents if given.rating == "up" else ())
    if not reference and not named:
        raise PipelineError(
            f"nothing in feedback {given.id} says what is right: no correction, and no document of a good answer; give "
            "--answer or --evidence"
        )
    asked = Question(given.question, named, place="evidence")
    if named and (unknown := find_evidence(root.snapshots.open(), [asked]).unknown):
        raise PipelineError(f"not in the published snapshot: {'; '.join(unknown)}; give --evidence with its documents")
    question: dict[str, Any] = {"question": given.question, **({"evidence": [*named]} if named else {})}
    question |= {"answer": reference} if reference else {}
    path = find_gold_file(root)
    if path.suffix.lower() == ".csv":
        raise PipelineError(
            f"{path}: `promote` writes JSON lines; let `publishing.golden_questions` name a .jsonl file"
        )
    known = read_questions(path) if path.exists() and path.read_bytes().strip() else []
    lines = path.read_text(encoding="utf-8-sig").rstrip("\n").split("\n") if known else []
    same = [one for one in known if _fold(one.question) == _fold(given.question)]
    others = [one for one in same if reference and one.answers and _fold(reference) not in map(_fold, one.answers)]
    if others and not is_replacing:
        first, accepted = others[0], " or ".join(map(repr, others[0].answers))
        raise PipelineError(
            f"{first.place}: a gold question answers {given.question[:80]!r} with {accepted}, but feedback {given.id} "
            f"with {reference!r}; if the feedback is right, run the same `feedback promote` with `--replace`, which "
            "changes the line"
        )
    for one in same:
        at = int(one.place.rpartition(" ")[2]) - 1
        row = json.loads(lines[at])
        if one in others:
            row = {key: value for key, value in row.items() if key != "answers"} | question
        else:
            known_of = {*(key for key, value in row.items() if value), *(("answer",) if one.answers else ())}
            row |= {key: value for key, value in question.items() if key not in known_of}
        lines[at] = _to_line(row, [*row.get("feedback", ()), given.id])
    if not same:
        lines.append(_to_line(question, [given.id]))
    files.replace(path, "".join(f"{line}\n" for line in lines).encode())
    return path


def _to_line(row: Mapping[str, Any], feedback: Sequence[str]) -> str:
    return json.dumps({**row, "feedback": [*dict.fromkeys(feedback)]}, ensure_ascii=False)


def _fold(text: str) -> str:
    return " ".join(text.split()).casefold()
