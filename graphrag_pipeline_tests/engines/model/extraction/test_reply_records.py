from __future__ import annotations

import pytest

from graphrag_pipeline.engines.model.extraction.reply_records import (
    ExtractedClaim,
    ExtractedEntity,
    ExtractedRelationship,
    parse_claims_reply,
    parse_graph_reply,
)

SCROOGE = ExtractedEntity("Scrooge", "PERSON", "A miser.")
MARLEY = ExtractedEntity("Marley", "PERSON", "A ghost.")
PARTNERS = ExtractedRelationship("Scrooge", "Marley", "They were partners.", 9.0)
REPLY = """("entity"<|>Scrooge<|>PERSON<|>A miser.)
##
("entity"<|>Marley<|>PERSON<|>A ghost.)
##
("relationship"<|>Scrooge<|>Marley<|>They were partners.<|>9)
<|COMPLETE|>"""


def assert_is_all_read(reply: str) -> None:
    parsed = parse_graph_reply(reply)
    assert (parsed.entities, parsed.relationships) == ((SCROOGE, MARLEY), (PARTNERS,))
    assert parsed.is_complete
    assert not parsed.problems


def test_a_new_line_and_the_end_mark_behind_the_last_record_leave_its_strength():
    for end in (")\n<|COMPLETE|>", ")<|COMPLETE|>", ")\n##\n<|COMPLETE|>", "<|COMPLETE|>)", ") \n\n <|COMPLETE|>\n"):
        assert_is_all_read(REPLY.replace(")\n<|COMPLETE|>", end))


@pytest.mark.parametrize(
    "reply",
    [
        "<|COMPLETE|>\n" + REPLY.replace("<|COMPLETE|>", ""),
        REPLY.replace("##", "<|COMPLETE|>", 1),
        REPLY.replace("<|COMPLETE|>", "<|complete|>"),
        REPLY.replace("<|COMPLETE|>", "<|COMPLETED|>"),
        REPLY.replace("<|COMPLETE|>", "<|COMPLETE|"),
        REPLY.replace("<|COMPLETE|>", "<|完成|>"),
        REPLY.replace("<|COMPLETE|>", "{completion_delimiter}"),
    ],
)
def test_the_end_mark_may_be_anywhere_and_in_another_language(reply):
    assert_is_all_read(reply)


@pytest.mark.parametrize(
    "reply",
    [
        REPLY.replace("\n##", ""),
        REPLY.replace("\n##\n", "##"),
        REPLY.replace("\n##\n", ""),
        REPLY.replace("\n##\n", ",\n"),
        REPLY.replace("##", "{record_delimiter}").replace("<|>", "{tuple_delimiter}"),
    ],
    ids=["new lines", "one line", "nothing", "commas", "placeholders left as they are"],
)
def test_separators_may_be_missing(reply):
    assert_is_all_read(reply)


@pytest.mark.parametrize(
    "reply",
    [
        REPLY.replace('"', ""),
        REPLY.replace('"', "'"),
        REPLY.replace('"entity"', "“ENTITY”").replace('"relationship"', "«Relationship»"),
        REPLY.replace("<|>Scrooge<|>", '<|>"Scrooge"<|>').replace("<|>Marley<|>", "<|> **Marley** <|>"),
        REPLY.replace("PERSON", "person"),
        REPLY.replace("PERSON", '"Person"'),
    ],
)
def test_quotes_and_case_may_differ(reply):
    assert_is_all_read(reply)


@pytest.mark.parametrize("delimiter", ["＜｜＞", "<｜>", "< | >", "<||>", r"<\|>", "&lt;|&gt;", "〈|〉"])
def test_delimiters_may_be_full_width_or_localised(delimiter):
    assert_is_all_read(REPLY.replace("<|>", delimiter))


def test_brackets_and_words_may_be_of_another_script():
    reply = (
        "（“实体”＜｜＞萧炎＜｜＞人物＜｜＞斗者）\n＃＃\n（“关系”＜｜＞萧炎＜｜＞药老＜｜＞师徒＜｜＞９）＜｜完成｜＞"
    )
    parsed = parse_graph_reply(reply)
    assert parsed.entities == (ExtractedEntity("萧炎", "人物", "斗者"),)
    assert parsed.relationships == (ExtractedRelationship("萧炎", "药老", "师徒", 9.0),)
    assert parsed.is_complete


@pytest.mark.parametrize(
    "reply",
    [
        f"```\n{REPLY}\n```",
        f"```text\n{REPLY}```",
        f"Certainly! Here are the records (as asked):\n\n{REPLY}\n\nThat is all (I think).",
        REPLY.replace('\n##\n("relationship', '\n\nNow the relationships (one):\n\n("relationship'),
        REPLY.replace('("', '- ("'),
        REPLY.replace("(", "1. (", 1).replace("\n(", "\n2. ("),
        "\n".join("  " + line for line in REPLY.splitlines()),
    ],
    ids=["fence", "named fence", "prose around", "prose between", "bullets", "numbers", "indented"],
)
def test_fences_prose_and_lists_around_records_are_left_out(reply):
    assert_is_all_read(reply)


def test_a_record_without_brackets_is_read():
    assert_is_all_read(REPLY.replace("(", "").replace(")", ""))


def test_a_missing_closing_bracket_costs_nothing_before_the_next_record():
    assert_is_all_read(REPLY.replace("miser.)", "miser."))
    assert_is_all_read(REPLY.replace("<|>9)", "<|>9"))


@pytest.mark.parametrize(
    "tail", ['("relationship"<|>Scrooge<|>Mar', '("relationship"<|>A<|>B<|>x<|>1', '("rela', '("entity"<|>']
)
def test_a_last_record_that_is_cut_off_is_dropped_and_counted(tail):
    parsed = parse_graph_reply(REPLY.replace("<|COMPLETE|>", "##\n" + tail))
    assert (parsed.entities, parsed.relationships) == ((SCROOGE, MARLEY), (PARTNERS,))
    assert parsed.problems == {"record cut off": 1}
    assert not parsed.is_complete


@pytest.mark.parametrize(
    ("written", "strength", "problem"),
    [
        ("9", 9.0, None),
        ("9.0", 9.0, None),
        ("9,5", 9.5, None),
        ("9/10", 9.0, None),
        (" 9 ", 9.0, None),
        ('"9"', 9.0, None),
        ("strength: 9", 9.0, None),
        ("high (8)", 8.0, None),
        ("high", 1.0, "strength not a number"),
        ("", 1.0, "strength missing"),
        ("NaN", 1.0, "strength not a number"),
        ("1e300", 10.0, "strength out of range"),
        ("9" * 5000, 10.0, "strength out of range"),
        ("-3", 0.1, "strength out of range"),
        ("0", 0.1, "strength out of range"),
    ],
)
def test_strengths_are_read_as_written_and_brought_into_range(written, strength, problem):
    parsed = parse_graph_reply(f'("relationship"<|>A<|>B<|>d<|>{written})\n<|COMPLETE|>')
    [pair] = parsed.relationships
    assert pair.strength == strength
    assert parsed.problems == ({problem: 1} if problem else {})


def test_a_relationship_without_a_target_and_a_sentence_as_a_name_are_left_out():
    reply = """("relationship"<|>Osterwald Bridge<|>Greta Holm was the pupil and successor of Greta Holm.<|>8)
##
("entity"<|>Greta Holm was the pupil and successor of Greta Holm.<|>PERSON<|>d)
##
("entity"<|>The Church of the Friends of Peace Inc.<|>ORGANIZATION<|>d)
<|COMPLETE|>"""
    parsed = parse_graph_reply(reply)
    assert [entity.name for entity in parsed.entities] == ["The Church of the Friends of Peace Inc."]
    assert not parsed.relationships and parsed.problems == {"too few fields": 1, "sentence instead of a name": 1}


def test_a_strength_of_an_entity_and_a_lost_quotation_mark_are_not_part_of_a_description():
    reply = """("entity"<|>Brantwick<|>GEO<|>It gave a silver medal.<|>9)
##
("relationship"<|>Alma<|>Osterwald<|>The ferry was built by "Osterwald".<|>9)
##
("relationship"<|>Alma<|>Brantwick<|>It is moored there."<|>9)
<|COMPLETE|>"""
    parsed = parse_graph_reply(reply)
    assert parsed.entities[0].description == "It gave a silver medal."
    assert [pair.description for pair in parsed.relationships] == [
        'The ferry was built by "Osterwald".', "It is moored there.",
    ]  # fmt: skip


def test_delimiters_and_brackets_inside_text_stay_there():
    reply = (
        '("entity"<|>C##<|>TOOL<|>Writes a <| b, (c) and C## and\n(more) of it)\n##\n'
        '("relationship"<|>C##<|>F(x)<|>Uses <|endoftext|> (see\n1) now<|>7)\n<|COMPLETE|>'
    )
    parsed = parse_graph_reply(reply)
    assert parsed.entities == (ExtractedEntity("C##", "TOOL", "Writes a <| b, (c) and C## and\n(more) of it"),)
    assert parsed.relationships == (ExtractedRelationship("C##", "F(x)", "Uses <|endoftext|> (see\n1) now", 7.0),)


def test_unusable_records_are_counted_by_reason():
    reply = (
        '("entity"<|>""<|>PERSON<|>d)##("entity"<|>A)##("content_keywords"<|>a, b)##'
        f'("entity"<|>NAME<|>TYPE<|>DESCRIPTION)##("entity"<|>{"x" * 500}<|>PERSON<|>d)##'
        '("entity"<|>A<|>PERSON<|>d)##("entity"<|>A<|>PERSON<|>d)<|COMPLETE|>'
    )
    parsed = parse_graph_reply(reply)
    assert parsed.entities == (ExtractedEntity("A", "PERSON", "d"),)
    assert parsed.problems == {
        "format repeated": 1,
        "name too long": 1,
        "no name": 1,
        "repeated": 1,
        "too few fields": 1,
        "unknown record": 1,
    }


def test_invisible_characters_leave_names_and_joiners_stay():
    parsed = parse_graph_reply(
        '("entity"<|>\u202eScr\u200boo\x00ge\ufeff\ud800<|>PERSON<|>d)##("entity"<|>می\u200cخواهم<|>WORD<|>d)<|COMPLETE|>'
    )
    assert [entity.name for entity in parsed.entities] == ["Scrooge", "می\u200cخواهم"]


@pytest.mark.parametrize(
    "reply",
    [
        '[{"name": "Scrooge", "type": "person", "description": "A miser."},'
        ' {"name": "Marley", "type": "person", "description": "A ghost."},'
        ' {"source": "Scrooge", "target": "Marley", "description": "They were partners.", "strength": 9}]',
        'Here it is:\n```json\n{"entities": [{"entity_name": "Scrooge", "entity_type": "PERSON", "entity_description":'
        ' "A miser."}, {"title": "Marley", "type": "PERSON", "description": "A ghost.",},],'
        ' "relationships": [{"source": "Scrooge", "target": "Marley", "relationship_description":'
        ' "They were partners.", "weight": "9"}]}\n```',
        '{"name": "Scrooge", "type": "person", "description": "A miser."}\n'
        '{"name": "Marley", "type": "person", "description": "A ghost."}\n'
        '{"subject": "Scrooge", "object": "Marley", "description": "They were partners.", "strength": 9.0}',
        '[["entity", "Scrooge", "PERSON", "A miser."], ["entity", "Marley", "PERSON", "A ghost."],'
        ' ["relationship", "Scrooge", "Marley", "They were partners.", 9]]',
    ],
    ids=["list", "fenced, broken", "one per line", "lists"],
)
def test_json_instead_of_records_is_accepted(reply):
    assert_is_all_read(reply)


@pytest.mark.parametrize("reply", ["<|COMPLETE|>", "There is nothing. <|COMPLETE|>", '{"entities": []}', "[]"])
def test_an_explicitly_empty_reply_is_complete(reply):
    parsed = parse_graph_reply(reply)
    assert (parsed.n_records, parsed.is_complete) == (0, True)


@pytest.mark.parametrize(
    ("reply", "is_bare"),
    [("<|COMPLETE|>", True), ("There is nothing. <|COMPLETE|>", False), ('{"entities": [], "relationships": []}', True),
     ("[]", True), ('Here it is: {"entities": []}', False), (REPLY, False)],
)  # fmt: skip
def test_a_reply_is_bare_without_words(reply, is_bare):
    assert parse_graph_reply(reply).is_bare == is_bare


@pytest.mark.parametrize("reply", ["", "I cannot help with that.", "complete", '{"error": "overloaded"}', "NaN"])
def test_a_reply_without_records_or_end_mark_is_not_complete(reply):
    parsed = parse_graph_reply(reply)
    assert (parsed.n_records, parsed.is_complete) == (0, False)


CLAIM = ExtractedClaim("ACME (UK)", "NONE", "FRAUD", "TRUE", "2022-01-10", None, "ACME (UK) lied.", "it lied")


@pytest.mark.parametrize(
    "reply",
    [
        '("claim"<|>ACME (UK)<|>NONE<|>FRAUD<|>TRUE<|>2022-01-10<|>NONE<|>ACME (UK) lied.<|>"it lied")\n<|COMPLETE|>',
        "(ACME (UK)<|>NONE<|>fraud<|>true<|>2022-01-10<|><|>ACME (UK) lied.<|>it lied)\n##\n<|COMPLETE|>",
        '{"claims": [{"subject": "ACME (UK)", "claim_type": "Fraud", "status": "TRUE", "start_date": "2022-01-10",'
        ' "description": "ACME (UK) lied.", "source_text": "it lied"}]}',
    ],
    ids=["ours", "as Microsoft GraphRAG writes it", "JSON"],
)
def test_claims_are_read(reply):
    parsed = parse_claims_reply(reply)
    assert (parsed.claims, parsed.is_complete, parsed.problems) == ((CLAIM,), True, {})


def test_a_claim_of_unknown_status_is_suspected_and_counted():
    parsed = parse_claims_reply("(A<|>B<|>T<|>maybe<|>NONE<|>NONE<|>d<|>s)<|COMPLETE|>")
    assert [claim.status for claim in parsed.claims] == ["SUSPECTED"]
    assert parsed.problems == {"status not known": 1}
