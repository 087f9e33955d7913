"""What counts as a copy of a prompt, in the bundled prompts and in those of users."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.models.prompt_echoes import PromptEchoes
from graphrag_pipeline.models.prompts import PROMPT_NAMES, load_prompt


def echoes_of(name: str) -> PromptEchoes:
    return load_prompt(None, name).echoes


@pytest.mark.parametrize(
    ("prompt", "value"),
    [
        ("community_report", "short and specific, with the names of the central entities"),
        ("community_report", "Short and specific, with the names of the central entities."),
        ("community_report", "Title: short and specific, with the names of the central entities"),
        ("community_report", "a paragraph that supports it from the data [Data: Entities (1, 7)]"),
        ("community_report", "A paragraph that supports the claim by the data"),
        ("global_search_map", "What the reports support"),
        ("lazy_subqueries", "a question"),
        ("lazy_subqueries", "b question"),
        ("drift_follow_up", "a question that can be looked up on its own"),
        ("rate_report", "One sentence that says why."),
        ("extract_graph", "Tarn is the place above which the Brill Observatory stands."),
        ("summarize_descriptions", "Keep every fact; say it once."),
    ],
)
def test_example_values_and_instructions_are_echoes(prompt: str, value: str) -> None:
    assert echoes_of(prompt).holds(value)


@pytest.mark.parametrize(
    ("prompt", "value"),
    [
        ("community_report", "Quillon Robotics and Tarnby"),
        ("community_report", "Community Overview"),
        ("community_report", "A paragraph that supports Marley in the data of 1843"),
        ("community_report", "The community is led by Leonie Akabua."),
        ("global_search_map", "The reports say that the fire began in a store room."),
        ("drift_follow_up", "Which question did the marshal leave open?"),
        ("extract_graph", "Tarnby is a harbour town."),
        ("community_report", ""),
    ],
)
def test_text_about_the_data_is_none(prompt: str, value: str) -> None:
    assert not echoes_of(prompt).holds(value)


def test_what_the_data_holds_word_by_word_is_none() -> None:
    value = "Ines Calvo opened the Brill Observatory and ran it."
    assert echoes_of("extract_graph").holds(value)
    assert not echoes_of("extract_graph").holds(value, f"It is known: {value} So it is.")


def test_examples_of_a_users_prompt_count_with_delimiters_as_placeholders() -> None:
    prompt = PromptEchoes(
        '{{"title": "Verdant Oasis"}}\n("entity"{tuple_delimiter}MIRA{tuple_delimiter}GEO)\n{input_text}'
    )
    assert prompt.holds("verdant oasis") and prompt.names("Mira") and not prompt.names("Geo")
    assert not prompt.holds("title") and not prompt.holds("input_text")
    assert not PromptEchoes("Write about {input_text} at most").holds("Write about at most")


def test_characters_of_scripts_without_spaces_count_half() -> None:
    prompt = PromptEchoes("\u8bf7\u7528\u4e00\u53e5\u8bdd\u8bf4\u660e\u7406\u7531 {input_text}")
    assert prompt.holds("\u7528\u4e00\u53e5\u8bdd\u8bf4\u660e\u7406\u7531")
    assert not prompt.holds("\u8bf4\u660e\u7406\u7531")


@given(st.sampled_from(PROMPT_NAMES), st.text(max_size=60))
def test_any_text_is_judged(name: str, value: str) -> None:
    assert echoes_of(name).holds(value, value) is False
