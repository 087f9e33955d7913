"""Each figure on a literal snapshot, and the laws of duplicates by name."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.evaluation.index_quality.figures import (
    FIGURES,
    QualityFigure,
    find_duplicates_by_name,
    measure_citations,
    measure_duplicates,
    measure_graph,
    measure_placeholders,
)
from graphrag_pipeline.models.prompt_echoes import PromptEchoes
from graphrag_pipeline.models.prompts import default_prompts
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.settings.section import THRESHOLDS, QualitySettings
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline_tests.support.corpora.small_index import contract_tables, freeze

EXAMPLE_TITLE = re.findall(r'"title": "([^"]+)"', default_prompts()["community_report.txt"])[0]
EXAMPLE_NAME = re.findall(
    r'^\("entity"<\|>([A-Z][a-z]+ [A-Z][a-z]+)<', default_prompts()["extract_graph.txt"], re.MULTILINE
)[0]
"""What the default prompts show: the title of a report, the name of an entity."""


def replace_values(table: pa.Table, column: str, values: dict[int, object]) -> pa.Table:
    """The table with other values in some rows of a column."""
    new = [values.get(row, value) for row, value in enumerate(table[column].to_pylist())]
    at = table.schema.get_field_index(column)
    return table.set_column(at, table.schema.field(at), pa.array(new, table.schema.field(at).type))


def freeze_changed(folder: Path, name: str, column: str, values: dict[int, object]) -> Snapshot:
    tables = contract_tables()
    tables[name] = replace_values(tables[name], column, values)
    return freeze(folder, tables)


def by_name(figures) -> dict[str, QualityFigure]:
    return {figure.name: figure for figure in figures}


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return freeze(tmp_path_factory.mktemp("small"))


def test_every_figure_has_a_threshold_and_every_threshold_a_figure() -> None:
    assert {kind.option for kind in FIGURES.values()} == THRESHOLDS.keys()


def test_the_graph_of_the_small_index_is_counted(snapshot: Snapshot) -> None:
    found = by_name(measure_graph(snapshot, has_claims=True))
    assert found["text_unit_coverage"].value == 1
    assert (found["singletons"].value, found["singletons"].examples) == (0.2, ("FOG",))
    assert found["largest_component"].value == 0.8 and "components: 2" in found["largest_component"].note
    assert found["claims_per_text_unit"].value == pytest.approx(1 / 3)
    assert found["type_entropy"].value == 0 and found["type_entropy"].is_low(QualitySettings())
    assert found["undescribed_entities"].value == 0


def test_four_equally_frequent_types_have_two_bits(tmp_path: Path) -> None:
    tables = contract_tables()
    tables["entities"] = replace_values(tables["entities"], "type", {0: "A", 1: "B", 2: "C", 3: "D", 4: "D"})
    found = by_name(measure_graph(freeze(tmp_path, tables), has_claims=False))
    assert found["type_entropy"].value == pytest.approx(1.9219, abs=1e-4), "shares 0.2, 0.2, 0.2, 0.4"


def test_blank_descriptions_and_text_units_without_entities_lower_their_figures(tmp_path: Path) -> None:
    tables = contract_tables()
    tables["entities"] = replace_values(tables["entities"], "description", {0: "", 1: " \n"})
    tables["text_units"] = replace_values(tables["text_units"], "entity_ids", {2: []})
    found = by_name(measure_graph(freeze(tmp_path, tables), has_claims=False))
    assert found["undescribed_entities"].value == 0.4 and len(found["undescribed_entities"].examples) == 2
    coverage = found["text_unit_coverage"]
    assert coverage.value == pytest.approx(2 / 3) and len(coverage.examples) == 1 and coverage.is_low(QualitySettings())


def test_an_index_without_entities_has_no_shares(tmp_path: Path) -> None:
    tables = contract_tables()
    empty = {
        name: tables[name].slice(0, 0) for name in ("entities", "relationships", "communities", "community_reports")
    }
    tables |= empty | {"covariates": tables["covariates"].slice(0, 0)}
    tables["text_units"] = replace_values(tables["text_units"], "entity_ids", {0: [], 1: [], 2: []})
    opened = freeze(tmp_path, tables)
    found = by_name([*measure_graph(opened, False), *measure_duplicates(opened),
                     *measure_citations(opened)])  # fmt: skip
    assert found.pop("text_unit_coverage").value == 0
    assert {figure.value for figure in found.values()} == {None}
    assert all(figure.note and not figure.is_low(QualitySettings()) for figure in found.values())


# ----------------------------------------------------------------------------------------------------------- duplicates


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("THE BBC", "B.B.C."),
        ("E-MAIL", "EMAIL"),
        ("SCROOGE, EBENEZER", "EBENEZER SCROOGE"),
        ("SCROOGE'S", "SCROOGE"),
        ("Żagań", "ZAGAN"),
    ],
)
def test_names_that_differ_only_in_spelling_are_one_group(first: str, second: str) -> None:
    assert find_duplicates_by_name([first, "OTHER", second]) == [sorted((first, second))]


@given(st.lists(st.text("AB .-'", max_size=5), max_size=8, unique=True))
def test_groups_do_not_depend_on_the_order_of_names(names: list[str]) -> None:
    groups = find_duplicates_by_name(names)
    assert groups == find_duplicates_by_name(sorted(names))
    assert all(len(set(group)) == len(group) > 1 for group in groups)


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """SCROOGE and MARLEY are described almost alike, BOB CRATCHIT and TINY TIM by one sentence."""
    alike = "The old miser of the counting house in the city of London who hated Christmas and every other feast"
    one = "Bob Cratchit carried Tiny Tim home through the snow of the city on the night before Christmas"
    of_title = {"SCROOGE": f"{alike}!", "MARLEY": f"{alike}.", "BOB CRATCHIT": one, "TINY TIM": one, "FOG": "Weather."}
    values = {row: of_title[title] for row, title in enumerate(contract_tables()["entities"]["title"].to_pylist())}
    return freeze_changed(tmp_path_factory.mktemp("twins"), "entities", "description", values)


def test_near_vectors_are_duplicates_unless_one_sentence_describes_both(
    twins: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphrag_pipeline.evaluation.index_quality.figures._BLOCK_ROWS", 2)
    monkeypatch.setattr("graphrag_pipeline.evaluation.index_quality.figures.DUPLICATE_SIMILARITY", 0.8)
    found = by_name(measure_duplicates(twins))["duplicates_by_vector"]
    assert (found.value, found.n) == (0.4, 5)
    assert {example.rpartition(" (")[0] for example in found.examples} == {"MARLEY = SCROOGE", "SCROOGE = MARLEY"}


# ------------------------------------------------------------------------------------------------- citations, templates


def test_findings_without_an_existing_record_are_not_cited(tmp_path: Path) -> None:
    def finding(text: str) -> list[dict[str, str]]:
        return [{"summary": "Finding", "explanation": text}]

    findings = {0: finding("So [Data: Entities (0, 999)]."), 1: finding("Perhaps."), 2: finding("[Data: Moons (1)]")}
    opened = freeze_changed(tmp_path, "community_reports", "findings", findings)
    found = by_name(measure_citations(opened))
    assert found["cited_findings"].value == 0.5 and len(found["cited_findings"].examples) == 2
    assert found["valid_citations"].value == 0.5, "Entities 0 and that of the last report of 4"
    assert {example.rpartition(": ")[2] for example in found["valid_citations"].examples} == {
        "Entities (999)", "Moons (1)"}  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Root:
    (tmp_path / "settings.yaml").write_text("", encoding="utf-8")
    return Root(tmp_path)


@pytest.mark.parametrize("title", [EXAMPLE_TITLE, EXAMPLE_TITLE.upper(), "<title>", "...", "", "Report title"])
def test_reports_that_repeat_the_prompt_or_a_template_are_found(root: Root, title: str) -> None:
    opened = freeze_changed(root.path, "community_reports", "title", {1: title})
    found = measure_placeholders(root, opened)
    assert found.value == pytest.approx(1 / 12) and found.is_low(QualitySettings())
    assert measure_placeholders(root, freeze(root.path)).value == 0


def test_an_entity_of_the_example_counts_unless_its_text_names_it(root: Root, tmp_path: Path) -> None:
    assert EXAMPLE_NAME in PromptEchoes(default_prompts()["extract_graph.txt"]).example_names
    tables = contract_tables()
    tables["entities"] = replace_values(tables["entities"], "title", {1: EXAMPLE_NAME.upper()})
    assert measure_placeholders(root, freeze(tmp_path / "a", tables)).examples == (f"entity {EXAMPLE_NAME.upper()}",)
    entity = tables["entities"]["id"][1].as_py()
    unit = next(row for row, ids in enumerate(tables["text_units"]["entity_ids"].to_pylist()) if entity in ids)
    tables["text_units"] = replace_values(
        tables["text_units"], "text", {unit: f"The fog came to {EXAMPLE_NAME}.".replace(" ", "  ")}
    )
    assert measure_placeholders(root, freeze(tmp_path / "b", tables)).value == 0


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("entities", "description", "filled"),
        ("relationships", "description", "filled"),
        ("community_reports", "summary", "<summary>"),
    ],
)
def test_texts_that_are_new_since_a_clean_snapshot_are_read(
    root: Root, tmp_path: Path, table: str, column: str, value: str
) -> None:
    clean = freeze(tmp_path / "clean")
    text = default_prompts()["summarize_descriptions.txt"] if value == "filled" else value
    changed = freeze_changed(tmp_path / "changed", table, column, {1: text})
    assert len(measure_placeholders(root, changed, clean).examples) == 1
    assert measure_placeholders(root, changed, clean) == measure_placeholders(root, changed)
    assert measure_placeholders(root, clean, clean) == measure_placeholders(root, clean)
