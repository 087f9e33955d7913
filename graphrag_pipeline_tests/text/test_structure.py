"""The structure of Markdown: blocks, headings, readable text, and the place of every character."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphrag_pipeline.text.structure import HIDDEN, Block, ReadableText, read_structure

RUNBOOK = """---
owner: Ana
---
# Billing ![build](https://ci/badge.svg)

**Service:** [billing-api](https://wiki/billing "the wiki") is *state*less &amp; small.
See <https://wiki/x>, `deploy
undo` and dim\\_customer.

## Roll back

1. Stop the queue
2. Run it
   - on `host-1`

| step | owner |
|------|-------|
| stop \\| wait | **Ana** |
| undo |  |

> Call [Bo][1].

SLO
: what we promise

<table><tr><th>a</th></tr>

<tr><td>R&amp;D</td></tr></table>

```sh
deploy undo  # not a heading
```

Notes
~~~~~
Thanks,
Ana
-- 
<!-- hidden -->

[1]: https://wiki/bo
"""


def read(text: str) -> list[tuple[str, list[str]]]:
    return [(block.kind, [piece.text for piece in block.pieces]) for block in read_structure(text).blocks]


def test_blocks_are_read_without_their_marks() -> None:
    assert read(RUNBOOK) == [
        ("front_matter", ["owner: Ana"]),
        ("title", ["Billing"]),
        (
            "paragraph",
            ["Service: billing-api is stateless & small.\nSee https://wiki/x, deploy undo and dim_customer."],
        ),
        ("title", ["Roll back"]),
        ("list", ["1. Stop the queue", "2. Run it", "- on host-1"]),
        ("table", ["step: stop | wait; owner: Ana.", "step: undo."]),
        ("quote", ["Call Bo."]),
        ("list", ["SLO: what we promise"]),
        ("table", ["a", "R&D"]),
        ("code", ["deploy undo  # not a heading"]),
        ("title", ["Notes"]),
        ("paragraph", ["Thanks,\nAna"]),
        ("hidden", []),
        ("hidden", []),
    ]


def test_headings_stand_above_what_follows_them() -> None:
    structure = read_structure("# A\n\none\n\n## B\n\ntwo\n\n#### C\n\nthree\n\n## D\n\nfour\n\n# E\n\nfive")
    above = {block.text: [title for _, title in block.headings] for block in structure.blocks}
    assert above == {
        "A": [], "one": ["A"], "B": ["A"], "two": ["A", "B"], "C": ["A", "B"], "three": ["A", "B", "C"],
        "D": ["A"], "four": ["A", "D"], "E": [], "five": ["E"],
    }  # fmt: skip


def test_a_table_knows_its_header() -> None:
    text = "x\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 |"
    table = read_structure(text).blocks[1]
    assert table.header is not None and text[slice(*table.header)] == "| a | b |\n|---|---|"
    assert [piece.text for piece in table.pieces] == ["a: 1; b: 2.", "a: 3."]
    assert read("| a | b |\n|---|---|") == [("table", ["a: b."])]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("~~~\n# code\n", "code"),
        ("- a\nand on\n\n  more\n- - -", "list"),
        ("a | b\n--- | ---\nc | d\ne", "table"),
        (">>> 1 + 1\n2", "code"),
        ("> said\n> he", "quote"),
        ("1843. That was\n1844. the year", "list"),
        ("That was\n1843. It snowed.", "paragraph"),
        ("    indented text", "paragraph"),
        ("Dear Ana,\nthanks\n---", "paragraph"),
        ("Thanks\n-- ", "paragraph"),
        ("Title\n===", "title"),
        ("Title\n^^^^^", "title"),
        ("A long line that nobody would call a heading\n~~~", "paragraph"),
        ("# " + "word " * 200, "paragraph"),
    ],
)
def test_what_a_block_is(text: str, kind: str) -> None:
    assert read_structure(text).blocks[0].kind == kind


def test_invisible_characters_divide_no_word() -> None:
    [block] = read_structure("A cus\u00adto\u200bmer.").blocks
    assert block.text == "A customer."
    readable = ReadableText.join(block.pieces)
    assert readable.source_of(2, 10) == (2, 12)


marks = st.sampled_from(
    ["# T", "a b.", "| a | b |", "|--|--|", "| x\\|y | `c|d` |", "- item", "  more", "1. one", "```", "---", "<table>",
     "</table>", "<ul>", "<li>a &lt; b", "", "   ", "\u2028x", "\tcode", "萧炎。", "\x0c", "[a](b) *c* **d**", "> q",
     "![i](j)", "[x]: y", "a\\_b", "`x", "y` z", "~~~", "T\n: d", "<!-- c", "-->", "a &amp; b", "so\u00adft",
     "[t](<u v> 'w')"]
)  # fmt: skip


@given(st.lists(marks | st.text(max_size=12), max_size=25).map("\n".join))
@example("\r>")
def test_every_character_has_a_place(text: str) -> None:
    blocks = read_structure(text).blocks
    assert all(start < end for start, end in ((block.start, block.end) for block in blocks))
    places = [place for block in blocks for place in (block.start, block.end)]
    assert places == sorted(places)
    held = "".join("".join(text[block.start : block.end].split()) for block in blocks)
    assert held == "".join(text.split())
    for block in blocks:
        check_places(text, block)


def check_places(text: str, block: Block) -> None:
    assert (block.kind == HIDDEN) == (not block.pieces)
    readable = ReadableText.join(block.pieces)
    at = start = 0
    for run in readable.runs:
        assert run.at >= at and run.start >= start and run.n > 0
        assert block.start <= run.start < run.end <= block.end
        at, start = run.at + run.n, run.end
        shown, source = readable.text[run.at : at], text[run.start : run.end]
        assert len(source) != run.n or shown.split() == source.replace("\0", "\ufffd").split()
        assert readable.source_of(run.at, at) == (run.start, run.end)


@pytest.mark.parametrize(
    "part", ["[a](b) ", "`a` ", "*a ", "<b>", "[", "![", "| a ", "<table>\n\n", "a\\_", "&amp;", "> ", "- "]
)
def test_a_text_that_repeats_anything_is_read_in_linear_time(part: str) -> None:
    seconds = []
    for n in (2_000, 16_000):
        start = time.process_time()
        read_structure(part * n)
        seconds.append(time.process_time() - start)
    assert seconds[1] < 24 * seconds[0] + 1


DIVIDED = [
    ("Lund met Piet in Brant-\nwick, a well-known man, a well-\nknown one.", "Brantwick", "Brant-\nwick"),
    ("> in Nord\u00ad\n> werk today", "Nordwerk", "Nord\u00ad\n> werk"),
    ("- with Jean-\n  Pierre", "Jean-Pierre", "Jean-\n  Pierre"),
    ("in O\u200cslo and \u200eOslo", "Oslo", "O\u200cslo"),
    ("| a |\n|---|\n| Nord\u00adwerk |", "Nordwerk", "Nord\u00adwerk"),
]


@pytest.mark.parametrize(("text", "word", "written"), DIVIDED)
def test_a_divided_word_is_one_word_and_known_in_the_source(text: str, word: str, written: str) -> None:
    readable = read_structure(text).readable
    place = readable.text.index(word)
    assert text[slice(*(readable.source_of(place, place + len(word)) or (0, 0)))] == written
    assert "wellknown" not in readable.text
