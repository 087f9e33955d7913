from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_pipeline.engines.model.tuning.sample_text import LEAST_SAMPLE, SampleRequest, show_sample
from graphrag_pipeline.engines.model.tuning.sampling import SampledUnit
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.endpoints.windows import count_prompt
from graphrag_pipeline.models.ports import ChatRequest
from graphrag_pipeline.text.tokens import DEFAULT_ENCODING, count_tokens

SENTENCE = "The harbour of Kestrel was built by Maud Harlan in the winter of the long storm."


def units_of(*texts: str) -> list[SampledUnit]:
    return [SampledUnit(f"u{n}", "d", text, count_tokens(text)) for n, text in enumerate(texts)]


def ask(sample: str) -> ChatRequest[str]:
    return ChatRequest("corpus", [{"role": "user", "content": f"Describe this.\n{sample}"}], str)


REQUEST = SampleRequest(ask, units_of(*[" ".join([SENTENCE] * 12)] * 15), 2000, DEFAULT_ENCODING)


@settings(max_examples=20)
@given(st.integers(min_value=150, max_value=3000))
def test_a_prompt_never_exceeds_its_room(room: int) -> None:
    assert count_prompt(REQUEST.fit(room).messages) <= room


def test_a_sample_with_room_is_shown_as_before() -> None:
    assert REQUEST.fit(None) == REQUEST.fit(100_000) == REQUEST.request
    assert REQUEST.request.messages[0]["content"].count("Passage ") == 15


def test_a_small_room_shows_fewer_passages_instead_of_scraps() -> None:
    shown = REQUEST.fit(300).messages[0]["content"]
    assert 3 <= shown.count("Passage ") <= 7 and shown.count(SENTENCE) == shown.count("Passage ")


def test_without_room_for_a_sample_nothing_is_asked() -> None:
    with pytest.raises(PipelineError, match=rf"room for a prompt of 60 tokens: .* less than {LEAST_SAMPLE}"):
        REQUEST.fit(60)


def test_a_refused_request_is_shortened_by_what_the_endpoint_says() -> None:
    shorter = REQUEST.shorten(500)
    assert shorter and count_prompt(shorter.messages) <= count_prompt(REQUEST.request.messages) - 500
    assert REQUEST.shorten(10_000) is None


def test_a_first_sentence_that_is_too_long_is_cut() -> None:
    long = units_of("word " * 500)
    assert count_tokens(show_sample(long, 100, DEFAULT_ENCODING)) <= 110
    assert show_sample(long, 100, DEFAULT_ENCODING).startswith("Passage 1: word word")
    assert replace(REQUEST, units=long).fit(150)
