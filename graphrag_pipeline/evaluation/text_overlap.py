"""Agreement of an answer with reference answers, without a model: token F1, ROUGE-L, exact and contained answers.

    token F1     the tokens as multisets: 2 P R / (P + R), as in SQuAD (Rajpurkar et al. 2016, arXiv 1606.05250)
    ROUGE-L      the same of the longest common subsequence of tokens (Lin 2004, "ROUGE: A Package for Automatic
                 Evaluation of Summaries"), P and R weighted alike
    exact        all tokens are equal
    contained    the tokens of the reference follow each other somewhere in the answer

SQuAD's tokens are in lower case, without punctuation and English articles. Tokens of ROUGE-L keep articles. Characters
of Chinese and Japanese are tokens of their own, and so are the words and numbers between them. Of several reference
answers, the best one counts, for each figure by itself. Keep out: which part of an answer is compared.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from graphrag_pipeline.text.languages import detect_language
from graphrag_pipeline.text.sentence_forms import find_words, fold

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
    squad = choose_tokens(references, question)
    given, wanted = squad(answer), [squad(reference) for reference in references]
    words = rouge_tokens(answer)
    return Overlap(
        f1=max(token_f1(given, tokens) for tokens in wanted),
        rouge_l=max(rouge_l(words, rouge_tokens(reference)) for reference in references),
        is_exact=given in wanted,
        is_contained=any(contains(given, tokens) for tokens in wanted),
    )


def choose_tokens(references: Sequence[str], question: str) -> Callable[[str], list[str]]:
    """Return how texts become the tokens of token F1 in the language of a question: articles go in English alone."""
    is_english = detect_language(" ".join((question, *references))) in _ENGLISH_OR_UNKNOWN
    return squad_tokens if is_english else _bare_tokens


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
