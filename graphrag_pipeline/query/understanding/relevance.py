"""Relevance of texts to a question, computed without a model: the embedded engine's rating.

    relevance = (1 - t) * max(centred cosine, 0) + t * (sum of idf of the question's words in the text) / W

W is the sum of idf of all content words of the question, and t = 0.5 W / (W + 1). idf is that of BM25 (`_idf`).

- A plain cosine cannot be compared between questions. Common words give "What is the theme of the story?" a cosine of
  0.5 to every text, and "Who is Tiny Tim?" 0.1. So the mean direction of all n texts is removed from both sides, with
  the share n / (n + SHRINKAGE), since few texts determine it badly.
- Content words weigh their idf, also in the question's vector. SCROOGE is in nearly every text, so his name does not
  make a sentence an answer. A word that is in no text weighs most, so a question about another topic stays low.
- If all words are frequent, W and so t are small, and the cosine decides.

Relevance of the best text for each question, on the imported Christmas Carol index, over the questions by which the
thresholds were chosen: reports 0.36-0.73 for 14 questions that the index can answer, 0.16-0.37 for 9 that it cannot;
passages 0.30-0.91 (13) and 0.10-0.34 (9). The ranges overlap, so a threshold is sometimes wrong. Extractive reports
lack abstract words, so their relevance does not separate these questions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graphrag_pipeline.query.question import topic_words
from graphrag_pipeline.text.extractive import words_of
from graphrag_pipeline.text.stems import stem

Embed = Callable[[list[str]], np.ndarray]

SHRINKAGE = 8.0
"""Number of texts at which half of the mean direction is removed."""
UNSEEN_TEXTS = 8
"""Texts without the word that the idf assumes besides those of the index (`_idf`)."""


@dataclass(frozen=True)
class Background:
    """A question's vector and word weights, and the mean direction of the texts.

    Attributes:
        vector: of the question plus its words by weight, float (d,).
        mean: unit vector of the texts' mean direction, or zeros.
        share: share of the mean direction that is removed, 0-1.
        word_weights: stem -> weight of the question's content words.
    """

    vector: np.ndarray
    mean: np.ndarray
    share: float
    word_weights: dict[str, float]


def make_background(
    question: str,
    embed: Embed,
    words: Sequence[frozenset[str]],
    vectors: np.ndarray,
    asked: frozenset[str] | None = None,
) -> Background:
    """Return the background of a question from texts that represent the corpus.

    Args:
        embed: returns vectors of texts, float (n, d).
        words: content words of each text.
        vectors: float (n, d), one per text.
        asked: stems of the words of the question that count; None for those of its topic.
    """
    mean = vectors.sum(axis=0)
    length = float(np.linalg.norm(mean))
    n_texts = len(words)
    n_holding = {word: sum(word in held for held in words) for word in sorted(asked or topic_words(question))}
    weights = {word: _idf(n, n_texts) for word, n in n_holding.items()}
    vector = _weigh_words(question, weights, embed)
    return Background(vector, mean / length if length else mean, n_texts / (n_texts + SHRINKAGE), weights)


def _weigh_words(question: str, weights: dict[str, float], embed: Embed) -> np.ndarray:
    """Return the question's vector plus the unit vector of its content words by weight."""
    found = [word for word in sorted(words_of(question)) if stem(word) in weights]
    vectors = embed([question, *found])
    weighed = np.array([weights[stem(word)] for word in found]) @ vectors[1:]
    length = float(np.linalg.norm(weighed))
    return vectors[0] + weighed / length if length > 1e-9 else vectors[0]


def score_relevance(
    background: Background,
    words: Sequence[frozenset[str]],
    vectors: np.ndarray,
    further: Sequence[Mapping[str, float]] = (),
) -> np.ndarray:
    """Return the relevance of each text, 0-1, float (n,), rounded so that equal texts tie on any machine.

    Args:
        words: content words of each text.
        vectors: of the texts, float (n, d).
        further: word -> 0-1 of its weight, of words that each text says without having them. () for none.
    """
    if not len(words):
        return np.zeros(0)
    rows, target = _centre(vectors, background), _centre(background.vector[None, :], background)[0]
    near = np.clip(rows @ target, 0.0, 1.0)
    weights = background.word_weights
    total = sum(weights.values())
    held = [sum(weight for word, weight in weights.items() if word in text) for text in words]
    if further:
        held = [
            own + sum(weights.get(word, 0.0) * part for word, part in more.items() if word not in text)
            for own, text, more in zip(held, words, further, strict=True)
        ]
    share = np.array(held) / total if total else near
    trust = 0.5 * total / (total + 1)
    return np.round((1 - trust) * near + trust * share, 6)


def _idf(n_holding: int, n_texts: int) -> float:
    """Return BM25's idf ln(1 + (N - n + 0.5) / (n + 0.5)), with N = n_texts + UNSEEN_TEXTS.

    It is near 0 for a word that is in each of many texts. A word in each of a few texts may still be rare in others.
    """
    return math.log(1 + (n_texts + UNSEEN_TEXTS - n_holding + 0.5) / (n_holding + 0.5))


def _centre(vectors: np.ndarray, background: Background) -> np.ndarray:
    """Return rows without their share of the mean direction, of length 1 or 0."""
    moved = vectors - background.share * np.outer(vectors @ background.mean, background.mean)
    lengths = np.linalg.norm(moved, axis=1, keepdims=True)
    return moved / np.where(lengths > 1e-9, lengths, 1.0)
