"""The early stop of extraction: a prompt or model that yields nothing ends the run, for any size of corpus."""

from __future__ import annotations

import pyarrow as pa
import pytest

from graphrag_pipeline.engines.model.extraction.conversations import ExtractionPlan
from graphrag_pipeline.engines.model.extraction.extractor import (
    FIRST_UNITS,
    MIN_NAMING_CHARACTERS,
    extract_text_units,
    extraction_works,
)
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.ports import CallFailedError, Failure
from graphrag_pipeline.models.prompts import Prompt
from graphrag_pipeline_tests.support.models.scripted_model import ScriptedModel

POEM = Prompt("extract_graph", "Reply with a poem. {input_text}", "0", "extract.txt")
PLAN = ExtractionPlan(POEM, Prompt("extract_graph_continue", "More?", "0", "more.txt"), ("X",))
ENTITY = '("entity"<|>SCROOGE<|>PERSON<|>A miser.)##<|COMPLETE|>'
LONG = "Scrooge never painted out the name of Marley above the warehouse door. " * 6


def extract(texts: list[str], reply) -> list:
    units = pa.table({"id": [str(n) for n in range(len(texts))], "text": texts, "context": [""] * len(texts)})
    model = ScriptedModel(lambda messages: reply(messages[0]["content"]))
    return extract_text_units(extraction_works(units, PLAN, model), PLAN, model, "test-chat")


@pytest.mark.parametrize("n_units", [1, 4, FIRST_UNITS - 1, FIRST_UNITS, 40])
def test_a_corpus_of_any_size_that_yields_nothing_stops_and_names_model_and_prompt(n_units):
    with pytest.raises(PipelineError, match="extraction stopped") as error:
        extract([LONG] * n_units, lambda prompt: "<|COMPLETE|>")
    for part in ("test-chat", "extract.txt", "the reply starts '<|COMPLETE|>'"):
        assert part in str(error.value)


def test_a_few_short_text_units_may_name_nothing():
    assert len(LONG) >= MIN_NAMING_CHARACTERS
    assert len(extract(["It rained.", "It snowed."], lambda prompt: "<|COMPLETE|>")) == 2


def test_one_text_unit_that_yields_something_is_enough():
    texts = ["Nothing. " * 40, LONG, "Nothing. " * 40]
    results = extract(texts, lambda prompt: ENTITY if "Scrooge" in prompt else "<|COMPLETE|>")
    assert [len(result.entities) for result in results] == [0, 1, 0]


def test_failures_alone_stop_all_but_a_single_text_unit():
    with pytest.raises(PipelineError, match="the reply starts 'Roses are red'"):
        extract(["It rained."] * 2, lambda prompt: "Roses are red")
    [failure] = extract([LONG], lambda prompt: "Roses are red")
    assert isinstance(failure, Failure)


def time_out(prompt: str) -> str:
    raise CallFailedError("no answer in 2 attempts; no whole answer within 8 s", "key", is_unanswered=True)


def test_an_endpoint_that_answers_nothing_is_named_and_not_the_prompt():
    with pytest.raises(PipelineError, match=r"answered none of the first 8 .* within 8 s.* raise timeout_s") as error:
        extract([LONG] * 12, time_out)
    assert "extract.txt" not in str(error.value)


def test_a_stage_with_earlier_results_may_find_nothing_in_new_text_units():
    units = pa.table({"id": ["0"], "text": [LONG], "context": [""]})
    model = ScriptedModel(lambda messages: "<|COMPLETE|>")
    works = extraction_works(units, PLAN, model)
    assert len(extract_text_units(works, PLAN, model, "test-chat", is_proven=True)) == 1
