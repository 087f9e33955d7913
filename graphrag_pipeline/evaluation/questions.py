"""Evaluation questions: their file, their expected evidence, and where it is in the text units."""

from __future__ import annotations

import csv
import json
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.nearest import nearest_name
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
    is_exact: bool
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
        is_exact=given in wanted,
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
_COLUMNS = ("question", "answer", "kind", *_LISTS)
_DOCUMENT_NAMES = ("id", "path", "title")
KINDS = ("local", "global")
UNANSWERABLE = "unanswerable"
"""The reference answer of a question that the documents do not answer."""


@dataclass(frozen=True)
class Question:
    """A question of a file, its evidence and its reference answers.

    Attributes:
        evidence: names of documents, or ids of text units; empty if unknown.
        answers: accepted answers, the fullest first; ("unanswerable",) if the documents do not answer.
        place: file and line, for messages.
        ignored: columns that are not read.
    """

    question: str
    evidence: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    kind: str = ""
    place: str = ""
    ignored: tuple[str, ...] = ()

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
                f"question{_hint(question)}"
            )
    return questions


def _hint(question: Question) -> str:
    """Return which ignored column may be meant for one that is missing; "" if none is named like it."""
    meant = {name: nearest_name(name, ("evidence", "answer", "answers")) for name in question.ignored}
    return next((f" (its `{name}` is not read; did you mean `{near}`?)" for name, near in meant.items() if near), "")


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
    reader = csv.DictReader(text.splitlines(keepends=True), strict=True)
    try:
        headings = reader.fieldnames or ()
        if "question" not in headings:
            raise PipelineError(f"{path}, line 1: the heading has no column `question`")
        if repeated := [name for name, n in Counter(headings).items() if n > 1 and name in _COLUMNS]:
            raise PipelineError(f"{path}, line 1: the heading has the column `{repeated[0]}` twice")
        for row in reader:
            yield reader.line_num, _with_lists(f"{path}, line {reader.line_num}", len(headings), row)
    except csv.Error as error:
        raise PipelineError(f"{path}, line {reader.line_num + 1}: is not valid CSV ({error})") from None


def _with_lists(place: str, n_headings: int, row: dict[Any, Any]) -> dict[str, Any]:
    """Return a row of CSV with the cells that hold lists as lists."""
    if further := row.pop(None, None):
        raise PipelineError(
            f"{place}: has {n_headings + len(further)} cells, but the heading has {n_headings}; put a cell that "
            "contains a comma in double quotes"
        )
    return {**row, **{name: _split_cell(place, name, row.get(name) or "") for name in _LISTS}}


def _split_cell(place: str, column: str, cell: str) -> Any:
    if cell.lstrip().startswith("["):
        try:
            return json.loads(cell)
        except ValueError as error:
            raise PipelineError(
                f"{place}: `{column}` begins with [ but is not a JSON list ({error}); correct it, or separate the "
                f"items with {_SEPARATOR}"
            ) from None
    return [name.strip() for name in cell.split(_SEPARATOR) if name.strip()]


def _question_of(place: str, row: Any) -> Question:
    if not isinstance(row, dict):
        raise PipelineError(f"{place}: is not a JSON object")
    text, evidence = row.get("question"), row.get("evidence") or []
    if not isinstance(text, str) or not text.strip():
        raise PipelineError(f"{place}: `question` is missing or empty")
    if len(text) > MAX_QUESTION_CHARS:
        raise PipelineError(f"{place}: the question has {len(text):,} characters, over {MAX_QUESTION_CHARS:,}")
    evidence = [evidence] if isinstance(evidence, str) else evidence
    if not isinstance(evidence, list) or not all(isinstance(name, str) and name for name in evidence):
        raise PipelineError(f"{place}: `evidence` is not a list of names")
    names, answers, kind = tuple(dict.fromkeys(evidence)), _answers_of(place, row), _kind_of(place, row)
    return Question(text, names, answers, kind, place, tuple(name for name in row if name not in _COLUMNS))


def _kind_of(place: str, row: dict[str, Any]) -> str:
    kind = row.get("kind") or ""
    if isinstance(kind, str) and (named := kind.strip()) in ("", *KINDS):
        return named
    raise PipelineError(f"{place}: `kind` is {kind!r}; write {' or '.join(KINDS)}, or leave it out")


def _answers_of(place: str, row: dict[str, Any]) -> tuple[str, ...]:
    listed = row.get("answers") or []
    listed = listed if isinstance(listed, list) else [listed]
    answers = [value for value in (row.get("answer"), *listed) if value not in (None, "")]
    if listed and row.get("answer") not in (None, ""):
        raise PipelineError(
            f"{place}: has both `answer` and `answers`; write all accepted answers into `answers`, the fullest first"
        )
    if any(isinstance(value, bool) or not isinstance(value, str | int | float) for value in answers):
        raise PipelineError(f"{place}: `answer` is not a text, or `answers` not a list of texts")
    texts = tuple(dict.fromkeys(text for value in answers if (text := str(value).strip())))
    if UNANSWERABLE in (folded := [text.casefold() for text in texts]):
        if len(texts) > 1:
            raise PipelineError(f"{place}: a question is either {UNANSWERABLE!r} or has other answers, not both")
        return tuple(folded)
    if wordless := [text for text in texts if not squad_tokens(text)]:
        raise PipelineError(
            f"{place}: the reference answer {wordless[0]!r} has no word, so no answer can agree with it; write one "
            "with words or numbers"
        )
    return texts


def find_repeated(questions: Sequence[Question]) -> list[str]:
    """Return the places of the questions that ask what one before them asks, in the same words."""
    asked = Counter[str]()
    repeated = []
    for question in questions:
        words = " ".join(question.question.casefold().split())
        repeated += [question.place] if asked[words] else []
        asked[words] += 1
    return repeated


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
