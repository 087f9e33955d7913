from __future__ import annotations

import asyncio
import json
import random
from dataclasses import replace
from itertools import permutations

import pytest

from graphrag_pipeline.engines.model.descriptions import (
    MAX_JOINED_TOKENS,
    Subject,
    SummaryPlan,
    iterate_subjects,
    plan_folds,
    summarize_subject,
)
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.models.ports import CallFailedError
from graphrag_pipeline.models.prompts import load_prompt
from graphrag_pipeline.tables import DESCRIPTIONS
from graphrag_pipeline_tests.support.corpora.stage_graph import make_graph
from graphrag_pipeline_tests.support.models.scripted_model import ScriptedModel


def count_words(texts):
    return [len(text.split()) for text in texts]


PROMPT = load_prompt(None, "summarize_descriptions")
PLAN = SummaryPlan(PROMPT, max_input_tokens=100, max_words=10, count_tokens=count_words)


def texts_of(messages):
    return json.loads(messages[-1]["content"].partition("Descriptions:\n")[2])


def texts_of_request(request):
    return texts_of(request.messages)


def is_batch(texts):
    return all(text.startswith("Note") for text in texts)


def sum_up(messages):
    """Return a summary that changes with the texts it is made from."""
    return f"Sum {stable_hash(*texts_of(messages))}"


def summarize(descriptions, plan=PLAN, reply=sum_up):
    model = ScriptedModel(reply)
    subject = Subject("key", "entity", "Scrooge", tuple(descriptions))
    return asyncio.run(summarize_subject(subject, plan, model)), model


def describe(n):
    return [f"Note {i} says in these ten words what he did {i}." for i in range(n)]


def test_none_is_empty_and_one_is_verbatim_without_a_call():
    for descriptions, text in (((), ""), ((" ",), ""), (("A miser.",), "A miser."), (("A miser.",) * 2, "A miser.")):
        row, model = summarize(descriptions)
        assert (row["description"], row["request_key"], model.requests) == (text, None, [])


def test_several_become_one_summary_of_the_sorted_distinct_list():
    row, model = summarize(["b", "a", "b"])
    [request] = model.requests
    assert texts_of(request.messages) == ["a", "b"]
    assert "Scrooge" in model.prompts[0]
    assert "At most 10 words" in model.prompts[0]
    assert row["n_descriptions"] == 2
    assert row["description"].startswith("Sum ")
    assert DESCRIPTIONS.from_rows([row]).num_rows == 1


def test_up_to_three_short_descriptions_are_joined_without_a_call():
    joining = replace(PLAN, max_joined=3)
    row, model = summarize(["He is a miser", "He pays Bob.", "He is a miser."], joining)
    assert (row["description"], row["n_descriptions"]) == ("He is a miser. He pays Bob.", 3)
    assert (row["request_key"], row["is_fallback"], model.requests) == (None, False, [])
    texts = ["A miser.", "A clerk's master.", "An uncle"]
    assert {summarize(order, joining)[0]["description"] for order in permutations(texts)} == {
        "A clerk's master. A miser. An uncle."
    }
    for others in (describe(4), ["long " * (MAX_JOINED_TOKENS // 2 + 1), "word " * (MAX_JOINED_TOKENS // 2)]):
        assert summarize(others, joining)[1].requests
    assert summarize(texts)[1].requests  # without the option, as in Microsoft GraphRAG


def test_prompts_do_not_depend_on_the_order_of_arrival():
    descriptions = describe(100)
    shuffled = random.Random(7).sample(descriptions, len(descriptions))
    first, second = summarize(descriptions), summarize(shuffled)
    assert sorted(first[1].prompts) == sorted(second[1].prompts)
    assert first[0] == second[0]


def test_a_long_list_is_folded_within_the_budget():
    row, model = summarize(describe(200))
    assert len(model.requests) > 20
    for request in model.requests:
        texts = texts_of(request.messages)
        assert len(texts) > 1
        assert sum(count_words(texts)) <= 100
    shown = [text for request in model.requests for text in texts_of(request.messages) if text.startswith("Note")]
    assert sorted(shown) == sorted(describe(200))
    last = model.requests[-1]
    assert row["description"] == sum_up(last.messages)
    assert row["n_descriptions"] == 200


@pytest.mark.parametrize("n", [30, 200, 1000])
def test_a_new_description_runs_its_own_batch_and_the_folds_above_it(n):
    before = set(summarize(describe(n))[1].prompts)
    depth = depth_of(plan_folds(describe(n), PLAN))
    changed = [len(set(summarize([*describe(n), f"New note {i}."])[1].prompts) - before) for i in range(20)]
    assert sorted(changed)[10] <= depth + 1  # its batch and one fold per level; one more where a batch divides
    assert max(changed) <= 2 * depth + 2
    assert len(before) > 3 * depth or n == 30


def depth_of(fold):
    return 1 + max((depth_of(part) for part in fold.folds), default=0)


def test_a_description_over_the_budget_is_cut_and_summarized_before_the_others():
    _, model = summarize(["long " * 1000, "short"])
    first, second = map(texts_of_request, model.requests)
    assert [50 < len(text.split()) <= 100 for text in first] == [True]
    assert second == sorted([sum_up(model.requests[0].messages), "short"])


def test_a_reply_without_content_is_refused():
    for reply in ("", "```\n```", '""', "..."):
        with pytest.raises(CallFailedError, match="no description could be read"):
            summarize(["a", "b"], reply=lambda _, reply=reply: reply)
    assert summarize(["a", "b"], reply=lambda _: '```\n"He is\x00 a miser."\n```')[0]["description"] == "He is a miser."


def test_a_failed_batch_fails_after_the_others_were_sent():
    def fail_one(messages):
        return "" if any(" 7." in text for text in texts_of(messages)) else sum_up(messages)

    n_batches = sum("Note" in prompt for prompt in summarize(describe(100))[1].prompts)
    model = ScriptedModel(fail_one)
    with pytest.raises(CallFailedError):
        asyncio.run(summarize_subject(Subject("key", "entity", "Scrooge", tuple(describe(100))), PLAN, model))
    assert sum("Note" in prompt for prompt in model.prompts) == n_batches


def test_subjects_are_read_once_per_key_and_relationships_are_named_by_both_ends():
    graph = make_graph({("BOB", "TIM"): ["father and son", "a family"]}, {"BOB": ["a clerk"], "TIM": []})
    subjects = list(iterate_subjects(graph.entities, graph.relationships))
    assert {(s.kind, s.name, s.descriptions) for s in subjects} == {
        ("entity", "BOB", ("a clerk",)),
        ("entity", "TIM", ()),
        ("relationship", "BOB and TIM", ("a family", "father and son")),
    }
    assert [s.description_key for s in subjects] == sorted(s.description_key for s in subjects)
    doubled = list(iterate_subjects(graph.entities.slice(0, 1), graph.relationships.slice(0, 0)))
    assert len(doubled) == 1
