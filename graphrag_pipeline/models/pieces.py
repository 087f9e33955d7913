"""Pieces of texts that are too long for an embedding model, and batches of texts.

Pure functions over token counts. A text of n > `max_tokens` tokens is cut into ceil(n / max_tokens) near-equal pieces
(600 at 450 -> 300 + 300; 1200 -> 3 x 400), at a sentence end where one is near. Its vector is the mean of the pieces'
vectors weighted by their tokens, normalised to length 1.

Keep out: endpoints and stores.
"""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from graphrag_pipeline.text.sentences import grapheme_start, split_sentences
from graphrag_pipeline.text.tokens import DEFAULT_ENCODING, count_tokens, count_tokens_each, load_encoding

NEAR = 0.1  # of a piece: the most that a cut moves to meet a sentence end


@dataclass(frozen=True)
class TextPiece:
    """A part of a text and its number of tokens."""

    text: str
    n_tokens: int


def split_to_pieces(text: str, max_tokens: int, encoding: str = DEFAULT_ENCODING) -> list[TextPiece]:
    """Cut a text into the fewest near-equal pieces of at most `max_tokens` tokens; together they are the text."""
    n_tokens = count_tokens(text, encoding)
    if n_tokens <= max_tokens:
        return [TextPiece(text, n_tokens)]
    n_pieces = math.ceil(n_tokens / max_tokens)
    while True:
        pieces = _cut(text, n_pieces, max_tokens, encoding)
        if len(pieces) < n_pieces or all(piece.n_tokens <= max_tokens for piece in pieces):
            return pieces  # fewer than requested: no further cut is possible
        n_pieces += 1


def halve(piece: TextPiece, encoding: str = DEFAULT_ENCODING) -> list[TextPiece]:
    """Cut a piece in two, for an endpoint that counts more tokens; return one piece if no cut is possible."""
    return _cut(piece.text, 2, piece.n_tokens, encoding)


def average_vectors(vectors: Sequence[np.ndarray], weights: Sequence[int]) -> np.ndarray:
    """Return the weighted mean of vectors (d,), float32 of length 1; zeros if the mean is zero."""
    total = np.average(np.asarray(vectors, dtype=np.float64), axis=0, weights=np.asarray(weights, dtype=np.float64))
    length = float(np.linalg.norm(total))
    return (total / length if length > 0 else total).astype(np.float32)


def pack_batches(n_tokens: Sequence[int], max_items: int, max_tokens: int) -> list[list[int]]:
    """Split the indices 0..n-1, in order, into non-empty batches of at most `max_items` and `max_tokens`.

    An item over `max_tokens` is a batch by itself.
    """
    batches: list[list[int]] = []
    total = 0
    for index, tokens in enumerate(n_tokens):
        if not batches or len(batches[-1]) >= max_items or total + tokens > max_tokens:
            batches.append([])
            total = 0
        batches[-1].append(index)
        total += tokens
    return batches


@dataclass(frozen=True)
class PiecePlace:
    """A piece, the hash of its text, and its number in the text."""

    key: str
    number: int
    piece: TextPiece


class PiecedTexts:
    """Texts that were cut into pieces; the vectors of the pieces arrive in any order.

    Args:
        pieces_of: pieces by the hash of their text.
    """

    def __init__(self, pieces_of: Mapping[str, Sequence[TextPiece]]) -> None:
        self.places = [
            PiecePlace(key, number, piece) for key, pieces in pieces_of.items() for number, piece in enumerate(pieces)
        ]
        self._pieces_of = pieces_of
        self._arrived: dict[str, dict[int, np.ndarray]] = defaultdict(dict)

    def add(self, place: PiecePlace, vector: np.ndarray) -> dict[str, np.ndarray]:
        """Add the vector of a piece; return the vector of its text by hash if the text is complete, else nothing."""
        arrived, pieces = self._arrived[place.key], self._pieces_of[place.key]
        arrived[place.number] = vector
        if len(arrived) < len(pieces):
            return {}
        in_order = [arrived[number] for number in range(len(pieces))]
        del self._arrived[place.key]
        return {place.key: average_vectors(in_order, [piece.n_tokens for piece in pieces])}


def _cut(text: str, n_pieces: int, max_tokens: int, encoding: str) -> list[TextPiece]:
    places = [0, *_cut_places(text, n_pieces, max_tokens, encoding), len(text)]
    parts = [text[start:end] for start, end in pairwise(places) if end > start]
    return [TextPiece(part, n) for part, n in zip(parts, count_tokens_each(parts, encoding), strict=True)]


def _cut_places(text: str, n_pieces: int, max_tokens: int, encoding: str) -> Iterator[int]:
    """Yield the character offsets of the n_pieces - 1 cuts, ascending."""
    spans = split_sentences(text)
    counts = count_tokens_each([text[start:end] for start, end in spans], encoding)
    ends = list(accumulate(counts))  # tokens up to the end of each sentence
    total, done = ends[-1], 0.0
    for n_left in range(n_pieces, 1, -1):
        share = (total - done) / n_left
        ideal = done + share
        low = max(ideal - NEAR * share, total - (n_left - 1) * max_tokens)  # the rest must fit into n_left - 1 pieces
        high = min(ideal + NEAR * share, done + max_tokens)
        nearest = min(_ends_within(ends, low, high), key=lambda i: abs(ends[i] - ideal), default=None)
        if nearest is not None:
            done = float(ends[nearest])
            yield spans[nearest][1]
        else:
            sentence = bisect.bisect_left(ends, ideal)
            start, end = spans[sentence]
            n_before = ends[sentence] - counts[sentence]
            yield start + _offset_of_token(text[start:end], round(ideal) - n_before, encoding)
            done = float(round(ideal))


def _ends_within(ends: Sequence[int], low: float, high: float) -> range:
    return range(bisect.bisect_left(ends, low), bisect.bisect_right(ends, high))


def _offset_of_token(sentence: str, n_tokens: int, encoding: str) -> int:
    """Return the number of characters of the first `n_tokens` tokens; never cut between a letter and its marks."""
    encoder = load_encoding(encoding)
    tokens = encoder.encode_ordinary(sentence)
    if not 0 < n_tokens < len(tokens):
        return 0 if n_tokens <= 0 else len(sentence)
    _, offsets = encoder.decode_with_offsets(tokens)
    return grapheme_start(sentence, offsets[n_tokens])
