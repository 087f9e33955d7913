"""The embedded engine's writer: it does not write, it picks the sentences that say most.

Descriptions, community reports and answers of the embedded engine are sentences of the source, chosen here. The method:

1. candidates: one per distinct wording, real sentences only (`is_sentence`) unless there is none; above
   `MAX_CANDIDATES` those nearest to the mean vector (to the question, if there is one).
2. centrality: LexRank (Erkan and Radev 2004) with cosines as weights, the stationary distribution of a walk between
   sentences that prefers similar ones, damping 0.85. With a question, likeness to it counts first and centrality
   little. A sentence that reads badly alone (`sentence_forms.py`: "She also ...", talk, too short or long) counts less.
3. diversity: maximal marginal relevance (Carbonell and Goldstein 1998), each pick maximises score minus likeness to
   what is already picked. A near-repeat (by vector or by words) is never picked.

The result is a function of the set of sentences: candidates are put in text order first and ties go to the first text,
so the order of arrival does not matter. Keep out: records, citations, where sentences come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from graphrag_pipeline.text.sentence_forms import (
    MAX_REMEMBERED,
    MAX_REMEMBERED_LENGTH,
    find_words,
    fold,
    form_of,
)
from graphrag_pipeline.text.sentences import split_sentences

MAX_CANDIDATES = 512
DAMPING = 0.85
DIVERSITY = 0.5
QUESTION_SHARE = 0.85
NEAR_REPEAT_COSINE = 0.93
NEAR_REPEAT_WORDS = 0.8

_N_STEPS = 30
_DECIMALS = 6


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, in order, white space folded."""
    return list(_remember_sentences(text) if len(text) <= MAX_REMEMBERED_LENGTH else _split_and_fold(text))


def _split_and_fold(text: str) -> tuple[str, ...]:
    pieces = (" ".join(text[start:end].split()) for start, end in split_sentences(text))
    return tuple(piece for piece in pieces if piece)


_remember_sentences = lru_cache(MAX_REMEMBERED)(_split_and_fold)


def words_of(text: str) -> frozenset[str]:
    """The words of a text, folded; single characters where words are not spaced."""
    return frozenset(find_words(fold(text)))


def is_near_repeat(words: frozenset[str], others: Iterable[frozenset[str]]) -> bool:
    """Whether one of `others` shares most words with `words`, or one holds the other."""
    return any(len(words & other) >= NEAR_REPEAT_WORDS * max(1, min(len(words), len(other))) for other in others)


def rank_sentences(
    sentences: Sequence[str],
    vectors: np.ndarray,
    n: int,
    query: np.ndarray | None = None,
    prior: np.ndarray | None = None,
) -> list[int]:
    """Pick the sentences that say most and repeat least.

    Args:
        sentences: (m,) in any order; repeats allowed.
        vectors: (m, d) one per sentence, rows of length 1 or zero.
        n: most sentences to pick.
        query: (d,) vector of a question; None ranks by centrality alone.
        prior: (m,) positive factors on the score, 1 = neutral, for what the caller knows about a sentence.

    Returns:
        Indices into `sentences`, best first; at most n, fewer where the rest only repeats. Headings and fragments are
        picked only if there is no sentence at all.
    """
    if n < 1:
        return []
    factors = np.array([form_of(sentence).weight for sentence in sentences])
    if query is not None:  # what answers may well be talk: form decides less
        factors = np.sqrt(factors)
    if prior is not None:
        factors = factors * np.asarray(prior, dtype=np.float64)
    candidates = _pick_candidates(sentences, factors)
    if not candidates:
        return []
    chosen = np.array(candidates, dtype=np.int64)
    rows = np.asarray(vectors, dtype=np.float64)[chosen]
    near = _likeness(rows, rows.sum(axis=0) if query is None else np.asarray(query, dtype=np.float64))
    if len(chosen) > MAX_CANDIDATES:
        kept = np.sort(np.argsort(-np.round(near * factors[chosen], _DECIMALS), kind="stable")[:MAX_CANDIDATES])
        chosen, rows, near = chosen[kept], rows[kept], near[kept]
    similarity = np.clip(rows @ rows.T, 0.0, 1.0)
    score = _scale(_centrality(similarity))
    if query is not None:
        score = QUESTION_SHARE * _scale(near) + (1 - QUESTION_SHARE) * score
    score = _scale(score * factors[chosen])
    return [int(chosen[i]) for i in _pick_diverse([sentences[i] for i in chosen], similarity, score, n)]


def pick_diverse(texts: Sequence[str], vectors: np.ndarray, score: np.ndarray, n: int) -> list[int]:
    """At most n texts, best first, by a score that the caller made: step 3 alone.

    Args:
        texts: (m,) in any order.
        vectors: (m, d) one per text, rows of length 1 or zero.
        score: (m,) positive, its scale does not matter.
    """
    order = sorted(range(len(texts)), key=lambda i: texts[i])
    rows = np.asarray(vectors, dtype=np.float64)[order]
    similarity = np.clip(rows @ rows.T, 0.0, 1.0)
    return [order[i] for i in _pick_diverse([texts[i] for i in order], similarity, _scale(score[order]), n)]


def _pick_candidates(sentences: Sequence[str], factors: np.ndarray) -> list[int]:
    """One index per distinct wording, in text order; of equal wordings the one with the highest factor."""
    forms = [form_of(sentence) for sentence in sentences]
    weights = factors.tolist()
    best: dict[str, int] = {}
    for i in sorted(range(len(sentences)), key=lambda i: (-weights[i], sentences[i], i)):
        if forms[i].wording:
            best.setdefault(forms[i].wording, i)
    distinct = sorted(best.values(), key=lambda i: sentences[i])
    return [i for i in distinct if forms[i].is_sentence] or distinct


def _likeness(rows: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Cosines of rows (m, d) to a target (d,), below zero cut off; zeros if the target is zero."""
    length = np.linalg.norm(target)
    return np.clip(rows @ (target / length), 0.0, 1.0) if length > 0 else np.zeros(len(rows))


def _scale(score: np.ndarray) -> np.ndarray:
    """To a maximum of 1, rounded so that ties are ties on any machine."""
    top = score.max(initial=0.0)
    return np.round(score / top, _DECIMALS) if top > 0 else score


def _centrality(similarity: np.ndarray) -> np.ndarray:
    """LexRank with continuous weights: (m, m) cosines in [0, 1] -> (m,) probabilities."""
    m = len(similarity)
    totals = similarity.sum(axis=1, keepdims=True)
    walk = np.where(totals > 0, similarity / np.where(totals > 0, totals, 1.0), 1.0 / m)
    rank = np.full(m, 1.0 / m)
    for _ in range(_N_STEPS):
        rank = DAMPING * (rank @ walk) + (1 - DAMPING) / m
    return rank


def _pick_diverse(sentences: Sequence[str], similarity: np.ndarray, score: np.ndarray, n: int) -> list[int]:
    """Maximal marginal relevance over candidates in text order; near-repeats are skipped."""
    words: dict[int, frozenset[str]] = {}
    is_left = np.ones(len(score), dtype=bool)
    nearest = np.zeros(len(score))
    picked: list[int] = []
    while len(picked) < n and is_left.any():
        value = np.round((1 - DIVERSITY) * score - DIVERSITY * nearest, _DECIMALS)
        best = int(np.where(is_left, value, -np.inf).argmax())
        is_left[best] = False
        own = words_of(sentences[best])
        if nearest[best] >= NEAR_REPEAT_COSINE or is_near_repeat(own, words.values()):
            continue
        picked.append(best)
        words[best] = own
        nearest = np.maximum(nearest, similarity[best])
    return picked
