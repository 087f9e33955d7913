"""JSON of models: every string gives values that are safe to store, or none."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from graphrag_pipeline.models.ports import ReplyFormatError
from graphrag_pipeline.models.reply_json import (
    LARGEST,
    MAX_DEPTH,
    clean_text,
    describe_schema,
    json_schema_format,
    keep_whole_values,
    parse_reply,
    read_json,
)
from graphrag_pipeline_tests.support.thoroughness import repetitions


class Finding(BaseModel):
    summary: str
    explanation: str = ""


class RatedReply(BaseModel):
    title: str
    rating: float = Field(ge=0, le=10)
    findings: list[Finding]


WHOLE = '{"title": "The Cratchits", "rating": 7, "findings": [{"summary": "s", "explanation": "e"}]}'


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        f"```json\n{WHOLE}\n```",
        f"```\n{WHOLE}",
        f"Here is the report:\n\n{WHOLE}\n\nI hope this helps!",
        WHOLE[:-1] + ",}",
        WHOLE[:-3],
        WHOLE.replace('"', "'"),
    ],
)
def test_a_report_is_read_in_any_wrapping(text: str) -> None:
    report = parse_reply(text, RatedReply)
    assert (report.title, report.rating, report.findings[0].summary) == ("The Cratchits", 7, "s")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no JSON object"),
        ("I cannot do that.", "no JSON object"),
        ("[1, 2]", "no JSON object"),
        ('{"title": "x", "rating": 70, "findings": []}', "rating: Input should be less than or equal to 10"),
        ('{"title": "x", "rating": NaN, "findings": []}', "rating"),
        ('{"title": "x", "rating": 1e999, "findings": []}', "rating"),
        ('{"title": "x", "findings": []}', "rating: Field required"),
        ('{"a":' * 2000 + "1" + "}" * 2000, "no JSON object"),
        ("{" * 100_000, "no JSON object"),
        ('{"title": "' + "\\u0000" * 100_000, "rating: Field required"),
    ],
    ids=range(10),
)
def test_an_invalid_report_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ReplyFormatError, match=reason):
        parse_reply(text, RatedReply)


def test_an_example_before_the_report_is_skipped() -> None:
    assert parse_reply(f'As in {{"title": "..."}}, here is mine [Data: Reports (1)]:\n{WHOLE}', RatedReply).rating == 7


def test_a_strict_schema_requires_all_keys_and_allows_no_others_at_any_depth() -> None:
    format = json_schema_format(RatedReply, "report")["json_schema"]
    finding = format["schema"]["$defs"]["Finding"]
    assert (format["name"], format["strict"]) == ("report", True)
    assert (finding["required"], finding["additionalProperties"]) == (["summary", "explanation"], False)
    assert "default" not in finding["properties"]["explanation"]
    assert set(format["schema"]["properties"]) == {"title", "rating", "findings"}  # a key called title is a key


def test_a_schema_in_words_is_the_same_schema() -> None:
    words = describe_schema(json_schema_format(RatedReply))
    assert words.startswith("Answer with one JSON object")
    assert json.loads(words.partition("\n")[2]) == json_schema_format(RatedReply)["json_schema"]["schema"]
    assert describe_schema({"type": "json_object"}) == "Answer with one JSON object and nothing else."


SIZE = repetitions(200_000, thorough=2_000_000)


class Rated(BaseModel):
    name: str
    rating: float


def fill(part: str, before: str = "") -> str:
    return before + part * (SIZE // len(part))


HOSTILE_REPLIES = (
    # nothing, or next to it
    "", " \n\t ", "\x00", "\ud800", "\ufeff", "null", "NaN", "{", "[", "}", '"', "```json\n```", "{}", "[]",
    # deep
    fill("["), fill("{"), fill('{"a":'), fill('[{"a":'), "[" * SIZE + "]" * SIZE, '{"a":' * 5000 + "1" + "}" * 5000,
    "[" * 60 + "1" + "]" * 60, '{"a": ' + "[" * 49 + "}",
    # numbers
    '{"a": NaN, "b": Infinity, "c": -Infinity, "d": 1e999, "e": -1e999}', '{"a": ' + "9" * SIZE + "}",
    '{"a": -' + "9" * 9000, '{"a": 1e' + "9" * 9000 + "}", '{"a": 0x1F}', '{"a": 007}', '{"a": 1_000}', '{"a": ١٠}',
    # characters
    '{"\u202ea\u202c": "\u202eEGOORCS"}', '\u200b{\u200b"a"\ufeff:\u2060"\u200bx\u200b"}', '{"a": "\\ud800\\u0000"}',
    '{"a": "\ud83d"}', '{"a": "e' + "\u0301" * 5000 + '"}', '{"a": "\U0001f469\u200d\U0001f467"}',
    '{"a": "\x00\x1b[0m"}', "{“a”: “b”}", "{'a': 'it''s'}",
    # cut off
    '{"a": "b', '{"a": [1, {"b": ', '{"a": "\\u00', '{"a": tru', '{"a": "b", ', '```json\n{"a": 1',
    # large
    json.dumps({"a": fill("long ")}), fill('{"a": 1}\n'), fill('{"a": 1}\n', '{"a" 1}'), fill("{} "),
    fill("x {b} "), fill("}{1", '{"\\'), fill('{] "'), fill("{b c]", '" : ": '), fill('[{"a":"b" ', '{"a": "'),
    fill('{"a": "', '{"a": "'), fill('"', '{"a": '), fill("```"), fill("\\", '{"a": "'), fill(", ", "[{"),
    fill('a: "b", ', "["), fill("\u200b", '{"a": 1'), fill(" ", "{") + '"a": 1}',
)  # fmt: skip


def is_safe(value: Any, depth: int = 0) -> bool:
    if isinstance(value, dict | list):
        items = [*value, *value.values()] if isinstance(value, dict) else value
        return depth < MAX_DEPTH and all(is_safe(item, depth + 1) for item in items)
    if isinstance(value, str):
        return clean_text(value).encode() == value.strip().encode()
    return value is None or (math.isfinite(value) and abs(value) <= LARGEST)


@pytest.mark.parametrize("reply", HOSTILE_REPLIES, ids=range(len(HOSTILE_REPLIES)))
def test_a_hostile_reply_gives_safe_values_or_a_format_error(reply: str) -> None:
    assert len(HOSTILE_REPLIES) > 50
    values = read_json(reply)
    assert all(isinstance(value, dict | list) and is_safe(value) for value in values)
    try:
        parse_reply(reply, Rated)
    except ReplyFormatError as error:
        assert len(str(error)) < 2000


marks = st.sampled_from(
    [*"{}[]\",:'\\", "```", "\n", '"a": ', "1", "9" * 40, "NaN", "1e999", "true", "/*", "#", "“", "\u202e"]
)


@given(st.lists(marks | st.text(max_size=5), max_size=60).map("".join), st.sampled_from(["", "{", '{"a": [', "["]))
def test_no_string_raises(reply: str, before: str) -> None:
    assert all(is_safe(value) for value in read_json(before + reply))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(-1e29, 1e29) | st.text("ab{}[]\"',:`\\ é萧"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab{\"'"), inner, max_size=4),
    max_leaves=20,
)


@given(st.lists(st.dictionaries(st.text("ab"), json_values, max_size=3), min_size=1, max_size=3))
def test_correct_json_is_read_unchanged(objects: list[dict[str, Any]]) -> None:
    reply = "Here:\n```json\n" + "\n".join(map(json.dumps, objects)) + "\n```\nDone (see [Data: Reports (1)])."
    assert read_json(reply) == objects


@pytest.mark.parametrize(
    ("reply", "values"),
    [
        ('{"a": NaN, "b": 1e999, "c": -Infinity}', [{"a": None, "b": LARGEST, "c": -LARGEST}]),
        ('{"a": ' + "9" * 5000 + "}", [{"a": LARGEST}]),
        ('\u200b{"a\u200b": "\u202ex\\u202c"}', [{"a": "x"}]),
        ('{"a": "b", }', [{"a": "b"}]),
        ('{"a": ["b", {"c": "d', [{"a": ["b", {"c": "d"}]}]),
        ('{"a": 1}\n{"a": 2}\n{"a": 3', [{"a": 1}, {"a": 2}, {"a": 3}]),
        ('As [2, +more] and {so on} say: {"a": "```x```"}', [{"a": "```x```"}]),
        ("[" * 51 + "]" * 51, []),
    ],
)
def test_unusual_json_is_read(reply: str, values: list[Any]) -> None:
    assert read_json(reply) == values


@pytest.mark.parametrize(
    ("cut", "kept"),
    [
        (
            '{"title": "A", "findings": [{"summary": "one"}, {"summary": "tw',
            {"title": "A", "findings": [{"summary": "one"}]},
        ),
        ('{"title": "A", "findings": [{"summary": "one", "tags": ["x", "y', {"title": "A", "findings": []}),
        ('{"rating": 3, "reason": "It na', {"rating": 3}),
        ('Here it is:\n```json\n{"rating": 3, "reason": "a, {b"}\n', {"rating": 3, "reason": "a, {b"}),
        ('{"rating": 3, "reason": "a \\"quoted\\" wo', {"rating": 3}),
        ('{"rating"', {}),
    ],
)
def test_the_last_part_of_a_cut_reply_is_left_out(cut, kept):
    assert read_json(keep_whole_values(cut)) == [kept]


LEAVES = st.one_of(st.integers(0, 999), st.text('ab{}[],"\\ ', max_size=8))
DOCUMENTS = st.dictionaries(
    st.text("abc", min_size=1, max_size=3),
    st.one_of(LEAVES, st.lists(st.dictionaries(st.just("x"), LEAVES), max_size=3)),
)


@given(DOCUMENTS, st.integers(0, 200))
def test_whatever_is_kept_of_a_cut_reply_was_in_it(document, length):
    text = json.dumps(document)[:length]
    for kept in read_json(keep_whole_values(text)):
        for key, value in kept.items():
            whole = document[key]
            assert value == whole[: len(value)] if isinstance(whole, list) else value == whole


@pytest.mark.parametrize("reply", HOSTILE_REPLIES)
def test_hostile_replies_are_cut_back_in_linear_time(reply):
    kept = keep_whole_values(reply)
    assert reply.startswith(kept.rstrip("]}"))
    assert len(kept) <= 2 * len(reply)
