"""Aggregation of typed, paged chunks into text units, for hand-written and random chunks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_pipeline.indexing.aggregation_report import report_aggregation
from graphrag_pipeline.indexing.chunk_aggregation import aggregate_chunks
from graphrag_pipeline.indexing.text_units import split_documents
from graphrag_pipeline.inputs.documents import build_documents, read_records
from graphrag_pipeline.settings.models import EmbeddingModelSettings
from graphrag_pipeline.settings.settings import InputSettings, TextUnitsSettings
from graphrag_pipeline.text.tokens import count_tokens
from graphrag_pipeline_tests.support.corpora.paged_document import make_rows
from graphrag_pipeline_tests.support.models.hashing_embeddings import HashingEmbeddings

DEFAULT = TextUnitsSettings()
SMALL = TextUnitsSettings(aggregation_target=32, aggregation_max=40, aggregation_max_pages=3)


def read_documents(rows: Sequence[dict[str, Any]]) -> pa.Table:
    data = "\n".join(json.dumps(row) for row in rows).encode()
    return build_documents(read_records("report.jsonl", data, InputSettings()))


def chunks_of(*parts: tuple[str, int | None, str]) -> tuple[str, list[dict[str, Any]]]:
    """Return the text and the chunks of (type, page, text)."""
    chunks, text = [], ""
    for kind, page, part in parts:
        text += "\n\n" if text else ""
        chunks.append({"type": kind, "page": page, "start": len(text), "end": len(text) + len(part)})
        text += part
    return text, chunks


def words(n: int, word: str = "word") -> str:
    """Return a text of n tokens."""
    return " ".join([word] * n)


def units_of(*parts: tuple[str, int | None, str], within: TextUnitsSettings = SMALL) -> list[str]:
    text, chunks = chunks_of(*parts)
    return [text[start:end] for start, end, _ in aggregate_chunks(text, chunks, within)]


def test_a_paged_document_is_combined_to_the_target_and_keeps_its_offsets():
    documents = read_documents(make_rows())
    (text,) = documents["text"].to_pylist()
    units = split_documents(documents, DEFAULT).to_pylist()
    assert [unit["position"] for unit in units] == list(range(len(units)))
    assert all(text[unit["start"] : unit["end"]] == unit["text"] for unit in units)
    assert all(unit["n_tokens"] == count_tokens(unit["text"]) <= 1500 for unit in units)
    assert all(unit["n_tokens"] >= 900 for unit in units[:-1] if not _ends_by_page(documents, unit))


def _ends_by_page(documents: pa.Table, unit: dict[str, Any]) -> bool:
    """Whether the chunk after a text unit is on a fourth page."""
    chunks = documents["chunks"].to_pylist()[0]
    first = next(chunk["page"] for chunk in chunks if chunk["end"] > unit["start"])
    return any(chunk["page"] > first + 2 for chunk in chunks if chunk["start"] >= unit["end"])


@pytest.mark.parametrize("n_before", range(24, 34, 2))
def test_a_unit_ends_before_a_title_that_comes_near_the_target(n_before):
    before = [("paragraph", 1, words(1))] * (n_before // 2)  # two tokens each, with the blank line behind
    units = units_of(*before, ("title", 1, "Bridges"), *[("paragraph", 1, words(1))] * 30)
    assert units[1].startswith("Bridges\n\nword")


def test_small_chunks_are_combined_up_to_the_target():
    units = units_of(*(("paragraph", 1, words(7)) for _ in range(20)))
    assert len(units) < 20 and "\n\n".join(units) == "\n\n".join([words(7)] * 20)
    assert all(24 <= count_tokens(unit) <= 40 for unit in units[:-1])


def test_a_unit_ends_where_a_fourth_page_begins():
    units = units_of(*(("paragraph", page, f"page {page}") for page in (1, 1, 2, 3, 4, 5, 6, 7)))
    assert units == ["page 1\n\npage 1\n\npage 2\n\npage 3", "page 4\n\npage 5\n\npage 6", "page 7"]


def test_chunks_without_a_page_count_for_no_page():
    assert len(units_of(*(("paragraph", page, "x") for page in (1, None, 2, None, 3, None)))) == 1


def test_a_title_stays_with_the_text_below_it():
    parts = [("paragraph", 1, words(30)), ("title", 1, "Part two"), ("title", 1, "Of bridges"), ("list", 1, words(20))]
    assert units_of(*parts) == [words(30), "Part two\n\nOf bridges\n\n" + words(20)]


def test_an_over_long_chunk_is_cut_and_its_title_stays_with_the_first_piece():
    sentences = " ".join(f"Bridge number {number} was sold in spring." for number in range(12))
    units = units_of(("title", 1, "Bridges"), ("table", 1, sentences), ("paragraph", 2, "After."))
    assert units[0].startswith("Bridges\n\nBridge number 0") and units[-1].endswith("After.")
    assert " ".join(units).replace("\n\n", " ") == f"Bridges {sentences} After."
    assert all(count_tokens(unit) <= 40 for unit in units) and len(units) > 2


def test_a_title_far_from_its_text_is_left_alone_rather_than_span_four_pages():
    assert units_of(("title", 1, "Annex"), ("paragraph", 5, "x")) == ["Annex", "x"]


kinds = st.sampled_from(["title", "paragraph", "table", "list", "figure"])
texts = st.lists(
    st.sampled_from(["Scrooge", "wept.", "萧炎", "a\n\nb", "The", "1,234", "|", "\U0001f467", "é"]), min_size=1
)
parts = st.tuples(kinds, st.none() | st.integers(0, 9), texts.map(" ".join))


@settings(deadline=None)
@given(st.lists(parts, min_size=1, max_size=25), st.integers(16, 60), st.integers(0, 30), st.integers(1, 4))
def test_text_units_cover_the_document_and_keep_to_tokens_pages_and_titles(found, target, more, max_pages):
    rules = TextUnitsSettings(aggregation_target=target, aggregation_max=target + more, aggregation_max_pages=max_pages)
    text, chunks = chunks_of(*found)
    done = 0
    for start, end, n_tokens in aggregate_chunks(text, chunks, rules):
        piece = text[start:end]
        assert piece == piece.strip() and not text[done:start].strip()
        assert n_tokens == count_tokens(piece) <= rules.aggregation_max
        inside = [chunk for chunk in chunks if chunk["start"] < end and chunk["end"] > start]
        pages = [chunk["page"] for chunk in inside if chunk["page"] is not None]
        assert not pages or max(pages) - min(pages) < max_pages
        assert not is_torn_off(inside[-1], chunks, text, rules)
        done = end
    assert not text[done:].strip()


def is_torn_off(last: dict[str, Any], chunks: list[dict[str, Any]], text: str, rules: TextUnitsSettings) -> bool:
    """Whether a chunk is a title separated from the next chunk, which is not a title and has room for it."""
    behind = next((chunk for chunk in chunks if chunk["start"] >= last["end"]), None)
    if last["type"] != "title" or behind is None or behind["type"] == "title":
        return False
    is_long = count_tokens(text[last["start"] : last["end"]]) + 8 > rules.aggregation_target // 2
    is_known = last["page"] is not None and behind["page"] is not None
    is_far = is_known and abs(last["page"] - behind["page"]) >= rules.aggregation_max_pages
    return not is_long and not is_far


def test_an_edit_changes_only_text_units_near_it():
    rows = make_rows(n_pages=60)
    edited = [*rows[:3], {**rows[3], "text": "The mayor came. " + rows[3]["text"]}, *rows[4:]]
    before, after = (split_documents(read_documents(part), DEFAULT)["id"].to_pylist() for part in (rows, edited))
    assert len(set(before) - set(after)) <= 3


def test_the_report_counts_the_saved_text_units():
    documents = read_documents([row for seed in range(2) for row in make_rows(f"d{seed}", seed=seed)])
    units = split_documents(documents, DEFAULT)
    limits = EmbeddingModelSettings(batch_size=16)
    report = report_aggregation(documents, units, limits, HashingEmbeddings(), "o200k_base")
    n_chunks = sum(map(len, documents["chunks"].to_pylist()))
    assert report["text units before aggregation"] == n_chunks
    assert report["text units after aggregation"] == units.num_rows
    assert report["text units saved, %"] > 70
    assert report["embedding calls before aggregation"] == -(-n_chunks // 16)
    assert report["embedding calls after aggregation"] == -(-units.num_rows // 16)
    assert report["text units split at 450 tokens"] > 0
    least, mean = (report[f"cosine of averaged vectors to their pieces', {name}"] for name in ("least", "mean"))
    assert 0 < least <= mean <= 1


def test_documents_that_came_whole_have_no_report():
    documents = build_documents(read_records("a.txt", b"Marley was dead.", InputSettings()))
    units = split_documents(documents, DEFAULT)
    assert report_aggregation(documents, units, EmbeddingModelSettings(), HashingEmbeddings(), "o200k_base") == {}


@pytest.mark.parametrize("n_pages", [1, 200])
def test_equal_rows_make_equal_text_units(n_pages):
    rows = make_rows(n_pages=n_pages)
    assert split_documents(read_documents(rows), DEFAULT).equals(split_documents(read_documents(rows), DEFAULT))
