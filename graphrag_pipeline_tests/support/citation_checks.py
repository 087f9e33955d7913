"""Check that each citation leads to its record and quote, for any method and engine."""

from __future__ import annotations

import re

from graphrag_pipeline.query.cited_records import CitedRecords
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.search_result import SearchResult

_TABLES = {
    "entity": "entities",
    "relationship": "relationships",
    "claim": "covariates",
    "report": "community_reports",
    "text_unit": "text_units",
}


def check_citations(index: GraphIndex, result: SearchResult) -> None:
    """Assert that each marker has a citation that resolves to its record, text unit and place in the document."""
    markers = dict.fromkeys(re.findall(r"\[(\d+)\]", result.answer))
    assert list(markers) == [str(citation.number) for citation in result.citations]
    for citation, shown in zip(result.citations, result.to_dict()["citations"], strict=True):
        row = index.snapshot.rows_of(_TABLES[citation.kind], [citation.id])[0]
        record = index.snapshot.take(_TABLES[citation.kind], [row])[0]
        assert record["human_readable_id"] == citation.human_readable_id
        unit_row = index.snapshot.rows_of("text_units", [citation.text_unit_id])[0]
        text_unit = index.snapshot.take("text_units", [unit_row])[0]
        document = index.snapshot.take("documents", index.snapshot.rows_of("documents", [citation.document_id]))[0]
        assert text_unit["document_id"] == document["id"]
        assert text_unit["human_readable_id"] == citation.text_unit
        assert (document["title"], document["path"]) == (citation.document_title, citation.document_path)
        assert document["creation_date"] == citation.document_date
        assert citation.quote and citation.quote in text_unit["text"]
        assert document["text"][shown["start"] : shown["end"]] == citation.quote
        [resolved] = CitedRecords(index).read_cited(shown["record"])
        assert (resolved.kind, resolved.id) == (citation.kind, citation.id)
        assert unit_row in resolved.text_unit_rows
