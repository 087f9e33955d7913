from __future__ import annotations

import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.engines.model.extraction.reply_records import (
    ExtractedEntity,
    ExtractedRelationship,
    parse_claims_reply,
    parse_graph_reply,
)
from graphrag_pipeline_tests.support.thoroughness import repetitions

letters = string.ascii_letters + string.digits + "äß萧炎م"
words = st.text(letters, min_size=1, max_size=12).filter(lambda word: word.upper() != "NAME")
names = st.lists(words, min_size=1, max_size=3).map(" ".join)
descriptions = st.lists(words, min_size=1, max_size=8).map(" ".join).map("{}.".format)
entities = st.builds(ExtractedEntity, names, words.map(str.upper), descriptions)
pairs = st.builds(ExtractedRelationship, names, names, descriptions, st.integers(1, 100).map(lambda n: n / 10))


def render(record: ExtractedEntity | ExtractedRelationship) -> str:
    if isinstance(record, ExtractedEntity):
        return f'("entity"<|>{record.name}<|>{record.type}<|>{record.description})'
    return f'("relationship"<|>{record.source}<|>{record.target}<|>{record.description}<|>{record.strength})'


@given(st.lists(entities, unique=True), st.lists(pairs, unique=True), st.sampled_from(["##", "\n", "\n##\n", " ## "]))
def test_rendered_records_parse_back(entities, pairs, separator):
    parsed = parse_graph_reply(separator.join(map(render, [*entities, *pairs])) + "\n<|COMPLETE|>")
    assert (parsed.entities, parsed.relationships) == (tuple(entities), tuple(pairs))
    assert parsed.is_complete


marks = [
    "<|>",
    "##",
    "(",
    ")",
    '"',
    "entity",
    "relationship",
    "claim",
    "<|COMPLETE|>",
    "\n",
    "{",
    "}",
    "[",
    "]",
    "9",
    "```",
]


@given(st.lists(st.sampled_from(marks) | st.text(max_size=5), max_size=60).map("".join))
def test_no_string_raises(reply):
    for parse in (parse_graph_reply, parse_claims_reply):
        parsed = parse(reply)
        assert all(0.1 <= pair.strength <= 10 for pair in parsed.relationships)
        assert all(entity.name and entity.type for entity in parsed.entities)


@pytest.mark.parametrize(
    "part", ["<|>", "(", ") ", " ", '("entity"<|>', "(a<|>", "<|COMPLETE", "```", "[", '{"a":', "x", "##("]
)
def test_a_long_reply_takes_linear_time(part):
    started = time.process_time()
    reply = '("entity"<|>A<|>PERSON<|>' + part * (repetitions(500_000, thorough=2_000_000) // len(part))
    parse_graph_reply(reply)
    parse_claims_reply(reply)
    assert time.process_time() - started < 30  # of CPU, as a rule 1 to 3; a square would take hours
