"""The target of an export: a new or empty folder or an earlier export, written whole or not at all."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.interchange.graphrag_import import import_graphrag
from graphrag_pipeline.interchange.index_export import (
    EXPORT_FORMATS,
    MARKER,
    SEPARATOR,
    export_snapshot,
    without_formulas,
    write_graph_csv,
    write_graphml,
    write_graphrag,
    xml_id,
    xml_text,
)
from graphrag_pipeline.pipeline.root import init_root
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline.storage.vectors.folders import connect
from graphrag_pipeline.tables import CONTRACT_TABLES, VECTOR_TABLES
from graphrag_pipeline_tests.support.corpora import small_index
from graphrag_pipeline_tests.support.corpora.exported_index import HARD_TEXT, HARD_TITLES, freeze_hard_index
from graphrag_pipeline_tests.support.paths import MICROSOFT_INDEX


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("root")
    init_root(root)
    SnapshotStore(root).point_at(freeze_hard_index(root).id)
    return root


@pytest.fixture(scope="module")
def snapshot(root):
    return SnapshotStore(root).open()


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_new_and_an_empty_folder_are_filled_and_nothing_is_left_beside(snapshot, tmp_path):
    (tmp_path / "empty").mkdir()
    for target in (tmp_path / "empty", tmp_path / "not" / "there"):
        assert export_snapshot(snapshot, target, "graphml").folder == target
        marker = json.loads((target / MARKER).read_text())
        assert marker["snapshot"] == snapshot.id and marker["files"] == ["graph.graphml"]
        assert [path.name for path in target.parent.iterdir() if path.name.startswith(".")] == []


def test_an_empty_index_is_exported(tmp_path):
    tables = {name: table.empty() for name, table in CONTRACT_TABLES.items()}
    empty = small_index.freeze(tmp_path / "root", tables)
    for format in EXPORT_FORMATS:
        report = export_snapshot(empty, tmp_path / "out", format)
        assert set(report.rows.values()) == {0}


def test_an_earlier_export_of_any_format_is_replaced(snapshot, tmp_path):
    for format in (*EXPORT_FORMATS, "csv"):
        export_snapshot(snapshot, tmp_path / "out", format)
        assert json.loads((tmp_path / "out" / MARKER).read_text())["format"] == format
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [MARKER, "nodes", "relationships"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("marker", [None, "no JSON", '{"files": 3}', '{"files": ["nodes/"]}', "[]"])
def test_a_folder_with_other_files_is_refused_and_left_alone(snapshot, tmp_path, marker):
    (tmp_path / "thesis.txt").write_text("years of work")
    if marker:
        (tmp_path / MARKER).write_text(marker)
    before = contents(tmp_path)
    with pytest.raises(PipelineError, match="no export wrote"):
        export_snapshot(snapshot, tmp_path, "csv")
    assert contents(tmp_path) == before


@pytest.mark.parametrize("place", ["lancedb/notes.txt", "lancedb/entity_description.lance/mine.bin", "lancedb/mine/"])
def test_what_was_added_below_a_folder_of_an_export_is_named_and_not_deleted(snapshot, tmp_path, place):
    out = tmp_path / "out"
    export_snapshot(snapshot, out, "graphrag")
    if place.endswith("/"):
        (out / place).mkdir()
    else:
        (out / place).write_text("years of work")
    before = contents(out)
    with pytest.raises(PipelineError, match=f"`{place}`, which no export wrote"):
        export_snapshot(snapshot, out, "graphrag")
    assert contents(out) == before and (out / place).exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_file_that_is_added_while_an_export_is_written_is_not_deleted(snapshot, tmp_path, monkeypatch):
    export_snapshot(snapshot, tmp_path / "out", "csv")
    write = EXPORT_FORMATS["csv"]

    def write_slowly(snapshot, folder):
        (tmp_path / "out" / "nodes" / "mine.csv").write_text("mine")
        return write(snapshot, folder)

    monkeypatch.setitem(EXPORT_FORMATS, "csv", write_slowly)
    with pytest.raises(PipelineError, match=r"`nodes/mine\.csv`"):
        export_snapshot(snapshot, tmp_path / "out", "csv")
    assert (tmp_path / "out" / "nodes" / "mine.csv").read_text() == "mine"


def test_a_file_and_a_folder_below_a_file_are_refused_as_targets(snapshot, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(PipelineError, match="is not a folder"):
        export_snapshot(snapshot, tmp_path / "file", "csv")
    with pytest.raises(PipelineError, match="cannot be written"):
        export_snapshot(snapshot, tmp_path / "file" / "out", "csv")


def test_a_write_that_fails_leaves_the_earlier_export(snapshot, tmp_path, monkeypatch):
    export_snapshot(snapshot, tmp_path / "out", "csv")
    before = contents(tmp_path)

    def fill_the_disk(_, folder):
        (folder / "half").write_text("")
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(EXPORT_FORMATS, "csv", fill_the_disk)
    with pytest.raises(PipelineError, match="No space left on device"):
        export_snapshot(snapshot, tmp_path / "out", "csv")
    assert contents(tmp_path) == before


def test_the_same_snapshot_gives_the_same_bytes(snapshot, tmp_path):
    for format in EXPORT_FORMATS:
        for name in ("one", "two"):
            export_snapshot(snapshot, tmp_path / name, format)
        one, two = (without_names_of_lancedb(contents(tmp_path / name)) for name in ("one", "two"))
        assert one == two


def without_names_of_lancedb(found):
    """The files of an export but those of LanceDB, which it names at random; the marker does not list these either."""
    marker = json.loads(found[Path(MARKER)])
    marker["files"] = [path for path in marker["files"] if not path.startswith("lancedb/")]
    return {path: data for path, data in found.items() if path.parts[0] != "lancedb"} | {Path(MARKER): marker}


def test_a_link_to_a_folder_stays_a_link(snapshot, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "behind")
    export_snapshot(snapshot, tmp_path / "link", "graphml")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "behind" / "graph.graphml").is_file()


def test_the_command_exports_the_published_snapshot(root, snapshot, tmp_path, call):
    finished = call("export", tmp_path / "out", "--format", "csv", "--root", root)
    assert finished.status == 0, finished.err
    assert "nodes/Entity.csv: 5" in finished.out and snapshot.id in finished.out
    (tmp_path / "out" / "mine").write_text("")
    refused = call("--root", root, "export", tmp_path / "out")
    assert refused.status == 1 and "no export wrote" in refused.err


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graphml")
    snapshot = freeze_hard_index(folder / "root")
    counts = write_graphml(snapshot, folder)
    assert counts == {"graph.graphml nodes": 5, "graph.graphml edges": 3}
    return snapshot, nx.read_graphml(folder / "graph.graphml")


def legal(text):
    return re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "\ufffd", re.sub("\r\n?", "\n", text))


def expected(row):
    """Return a row as a reader sees it: no nulls, lists as JSON, no characters forbidden in XML."""
    values = {name: value for name, value in row.items() if value is not None}
    return {
        name: legal(value) if isinstance(value, str) else json.loads(json.dumps(value))
        for name, value in values.items()
    }


def read(attributes):
    return {
        name: [legal(item) for item in json.loads(value)] if name in ("names", "types", "text_unit_ids") else value
        for name, value in attributes.items()
    }


def test_every_column_of_entities_is_an_attribute(written):
    snapshot, graph = written
    assert snapshot.n_rows("entities") == graph.number_of_nodes() > 0
    for row in snapshot.table("entities").to_pylist():
        attributes = {name: value for name, value in graph.nodes[row["id"]].items() if "community_" not in name}
        assert read(attributes) == expected(row | {"names": [legal(name) for name in row["names"]]})


def test_every_column_of_relationships_is_an_attribute(written):
    snapshot, graph = written
    assert not graph.is_directed() and snapshot.n_rows("relationships") == graph.number_of_edges() > 0
    for row in snapshot.table("relationships").to_pylist():
        attributes = dict(graph.edges[row["source_id"], row["target_id"]])
        assert read(attributes) == expected(row)


def test_entities_know_their_community_at_each_level(written):
    snapshot, graph = written
    for row in snapshot.table("communities").to_pylist():
        members = {n for n, number in graph.nodes(data=f"community_{row['level']}") if number == row["community"]}
        assert members == set(row["entity_ids"])
    assert sum("community_1" not in attributes for _, attributes in graph.nodes(data=True)) == 1  # the fog


@given(st.text(st.characters(codec=None)))
def test_any_text_comes_back_but_for_characters_forbidden_in_xml(text):
    read_back = ElementTree.fromstring(f"<data>{escape(xml_text(text))}</data>").text or ""
    assert read_back == re.sub("[\ud800-\udfff]", "\ufffd", legal(text))


@given(st.text(alphabet='a\x00\x01\x1b\x7f\ufffe\ufffd<"&'), st.text(alphabet='a\x00\x01\x1b\ufffd<"&'))
def test_any_id_is_an_attribute_of_its_own(first, second):
    read = [ElementTree.fromstring(f"<node id={quoteattr(xml_id(id))}/>").get("id") for id in (first, second)]
    assert (read[0] == read[1]) == (first == second)


@pytest.fixture(scope="module")
def written_csv(tmp_path_factory):
    folder = tmp_path_factory.mktemp("csv")
    snapshot = freeze_hard_index(folder / "root")
    (folder / "out").mkdir()
    return snapshot, folder / "out", write_graph_csv(snapshot, folder / "out")


def read_csv(path):
    """Return rows by header, all values as text; null and "" differ as in Neo4j: "" has quotes."""
    with path.open(encoding="utf-8", newline="") as file:
        header = next(csv.reader(file))
    types = pa_csv.ConvertOptions(
        column_types=dict.fromkeys(header, "string"),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    layout = pa_csv.ParseOptions(newlines_in_values=True)
    return pa_csv.read_csv(path, parse_options=layout, convert_options=types).to_pylist()


def without_formula(text):
    """Return a text as a spreadsheet may read it: with an apostrophe where it would be a formula."""
    return f"'{text}" if text and text[0] in "=+-@\t\r\n" else text


def test_no_field_is_a_formula_of_a_spreadsheet(written_csv):
    _, folder, _ = written_csv
    rows = [row for path in folder.rglob("*.csv") for row in read_csv(path)]
    assert [value for row in rows for value in row.values() if value and value[0] in "=+@\t\r"] == []
    assert any(value and value.startswith("'=CMD|") for row in rows for value in row.values())


@pytest.mark.parametrize("start", list("=+-@\t\r\n＝＋－＠"))
def test_no_text_begins_as_a_formula(start):
    [shown, plain] = without_formulas(pa.array([f"{start}CMD(1)", f"CMD{start}(1)"])).to_pylist()
    assert shown == f"'{start}CMD(1)" and plain == f"CMD{start}(1)"


def test_values_come_back_unchanged(written_csv):
    snapshot, folder, _ = written_csv
    for label, table in (("Entity", "entities"), ("Document", "documents"), ("CommunityReport", "community_reports")):
        for row, before in zip(read_csv(folder / f"nodes/{label}.csv"), snapshot.table(table).to_pylist(), strict=True):
            assert row.pop(":LABEL") == label and row.pop(f"id:ID({label})") == before["id"]
            for header, value in row.items():
                name, kind = header.split(":")
                if kind == "string":
                    assert value == without_formula(before[name])
                elif kind in ("long", "double"):
                    assert float(value) == before[name]
    assert HARD_TEXT in {row["description:string"] for row in read_csv(folder / "nodes/Entity.csv")}


def test_lists_are_arrays_whose_elements_hold_anything_but_the_separator(written_csv):
    snapshot, folder, _ = written_csv
    rows = list(zip(read_csv(folder / "nodes/Entity.csv"), snapshot.table("entities").to_pylist(), strict=True))
    assert rows
    for row, before in rows:
        names = SEPARATOR.join(name.replace(SEPARATOR, "\ufffd") for name in before["names"])
        assert row["names:string[]"] == without_formula(names)


def test_relationships_join_known_nodes(written_csv):
    _, folder, counts = written_csv
    ids = {}
    for path in (folder / "nodes").iterdir():
        ids[path.stem] = {row[f"id:ID({path.stem})"] for row in read_csv(path)}
        assert len(ids[path.stem]) == counts[f"nodes/{path.name}"]
    assert ids and list((folder / "relationships").iterdir())
    for path in (folder / "relationships").iterdir():
        rows = read_csv(path)
        assert len(rows) == counts[f"relationships/{path.name}"]
        for row in rows:
            ends = {header.split("(")[1][:-1]: id for header, id in row.items() if header.endswith(")")}
            assert all(id in ids[label] for label, id in ends.items()) and row[":TYPE"] == path.stem


def test_references_of_the_tables_are_relationships(written_csv):
    snapshot, folder, _ = written_csv

    def pairs(kind):
        return {tuple(row.values())[:2] for row in read_csv(folder / f"relationships/{kind}.csv")}

    communities = snapshot.table("communities").to_pylist()
    id_of = {row["community"]: row["id"] for row in communities}
    units = snapshot.table("text_units").to_pylist()
    assert pairs("HAS_MEMBER") == {(row["id"], entity) for row in communities for entity in row["entity_ids"]}
    assert pairs("HAS_PARENT") == {(r["id"], id_of[r["parent"]]) for r in communities if r["parent"] != -1}
    assert pairs("HAS_ENTITY") == {(unit["id"], entity) for unit in units for entity in unit["entity_ids"]}
    assert pairs("PART_OF") == {(unit["id"], unit["document_id"]) for unit in units}
    reports = snapshot.table("community_reports").to_pylist()
    assert pairs("HAS_REPORT") == {(id_of[row["community"]], row["id"]) for row in reports}
    relationships = snapshot.table("relationships").to_pylist()
    assert pairs("RELATED") == {(row["source_id"], row["target_id"]) for row in relationships}
    [claim] = snapshot.table("covariates").to_pylist()
    of_title = {row["title"]: row["id"] for row in snapshot.table("entities").to_pylist()}
    assert pairs("HAS_SUBJECT") == {(claim["id"], of_title[claim["subject_id"]])}
    assert pairs("HAS_OBJECT") == set()  # it names no entity


SAMPLE = MICROSOFT_INDEX

LOST = {
    "documents": {"path", "record"},
    "entities": {"names", "types", "n_mentions", "n_tokens"},
    "relationships": {"n_mentions", "n_tokens", "predicates"},
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
