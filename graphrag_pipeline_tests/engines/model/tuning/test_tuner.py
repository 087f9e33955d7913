from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.engines.model.extraction.reply_records import (
    ExtractedEntity,
    ExtractedRelationship,
    parse_graph_reply,
)
from graphrag_pipeline.engines.model.tuning.requests import Description, Example, RatingScale
from graphrag_pipeline.engines.model.tuning.sampling import Passage
from graphrag_pipeline.engines.model.tuning.tuner import TUNED_PROMPTS, choose_base, compose_prompts
from graphrag_pipeline.models.prompts import Prompt, load_prompt

BASES = {name: load_prompt(None, name) for name in TUNED_PROMPTS}
SHIPS = Description("ships", "German", "You are a captain.")
PASSAGE = Passage("u", "d", "The Alma left Lunn.", frozenset(), "en")
EXAMPLE = Example(
    PASSAGE,
    (ExtractedEntity("Alma", "SHIP", "The Alma left."), ExtractedEntity("Lunn", "PORT", "Lunn is a port.")),
    (ExtractedRelationship("Alma", "Lunn", "The Alma left Lunn.", 7.0),),
    1.0,
)


def render(name: str, text: str, tmp_path: Path, **values: str) -> str:
    (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    return load_prompt(tmp_path, name).render(**values)


def test_an_example_is_in_the_format_that_replies_are_read_in() -> None:
    text = compose_prompts(BASES, SHIPS, None, [EXAMPLE])["extract_graph"]
    shown = text.partition(f"Passage: {PASSAGE.text}\n")[2].partition("The passage to read")[0]
    read = parse_graph_reply(shown)
    assert (read.entities, read.relationships) == (EXAMPLE.entities, EXAMPLE.relationships) and read.is_complete


def test_without_scale_and_examples_the_rest_of_the_base_stays() -> None:
    texts = compose_prompts(BASES, SHIPS, None, [])
    for name, base in BASES.items():
        lead = "You are a captain.\nThe texts are from a collection about ships, mostly in German.\n\n"
        assert texts[name] == lead + base.text


def test_a_language_that_is_not_known_is_left_out() -> None:
    texts = compose_prompts(BASES, Description("ships", "", "You are a captain."), None, [])
    assert all(
        text.startswith("You are a captain.\nThe texts are from a collection about ships.\n") for text in texts.values()
    )


@given(st.text("{}ab_ ", min_size=1, max_size=20))
def test_braces_of_the_corpus_are_rendered_as_they_are(tmp_path_factory, text: str) -> None:
    folder = tmp_path_factory.getbasetemp()
    scale = RatingScale(f"how {text}", "low", "high")
    composed = compose_prompts(BASES, Description(f"x{text}x", "German", "You."), scale, [])
    values = dict.fromkeys(set().union(*(base.placeholders for base in BASES.values())), "V")
    rendered = {name: render(name, composed[name], folder, **values) for name in BASES}
    assert all(f"x{text}x" in shown for shown in rendered.values())
    assert f"how {text}, from 0 (low) to 10 (high)" in rendered["community_report"]


def test_the_users_prompt_is_the_base_if_it_has_the_places() -> None:
    default = BASES["extract_graph"]
    mine = Prompt("extract_graph", default.text.replace("RULES", "MY RULES"), "1", "mine")
    other = Prompt("extract_graph", "Find {entity_types} in {input_text}", "2", "other")
    plain = Prompt("extract_graph", default.text + '{"a": 1}', "3", "plain")
    assert choose_base(mine, default) is mine
    assert choose_base(other, default) is choose_base(plain, default) is default
