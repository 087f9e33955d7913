from __future__ import annotations

import asyncio

import pytest

from graphrag_pipeline.engines.model.extraction.conversations import ClaimsPlan, ExtractionPlan, extract_text_unit
from graphrag_pipeline.models.ports import CallFailedError
from graphrag_pipeline.models.prompts import Prompt, load_prompt
from graphrag_pipeline.settings.settings import ExtractionSettings
from graphrag_pipeline.tables import CLAIM_MENTIONS, ENTITY_MENTIONS, RELATIONSHIP_MENTIONS
from graphrag_pipeline_tests.model_server import running_model_server
from graphrag_pipeline_tests.support.models.model_clients import chat_model, in_loop
from graphrag_pipeline_tests.support.models.scripted_model import ScriptedModel, replies_in_turn

PROMPT, CONTINUE = load_prompt(None, "extract_graph"), load_prompt(None, "extract_graph_continue")
CLAIMS = ClaimsPlan(load_prompt(None, "extract_claims"), load_prompt(None, "extract_claims_continue"), "accusations")
PLAN = ExtractionPlan(PROMPT, CONTINUE, ("PERSON", "GEO"))
FIRST = """("entity"<|>Scrooge<|>PERSON<|>A miser.)
##
("relationship"<|>Scrooge<|>Marley<|>They were partners.<|>9)
<|COMPLETE|>"""
GLEANED = """("entity"<|>Marley<|>GHOST<|>A ghost.)
##
("entity"<|>Scrooge<|>PERSON<|>A miser.)
##
("relationship"<|>Marley<|>London<|>He haunts it.<|>5)
<|COMPLETE|>"""


def extract(*replies, plan=PLAN, text="Scrooge met Marley."):
    model = ScriptedModel(replies_in_turn(*replies))
    return asyncio.run(extract_text_unit("unit", text, plan, model)), model


def gleaning(n, **options):
    return ExtractionPlan(PROMPT, CONTINUE, ("PERSON",), max_gleanings=n, **options)


def test_the_prompt_holds_an_example_and_a_long_text_whole():
    combined = " ".join(f"word{number}" for number in range(1500))
    _, model = extract("<|COMPLETE|>", text=combined)
    [sent] = model.prompts
    example = sent[: sent.index(combined)].partition("\nEXAMPLE\n")[2]
    assert example.count('("entity"<|>') >= 2 and example.count('("relationship"<|>') >= 1


def test_the_model_reads_where_a_text_is_from_and_the_terms_that_it_holds():
    glossary = ExtractionSettings(
        glossary={"Falcon": {"meaning": "the billing service", "type": "SERVICE"}, "Heron": "a bus"}
    ).glossary
    reply = '("entity"<|>Falcon<|>SERVICE<|>It failed.)##("entity"<|>Ada Lowe<|>OTHER<|>She called.)##<|COMPLETE|>'

    def ask(context, prompt=PROMPT, **options):
        model = ScriptedModel(replies_in_turn(reply, "<|COMPLETE|>"))
        plan = ExtractionPlan(prompt, CONTINUE, ("SERVICE",), only_names_in_text=True, **options)
        mentions = asyncio.run(extract_text_unit("unit", "She restarted falcon.", plan, model, context))
        return model.prompts[0], mentions

    sent, mentions = ask("Document: TICKET-118\nSection: Call of Ada Lowe", glossary=glossary)
    shown = "Section: Call of Ada Lowe\nFalcon (SERVICE): the billing service\n</context>"
    assert shown in sent and "Heron" not in sent and "Entity types: SERVICE, OTHER\n" in sent
    assert [row["name"] for row in mentions.entities] == ["Falcon", "Ada Lowe"] and not mentions.outside_types
    other = {"Falcon": glossary["Falcon"]}
    assert ask("Document: TICKET-118\nSection: Call of Ada Lowe", glossary=other)[0] == sent, "a term reaches its texts"
    plain = Prompt("extract_graph", "{entity_types} {input_text}", "0", "own.txt")
    assert (
        ask("Document: A", plain)[0]
        == ask("Document: B", plain, glossary=glossary)[0]
        == "SERVICE She restarted falcon."
    )


def test_a_claim_is_read_with_the_title_the_date_and_the_headings_above_it(tmp_path):
    context = "Document: TICKET-118\nDate: 2024-03-05\nSection: Timeline"
    sent = []
    own = CLAIMS.prompt.text.replace("<context>\n{context}\n</context>\n", "")
    for prompt in (CLAIMS.prompt, Prompt("extract_claims", own, "0", "own.txt")):
        claims = ClaimsPlan(prompt, CONTINUE, "any fact")
        with running_model_server() as server:
            chat = chat_model(server.base_url, tmp_path)
            plan = ExtractionPlan(PROMPT, CONTINUE, ("SERVICE",), max_gleanings=0, claims=claims)
            in_loop(extract_text_unit("unit", "Ada Lowe restarted Falcon yesterday.", plan, chat, context))
            sent.append(server.calls[-1].body["messages"][0]["content"])
    assert f"<context>\n{context}\n</context>" in sent[0] and "Date:" not in sent[1], "an own prompt stays as it is"


def test_gleaned_records_come_first_to_last_and_positions_run_on():
    mentions, model = extract(FIRST, GLEANED)
    assert [(row["position"], row["name"]) for row in mentions.entities] == [(0, "Scrooge"), (1, "Marley")]
    assert [(row["position"], row["target"]) for row in mentions.relationships] == [(0, "Marley"), (1, "London")]
    assert mentions.problems == {"repeated": 1}
    assert mentions.n_replies == len(model.requests) == 2


def test_the_first_gleaned_record_is_not_swallowed_by_a_reply_without_delimiter_at_its_end():
    mentions, _ = extract(FIRST.replace("\n<|COMPLETE|>", ""), GLEANED)
    assert [row["name"] for row in mentions.entities] == ["Scrooge", "Marley"]
    assert [row["strength"] for row in mentions.relationships] == [9.0, 5.0]


def test_a_gleaning_continues_the_conversation():
    _, model = extract(FIRST, GLEANED)
    assert [message["role"] for message in model.requests[1].messages] == ["user", "assistant", "user"]
    assert model.requests[1].messages[1]["content"] == FIRST
    assert model.prompts[1] == CONTINUE.text


@pytest.mark.parametrize("last", ["<|COMPLETE|>", "There is nothing more.", FIRST, "NO"])
def test_gleaning_stops_at_a_reply_without_a_new_record(last):
    mentions, model = extract(FIRST, last, plan=gleaning(5))
    assert (len(model.requests), len(mentions.entities)) == (2, 1)


def test_gleaning_stops_at_the_limit():
    names = iter(range(100))
    model = ScriptedModel(lambda _: f'("entity"<|>A{next(names)}<|>PERSON<|>d)<|COMPLETE|>')
    mentions = asyncio.run(extract_text_unit("unit", "text", gleaning(3), model))
    assert (len(model.requests), len(mentions.entities)) == (4, 4)
    assert len(extract(FIRST, GLEANED, plan=gleaning(0))[1].requests) == 1


def test_a_reply_that_was_cut_off_while_it_repeats_itself_is_not_gleaned():
    record = '("relationship"<|>Scrooge<|>Marley<|>They were partners.<|>9)'
    for n, n_requests in ((5, 1), (1, 2)):
        cut = ScriptedModel(
            replies_in_turn(FIRST.removesuffix("<|COMPLETE|>") + f"\n##\n{record}" * n, FIRST), "length"
        )
        mentions = asyncio.run(extract_text_unit("unit", "Scrooge met Marley.", PLAN, cut))
        assert (len(cut.requests), len(mentions.relationships)) == (n_requests, 1)
        assert mentions.problems.get("gleaning left out after a reply that repeats itself", 0) == 2 - n_requests
    whole = extract(f"\n##\n{record}" * 6, FIRST)[1]
    assert len(whole.requests) == 2


def test_a_reply_whose_records_are_all_of_other_texts_is_refused_and_an_empty_one_is_not():
    plan = ExtractionPlan(PROMPT, CONTINUE, ("PERSON",), only_names_in_text=True)
    example = PROMPT.text.partition("EXAMPLE\n")[2].partition("\nThe passage")[0]
    with pytest.raises(
        CallFailedError, match="none of the 8 records is about the passage, which does not name 'Ines C"
    ):
        extract(example, plan=plan)
    mentions, _ = extract("<|COMPLETE|>", plan=plan)
    assert not mentions.entities and not mentions.problems
    mentions, _ = extract(FIRST, example, plan=plan)
    assert mentions.problems["entity not named in the text"] == 4, "what a gleaning copies is counted"


def test_a_text_without_entities_is_valid_and_not_gleaned():
    mentions, model = extract("<|COMPLETE|>")
    assert (mentions.entities, mentions.relationships, len(model.requests)) == ([], [], 1)


@pytest.mark.parametrize("reply", ["```\n<|COMPLETE|>\n```", "##\n<|COMPLETE|>.", "[]", "{}", '{"entities": []}'])
def test_an_end_mark_or_empty_json_alone_is_an_empty_reply(reply):
    mentions, _ = extract(reply)
    assert not mentions.entities and not mentions.relationships


@pytest.mark.parametrize(
    "reply",
    ["", "I cannot help with that.", '("entity"<|>A', '("entity"<|>A)<|COMPLETE|>',
     "I am sorry, I cannot read this passage. <|COMPLETE|>", "There is nothing. <|COMPLETE|>", "抱歉。<|COMPLETE|>",
     "I am sorry: {}", "[] is all that I can say.", "[I am sorry]", '{"error": "no passage"}'],
)  # fmt: skip
def test_a_reply_without_a_record_is_refused_with_its_reason(reply):
    with pytest.raises(CallFailedError, match="no record could be read") as error:
        extract(reply)
    assert error.value.reply == reply


def test_types_outside_the_list_are_kept_and_counted():
    mentions, _ = extract(FIRST, GLEANED)
    assert mentions.entities[1]["type"] == "GHOST"
    assert mentions.outside_types == {"GHOST": 1}
    mentions, _ = extract(FIRST, plan=ExtractionPlan(PROMPT, CONTINUE, ("person",)))
    assert mentions.outside_types == {}


CLAIM = '("claim"<|>Scrooge<|>NONE<|>GREED<|>TRUE<|>NONE<|>NONE<|>Scrooge is greedy.<|>a miser)\n<|COMPLETE|>'
MORE_CLAIMS = CLAIM.replace("GREED", "COLDNESS")


def answer(graph, claims):
    """Graph and claim conversations, each with its replies in turn."""
    return ScriptedModel(
        lambda messages: replies_in_turn(*(claims if "claim" in messages[0]["content"] else graph))(messages)
    )


def test_claims_are_requested_by_name_and_gleaned():
    model = answer([FIRST, "<|COMPLETE|>"], [CLAIM, MORE_CLAIMS])
    mentions = asyncio.run(extract_text_unit("unit", "text", gleaning(1, claims=CLAIMS), model))
    assert [(row["position"], row["type"]) for row in mentions.claims] == [(0, "GREED"), (1, "COLDNESS")]
    assert len({row["request_key"] for row in mentions.claims}) == 2
    assert "Look for claims about: Scrooge\n" in model.prompts[2]
    assert "accusations" in model.prompts[2] and "\nEXAMPLE\n" in model.prompts[2]


def test_zero_claims_is_a_valid_result_and_claims_are_off_by_default():
    model = answer([FIRST, "<|COMPLETE|>"], ["<|COMPLETE|>"])
    assert asyncio.run(extract_text_unit("unit", "text", gleaning(1, claims=CLAIMS), model)).claims == []
    assert len(model.requests) == 3
    assert extract(FIRST)[0].claims == []


def test_rows_fit_their_tables():
    model = answer([FIRST, GLEANED], [CLAIM])
    mentions = asyncio.run(extract_text_unit("unit", "text", gleaning(1, claims=CLAIMS), model))
    assert ENTITY_MENTIONS.from_rows(mentions.entities).num_rows == 2
    assert RELATIONSHIP_MENTIONS.from_rows(mentions.relationships).num_rows == 2
    [row] = CLAIM_MENTIONS.from_rows(mentions.claims).to_pylist()
    assert (row["subject"], row["object"], row["start_date"]) == ("Scrooge", "NONE", None)
    [row, _] = ENTITY_MENTIONS.from_rows(mentions.entities).to_pylist()
    assert (row["text_unit_id"], row["start"], row["end"]) == ("unit", None, None)
