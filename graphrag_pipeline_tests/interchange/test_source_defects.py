"""Defects of an imported index that leave open what was meant are refused, with file, row, value and remedy."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.interchange.graphrag_files import read_graphrag_tables
from graphrag_pipeline.interchange.graphrag_import import import_graphrag
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.storage.snapshot_store import SnapshotStore


def whole_index() -> dict[str, list[dict]]:
    """Rows of a very small index without defects."""
    texts = {f"t{i}": text for i, text in enumerate(("Ann met Bob.", "Bob met Eve."))}
    return {
        "documents": [{"id": "d0", "title": "one", "text": " ".join(texts.values()), "metadata": {"score": 1.0}}],
        "text_units": [{"id": i, "text": text, "document_ids": ["d0"], "n_tokens": 4} for i, text in texts.items()],
        "entities": [
            {"id": f"e{i}", "title": title, "description": f"{title} of the story", "text_unit_ids": [f"t{i // 2}"]}
            for i, title in enumerate(("ANN", "BOB", "EVE"))
        ],
        "relationships": [
            {"id": f"r{i}", "source": source, "target": target, "description": "They met.", "weight": 1.0,
             "text_unit_ids": [f"t{i}"]}
            for i, (source, target) in enumerate((("ANN", "BOB"), ("BOB", "EVE")))
        ],
        "communities": [
            {"id": "c0", "community": 0, "level": 0, "parent": -1, "entity_ids": ["e0", "e1", "e2"]},
            {"id": "c1", "community": 1, "level": 1, "parent": 0, "entity_ids": ["e0", "e1"]},
            {"id": "c2", "community": 2, "level": 1, "parent": 0, "entity_ids": ["e2"]},
        ],
        "community_reports": [
            {"id": f"p{i}", "community": i, "title": f"Report {i}", "summary": "They met.", "full_content": "They met.",
             "rank": 5.0}
            for i in range(3)
        ],
    }  # fmt: skip


def write(folder: Path, tables: dict[str, list[dict]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")
    return folder


def changed(table: str, row: int, **values: object) -> dict[str, list[dict]]:
    tables = whole_index()
    tables[table][row] |= values
    return tables


def test_the_index_without_defects_is_read(tmp_path: Path) -> None:
    assert len(read_graphrag_tables(write(tmp_path, whole_index()))["communities"]) == 3


@pytest.mark.parametrize(
    ("table", "row", "values", "message"),
    [
        ("entities", 2, {"id": "e0"}, "entities.parquet: column 'id', row 2: 'e0' is also in row 0, which differs"),
        ("relationships", 1, {"id": "r0"}, "column 'id', row 1: 'r0' is also in row 0"),
        ("text_units", 1, {"id": "t0"}, "column 'id', row 1: 't0' is also in row 0"),
        ("communities", 2, {"id": "c1"}, "column 'id', row 2: 'c1' is also in row 1"),
        ("communities", 2, {"community": 1}, "column 'community', row 2: 1 is also in row 1"),
        ("community_reports", 2, {"id": "p0"}, "column 'id', row 2: 'p0' is also in row 0"),
        ("community_reports", 2, {"community": 0}, "column 'community', row 2: 0 is also in row 0"),
        ("communities", 1, {"parent": 1}, r"row 1: community 1 is inside itself (1 -> 1)"),
        ("relationships", 1, {"weight": math.nan}, "column 'weight', row 1: 'nan' is not a valid value"),
        ("relationships", 0, {"weight": -math.inf}, "column 'weight', row 0: '-inf' is not a valid value"),
        ("community_reports", 2, {"rank": math.nan}, "column 'rank', row 2: 'nan' is not a valid value"),
        ("text_units", 1, {"n_tokens": math.nan}, "column 'n_tokens', row 1: 'nan' is not a valid value"),
        ("communities", 1, {"level": math.inf}, "column 'level', row 1: 'inf' is not a valid value"),
        ("entities", 0, {"human_readable_id": 2**60}, "column 'human_readable_id', row 0: '11529"),
        ("documents", 0, {"metadata": {"score": math.inf}}, "column 'metadata', row 0"),
    ],
)  # fmt: skip
def test_a_defect_is_refused_with_file_row_and_value(
    tmp_path: Path, table: str, row: int, values: dict[str, object], message: str
) -> None:
    source = write(tmp_path / "output", changed(table, row, **values))
    with pytest.raises(PipelineError) as refused:
        read_graphrag_tables(source)
    assert message in str(refused.value) and f"{table}.parquet" in str(refused.value)
    assert "export the index again" in str(refused.value)


def test_communities_inside_each_other_are_refused_with_their_circle(tmp_path: Path) -> None:
    tables = changed("communities", 0, parent=2)
    tables["communities"][2]["parent"] = 1
    with pytest.raises(
        PipelineError, match=r"column 'parent', row 0: community 0 is inside itself \(0 -> 2 -> 1 -> 0\)"
    ):
        read_graphrag_tables(write(tmp_path, tables))


def test_no_defect_is_published(tmp_path: Path) -> None:
    source = write(tmp_path / "output", changed("entities", 2, id="e0"))
    with pytest.raises(PipelineError, match="nothing was imported"):
        import_graphrag(source, tmp_path / "root", load_static_embeddings(), Settings())
    assert SnapshotStore(tmp_path / "root").current() is None


@pytest.mark.parametrize("table", ["documents", "text_units"])
def test_equal_texts_have_one_id_in_microsoft_graphrag(tmp_path: Path, table: str) -> None:
    tables = whole_index()
    tables[table].append(tables[table][0] | {"human_readable_id": 9})
    assert len(read_graphrag_tables(write(tmp_path, tables))[table]) == len(tables[table])


def test_what_repeats_word_for_word_is_no_defect(tmp_path: Path) -> None:
    tables = {name: [*rows, rows[0]] for name, rows in whole_index().items()}
    report = import_graphrag(write(tmp_path / "s", tables), tmp_path / "root", load_static_embeddings(), Settings())
    assert report.rows["entities"] == 3 and "1 entity repeated word for word was kept once" in report.notes


def test_a_missing_cell_of_metadata_is_null(tmp_path: Path) -> None:
    rows = read_graphrag_tables(write(tmp_path, changed("documents", 0, metadata={"score": math.nan})))
    assert rows["documents"][0]["metadata"] == {"score": None}


def test_a_sum_of_weights_beyond_all_numbers_is_not_published(tmp_path: Path) -> None:
    tables = changed("relationships", 1, source="BOB", target="ANN", weight=1.7e308)
    tables["relationships"][0]["weight"] = 1.7e308
    with pytest.raises(PipelineError, match=r"relationships.weight: 1 values are not finite"):
        import_graphrag(write(tmp_path / "s", tables), tmp_path / "root", load_static_embeddings(), Settings())
    assert SnapshotStore(tmp_path / "root").current() is None


def test_a_year_that_python_cannot_hold_is_named(tmp_path: Path) -> None:
    source = write(tmp_path, whole_index())
    rows = pq.read_table(source / "documents.parquet")
    date = pa.array([253402300800000000 + 10**15], pa.timestamp("us"))
    pq.write_table(rows.append_column("creation_date", date), source / "documents.parquet")
    with pytest.raises(PipelineError, match=r"documents.parquet: column 'creation_date' has a value"):
        read_graphrag_tables(source)
