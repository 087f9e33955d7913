"""Blocks of Markdown, and the text units of plain documents that are cut by them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.indexing.markdown_blocks import find_blocks
from graphrag_pipeline.indexing.text_units import split_documents
from graphrag_pipeline.settings.settings import TextUnitsSettings

BLOCKS = TextUnitsSettings(markdown_blocks=True, aggregation_target=90, aggregation_max=110)
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


def blocks_of(text: str) -> list[tuple[str, str]]:
    return [(block["type"], text[block["start"] : block["end"]]) for block in find_blocks(text)]


def units_of(text: str, settings: TextUnitsSettings = BLOCKS) -> pa.Table:
    return split_documents(pa.table({"id": ["d"], "text": [text]}), settings)


def test_the_blocks_of_a_page() -> None:
    assert blocks_of(PAGE) == [
        ("title", "# The Pump"),
        ("paragraph", "It runs in\nBrantwick. In\n1843. It was new."),
        ("list", "- Check the valve.\n\n  Twice a day.\n- Call Piet Maas."),
        ("paragraph", "The end | of it.\n***"),
        ("table", "| Ship | Port |\n|------|------|\n| Alma | Brantwick |\n| Vega | Lund |"),
        ("title", "Steps\n-----"),
        ("list", "1) Open it.\n2) Close it."),
        ("code", '```python\n# no title\n\nprint("| a | b |")\n```'),
        ("table", "<table><tr><td>\n\n<table></table></td></tr></table>"),
        ("paragraph", "- - -"),
    ]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("~~~\n# code\n", ["code"]),
        ("- a\nand on\n# T", ["list", "title"]),
        ("- a\n\nb", ["list", "paragraph"]),
        ("- a\n- - -\nb", ["list", "paragraph"]),
        ("a | b\n--- | ---\nc | d\ne", ["table", "paragraph"]),
        ("a\n---", ["title"]),
        ("a\nb\n---", ["paragraph"]),
        ("<ul>\n<li>a</li>\n\n<li>b</li>\n</ul>\nc", ["list", "paragraph"]),
        ("", []),
        (" \n\n", []),
    ],
)
def test_where_a_block_ends(text: str, kinds: list[str]) -> None:
    assert [kind for kind, _ in blocks_of(text)] == kinds


lines = st.sampled_from(
    ["# T", "a b.", "| a | b |", "|--|--|", "- item", "  more", "1. one", "```", "---", "<table>", "</table>", "<ul>",
     "<dl><dt>a", "", "   ", "\u2028x", "\tcode", "萧炎。", "\x0c"]
)  # fmt: skip


@given(st.lists(lines | st.text(max_size=8), max_size=30).map("\n".join))
def test_blocks_hold_all_text_in_order(text: str) -> None:
    found = find_blocks(text)
    places = [place for block in found for place in (block["start"], block["end"])]
    assert places == sorted(places) and all(block["start"] < block["end"] for block in found)
    assert "".join("".join(part.split()) for _, part in blocks_of(text)) == "".join(text.split())
    assert all(part == part.strip() for _, part in blocks_of(text))
    within = TextUnitsSettings(markdown_blocks=True, aggregation_target=16, aggregation_max=24)
    units = units_of(text, within).to_pylist()
    for unit in units:
        header = text[unit["header_start"] : unit["header_end"]] if unit["header_start"] is not None else ""
        assert unit["text"] == header + text[unit["start"] : unit["end"]]
    assert "".join("".join(text[u["start"] : u["end"]].split()) for u in units) == "".join(text.split())


def test_a_table_of_a_plain_document_is_cut_between_rows_and_repeats_its_header() -> None:
    header = "| Ship | Port |\n|------|------|\n"
    rows = [f"| Alma {n}. | The port of Brantwick. At {n}. |" for n in range(40)]
    text = f"# Ships\n\nAll ships.\n\n{header}" + "\n".join(rows) + "\n\nThe end."
    units = units_of(text).to_pylist()
    assert len(units) > 4 and units[0]["text"].startswith("# Ships\n\nAll ships.") and units[0]["header_start"] is None
    assert all(unit["text"].startswith(f"{header}| Alma") for unit in units[1:-1])
    assert all(text[unit["start"] :].startswith("| Alma") for unit in units[1:-1])
    assert all(unit["n_tokens"] <= BLOCKS.aggregation_max for unit in units)


def test_a_list_of_a_plain_document_is_cut_between_items() -> None:
    items = [f"- Duty {n} of the clerk. He does it.\n  - first\n  - second" for n in range(30)]
    units = units_of("\n".join(items)).column("text").to_pylist()
    assert len(units) > 2 and all(unit.startswith("- Duty") for unit in units) and "\n".join(units) == "\n".join(items)


def test_without_the_setting_text_units_and_the_version_stay() -> None:
    text = PAGE * 40
    plain = TextUnitsSettings(size=100, overlap=10)
    assert units_of(text, plain).equals(units_of(text, plain.model_copy(update={"aggregation_max": 1400})))
    assert "markdown_blocks" not in plain.result_options() and BLOCKS.result_options()["markdown_blocks"]
