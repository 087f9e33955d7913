"""Names in the first lines of extractive answers, right or wrong, of questions with a short reference answer.

    short answer     a reference answer of at most six words; a Chinese or Japanese character counts half a word
    named rightly    the first line's name holds a reference answer word for word, or is one piece of it with at least
                     half of its words: Fezziwig for "old Fezziwig"
    named wrongly    the first line gives a name or number, and it is not right; of an unanswerable question, any

Neither counts if a model wrote the answer. Words are those of token F1 (`text_overlap.py`). Keep out: reading the first
line (`answer_text.py`).
"""

from __future__ import annotations

from graphrag_pipeline.evaluation.questions import Question
from graphrag_pipeline.evaluation.text_overlap import choose_tokens, contains
from graphrag_pipeline.text.scripts import is_unspaced

MAX_WORDS = 6
_HALF = 0.5
_LEAST_SHARE = 0.5


def has_short_answer(question: Question) -> bool:
    """Whether a reference answer is short, so that a name or a number may be it."""
    if question.is_unanswerable:
        return False
    tokens = choose_tokens(question.answers, question.question)
    return any(_count_words(tokens(reference)) <= MAX_WORDS for reference in question.answers)


def may_name(question: Question) -> bool:
    """Whether a name in the first line is right or wrong: an answer is short, or the question is unanswerable."""
    return question.is_unanswerable or has_short_answer(question)


def is_named_rightly(name: str, question: Question) -> float | None:
    """Return 1 if a name is a reference answer, else 0; None if no reference answer is short."""
    return float(_is_right(name, question)) if has_short_answer(question) else None


def is_named_wrongly(name: str, question: Question) -> float | None:
    """Return 1 if a name, which may be empty, is not a reference answer, else 0; None if all references are long."""
    return float(bool(name) and not _is_right(name, question)) if may_name(question) else None


def _is_right(name: str, question: Question) -> bool:
    if question.is_unanswerable or not name:
        return False
    tokens = choose_tokens(question.answers, question.question)
    given, wanted = tokens(name), [tokens(reference) for reference in question.answers]
    return any(contains(given, one) or _is_half(given, one) for one in wanted)


def _is_half(given: list[str], wanted: list[str]) -> bool:
    return contains(wanted, given) and len(given) >= _LEAST_SHARE * len(wanted)


def _count_words(tokens: list[str]) -> float:
    return sum(_HALF if is_unspaced(token[0]) else 1 for token in tokens)
