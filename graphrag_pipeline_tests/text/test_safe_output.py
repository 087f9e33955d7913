"""Text of documents reaches terminals without control characters, and Dagster's markdown without images and links."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from graphrag_pipeline.text.safe_output import as_code_block, escape_controls, escape_json_controls, neutralize_markdown

MARKDOWN = MarkdownIt("commonmark").enable("table")
PIECES = [*"[]()<>!\\`*_:#&;|\n \"'", "http://a.example/x.png", "img src=x", "&lt;", "a", "[1]: ", "![", "](", "&#91;"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b2J", r"\x9b2J"),
        ("real\rfake", r"real\x0dfake"),
        ("abc\u202etxt.exe", r"abc\u202etxt.exe"),
        ("abc\u2067txt.exe\u2069", r"abc\u2067txt.exe\u2069"),
        ("a\tb\nc é 東 👩\u200d👧", "a\tb\nc é 東 👩\u200d👧"),
    ],
)
def test_control_characters_are_shown_and_other_text_stays(text: str, shown: str) -> None:
    assert escape_controls(text) == shown


@given(st.text())
def test_json_keeps_its_value(text: str) -> None:
    written = escape_json_controls(json.dumps({"text": text}, ensure_ascii=False))
    assert json.loads(written) == {"text": text}
    assert escape_controls(written) == written


@pytest.mark.parametrize(
    "text",
    [
        "![x](http://evil.example/pixel.png)",
        "[click](http://evil.example)",
        r"\[click\](http://evil.example)",
        "see [1]\n\n[1]: http://evil.example",
        "<img src='http://evil.example/p.png'>",
        "<http://evil.example>",
        "&lt;img src=x>",
    ],
)
def test_no_image_link_or_html_is_left(text: str) -> None:
    assert kinds(neutralize_markdown(text)) & {"image", "link_open", "html_inline", "html_block"} == set()


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_no_text_makes_an_image_link_or_html(text: str) -> None:
    assert kinds(neutralize_markdown(text)) & {"image", "link_open", "html_inline", "html_block"} == set()


@pytest.mark.parametrize(
    "text",
    [
        "https://evil.example",
        "www.evil.example",
        "me@evil.example",
        "HTTP://evil.example",
        "_https://evil.example",
        "1https://evil.example",
        "_www.evil.example",
        "me+@evil.example",
        "me.@evil.example",
        "me-@evil.example",
    ],
)
def test_bare_addresses_are_broken_and_look_the_same(text: str) -> None:
    shown = neutralize_markdown(f"See {text}.")
    assert text not in shown and shown.replace("\u2060", "") == f"See {text}."


@given(st.lists(st.sampled_from([*PIECES, "```", "\n```\n", "````", "\r", "~~~"])).map("".join))
def test_no_text_ends_its_block_of_code(text: str) -> None:
    assert [token.type for token in MARKDOWN.parse(as_code_block(text, "diff"))] == ["fence"]


def test_emphasis_lists_and_markers_stay() -> None:
    shown = MARKDOWN.render(neutralize_markdown("# Title\n\n- **Scrooge** [1]\n"))
    assert shown == "<h1>Title</h1>\n<ul>\n<li><strong>Scrooge</strong> [1]</li>\n</ul>\n"


def kinds(markdown: str) -> set[str]:
    tokens = MARKDOWN.parse(markdown)
    return {token.type for token in tokens} | {child.type for token in tokens for child in token.children or []}
