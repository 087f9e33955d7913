"""The default model: its answers to GraphRAG's prompts, in Microsoft's format and in that of this package."""

from __future__ import annotations

import json
import re
from typing import Any

from graphrag_pipeline_tests.model_server.brains import name_kind, reply_to
from graphrag_pipeline_tests.model_server.prompts import PromptMessages

TEXT = (
    "Ada Lovelace wrote to Charles Babbage in London. The Royal Society met Charles Babbage in 1834.\n\n"
    "Text: a letter. Mary Somerville, who knew Ada Lovelace's mother, lived in Naples."
)
EXTRACTION = """-Goal-
Identify all entities and how they are related.
- entity_type: One of the following types: [{types}]
Format each entity as ("entity"{field}<entity_name>{field}<entity_type>{field}<entity_description>)
Use **{record}** as the list delimiter. When finished, output {end}
-Examples-
Entity_types: THING
Text:
Example Corporation sells Examples.
Output:
("entity"{field}EXAMPLE CORPORATION{field}THING{field}It sells)
-Real Data-
######################
Entity_types: {types}
Text: {text}
######################
Output:"""
CONTINUE = "MANY entities and relationships were missed in the last extraction. Add them below using the same format:"
LOOP = "Some entities may have still been missed. Answer Y if there are any that need to be added, or N if none."


def prompt(text: str = TEXT, field: str = "<|>", record: str = "##", end: str = "<|COMPLETE|>") -> str:
    return EXTRACTION.format(types="PERSON,PLACE", text=text, field=field, record=record, end=end)


def reply(*messages: str, schema: dict[str, Any] | None = None, system: str | None = None) -> tuple[str, str]:
    """Kind and text of the reply to messages of user and assistant in turn."""
    pairs = tuple((("user", "assistant")[i % 2], text) for i, text in enumerate(messages))
    conversation = PromptMessages((("system", system), *pairs) if system else pairs, schema)
    kind = name_kind(conversation)
    return kind, reply_to(kind, conversation)


def titles(text: str, field: str = "<|>") -> list[str]:
    return re.findall(r'\("entity"' + re.escape(field) + "(.+?)" + re.escape(field), text)


def test_extraction_finds_names_of_the_input_text_only() -> None:
    kind, text = reply(prompt())
    assert kind == "extraction" and text.endswith("<|COMPLETE|>")
    assert titles(text)[:4] == ["ADA LOVELACE", "CHARLES BABBAGE", "LONDON", "ROYAL SOCIETY"]
    assert "EXAMPLE" not in text and set(re.findall(r"<\|>(PERSON|PLACE|THING)<", text)) <= {"PERSON", "PLACE"}
    assert re.search(r'\("relationship"<\|>ADA LOVELACE<\|>CHARLES BABBAGE<\|>Ada Lovelace wrote.*<\|>\d+\)', text)


def test_gleaning_adds_the_withheld_records_then_nothing() -> None:
    _, first = reply(prompt())
    kind, second = reply(prompt(), first, CONTINUE)
    assert kind == "gleaning" and titles(second) == ["MARY SOMERVILLE", "NAPLES"]
    assert not set(titles(first)) & set(titles(second)) and "relationship" in second
    assert reply(prompt(), first, CONTINUE, second, CONTINUE)[1] == "<|COMPLETE|>"


def test_the_loop_question_is_answered_by_one_letter_and_ends() -> None:
    assert reply(prompt(), "x", LOOP) in [("loop", "Y"), ("loop", "N")]
    assert reply(prompt(), "x", CONTINUE, "y", LOOP) == ("loop", "N")


def test_delimiters_are_read_from_the_prompt_and_kept_out_of_descriptions() -> None:
    _, text = reply(prompt("Ada || Lovelace met Mary Somerville.", "||", "@@", "<|DONE|>"))
    assert titles(text, "||") == ["ADA", "LOVELACE", "MARY SOMERVILLE"] and text.endswith("\n<|DONE|>")
    assert all(len(record.split("||")) in (4, 5) for record in text.split("\n@@\n"))


def test_the_input_text_may_be_a_message_of_its_own_or_inside_tags() -> None:
    system = EXTRACTION.partition("-Real Data-")[0].format(types="A", field="<|>", record="##", end="<|COMPLETE|>")
    for user in ("Ada Lovelace met Mary.", "<text>\nAda Lovelace met Mary.\n</text>", "Text: Ada Lovelace met Mary."):
        assert titles(reply(user, system=system)[1]) == ["ADA LOVELACE", "MARY"]


def test_chinese_clauses_begin_with_a_name() -> None:
    assert titles(reply(prompt("萧炎是萧家的少年。药老帮助萧炎，萧炎感谢。"))[1]) == ["萧炎", "药老"]


def test_claims_have_eight_fields_and_may_be_none() -> None:
    claims = (
        "Format each claim as (<subject_entity><|><object_entity><|><claim_type><|><claim_status>)\n"
        "-Real Data-\nEntity specification: PERSON\nClaim description: red flags\nText: {text}\nOutput:"
    )
    text = " ".join(f"In {year} Ada Lovelace accused Mary Somerville of a debt." for year in range(1830, 1850))
    kind, found = reply(claims.format(text=text))
    records = re.findall(r"^\((.*)\)$", found, re.MULTILINE)
    assert kind == "claims" and records and all(len(record.split("<|>")) == 8 for record in records)
    assert records[0].split("<|>")[:2] == ["ADA LOVELACE", "MARY SOMERVILLE"]
    assert reply(claims.format(text="nothing here."))[1] == "<|COMPLETE|>"
    assert reply(claims.format(text=text), found, CONTINUE) == ("claims-gleaning", "<|COMPLETE|>")


def test_a_summary_joins_distinct_descriptions() -> None:
    start = "Write a comprehensive summary of the descriptions below.\nEntities: ADA\nDescription List: "
    kind, text = reply(start + '["She wrote.", "She wrote.", "She lived in London."]\n#######\nOutput:')
    assert (kind, text) == ("summary", "She wrote. She lived in London")


REPORT = """Write a report: {{"title": ..., "rating": ..., "rating_explanation": ..., "findings": [...]}}
Example Input
Entities
id,entity,description
5,EXAMPLE,Not of this text
# Real Data
Text:
Entities

id,entity,description
11,ADA LOVELACE,She wrote notes
12,CHARLES BABBAGE,"He built, slowly"

Relationships

id,source,target,description
31,ADA LOVELACE,CHARLES BABBAGE,They wrote letters

The report should include a TITLE. For example [Data: Entities (5, 7)].
Output:"""


def test_a_report_is_json_that_cites_records_of_the_prompt() -> None:
    kind, text = reply(REPORT)
    report = json.loads(text)
    assert kind == "report" and report["title"] == "ADA LOVELACE and CHARLES BABBAGE"
    assert set(report) == {"title", "summary", "rating", "rating_explanation", "findings"}
    assert 0 <= report["rating"] <= 10 and len(report["findings"]) == 3
    cited = set(re.findall(r"(\w+) \((\d+)", " ".join(finding["explanation"] for finding in report["findings"])))
    assert cited == {("Entities", "11"), ("Entities", "12"), ("Relationships", "31")}


def test_ratings_follow_shared_words() -> None:
    ask = '---Information---\n{}\n---Question---\nWho built the engine?\n---Format---\n{{"reason": str, "rating": 1}}'
    near, far = (json.loads(reply(ask.format(text))[1]) for text in ("Babbage built an engine", "Cats sleep"))
    assert near["rating"] == 5 and far["rating"] == 0 and near["reason"]


def test_several_reports_are_rated_each() -> None:
    data = "<data>\n# Reports\n[4] Engines\nBabbage built an engine\n\n[9] Cats\nThey sleep\n</data>"
    kind, text = reply("Who built the engine?", system=f'Rate.\n{data}\n{{"ratings": []}}')
    assert kind == "ratings"
    assert json.loads(text)["ratings"] == [{"number": 4, "rating": 5}, {"number": 9, "rating": 0}]


def test_an_answer_uses_the_tagged_data_and_not_the_instructions() -> None:
    system = (
        "- Cite such as [Data: Sources (1)].\n\n<data>\n# Sources\n[3] engines.txt\nBabbage built the engine.\n</data>"
    )
    assert reply("Who built it?", system=system)[1] == "engines.txt Babbage built the engine [Data: Sources (3)]."


QUERY = """---Role---
Answer from the tables. "Some sentence [Data: Reports (2, 7)]".{shape}
---Data tables---
-----Reports-----
id|title|content
3|Engines|Babbage built the engine
in his house.
9|Cats|They sleep
---Goal---
Answer."""


def test_map_points_and_answers_cite_the_best_records() -> None:
    kind, text = reply("Who built the engine?", system=QUERY.format(shape='{"points": [{"description", "score": 1}]}'))
    points = json.loads(text)["points"]
    assert kind == "map" and points[0]["score"] == 100 and points[1]["score"] == 0
    assert points[0]["description"].endswith("his house [Data: Reports (3)]")
    kind, text = reply("Who built the engine?", system=QUERY.format(shape=""))
    assert kind == "answer" and text.startswith("Engines|Babbage built the engine in his house [Data: Reports (3)]")


def test_a_reduce_keeps_citations_of_the_points() -> None:
    system = (
        '"Example [Data: Reports (2)]"\n---Analyst Reports---\n\nBabbage built it [Data: Reports (3)].\n\n---Goal---\nx'
    )
    assert reply("Who built it?", system=system) == ("answer", "Babbage built it [Data: Reports (3)].")


def test_a_primer_names_follow_up_questions() -> None:
    primer = (
        "For the query:\n\nWho?\n\nSummaries:\n\n1|Engines|x\n\nAnswer {'intermediate_answer', 'follow_up_queries'}"
    )
    kind, text = reply(primer)
    assert kind == "primer" and json.loads(text)["follow_up_queries"] == ["What is known about Engines?"]


DATA = "<data>\n# Sources\n[3] engines.txt\nBabbage built the engine with Ada Lovelace.\n</data>"


def test_readers_questions_and_verdicts_have_the_requested_shape() -> None:
    system = f'{{"personas": []}}\n- 2 readers, each with 3 tasks\n{DATA}'
    readers = json.loads(reply("Name the readers.", system=system)[1])["personas"]
    assert [len(reader["tasks"]) for reader in readers] == [3, 3]
    kind, text = reply("Write the questions.", system=f'{{"questions": []}}\n- 2 questions\n{DATA}')
    questions = json.loads(text)["questions"]
    assert kind == "questions" and len(questions) == 2 and all(question["sources"] == [3] for question in questions)
    judge = 'The criterion is {}.\n<data>\nBob.\n</data>\n<data>\nBob, who is a clerk.\n</data>\n{{"winner": 0}}'
    verdicts = [json.loads(reply("Who?", system=judge.format(by))[1]) for by in ("diversity", "directness")]
    assert [verdict["winner"] for verdict in verdicts] == [2, 1]


def test_statements_are_sentences_and_are_checked_by_their_words() -> None:
    split = '{{"statements": [], "declines": false}}\n<data>\n{}\n</data>'
    kind, text = reply("Who?", system=split.format("Bob is a clerk. Tim is small."))
    assert kind == "statements" and json.loads(text) == {
        "statements": ["Bob is a clerk.", "Tim is small."],
        "declines": False,
    }
    assert json.loads(reply("Who?", system=split.format("I do not know."))[1])["declines"]
    check = (
        '<data>\n1. Bob is a clerk.\n2. Tim sings.\n</data>\n<data>\nThe clerk is Bob, a man.\n</data>\n{"checks": []}'
    )
    kind, text = reply("Who?", system=check)
    assert kind == "checks"
    assert [one["is_supported"] for one in json.loads(text)["checks"]] == [True, False]
