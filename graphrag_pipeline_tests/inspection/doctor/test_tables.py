"""The mappings that `doctor` proposes for files of rows."""

from __future__ import annotations

import io

import pytest

from graphrag_pipeline.inputs.documents import read_records
from graphrag_pipeline.inspection.doctor.tables import propose_tables
from graphrag_pipeline.settings.input import InputSettings, TableMapping

FILES = {
    "a/services.csv": b"service,tier,owner,depends_on\n"
    b'web,1,Ana Roy,"api, ledger"\napi,1,Bo Li,ledger\nledger,2,Ana Roy,\n',
    "topics.csv": b"topic;tier;producers;size\norders.v1;1;web;12\nbills.v2;1;api;7\n",
    "tickets.jsonl": b'{"id": "OPS-1", "about": "web", "text": "Slow."}\n'
    b'{"id": "OPS-2", "about": "ledger", "text": "Full."}\n',
    "numbers.csv": b"month,n\n1,2\n2,7\n",
}


def test_a_mapping_is_proposed_for_each_file_whose_rows_have_names() -> None:
    records = [record for path, data in FILES.items() for record in read_records(path, data, InputSettings())]
    proposed = propose_tables(records, InputSettings())
    assert proposed == [
        {
            "files": "a/services.csv", "entity": "service", "type": "SERVICE",
            "relationships": {"owner": {"type": "PERSON"}, "depends_on": {"type": "SERVICE", "split": ","}},
        },
        {
            "files": "topics.csv", "entity": "topic", "type": "TOPIC",
            "relationships": {"producers": {"type": "SERVICE"}},
        },
        {
            "files": "tickets.jsonl", "entity": "id", "type": "TICKETS",
            "relationships": {"about": {"type": "SERVICE"}},
        },
    ]  # fmt: skip
    settings = InputSettings(tables=tuple(TableMapping.model_validate(one) for one in proposed))
    assert propose_tables(records, settings) == []
    mapped = [record for path, data in FILES.items() for record in read_records(path, data, settings)]
    assert [record.title for record in mapped[:7]] == [
        "web",
        "api",
        "ledger",
        "orders.v1",
        "bills.v2",
        "OPS-1",
        "OPS-2",
    ]


def test_each_sheet_of_a_file_has_its_own_mapping() -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("openpyxl")
    sheets = {
        "services": {"name": ["web", "api"], "owner": ["Ana Roy", "Bo Li"], "depends_on": ["api", None]},
        "topics": {"name": ["orders.v1", "bills.v2"], "producer": ["web", "api"]},
        "counts": {"month": [1, 2], "n": [3, 4]},
    }
    book = io.BytesIO()
    with pandas.ExcelWriter(book) as writer:
        for name, columns in sheets.items():
            pandas.DataFrame(columns).to_excel(writer, sheet_name=name, index=False)
    records = read_records("a/book.xlsx", book.getvalue(), InputSettings())
    proposed = propose_tables(records, InputSettings())
    assert proposed == [
        {"files": "a/book.xlsx#services", "entity": "name", "type": "SERVICES",
         "relationships": {"owner": {"type": "PERSON"}, "depends_on": {"type": "SERVICES"}}},
        {"files": "a/book.xlsx#topics", "entity": "name", "type": "TOPICS",
         "relationships": {"producer": {"type": "SERVICES"}}},
    ]  # fmt: skip
    settings = InputSettings(tables=tuple(TableMapping.model_validate(one) for one in proposed))
    mapped = read_records("a/book.xlsx", book.getvalue(), settings)
    assert [record.title for record in mapped[:4]] == ["web", "api", "orders.v1", "bills.v2"]
    assert propose_tables(mapped, settings) == [] and mapped[0].note is not None  # sheet `counts` is read as its values
