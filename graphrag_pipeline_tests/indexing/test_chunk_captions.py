"""Captions stay with what they caption, in many layouts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_pipeline.indexing.chunk_aggregation import CaptionedChunk, join_captions
from graphrag_pipeline.settings.settings import TextUnitsSettings

Part = tuple[str, str]
RULES = TextUnitsSettings(aggregation_target=32, aggregation_max=40, aggregation_max_pages=3)
WORDS: Part = ("paragraph", "The mayor came in spring.")
MAP: Part = ("figure", "[map]")
BRIDGE: Part = ("paragraph", "![a bridge](bridge.png)")
LOTS: Part = ("table", "| lot | price |\n|---|---|\n| 1 | 20 |")
SHIPS: Part = ("table", "| ship | port |\n|---|---|\n| Ann | Hull |")


def caption(text: str) -> Part:
    return "caption", text


def chunks_of(parts: list[Part], pages: list[int] | None = None) -> tuple[str, list[dict[str, Any]]]:
    """Return the text and the chunks of (type, text)."""
    chunks, text = [], ""
    for place, (kind, part) in enumerate(parts):
        text += "\n\n" if text else ""
        page = pages[place] if pages else 1
        chunks.append({"type": kind, "page": page, "start": len(text), "end": len(text) + len(part), "id": None})
        text += part
    return text, chunks


def join(parts: list[Part], pages: list[int] | None = None, rules: TextUnitsSettings = RULES) -> list[CaptionedChunk]:
    return join_captions(*chunks_of(parts, pages), rules)


def groups_of(parts: list[Part], pages: list[int] | None = None, rules: TextUnitsSettings = RULES) -> list[list[str]]:
    """Return the texts of the chunks that stay together."""
    text, chunks = chunks_of(parts, pages)
    spans = [chunk.span for chunk in join_captions(text, chunks, rules)]
    texts = [(chunk["start"], text[chunk["start"] : chunk["end"]]) for chunk in chunks]
    return [[part for start, part in texts if span[0] <= start < span[1]] for span in spans]


def beside(*parts: Part) -> list[Part]:
    """Return parts between two paragraphs."""
    return [WORDS, *parts, WORDS]


@pytest.mark.parametrize(
    "parts",
    [
        [BRIDGE, caption("Figure 1: A bridge")],
        [("paragraph", '<img src="bridge.png">'), caption("A bridge")],
        [("image", "![map](map.png)"), caption("Figure 1: A map")],
        [("text", "<!-- image -->"), ("text", "Figure 1. A map")],
        [caption("Figure 1: A map"), MAP],
        [LOTS, caption("Table 1: Lots")],
        [caption("Table 1: Lots"), LOTS],
        [LOTS, ("paragraph", "Table 1: Lots")],
        [LOTS, ("table_caption", "Lots of the sale")],
        [LOTS, caption("Figure 1: Lots")],
        [caption("Figure 1: Lots"), LOTS],
        [caption("Table 1: Lots"), LOTS, caption("Source: the office")],
        [MAP, caption("Figure 1: A map"), caption("seen from the north")],
        [("code", "total = 1"), caption("Listing 1: The total")],
        [("table", "| 名 | 价 |"), caption("表 1：价格")],
        [MAP, LOTS, caption("Figure 2: A map")],
        [caption("Figure 2: Map"), LOTS, caption("Table 3: Lots"), MAP],
    ],
)
def test_a_caption_stays_with_what_it_captions_before_or_behind(parts: list[Part]) -> None:
    assert groups_of(beside(*parts)) == [[WORDS[1]], [text for _, text in parts], [WORDS[1]]]


@pytest.mark.parametrize(
    ("parts", "groups"),
    [
        ([LOTS, caption("Table 1: Lots"), SHIPS], [[0, 1], [2]]),
        ([LOTS, caption("Table 1: Lots"), SHIPS, caption("Figure 1: Ships")], [[0, 1], [2, 3]]),
        ([LOTS, caption("Table 1: Lots"), SHIPS, caption("Table 2: Ships")], [[0, 1], [2, 3]]),
        ([caption("Table 1: Lots"), LOTS, caption("Table 2: Ships"), SHIPS], [[0, 1], [2, 3]]),
        ([MAP, caption("Figure 1: Map"), BRIDGE, caption("Table 1: Lots"), LOTS], [[0, 1], [2], [3, 4]]),
        ([LOTS, caption("Figure 1: Map"), MAP, caption("Figure 2: Bridge"), BRIDGE], [[0], [1, 2], [3, 4]]),
        ([MAP, caption("Figure 1: Map"), LOTS, caption("Table 1: Lots")], [[0, 1], [2, 3]]),
    ],
)
def test_captions_between_two_floats_belong_to_the_one_that_they_name_else_to_the_one_before(
    parts: list[Part], groups: list[list[int]]
) -> None:
    assert groups_of(parts) == [[parts[place][1] for place in group] for group in groups]


def test_a_caption_between_two_tables_follows_the_habit_of_the_document() -> None:
    above = beside(caption("Table 1: Lots"), LOTS)
    between = [LOTS, caption("Table 2: Ships"), SHIPS]
    assert groups_of(between) == [[LOTS[1], "Table 2: Ships"], [SHIPS[1]]]
    assert groups_of([*above, *between])[3:] == [[LOTS[1]], ["Table 2: Ships", SHIPS[1]]]
    named = [caption("Lots"), LOTS, WORDS, LOTS, caption("Ships"), SHIPS]
    assert groups_of(named)[2:] == [[LOTS[1]], ["Ships", SHIPS[1]]]


@pytest.mark.parametrize(
    "text", ["Figure 3 shows the bridge.", "Fig. 3.2 shows it", "Tables are on page 3.", "The map."]
)
def test_a_paragraph_that_speaks_of_a_figure_is_not_a_caption(text: str) -> None:
    assert groups_of([MAP, ("paragraph", text)]) == [["[map]"], [text]]


def test_a_caption_with_nothing_beside_it_is_a_chunk_of_its_own() -> None:
    assert groups_of(beside(caption("Figure 1: A map"))) == [[WORDS[1]], ["Figure 1: A map"], [WORDS[1]]]
    assert groups_of([MAP, WORDS, caption("Figure 1")]) == [["[map]"], [WORDS[1]], ["Figure 1"]]


def test_captions_too_far_or_too_long_stay_alone() -> None:
    long = caption("Figure 1: " + "long " * 60)
    assert groups_of([MAP, long]) == [["[map]"], [long[1]]]
    assert groups_of([MAP, caption("Figure 1")], pages=[1, 9]) == [["[map]"], ["Figure 1"]]
    apart = [caption("Figure 2: Map"), LOTS, caption("Table 3: Lots"), MAP]
    assert groups_of(apart, pages=[1, 1, 1, 9]) == [["Figure 2: Map"], [LOTS[1], "Table 3: Lots"], ["[map]"]]


PARTS = st.sampled_from(
    [WORDS, MAP, BRIDGE, LOTS, SHIPS, ("code", "x = 1"), ("title", "Lots"), ("paragraph", "Figure 4: A bridge"),
     *map(caption, ("A map", "Figure 1: A map", "Table 2: Lots", "Listing 3"))]
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(PARTS, max_size=14), st.integers(16, 80))
def test_every_chunk_is_in_one_group_in_order_and_captions_beside_a_float_are_joined(
    parts: list[Part], most: int
) -> None:
    rules = TextUnitsSettings(aggregation_target=most, aggregation_max=most)
    assert [text for group in groups_of(parts, rules=rules) for text in group] == [text for _, text in parts]
    roomy = TextUnitsSettings(aggregation_target=1000, aggregation_max=1000)
    singles = {chunk.span for chunk in join(parts, rules=roomy) if not chunk.has_captions}
    _, chunks = chunks_of(parts)
    is_float = [kind in ("figure", "table", "code") or text == BRIDGE[1] for kind, text in parts]
    for place, (kind, _) in enumerate(parts):
        near = is_float[max(place - 1, 0) : place] + is_float[place + 1 : place + 2]
        assert kind != "caption" or not any(near) or (chunks[place]["start"], chunks[place]["end"]) not in singles
