"""Text units: they cover their document, fit their size, and do not change where the text does not."""

from __future__ import annotations

import random
import statistics
import time
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.indexing.text_units import split_documents, split_text, with_context
from graphrag_pipeline.settings.indexing import MIN_FILL
from graphrag_pipeline.settings.settings import TextUnitsSettings
from graphrag_pipeline.tables import TEXT_UNITS
from graphrag_pipeline.text.sentences import grapheme_start
from graphrag_pipeline.text.tokens import count_tokens
from graphrag_pipeline_tests.support.thoroughness import repetitions

BLOCKS = TextUnitsSettings(size=110, overlap=0)
PAGE = """\
# The Pump

It runs in
Brantwick. In
1843. It was new.
- Check the valve.

  Twice a day.
- Call Piet Maas.

The end | of it.
***
| Ship | Port |
|------|------|
| Alma | Brantwick |
| Vega | Lund |

Steps
-----
1) Open it.
2) Close it.
```python
# no title

print("| a | b |")
```
<table><tr><td>

<table></table></td></tr></table>
- - -
"""


def units_of(text: str, settings: TextUnitsSettings = BLOCKS) -> pa.Table:
    return split_documents(pa.table({"id": ["d"], "text": [text]}), settings)


lines = st.sampled_from(
    ["# T", "a b.", "| a | b |", "|--|--|", "- item", "  more", "1. one", "```", "---", "<table>", "</table>", "<ul>",
     "<dl><dt>a", "", "   ", "\u2028x", "\tcode", "萧炎。", "\x0c"]
)  # fmt: skip


@given(st.lists(lines | st.text(max_size=8), max_size=30).map("\n".join))
def test_text_units_hold_all_blocks_in_order(text: str) -> None:
    within = TextUnitsSettings(size=24, overlap=0)
    units = units_of(text, within).to_pylist()
    for unit in units:
        header = text[unit["header_start"] : unit["header_end"]] if unit["header_start"] is not None else ""
        assert unit["text"] == header + text[unit["start"] : unit["end"]]
    assert "".join("".join(text[u["start"] : u["end"]].split()) for u in units) == "".join(text.split())


def test_a_text_unit_carries_the_headings_above_its_first_paragraph() -> None:
    text = (
        "# Pump\n\n" + "It runs. " * 12 + "\n\n## Valve\n\n" + "Check it daily. " * 20 + "\n\n# End\n\n" + "Done. " * 18
    )
    units = units_of(text, TextUnitsSettings(size=40, overlap=0)).to_pylist()
    paths = [(unit["heading_path"], unit["heading_levels"]) for unit in units]
    assert paths[0] == (["Pump"], [1]) and paths[1:-1] == [(["Pump", "Valve"], [1, 2])] * (len(units) - 2)
    assert len(units) > 3 and paths[-1] == (["End"], [1])
    plain = units_of(text, TextUnitsSettings(size=40, overlap=0, markdown_blocks=False))
    assert plain["heading_path"].null_count == len(plain)


def test_a_table_of_a_plain_document_is_cut_between_rows_and_repeats_its_header() -> None:
    header = "| Ship | Port |\n|------|------|\n"
    rows = [f"| Alma {n}. | The port of Brantwick. At {n}. |" for n in range(40)]
    text = f"# Ships\n\nAll ships.\n\n{header}" + "\n".join(rows) + "\n\nThe end."
    units = units_of(text).to_pylist()
    assert len(units) > 4 and units[0]["text"].startswith("# Ships\n\nAll ships.") and units[0]["header_start"] is None
    assert all(unit["text"].startswith(f"{header}| Alma") for unit in units[1:-1])
    assert all(text[unit["start"] :].startswith("| Alma") for unit in units[1:-1])
    assert all(unit["n_tokens"] <= BLOCKS.size for unit in units)


def test_a_list_of_a_plain_document_is_cut_between_items() -> None:
    items = [f"- Duty {n} of the clerk. He does it.\n  - first\n  - second" for n in range(30)]
    units = units_of("\n".join(items)).column("text").to_pylist()
    assert len(units) > 2 and all(unit.startswith("- Duty") for unit in units) and "\n".join(units) == "\n".join(items)


DEFAULT = TextUnitsSettings(markdown_blocks=False)
SMALL = TextUnitsSettings(size=16, overlap=6, markdown_blocks=False)


def _documents(*texts: str) -> pa.Table:
    return pa.table({"id": [f"d{number}" for number in range(len(texts))], "text": list(texts)})


def _check(text: str, settings: TextUnitsSettings) -> list:
    spans = list(split_text(text, settings))
    done = 0
    for span in spans:
        piece = text[span.start : span.end]
        assert piece and piece == piece.strip()
        assert span.n_tokens == count_tokens(piece) <= settings.size
        assert not text[done : span.start].strip(), "a part of the document is in no text unit"
        done = span.end
    assert not text[done:].strip()
    for left, right in pairwise(spans):
        assert left.start < right.start and left.end < right.end
        assert count_tokens(text[right.start : left.end]) <= settings.overlap or right.start >= left.end
    return spans


def _sentence(chance: random.Random) -> str:
    words = ["".join(chance.choices("abcdefghijklmnoprstuvw", k=chance.randint(2, 9))) for _ in range(40)]
    return " ".join(chance.sample(words, chance.randint(6, 30))).capitalize() + "."


def _long_text(seed: int, n_tokens: int) -> str:
    chance = random.Random(seed)
    paragraphs: list[str] = []
    total = 0
    while total < n_tokens:
        paragraphs.append(" ".join(_sentence(chance) for _ in range(chance.randint(2, 8))))
        total += count_tokens(paragraphs[-1])
    return "\n\n".join(paragraphs)


def test_a_document_that_fits_is_one_text_unit_without_white_space_around_it():
    units = split_documents(_documents("  Marley was dead: to begin with.\nThere is no doubt.\n\n"), DEFAULT)
    assert units.schema == TEXT_UNITS.schema
    assert units.select(["document_id", "position", "start", "end", "text", "n_tokens"]).to_pylist() == [
        {"document_id": "d0", "position": 0, "start": 2, "end": 52, "n_tokens": 14,
         "text": "Marley was dead: to begin with.\nThere is no doubt."}
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", " ", "\n\t\u3000 "])
def test_a_document_without_text_has_no_text_unit(text):
    assert split_documents(_documents(text), DEFAULT).num_rows == 0


@given(
    st.lists(
        st.sampled_from([*"aZ é1.!?\n萧。👩", "👩\u200d👧", "e\u0301", "word ", "Mr. ", ". A", "\n\n", " " * 40]),
        max_size=200,
    ).map("".join),
    st.sampled_from([SMALL, *(SMALL.model_copy(update={"size": n, "overlap": k}) for n, k in ((16, 0), (40, 20)))]),
)
def test_text_units_cover_the_text_within_their_size(text, settings):
    _check(text, settings)


@given(st.text(max_size=300))
def test_any_text_is_covered(text):
    _check(text, SMALL)


def test_text_units_of_a_long_document_are_well_filled_and_overlap_by_whole_sentences():
    text = _long_text(1, 12_000)
    spans = _check(text, DEFAULT)
    assert all(span.n_tokens >= MIN_FILL * DEFAULT.size for span in spans[:-1])
    overlaps = [text[right.start : left.end] for left, right in pairwise(spans)]
    assert sum(map(bool, overlaps)) > len(overlaps) * 0.8
    assert all(overlap[0].isupper() and overlap[-1] == "." for overlap in overlaps if overlap)


def test_an_edit_on_top_changes_few_text_units():
    n_changed = []
    for seed in range(repetitions(3, thorough=5)):
        text = _long_text(seed, 120_000)
        chance = random.Random(1_000 + seed)
        edited = " ".join(_sentence(chance) for _ in range(5)) + " " + text
        before, after = split_documents(_documents(text), DEFAULT), split_documents(_documents(edited), DEFAULT)
        assert 110 <= before.num_rows <= 150
        n_changed.append(len(set(after["id"].to_pylist()) - set(before["id"].to_pylist())))
    assert statistics.median(n_changed) <= 3, n_changed
    assert max(n_changed) <= 10, n_changed


def test_ids_come_from_document_text_and_occurrence():
    sentence = "The same sentence stands here again and again, word by word."
    repeated = "\n\n".join([sentence] * 8)
    settings = SMALL.model_copy(update={"overlap": 0})
    units = split_documents(_documents(repeated, repeated), settings)
    assert len(set(units["text"].to_pylist())) == 1
    assert len(set(units["id"].to_pylist())) == units.num_rows == 16
    longer = split_documents(_documents(repeated + "\n\n" + sentence), settings)
    first = {row["id"] for row in units.to_pylist() if row["document_id"] == "d0"}
    assert len(set(longer["id"].to_pylist()) - first) == 1


def test_the_order_of_documents_does_not_matter():
    documents = _documents("One. Two.", _long_text(3, 3_000), "Three.")
    reversed_rows = documents.take([2, 1, 0])
    assert split_documents(documents, SMALL).equals(split_documents(reversed_rows, SMALL))


@pytest.mark.parametrize("unit", ["👩\u200d👧", "e\u0301\u0302", "🇩🇪", "萧", "क्षि"])
def test_a_sentence_over_the_size_is_never_cut_inside_a_letter(unit):
    text = unit * 300
    spans = _check(text, SMALL)
    assert len(spans) > 10
    assert all(grapheme_start(text, span.start) == span.start for span in spans)


def test_a_sentence_over_the_size_is_cut_at_white_space():
    text = "word " * 2_000
    assert all(text[span.start : span.end].split()[0] == "word" for span in _check(text, DEFAULT))


@pytest.mark.parametrize(
    "text", ["." + " " * 1_000_000 + "x. y", "a" * 300_000, "lorem ipsum " * 400_000], ids=["space", "letter", "line"]
)
def test_a_single_long_line_takes_seconds(text):
    start = time.process_time()
    assert _sum_of_lengths(text) >= len("".join(text.split()))
    assert time.process_time() - start < 20


def test_a_line_of_megabytes_is_split_in_time_linear_in_its_length():
    n_words = repetitions(150_000, thorough=1_400_000)
    chance = random.Random(0)
    words = ["".join(chance.choices("abcdefghij", k=6)) for _ in range(5_000)]
    text = " ".join(chance.choices(words, k=n_words))
    start = time.process_time()
    _sum_of_lengths(text[: len(text) // 4])
    quarter = time.process_time() - start
    assert _sum_of_lengths(text) >= 6 * n_words
    assert time.process_time() - start < 7 * quarter, "5 if linear, 17 if quadratic"


def _sum_of_lengths(text: str) -> int:
    return sum(span.end - span.start for span in split_text(text, DEFAULT))


def test_the_context_of_a_text_unit_is_title_and_date_of_its_document_and_the_headings_above_it():
    documents = pa.table({"id": ["a", "b"], "title": ["Falcon fails", "Notes"], "creation_date": ["2025-01-31", None]})
    paths = pa.array([["Falcon fails", "Root cause", "Disk"], None, []])
    units = pa.table({"document_id": ["a", "b", "c"], "heading_path": paths})
    contexts = with_context(units, documents)["context"].to_pylist()
    assert contexts == ["Document: Falcon fails\nDate: 2025-01-31\nSection: Root cause > Disk", "Document: Notes", ""]
