"""Evidence, from citations down to characters of documents, for every method and both engines."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from graphrag_pipeline.citations import parse_citations
from graphrag_pipeline.demo_model.replies import reply_to
from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.query.answers.evidence import EvidenceFinder
from graphrag_pipeline.query.cited_records import CitedRecords
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.methods.registry import METHODS
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.tables import CONTRACT_TABLES
from graphrag_pipeline_tests.model_server import ReceivedRequest, running_model_server
from graphrag_pipeline_tests.support.citation_checks import check_citations
from graphrag_pipeline_tests.support.corpora import small_index
from graphrag_pipeline_tests.support.models.model_index import open_with_model

QUESTION = "Who is Jacob Marley and what became of him?"


@pytest.mark.parametrize("method", METHODS)
def test_what_the_embedded_engine_cites_is_there_word_for_word(carol: GraphIndex, method: str) -> None:
    result = carol.search(QUESTION, method=method)
    assert result.citations
    check_citations(carol, result)


def _invent(request: ReceivedRequest) -> str:
    """The model's own reply, with citations of what it was not shown in each of its texts."""
    reply = reply_to(request.kind, request.conversation)
    if request.kind == "answer":
        return f"{reply} As is well known [3][Data: Entities (999999)]."
    return re.sub(r"\.\"", ' [Data: Reports (888888)]."', reply)


@pytest.mark.parametrize("method", METHODS)
def test_what_a_model_cites_is_there_word_for_word_and_what_it_invents_is_not(
    carol: GraphIndex, tmp_path: Path, method: str
) -> None:
    with running_model_server(_invent) as server:
        result = open_with_model(carol, tmp_path, server).search(QUESTION, method=method)
    assert result.answering["engine"] == "model" and not result.answering["failure"]
    assert result.answering["invented_citations"] >= 2
    written = re.sub(r"\d+\.\d+", "", result.to_json())  # scores and seconds may have any digits
    assert result.citations and "999999" not in written and "888888" not in written
    check_citations(carol, result)


def test_a_report_resolves_through_the_records_that_it_cites(carol: GraphIndex) -> None:
    found = 0
    for report in carol.snapshot.table("community_reports").to_pylist()[:20]:
        [record] = CitedRecords(carol).read_cited(f"[Data: Reports ({report['human_readable_id']})]")
        cited = {(kind, int(n)) for kind, numbers in parse_citations(report["full_content"]) for n in numbers}
        through = {(part.kind, part.human_readable_id) for part in record.through}
        assert through <= {(_SINGULAR[kind], number) for kind, number in cited if kind in _SINGULAR}
        if through:
            assert set(record.text_unit_rows) == {row for part in record.through for row in part.text_unit_rows}
            found += 1
    assert found


_SINGULAR = {"Entities": "entity", "Relationships": "relationship", "Claims": "claim", "Reports": "report"}


def with_reports(folder: Path, content: str) -> GraphIndex:
    """The small index with another text in all its reports."""
    tables = small_index.contract_tables()
    reports = [row | {"full_content": content} for row in tables["community_reports"].to_pylist()]
    tables["community_reports"] = CONTRACT_TABLES["community_reports"].from_rows(reports)
    return GraphIndex(small_index.freeze(folder, tables), Settings(), load_static_embeddings())


def test_a_report_that_cites_nothing_stands_on_its_community(small: GraphIndex, tmp_path: Path) -> None:
    assert CitedRecords(small).read_report(0).through
    record = CitedRecords(with_reports(tmp_path, "# Nothing is cited")).read_report(0)
    assert record.text_unit_rows and not record.through


def test_reports_that_cite_each_other_lead_down_only(tmp_path: Path) -> None:
    index = with_reports(tmp_path, "All [Data: Reports (0, 1, 2, 3)].")
    levels = index.column("community_reports", "level")
    for row in range(len(levels)):
        record = CitedRecords(index).read_report(row)
        below = index.snapshot.rows_of("community_reports", [part.id for part in record.through])
        assert record.text_unit_rows and (levels[below] > levels[row]).all()


def test_a_citation_tells_its_record_text_unit_document_and_place(small: GraphIndex) -> None:
    [citation, *_] = small.search("Who haunted Scrooge?", method="basic").to_dict()["citations"]
    [unit] = [u for u in small.snapshot.table("text_units").to_pylist() if u["text"] == "Marley haunted Scrooge."]
    assert json.loads(json.dumps(citation)) == {
        "number": 1, "kind": "text_unit", "id": unit["id"], "human_readable_id": unit["human_readable_id"],
        "text_unit_id": unit["id"], "document_id": unit["document_id"], "document_title": "a.txt",
        "quote": "Marley haunted Scrooge.", "start": 0, "end": 23, "text_unit": unit["human_readable_id"],
        "document_path": "a.txt", "first_page": None, "last_page": None, "document_date": None,
        "record": f"[Data: Sources ({unit['human_readable_id']})]",
    }  # fmt: skip


def test_of_a_report_each_record_that_it_cites_has_a_say(small: GraphIndex) -> None:
    finder = EvidenceFinder(small)
    report = finder.read_report(0)
    found = finder.find("Bob Cratchit loved Tiny Tim.", [report])
    assert found is not None and found[1] is report
    assert [sentence.text for sentence in found[0]] == ["Bob Cratchit loved Tiny Tim."]
