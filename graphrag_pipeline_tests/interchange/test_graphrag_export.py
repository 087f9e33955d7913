"""Export to Microsoft GraphRAG's layout, and back through the import."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.interchange.graphrag_export import write_graphrag
from graphrag_pipeline.interchange.graphrag_import import import_graphrag
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline.storage.vectors.folders import connect
from graphrag_pipeline.tables import CONTRACT_TABLES, VECTOR_TABLES
from graphrag_pipeline_tests.support.corpora import small_index
from graphrag_pipeline_tests.support.corpora.exported_index import HARD_TITLES, freeze_hard_index
from graphrag_pipeline_tests.support.paths import MICROSOFT_INDEX

SAMPLE = MICROSOFT_INDEX

LOST = {
    "documents": {"path", "record"},
    "entities": {"names", "types", "n_mentions", "n_tokens"},
    "relationships": {"n_mentions", "n_tokens"},
    "covariates": {"n_tokens"},
    "community_reports": {"is_verbatim", "is_fallback", "n_tokens", "n_summary_tokens"},
}
"""Columns that Microsoft GraphRAG's layout lacks; the import makes them again."""


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    snapshot = freeze_hard_index(folder / "root")
    (folder / "output").mkdir()
    write_graphrag(snapshot, folder / "output")
    return snapshot, folder / "output"


def come_back(output, root):
    report = import_graphrag(output, root, load_static_embeddings(), Settings())
    return report, SnapshotStore(root).open()


def assert_equal_tables(before, after):
    for name in ("documents", "text_units", "entities", "relationships", "covariates", "communities",
                 "community_reports"):  # fmt: skip
        kept = [column for column in CONTRACT_TABLES[name].schema.names if column not in LOST.get(name, ())]
        assert after.table(name).select(kept).to_pylist() == before.table(name).select(kept).to_pylist(), name


def test_export_and_import_give_the_same_index(exported, tmp_path):
    before, output = exported
    report, after = come_back(output, tmp_path)
    assert_equal_tables(before, after)
    assert set(after.table("entities")["title"].to_pylist()) == set(HARD_TITLES.values())
    [note] = report.notes
    assert note.startswith("15 vectors of lancedb/ were kept, 0")


def test_vectors_come_back_to_the_same_records(exported, tmp_path):
    before, output = exported
    _, after = come_back(output, tmp_path)
    for name in VECTOR_TABLES:
        ids = sorted(before.vectors(name).ids())
        np.testing.assert_allclose(after.vectors(name).vectors(ids), before.vectors(name).vectors(ids), atol=1e-6)


def test_its_own_index_comes_back_after_an_import_and_an_export(tmp_path):
    _, before = come_back(SAMPLE, tmp_path / "first")
    (tmp_path / "output").mkdir()
    write_graphrag(before, tmp_path / "output")
    report, after = come_back(tmp_path / "output", tmp_path / "second")
    assert_equal_tables(before, after)
    assert not [note for note in report.notes if "vectors" not in note and "subject is no entity" not in note]


def test_tables_have_its_columns_and_types(exported):
    for path in sorted(SAMPLE.glob("*.parquet")):
        ours, its = pq.read_schema(exported[1] / path.name), pq.read_schema(path)
        assert ours.names == its.names, path.name
        for field in its:
            if field.name not in ("raw_data", "findings"):  # the sample has no raw data; fields of a finding by name
                assert ours.field(field.name).type.equals(field.type), (path.name, field.name)
    raw_data = pq.read_table(exported[1] / "documents.parquet")["raw_data"].to_pylist()
    assert raw_data.count(None) == 2 and '{"author": "O\'Brien"}' in raw_data


def test_vector_tables_have_its_names_and_fixed_size_vectors(exported):
    snapshot, output = exported
    database = connect(output / "lancedb")
    for name, table in (
        ("entity_description", "entities"),
        ("text_unit_text", "text_units"),
        ("community_full_content", "community_reports"),
        ("relationship_description", "relationships"),
    ):
        rows = database.open_table(name).to_arrow()
        assert rows.schema == pa.schema([("id", pa.string()), ("vector", pa.list_(pa.float32(), 256))])
        assert rows["id"].to_pylist() == snapshot.table(table)["id"].to_pylist()


def test_a_record_without_a_vector_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(small_index, "embedded_texts", lambda _, rows: ["", *["words"] * (len(rows) - 1)])
    snapshot = small_index.freeze(tmp_path)
    (tmp_path / "output").mkdir()
    written = write_graphrag(snapshot, tmp_path / "output")
    assert written["lancedb/entity_description"] == 4 and written["entities.parquet"] == 5
