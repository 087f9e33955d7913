"""CSV with the headers that graph databases import."""

import csv

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from graphrag_pipeline.interchange.graph_csv import SEPARATOR, without_formulas, write_graph_csv
from graphrag_pipeline_tests.support.corpora.exported_index import HARD_TEXT, freeze_hard_index


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("csv")
    snapshot = freeze_hard_index(folder / "root")
    (folder / "out").mkdir()
    return snapshot, folder / "out", write_graph_csv(snapshot, folder / "out")


def read(path):
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


def test_no_field_is_a_formula_of_a_spreadsheet(written):
    _, folder, _ = written
    rows = [row for path in folder.rglob("*.csv") for row in read(path)]
    assert [value for row in rows for value in row.values() if value and value[0] in "=+@\t\r"] == []
    assert any(value and value.startswith("'=CMD|") for row in rows for value in row.values())


@pytest.mark.parametrize("start", list("=+-@\t\r\n＝＋－＠"))
def test_no_text_begins_as_a_formula(start):
    [shown, plain] = without_formulas(pa.array([f"{start}CMD(1)", f"CMD{start}(1)"])).to_pylist()
    assert shown == f"'{start}CMD(1)" and plain == f"CMD{start}(1)"


def test_values_come_back_unchanged(written):
    snapshot, folder, _ = written
    for label, table in (("Entity", "entities"), ("Document", "documents"), ("CommunityReport", "community_reports")):
        for row, before in zip(read(folder / f"nodes/{label}.csv"), snapshot.table(table).to_pylist(), strict=True):
            assert row.pop(":LABEL") == label and row.pop(f"id:ID({label})") == before["id"]
            for header, value in row.items():
                name, kind = header.split(":")
                if kind == "string":
                    assert value == without_formula(before[name])
                elif kind in ("long", "double"):
                    assert float(value) == before[name]
    assert HARD_TEXT in {row["description:string"] for row in read(folder / "nodes/Entity.csv")}


def test_lists_are_arrays_whose_elements_hold_anything_but_the_separator(written):
    snapshot, folder, _ = written
    rows = list(zip(read(folder / "nodes/Entity.csv"), snapshot.table("entities").to_pylist(), strict=True))
    assert rows
    for row, before in rows:
        names = SEPARATOR.join(name.replace(SEPARATOR, "\ufffd") for name in before["names"])
        assert row["names:string[]"] == without_formula(names)


def test_null_is_an_empty_field_and_an_empty_text_is_quoted(written):
    [row] = read(written[1] / "nodes/Covariate.csv")
    assert row["source_text:string"] == "" and row["start_date:string"] is None


def test_relationships_join_known_nodes(written):
    _, folder, counts = written
    ids = {}
    for path in (folder / "nodes").iterdir():
        ids[path.stem] = {row[f"id:ID({path.stem})"] for row in read(path)}
        assert len(ids[path.stem]) == counts[f"nodes/{path.name}"]
    assert ids and list((folder / "relationships").iterdir())
    for path in (folder / "relationships").iterdir():
        rows = read(path)
        assert len(rows) == counts[f"relationships/{path.name}"]
        for row in rows:
            ends = {header.split("(")[1][:-1]: id for header, id in row.items() if header.endswith(")")}
            assert all(id in ids[label] for label, id in ends.items()) and row[":TYPE"] == path.stem


def test_references_of_the_tables_are_relationships(written):
    snapshot, folder, _ = written

    def pairs(kind):
        return {tuple(row.values())[:2] for row in read(folder / f"relationships/{kind}.csv")}

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
