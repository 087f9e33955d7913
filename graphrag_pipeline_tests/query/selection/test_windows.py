"""Best windows of text units, compared with a plain computation over split sentences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.errors import NoSnapshotError, PipelineError
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.selection import windows
from graphrag_pipeline.query.selection.windows import embed_question, find_all_best_windows, find_best_windows
from graphrag_pipeline.storage.arrays import Sentences, write_arrays
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline.text.sentences import split_sentences
from graphrag_pipeline_tests.support.corpora import small_index

QUESTION = "Who carried Tiny Tim upon his shoulder?"


def best_by_hand(text: str, vector: np.ndarray) -> float:
    """Return the cosine of the best window by its definition, with exact vectors."""
    spans = split_sentences(text)
    lengths = np.array([end - start for start, end in spans])
    weighted = load_static_embeddings().embed([text[start:end] for start, end in spans]) * lengths[:, None]
    sums = weighted[:-1] + weighted[1:] if len(spans) > 1 else weighted
    return float((sums @ vector / np.linalg.norm(sums, axis=1)).max())


def test_the_best_window_is_that_of_the_definition(carol: GraphIndex) -> None:
    vector = embed_question(carol.snapshot, QUESTION)
    found = find_all_best_windows(carol.snapshot.sentences, vector)
    texts = carol.snapshot.table("text_units")["text"].to_pylist()
    assert found.scores == pytest.approx([best_by_hand(text, vector) for text in texts], abs=2e-3)


@pytest.mark.parametrize("block", [1, 100_000])
def test_a_sentence_scores_by_its_own_vector(carol: GraphIndex, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(windows, "_BLOCK_SENTENCES", block)
    sentences, vector = carol.snapshot.sentences, embed_question(carol.snapshot, QUESTION)
    text = carol.snapshot.take("text_units", [3])[0]["text"]
    exact = load_static_embeddings().embed([text[start:end] for start, end in split_sentences(text)]) @ vector
    rows = np.arange(sentences.indptr[3], sentences.indptr[4])
    assert windows.score_sentences(sentences, vector, rows) == pytest.approx(exact, abs=5e-3)  # int8


def test_a_window_is_quoted_by_its_offsets(carol: GraphIndex) -> None:
    found = find_all_best_windows(carol.snapshot.sentences, embed_question(carol.snapshot, QUESTION))
    row = int(found.scores.argmax())
    text = carol.snapshot.take("text_units", [row])[0]["text"]
    quote = text[found.starts[row] : found.ends[row]]
    assert len(split_sentences(quote)) == 2
    assert "Tiny Tim" in quote


@pytest.mark.parametrize("block", [1, 7, 100_000])
def test_some_text_units_score_as_among_all(carol: GraphIndex, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    sentences, vector = carol.snapshot.sentences, embed_question(carol.snapshot, QUESTION)
    everything = find_all_best_windows(sentences, vector)
    monkeypatch.setattr(windows, "_BLOCK_SENTENCES", block)
    rows = np.array([30, 2, 2, 41])
    some, again = find_best_windows(sentences, vector, rows), find_all_best_windows(sentences, vector)
    assert some.scores == pytest.approx(everything.scores[rows], abs=1e-6)
    assert again.scores == pytest.approx(everything.scores, abs=1e-6)
    assert some.starts.tolist() == everything.starts[rows].tolist()
    assert again.ends.tolist() == everything.ends.tolist()
    nothing = find_best_windows(sentences, vector, np.zeros(0, dtype=np.int64))
    assert len(nothing.scores) == len(nothing.starts) == 0


def test_text_units_without_sentences_score_nothing(tmp_path: Path) -> None:
    arrays = {
        "text_unit_sentences_indptr": np.array([0, 0, 1, 1]),
        "sentence_starts": np.array([0], dtype=np.int32),
        "sentence_ends": np.array([9], dtype=np.int32),
        "sentence_vectors": np.array([[0, 127]], dtype=np.int8),
        "sentence_scales": np.array([9 / 127], dtype=np.float32),
        "window_scales": np.array([1 / 9], dtype=np.float32),
    }
    sentences = Sentences(tmp_path / write_arrays(tmp_path, arrays))
    found = find_all_best_windows(sentences, np.array([0, 1], dtype=np.float32))
    assert found.scores == pytest.approx([0, 1, 0])
    assert found.ends.tolist() == [0, 9, 0]


@pytest.mark.parametrize("question", ["萧炎是谁？", "Кто такой Скрудж?", "\U0001f384", ""])
def test_a_question_that_static_embeddings_do_not_know_matches_nothing(carol: GraphIndex, question: str) -> None:
    assert not embed_question(carol.snapshot, question).any()


def test_vectors_of_another_release_and_an_index_without_any_are_refused(tmp_path: Path) -> None:
    snapshot, store = small_index.freeze(tmp_path), SnapshotStore(tmp_path)
    other = store.open(store.write_manifest(replace(snapshot.manifest, sentence_fingerprint="static:older")))
    with pytest.raises(PipelineError, match="run `graphrag-pipeline index`"):
        embed_question(other, QUESTION)
    older = store.open(store.write_manifest(replace(snapshot.manifest, sentences="", sentence_fingerprint="")))
    with pytest.raises(NoSnapshotError, match="no sentence vectors"):
        _ = older.sentences
