"""How a text unit relates an entity to what a question asks: the words that stand next to the entity's name.

A sentence says too much: "a film directed by A, written by B and starring C and D" is as near to "director" for all
four. So the content words on each side of the name are compared one by one with those of the question, by static
vectors (director - directed 0.43, husband - wife 0.82), and a word counts less for every other between it and the name.
No list of relations is needed. Keep out: which text units are worth a look.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from graphrag_pipeline.models.static_embeddings import load_static_embeddings
from graphrag_pipeline.query.question import is_searched

N_WORDS = 4
"""Content words looked at on each side of a name: verb, object, and some apposition."""
DECAY = 0.8
"""What each word in between leaves of a similarity, and the name itself: in "directed by A and starring B, C" the
nearest verb before a name is its own."""
MAX_CHARS = 160
"""Characters looked at on each side; four content words rarely take more."""
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019\-][^\W\d_]+)*")
_SENTENCE_END = re.compile(r"[.!?。！？]\s|\n")

Place = tuple[str, int, int]
"""A text, and where in it a name starts and ends."""


def score_relations(words: Sequence[str], places: Sequence[Place]) -> np.ndarray:
    """How near the surroundings of each place come to some word of a question, 0 to 1. float64 (len(places),).

    Args:
        words: what a question asks about the entities it names (`question.NamedQuestion.words`).
    """
    scores = np.zeros(len(places))
    if not words or not places:
        return scores
    sides = [(i, far, side) for i, place in enumerate(places) for far, side in enumerate(_read_sides(*place)) if side]
    vocabulary = sorted({word for _, _, side in sides for word in side})
    if not vocabulary:
        return scores
    vectors = load_static_embeddings().embed([*words, *vocabulary])
    nearest = np.clip((vectors[: len(words)] @ vectors[len(words) :].T).max(axis=0), 0.0, 1.0)
    near = dict(zip(vocabulary, nearest.tolist(), strict=True))
    for i, far, side in sides:
        scores[i] = max(scores[i], *(near[word] * DECAY ** (far + gap) for gap, word in enumerate(side)))
    return scores


def _read_sides(text: str, start: int, end: int) -> tuple[list[str], list[str]]:
    """Content words of the sentence before a name, nearest first, and behind it; other names do not count."""
    before = _SENTENCE_END.split(text[max(0, start - MAX_CHARS) : start])[-1]
    after = _SENTENCE_END.split(text[end : end + MAX_CHARS], maxsplit=1)[0]
    return _content_words(before)[::-1][:N_WORDS], _content_words(after)[:N_WORDS]


def _content_words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text) if word[0].islower() and is_searched(word)]
