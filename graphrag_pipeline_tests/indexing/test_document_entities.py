"""Documents as entities: their names, what their labels say, and the identifiers that they mention."""

from __future__ import annotations

import pyarrow as pa
import pytest

from graphrag_pipeline.engines.embedded.extraction import extract_graph
from graphrag_pipeline.indexing.document_entities import add_documents, without_documents
from graphrag_pipeline.indexing.graph.merge import merge_graph
from graphrag_pipeline.indexing.text_units import split_documents
from graphrag_pipeline.inputs.documents import build_documents, read_records
from graphrag_pipeline.settings.input import InputSettings, RelatedColumn, TableMapping
from graphrag_pipeline.settings.settings import ExtractionSettings, GraphSettings, TextUnitsSettings
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
        ("Disk full", "RB-01-disk-7.md", "RB-01", {"Disk full", "RB-01-disk-7"}),
        ("18. Partition the ledger (draft)", "0018-partition.md", "18. Partition the ledger (draft)",
         {"Partition the ledger (draft)", "Partition the ledger", "0018-partition"}),
        ("INC-1 and INC-2", "", "INC-1 and INC-2", {"INC-1", "INC-2"}),
        ("18. Partition the ledger", "docs/adrs/0018-partition.md", "ADR 18",
         {"18. Partition the ledger", "Partition the ledger", "0018-partition", "ADR-18", "ADR 0018", "ADR-0018"}),
        ("ADR 18: the ledger", "adr/18_ledger.md", "ADR 18",
         {"ADR 18: the ledger", "the ledger", "18_ledger", "ADR-18"}),
        ("Disk full", "runbooks/3_disk.md", "Disk full", {"3_disk", "runbook 3", "runbook-3"}),
        ("Disk full", "minutes/2025-03-04 disk.md", "Disk full", {"2025-03-04 disk"}),
        ("Disk full", "minutes/2025-disk.md", "Disk full", {"2025-disk"}),
    ],
)  # fmt: skip
def test_a_document_is_named_by_title_file_and_codes(title: str, path: str, main: str, others: set[str]) -> None:
    names = name_document(title, path)
    assert (names.main, set(names.others)) == (main, others)


def test_a_document_is_an_entity_related_to_its_labels_and_identifiers() -> None:
    documents, units, tables = extract("incidents/lost.md", INCIDENT)
    added = add_documents(documents, units, tables, InputSettings())
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
    added = add_documents(documents, units, tables, InputSettings())
    bare = without_documents(added)
    assert all(bare[name].equals(tables[name]) for name in tables)
    assert all(add_documents(documents, units, bare, InputSettings())[name].equals(added[name]) for name in tables)


def test_a_document_about_one_thing_is_that_thing() -> None:
    documents, units, tables = extract("a.md", "# Ada Lovelace\n\nAda Lovelace wrote a program.")
    added = add_documents(documents, units, tables, InputSettings())
    assert added["entity_mentions"].equals(tables["entity_mentions"])


def test_a_label_with_few_values_in_code_is_a_category_and_its_values_are_no_entities() -> None:
    reports = {
        f"T-{number}.md": f"# TICKET-{number}0: it was late\n\n**Severity:** SEV-{level}\n**Cause:** BUG-{number}\n"
        f"**Owner:** Ana Roy\n**System:** billing-api\n\nThe SEV-{level} was closed by Ana Roy in `billing-api`.\n"
        for number, level in enumerate((1, 2, 1, 2), start=1)
    }

    def index(settings: InputSettings, **more: str) -> set[str]:
        records = [read_records(path, text.encode(), settings) for path, text in (reports | more).items()]
        documents = build_documents(record for found in records for record in found)
        units = split_documents(documents, TextUnitsSettings())
        added = add_documents(documents, units, extract_graph(documents, units, ExtractionSettings()), settings)
        mentions = (added[f"{name}_mentions"] for name in ("entity", "relationship", "claim"))
        return set(merge_graph(*mentions, GraphSettings())["entities"]["title"].to_pylist())

    kept = {"ANA ROY", "BILLING-API", "BUG-1", "BUG-2", "BUG-3", "BUG-4", *(f"TICKET-{n}0" for n in range(1, 5))}
    assert index(InputSettings()) == kept
    levels = InputSettings(tables=(TableMapping(files="levels.csv", entity="level", type="level"),))
    assert index(levels, **{"levels.csv": "level,meaning\nSEV-1,all is down\n"}) == {*kept, "SEV-1"}


HTML = "<html><head><title>How we begin here</title></head><body><p>Bring a book.</p></body></html>"


@pytest.mark.parametrize(
    ("path", "text", "names"),
    [
        ("guides/first_day.md", "# How we begin here\n\nBring a book.\n", {"How we begin here", "first_day"}),
        ("first_day.md", "---\ntitle: how we begin here\n---\nBring a book.\n", {"how we begin here", "first_day"}),
        ("first_day.html", HTML, {"How we begin here", "first_day"}),
        ("RB-01-first-day.md", "# Begin here\n\nBring a book.\n", {"RB-01", "Begin here", "RB-01-first-day"}),
        ("first_day.md", "Bring a book.\n", set()),
        ("first_day.txt", "Bring a book.\n", set()),
        ("rows.jsonl", '{"title": "How we begin here", "text": "Bring a book."}', set()),
        ("first_day.md", "# 2025\n\nBring a book.\n", set()),
    ],
)
def test_a_file_with_a_title_is_an_entity_also_without_codes_and_labels(path: str, text: str, names: set[str]) -> None:
    documents, units, tables = extract(path, text)
    added = add_documents(documents, units, tables, InputSettings())["entity_mentions"].to_pylist()
    assert {row["written"] or row["name"] for row in added if row["type"] == "DOCUMENT"} == names


MAPPING = TableMapping(
    files="services.csv",
    entity="service",
    type="service",
    description="about",
    relationships={"owner": RelatedColumn(type="person"), "depends_on": RelatedColumn(split=",")},
)
ROWS = b"""service,owner,depends_on,about
billing-api,Ana Roy,"ledger-db, Berlin",Sends bills.
Berlin,Ana Roy,billing-api,
"""


def test_a_mapped_row_is_an_exact_entity_and_its_type_wins() -> None:
    settings = InputSettings(tables=(MAPPING,))
    rows = build_documents(read_records("services.csv", ROWS, settings))
    text = build_documents(read_records("a.md", b"Ana Roy moved to Berlin. Berlin is large. Berlin is old.", settings))
    documents = pa.concat_tables([rows, text])
    units = split_documents(documents, TextUnitsSettings())
    found = extract_graph(documents, units, ExtractionSettings())
    added = add_documents(documents, units, found, settings, names_documents=False)
    again = add_documents(documents, units, without_documents(added), settings, names_documents=False)
    assert all(again[name].equals(added[name]) for name in added)
    columns = {"service", "owner", "depends_on", "about"}
    assert not columns & {row["name"].casefold() for row in added["entity_mentions"].to_pylist()}
    merged = merge_graph(*(added[f"{name}_mentions"] for name in ("entity", "relationship", "claim")), GraphSettings())
    entities = {row["title"]: row for row in merged["entities"].to_pylist()}
    types = {title: entities[title]["type"] for title in ("BILLING-API", "BERLIN", "ANA ROY")}
    assert types == {"BILLING-API": "SERVICE", "BERLIN": "SERVICE", "ANA ROY": "PERSON"}
    assert "Sends bills." in entities["BILLING-API"]["descriptions"]
    exact = {
        (row["source"], predicate, row["target"])
        for row in merged["relationships"].to_pylist()
        for predicate in row["predicates"]
    }
    assert {("BILLING-API", "depends on", "LEDGER-DB"), ("ANA ROY", "owner", "BILLING-API")} <= exact
    assert ("BERLIN", "depends on", "BILLING-API") in exact
