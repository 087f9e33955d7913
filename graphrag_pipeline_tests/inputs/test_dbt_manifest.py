"""A dbt manifest: one row a resource, with what it depends on, what uses it, and its tests."""

from __future__ import annotations

import json

from graphrag_pipeline.inputs.documents import read_records
from graphrag_pipeline.settings.input import InputSettings

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
    assert {record.title for record in records} == {"manifest: board", "manifest: stg_orders", "manifest: raw.orders"}
    assert json.loads(records[1].metadata)["owner"] == "Ana"


def test_rows_without_a_text_are_read_as_their_values() -> None:
    rows = b"service;tier;depends_on\nbilling-api;1;ledger-db, events\nweb;2;\n"
    first, second = read_records("catalogue/services.csv", rows, InputSettings())
    assert first.title == "services: billing-api" and "no column 'text'" in (first.note or "")
    assert first.text == "service: billing-api; tier: 1; depends_on: ledger-db, events."
    assert second.text == "service: web; tier: 2." and second.record == "#2"
    assert json.loads(first.metadata) == {"service": "billing-api", "tier": "1", "depends_on": "ledger-db, events"}
    [named] = read_records("catalogue/services.csv", rows, InputSettings(text_column="body"))
    assert named.problem is not None and "no column 'body'" in named.problem
