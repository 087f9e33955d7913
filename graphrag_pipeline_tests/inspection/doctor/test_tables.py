"""The mappings that `doctor` proposes for files of rows."""

from __future__ import annotations

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
