"""What an endpoint's error means: too long, not served, about the form of the reply, or worth another attempt."""

from __future__ import annotations

from base64 import b64encode

import pytest

from graphrag_pipeline.models.endpoints.problems import Problem, describe_problem
from graphrag_pipeline.models.ports import ReplyFormatError

TOO_LONG = [
    (400, "This model's maximum context length is 8192 tokens, however you requested 9000 tokens."),
    (400, "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the "
          "messages, 1000 in the completion)."),
    (400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096."),
    (400, "request (4338 tokens) exceeds the available context size (2048 tokens), try increasing it"),
    (500, "the request exceeds the available context size. try increasing the context size or enable context shift"),
    (500, "input (807 tokens) is too large to process. increase the physical batch size (current batch size: 512)"),
    (500, "input is too large to process. increase the physical batch size"),
    (400, "the input length exceeds the context length"),
    (500, "the input length exceeds the context length"),
    (400, "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context "
          "length of only 4096 tokens"),
    (413, "Input validation error: `inputs` must have less than 512 tokens. Given: 807"),
    (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens"),
    (400, "input must have less than 512 tokens"),
    (400, "Requested tokens (2113) exceed context window of 2048"),
    (400, "prompt is too long: 210000 tokens > 200000 maximum"),
    (400, "Input length 700 exceeds maximum allowed token size 512"),
    (413, "Payload Too Large"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "message"), TOO_LONG)
def test_a_prompt_or_text_is_too_long_in_any_words(status: int, message: str) -> None:
    problem = Problem(message, status)
    assert problem.is_too_long and not problem.is_worth_retrying and not problem.is_fatal


LONG = "sk-test-0123456789abcdef-very-secret"


@pytest.mark.parametrize(
    ("key", "text", "shown"),
    [("x", "the context of x is exceeded: x.", "the context of *** is exceeded: ***."),
     ("test", "test-chat has no latest test", "test-chat has no latest ***"), ("none", "none of them", "none of them"),
     *((LONG, f"for {form}.", "for ***.") for form in
       (LONG.upper(), " ".join(LONG), LONG.replace("-", ""), LONG.encode().hex(), b64encode(LONG.encode()).decode())),
     (LONG, f"for {b64encode(f'x:{LONG}'.encode()).decode()}", "for eDp***Q="),
     ("sk-12345", "key:sk-12345abc", "key:***abc"), ("a" * 12 + "b" * 12, "a" * 12 + "x" + "b" * 12, "***x***")],
)  # fmt: skip
def test_a_key_is_in_no_message_and_a_short_one_hides_no_other_word(key: str, text: str, shown: str) -> None:
    assert str(describe_problem(ReplyFormatError(text), [key], 1.0)) == shown


NOT_SERVED = [
    (501, "This server does not support embeddings. Start it with `--embeddings`"),
    (501, "Not Implemented"),
    (405, "Method Not Allowed"),
    (500, "this model does not support embeddings"),
    (400, "Pooling type 'none' is not OAI compatible. Please use a different pooling type"),
    (400, "The model does not support Chat Completions"),
    (500, "embeddings are not implemented"),
]


@pytest.mark.parametrize(("status", "message"), NOT_SERVED)
def test_what_a_server_does_not_serve_ends_the_run(status: int, message: str) -> None:
    assert Problem(message, status).is_fatal


FORMAT = [
    (400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."),
    (400, "'response_format.type' must be 'json_schema' or 'text'"),
    (400, "registry.ollama.ai/library/tiny:latest does not support tools"),
    (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    (500, "tools param requires --jinja flag"),
    (501, "guided decoding is not implemented"),
    (400, "failed to parse grammar"),
]


@pytest.mark.parametrize(("status", "message"), FORMAT)
def test_a_form_of_reply_that_is_not_supported_is_neither_retried_nor_fatal(status: int, message: str) -> None:
    problem = Problem(message, status)
    assert problem.is_about_format and not problem.is_worth_retrying and not problem.is_fatal


SCHEMA_TYPE = [
    (FORMAT[0][1], True),
    ('"response_format" type must be one of "text" or "json_object", but got: json_schema', True),
    ("This model does not support response format `json_schema`.", True),
    ("This response_format type is unavailable now", True),
    ("Input should be 'text' or 'json_object'; response_format", True),
    (
        "Invalid schema for response_format 'Rating': In context=('properties', 'why'), 'maxLength' is not permitted",
        False,
    ),
    ("response_format.json_schema.schema: maxItems is not supported", False),
    ("failed to parse grammar", False),
]


@pytest.mark.parametrize(("message", "is_type"), SCHEMA_TYPE)
def test_a_refusal_of_all_schemas_differs_from_that_of_a_part(message: str, is_type: bool) -> None:
    problem = Problem(message, 400)
    assert problem.is_about_format and problem.is_about_schema_type == is_type


TEMPORARY = [
    (500, "internal error"), (503, "Loading model"), (502, "bad gateway"), (429, "Request too large for the limit on "
     "tokens per min: the maximum context is used"), (408, "timeout"), (500, "CUDA out of memory")]  # fmt: skip


@pytest.mark.parametrize(("status", "message"), TEMPORARY)
def test_other_errors_of_the_server_are_worth_another_attempt(status: int, message: str) -> None:
    problem = Problem(message, status)
    assert problem.is_worth_retrying and not problem.is_too_long and not problem.is_fatal
