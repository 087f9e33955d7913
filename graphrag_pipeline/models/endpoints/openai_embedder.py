"""Embedding models at OpenAI-compatible endpoints.

A text is looked up in the store by the fingerprint of the model and the hash of the text. A missing text is cut into
pieces that fit the model (`models/pieces.py`) and sent in batches that it takes (`batches.py`). A piece of several
texts is sent once. The vector of a text is averaged and stored when all its pieces have arrived. A piece that the
endpoint refuses as too long, in whatever words and with whatever status, is a failure that names the settings to
change: a vector of its halves would depend on the server, and two machines with one fingerprint would have unequal
vectors. With `refused_texts: halve` it is cut in two, and the fingerprint holds `base_url`. A question is always cut in
two, since its vector is not kept in an index.

Tokens are counted with `embedding_model.tokenizer`. A text is cut only if it is longer than `batch_max_tokens`, less
`token_margin`.

Keep out: which texts are embedded, and search in vectors.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import stable_hash, text_hash
from graphrag_pipeline.models.accounting import Caller, CallStats
from graphrag_pipeline.models.cache import KnownFacts, ResponseCache
from graphrag_pipeline.models.endpoints.batches import BatchLimit, limit_of_settings, send_batches
from graphrag_pipeline.models.endpoints.batching import most_at_once
from graphrag_pipeline.models.endpoints.endpoint import Endpoint, RejectedError
from graphrag_pipeline.models.endpoints.replies import TokenUsage, estimate_tokens, read_vectors
from graphrag_pipeline.models.pieces import (
    HALVE,
    PiecedTexts,
    TextPiece,
    average_pieces,
    equal_fingerprints_of,
    fingerprint_of,
    halve,
    pack_batches,
    piece_limit,
    pieces_to_send,
    query_fingerprint_of,
)
from graphrag_pipeline.models.pool import Progress, Work, run_all
from graphrag_pipeline.models.ports import CallFailedError, Failure, sendable
from graphrag_pipeline.models.spending import Spending
from graphrag_pipeline.settings.models import EmbeddingModelSettings

_LOG = logging.getLogger(__name__)

MIN_PIECE = 8  # tokens; a rejected piece of less than twice this size is a failure
MAX_REQUESTS = 3  # of one batch, until its vectors have the right length
EMBEDDINGS_PATH = "/embeddings"


class OpenAIEmbedder:
    """An embedding model with its store. Implements `ports.Embedder`.

    Args:
        stage: the stage that uses the model, for failures.
        known_batches: the most texts of a request that earlier commands learnt, and keep here.

    Attributes:
        fingerprint: hash of model, parameters, requested dimensions, and how long texts are split and averaged.
        equal_fingerprints: of other vectors that are the same, whose snapshots this model can search.
        stats: calls, tokens and cost of this model, for all callers.
    """

    def __init__(
        self,
        stage: str,
        settings: EmbeddingModelSettings,
        cache: ResponseCache,
        spending: Spending,
        known_batches: KnownFacts | None = None,
    ) -> None:
        self.stage = stage
        self.stats = CallStats()
        self.fingerprint = fingerprint_of(settings)
        self.equal_fingerprints = equal_fingerprints_of(settings)
        self._stored_as = self.fingerprint
        self._prefix = settings.passage_prefix
        self._may_halve = settings.refused_texts == HALVE
        self._limit = piece_limit(settings)
        self._settings = settings
        self._cache = cache
        defaults: dict[str, Any] = {"encoding_format": "base64"}
        if settings.dimensions is not None:
            defaults["dimensions"] = settings.dimensions
        self._endpoint = Endpoint(stage, settings, spending, defaults)
        self._caller = Caller((self.stats,))
        limit = limit_of_settings(settings, EMBEDDINGS_PATH, settings.batch_size, known_batches)
        self._learned = _Learned(settings.dimensions, limit)

    def for_caller(self, caller: Caller) -> Self:
        """Return this model for a caller whose accounts count its calls, too."""
        model = copy.copy(self)  # shares all changing state, which is in `stats`, `_cache`, `_endpoint` and `_learned`
        model._caller = self._caller.joined_by(caller)
        return model

    @property
    def for_questions(self) -> Self:
        """This model for questions, which get `query_prefix`. Their vectors are stored apart if the prefixes differ."""
        model = copy.copy(self)
        model._prefix = self._settings.query_prefix
        model._may_halve = True
        model._stored_as = query_fingerprint_of(self._settings)
        model._limit = piece_limit(self._settings, model._prefix)
        return model

    def expecting(self, dimensions: int) -> Self:
        """Return this model with a known length of vectors: others are neither stored nor taken from the store."""
        model = copy.copy(self)
        model._learned = replace(self._learned, dimensions=dimensions)
        return model

    @property
    def dimensions(self) -> int:
        """Length of a vector: from the settings, from a stored vector, or from a request to the model.

        Raises:
            PipelineError: a request is needed and fails.
        """
        if self._learned.dimensions is None:
            fingerprints = (self.fingerprint, *self.equal_fingerprints)
            stored = (self._cache.read_any_vector(fingerprint) for fingerprint in fingerprints)
            vector = next((found for found in stored if found is not None), None)
            self._learned.dimensions = len(vector) if vector is not None else len(self._request_one())
        return self._learned.dimensions

    def _request_one(self) -> np.ndarray:
        vectors: dict[str, np.ndarray] = {}
        failures = self._embed_missing({text_hash("dimensions"): "dimensions"}, vectors)
        if failures:
            raise PipelineError(
                f"{self.stage}: model {self._settings.model!r} at {self._endpoint.host} returned no vector: "
                f"{failures[0].reason.rstrip('.')}. Set `model` to an embedding model that it serves; results so far "
                "are stored"
            )
        return next(iter(vectors.values()))

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Turn texts into vectors.

        Returns:
            float32 (n texts, dimensions), rows of length 1; zeros for a blank text, which is not sent.

        Raises:
            PipelineError: a text cannot be embedded (the others are stored), or the endpoint cannot be used.
        """
        vectors, failures = self.try_embed(texts)
        if failures:
            first = failures[0]
            raise PipelineError(
                f"{self.stage}: {len(failures)} of {len(texts)} texts have no vector, first {first.record!r}: "
                f"{first.reason}. The others are stored; run again to retry these"
            )
        return vectors

    def try_embed(self, texts: Sequence[str], progress: Progress | None = None) -> tuple[np.ndarray, list[Failure]]:
        """See `ports.Embedder.try_embed`."""
        if isinstance(texts, str):
            raise TypeError("texts is a single string: pass a sequence of strings, such as [text]")
        keys = [text_hash(text) for text in texts]
        text_of = {key: text for key, text in zip(keys, texts, strict=True) if text.strip()}
        vectors = {
            key: vector for key, vector in self.read_stored(text_of).items() if self._have_right_length([vector])
        }
        self._caller.add_cached(len(vectors))
        missing = {key: text for key, text in text_of.items() if key not in vectors}
        failures = self._embed_missing(missing, vectors, progress)
        matrix = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, key in enumerate(keys):
            if key in vectors:
                matrix[row] = vectors[key]
        return matrix, failures

    def read_stored(self, text_of: Mapping[str, str]) -> dict[str, np.ndarray]:
        """Return the vectors of texts by hash that need no request."""
        vectors = self._cache.read_vectors(self._stored_as, text_of)
        for fingerprint in self.equal_fingerprints if self._stored_as == self.fingerprint else ():
            missing = [key for key in text_of if key not in vectors]
            vectors |= self._cache.read_vectors(fingerprint, missing) if missing else {}
        return vectors

    def _embed_missing(
        self, text_of: Mapping[str, str], vectors: dict[str, np.ndarray], progress: Progress | None = None
    ) -> list[Failure]:
        """Embed texts by hash, add their vectors to `vectors`, and return the failures."""
        pieces_of = {key: pieces_to_send(sendable(text), self._limit) for key, text in text_of.items()}
        texts = PiecedTexts(pieces_of)
        sizes = [piece.n_tokens + self._limit.n_prefix for piece in texts.pieces]
        batches = [
            [texts.pieces[index] for index in indices]
            for indices in pack_batches(
                sizes, self._learned.batches.n_texts, self._settings.batch_max_tokens_per_request
            )
        ]
        works = [
            Work(texts.keys_of(batch[0])[0], partial(self._embed_batch, batch, texts, vectors)) for batch in batches
        ]
        failed: dict[str, Failure] = {}
        n_at_once = most_at_once(self.stage, self._settings)
        for result in run_all(self.stage, works, n_at_once, progress, scope=self._caller.scope):
            if isinstance(result, dict):
                failed |= result
        return list(failed.values())

    async def _embed_batch(
        self, batch: Sequence[TextPiece], texts: PiecedTexts, vectors: dict[str, np.ndarray]
    ) -> dict[str, Failure]:
        """Embed the pieces of a batch and store the texts that they complete; return failures by text hash."""
        failed: dict[str, Failure] = {}
        finished: dict[str, np.ndarray] = {}
        sent = await send_batches(batch, self._learned.batches, self._request)
        for piece, first in zip(batch, sent, strict=True):
            outcome = await self._embed_refused(piece, first) if isinstance(first, RejectedError) else first
            if isinstance(outcome, CallFailedError):
                for key in texts.keys_of(piece):
                    failed[key] = Failure(self.stage, key, outcome.reason, outcome.reply, outcome.request_key)
                continue
            if first is not outcome and self._settings.refused_texts != HALVE:
                texts.halved.update(texts.keys_of(piece))  # a text of the index must not get the vector of halves
            finished |= texts.add(piece, outcome)
        if stored := {key: vector for key, vector in finished.items() if key not in texts.halved}:
            await asyncio.wrap_future(self._cache.write_vectors(self._stored_as, stored))
        vectors.update(finished)
        return failed

    async def _embed_pieces(self, pieces: Sequence[TextPiece]) -> list[np.ndarray | CallFailedError]:
        """Return a vector or an error per piece."""
        outcomes = await send_batches(pieces, self._learned.batches, self._request)
        return [
            await self._embed_refused(piece, outcome) if isinstance(outcome, RejectedError) else outcome
            for piece, outcome in zip(pieces, outcomes, strict=True)
        ]

    async def _embed_refused(self, piece: TextPiece, error: RejectedError) -> np.ndarray | CallFailedError:
        """Embed the halves of a piece that was rejected for its length; return the error if that may not be."""
        if not error.problem.is_too_long:
            return error
        if not self._may_halve:
            return self._explain_length(piece, error)
        halves = halve(piece, self._limit.encoding) if piece.n_tokens >= 2 * MIN_PIECE else []
        halves = [half for half in halves if half.text.strip() and half.text != piece.text]
        if not halves:
            return error
        self._warn_of_length(piece, error)
        vectors: list[np.ndarray] = []
        for outcome in await self._embed_pieces(halves):
            if isinstance(outcome, CallFailedError):
                return outcome
            vectors.append(outcome)
        return average_pieces(vectors, halves)

    def _explain_length(self, piece: TextPiece, error: RejectedError) -> CallFailedError:
        n_tokens = piece.n_tokens + self._limit.n_prefix
        reason = (
            f"the endpoint refuses a text of {n_tokens} tokens ({error.reason.rstrip('.')}), which "
            f"`embedding_model.batch_max_tokens` = {self._settings.batch_max_tokens} allows; lower it "
            "(`graphrag-pipeline doctor` finds the number), or set `embedding_model.refused_texts: halve`"
        )
        return CallFailedError(reason, error.request_key, error.reply)

    def _warn_of_length(self, piece: TextPiece, error: RejectedError) -> None:
        if not self._learned.is_too_long_known:
            self._learned.is_too_long_known = True
            _LOG.warning(
                "%s at %s refuses a text of %d tokens (%s); such texts are cut in two after each refusal. Lower "
                "embedding_model.batch_max_tokens to save these requests",
                self._settings.model, self._endpoint.host, piece.n_tokens, error.reason,
            )  # fmt: skip

    async def _request(self, pieces: Sequence[TextPiece], n_attempts_500: int) -> list[np.ndarray]:
        """Send one request; repeat it if the vectors do not have the expected length."""
        texts = [self._prefix + piece.text for piece in pieces]
        key = stable_hash("embedding", self._settings.model, *texts)
        counts = (max(piece.n_tokens + self._limit.n_prefix, estimate_tokens(piece.text)) for piece in pieces)
        expected = TokenUsage(sum(counts))
        read = partial(read_vectors, n=len(pieces))
        for _ in range(MAX_REQUESTS):
            sent = await self._endpoint.post(
                EMBEDDINGS_PATH, {"input": texts}, key, expected, read, self._caller, n_attempts_500=n_attempts_500
            )
            vectors = self._cut(sent.value)
            if self._have_right_length(vectors):
                break
        self._check_length(vectors)
        return vectors

    def _cut(self, vectors: list[np.ndarray]) -> list[np.ndarray]:
        """Cut vectors to the `dimensions` of the settings, for an endpoint that refuses or ignores the parameter."""
        wanted = self._settings.dimensions
        if wanted is None or all(len(vector) <= wanted for vector in vectors):
            return vectors
        if not self._learned.is_cut_known:
            self._learned.is_cut_known = True
            _LOG.warning(
                "%s at %s gives vectors of %d numbers; they are cut here to embedding_model.dimensions = %d, which "
                "suits only models trained for it",
                self._settings.model, self._endpoint.host, len(vectors[0]), wanted,
            )  # fmt: skip
        return [vector[:wanted] for vector in vectors]

    def _have_right_length(self, vectors: Sequence[np.ndarray]) -> bool:
        if self._learned.dimensions is None and vectors:
            self._learned.dimensions = len(vectors[0])
        return all(len(vector) == self._learned.dimensions for vector in vectors)

    def _check_length(self, vectors: Sequence[np.ndarray]) -> None:
        if not self._have_right_length(vectors):
            wrong = next(len(vector) for vector in vectors if len(vector) != self._learned.dimensions)
            raise PipelineError(
                f"embedding model {self._settings.model!r} at {self._endpoint.host} gives vectors of {wrong} numbers "
                f"where {self._learned.dimensions} are expected (from the settings, stored vectors or the index); "
                "set `model` to the one that made the stored vectors, or set `dimensions` and rebuild the vectors"
            )


@dataclass
class _Learned:
    """What replies showed about a model.

    Attributes:
        dimensions: length of its vectors.
        batches: the most texts of a request.
        is_too_long_known: whether it refused a text for its length.
        is_cut_known: whether its vectors are longer than the settings say.
    """

    dimensions: int | None
    batches: BatchLimit
    is_too_long_known: bool = False
    is_cut_known: bool = False
