"""What counts as a copy of a prompt, in the bundled prompts and in those of users."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.engines.model.answers.points import HEADER
from graphrag_pipeline.indexing.reports import context_text
from graphrag_pipeline.models.prompt_echoes import PromptEchoes, shows_context
from graphrag_pipeline.models.prompts import PROMPT_NAMES, load_prompt
from graphrag_pipeline.query.rendering import ContextStyle, heading_of


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
        ("community_report", "The community is led by Leonie Akabua."),
        ("global_search_map", "The reports say that the fire began in a store room."),
        ("drift_follow_up", "Which question did the marshal leave open?"),
        ("extract_graph", "Tarnby is a harbour town."),
        ("community_report", ""),
    ],
)
def test_text_about_the_data_is_none(prompt: str, value: str) -> None:
    assert not echoes_of(prompt).holds(value)


FACTS = [f"Heron {n} was built in 19{n:02} by Ines Calvo for the harbour of Tarnby and its ferry." for n in range(12)]


@pytest.mark.parametrize("n", [1, 2, 4, 6, 12])
def test_a_filled_prompt_is_an_echo_however_much_data_follows(n: int) -> None:
    prompt = load_prompt(None, "summarize_descriptions")
    shown = json.dumps(FACTS[:n])
    copy = prompt.render(entity_name="HERON", description_list=shown, max_length="500", language="Write in English.")
    for value in (copy, copy[len(copy) // 5 :], f"{FACTS[0]} {copy}"):
        assert prompt.echoes.holds(value, shown) and prompt.echoes.is_copied(value, shown)
    assert not any(prompt.echoes.holds(value, shown) for value in (" ".join(FACTS[:n]), shown))


@pytest.mark.parametrize("name", PROMPT_NAMES)
def test_each_long_instruction_makes_a_copy_of_a_long_text(name: str) -> None:
    prompt = load_prompt(None, name)
    lines = [line for line in prompt.text.splitlines() if re.match(r"- (?!.*[{\[(])", line) and len(line.split()) > 12]
    assert all(prompt.echoes.is_copied(f"{FACTS[0]} {line} {' '.join(FACTS)}") for line in lines)
    assert not any(prompt.echoes.is_copied(f"{FACTS[0]} {line} {FACTS[1]}", line) for line in lines), "the data says it"
    assert not prompt.echoes.is_copied(" ".join(FACTS))


@pytest.mark.parametrize(
    "value",
    [
        "The descriptions below, written about Heron, disagree: one says 1962, another 1965.",
        "Readers judge what the community is about by its harbour; its entities hang together by the ferry.",
        "Reports, entities, relationships and claims about Heron are kept in the harbour office.",
        "Keep every fact; say it once, wrote Heron to the clerk of Tarnby, who printed it in the harbour gazette.",
    ],
)
def test_prose_that_shares_some_words_with_a_prompt_is_no_copy(value: str) -> None:
    assert not any(echoes_of(name).is_copied(value) for name in PROMPT_NAMES)


HEADERS = [
    context_text._COMMUNITY_HEADER,
    context_text._REPORTS_HEADER,
    context_text._ENTITIES_HEADER,
    context_text._RELATIONSHIPS_HEADER,
    context_text._CLAIMS_HEADER,
    HEADER,
    *(heading_of(part, ContextStyle()) for part in ("reports", "entities", "relationships", "claims", "text_units")),
]


@pytest.mark.parametrize("header", HEADERS)
def test_headings_of_tables_in_prompts_are_seen_on_one_line_and_apart(header: str) -> None:
    prompt, data = echoes_of("community_report"), header + "1,Heron,A tower."
    assert prompt.holds(data, data) and prompt.holds(" ".join(data.split()), data)
    assert shows_context(header.splitlines()[0])
    assert shows_context(header.splitlines()[1]) or header.count("|") == 1


def test_what_the_data_holds_word_by_word_is_none() -> None:
    value = "Ines Calvo opened the Brill Observatory and ran it."
    assert echoes_of("extract_graph").holds(value)
    assert not echoes_of("extract_graph").holds(value, f"It is known: {value} So it is.")


def test_examples_of_a_users_prompt_count_with_delimiters_as_placeholders() -> None:
    prompt = PromptEchoes(
        '{{"title": "Verdant Oasis"}}\n("entity"{tuple_delimiter}MIRA{tuple_delimiter}GEO)\n{input_text}'
    )
    assert prompt.holds("verdant oasis") and prompt.example_names == {"MIRA"}
    assert not prompt.holds("title") and not prompt.holds("input_text")
    assert not PromptEchoes("Write about {input_text} at most").holds("Write about at most")


def test_characters_of_scripts_without_spaces_count_half() -> None:
    prompt = PromptEchoes("\u8bf7\u7528\u4e00\u53e5\u8bdd\u8bf4\u660e\u7406\u7531 {input_text}")
    assert prompt.holds("\u7528\u4e00\u53e5\u8bdd\u8bf4\u660e\u7406\u7531")
    assert not prompt.holds("\u8bf4\u660e\u7406\u7531")


@given(st.sampled_from(PROMPT_NAMES), st.text(max_size=60))
def test_any_text_is_judged(name: str, value: str) -> None:
    assert echoes_of(name).holds(value, value) is False
