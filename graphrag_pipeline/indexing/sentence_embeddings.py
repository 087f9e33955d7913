"""Sentence vectors, from which queries score windows of two sentences in text units.

They are static embeddings, whichever model embeds the text units. The static vector of a long passage is blurred; that
of two sentences is specific. The vector of a window is the sum of its sentences' unit vectors, each multiplied by the
sentence's length in characters, so that "Bah!" has little weight. This is as good as embedding both sentences as one
text: the mean reciprocal rank of 32 questions on A Christmas Carol is 0.30 in text units of 300 tokens and 0.43 in
those of 1,200 tokens, either way. Without weights it is 0.25 and 0.37.

A vector is stored as int8, scaled so that its largest absolute value is 127. It takes 256 bytes instead of 1,024, and
cosines differ from the exact ones by at most 0.0004. Only the direction has a meaning, so no scale is stored. If
`sentences.split_sentences` changes, the `algorithm` of the stage must be raised. Keep out: questions.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.arrow_columns import positions
from graphrag_pipeline.models.ports import Embedder
from graphrag_pipeline.tables import SENTENCE_EMBEDDINGS
from graphrag_pipeline.text.sentences import split_sentences
from graphrag_pipeline.text.structure import read_structure

_BATCH_SENTENCES = 50_000
_DOT_ROWS = 4_096  # rows per product; as int32 they fit the processor's cache


def embed_sentences(text_units: pa.Table, embedder: Embedder) -> pa.Table:
    """Split text units into sentences and embed them.

    Args:
        text_units: rows of the stage table or of the contract table. Without `start`, offsets are relative to the
            text unit.

    Returns:
        `tables.SENTENCE_EMBEDDINGS`; the sentences of a text unit cover its whole text.
    """
    parts = [_embed_batch(batch, embedder) for batch in _split_text_units(text_units)]
    return SENTENCE_EMBEDDINGS.sort(*parts)


_SentenceRow = tuple[str, int, int, int, str]
"""Text unit id, position, start, end, readable text."""


def _split_text_units(text_units: pa.Table) -> Iterator[list[_SentenceRow]]:
    """Yield sentences in batches of about `_BATCH_SENTENCES`."""
    batch: list[_SentenceRow] = []
    columns = (text_units[name].to_pylist() for name in ("id", "text"))
    for unit_id, text, first in zip(*columns, _text_starts(text_units).tolist(), strict=True):
        readable = read_structure(text).readable
        for position, (start, end) in enumerate(split_sentences(text)):
            batch.append((unit_id, position, first + start, first + end, readable.between(start, end)))
        if len(batch) >= _BATCH_SENTENCES:
            yield batch
            batch = []
    if batch:
        yield batch


def _text_starts(text_units: pa.Table) -> np.ndarray:
    """Return where the text of each text unit would start if its repeated header stood before `start`: (n,) int64."""
    starts = pc.fill_null(text_units["start"], 0)
    if "header_start" not in text_units.schema.names:  # an index of release 0.1
        return np.asarray(starts)
    lengths = pc.subtract(text_units["header_end"], text_units["header_start"])
    return np.asarray(pc.subtract(starts, pc.fill_null(lengths, 0)))


def _embed_batch(batch: list[_SentenceRow], embedder: Embedder) -> pa.Table:
    ids, positions_, starts, ends, texts = zip(*batch, strict=True)
    vectors = _to_int8(embedder.embed(texts))
    columns = {"text_unit_id": ids, "position": positions_, "start": starts, "end": ends, "vector": _to_binary(vectors)}
    return pa.table(columns).cast(SENTENCE_EMBEDDINGS.schema)


def _to_int8(vectors: np.ndarray) -> np.ndarray:
    """Return directions as (n, dimensions) int8, each row scaled to a largest value of +-127; zeros stay."""
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    return np.rint(vectors * (127 / np.where(largest > 0, largest, 1))).astype(np.int8)


def _to_binary(vectors: np.ndarray) -> pa.Array:
    data = pa.py_buffer(np.ascontiguousarray(vectors).tobytes())
    return pa.Array.from_buffers(pa.binary(vectors.shape[1]), len(vectors), [None, data])


def stack_sentences(text_units: pa.Table, sentences: pa.Table) -> dict[str, np.ndarray]:
    """Build the arrays of `storage.arrays.Sentences` by name.

    Args:
        text_units: the contract table, in file order.
        sentences: rows of `tables.SENTENCE_EMBEDDINGS` for all of them.
    """
    # Compressed sparse rows: the sentences of text unit i are [indptr[i], indptr[i + 1]) of every other array, (n,) or
    # (n, dimensions). A sentence's scale is its length in characters / the length of its int8 vector, so that
    # scale * vector is the weighted unit vector.
    unit_rows = positions(sentences["text_unit_id"], text_units["id"])
    order = np.lexsort((sentences["position"].to_numpy(), unit_rows))
    unit_rows = unit_rows[order]
    indptr = np.zeros(len(text_units) + 1, dtype=np.int64)
    np.cumsum(np.bincount(unit_rows, minlength=len(text_units)), out=indptr[1:])
    unit_starts = _text_starts(text_units)[unit_rows]
    starts = (sentences["start"].to_numpy()[order] - unit_starts).astype(np.int32)
    ends = (sentences["end"].to_numpy()[order] - unit_starts).astype(np.int32)
    vectors = _from_binary(sentences["vector"])[order]
    lengths = np.sqrt(_dot(vectors, vectors))
    scales = np.divide(ends - starts, lengths, out=np.zeros(len(vectors)), where=lengths > 0)
    return {
        "text_unit_sentences_indptr": indptr,
        "sentence_starts": starts,
        "sentence_ends": ends,
        "sentence_vectors": vectors,
        "sentence_scales": scales.astype(np.float32),
        "window_scales": _window_scales(indptr, vectors, scales).astype(np.float32),
    }


def _from_binary(vectors: pa.ChunkedArray) -> np.ndarray:
    column = vectors.combine_chunks()
    width = column.type.byte_width
    data = np.frombuffer(column.buffers()[1], dtype=np.int8) if len(column) else np.zeros(0, dtype=np.int8)
    return data[column.offset * width : (column.offset + len(column)) * width].reshape(len(column), width)


def _window_scales(indptr: np.ndarray, vectors: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Return 1 / |window vector| for the window that starts at each sentence: (n,) float64.

    It is 0 for a zero vector, and for the last of several sentences, where no window starts.
    """
    # With s the scale and v the vector of a sentence: |s1 v1 + s2 v2|^2 = s1^2 v1.v1 + s2^2 v2.v2 + 2 s1 s2 v1.v2. So
    # no window vector (n, dimensions) in float is needed.
    n_sentences = len(vectors)
    is_last = np.zeros(n_sentences, dtype=bool)
    sizes = np.diff(indptr)
    is_last[indptr[1:][sizes > 0] - 1] = True
    is_only = np.repeat(sizes == 1, sizes)
    following = np.where(is_last, np.arange(n_sentences), np.arange(n_sentences) + 1)
    next_scales = np.where(is_last, 0.0, scales[following])
    both = 2 * scales * next_scales * _dot(vectors, vectors, following)
    own = _dot(vectors, vectors)
    squares = scales**2 * own + next_scales**2 * own[following] + both
    is_window = (squares > 1e-6) & (~is_last | is_only)
    return np.divide(1.0, np.sqrt(np.maximum(squares, 0)), out=np.zeros(n_sentences), where=is_window)


def _dot(left: np.ndarray, right: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
    """Return the exact dot products of the rows of `left` and `right[rows]`: (n,) float64."""
    total = np.empty(len(left), dtype=np.float64)
    for start in range(0, len(left), _DOT_ROWS):
        part = slice(start, start + _DOT_ROWS)
        other = right[part] if rows is None else right[rows[part]]
        total[part] = np.einsum("ij,ij->i", left[part].astype(np.int32), other.astype(np.int32))
    return total
