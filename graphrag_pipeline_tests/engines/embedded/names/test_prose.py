from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.engines.embedded.extraction import read_document
from graphrag_pipeline.engines.embedded.names.prose import holds_prose, mask_code
from graphrag_pipeline.text.structure import CODE, ReadableText, read_structure


def _seen(text: str) -> str:
    pieces = (piece for block in read_structure(text).blocks if block.kind != CODE for piece in block.pieces)
    return " ".join(mask_code(ReadableText.join(pieces).text).replace("¤", " ").split())


@pytest.mark.parametrize(
    "code",
    [
        "CREATE TABLE products (\n    product_no integer,\n    name text,\n    price numeric CHECK (price > 0)\n);",
        ">>> from decimal import Decimal",
        "$ git bisect start HEAD v2.6.25",
        "diff --git a/Makefile b/Makefile",
        " Bitmap Heap Scan on tenk1  (cost=5.07..229.20 rows=101 width=244)\n   Recheck Cond: (unique1 < 100)",
        "```python\nScrooge = Clerk()\n```",
        "    CFLAGS = -Wall -g\n    INSTALL = install",
        "struct Point { int X; int Y; };",
        "ATHENA.MIT.EDU",
    ],
)
def test_code_is_masked_and_the_prose_around_it_is_not(code: str) -> None:
    text = f"The planner of the database reads the table.\n\n{code}\n\nScrooge was a man of business.\n"
    assert _seen(text) == "The planner of the database reads the table. Scrooge was a man of business."


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ('See [the manual](https://example.org/Manual "Permalink") of Scrooge.', "See the manual of Scrooge."),
        ("Installed in /usr/share/doc/README by Debian.", "Installed in by Debian."),
        ("The <em>Ghost</em> of Marley spoke.", "The Ghost of Marley spoke."),
        ("Emulates Objects/classobject.c of Python.", "Emulates of Python."),
        ("Use :class:`Thread` in the program.", "Use Thread in the program."),
        ("File: gnupg.info,  Node: Options,  Prev: Commands,  Up: Top\n\nMarley ran it.", "Marley ran it."),
        ("...-Y-BBC-X1-X2-X3-BFC-Z-... is the graph of Marley.", "is the graph of Marley."),
        ("Set `PNG_ALPHA_MODE` to the **value** of _Marley_ now.", "Set PNG_ALPHA_MODE to the value of Marley now."),
    ],
)
def test_markup_addresses_and_paths_are_masked(text: str, seen: str) -> None:
    assert _seen(text) == seen


@pytest.mark.parametrize(
    "text",
    [
        "Revenue: $5.2 billion\nNet income: $1.1 billion (+4 %)\nEarnings per share: $2.10",
        "'He's a comical old fellow,' said Scrooge's nephew, 'that's the truth;",
        "Tyger Tyger, burning bright;\nIn the forests of the night;",
        "| Name | Office |\n|---|---|\n| Ruth Abara | Town clerk |",
        "Linus Torvalds <torvalds@example.org>\nJunio Hamano <junio@example.org>",
        "PET/CT shows the extent of the lymphoma; TCP/IP and GNU/Linux do not.",
        "Annual report 2023\n==================\n\nThe Company grew.",
    ],
)
def test_prose_tables_poems_and_lists_stay(text: str) -> None:
    assert mask_code(text) == text


@given(st.text(alphabet="aB .;={}()<>$_/\\`\n-:|", max_size=120))
def test_every_place_and_line_break_stays(text: str) -> None:
    masked = mask_code(text)
    assert len(masked) == len(text)
    assert [place for place, c in enumerate(masked) if c == "\n"] == [
        place for place, c in enumerate(text) if c == "\n"
    ]
    assert all(a in (b, " ", "¤") for a, b in zip(masked, text, strict=True))


def test_names_of_a_listing_are_no_entities() -> None:
    text = (
        "The query planner of the database chooses a plan. A planner estimates rows.\n\n"
        "EXPLAIN SELECT * FROM tenk1 WHERE unique1 = 42;\n\n"
        " Index Scan using tenk1_unique1 on tenk1  (cost=0.29..8.30 rows=1 width=244)\n   Index Cond: (unique1 = 42)\n"
    )
    sentences, _ = read_document("plan", text)
    assert {o.title for s in sentences for o in s.occurrences} <= {"PLANNER", "QUERY PLANNER", "DATABASE"}


def test_feet_and_heads_of_pages_are_no_prose() -> None:
    page = "The server sends a reply.\n\nHill      Standards Track      [Page {}]\n\n\nRFC 9      Reply      1999\n\n"
    text = "".join(page.format(n) for n in range(1, 5)) + "Hill wrote it. See the sheet on page 3\n"
    masked = mask_code(text)
    assert len(masked) == len(text) and masked.count("\n") == text.count("\n")
    assert "Standards Track" not in masked and "RFC" not in masked
    assert masked.count("The server sends a reply.") == 4 and "Hill wrote it." in masked
    assert mask_code(page.format(1)) == page.format(1)


def test_a_long_text_with_kept_lines_is_prose_and_a_long_listing_is_not() -> None:
    assert holds_prose(["Haproxy is a proxy that the administrator of a site runs for it."] * 30)
    assert not holds_prose(["const port = read(proxy); // the port of the proxy", "return {port: port};"] * 30)
