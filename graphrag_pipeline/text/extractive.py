"""Extractive ranking: the sentences of a set that are most central, most relevant to a question, and diverse.

Descriptions, community reports and answers of the embedded engine are source sentences that are selected here:

1. Candidates: one per distinct wording; real sentences only (`is_sentence`), unless the set has none. Above
   `MAX_CANDIDATES`, those nearest to the mean vector, or to the question.
2. Score: continuous LexRank (Erkan and Radev 2004, arXiv:1109.2128). With S the cosines of the m sentences, cut off at
   0, the ranks are p = (1 - d) / m + d * p * W, where W = S with rows scaled to sum 1, and d = 0.85. With a question q,
   the score is 0.85 * cosine to q + 0.15 * p, each scaled to a maximum of 1. A sentence that is hard to read alone
   ("She also ...", direct speech, too short or long; `sentence_forms.py`) scores less.
3. Diversity: maximal marginal relevance (Carbonell and Goldstein 1998). Each pick maximises
   0.5 * score - 0.5 * the largest cosine to the picked sentences. A near-repeat, by cosine or by words, is skipped.

The result depends on the set of sentences only, not on their order: candidates are sorted by text first, and the first
text wins a tie.

Keep out: records, citations, the source of sentences.
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
    """Return the sentences of a text, in order, with white space folded."""
    return list(_remember_sentences(text) if len(text) <= MAX_REMEMBERED_LENGTH else _split_and_fold(text))


def _split_and_fold(text: str) -> tuple[str, ...]:
    pieces = (" ".join(text[start:end].split()) for start, end in split_sentences(text))
    return tuple(piece for piece in pieces if piece)


_remember_sentences = lru_cache(MAX_REMEMBERED)(_split_and_fold)


def words_of(text: str) -> frozenset[str]:
    """Return the folded words of a text; single characters in scripts without spaces."""
    return frozenset(find_words(fold(text)))


def is_near_repeat(words: frozenset[str], others: Iterable[frozenset[str]]) -> bool:
    """Whether `words` shares at least 80 % of the words of the smaller set with one of `others`."""
    return any(len(words & other) >= NEAR_REPEAT_WORDS * max(1, min(len(words), len(other))) for other in others)


def rank_sentences(
    sentences: Sequence[str],
    vectors: np.ndarray,
    n: int,
    query: np.ndarray | None = None,
    prior: np.ndarray | None = None,
) -> list[int]:
    """Pick the sentences with the highest scores that do not repeat each other.

    Args:
        sentences: (m,) in any order; repeats allowed.
        vectors: (m, d) one per sentence, rows of length 1 or zero.
        n: most sentences to pick.
        query: (d,) vector of a question; None ranks by centrality only.
        prior: (m,) positive factors on the score, 1 = neutral, from the caller.

    Returns:
        Indices into `sentences`, best first; at most n, fewer if the rest are repeats. Headings and fragments are
        picked only if there is no complete sentence.
    """
    if n < 1:
        return []
    factors = np.array([form_of(sentence).weight for sentence in sentences])
    if query is not None:  # an answer may be direct speech, so the form counts less
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


def _pick_candidates(sentences: Sequence[str], factors: np.ndarray) -> list[int]:
    """Return one index per distinct wording, sorted by text; of equal wordings the one with the highest factor."""
    forms = [form_of(sentence) for sentence in sentences]
    weights = factors.tolist()
    best: dict[str, int] = {}
    for i in sorted(range(len(sentences)), key=lambda i: (-weights[i], sentences[i], i)):
        if forms[i].wording:
            best.setdefault(forms[i].wording, i)
    distinct = sorted(best.values(), key=lambda i: sentences[i])
    return [i for i in distinct if forms[i].is_sentence] or distinct


def _likeness(rows: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return cosines (m,) of rows (m, d) to a target (d,), cut off at 0; zeros if the target is zero."""
    length = np.linalg.norm(target)
    return np.clip(rows @ (target / length), 0.0, 1.0) if length > 0 else np.zeros(len(rows))


def _scale(score: np.ndarray) -> np.ndarray:
    """Scale to a maximum of 1 and round, so that ties are equal on every machine."""
    top = score.max(initial=0.0)
    return np.round(score / top, _DECIMALS) if top > 0 else score


def _centrality(similarity: np.ndarray) -> np.ndarray:
    """Return continuous LexRank: (m, m) cosines in [0, 1] -> (m,) probabilities, by power iteration."""
    m = len(similarity)
    totals = similarity.sum(axis=1, keepdims=True)
    transition = np.where(totals > 0, similarity / np.where(totals > 0, totals, 1.0), 1.0 / m)
    rank = np.full(m, 1.0 / m)
    for _ in range(_N_STEPS):
        rank = DAMPING * (rank @ transition) + (1 - DAMPING) / m
    return rank


def _pick_diverse(sentences: Sequence[str], similarity: np.ndarray, score: np.ndarray, n: int) -> list[int]:
    """Select by maximal marginal relevance from candidates sorted by text; skip near-repeats."""
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
