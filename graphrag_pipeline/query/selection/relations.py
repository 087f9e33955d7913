"""Similarity of a question to the words beside an entity's name.

The vector of a whole sentence is the same for all people in it: of "a film directed by A, written by B and starring C
and D", all four are equally near to "director". So this module compares the content words on each side of the name with
those of the question, one by one, by static vectors (cosine of director and directed 0.43, of husband and wife 0.82):

    score = max over the words v beside the name of max over the question's words w of cos(v, w) * DECAY^g

g is the number of content words between v and the name, plus 1 for a word after the name. No list of relations is
needed. Keep out: the choice of text units.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

import numpy as np

from graphrag_pipeline.models.ports import load_static_embedder
from graphrag_pipeline.query.question import is_searched
from graphrag_pipeline.text.late_patterns import late_re

N_WORDS = 4
"""Content words that are read on each side of a name: a verb, an object and an apposition."""
DECAY = 0.8
"""Factor for each word in between, and for words after the name: in "directed by A and starring B, C", the verb before
a name belongs to it."""
MAX_CHARS = 160
"""Characters that are read on each side; four content words rarely take more."""
_WORD = late_re(r"[^\W\d_]+(?:['\u2019\-][^\W\d_]+)*")
"""A word; read backwards, a text has the same words."""
_SENTENCE_END = late_re(r"[.!?。！？]\s|\n")
_SENTENCE_START = late_re(r"\s[.!?。！？]|\n")
"""The end of the sentence before, read backwards."""

_DECAYS = [DECAY**distance for distance in range(N_WORDS + 1)]

Place = tuple[str, int, int]
"""A text, and the character offsets at which a name starts and ends in it."""


def score_relations(words: Sequence[str], places: Sequence[Place]) -> np.ndarray:
    """Return the similarity of a question to the words beside each name, 0 to 1, float64 (len(places),).

    Args:
        words: of the question, without the names (`names.NamedQuestion.words`).
    """
    scores = [0.0] * len(places)
    if not words or not places:
        return np.array(scores)
    backwards = {text: text[::-1] for text, _, _ in places}
    sides = [
        (i, far, side)
        for i, (text, start, end) in enumerate(places)
        for far, side in enumerate(_read_sides(text, backwards[text], start, end))
        if side
    ]
    vocabulary = sorted({word for _, _, side in sides for word in side})
    if not vocabulary:
        return np.array(scores)
    vectors = np.array([_embed_word(word) for word in (*words, *vocabulary)])
    nearest = np.clip((vectors[: len(words)] @ vectors[len(words) :].T).max(axis=0), 0.0, 1.0)
    near = dict(zip(vocabulary, nearest.tolist(), strict=True))
    for i, far, side in sides:
        scores[i] = max(scores[i], *[near[word] * _DECAYS[far + gap] for gap, word in enumerate(side)])
    return np.array(scores)


def _read_sides(text: str, backwards: str, start: int, end: int) -> tuple[list[str], list[str]]:
    """Return the content words before a name and after it in its sentence, nearest first, without other names.

    The words before it are read from right to left, so that no more are read than are wanted.

    Args:
        backwards: the text from its last letter to its first.
    """
    before, after = len(text) - start, min(end + MAX_CHARS, len(text))
    first = min(before + MAX_CHARS, len(text))
    if sentence_start := _SENTENCE_START.search(backwards, before, first):
        first = sentence_start.start()
    if sentence_end := _SENTENCE_END.search(text, end, after):
        after = sentence_end.start()
    return _first_words(backwards, before, first, -1), _first_words(text, end, after, 1)


def _first_words(text: str, start: int, end: int, direction: int) -> list[str]:
    """Return the first content words of a part of a text; its words read backwards where `direction` is -1."""
    words = (match.group()[::direction] for match in _WORD.finditer(text, start, end))
    return list(itertools.islice(filter(_is_content_word, words), N_WORDS))


@functools.lru_cache(maxsize=4_096)
def _embed_word(word: str) -> np.ndarray:
    vector: np.ndarray = load_static_embedder().embed([word])[0]
    return vector


@functools.lru_cache(maxsize=65_536)
def _is_content_word(word: str) -> bool:
    return word[0].islower() and is_searched(word)
