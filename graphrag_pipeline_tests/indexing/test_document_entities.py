"""Documents as entities: their names, what their labels say, and the identifiers that they mention."""

from __future__ import annotations

import pyarrow as pa
import pytest

from graphrag_pipeline.engines.embedded.extraction import extract_graph
from graphrag_pipeline.indexing.document_entities import add_documents, without_documents
from graphrag_pipeline.indexing.text_units import split_documents
from graphrag_pipeline.inputs.documents import build_documents, read_records
from graphrag_pipeline.settings.input import InputSettings
from graphrag_pipeline.settings.settings import ExtractionSettings, TextUnitsSettings
from graphrag_pipeline.text.document_names import name_document

INCIDENT = """# TICKET-118: Baskets lost

**Commander:** Siobhan Kerrigan

Siobhan Kerrigan restarted billing-api. It read `dim_customer`. See TICKET-7.
"""


def extract(path: str, text: str) -> tuple[pa.Table, pa.Table, dict[str, pa.Table]]:
    documents = build_documents(read_records(path, text.encode(), InputSettings()))
    units = split_documents(documents, TextUnitsSettings(size=60, overlap=0))
    return documents, units, extract_graph(documents, units, ExtractionSettings())


@pytest.mark.parametrize(
    ("title", "path", "main", "others"),
    [
        ("TICKET-118: Baskets lost", "in/2025-03-04-baskets.md", "TICKET-118",
         {"TICKET-118: Baskets lost", "Baskets lost", "2025-03-04-baskets"}),
        ("Disk full", "INC-7_disk.md", "INC-7", {"Disk full", "INC-7_disk"}),
        ("18. Partition the ledger (draft)", "0018-partition.md", "18. Partition the ledger (draft)",
         {"Partition the ledger (draft)", "Partition the ledger", "0018-partition"}),
        ("INC-1 and INC-2", "", "INC-1 and INC-2", {"INC-1", "INC-2"}),
    ],
)  # fmt: skip
def test_a_document_is_named_by_title_file_and_codes(title: str, path: str, main: str, others: set[str]) -> None:
    names = name_document(title, path)
    assert (names.main, set(names.others)) == (main, others)


def test_a_document_is_an_entity_related_to_its_labels_and_identifiers() -> None:
    documents, units, tables = extract("incidents/lost.md", INCIDENT)
    added = add_documents(documents, units, tables)
    own = [row for row in added["entity_mentions"].to_pylist() if row["type"] == "DOCUMENT"]
    assert {row["name"] for row in own} == {"TICKET-118"}
    assert {row["written"] for row in own} == {None, "Baskets lost", "TICKET-118: Baskets lost", "lost"}
    assert {row["text_unit_id"] for row in own} == set(units["id"].to_pylist())
    related = {
        row["target"]: row["predicate"]
        for row in added["relationship_mentions"].to_pylist()
        if row["source"] == "TICKET-118" and row["start"] is None
    }
    assert related == {"Siobhan Kerrigan": "commander", "billing-api": None, "dim_customer": None, "TICKET-7": None}


def test_documents_are_added_once() -> None:
    documents, units, tables = extract("incidents/lost.md", INCIDENT)
    added = add_documents(documents, units, tables)
    bare = without_documents(added)
    assert all(bare[name].equals(tables[name]) for name in tables)
    assert all(add_documents(documents, units, bare)[name].equals(added[name]) for name in tables)


def test_a_document_about_one_thing_is_that_thing() -> None:
    documents, units, tables = extract("a.md", "# Ada Lovelace\n\nAda Lovelace wrote a program.")
    assert add_documents(documents, units, tables)["entity_mentions"].equals(tables["entity_mentions"])
