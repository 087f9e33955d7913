"""How well a text answers a question, without a model: the embedded engine's stand-in for a rating model.

    relevance = (1 - t) x centred cosine, not below 0  +  t x weighted share of the question's content words in the text

A plain cosine cannot be compared between questions: everyday words put "What is the theme of the story?" at 0.5 from
every text and "Who is Tiny Tim?" at 0.1. So what all texts have in common (their mean direction) is taken out of both
sides, as far as there are enough texts to know it. A content word weighs its inverse document frequency, in the
question's vector too: SCROOGE, who is everywhere, does not make every sentence about him an answer, and a word that no
text holds weighs most, so a question about something else stays low however near its other words are. The words'
part t grows with their total weight to a half: words that are everywhere decide nothing.

Best text per question, on the imported Christmas Carol index and questions that the thresholds were chosen by:
reports 0.36-0.73 for 14 questions it can answer, 0.16-0.37 for 9 it cannot; passages 0.30-0.91 (13) and 0.10-0.34
(9). The ranges touch, so a threshold errs now and then. Extractive reports lack abstract words, and there reports do
not separate them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from graphrag_pipeline.query.question import stem, topic_words
from graphrag_pipeline.text.extractive import words_of

Embed = Callable[[list[str]], np.ndarray]

SHRINKAGE = 8.0
"""Number of texts at which half of the mean direction is taken out."""
UNSEEN_TEXTS = 8


@dataclass(frozen=True)
class Background:
    """What a question is compared against.

    Attributes:
        vector: of the question, its words by weight, float (d,).
        mean: unit vector of what the texts have in common, or zeros.
        share: how much of it is taken out, 0-1.
        word_weights: stem -> weight of the question's content words.
    """

    vector: np.ndarray
    mean: np.ndarray
    share: float
    word_weights: dict[str, float]


def make_background(question: str, embed: Embed, words: Sequence[frozenset[str]], vectors: np.ndarray) -> Background:
    """Learn what is common from texts that stand for the corpus.

    Args:
        embed: turns texts into vectors.
        words: content words of each text.
        vectors: float (n, d), one per text.
    """
    mean = vectors.sum(axis=0)
    length = float(np.linalg.norm(mean))
    n_texts = len(words)
    n_holding = {word: sum(word in held for held in words) for word in sorted(topic_words(question))}
    weights = {word: _idf(n, n_texts) for word, n in n_holding.items()}
    vector = _weigh_words(question, weights, embed)
    return Background(vector, mean / length if length else mean, n_texts / (n_texts + SHRINKAGE), weights)


def _weigh_words(question: str, weights: dict[str, float], embed: Embed) -> np.ndarray:
    """The question's vector plus that of its content words by weight."""
    found = [word for word in sorted(words_of(question)) if stem(word) in weights]
    vectors = embed([question, *found])
    weighed = np.array([weights[stem(word)] for word in found]) @ vectors[1:]
    length = float(np.linalg.norm(weighed))
    return vectors[0] + weighed / length if length > 1e-9 else vectors[0]


def score_relevance(background: Background, words: Sequence[frozenset[str]], vectors: np.ndarray) -> np.ndarray:
    """Relevance of each text, 0-1, float (n,), rounded so that ties are ties on any machine."""
    if not len(words):
        return np.zeros(0)
    rows, target = _centre(vectors, background), _centre(background.vector[None, :], background)[0]
    near = np.clip(rows @ target, 0.0, 1.0)
    total = sum(background.word_weights.values())
    held = [sum(weight for word, weight in background.word_weights.items() if word in text) for text in words]
    share = np.array(held) / total if total else near
    trust = 0.5 * total / (total + 1)
    return np.round((1 - trust) * near + trust * share, 6)


def _idf(n_holding: int, n_texts: int) -> float:
    """BM25's inverse document frequency, as if there were `UNSEEN_TEXTS` more that do not hold the word.

    Near 0 for a word that every one of many texts holds; of few texts, that all hold a word proves little.
    """
    return math.log(1 + (n_texts + UNSEEN_TEXTS - n_holding + 0.5) / (n_holding + 0.5))


def _centre(vectors: np.ndarray, background: Background) -> np.ndarray:
    """Rows without their share of the mean direction, of length 1 (or zero)."""
    moved = vectors - background.share * np.outer(vectors @ background.mean, background.mean)
    lengths = np.linalg.norm(moved, axis=1, keepdims=True)
    return moved / np.where(lengths > 1e-9, lengths, 1.0)
