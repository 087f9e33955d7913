"""Limits of structured replies: every text and list of a schema that is sent ends, however long a model would go on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.engines.model import reports
from graphrag_pipeline.engines.model.tuning import requests as tuning
from graphrag_pipeline.evaluation import answer_judging, comparison, generated_questions
from graphrag_pipeline.indexing.graph.semantic_resolution import Pair, verdict_request
from graphrag_pipeline.models.prompts import load_prompt
from graphrag_pipeline.models.reply_json import MOST_CHARACTERS, bound_schema, text_limit
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.understanding import keywords
from graphrag_pipeline_tests.model_server import running_model_server
from graphrag_pipeline_tests.support.models.model_index import open_with_model

WHOLE_REPLY = {"response"}
"""A text that may take the whole reply."""


def unbounded(schema: Any, name: str = "") -> Iterator[str]:
    """The properties of a schema without a limit of their own."""
    if isinstance(schema, list):
        schema = dict(enumerate(schema))
    if not isinstance(schema, dict):
        return
    kind = schema.get("type")
    is_endless = (kind == "string" and "maxLength" not in schema) or (kind == "array" and "maxItems" not in schema)
    if is_endless and "enum" not in schema:
        yield name
    for key, part in schema.items():
        yield from unbounded(part, name if key in ("properties", "items") else str(key))


def resolution_request() -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    shown = {"title": ["A", "B"], "type": ["", ""], "text": ["", ""]}
    request = verdict_request(shown, Pair(0, 1, 0.9), load_prompt(None, "resolve_entities"))
    return request.response_format or {}, request.limits


SENT = {
    "report": (reports.RESPONSE_FORMAT, reports.reply_limits(350)),
    "resolution": resolution_request(),
    "keywords": (keywords.KEYWORDS_FORMAT, keywords.LIMITS),
    "judge": (comparison.VERDICT_FORMAT, comparison.LIMITS),
    "statements": (answer_judging.STATEMENTS_FORMAT, answer_judging.STATEMENTS_LIMITS),
    "tuned corpus": (tuning.CORPUS_FORMAT, tuning.LIMITS),
    "tuned rating": (tuning.RATING_FORMAT, tuning.LIMITS),
    "tuned example": (tuning.EXAMPLE_FORMAT, tuning.EXAMPLE_LIMITS),
    "questions": (generated_questions.FORMATS["local"], generated_questions.limit_questions(3, [7, 9])),
}


@pytest.mark.parametrize("name", SENT)
def test_every_text_and_list_of_a_schema_has_a_limit(name: str) -> None:
    response_format, limits = SENT[name]
    sent = bound_schema(response_format, limits)
    assert list(unbounded(response_format)), "the schema itself has none: it is part of the request key"
    assert list(unbounded(sent)) == []


def test_limits_follow_from_the_words_that_a_report_may_have() -> None:
    assert reports.reply_limits(100)["explanation"] == {"maxLength": 400}
    assert reports.reply_limits(350)["summary"] == {"maxLength": 1400}
    assert reports.reply_limits(1500)["summary"] == text_limit(10**6) == {"maxLength": MOST_CHARACTERS}


def test_generated_questions_cite_only_the_passages_that_are_shown() -> None:
    schema = bound_schema(*SENT["questions"])["json_schema"]["schema"]
    sources = schema["$defs"]["LocalQuestion"]["properties"]["sources"]
    assert sources["items"]["enum"] == [7, 9] and sources["maxItems"] == 2


@pytest.mark.parametrize("method", ["global", "drift", "lazy"])
def test_every_text_and_list_that_a_search_asks_for_has_a_limit(method: str, small: GraphIndex, tmp_path: Path) -> None:
    with running_model_server() as server:
        index = open_with_model(small, tmp_path, server, rating={"engine": "model"})
        index.search("Who haunted Scrooge?", method=method)
        bodies = [call.body for call in server.calls if call.body and call.body.get("response_format")]
    assert bodies
    assert {name for body in bodies for name in unbounded(body["response_format"])} <= WHOLE_REPLY
