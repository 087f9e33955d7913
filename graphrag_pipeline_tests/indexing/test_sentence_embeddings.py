"""Sentence vectors: they cover the text, have exact offsets, and nearly the direction of the float vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.indexing import sentence_embeddings
from graphrag_pipeline.indexing.sentence_embeddings import embed_sentences, stack_sentences
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline.tables import SENTENCE_EMBEDDINGS, TEXT_UNITS
from graphrag_pipeline_tests.support.roots import make_root

DOCUMENT = "Marley was dead. Scrooge knew it.\n\nBah! The fog came pouring in at every chink and keyhole."


def make_text_units(spans: dict[str, tuple[int, int]], document: str = DOCUMENT) -> pa.Table:
    """Return text units of one document: id -> offsets."""
    return TEXT_UNITS.from_rows(
        [
            {"id": unit_id, "document_id": "d", "position": position, "start": start, "end": end,
             "text": document[start:end], "n_tokens": 1}
            for position, (unit_id, (start, end)) in enumerate(spans.items())
        ]
    )  # fmt: skip


def embed(text_units: pa.Table) -> pa.Table:
    return embed_sentences(text_units, load_static_embeddings())


def exact(texts: list[str]) -> np.ndarray:
    return load_static_embeddings().embed(texts)


def test_sentences_cover_each_text_unit_with_offsets_in_the_document() -> None:
    rows = embed(make_text_units({"b": (0, 35), "a": (17, len(DOCUMENT))})).to_pylist()
    texts = {unit: [DOCUMENT[r["start"] : r["end"]] for r in rows if r["text_unit_id"] == unit] for unit in ("a", "b")}
    assert texts["b"] == ["Marley was dead. ", "Scrooge knew it.\n\n"]
    assert "".join(texts["a"]) == DOCUMENT[17:]
    assert [(r["text_unit_id"], r["position"]) for r in rows[:2]] == [("a", 0), ("a", 1)], "sorted by key"


def test_a_vector_points_where_the_exact_one_does() -> None:
    rows = embed(make_text_units({"a": (0, len(DOCUMENT))})).to_pylist()
    kept = np.array([np.frombuffer(row["vector"], dtype=np.int8) for row in rows], dtype=np.float64)
    vectors = exact([DOCUMENT[row["start"] : row["end"]] for row in rows])
    cosines = (kept * vectors).sum(axis=1) / np.linalg.norm(kept, axis=1)
    assert (cosines > 0.9995).all()
    assert (np.abs(kept).max(axis=1) == 127).all()


@given(st.lists(st.text(max_size=40), max_size=6), st.integers(1, 5))
def test_neither_order_nor_batches_change_a_byte(texts: list[str], batch_size: int) -> None:
    document = "".join(texts)
    ends = np.cumsum([len(text) for text in texts]).tolist()
    spans = {f"u{i}": (end - len(text), end) for i, (text, end) in enumerate(zip(texts, ends, strict=True))}
    units = make_text_units(spans, document)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sentence_embeddings, "_BATCH_SENTENCES", batch_size)
        reversed_rows = embed(units.take(pa.array(range(len(texts)), pa.int64())[::-1]))
    assert reversed_rows.equals(embed(units))
    assert reversed_rows.schema == SENTENCE_EMBEDDINGS.schema


def test_windows_are_sums_weighted_by_length_and_stay_in_their_text_unit() -> None:
    units = make_text_units({"a": (0, 33), "b": (35, 40), "empty": (0, 0), "c": (40, len(DOCUMENT))})
    arrays = stack_sentences(units, embed(units))
    assert arrays["text_unit_sentences_indptr"].tolist() == [0, 2, 3, 3, 4]
    assert arrays["sentence_starts"].tolist() == [0, 17, 0, 0], "inside the text unit"
    assert arrays["sentence_ends"].tolist() == [17, 33, 5, len(DOCUMENT) - 40]
    scaled = arrays["sentence_vectors"] * arrays["sentence_scales"][:, None]
    assert np.linalg.norm(scaled, axis=1) == pytest.approx([17, 16, 5, len(DOCUMENT) - 40])
    scales = arrays["window_scales"]
    assert np.linalg.norm((scaled[0] + scaled[1]) * scales[0]) == pytest.approx(1)
    assert scales[1] == 0, "the last of two sentences starts no window"
    assert scales[2:] == pytest.approx([1 / 5, 1 / (len(DOCUMENT) - 40)]), "an only sentence is its own window"


def test_a_text_without_known_words_has_a_zero_vector_and_no_window() -> None:
    units = make_text_units({"a": (0, 2)}, "萧炎")
    arrays = stack_sentences(units, embed(units))
    assert not arrays["sentence_vectors"].any()
    assert arrays["sentence_scales"].tolist() == arrays["window_scales"].tolist() == [0]


def test_no_text_units_make_no_sentences() -> None:
    units = TEXT_UNITS.empty()
    arrays = stack_sentences(units, embed(units))
    assert arrays["sentence_vectors"].shape == (0, 256)
    assert arrays["text_unit_sentences_indptr"].tolist() == [0]


def test_the_stage_follows_the_static_embeddings_and_no_other_model(tmp_path: Path) -> None:
    code = make_root(tmp_path).code_of(STAGES["sentence_embeddings"])
    assert code["static embeddings"] == load_static_embeddings().fingerprint
    assert "embedding model" not in code
