"""Vectors by text hash: equal texts share one, known ones are not embedded again, each row finds its vector."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from graphrag_pipeline.identity import text_hash
from graphrag_pipeline.indexing import embeddings
from graphrag_pipeline.indexing.embeddings import StoredVectors, embed_texts, embedded_texts, look_up_vectors
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.tables import TEXT_UNIT_EMBEDDINGS, VECTOR_TABLES
from graphrag_pipeline_tests.support.models.hashing_embeddings import HashingEmbeddings
from graphrag_pipeline_tests.support.models.model_clients import embedder
from graphrag_pipeline_tests.support.models.model_roots import ModelIndex

NAME = "default-text_unit-text"
TEXTS = ["Marley was dead.", "Scrooge knew it.", "Marley was dead.", "", "Bob wept."]


class CountingEmbeddings(HashingEmbeddings):
    def __init__(self) -> None:
        super().__init__()
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.embedded += texts
        return super().embed(texts)


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "BATCH_TEXTS", 2)
    monkeypatch.setattr(embeddings, "_SLICE_ROWS", 2)


def test_equal_texts_are_embedded_once_and_rows_are_in_file_order() -> None:
    embedder = CountingEmbeddings()
    made, _ = embed_texts(TEXTS, TEXT_UNIT_EMBEDDINGS, embedder)
    assert sorted(embedder.embedded) == sorted(set(TEXTS))
    assert made.equals(TEXT_UNIT_EMBEDDINGS.sort(made))
    assert made["text_hash"].to_pylist() == sorted(map(text_hash, set(TEXTS)))


def test_known_vectors_are_kept_and_those_of_removed_texts_are_dropped() -> None:
    known, _ = embed_texts(["Bob wept.", "gone", "Marley was dead."], TEXT_UNIT_EMBEDDINGS, HashingEmbeddings())
    embedder = CountingEmbeddings()
    assert embed_texts(TEXTS, TEXT_UNIT_EMBEDDINGS, embedder, known)[0].equals(
        embed_texts(TEXTS, TEXT_UNIT_EMBEDDINGS, HashingEmbeddings())[0]
    )
    assert sorted(embedder.embedded) == ["", "Scrooge knew it."]


def test_no_texts_give_an_empty_table() -> None:
    made, _ = embed_texts([], TEXT_UNIT_EMBEDDINGS, HashingEmbeddings())
    assert made.equals(TEXT_UNIT_EMBEDDINGS.empty())


def test_each_row_finds_the_vector_of_its_text() -> None:
    embedder = HashingEmbeddings()
    stored = {"text_unit_embeddings": embed_texts(TEXTS, TEXT_UNIT_EMBEDDINGS, embedder)[0]}
    rows = {"text_units": pa.table({"text": TEXTS})}
    vectors = StoredVectors(rows, stored.__getitem__, embedder.dimensions)[NAME]
    assert vectors.shape == (5, embedder.dimensions)
    assert np.array_equal(vectors[np.array([4, 0, 2])], embedder.embed([TEXTS[4], TEXTS[0], TEXTS[2]]))


def test_vectors_of_a_dataset_are_read_a_batch_at_a_time_and_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embeddings, "_BATCH_VECTORS", 3)
    stored, _ = embed_texts(TEXTS, TEXT_UNIT_EMBEDDINGS, HashingEmbeddings())
    pq.write_table(stored, tmp_path / "a.parquet", row_group_size=2)
    rows, dataset = pa.table({"text": TEXTS}), ds.dataset(tmp_path, schema=TEXT_UNIT_EMBEDDINGS.schema)
    wanted = look_up_vectors(NAME, rows, stored, HashingEmbeddings().dimensions)
    found = look_up_vectors(NAME, rows, dataset, HashingEmbeddings().dimensions)
    assert np.array_equal(found[np.arange(len(TEXTS))], wanted[np.arange(len(TEXTS))])


def test_a_text_without_a_vector_is_an_error() -> None:
    stored, _ = embed_texts(TEXTS, TEXT_UNIT_EMBEDDINGS, HashingEmbeddings())
    with pytest.raises(KeyError, match="1 rows have no vector"):
        look_up_vectors(NAME, pa.table({"text": ["Bob wept.", "new"]}), stored, HashingEmbeddings().dimensions)


@pytest.mark.parametrize(
    ("vector_table", "row", "text"),
    [
        ("default-text_unit-text", {"text": "Marley was dead."}, "Marley was dead."),
        ("default-entity-description", {"title": "MARLEY", "description": "A ghost."}, "MARLEY:A ghost."),
        (
            "default-relationship-description",
            {"source": "MARLEY", "target": "SCROOGE", "description": "They were partners."},
            "They were partners.",
        ),
        (
            "default-community-full_content",
            {"full_content": "# Ghosts\n\nMarley came [Data: Entities (3)]."},
            "# Ghosts\n\nMarley came.",
        ),
    ],
)
def test_the_embedded_text_of_each_kind_of_record(vector_table: str, row: dict[str, str], text: str) -> None:
    assert embedded_texts(vector_table, pa.Table.from_pylist([row])) == [text]


def test_every_record_of_an_index_has_one_vector_of_its_text_by_the_set_model(
    indexed_by_model: ModelIndex, tmp_path: Path
) -> None:
    """The stages made the vectors; an endpoint with the same model gives them again for the text of each record."""
    snapshot = Root(indexed_by_model.root.path).snapshots.open()
    again = embedder(indexed_by_model.server.base_url, tmp_path, model="test-embedding")
    for name, (table, _) in VECTOR_TABLES.items():
        rows, stored = snapshot.table(table), snapshot.vectors(name)
        assert stored.count() == rows.num_rows > 0
        wanted = again.embed(embedded_texts(name, rows))
        np.testing.assert_allclose(stored.vectors(rows["id"].to_pylist()), wanted, atol=1e-5)
