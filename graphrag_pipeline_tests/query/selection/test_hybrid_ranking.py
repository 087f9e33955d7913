"""Text units ranked by words and vectors: words decide, in any script."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.errors import NoSnapshotError, PipelineError
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.selection import hybrid_ranking as windows
from graphrag_pipeline.query.selection.hybrid_ranking import (
    N_BY_VECTOR,
    REPEAT,
    embed_question,
    fuse,
    rank_text_units,
    score_best_windows,
    searched_words,
    weigh_repeats,
)
from graphrag_pipeline.storage.arrays import Sentences, write_arrays
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline.text.sentences import split_sentences
from graphrag_pipeline_tests.support.corpora import small_index
from graphrag_pipeline_tests.support.corpora.retrieval_questions import ask_for_documents, write_articles_apart
from graphrag_pipeline_tests.support.roots import open_built
from graphrag_pipeline_tests.support.thoroughness import repetitions

QUESTION = "Who carried Tiny Tim upon his shoulder?"


def best_by_hand(text: str, vector: np.ndarray) -> float:
    """Return the cosine of the best window by its definition, with exact vectors."""
    spans = split_sentences(text)
    lengths = np.array([end - start for start, end in spans])
    weighted = load_static_embeddings().embed([text[start:end] for start, end in spans]) * lengths[:, None]
    sums = weighted[:-1] + weighted[1:] if len(spans) > 1 else weighted
    return float((sums @ vector / np.linalg.norm(sums, axis=1)).max())


def score_all(sentences: Sentences, vector: np.ndarray) -> np.ndarray:
    return score_best_windows(sentences, vector, np.arange(len(sentences.indptr) - 1))


def test_the_best_window_is_that_of_the_definition(carol: GraphIndex) -> None:
    vector = embed_question(carol.snapshot, QUESTION)
    found = score_all(carol.snapshot.sentences, vector)
    texts = carol.snapshot.table("text_units")["text"].to_pylist()
    assert found == pytest.approx([best_by_hand(text, vector) for text in texts], abs=2e-3)


@pytest.mark.parametrize("block", [1, 100_000])
def test_a_sentence_scores_by_its_own_vector(carol: GraphIndex, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(windows, "_BLOCK_SENTENCES", block)
    sentences, vector = carol.snapshot.sentences, embed_question(carol.snapshot, QUESTION)
    text = carol.snapshot.take("text_units", [3])[0]["text"]
    exact = load_static_embeddings().embed([text[start:end] for start, end in split_sentences(text)]) @ vector
    rows = np.arange(sentences.indptr[3], sentences.indptr[4])
    assert windows.score_sentences(sentences, vector, rows) == pytest.approx(exact, abs=5e-3)  # int8


@pytest.mark.parametrize("block", [1, 7, 100_000])
def test_some_text_units_score_as_among_all(carol: GraphIndex, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    sentences, vector = carol.snapshot.sentences, embed_question(carol.snapshot, QUESTION)
    everything = score_all(sentences, vector)
    monkeypatch.setattr(windows, "_BLOCK_SENTENCES", block)
    rows = np.array([30, 2, 2, 41])
    some, again = score_best_windows(sentences, vector, rows), score_all(sentences, vector)
    assert some == pytest.approx(everything[rows], abs=1e-6)
    assert again == pytest.approx(everything, abs=1e-6)
    assert len(score_best_windows(sentences, vector, np.zeros(0, dtype=np.int64))) == 0


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
    assert score_all(sentences, np.array([0, 1], dtype=np.float32)) == pytest.approx([0, 1, 0])


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


def test_words_decide_before_vectors() -> None:
    by_words, by_window = np.array([9.0, 2.0, 0.0]), np.array([0.1, 0.2, 0.3])
    assert fuse(by_words, by_window).argmax() == 0
    assert fuse(np.zeros(3), by_window).argmax() == 2


def test_a_further_text_unit_of_a_document_counts_less_than_the_first_of_another() -> None:
    scores = weigh_repeats(np.array([1.0, 0.9, 0.88, 0.7]), np.array([4, 4, 1, 4]))
    assert scores.tolist() == pytest.approx([1.0, 0.9 * REPEAT, 0.88, 0.7 * REPEAT])
    assert scores[1] < scores[2]
    assert weigh_repeats(np.array([1.0, 0.9]), np.array([-1, -1])).tolist() == [1.0, 0.9]  # an import without documents


def test_a_further_text_unit_that_matches_clearly_better_keeps_its_place() -> None:
    scores = weigh_repeats(np.array([1.0, 0.9, *[0.7] * 50]), np.arange(52).clip(1) - 1)
    assert scores.argsort()[::-1][:2].tolist() == [0, 1]


def test_a_longer_list_begins_with_the_shorter_one(tmp_path) -> None:
    articles = write_articles_apart(repetitions(N_BY_VECTOR + 10, thorough=2 * N_BY_VECTOR))
    n = repetitions(400, thorough=800)
    with open_built(tmp_path / "root", {f"{i}.txt": one["text"][:n] for i, one in enumerate(articles)}) as index:
        for asked in ask_for_documents(articles, repetitions(10, thorough=20), 1):
            longest = rank_text_units(index, asked.question, 4 * N_BY_VECTOR)
            assert longest
            assert [score for _, score in longest] == sorted((score for _, score in longest), reverse=True)
            for k in (1, 5, N_BY_VECTOR + 5):
                assert rank_text_units(index, asked.question, k) == longest[:k]


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Where did the composer of Billy Elliot die?", "composer Billy Elliot die"),
        ("What is Scrooge's nephew doing?", "Scrooge's nephew"),
        ("What is the name of the play on the list?", "name play list"),
        ("Wo spielt das Stück?", "spielt Stück"),
        ("Who are The Who?", "Who are The Who?"),
        ("萧炎是谁？", "萧炎是谁 蕭炎是誰"),
    ],
)
def test_stop_words_are_not_searched_for_unless_nothing_else_is_left(question: str, words: str) -> None:
    assert searched_words(question) == words
