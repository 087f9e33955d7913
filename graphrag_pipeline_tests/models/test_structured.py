"""JSON replies: strict schemas, and tolerant reading of invalid ones."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel, Field

from graphrag_pipeline.models.ports import ReplyFormatError
from graphrag_pipeline.models.structured import describe_schema, json_schema_format, parse_reply


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
