"""Embedding models behind OpenAI-compatible endpoints.

A text is looked up in the store, by the model's fingerprint and the hash of the text; what is missing is cut into
pieces that the model can take (`pieces.py`), sent in batches, averaged and stored as soon as all its pieces are there.
A batch that the endpoint refuses is sent in halves; a piece that is still too long is cut in two. Keep out: what is
embedded and where vectors are searched.

Tokens are counted with the model's own tokenizer where tiktoken has it, else with o200k_base and a margin of 12 %: on
top of what 450 leaves of 512, that covers tokenizers that need a quarter more tokens.
"""

from __future__ import annotations

import asyncio
import base64
import functools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import stable_hash, text_hash
from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.models.cache import ResponseCache
from graphrag_pipeline.models.endpoints.endpoint import Endpoint, RejectedError, TokenUsage, estimate_tokens
from graphrag_pipeline.models.pieces import TextPiece, average_vectors, halve, pack_batches, split_to_pieces
from graphrag_pipeline.models.pool import Progress, Work, run_all
from graphrag_pipeline.models.ports import CallFailedError, Failure, ReplyFormatError
from graphrag_pipeline.models.requests import canonical_json, sendable
from graphrag_pipeline.models.spending import Spending
from graphrag_pipeline.settings.models import EmbeddingModelSettings
from graphrag_pipeline.text.tokens import DEFAULT_ENCODING, load_encoding

MARGIN = 1.12
MIN_PIECE = 8  # tokens; a piece that is refused as too long at this size is given up

MAX_ASKED = 3  # times, for vectors of the right length
_PATH = "/embeddings"
_METHOD = "1"  # raise when splitting or averaging changes


def fingerprint_of(settings: EmbeddingModelSettings) -> str:
    """Changes whenever the vector of a text may change."""
    return stable_hash("embedding", canonical_json([*identity_of(settings).values()]))


def identity_of(settings: EmbeddingModelSettings) -> dict[str, Any]:
    """What the vector of a text depends on, by the names of the settings."""
    names = ("model", "parameters", "dimensions", "batch_max_tokens")
    return {f"embedding_model.{name}": getattr(settings, name) for name in names} | {"embedding method": _METHOD}


class OpenAIEmbedder:
    """An embedding model with its store. Implements `ports.Embedder`.

    Args:
        stage: what it is used for, in failures.

    Attributes:
        fingerprint: of model, parameters, dimensions asked for, and the length at which texts are split.
        stats: calls, tokens and money since the instance was made.
    """

    def __init__(self, stage: str, settings: EmbeddingModelSettings, cache: ResponseCache, spending: Spending) -> None:
        self.stage = stage
        self.stats = CallStats()
        self.fingerprint = fingerprint_of(settings)
        self._settings = settings
        self._cache = cache
        defaults: dict[str, Any] = {"encoding_format": "base64"}
        if settings.dimensions is not None:
            defaults["dimensions"] = settings.dimensions
        self._endpoint = Endpoint(stage, settings, spending, self.stats, defaults)
        self._dimensions = settings.dimensions

    @property
    def dimensions(self) -> int:
        """Length of a vector: as set, as stored, or as the model's first answer has it.

        Raises:
            PipelineError: it has to be asked and does not answer.
        """
        if self._dimensions is None:
            stored = self._cache.read_any_vector(self.fingerprint)
            self._dimensions = len(stored) if stored is not None else len(self._request_one())
        return self._dimensions

    def _request_one(self) -> np.ndarray:
        vectors: dict[str, np.ndarray] = {}
        failures = self._embed_missing({text_hash("dimensions"): "dimensions"}, vectors)
        if failures:
            raise PipelineError(
                f"{self.stage}: model {self._settings.model!r} at {self._endpoint.host} gives no vectors: "
                f"{failures[0].reason}. Name an embedding model that it serves; what was made is kept"
            )
        return next(iter(vectors.values()))

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Turn texts into vectors.

        Returns:
            float32 (n texts, dimensions), rows of length 1; all zeros for a blank text, which is never sent.

        Raises:
            PipelineError: a text cannot be embedded (the others are, and are stored), or the endpoint cannot be used.
        """
        vectors, failures = self.try_embed(texts)
        if failures:
            first = failures[0]
            raise PipelineError(
                f"{self.stage}: {len(failures)} of {len(texts)} texts have no vector, first {first.record!r}: "
                f"{first.reason}. The others are stored; run again to try these"
            )
        return vectors

    def try_embed(self, texts: Sequence[str], progress: Progress | None = None) -> tuple[np.ndarray, list[Failure]]:
        """Like `embed`, but a text that fails has a row of zeros and a Failure, whose record is the text's hash."""
        if isinstance(texts, str):
            raise TypeError("texts is a single string: pass a sequence of strings, such as [text]")
        keys = [text_hash(text) for text in texts]
        text_of = {key: text for key, text in zip(keys, texts, strict=True) if text.strip()}
        vectors = self._cache.read_vectors(self.fingerprint, text_of)
        self._check_length(list(vectors.values()))
        self.stats.add_cached(len(vectors))
        missing = {key: text for key, text in text_of.items() if key not in vectors}
        failures = self._embed_missing(missing, vectors, progress)
        matrix = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, key in enumerate(keys):
            if key in vectors:
                matrix[row] = vectors[key]
        return matrix, failures

    def _embed_missing(
        self, text_of: Mapping[str, str], vectors: dict[str, np.ndarray], progress: Progress | None = None
    ) -> list[Failure]:
        """Embed texts by hash into `vectors`; returns those that failed."""
        texts = _PiecedTexts({key: self._split(text) for key, text in text_of.items()})
        sizes = [place.piece.n_tokens for place in texts.places]
        batches = [
            [texts.places[index] for index in indices]
            for indices in pack_batches(sizes, self._settings.batch_size, self._settings.batch_max_tokens_per_request)
        ]
        works = [Work(batch[0].key, partial(self._embed_batch, batch, texts, vectors)) for batch in batches]
        failed: dict[str, Failure] = {}
        for result in run_all(self.stage, works, self._settings.max_concurrency, progress):
            if isinstance(result, dict):
                failed |= result
        return list(failed.values())

    def _split(self, text: str) -> list[TextPiece]:
        """The pieces of a text that are worth sending."""
        text = sendable(text)
        longest = self._settings.batch_max_tokens
        if len(text.encode()) <= longest / MARGIN:  # a token has at least a byte: no need to count
            return [TextPiece(text, estimate_tokens(text))]
        encoding, margin = _find_encoding(self._settings.model)
        return [piece for piece in split_to_pieces(text, int(longest / margin), encoding) if piece.text.strip()]

    async def _embed_batch(
        self, batch: Sequence[_Place], texts: _PiecedTexts, vectors: dict[str, np.ndarray]
    ) -> dict[str, Failure]:
        """Embed the pieces of a batch, store the texts they complete; returns the texts that failed."""
        failed: dict[str, Failure] = {}
        finished: dict[str, np.ndarray] = {}
        for place, outcome in zip(batch, await self._embed_pieces([place.piece for place in batch]), strict=True):
            if isinstance(outcome, CallFailedError):
                failed[place.key] = Failure(self.stage, place.key, outcome.reason, outcome.reply, outcome.request_key)
            else:
                finished |= texts.add(place, outcome)
        if finished:
            await asyncio.wrap_future(self._cache.write_vectors(self.fingerprint, finished))
            vectors.update(finished)
        return failed

    async def _embed_pieces(self, pieces: Sequence[TextPiece]) -> list[np.ndarray | CallFailedError]:
        """A vector for each piece, or why it has none; what is refused is sent in halves."""
        try:
            return [*await self._request(pieces)]
        except RejectedError as error:
            if len(pieces) == 1:
                return [await self._embed_refused(pieces[0], error)]
            middle = len(pieces) // 2
            return [*await self._embed_pieces(pieces[:middle]), *await self._embed_pieces(pieces[middle:])]
        except CallFailedError as error:
            return [error] * len(pieces)

    async def _embed_refused(self, piece: TextPiece, error: RejectedError) -> np.ndarray | CallFailedError:
        """The vector of a piece by its halves, if it was refused for its length."""
        halves = halve(piece) if error.problem.is_too_long and piece.n_tokens >= 2 * MIN_PIECE else []
        halves = [half for half in halves if half.text.strip() and half.text != piece.text]
        if not halves:
            return error
        vectors: list[np.ndarray] = []
        for outcome in await self._embed_pieces(halves):
            if isinstance(outcome, CallFailedError):
                return outcome
            vectors.append(outcome)
        return average_vectors(vectors, [half.n_tokens for half in halves])

    async def _request(self, pieces: Sequence[TextPiece]) -> list[np.ndarray]:
        """One request; asked again where a vector's length is not that of the others."""
        texts = [piece.text for piece in pieces]
        key = stable_hash("embedding", self._settings.model, *texts)
        expected = TokenUsage(sum(piece.n_tokens for piece in pieces))
        read = partial(read_vectors, n=len(pieces))
        for _ in range(MAX_ASKED):
            vectors = (await self._endpoint.post(_PATH, {"input": texts}, key, expected, read)).value
            if self._have_right_length(vectors):
                break
        self._check_length(vectors)
        return vectors

    def _have_right_length(self, vectors: Sequence[np.ndarray]) -> bool:
        if self._dimensions is None and vectors:
            self._dimensions = len(vectors[0])
        return all(len(vector) == self._dimensions for vector in vectors)

    def _check_length(self, vectors: Sequence[np.ndarray]) -> None:
        if not self._have_right_length(vectors):
            wrong = next(len(vector) for vector in vectors if len(vector) != self._dimensions)
            raise PipelineError(
                f"embedding model {self._settings.model!r} at {self._endpoint.host} gives vectors of {wrong} numbers "
                f"where {self._dimensions} are expected (settings, or its earlier vectors); name the model that made "
                "the others, or set its dimensions, and build the vectors anew"
            )


@dataclass(frozen=True)
class _Place:
    """A piece and where it belongs: the text's hash and the piece's number in it."""

    key: str
    number: int
    piece: TextPiece


class _PiecedTexts:
    """Texts in pieces, whose vectors arrive in any order."""

    def __init__(self, pieces_of: Mapping[str, Sequence[TextPiece]]) -> None:
        self.places = [
            _Place(key, number, piece) for key, pieces in pieces_of.items() for number, piece in enumerate(pieces)
        ]
        self._pieces_of = pieces_of
        self._arrived: dict[str, dict[int, np.ndarray]] = defaultdict(dict)

    def add(self, place: _Place, vector: np.ndarray) -> dict[str, np.ndarray]:
        """Take a piece's vector; gives the text's vector by hash when it was the last one."""
        arrived, pieces = self._arrived[place.key], self._pieces_of[place.key]
        arrived[place.number] = vector
        if len(arrived) < len(pieces):
            return {}
        in_order = [arrived[number] for number in range(len(pieces))]
        del self._arrived[place.key]
        return {place.key: average_vectors(in_order, [piece.n_tokens for piece in pieces])}


@functools.cache
def _find_encoding(model: str) -> tuple[str, float]:
    """The tiktoken encoding to count a model's tokens with, and by what to divide its limit."""
    import tiktoken

    try:
        name = tiktoken.encoding_name_for_model(model)
        load_encoding(name)
    except (KeyError, PipelineError):
        return DEFAULT_ENCODING, MARGIN
    return name, 1.0


def read_vectors(body: object, n: int) -> list[np.ndarray]:
    """The n vectors of an embeddings response, in the order of the inputs; raises ReplyFormatError."""
    rows = body.get("data") if isinstance(body, Mapping) else None
    if not isinstance(rows, list) or len(rows) != n or not all(isinstance(row, Mapping) for row in rows):
        raise ReplyFormatError(f"the endpoint did not send {n} vectors: {str(body)[:120]!r}")
    indices = [row.get("index", place) for place, row in enumerate(rows)]
    if sorted(indices, key=str) != sorted(range(n), key=str):
        raise ReplyFormatError(f"the endpoint did not number its {n} vectors: {indices[:8]}")
    vectors = {index: _read_vector(row.get("embedding")) for index, row in zip(indices, rows, strict=True)}
    return [vectors[index] for index in range(n)]


def _read_vector(value: object) -> np.ndarray:
    try:
        if isinstance(value, str):
            vector = np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4")
        else:
            with np.errstate(over="ignore"):  # infinity is found below
                vector = np.asarray(value, dtype=np.float32)
    except (ValueError, TypeError, OverflowError):
        raise ReplyFormatError(f"not a vector: {str(value)[:80]!r}") from None
    if vector.ndim != 1 or not vector.size or not np.isfinite(vector).all():
        raise ReplyFormatError(f"not a vector of finite numbers: {str(value)[:80]!r}")
    return vector
