"""Aggregation of typed, paged chunks into text units, for hand-written and random chunks."""

from __future__ import annotations

import json
from bisect import bisect
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_pipeline.engines.model.extraction.conversations import ExtractionPlan
from graphrag_pipeline.engines.model.extraction.extractor import extract_text_units, extraction_works
from graphrag_pipeline.indexing.aggregation_report import (
    choose_comparisons,
    describe_aggregation,
    measure_aggregation,
)
from graphrag_pipeline.indexing.chunk_aggregation import aggregate_chunks
from graphrag_pipeline.indexing.text_units import split_documents, with_context
from graphrag_pipeline.inputs.documents import build_documents, read_records
from graphrag_pipeline.models.prompts import load_prompt
from graphrag_pipeline.settings.input import InputSettings
from graphrag_pipeline.settings.models import EmbeddingModelSettings
from graphrag_pipeline.settings.settings import TextUnitsSettings
from graphrag_pipeline.tables import CHUNKS
from graphrag_pipeline.text.tokens import count_tokens
from graphrag_pipeline_tests.support.corpora.paged_document import make_manual, make_rows
from graphrag_pipeline_tests.support.models.scripted_model import ScriptedModel

DEFAULT = TextUnitsSettings()
ENTITY = '("entity"<|>PUMP<|>PERSON<|>A pump.)##<|COMPLETE|>'
SMALL = TextUnitsSettings(aggregation_target=32, aggregation_max=40, aggregation_max_pages=3)
WIDE = TextUnitsSettings(aggregation_target=90, aggregation_max=110, aggregation_max_pages=3)


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
    return [span.text_of(text) for span in aggregate_chunks(text, chunks, within)]


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


def test_a_text_unit_knows_the_pages_of_its_chunks():
    text, chunks = chunks_of(*(("paragraph", page, words(9)) for page in (1, 2, 2, None, 4, 4, None)))
    document = pa.table({"id": ["d"], "text": [text], "chunks": pa.array([chunks], CHUNKS)})
    units = split_documents(document, SMALL).to_pylist()
    assert len(units) >= 2
    for unit in units:
        inside = [one["page"] for one in chunks if unit["start"] <= one["start"] < unit["end"]]
        known = [page for page in inside if page is not None] or [None]
        assert (unit["first_page"], unit["last_page"]) == (known[0], known[-1])


def test_without_aggregation_each_chunk_is_a_text_unit_and_a_long_one_is_cut():
    parts = [("title", 1, "Title"), *(("paragraph", 1, words(n)) for n in (9, 12, 3))]
    alone = SMALL.model_copy(update={"aggregation": False})
    assert units_of(*parts, within=alone) == [text for _, _, text in parts]
    assert len(units_of(*parts)) < len(parts)
    long = units_of(parts[0], ("paragraph", 1, words(90)), within=alone)
    assert long[0] == "Title" and len(long) > 3


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


# ------------------------------------------------------------------------------------------------------ kinds of chunks

TABLE = "| Lot | Buyer | Price |\n|---|---|---|\n" + "\n".join(f"| {n} | Fezziwig | {n * 10} |" for n in range(20))


def test_a_table_is_cut_between_rows_and_repeats_its_header():
    text, chunks = chunks_of(("title", 1, "Auction"), ("table", 1, TABLE), ("paragraph", 1, "After the sale."))
    spans = list(aggregate_chunks(text, chunks, WIDE))
    rows = [line for span in spans for line in span.text_of(text).splitlines() if line.startswith("|")]
    assert len(spans) > 2 and spans[0].text_of(text).startswith(
        "Auction\n\n| Lot | Buyer | Price |\n|---|---|---|\n| 0"
    )
    for span in spans[1:]:
        assert span.text_of(text).startswith("| Lot | Buyer | Price |\n|---|---|---|\n| ")
        assert span.header and text[slice(*span.header)] == "| Lot | Buyer | Price |\n|---|---|---|\n"
        assert text[span.start : span.end] == span.text_of(text).removeprefix(text[slice(*span.header)])
    data = [row for row in rows if not row.startswith(("| Lot", "|---"))]
    assert data == TABLE.splitlines()[2:]
    assert all(span.n_tokens <= WIDE.aggregation_max for span in spans)


@pytest.mark.parametrize(
    ("lines", "header"),
    [
        (["Name\tTown", *(f"Person {n}\tBrantwick {n}" for n in range(30))], "Name\tTown\n"),
        (["Region;2019;2020", *(f"North;{n};{n + 1}" for n in range(40))], "Region;2019;2020\n"),
        (["| 3 | 17 |", *(f"| {n} | {n * n} |" for n in range(40))], ""),
        (["only one column", *(f"row {n}" for n in range(40))], ""),
        (
            ["+---+---+", "| a | b |", "+===+===+", *("| c | d |" for _ in range(40))],
            "+---+---+\n| a | b |\n+===+===+\n",
        ),
        (
            ["<table><tr><th>Town</th></tr>", *(f"<tr><td>Brantwick {n}</td></tr>" for n in range(20)), "</table>"],
            "<table><tr><th>Town</th></tr>\n",
        ),
        (
            [
                "<table><thead><tr>Ship|Port</tr>",
                "<tr>name|town</tr></thead>",
                *(f"<tr><td>Brantwick {n}</td></tr>" for n in range(20)),
                "</table>",
            ],
            "<table><thead><tr>Ship|Port</tr>\n<tr>name|town</tr></thead>\n",
        ),
        (
            [
                "<table><tr><th>Ship</th></tr>",
                "<tr><th>name</th></tr>",
                *(f"<tr><th>{n}</th><td>Brantwick {n}</td></tr>" for n in range(20)),
                "</table>",
            ],
            "<table><tr><th>Ship</th></tr>\n<tr><th>name</th></tr>\n",
        ),
        (
            ["<table><tr><th>Ship<th>Town", *(f"<tr><td>Alma {n}<td>Brantwick" for n in range(30)), "</table>"],
            "<table><tr><th>Ship<th>Town\n",
        ),
    ],
)
def test_the_header_of_a_table_is_found_by_its_form(lines, header):
    text, chunks = chunks_of(("table", 1, "\n".join(lines)))
    spans = list(aggregate_chunks(text, chunks, WIDE))
    assert len(spans) > 1
    assert all(text[slice(*(span.header or (0, 0)))] == header for span in spans[1:])
    ends = [text[span.end : span.end + 1] for span in spans[:-1]]
    assert ends == ["\n"] * len(ends)


def test_a_list_is_cut_between_items_and_sub_items_stay_with_theirs():
    items = [f"- Duty {n} of the clerk. It is done daily.\n  - first step\n  - second step" for n in range(8)]
    units = units_of(("list", 1, "\n".join(items)), within=WIDE)
    assert len(units) > 1 and "\n".join(units) == "\n".join(items)
    assert all(unit.startswith("- Duty") for unit in units)


def test_a_list_of_three_levels_is_cut_between_the_items_of_the_second():
    tasks = [f"  - Task {n}: open the valve\n    - tool {n}\n    - time {n}" for n in range(30)]
    text = "- Chapter one\n" + "\n".join(tasks)
    units = units_of(("list", 1, text), within=WIDE)
    assert len(units) > 3 and "\n".join(units).split() == text.split()
    assert all(unit.startswith("- Task") for unit in units[1:])


def test_a_row_with_a_table_inside_is_not_cut_if_it_fits():
    inner = "".join(f"<tr><td>part {n}</td></tr>" for n in range(2))
    rows = [f"<tr><td>Pump {n}</td><td><table>{inner}</table></td></tr>" for n in range(12)]
    units = units_of(("table", 1, "<table>" + "".join(rows) + "</table>"), within=WIDE)
    assert len(units) > 3 and "".join(units) == "<table>" + "".join(rows) + "</table>"
    assert all(unit.startswith("<tr><td>Pump") for unit in units[1:])


@pytest.mark.parametrize("kind", ["table", "list", "paragraph"])
@pytest.mark.parametrize("n_words", [70, 95, 128])
def test_a_row_or_item_without_sentences_is_cut_at_white_space(kind, n_words):
    row = " ".join(f"x{n}y" for n in range(n_words))
    units = units_of((kind, 1, f"- {row}" if kind == "list" else row))
    assert len(units) > 1 and all(word in row.split() for unit in units for word in unit.removeprefix("- ").split())


def test_a_row_without_sentences_is_cut_into_near_equal_parts():
    header = "| Name | Text |\n|---|---|\n"
    row = "| Alpha | " + " ".join(f"word{n} value" for n in range(900)) + " |"
    units = units_of(("table", 1, header + row), within=TextUnitsSettings())
    counts = [count_tokens(unit.removeprefix(header)) for unit in units]
    assert len(counts) == 3 and max(counts) - min(counts) < 10


@pytest.mark.parametrize(("end", "gap"), [("</li>", ""), ("</li>", "\n"), ("", "\n")])
def test_a_list_in_html_is_cut_between_items(end, gap):
    items = [f"<li>Duty {n} of the clerk.<ul><li>first{end}<li>second{end}</ul>{end}" for n in range(12)]
    text = f"<ul>{gap}{gap.join(items)}{gap}</ul>"
    units = units_of(("list", 1, text), within=WIDE)
    assert len(units) > 2 and gap.join(units) == text
    assert all(unit.startswith("<li>Duty") for unit in units[1:]) and units[0].startswith(f"<ul>{gap}<li>Duty 0")


@pytest.mark.parametrize(("start", "end"), [("", ""), ("<div>", "</div>"), ('<div class="a">\n', "\n</div>")])
def test_an_html_list_of_terms_is_cut_between_terms_with_their_descriptions(start, end):
    def group(n):
        inner = "<dl><dt>scale<dd>ten</dl>"
        return f"{start}<dt>Gauge {n}</dt><dt>Dial {n}</dt><dd>Shows.{inner}</dd><dd>Of brass.</dd>{end}"

    text = "<dl>\n" + "\n".join(map(group, range(20))) + "\n</dl>"
    units = units_of(("list", 1, text), within=WIDE)
    assert len(units) > 2 and "\n".join(units) == text
    assert all(unit.startswith(f"{start}<dt>Gauge") for unit in units[1:]) and units[0].startswith(f"<dl>\n{start}<dt>")


def test_a_term_with_many_descriptions_is_cut_between_them():
    text = (
        "<dl><dt>Gauge"
        + "".join(f"<dd>Gauge {n} hangs at the door of the {n}. hall.</dd>" for n in range(20))
        + "</dl>"
    )
    units = units_of(("list", 1, text), within=WIDE)
    assert len(units) > 2 and "".join(units) == text and all(unit.startswith("<dd>Gauge") for unit in units[1:])


def test_a_first_row_with_a_cell_of_data_is_no_header():
    rows = [f"<tr><th>Ship {n}</th><td>Brantwick {n}</td></tr>" for n in range(30)]
    text = "\n".join(["<table>", *rows, "</table>"])
    units = units_of(("table", 1, text), within=WIDE)
    assert len(units) > 2 and "\n".join(units) == text


def test_tags_that_a_text_writes_of_make_it_no_html():
    items = [f"- Rule {n}: close each <li> of a <ul> with care, always." for n in range(12)]
    units = units_of(("list", 1, "\n".join(items)), within=WIDE)
    assert len(units) > 2 and all(unit.startswith("- Rule") for unit in units)
    header = "| Tag | Meaning |\n|---|---|\n"
    rows = [f"| tag {n} | starts with <tr> and ends with </tr> |" for n in range(12)]
    units = units_of(("table", 1, header + "\n".join(rows)), within=WIDE)
    assert len(units) > 2 and all(unit.startswith(f"{header}| tag") for unit in units)


def test_code_is_cut_between_blocks():
    blocks = [f"def count_{n}(rows):\n    total = {n}\n    return total + len(rows)" for n in range(9)]
    units = units_of(("code", 1, "\n\n".join(blocks)), within=WIDE)
    assert len(units) > 1 and all(unit.startswith("def count_") for unit in units)


@pytest.mark.parametrize("n_before", range(8, 40, 3))
@pytest.mark.parametrize("order", [("figure", "caption"), ("caption", "figure"), ("caption", "table")])
def test_a_caption_stays_with_its_figure_or_table(n_before, order):
    texts = {"figure": "[picture of a bridge]", "table": "a | b", "caption": "Built in 1843."}
    pair = [(kind, 1, texts[kind]) for kind in order]
    units = units_of(("paragraph", 1, words(n_before)), *pair, ("paragraph", 1, words(12)))
    assert any("\n\n".join(text for _, _, text in pair) in unit for unit in units)


def test_a_figure_and_its_caption_are_not_cut_to_make_room_for_titles():
    figure, caption = words(24, "shape"), words(10, "seen")
    units = units_of(("title", 1, words(14, "Part")), ("figure", 1, figure), ("caption", 1, caption))
    assert units[-1] == f"{figure}\n\n{caption}"


def test_a_caption_on_a_far_page_is_not_joined():
    assert units_of(("figure", 1, "[bridge]"), ("caption", 9, "Figure 1")) == ["[bridge]", "Figure 1"]


def test_a_caption_stays_with_the_part_of_a_cut_table_beside_it():
    before = units_of(("caption", 1, "Table 1: Lots"), ("table", 1, TABLE), within=WIDE)
    behind = units_of(("table", 1, TABLE), ("caption", 1, "Table 1: Lots"), within=WIDE)
    assert before[0].startswith("Table 1: Lots\n\n| Lot") and behind[-1].endswith(" |\n\nTable 1: Lots")


def test_text_units_of_a_cut_table_hold_both_places():
    documents = read_documents(
        [{"document_id": "d", "type": "table", "page": 1, "text": TABLE + "\n" + TABLE.partition("---|\n")[2] * 9}]
    )
    (text,) = documents["text"].to_pylist()
    first, *rest = split_documents(documents, WIDE).to_pylist()
    assert first["header_start"] is None and first["text"] == text[first["start"] : first["end"]]
    for unit in rest:
        header = text[unit["header_start"] : unit["header_end"]]
        assert unit["text"] == header + text[unit["start"] : unit["end"]]
    assert len({unit["id"] for unit in rest}) == len(rest) > 3


# ----------------------------------------------------------------------------------------------------------------- laws

kinds = st.sampled_from(["title", "paragraph", "table", "list", "figure", "caption", "code"])
texts = st.lists(
    st.sampled_from(["Scrooge", "wept.", "萧炎", "a\n\nb", "The", "1,234", "|", "\U0001f467", "é", "\n", "\n|--|\n"]),
    min_size=1,
)
parts = st.tuples(kinds, st.none() | st.integers(0, 9), texts.map(lambda pieces: " ".join(pieces).strip() or "x"))


@settings(deadline=None)
@given(st.lists(parts, min_size=1, max_size=25), st.integers(16, 60), st.integers(0, 30), st.integers(1, 4))
def test_text_units_cover_the_document_and_keep_to_tokens_pages_and_titles(found, target, more, max_pages):
    rules = TextUnitsSettings(aggregation_target=target, aggregation_max=target + more, aggregation_max_pages=max_pages)
    text, chunks = chunks_of(*found)
    done = 0
    for span in aggregate_chunks(text, chunks, rules):
        start, end, piece = span.start, span.end, text[span.start : span.end]
        assert piece == piece.strip() and not text[done:start].strip()
        assert span.n_tokens == count_tokens(span.text_of(text)) <= rules.aggregation_max
        assert span.header is None or any(is_inside(span.header, chunk, "table") for chunk in chunks)
        inside = [chunk for chunk in chunks if chunk["start"] < end and chunk["end"] > start]
        pages = [chunk["page"] for chunk in inside if chunk["page"] is not None]
        assert not pages or max(pages) - min(pages) < max_pages
        assert not is_torn_off(inside[-1], chunks, text, rules)
        done = end
    assert not text[done:].strip()


def is_inside(span: tuple[int, int], chunk: dict[str, Any], kind: str) -> bool:
    return chunk["type"] == kind and chunk["start"] <= span[0] < span[1] <= chunk["end"]


def is_torn_off(last: dict[str, Any], chunks: list[dict[str, Any]], text: str, rules: TextUnitsSettings) -> bool:
    """Whether a chunk is a title separated from the next chunk, which is not a title and has room for it."""
    behind = next((chunk for chunk in chunks if chunk["start"] >= last["end"]), None)
    if last["type"] != "title" or behind is None or behind["type"] == "title":
        return False
    is_long = count_tokens(text[last["start"] : last["end"]]) + 8 > rules.aggregation_target // 2
    is_known = last["page"] is not None and behind["page"] is not None
    is_far = is_known and abs(last["page"] - behind["page"]) >= rules.aggregation_max_pages
    return not is_long and not is_far


def test_figures_of_a_manual_stay_with_their_captions_and_tables_with_their_header():
    documents = read_documents(make_manual(n_pages=40))
    (text,), (chunks,) = documents["text"].to_pylist(), documents["chunks"].to_pylist()
    units = split_documents(documents, DEFAULT).to_pylist()
    starts = [unit["start"] for unit in units]
    for figure, caption in pairwise(chunks):
        if figure["type"] == "figure":
            assert bisect(starts, figure["start"]) == bisect(starts, caption["start"])
    split = [unit for unit in units if unit["header_start"] is not None]
    assert len(split) >= 5 and all(unit["text"].startswith("| Part | Used in | Price |\n|---|") for unit in split)
    assert all(unit["n_tokens"] <= 1500 and text[unit["start"] : unit["end"]] in unit["text"] for unit in units)


def test_extraction_gets_each_combined_text_unit_whole():
    documents = read_documents(make_manual(n_pages=12))
    units = with_context(split_documents(documents, DEFAULT), documents)
    prompts = (load_prompt(None, name) for name in ("extract_graph", "extract_graph_continue"))
    plan, model = ExtractionPlan(*prompts, ("PERSON",), max_gleanings=0), ScriptedModel(lambda _: ENTITY)
    extract_text_units(extraction_works(units, plan, model), plan, model, "test-chat")
    texts = units["text"].to_pylist()
    assert len(model.prompts) == len(texts) > 3 and max(units["n_tokens"].to_pylist()) > 1000
    assert all(sum(text in prompt for prompt in model.prompts) == 1 for text in texts)


def test_an_edit_changes_only_text_units_near_it():
    rows = make_rows(n_pages=60)
    edited = [*rows[:3], {**rows[3], "text": "The mayor came. " + rows[3]["text"]}, *rows[4:]]
    before, after = (split_documents(read_documents(part), DEFAULT)["id"].to_pylist() for part in (rows, edited))
    assert len(set(before) - set(after)) <= 3


def test_the_report_counts_the_saved_text_units():
    documents = read_documents([row for seed in range(2) for row in make_manual(f"d{seed}", seed=seed)])
    units = split_documents(documents, DEFAULT)
    limits = EmbeddingModelSettings(batch_size=16, batch_max_tokens=450)
    report = describe_aggregation(measure_aggregation(documents, units, limits))
    n_chunks = sum(map(len, documents["chunks"].to_pylist()))
    assert report["text units before aggregation"] == n_chunks
    assert report["text units after aggregation"] == units.num_rows
    assert report["text units saved, %"] > 70
    assert report["embedding inputs saved, %"] > 50
    figures = measure_aggregation(documents, units, limits)
    for name, calls in (("before", figures.before), ("after", figures.after)):
        assert report[f"distinct embedding inputs of this bucket {name} aggregation"] == calls.n_inputs
        assert calls.n_requests == -(-calls.n_inputs // 16)


def test_documents_that_came_whole_have_no_report():
    documents = build_documents(read_records("a.txt", b"Marley was dead.", InputSettings()))
    units = split_documents(documents, DEFAULT)
    assert describe_aggregation(measure_aggregation(documents, units, EmbeddingModelSettings())) == {}


@pytest.mark.parametrize(("n_tokens", "n_parts"), [(300, 2), (600, 2), (1200, 3)])
def test_a_text_is_compared_by_a_whole_that_fits(n_tokens, n_parts):
    limits = EmbeddingModelSettings(batch_max_tokens=450)
    found = choose_comparisons([words(n_tokens), words(700, "other")], limits, 2)
    (one,) = (found for found in found if found.whole.startswith("word"))
    assert len(one.parts) == n_parts and "".join(part.text for part in one.parts) == one.whole
    assert count_tokens(one.whole) <= 450 and words(n_tokens).startswith(one.whole)


def test_a_model_that_cuts_nothing_is_not_asked():
    assert choose_comparisons([words(600)], EmbeddingModelSettings(), 2) == []
    assert choose_comparisons([words(600)], EmbeddingModelSettings(batch_max_tokens=450), 0) == []


@pytest.mark.parametrize("n_pages", [1, 200])
def test_equal_rows_make_equal_text_units(n_pages):
    rows = make_rows(n_pages=n_pages)
    assert split_documents(read_documents(rows), DEFAULT).equals(split_documents(read_documents(rows), DEFAULT))
