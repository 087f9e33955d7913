from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace

import pytest

from graphrag_pipeline.citations import parse_citations
from graphrag_pipeline.engines.model.reports import (
    MIDDLE_RATING,
    RESPONSE_FORMAT,
    ModelReporter,
    ReportPlan,
    build_prompt,
    parse_reply,
    write_report,
)
from graphrag_pipeline.identity import entity_id, relationship_id
from graphrag_pipeline.indexing.communities.detection import detect_communities
from graphrag_pipeline.indexing.reports.community_rows import iterate_levels
from graphrag_pipeline.indexing.reports.contexts import build_context
from graphrag_pipeline.indexing.reports.records import GraphRecords
from graphrag_pipeline.models.ports import CallFailedError, ReplyFormatError
from graphrag_pipeline.models.prompt_echoes import PromptEchoes
from graphrag_pipeline.models.prompts import load_prompt
from graphrag_pipeline.settings.settings import CommunitiesSettings
from graphrag_pipeline.text.tokens import count_tokens_each
from graphrag_pipeline_tests.model_server import running_model_server
from graphrag_pipeline_tests.support.corpora.stage_graph import describe, make_graph
from graphrag_pipeline_tests.support.models.hostile_replies import HOSTILE_REPLIES
from graphrag_pipeline_tests.support.models.model_roots import make_model_root
from graphrag_pipeline_tests.support.models.scripted_model import ScriptedModel

PLAN = ReportPlan(load_prompt(None, "community_report"))
BOB, TIM, SCROOGE = "BOB CRATCHIT", "TINY TIM", "SCROOGE"


def make_context(more=None):
    graph = make_graph(
        {(BOB, TIM): ["Bob carries Tim."], (BOB, SCROOGE): ["Bob works for Scrooge."], **(more or {})},
        {SCROOGE: ["Scrooge is a miser."], BOB: ["Bob is a clerk."], TIM: ["Tim is lame."]},
        [(SCROOGE, "NONE", "Scrooge underpays Bob.")],
    )
    communities = detect_communities(graph.entities, graph.relationships, CommunitiesSettings(max_cluster_size=10))
    records = GraphRecords(*graph, describe(graph), count_tokens_each)
    rows = [rows for level in iterate_levels(communities, records) for rows in level]
    return next(build_context(row, records, {}, 8000) for row in rows if len(row.entities) == 3)


CONTEXT = make_context()
FINDING = {"summary": "Bob is poor", "explanation": "Bob is underpaid. [Data: Entities (1); Claims (1)]"}
REPLY = {
    "title": "Bob and his employer",
    "summary": "Bob works for Scrooge. [Data: Entities (1, 3); Relationships (1)]",
    "rating": 7.5,
    "rating_explanation": "It shows the theme.",
    "findings": [FINDING],
}


def written(reply):
    return parse_reply(reply if isinstance(reply, str) else json.dumps(reply), CONTEXT)


def report(**changes):
    return written({**REPLY, **changes})


def test_a_report_is_requested_by_schema_and_read():
    model = ScriptedModel(lambda _: json.dumps(REPLY))
    result = asyncio.run(write_report(CONTEXT, PLAN, model))
    [request] = model.requests
    assert request.record == CONTEXT.community_id
    assert request.response_format == RESPONSE_FORMAT
    schema = RESPONSE_FORMAT["json_schema"]["schema"]
    assert set(schema["required"]) == {"title", "summary", "rating", "rating_explanation", "findings"}
    assert CONTEXT.text.strip() in model.prompts[0]
    assert (result.report.title, result.report.rank, result.problems) == ("Bob and his employer", 7.5, {})
    assert result.request_key


def test_reports_are_written_side_by_side_up_to_the_limit_of_the_model(tmp_path):
    contexts = [replace(CONTEXT, community_id=str(n), text=f"{CONTEXT.text}\nYear {n}") for n in range(12)]
    with running_model_server(lambda _: REPLY, n_together=4) as server:
        reporter = ModelReporter(make_model_root(tmp_path, server.base_url, 0, chat_model={"max_concurrency": 4}))
        reporter.least_size = 1
        reports = reporter.write(contexts)
        assert server.log.most_in_flight == 4 and server.count() == 12
    assert [report.title for report in reports] == ["Bob and his employer"] * 12 and not reporter.failures


def test_an_identical_community_gives_an_identical_prompt_at_any_place():
    other = make_context({("MARLEY", "JACOB"): ["Elsewhere."]})
    assert build_prompt(other, PLAN) == build_prompt(CONTEXT, PLAN)
    assert CONTEXT.community_id not in str(build_prompt(CONTEXT, PLAN))


def test_local_numbers_become_stable_ids():
    numbers = {number: record for record, number in CONTEXT.numbers["Entities"].items()}
    assert parse_citations(written(REPLY).report.summary) == [
        ("Entities", [numbers[1], numbers[3]]),
        ("Relationships", [relationship_id(BOB, SCROOGE)]),
    ]
    assert set(numbers.values()) == {entity_id(name) for name in (BOB, TIM, SCROOGE)}


def test_invented_citations_are_removed_and_counted():
    result = report(summary="True. [Data: Entities (1, 99); Planets (4)] False. [Data: Relationships (77)]")
    assert result.report.summary == f"True. [Data: Entities ({next(iter(CONTEXT.numbers['Entities']))})] False."
    assert result.problems == {"invented citation": 3}


@pytest.mark.parametrize(
    "citation",
    ["[Data: Entities (1, 2, 3)]", "[data:entity(1,2, 3, +more)]", "[Data: Entities (1-3)]",
     "［Data：Entities（1，2、3）］",
     "[Data: Entities (#1; 02; 3)]", "【Data: Community Entities (1, 2), Entities (3)】"],
)  # fmt: skip
def test_citations_may_be_written_in_other_ways(citation):
    result = report(summary=f"All of them {citation}.")
    [(kind, ids)] = parse_citations(result.report.summary)
    assert (kind, ids, result.problems) == ("Entities", list(CONTEXT.numbers["Entities"]), {})


@pytest.mark.parametrize(
    ("rating", "rank", "problem"),
    [
        (0, 0.0, None),
        (10, 10.0, None),
        ("8.5/10", 8.5, None),
        ("8,5", 8.5, None),
        (11, 10.0, "rating out of range"),
        (-1, 0.0, "rating out of range"),
        (10**400, 10.0, "rating out of range"),
        (float("inf"), 10.0, "rating out of range"),
        (float("nan"), MIDDLE_RATING, "rating not a number"),
        ("high", MIDDLE_RATING, "rating not a number"),
        ("0 to 10", MIDDLE_RATING, "rating not a number"),
        ("0-10", MIDDLE_RATING, "rating not a number"),
        ("8 of 10", 8.0, None),
        (None, MIDDLE_RATING, "rating not a number"),
        (True, MIDDLE_RATING, "rating not a number"),
    ],
)
def test_a_rating_is_a_number_from_0_to_10(rating, rank, problem):
    result = report(rating=rating)
    assert (result.report.rank, result.problems) == (rank, {problem: 1} if problem else {})


def test_a_bad_finding_drops_that_finding_alone():
    bad = [{}, None, 7, {"summary": None, "explanation": ["x"]}, {"explanation": float("nan")}]
    result = report(findings=[*bad, FINDING])
    assert [heading for heading, _ in result.report.findings] == ["Bob is poor"]
    assert result.problems == {"finding without text": 5}


def test_a_half_finding_and_a_plain_text_are_kept():
    result = report(findings=[{"summary": "Only this"}, {"explanation": "He is lame. He walks."}, "Bob is poor."])
    assert result.report.findings == (
        ("Only this", "Only this"),
        ("He is lame.", "He is lame. He walks."),
        ("Bob is poor.", "Bob is poor."),
    )


JSON = json.dumps(REPLY)


@pytest.mark.parametrize(
    "reply",
    [
        f"```json\n{JSON}\n```",
        f"Here is the report:\n{JSON}\nI hope it helps.",
        JSON.replace("}]}", "},],}"),
        JSON[:-2],
        JSON.replace('"', "'"),
        json.dumps({"report": REPLY}),
        json.dumps([REPLY]),
        JSON.replace("7.5", "NaN"),
        JSON.replace("Bob is underpaid.", "Bob is\nunderpaid."),
        JSON.replace('"title"', '"Title"'),
    ],
    ids=["fence", "prose", "commas", "cut", "single quotes", "wrapped", "list", "NaN", "line break", "case"],
)
def test_broken_json_is_repaired(reply):
    found = written(reply).report
    assert found.title == "Bob and his employer"
    assert [heading for heading, _ in found.findings] == ["Bob is poor"]
    assert found.summary.startswith("Bob works for Scrooge. [Data: Entities (")


def test_a_missing_title_names_the_central_entities_and_citations_leave_headings():
    assert report(title="").report.title == ", ".join(CONTEXT.central)
    result = report(title="# Bob [Data: Entities (1)]", rating_explanation="Why. [Data: Entities (1)]")
    assert (result.report.title, result.report.rating_explanation) == ("Bob", "Why.")


@pytest.mark.parametrize("change", [{"summary": ""}, {"summary": None}, {"findings": []}, {"findings": [{}]}])
def test_a_report_without_summary_or_finding_is_refused(change):
    with pytest.raises(ReplyFormatError, match="the report has no"):
        report(**change)
    with pytest.raises(ReplyFormatError, match="no JSON object with summary and findings"):
        written("I cannot do that.")
    with pytest.raises(CallFailedError):
        asyncio.run(write_report(CONTEXT, PLAN, ScriptedModel(lambda _: "")))


def test_hostile_replies_are_refused_or_read_in_linear_time():
    deep = json.dumps({**REPLY, "findings": [FINDING, json.loads("[" * 200 + "]" * 200)]})
    blanks = json.dumps({**REPLY, "summary": "[" + " \t" * 1_000_000 + "Data:" * 1000})
    started = time.process_time()
    for reply in (*HOSTILE_REPLIES, deep, blanks, JSON.replace("7.5", "9" * 5000), '{"summary": "' + "x" * 2_000_000):
        try:
            assert 0 <= written(reply).report.rank <= 10
        except ReplyFormatError:
            continue
    assert time.process_time() - started < 120


# -------------------------------------------------------------------------------------------------- text of the prompt

ECHOES = PLAN.prompt.echoes
EXAMPLE = {
    "title": "short and specific, with the names of the central entities",
    "summary": "what the community is, how its entities hang together, what stands out; a few sentences",
    "rating": "0 to 10",
    "rating_explanation": "One sentence that says why",
    "findings": [
        {"summary": "one finding in one sentence", "explanation": "a paragraph that supports it from the data"}
    ],
}


def copied(**changes):
    return parse_reply(json.dumps({**REPLY, **changes}), CONTEXT, ECHOES)


def test_a_report_that_copies_the_example_is_refused():
    for own in ({}, {"summary": REPLY["summary"]}, {"findings": [FINDING]}):
        with pytest.raises(ReplyFormatError, match="it repeats the text of the prompt"):
            copied(**{**EXAMPLE, **own})


def test_a_copied_part_of_a_report_counts_as_missing():
    found = copied(**{**EXAMPLE, "summary": REPLY["summary"], "findings": [*EXAMPLE["findings"], FINDING]})
    assert found.report.title == ", ".join(CONTEXT.central) and found.report.rank == MIDDLE_RATING
    assert found.report.rating_explanation == "" and len(found.report.findings) == 1
    assert found.problems["text of the prompt"] == 4 and found.problems["finding without text"] == 1
    assert copied() == written(REPLY)


def test_sentences_of_the_prompt_and_repeated_ones_are_left_out_of_a_longer_text():
    prompts = (
        "The community consists of entities that belong together, relationships between them, and claims about them. "
    )
    own = "Bob works for Scrooge."
    found = copied(summary=f"{prompts}[Data: Entities (1)] {own} {own}", findings=[FINDING, FINDING])
    assert found.report.summary == own and len(found.report.findings) == 1
    assert found.problems == {"text of the prompt": 1, "repeated sentence or finding": 2}


def test_a_title_without_a_word_of_the_data_names_the_central_entities():
    for title in ("Community Report", "Community Overview", "What the community is"):
        assert copied(title=title).report.title == ", ".join(CONTEXT.central)
    assert copied(title=f"Community of {CONTEXT.central[0]}").report.title == f"Community of {CONTEXT.central[0]}"


def test_the_context_as_a_value_counts_as_missing_though_the_data_holds_it():
    found = copied(title=CONTEXT.text)
    assert found.report.title == ", ".join(CONTEXT.central) and found.problems["text of the prompt"] == 1
    for change in ({"summary": CONTEXT.text}, {"findings": [{"summary": CONTEXT.text, "explanation": CONTEXT.text}]}):
        with pytest.raises(ReplyFormatError, match="it repeats the text of the prompt"):
            copied(**change)


def test_a_title_that_the_data_holds_is_no_copy():
    echoes = PromptEchoes('{"title": "Bob Cratchit"}')
    assert parse_reply(json.dumps({**REPLY, "title": "Bob Cratchit"}), CONTEXT, echoes).report.title == "Bob Cratchit"
    assert parse_reply(json.dumps({**REPLY, "title": "Fred"}), CONTEXT, PromptEchoes('{"title": "Fred"}')).problems == {
        "text of the prompt": 1
    }
