"""Pieces of texts that are too long for an embedding model, batches of texts, and the identity of their vectors.

Pure functions over token counts. A text of n > `max_tokens` tokens is cut into ceil(n / max_tokens) near-equal pieces
(600 at 450 -> 300 + 300; 1200 -> 3 x 400) between tokens, at a sentence end where one is near. Its vector is the mean
of the pieces' vectors, normalised to length 1.

The identity is everything that the vector of a text depends on; its hash is the fingerprint. Two machines with one
fingerprint make the same vectors, so their vectors can be in one index.

Add here: a setting that changes a vector. Keep out: endpoints and stores.
"""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from graphrag_pipeline.errors import EncodingError, PipelineError
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.models.ports import canonical_json
from graphrag_pipeline.settings.models import OWN_TOKENIZER, EmbeddingModelSettings
from graphrag_pipeline.text.sentences import grapheme_start, split_sentences
from graphrag_pipeline.text.tokens import DEFAULT_ENCODING, count_tokens, count_tokens_each, token_boundaries

NEAR = 0.1  # of a piece: the most that a cut moves to meet a sentence end


@dataclass(frozen=True)
class TextPiece:
    """A part of a text.

    Attributes:
        repeat: number of equal parts before it in its text. The inputs of one text follow from its length alone.
    """

    text: str
    n_tokens: int
    repeat: int = 0


@dataclass(frozen=True)
class PieceLimit:
    """The longest piece that an embedding model gets, in tokens of an encoding of tiktoken.

    Attributes:
        max_tokens: of a piece without the prefix.
        n_prefix: tokens of the prefix that every piece gets.
    """

    max_tokens: int
    encoding: str = DEFAULT_ENCODING
    n_prefix: int = 0


def piece_limit(settings: EmbeddingModelSettings, prefix: str | None = None) -> PieceLimit:
    """Return the longest piece under the settings: `batch_max_tokens`, less the stated margin and the prefix.

    Args:
        prefix: that every piece gets; None: `passage_prefix`.

    Raises:
        PipelineError: the tokenizer is not known, or the prefix leaves no room for a text.
    """
    encoding, prefix = find_encoding(settings), settings.passage_prefix if prefix is None else prefix
    with _naming_the_tokenizer():
        n_prefix = count_tokens(prefix, encoding) if prefix else 0
    max_tokens = int(settings.batch_max_tokens / (1 + settings.token_margin)) - n_prefix
    if max_tokens < 1:
        raise PipelineError(
            f"embedding_model: the prefix {prefix!r:.80} leaves no token of `batch_max_tokens` for a text; shorten it"
        )
    return PieceLimit(max_tokens, encoding, n_prefix)


def find_encoding(settings: EmbeddingModelSettings) -> str:
    """Return the encoding that counts the tokens of a model; it is not loaded.

    Raises:
        PipelineError: the settings name the model's own encoding, and tiktoken has none for the model.
    """
    import tiktoken

    if settings.tokenizer != OWN_TOKENIZER:
        return settings.tokenizer
    try:
        return tiktoken.encoding_name_for_model(settings.model)
    except KeyError:
        raise PipelineError(
            f"embedding_model.tokenizer is {OWN_TOKENIZER!r}, but tiktoken has no tokenizer for {settings.model!r}; "
            f"set `embedding_model.tokenizer` to {DEFAULT_ENCODING!r}, and `embedding_model.token_margin` if the model "
            "counts more tokens"
        ) from None


def pieces_to_send(text: str, limit: PieceLimit) -> list[TextPiece]:
    """Return the pieces of a text that an embedding model gets: those that are not blank.

    Raises:
        EncodingError: the tokenizer of the model cannot be loaded.
    """
    with _naming_the_tokenizer():
        pieces = [piece for piece in split_to_pieces(text, limit.max_tokens, limit.encoding) if piece.text.strip()]
    if len(set(pieces)) == len(pieces):
        return pieces
    return [replace(piece, repeat=pieces[:place].count(piece)) for place, piece in enumerate(pieces)]


@contextmanager
def _naming_the_tokenizer() -> Iterator[None]:
    """Name the setting of embedding models in the error of an encoding that cannot be loaded."""
    try:
        yield
    except EncodingError as error:
        raise error.of_setting("embedding_model.tokenizer") from None


def split_to_pieces(text: str, max_tokens: int, encoding: str = DEFAULT_ENCODING) -> list[TextPiece]:
    """Cut a text into the fewest near-equal pieces of at most `max_tokens` tokens; together they are the text.

    Only a text in which a character has several tokens can need more than ceil(n / max_tokens) pieces.
    """
    n_tokens = count_tokens(text, encoding)
    if n_tokens <= max_tokens:
        return [TextPiece(text, n_tokens)]
    n_pieces = math.ceil(n_tokens / max_tokens)
    places = _CutPlaces(text, encoding)
    while True:
        for near in (NEAR, 0.0):
            pieces = places.cut(n_pieces, max_tokens, near)
            if len(pieces) < n_pieces or all(piece.n_tokens <= max_tokens for piece in pieces):
                return pieces  # fewer than requested: no further cut is possible
        n_pieces += 1


def halve(piece: TextPiece, encoding: str = DEFAULT_ENCODING) -> list[TextPiece]:
    """Cut a piece in two, for an endpoint that counts more tokens; return one piece if no cut is possible."""
    return _CutPlaces(piece.text, encoding).cut(2, piece.n_tokens)


def average_vectors(vectors: Sequence[np.ndarray], weights: Sequence[int] | None = None) -> np.ndarray:
    """Return the mean of vectors (d,), float32 of length 1; zeros if the mean is zero.

    Args:
        weights: of the vectors; equal without them.
    """
    total = np.average(np.asarray(vectors, dtype=np.float64), axis=0, weights=weights)
    length = float(np.linalg.norm(total))
    return (total / length if length > 0 else total).astype(np.float32)


def average_pieces(vectors: Sequence[np.ndarray], pieces: Sequence[TextPiece]) -> np.ndarray:
    """Return the vector of a text from those of its pieces, weighted by their tokens."""
    return average_vectors(vectors, [piece.n_tokens for piece in pieces])


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


class PiecedTexts:
    """Texts that were cut into pieces; the vectors of the distinct pieces arrive in any order.

    Args:
        pieces_of: pieces by the hash of their text.

    Attributes:
        pieces: distinct pieces, in the order of the texts.
        halved: hashes of texts of which a piece was cut in two, for an endpoint that refused it.
    """

    def __init__(self, pieces_of: Mapping[str, Sequence[TextPiece]]) -> None:
        self._pieces_of = pieces_of
        self.halved: set[str] = set()
        self.pieces = list(dict.fromkeys(piece for pieces in pieces_of.values() for piece in pieces))
        self._keys_of: dict[TextPiece, list[str]] = defaultdict(list)
        for key, pieces in pieces_of.items():
            for piece in pieces:
                self._keys_of[piece].append(key)
        self._arrived: dict[str, dict[TextPiece, np.ndarray]] = defaultdict(dict)

    def keys_of(self, piece: TextPiece) -> Sequence[str]:
        """Return the hashes of the texts that a piece is part of, in order."""
        return self._keys_of[piece]

    def add(self, piece: TextPiece, vector: np.ndarray) -> dict[str, np.ndarray]:
        """Add the vector of a piece; return the vectors of the texts that it completes, by hash."""
        completed = {}
        for key in self.keys_of(piece):
            arrived, pieces = self._arrived[key], self._pieces_of[key]
            arrived[piece] = vector
            if len(arrived) == len(pieces):
                completed[key] = average_pieces([arrived[part] for part in pieces], pieces)
                del self._arrived[key]
        return completed


class _CutPlaces:
    """The places where a text may be cut: between tokens, never between a letter and its marks."""

    def __init__(self, text: str, encoding: str) -> None:
        self._text = text
        self._encoding = encoding
        self._n_before, self._offsets = token_boundaries(text, encoding)
        ends = (self._at_sentence_end(end) for _, end in split_sentences(text)[:-1])
        self._ends = [place for place in ends if place is not None]
        self._tokens_at_ends = [self._n_before[place] for place in self._ends]

    def cut(self, n_pieces: int, max_tokens: int, near: float = NEAR) -> list[TextPiece]:
        """Cut the text into near-equal pieces, fewer if it has fewer places.

        Args:
            max_tokens: of a piece; a piece has more only where no place is near.
            near: share of a piece that a cut may move to meet a sentence end.
        """
        offsets = [0, *(self._offsets[place] for place in self._choose(n_pieces, max_tokens, near)), len(self._text)]
        parts = [self._text[start:end] for start, end in pairwise(offsets) if end > start]
        return [TextPiece(part, n) for part, n in zip(parts, count_tokens_each(parts, self._encoding), strict=True)]

    def _choose(self, n_pieces: int, max_tokens: int, near: float) -> Iterator[int]:
        """Yield the n_pieces - 1 places to cut at, ascending."""
        total, done = self._n_before[-1], 0
        for n_left in range(n_pieces, 1, -1):
            share = (total - done) / n_left
            ideal = done + share
            least = max(total - (n_left - 1) * max_tokens, done + 1)  # the rest must fit into n_left - 1 pieces
            most = done + max_tokens
            place = self._nearest_end(ideal, max(ideal - near * share, least), min(ideal + near * share, most))
            if place is None:
                place = self._nearest_token(round(ideal), done, least, most)
            if place is None:
                return
            done = self._n_before[place]
            yield place

    def _nearest_end(self, ideal: float, low: float, high: float) -> int | None:
        """Return the sentence end nearest to `ideal` tokens, between `low` and `high`; None without one."""
        first, after = bisect.bisect_left(self._tokens_at_ends, low), bisect.bisect_right(self._tokens_at_ends, high)
        nearest = min(range(first, after), key=lambda i: abs(self._tokens_at_ends[i] - ideal), default=None)
        return None if nearest is None else self._ends[nearest]

    def _nearest_token(self, ideal: int, done: int, least: int, most: int) -> int | None:
        """Return the place after `done` tokens nearest to `ideal`, if possible in `least` to `most`; None without."""
        middle = bisect.bisect_left(self._n_before, ideal)
        before = next((place for place in range(middle, 0, -1) if self._is_whole(place)), None)
        after = next((place for place in range(middle + 1, len(self._offsets) - 1) if self._is_whole(place)), None)

        def badness(place: int) -> tuple[int, int]:
            n = self._n_before[place]
            return max(least - n, n - most, 0), abs(n - ideal)

        found = [place for place in (before, after) if place is not None and self._n_before[place] > done]
        return min(found, key=badness, default=None)

    def _is_whole(self, place: int) -> bool:
        offset = self._offsets[place]
        return 0 < offset < len(self._text) and grapheme_start(self._text, offset) == offset

    def _at_sentence_end(self, offset: int) -> int | None:
        """Return the place at a sentence end; a space that is part of the next token stays with it."""
        place = bisect.bisect_left(self._offsets, offset)
        if self._offsets[place] > offset and self._text[self._offsets[place - 1] : offset].isspace():
            place -= 1
        return place if 0 < self._offsets[place] <= offset else None


# ------------------------------------------------------------------------------------------------------------- identity

HALVE = "halve"
_METHOD = "2"  # increase when splitting or averaging changes


def fingerprint_of(settings: EmbeddingModelSettings) -> str:
    """Return a hash that changes whenever the vector of a text may change."""
    return stable_hash("embedding", canonical_json([*identity_of(settings).values()]))


def identity_of(settings: EmbeddingModelSettings) -> dict[str, Any]:
    """Return what the vector of a text depends on, by name.

    Raises:
        PipelineError: the tokenizer of the model is not known.
    """
    names = ("model", "parameters", "dimensions", "batch_max_tokens", "token_margin")
    values = {f"embedding_model.{name}": getattr(settings, name) for name in names}
    values["embedding_model.averaging"] = "by_tokens"
    if settings.passage_prefix:
        values["embedding_model.passage_prefix"] = settings.passage_prefix
    if settings.refused_texts == HALVE:  # what is cut in two depends on the server, so another one makes other vectors
        values |= {f"embedding_model.{name}": getattr(settings, name) for name in ("refused_texts", "base_url")}
    return values | {"embedding_model.tokenizer": find_encoding(settings), "embedding method": _METHOD}


def query_fingerprint_of(settings: EmbeddingModelSettings) -> str:
    """Return the hash under which vectors of questions are stored: that of texts, unless their prefixes differ."""
    fingerprint = fingerprint_of(settings)
    if settings.query_prefix == settings.passage_prefix:
        return fingerprint
    return stable_hash("questions", fingerprint, settings.query_prefix)


def equal_fingerprints_of(settings: EmbeddingModelSettings) -> tuple[str, ...]:
    """Return the fingerprints of other vectors that are the same: where texts may be halved, those never halved."""
    if settings.refused_texts != HALVE:
        return ()
    return (fingerprint_of(settings.model_copy(update={"refused_texts": "fail"})),)
