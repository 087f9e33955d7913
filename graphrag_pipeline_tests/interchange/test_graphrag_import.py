"""Import of Microsoft GraphRAG's own index of A Christmas Carol, in the layouts of several releases."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import entity_text, normalize_title
from graphrag_pipeline.indexing.embeddings import embedded_texts
from graphrag_pipeline.interchange.graphrag_import import import_graphrag, read_graphrag_vectors
from graphrag_pipeline.publishing.checks import check_snapshot
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.selection.local_text_units import gather_offers, join_offers
from graphrag_pipeline.query.selection.reranking import Limits
from graphrag_pipeline.query.selection.strategies import select_text_units
from graphrag_pipeline.query.understanding.entity_matching import Match
from graphrag_pipeline.settings.file import load_settings
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline.storage.vectors.folders import connect
from graphrag_pipeline.tables import CONTRACT_TABLES, VECTOR_TABLES
from graphrag_pipeline_tests.support.paths import MICROSOFT_INDEX

SAMPLE = MICROSOFT_INDEX
N_OWN_COMMUNITIES = 122


def run_import(source, root, **options):
    return import_graphrag(source, root, load_static_embeddings(), Settings(), **options)


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    root = tmp_path_factory.mktemp("imported")
    report = run_import(SAMPLE, root)
    return report, SnapshotStore(root).open()


def copy_sample(folder, change=None, name="{}.parquet"):
    """The sample's tables as files in `folder`, each passed through `change(table name, rows)`."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(SAMPLE.glob("*.parquet")):
        rows = pq.read_table(path)
        rows = change(path.stem, rows) if change else rows
        if rows is not None:
            pq.write_table(rows, folder / name.format(path.stem))
    return folder


def contents(snapshot):
    return {name: snapshot.table(name) for name in CONTRACT_TABLES}


def communities_by_number(snapshot):
    return {row["community"]: row for row in snapshot.table("communities").to_pylist()}


def test_depth_first_follows_the_order_of_an_entitys_own_list(tmp_path):
    def turn_around(name, rows):
        if name != "entities":
            return rows
        lists = [ids[::-1] for ids in rows["text_unit_ids"].to_pylist()]
        return rows.set_column(rows.schema.get_field_index("text_unit_ids"), "text_unit_ids", pa.array(lists))

    source = copy_sample(tmp_path / "source", turn_around)
    run_import(source, tmp_path / "root")
    lists = dict(zip(*pq.read_table(source / "entities.parquet", columns=["id", "text_unit_ids"]), strict=True))
    lists = {entity.as_py(): ids.as_py() for entity, ids in lists.items()}
    with GraphIndex.open(tmp_path / "root") as index:
        snapshot, units = index.snapshot, index.snapshot.table("text_units")["id"].to_pylist()
        rows = snapshot.table("entities").select(["id", "text_unit_ids"]).to_pylist()
        assert all(row["text_unit_ids"] == lists[row["id"]] for row in rows if row["id"] in lists)
        row = max(range(len(rows)), key=lambda number: len(rows[number]["text_unit_ids"]))
        matches = [Match(row, 1.0, True)]
        offers = gather_offers(index, matches)
        candidates = join_offers(index, matches, offers, np.zeros(0, np.int64))[1]
        picks = select_text_units("depth_first", candidates, Limits(10**6))
    stated = dict(zip((units[unit] for unit in offers[0][0]), offers[0][1].tolist(), strict=True))
    wanted = sorted(rows[row]["text_unit_ids"], key=lambda unit: -stated[unit])
    ascending = sorted(offers[0][0].tolist())
    assert [units[ascending[pick.text_unit]] for pick in picks] == wanted
    assert len(set(stated.values())) < len(stated), "there are ties"


def test_the_sample_passes_every_check_and_is_published(imported):
    report, snapshot = imported
    assert snapshot.id == report.snapshot
    assert snapshot.manifest.origin == "import"
    assert snapshot.manifest.notes == report.notes
    assert all(result.passed for result in check_snapshot(snapshot))


def test_561_entities_are_placed_and_43_doubled_pairs_folded(imported):
    report, snapshot = imported
    assert report.rows["entities"] == 561
    assert report.rows["relationships"] == 978 - 43
    assert "32 relationship endpoints that no entity row names were added as entities of type UNKNOWN" in report.notes
    assert "43 relationships that repeat an unordered pair were folded into one" in report.notes
    assert "25 entities in no community were placed in communities of size 1 with verbatim reports" in report.notes
    placed = {e for row in communities_by_number(snapshot).values() for e in row["entity_ids"]}
    assert placed == set(snapshot.table("entities")["id"].to_pylist())


def test_every_level_is_a_partition_and_parents_contain_children(imported):
    communities = communities_by_number(imported[1])
    for level in range(4):
        members = [e for row in communities.values() if row["level"] == level for e in row["entity_ids"]]
        assert len(members) == len(set(members))
        if level == 0:
            assert len(members) == 561
    for row in communities.values():
        inside = [e for child in row["children"] for e in communities[child]["entity_ids"]]
        assert not row["children"] or sorted(inside) == sorted(row["entity_ids"])


def test_members_of_its_own_communities_are_kept(imported):
    before = {
        row["community"]: set(row["entity_ids"]) for row in pq.read_table(SAMPLE / "communities.parquet").to_pylist()
    }
    communities = communities_by_number(imported[1])
    assert set(range(N_OWN_COMMUNITIES)) == set(before)
    assert all(before[number] <= set(communities[number]["entity_ids"]) for number in before)
    n_added = sum(len(set(communities[number]["entity_ids"]) - before[number]) for number in before)
    of_type = dict(zip(*imported[1].table("entities").select(["id", "type"]).to_pydict().values(), strict=True))
    added = {e for number in before for e in set(communities[number]["entity_ids"]) - before[number]}
    assert {of_type[e] for e in added} == {"UNKNOWN"} and len(added) == 31 < n_added


def test_text_units_are_at_their_offsets(imported):
    snapshot = imported[1]
    text = snapshot.table("documents")["text"][0].as_py()
    assert snapshot.n_rows("text_units") > 0
    for unit in snapshot.table("text_units").to_pylist():
        assert text[unit["start"] : unit["end"]] == unit["text"]
        assert not unit["text"].startswith("title:")


def test_numbers_of_the_source_are_kept(imported):
    for name in ("entities", "relationships", "covariates", "text_units", "documents"):
        before = dict(
            zip(
                *pq.read_table(SAMPLE / f"{name}.parquet", columns=["id", "human_readable_id"]).to_pydict().values(),
                strict=True,
            )
        )
        rows = imported[1].table(name).select(["id", "human_readable_id"]).to_pydict()
        after = dict(zip(rows["id"], rows["human_readable_id"], strict=True))
        assert all(after[i] == before[i] for i in set(before) & set(after))
    following = {r["kind"]: r["number"] for r in imported[1].table("record_numbers").to_pylist() if r["id"] == ""}
    assert following == {
        "document": 1,
        "text_unit": 42,
        "entity": 561,
        "relationship": 978,
        "covariate": 406,
        "community": 148,
    }


def test_shuffled_rows_give_the_same_snapshot(imported, tmp_path):
    chance = np.random.default_rng(3)
    source = copy_sample(tmp_path / "source", lambda _, rows: rows.take(pa.array(chance.permutation(len(rows)))))
    assert run_import(source, tmp_path / "root").snapshot == imported[0].snapshot


def test_importing_again_gives_the_same_snapshot(imported, tmp_path):
    assert [run_import(SAMPLE, tmp_path).snapshot for _ in range(2)] == [imported[0].snapshot] * 2


def _to_release_2(table, rows):
    if table == "text_units":
        ids = pa.array([[i] for i in rows["document_id"].to_pylist()])
        return rows.drop_columns(["n_tokens", "document_id"]).append_column("document_ids", ids)
    if table == "documents":
        return rows.drop_columns("raw_data").append_column("metadata", pa.array([{"title": "x", "author": "Dickens"}]))
    if table == "entities":
        return rows.append_column("x", pa.array([0.0] * len(rows))).append_column("y", pa.array([0.0] * len(rows)))
    return None if table == "covariates" else rows


def test_release_2_layout_and_names(imported, tmp_path):
    copy_sample(tmp_path / "source" / "output", _to_release_2, "create_final_{}.parquet")
    report = run_import(tmp_path / "source", tmp_path / "root")
    snapshot = SnapshotStore(tmp_path / "root").open()
    assert report.rows["covariates"] == 0
    assert snapshot.table("documents")["metadata"].to_pylist() == ['{"author": "Dickens", "title": "x"}']
    for name in ("entities", "relationships", "communities", "community_reports"):
        assert snapshot.table(name).equals(imported[1].table(name))
    columns = ["id", "n_tokens", "document_id", "start", "end"]
    assert snapshot.table("text_units").select(columns).equals(imported[1].table("text_units").select(columns))


def _lower_titles(table, rows):
    columns = {"entities": ["title"], "relationships": ["source", "target"]}.get(table, [])
    for column in columns:
        rows = rows.set_column(rows.schema.get_field_index(column), column, pc.utf8_lower(rows[column]))
    if table == "entities":  # one entity twice, in both spellings
        twin = rows.slice(0, 1).to_pylist()[0] | {"id": "twin", "human_readable_id": 9999, "title": "PROJECT GUTENBERG"}
        rows = pa.concat_tables([rows, pa.Table.from_pylist([twin], schema=rows.schema)])
    return rows


def test_lower_case_titles_are_normalised_and_merged(imported, tmp_path):
    report = run_import(copy_sample(tmp_path / "source", _lower_titles), tmp_path / "root")
    snapshot = SnapshotStore(tmp_path / "root").open()
    titles = snapshot.table("entities")["title"].to_pylist()
    assert titles == imported[1].table("entities")["title"].to_pylist()
    assert all(normalize_title(title) == title for title in titles)
    assert "1 entity with the title of another was folded into it" in report.notes
    assert snapshot.table("entities")["names"][0].as_py() == ["PROJECT GUTENBERG", "project gutenberg"]


@pytest.mark.parametrize(
    ("table", "change", "message"),
    [
        ("communities", lambda rows: rows.drop_columns("entity_ids"), "column 'entity_ids' is missing"),
        ("text_units", lambda rows: rows.drop_columns("document_id"), "'document_ids' or 'document_id'"),
        ("relationships", lambda rows: None, r"neither relationships\.parquet nor"),
        ("communities", lambda rows: rows.set_column(3, "level", pa.array(["deep"] * 122)), "'level', row 0: 'deep'"),
        ("communities", lambda rows: rows.set_column(2, "community", pa.nulls(122, pa.int64())), "row 0 is empty"),
    ],
)
def test_an_unreadable_source_is_named(tmp_path, table, change, message):
    source = copy_sample(tmp_path / "source", lambda name, rows: change(rows) if name == table else rows)
    with pytest.raises(PipelineError, match=message):
        run_import(source, tmp_path / "root")
    assert SnapshotStore(tmp_path / "root").current() is None


def test_a_file_that_is_not_parquet_and_a_folder_without_an_index(tmp_path):
    with pytest.raises(PipelineError, match="have no GraphRAG index"):
        run_import(tmp_path, tmp_path / "root")
    source = copy_sample(tmp_path / "source")
    (source / "entities.parquet").write_bytes(b"PAR0")
    with pytest.raises(PipelineError, match="cannot be read as Parquet"):
        run_import(source, tmp_path / "root")


def test_a_root_with_an_index_is_refused(tmp_path):
    (tmp_path / "heads" / "documents").mkdir(parents=True)
    with pytest.raises(PipelineError, match="another directory with `--root`"):
        run_import(SAMPLE, tmp_path)


def test_a_root_gets_settings_and_keeps_those_it_has(tmp_path):
    run_import(SAMPLE, tmp_path)
    assert load_settings(tmp_path, {}) == Settings()
    (tmp_path / "settings.yaml").write_text("text_units: {size: 99, overlap: 3}\n")
    run_import(SAMPLE, tmp_path)
    assert load_settings(tmp_path, {}).text_units.size == 99


# ------------------------------------------------------------------------------------------------------------- vectors


def _write_lancedb(folder, name, ids, matrix):
    flat = pa.array(np.asarray(matrix, dtype=np.float32).ravel())
    rows = pa.table({"id": ids, "vector": pa.FixedSizeListArray.from_arrays(flat, matrix.shape[1])})
    connect(folder / "lancedb").create_table(name, data=rows)


def _entity_rows():
    return pq.read_table(SAMPLE / "entities.parquet").to_pylist()


@pytest.mark.parametrize("key", ["id", "title"])
def test_vectors_that_the_embedder_reproduces_are_kept(tmp_path, key):
    source, embedder = copy_sample(tmp_path / "source"), load_static_embeddings()
    entities = _entity_rows()
    own = embedder.embed([entity_text(row["title"], row["description"]) for row in entities])
    noise = np.random.default_rng(1).normal(size=own.shape).astype(np.float32) * 0.004
    _write_lancedb(source, "entity_description", [row[key] for row in entities], own + noise)
    report = run_import(source, tmp_path / "root")
    assert any(note.startswith("528 vectors of lancedb/ were kept") for note in report.notes)  # one title was changed
    snapshot = SnapshotStore(tmp_path / "root").open()
    assert snapshot.manifest.embedding_fingerprint == embedder.fingerprint
    kept = snapshot.vectors("default-entity-description").vectors([row["id"] for row in entities[:5]])
    expected = (own + noise)[:5] / np.linalg.norm((own + noise)[:5], axis=1, keepdims=True)
    np.testing.assert_allclose(kept, expected, atol=1e-6)


def test_vectors_of_another_model_are_computed_again_and_reported(imported, tmp_path):
    source = copy_sample(tmp_path / "source")
    entities = _entity_rows()
    matrix = np.random.default_rng(1).normal(size=(len(entities), 8))
    _write_lancedb(source, "default-entity-description", [row["id"] for row in entities], matrix)
    report = run_import(source, tmp_path / "root")
    assert any("8-dimensional vectors of another model" in note for note in report.notes)
    made, before = SnapshotStore(tmp_path / "root").open(), imported[1]
    assert {n: f.content for n, f in made.manifest.vectors.items()} == {
        n: f.content for n, f in before.manifest.vectors.items()
    }


def test_vectors_belong_to_the_embedded_texts(imported):
    snapshot, embedder = imported[1], load_static_embeddings()
    for name, (table, _) in VECTOR_TABLES.items():
        rows = snapshot.table(table).slice(0, 3)
        np.testing.assert_allclose(
            snapshot.vectors(name).vectors(rows["id"].to_pylist()),
            embedder.embed(embedded_texts(name, rows)),
            atol=1e-6,
        )


NAME = "default-entity-description"
OF_ANY_LENGTH = pa.list_(pa.float64())


def source_with(folder: Path, ids: list[str | None], vectors: list, type_: pa.DataType = OF_ANY_LENGTH) -> Path:
    """A folder that counts as an output folder, with one vector table."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "entities.parquet").write_bytes(b"")
    rows = pa.table({"id": pa.array(ids, pa.string()), "numbers": pa.array(vectors, type_)})
    table = connect(folder / "lancedb").create_table(NAME, data=rows)
    table.alter_columns({"path": "numbers", "rename": "vector"})  # a column of this name is checked when it is written
    return folder


@pytest.mark.parametrize(
    ("ids", "vectors", "message"),
    [
        (["a", "b"], [[1.0, 0.0], [float("nan"), 1.0]], r"row 1 \(id 'b'\), number 0 is nan"),
        (["a", "b"], [[1.0, 0.0], [1.0, float("-inf")]], r"row 1 \(id 'b'\), number 1 is -inf"),
        (["a", "b"], [[1e39, 0.0], [1.0, 0.0]], r"row 0 \(id 'a'\), number 0 is inf"),
        (["a", "b"], [[1.0, None], [1.0, 0.0]], r"row 0 \(id 'a'\), number 1 is nan"),
        (["a", "b"], [[1.0, 0.0, 0.0], [1.0]], r"row 1 \(id 'b'\) has 1 numbers, but row 0 has 3"),
        (["a", None, "a"], [None, [1.0], [1.0]], "column 'id', row 1 is empty"),
        (["a", "b", "a"], [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], "row 2 has the id 'a' of row 0 and another vector"),
    ],
)
def test_a_wrong_vector_is_refused_with_file_row_and_value(
    tmp_path: Path, ids: list, vectors: list, message: str
) -> None:
    with pytest.raises(PipelineError, match=message) as refused:
        read_graphrag_vectors(source_with(tmp_path, ids, vectors))
    assert f"{NAME}.lance" in str(refused.value) and "remove it to make the vectors here" in str(refused.value)


def test_an_empty_and_a_missing_vector_are_left_out_and_equal_texts_have_one(tmp_path: Path) -> None:
    ids, vectors = ["a", "b", "a", "c"], [[1.0, 0.0], None, [0.999, 0.001], [0.0, 0.0]]
    found = read_graphrag_vectors(source_with(tmp_path, ids, vectors, pa.list_(pa.float32(), 2)))[NAME]
    assert found.ids == ["a", "c"]
    np.testing.assert_array_equal(found.matrix, np.array([[1, 0], [0, 0]], np.float32))
