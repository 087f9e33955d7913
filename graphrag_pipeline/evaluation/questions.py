"""Evaluation questions: their file, their expected evidence, and where it is in the text units."""

from __future__ import annotations

import csv
import json
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import pyarrow.compute as pc
from pydantic import BaseModel, BeforeValidator, Field, StringConstraints, ValidationError

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.query.filtering.document_mask import document_rows
from graphrag_pipeline.query.question import MAX_QUESTION_CHARS
from graphrag_pipeline.text.languages import detect_language
from graphrag_pipeline.text.sentence_forms import find_words, fold

if TYPE_CHECKING:
    from graphrag_pipeline.storage.snapshots import Snapshot

_ARTICLES = frozenset(("a", "an", "the"))
_ENGLISH_OR_UNKNOWN = ("", "en")


@dataclass(frozen=True)
class Overlap:
    """Agreement of one answer with the reference answers; `f1` and `rouge_l` are 0-1."""

    f1: float
    rouge_l: float
    is_contained: bool


def measure_overlap(answer: str, references: Sequence[str], question: str = "") -> Overlap:
    """Return the best agreement of an answer with one of the reference answers.

    Args:
        references: at least one.
        question: helps to recognize the language, since articles are removed in English only.
    """
    # How texts become the tokens of token F1 in the language of a question: articles go in English alone.
    is_english = detect_language(" ".join((question, *references))) in _ENGLISH_OR_UNKNOWN
    squad = squad_tokens if is_english else _bare_tokens
    given, wanted = squad(answer), [squad(reference) for reference in references]
    words = rouge_tokens(answer)
    return Overlap(
        f1=max(token_f1(given, tokens) for tokens in wanted),
        rouge_l=max(rouge_l(words, rouge_tokens(reference)) for reference in references),
        is_contained=any(contains(given, tokens) for tokens in wanted),
    )


def squad_tokens(text: str) -> list[str]:
    """Return the tokens that SQuAD compares: folded, punctuation deleted, English articles removed.

    A text of articles alone, such as "A", keeps them. SQuAD would find that the empty answer equals it.
    """
    words = _bare_tokens(text)
    return [word for word in words if word not in _ARTICLES] or words


def _bare_tokens(text: str) -> list[str]:
    spaced = (" " if _is_wide_mark(character) else character for character in text)
    kept = (character for character in fold("".join(spaced)) if not _is_mark(character))
    return find_words("".join(kept))


def rouge_tokens(text: str) -> list[str]:
    """Return the tokens that ROUGE compares: folded, punctuation separates."""
    return find_words("".join(" " if _is_mark(character) else character for character in fold(text)))


def _is_mark(character: str) -> bool:
    """Whether a character is punctuation or a symbol."""
    return unicodedata.category(character)[0] in "PS"


def _is_wide_mark(character: str) -> bool:
    """Whether a character is a mark of Chinese or Japanese, which no blank follows."""
    return not character.isascii() and _is_mark(character) and unicodedata.east_asian_width(character) in "FWH"


def token_f1(tokens: Sequence[str], others: Sequence[str]) -> float:
    """Return F1 of two multisets of tokens; 1 if both are empty, 0 if one is."""
    if not tokens or not others:
        return float(not tokens and not others)
    n_shared = (Counter(tokens) & Counter(others)).total()
    return 2 * n_shared / (len(tokens) + len(others))


def rouge_l(tokens: Sequence[str], others: Sequence[str]) -> float:
    """Return F1 of the longest common subsequence; 1 if both are empty, 0 if one is."""
    from rapidfuzz.distance import LCSseq

    if not tokens or not others:
        return float(not tokens and not others)
    return 2 * LCSseq.similarity(tokens, others) / (len(tokens) + len(others))


def contains(tokens: Sequence[str], part: Sequence[str]) -> bool:
    """Whether `part`, which is not empty, follows in one piece inside `tokens`."""
    n = len(part)
    return bool(n) and any(list(tokens[i : i + n]) == list(part) for i in range(len(tokens) - n + 1))


SEED = 86
"""Random seed of samples of the corpus, and of the order of source texts: figures of two runs compare."""
_SEPARATOR = "|"
_LISTS = ("evidence", "answers")
_DOCUMENT_NAMES = ("id", "path", "title")
UNANSWERABLE = "unanswerable"
"""The reference answer of a question that the documents do not answer."""


@dataclass(frozen=True)
class Question:
    """A question of a file, its evidence and its reference answers.

    Attributes:
        evidence: names of documents, or ids of text units; empty if unknown.
        answers: accepted answers, the fullest first; ("unanswerable",) if the documents do not answer.
        place: file and line, for messages.
    """

    question: str
    evidence: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    kind: str = ""
    place: str = ""

    @property
    def is_unanswerable(self) -> bool:
        """Whether an answer is correct if it declines."""
        return self.answers == (UNANSWERABLE,)


def read_gold(path: Path) -> list[Question]:
    """Read a file of gold questions, each with evidence, a reference answer, or both.

    Raises:
        PipelineError: like `read_questions`, or a question has neither.
    """
    questions = read_questions(path)
    for question in questions:
        if not question.evidence and not question.answers:
            raise PipelineError(
                f"{question.place}: {question.question[:60]!r} has no evidence and no answer; list documents (path, id "
                "or title) or text unit ids under `evidence`, write a reference answer under `answer`, or remove the "
                "question"
            )
    return questions


def read_questions(path: Path) -> list[Question]:
    """Read the questions of a JSONL or CSV file, in order.

    Raises:
        PipelineError: the file cannot be read, has no question, or has an invalid line; names the line.
    """
    path = path.absolute()
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise PipelineError(f"{path}: cannot be read ({error.strerror or error})") from None
    except UnicodeDecodeError as error:
        raise PipelineError(f"{path}: cannot be read as UTF-8 text ({error})") from None
    rows = _read_csv(path, text) if path.suffix.lower() == ".csv" else _read_jsonl(path, text)
    questions = [_question_of(f"{path}, line {line}", row) for line, row in rows]
    if not questions:
        raise PipelineError(f"{path}: has no question")
    return questions


def write_questions(path: Path, questions: Sequence[Question]) -> None:
    """Write a JSONL file that `read_questions` reads."""
    from graphrag_pipeline.filesystem import files

    rows = "".join(json.dumps(_to_row(question), ensure_ascii=False) + "\n" for question in questions)
    files.replace(path, rows.encode())


def _to_row(question: Question) -> dict[str, Any]:
    one = {"answer": question.answers[0]} if len(question.answers) == 1 else {"answers": question.answers}
    row = {"question": question.question, "evidence": question.evidence, **one, "kind": question.kind}
    return {name: value for name, value in row.items() if value}


def _read_jsonl(path: Path, text: str) -> Iterator[tuple[int, Any]]:
    for line, content in enumerate(text.split("\n"), start=1):
        if content.strip():
            try:
                yield line, json.loads(content)
            except ValueError as error:
                raise PipelineError(f"{path}, line {line}: is not a JSON object ({error})") from None


def _read_csv(path: Path, text: str) -> Iterator[tuple[int, Any]]:
    """Yield the rows with the cells that hold lists as lists."""
    reader = csv.DictReader(text.splitlines(keepends=True), strict=True)
    try:
        for row in reader:
            if None in row:
                raise PipelineError(
                    f"{path}, line {reader.line_num}: has more cells than the heading; put a cell that contains a "
                    "comma in double quotes"
                )
            yield reader.line_num, {**row, **{name: _split_cell(row.get(name) or "") for name in _LISTS}}
    except csv.Error as error:
        raise PipelineError(f"{path}, line {reader.line_num + 1}: is not valid CSV ({error})") from None
    except ValueError as error:
        raise PipelineError(
            f"{path}, line {reader.line_num}: a cell begins with [, but is no JSON list ({error})"
        ) from None


def _split_cell(cell: str) -> Any:
    if cell.lstrip().startswith("["):
        return json.loads(cell)
    return [name.strip() for name in cell.split(_SEPARATOR) if name.strip()]


def _as_list(value: Any) -> Any:
    return [] if value in (None, "") else value if isinstance(value, list) else [value]


class _Row(BaseModel):
    """A row of a question file; unknown fields are ignored."""

    question: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUESTION_CHARS)]
    evidence: Annotated[list[Annotated[str, Field(strict=True, min_length=1)]], BeforeValidator(_as_list)] = []
    answer: Annotated[list[str | int | float], BeforeValidator(_as_list)] = []
    answers: Annotated[list[str | int | float], BeforeValidator(_as_list)] = []
    kind: Annotated[Literal["", "local", "global"], BeforeValidator(lambda kind: (kind or "").strip())] = ""


def _question_of(place: str, row: Any) -> Question:
    try:
        read = _Row.model_validate(row)
    except ValidationError as error:
        found = error.errors()[0]
        name = found["loc"][0] if found["loc"] else "the line"
        raise PipelineError(f"{place}: `{name}` cannot be used: {found['msg']}") from None
    if read.answer and read.answers:
        raise PipelineError(
            f"{place}: has both `answer` and `answers`; write all accepted answers into `answers`, the fullest first"
        )
    given = (str(answer).strip() for answer in (*read.answer, *read.answers))
    answers = tuple(dict.fromkeys(answer for answer in given if answer))
    if UNANSWERABLE in (folded := tuple(answer.casefold() for answer in answers)):
        if len(answers) > 1:
            raise PipelineError(f"{place}: a question is either {UNANSWERABLE!r} or has other answers, not both")
        answers = folded
    if wordless := [answer for answer in answers if not squad_tokens(answer)]:
        raise PipelineError(
            f"{place}: the reference answer {wordless[0]!r} has no word, so no answer can agree with it"
        )
    return Question(read.question, tuple(dict.fromkeys(read.evidence)), answers, read.kind, place)


# ------------------------------------------------------------------------------------------------------------- evidence


@dataclass(frozen=True)
class Evidence:
    """The evidence of questions as rows of a snapshot.

    Attributes:
        rows: per question and name, the rows of the text units, any of which counts; empty for an unknown name.
        unknown: "place: name" of each name that the snapshot does not have.
    """

    rows: tuple[tuple[frozenset[int], ...], ...]
    unknown: tuple[str, ...]


def find_evidence(snapshot: Snapshot, questions: Sequence[Question]) -> Evidence:
    """Look up the evidence of questions: an exact text unit id, else the exact id, path or title of a document."""
    of_document = document_rows(snapshot)
    names = sorted({name for question in questions for name in question.evidence})
    units = snapshot.rows_of("text_units", names)
    rows_of = {name: frozenset([int(row)]) for name, row in zip(names, units, strict=True) if row >= 0}
    for column in _DOCUMENT_NAMES:
        unresolved = [name for name in names if name not in rows_of]
        for name, documents in _documents_named(snapshot, column, unresolved).items():
            rows_of[name] = frozenset(np.flatnonzero(np.isin(of_document, documents)).tolist())
    unknown = [f"{q.place}: {name!r}" for q in questions for name in q.evidence if not rows_of.get(name)]
    found = (tuple(rows_of.get(name, frozenset()) for name in question.evidence) for question in questions)
    return Evidence(tuple(found), tuple(unknown))


def _documents_named(snapshot: Snapshot, column: str, names: Sequence[str]) -> dict[str, list[int]]:
    import pyarrow as pa

    values = snapshot.table("documents")[column]
    rows = np.flatnonzero(np.asarray(pc.is_in(values, value_set=pa.array(names, pa.string()))))
    found: dict[str, list[int]] = {}
    for row, value in zip(rows.tolist(), values.take(pa.array(rows)).to_pylist(), strict=True):
        found.setdefault(value, []).append(row)
    return found
