"""Lineage files: one row a resource, with what it depends on, what uses it, and its tests; tables of rows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from graphrag_pipeline.inputs.documents import read_records
from graphrag_pipeline.settings.input import InputSettings, RelatedColumn, TableMapping
from graphrag_pipeline_tests.support.paths import REPOSITORY

MANIFEST = {
    "metadata": {"dbt_schema_version": "https://schemas.getdbt.com/dbt/manifest/v12.json"},
    "nodes": {
        "model.shop.stg_orders": {
            "name": "stg_orders", "resource_type": "model", "description": "Orders.\nCleaned.",
            "config": {"materialized": "view", "meta": {"owner": "Ana"}},
            "depends_on": {"nodes": ["source.shop.raw.orders"]},
            "columns": {"id": {"name": "id", "description": "Key."}, "day": {"name": "day", "description": ""}},
        },
        "test.shop.unique_id": {
            "name": "unique_id", "resource_type": "test", "depends_on": {"nodes": ["model.shop.stg_orders"]},
        },
    },
    "sources": {"source.shop.raw.orders": {"name": "orders", "source_name": "raw", "resource_type": "source"}},
    "exposures": {
        "exposure.shop.board": {
            "name": "board", "resource_type": "exposure", "type": "dashboard", "owner": {"name": "Bo", "email": "b@x"},
            "depends_on": {"nodes": ["model.shop.stg_orders", "model.shop.gone"]},
        },
    },
}  # fmt: skip


def test_each_resource_is_a_document_that_says_its_lineage() -> None:
    records = read_records("dbt/manifest.json", json.dumps(MANIFEST).encode(), InputSettings())
    assert {record.record: record.text for record in records} == {
        "exposure.shop.board": "name: board; resource_type: exposure; owner: Bo; depends_on: stg_orders; "
        "exposure_type: dashboard.",
        "model.shop.stg_orders": "name: stg_orders; resource_type: model; description: Orders. Cleaned.; owner: Ana; "
        "depends_on: raw.orders; used_by: board; tests: unique_id; columns: id (Key.), day; materialized: view.",
        "source.shop.raw.orders": "name: raw.orders; resource_type: source; used_by: stg_orders.",
    }
    assert {record.title for record in records} == {"board", "stg_orders", "raw.orders"}
    assert json.loads(records[1].metadata)["owner"] == "Ana"


DEFINITIONS = """
import dagster as dg

@dg.asset(key_prefix="lake", owners=["team:wheel"], group_name="raw", description="Orders as they come.")
def raw_orders(): ...

@dg.asset(deps=[raw_orders], key=["mart", "orders"])
def orders(): ...

@dg.asset_check(asset=orders)
def no_nulls():
    return dg.AssetCheckResult(passed=True)

defs = dg.Definitions([raw_orders, orders], asset_checks=[no_nulls])
"""


def test_the_asset_graph_that_the_guide_saves_is_read(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(DEFINITIONS)
    guide = (REPOSITORY / "docs/guides/input_formats.md").read_text(encoding="utf-8")
    query = guide.partition("dagster-graphql ")[2].split("'")[1]
    command = [str(Path(sys.executable).with_name("dagster-graphql")), "-f", "own.py", "-t", query]
    environment = {"DAGSTER_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True, timeout=120)
    [printed] = [line for line in done.stdout.decode().splitlines() if line.startswith("{")]
    records = read_records("assets.json", printed.encode(), InputSettings())
    assert {record.record: record.text for record in records} == {
        "asset.mart/orders": "name: mart/orders; resource_type: asset; depends_on: raw_orders; tests: no_nulls; "
        "group: default.",
        "asset.lake/raw_orders": "name: raw_orders; full_name: lake/raw_orders; resource_type: asset; "
        "description: Orders as they come.; owner: wheel; used_by: mart/orders; group: raw.",
    }


CATALOGUE = b'service,owner,depends_on\nbilling-api,Ana Roy,"ledger-db, events"\n,Bo,\n'
MAPPING = TableMapping(
    files="*services.csv",
    entity="service",
    type="service",
    relationships={"owner": RelatedColumn(type="person"), "depends_on": RelatedColumn(split=",")},
)


def test_a_mapped_row_has_the_name_of_its_entity() -> None:
    settings = InputSettings(tables=(MAPPING,))
    named, unnamed = read_records("catalogue/services.csv", CATALOGUE, settings)
    assert (named.title, named.note) == ("billing-api", None)
    assert unnamed.title == "services: Bo" and unnamed.note == "no value of 'service', so the row is no entity"
    [wrong] = read_records("services.csv", b"name\nbilling-api\n", settings)
    assert wrong.problem == "no column 'service'; found: name; correct input.tables"


@pytest.mark.parametrize("values", [{}, {"type": "A", "type_column": "kind"}])
def test_a_mapping_has_one_source_of_its_type(values: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="either `type` or `type_column`"):
        TableMapping(files="*", entity="name", **values)


def test_rows_without_a_text_are_read_as_their_values() -> None:
    rows = b"service;tier;depends_on\nbilling-api;1;ledger-db, events\nweb;2;\n"
    first, second = read_records("catalogue/services.csv", rows, InputSettings())
    assert first.title == "services: billing-api" and "no column 'text'" in (first.note or "")
    assert first.text == "service: billing-api; tier: 1; depends_on: ledger-db, events."
    assert second.text == "service: web; tier: 2." and second.record == "#2"
    assert json.loads(first.metadata) == {"service": "billing-api", "tier": "1", "depends_on": "ledger-db, events"}
    [named] = read_records("catalogue/services.csv", rows, InputSettings(text_column="body"))
    assert named.problem is not None and "no column 'body'" in named.problem
