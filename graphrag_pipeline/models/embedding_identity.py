"""Identity of vectors: everything that the vector of a text depends on, and its hash, the fingerprint.

Two machines with one fingerprint make the same vectors, so their vectors can be in one index. Release 0.1 had a fixed
margin of 12 % for models that tiktoken does not list. Its vectors of texts that neither release cuts are the same, and
so are its vectors of questions: they are used again, and its snapshots can be searched.

Add here: a setting that changes a vector. Keep out: requests, stores, and the cutting (`pieces.py`).
"""

from __future__ import annotations

from typing import Any

from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.models.pieces import find_encoding, piece_limit
from graphrag_pipeline.models.requests import canonical_json
from graphrag_pipeline.settings.models import EmbeddingModelSettings
from graphrag_pipeline.text.tokens import DEFAULT_ENCODING, count_tokens

HALVE = "halve"
_METHOD = "2"  # increase when splitting or averaging changes
_EARLIER_METHOD = "1"  # of release 0.1
_EARLIER_MARGIN = 1.12
_EARLIER_NAMES = ("model", "parameters", "dimensions", "batch_max_tokens")


def fingerprint_of(settings: EmbeddingModelSettings) -> str:
    """Return a hash that changes whenever the vector of a text may change."""
    return stable_hash("embedding", canonical_json([*identity_of(settings).values()]))


def identity_of(settings: EmbeddingModelSettings) -> dict[str, Any]:
    """Return what the vector of a text depends on, by name.

    Raises:
        PipelineError: the tokenizer of the model is not known.
    """
    values = {f"embedding_model.{name}": getattr(settings, name) for name in (*_EARLIER_NAMES, "token_margin")}
    values["embedding_model.averaging"] = "by_tokens"  # as earlier releases had it, so that their vectors stay
    if settings.passage_prefix:  # without one, the fingerprint is that of releases that had none
        values["embedding_model.passage_prefix"] = settings.passage_prefix
    if settings.refused_texts == HALVE:  # what is cut in two depends on the server, so another one makes other vectors
        values |= {f"embedding_model.{name}": getattr(settings, name) for name in ("refused_texts", "base_url")}
    return values | {"embedding_model.tokenizer": find_encoding(settings), "embedding method": _METHOD}


def earlier_fingerprint_of(settings: EmbeddingModelSettings) -> str:
    """Return the fingerprint that release 0.1 had for these settings."""
    values = [getattr(settings, name) for name in _EARLIER_NAMES]
    return stable_hash("embedding", canonical_json([*values, _EARLIER_METHOD]))


def query_fingerprint_of(settings: EmbeddingModelSettings) -> str:
    """Return the hash under which vectors of questions are stored: that of texts, unless their prefixes differ."""
    fingerprint = fingerprint_of(settings)
    if settings.query_prefix == settings.passage_prefix:
        return fingerprint
    return stable_hash("questions", fingerprint, settings.query_prefix)


def earlier_fingerprints_of(settings: EmbeddingModelSettings) -> tuple[str, ...]:
    """Return the fingerprints of other vectors that are the same: of earlier releases, and of texts never halved.

    A prefix is new, so earlier releases made no vectors with one.
    """
    found = () if settings.passage_prefix else (earlier_fingerprint_of(settings),)
    if settings.refused_texts == HALVE:
        return (fingerprint_of(settings.model_copy(update={"refused_texts": "fail"})), *found)
    return found


def was_never_cut(text: str, settings: EmbeddingModelSettings) -> bool:
    """Whether both this release and release 0.1 embed a text as a whole."""
    limit, earlier = piece_limit(settings), int(settings.batch_max_tokens / _EARLIER_MARGIN)
    if limit.max_tokens < earlier:
        return False
    if len(text.encode(errors="replace")) <= earlier:  # a token has at least one byte
        return True
    is_same_tokenizer = limit.encoding == DEFAULT_ENCODING and not _has_own_encoding(settings.model)
    return is_same_tokenizer and count_tokens(text) <= earlier


def _has_own_encoding(model: str) -> bool:
    """Whether tiktoken lists a model; release 0.1 then counted with that encoding, if it could be loaded."""
    import tiktoken

    try:
        tiktoken.encoding_name_for_model(model)
    except KeyError:
        return False
    return True
