"""Every column that lineage names exists, at both ends."""

from __future__ import annotations

import pytest

from graphrag_pipeline.defs.assets.pages.columns import column_lineage, column_schema, origins_of, shown_tables
from graphrag_pipeline.pipeline.stages import ALL_STAGES, STAGES, upstream_of


def names(stage: str) -> set[str]:
    return {column.name for column in column_schema(ALL_STAGES[stage]).columns}


@pytest.mark.parametrize("stage", ALL_STAGES)
def test_lineage_names_columns_that_exist_in_assets_right_above_or_beside(stage: str) -> None:
    above = {other.name for other in upstream_of(ALL_STAGES[stage])}
    for column, deps in column_lineage(stage).deps_by_column.items():
        assert column in names(stage)
        for dep in deps:
            owner = dep.asset_key.to_user_string()
            assert owner in above, f"{stage}.{column} <- {owner}"
            assert dep.column_name in names(owner), f"{stage}.{column} <- {owner}.{dep.column_name}"


@pytest.mark.parametrize("stage", [name for name in STAGES if name != "corpus_manifest"])
def test_every_stage_names_the_sources_of_its_columns(stage: str) -> None:
    for table in shown_tables(ALL_STAGES[stage]):
        assert origins_of(ALL_STAGES[stage], table) or table.endswith("_failures"), table


def test_a_column_of_several_tables_is_named_with_its_table() -> None:
    assert "text" in names("text_units")
    assert {"entities.title", "relationships.weight", "graph_failures.reason"} <= names("graph")
    lineage = column_lineage("index_candidate").deps_by_column["entities.description"]
    assert [(dep.asset_key.to_user_string(), dep.column_name) for dep in lineage] == [
        ("summarized_descriptions", "description")
    ]


@pytest.mark.parametrize("stage", ALL_STAGES)
def test_every_column_has_a_description(stage: str) -> None:
    assert all(column.description for column in column_schema(ALL_STAGES[stage]).columns)


def test_types_are_short_enough_to_leave_room_for_descriptions() -> None:
    types = {column.name: column.type for name in ALL_STAGES for column in column_schema(ALL_STAGES[name]).columns}
    assert types["findings"] == "list of struct" and types["entities.types"] == "list of string"
    assert max(map(len, types.values())) <= 20, types
