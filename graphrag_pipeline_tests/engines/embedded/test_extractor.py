"""Extraction of the changed documents gives the same tables as extraction of all documents."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.engines.embedded import extractor
from graphrag_pipeline.engines.embedded.extraction import extract_graph
from graphrag_pipeline.engines.embedded.extractor import extract_changed_documents
from graphrag_pipeline.indexing.text_units import split_documents
from graphrag_pipeline.settings.settings import ExtractionSettings, TextUnitsSettings
from graphrag_pipeline.tables import DOCUMENTS

EXTRACTION = ExtractionSettings()
TEXTS = (
    "Scrooge met Bob Cratchit in London. Marley was dead.",
    "Bob Cratchit saw Tiny Tim. They went to Camden Town together, and Scrooge followed.",
    "Nobody spoke.",
    "",
)
corpora = st.dictionaries(
    st.sampled_from("abcd"), st.tuples(st.sampled_from(["Stave One", "Marley's Ghost"]), st.sampled_from(TEXTS))
)


def read(corpus: Mapping[str, tuple[str, str]]) -> tuple[pa.Table, pa.Table]:
    """Documents and text units, each document in units of a sentence or two."""
    rows = [
        {"id": name, "path": f"{name}.txt", "record": "", "title": title, "text": text}
        | {"content_hash": "", "metadata": "{}"}
        for name, (title, text) in sorted(corpus.items())
    ]
    documents = DOCUMENTS.from_rows(rows)
    return documents, split_documents(documents, TextUnitsSettings(size=16, overlap=0))


def earlier_of(corpus: Mapping[str, tuple[str, str]]) -> dict[str, pa.Table]:
    documents, units = read(corpus)
    return {"documents": documents, "text_units": units, **extract_graph(documents, units, EXTRACTION)}


@given(corpora, corpora)
def test_an_update_equals_a_rebuild(before: dict, now: dict) -> None:
    documents, units = read(now)
    assert extract_changed_documents(documents, units, EXTRACTION, earlier_of(before)) == extract_graph(
        documents, units, EXTRACTION
    )


def test_only_changed_documents_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def extract(documents: pa.Table, *arguments) -> dict[str, pa.Table]:
        seen.extend(documents["id"].to_pylist())
        return extract_graph(documents, *arguments)

    before = {"a": ("One", TEXTS[0]), "b": ("Two", TEXTS[1]), "c": ("Three", TEXTS[2])}
    now = {"a": ("One", TEXTS[0]), "b": ("Two", TEXTS[0]), "c": ("Another", TEXTS[2]), "d": ("Four", TEXTS[1])}
    earlier = earlier_of(before)
    monkeypatch.setattr(extractor, "extract_graph", extract)
    extract_changed_documents(*read(now), EXTRACTION, earlier)
    assert seen == ["b", "c", "d"]
    extract_changed_documents(*read(now), EXTRACTION, None)
    assert seen == ["b", "c", "d", "a", "b", "c", "d"]
