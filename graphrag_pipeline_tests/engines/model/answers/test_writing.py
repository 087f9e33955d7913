"""Local and basic answers by a chat model behind real HTTP: what it is shown, cited, streamed, and what stands in."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.engines.model.answers.writing import ShownText, check_sentences, show_points
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.query.answers.notes import BESIDE, UNCITED, note_uncited, note_unread, partial_text, strip_notes
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.results import UncitedSentence, Unread
from graphrag_pipeline.query.search.global_ import Point
from graphrag_pipeline.query.search_result import SearchResult
from graphrag_pipeline_tests.model_server import Fault, Reply, running_model_server
from graphrag_pipeline_tests.support.models.model_index import open_with_model

FIRE = ShownText(
    "Sources",
    3,
    "The fire at Pier Nine",
    "On the night of 14 February 2023 a fire destroyed the northern third of the hall. The hall was rented by Quillon "
    "Robotics. The fire began where batteries were charged. A charger had been set to the wrong voltage. Leonie Akabua "
    "accepted the report of the marshal Petra Solheim.",
)
OTHER = ShownText("Sources", 4, "Lowmoor", "Production started again in a rented shed in Lowmoor in April 2023.")


def check(answer: str) -> dict[str, int | None]:
    return {c.text: c.support.number if c.support else None for c in check_sentences(answer, [FIRE, OTHER])}


@pytest.mark.parametrize(
    ("sentence", "source"),
    [
        ("The fire at Pier Nine was caused by a charger having been set to the wrong voltage.", 3),
        ("The hall was rented by Quillon Robotics.", 3),
        ("In April 2023 production started again in Lowmoor.", 4),
        ("The company was founded by Leonie Akabua, who was a senior engineer at Quillon Robotics.", None),
        ("In April 2024 production started again in Lowmoor.", None),
        ("The hall was rented by Kestrel Marine.", None),
    ],
)
def test_a_sentence_is_supported_by_its_words_names_and_numbers(sentence: str, source: int | None) -> None:
    assert check(sentence) == {sentence: source}


def test_a_sentence_with_a_citation_needs_no_other() -> None:
    assert check("The hall burned down [1]. The mayor of Velden fled. [2]\n\n- Kestrel Marine paid [3].") == {}


def test_a_citation_at_the_end_of_a_line_covers_the_line() -> None:
    assert check("Much was lost by Hamlet there. Nobody put it out in time [1].") == {}
    assert check("Nobody put it out in time [1]. Much was lost by Hamlet.") == {"Much was lost by Hamlet.": None}


@pytest.mark.parametrize(
    "text",
    ["## The fire of Velden", "The main themes of these documents are:", "Who fled to Velden?", "| Velden | fled |",
     "The sources do not say who fled to Velden.", "No information about Velden is given.", "So it is.", ""],
)  # fmt: skip
def test_what_states_nothing_is_left_out(text: str) -> None:
    assert check(text) == {}


def test_german_nouns_and_characters_count_as_words() -> None:
    german = ShownText("Sources", 1, "", "Das Feuer zerst\u00f6rte die Halle im Hafen von Tarnby.")
    text = "Das Feuer zerst\u00f6rte im Hafen von Tarnby die ganze Halle und nicht das Dach."
    assert check_sentences(text, [german])[0].support == german
    chinese = ShownText("Sources", 1, "", "\u5b54\u4e59\u5df1\u662f\u7ad9\u7740\u559d\u9152\u7684\u4eba\u3002")
    assert check_sentences("\u5b54\u4e59\u5df1\u7ad9\u7740\u559d\u9152\u3002", [chinese])[0].support == chinese


def test_a_point_supports_by_the_record_that_it_cites() -> None:
    cited, bare = "The hall burned [Data: Reports (7); Entities (2)].", "Lowmoor produced robots."
    assert show_points([Point(0, "", cited, 9), Point(0, "", bare, 9)]) == [ShownText("Reports", 7, "", cited)]


@given(st.text(max_size=200))
def test_any_answer_is_checked(answer: str) -> None:
    check_sentences(answer, [FIRE])


def test_notes_can_be_told_from_the_answer() -> None:
    sentences = [UncitedSentence("A.", 2), UncitedSentence("B.")]
    unread = Unread("batches of reports", 2, 5, ("time-out",))
    assert note_unread(unread) == "\n\n(2 of 5 batches of reports could not be read (time-out).)"
    for note in (note_unread(unread), note_uncited(sentences), UNCITED, f"{UNCITED}{BESIDE}Quoted. [1]"):
        assert strip_notes(f"The answer.\n\n(In brackets.){note}") == "The answer.\n\n(In brackets.)"
    assert partial_text("Not in the index: nothing.") == "No answer in what could be read: nothing."


QUESTION = "Who haunted Scrooge?"


def source_of(index: GraphIndex, text: str) -> int:
    units = index.snapshot.table("text_units").to_pylist()
    return next(unit["human_readable_id"] for unit in units if text in unit["text"])


def number_of(index: GraphIndex, title: str) -> int:
    entities = index.snapshot.table("entities").to_pylist()
    return next(entity["human_readable_id"] for entity in entities if entity["title"] == title)


def test_a_citation_resolves_to_record_text_unit_document_and_offsets(small: GraphIndex, tmp_path: Path) -> None:
    source, marley = source_of(small, "Marley haunted"), number_of(small, "MARLEY")
    reply = f"It was Marley [Data: Sources ({source}); Entities ({marley}, 999)]."
    with running_model_server(lambda request: reply) as server:
        result = open_with_model(small, tmp_path, server).search(QUESTION)
    assert result.answer == "It was Marley [1][2]."
    by_source, by_entity = result.citations
    [row] = small.rows_of_numbers("entities", "human_readable_id", [marley])
    assert by_source.kind == "text_unit"
    assert (by_entity.kind, by_entity.id) == ("entity", small.snapshot.take("entities", [row], ["id"])[0]["id"])
    documents = {document["id"]: document["text"] for document in small.snapshot.table("documents").to_pylist()}
    for citation in result.citations:
        assert documents[citation.document_id][citation.start : citation.end] == citation.quote
    assert by_source.quote == "Marley haunted Scrooge."
    account = {"engine": "model", "invented_citations": 1, "failure": "", "unread": None, "uncited": []}
    assert result.answering == account


def test_the_model_is_shown_the_context_as_data_and_the_question_as_its_own_turn(
    small: GraphIndex, tmp_path: Path
) -> None:
    with running_model_server(lambda request: "Nobody.") as server:
        index = open_with_model(
            small, tmp_path, server, answers={"engine": "model", "response_type": "one line", "language": "German"}
        )
        index.search(QUESTION)
        index.search(QUESTION, method="basic")
    local, basic = (call.body["messages"] for call in server.calls if call.body)
    assert [turn["role"] for turn in local] == ["system", "user"] and local[1]["content"] == QUESTION
    data = local[0]["content"].partition("\n<data>\n")[2].partition("\n</data>")[0]
    assert "# Entities\nid|title|" in data and "# Sources\n[" in data and "Marley haunted Scrooge." in data
    assert "one line" in local[0]["content"] and "in German" in local[0]["content"]
    assert "# Entities" not in basic[0]["content"] and "Marley haunted Scrooge." in basic[0]["content"]


@pytest.mark.parametrize("method", ["local", "basic"])
def test_the_pieces_of_a_stream_are_the_answer(small: GraphIndex, tmp_path: Path, method: str) -> None:
    source = source_of(small, "Marley haunted")
    reply = f"Old Marley did, it is said [Data: Sources ({source})], and\n\n- twice [Data: Sources (998)]."
    with running_model_server(lambda request: reply) as server:
        index = open_with_model(small, tmp_path, server)
        *pieces, result = index.stream(QUESTION, method=method)
        again = index.search(QUESTION, method=method)
    assert isinstance(result, SearchResult) and len(pieces) > 3
    assert "".join(map(str, pieces)) == result.answer == "Old Marley did, it is said [1], and\n\n- twice."
    assert (again.answer, again.citations) == (result.answer, result.citations)
    assert (again.usage.by_model["test-chat"].calls, again.usage.by_model["test-chat"].cached) == (0, 1)
    assert server.count() == 1


def test_asking_from_async_code(small: GraphIndex) -> None:
    assert asyncio.run(small.asearch(QUESTION)).answer == small.search(QUESTION).answer


def test_what_the_data_does_not_answer_is_not_in_the_index(small: GraphIndex, tmp_path: Path) -> None:
    with running_model_server(lambda request: "NOT IN THE INDEX\nIt only speaks of Scrooge.") as server:
        index = open_with_model(small, tmp_path, server)
        *pieces, result = index.stream("Who painted the ceiling?")
    assert isinstance(result, SearchResult)
    assert result.answer.startswith("Not in the index: looked at ") and "text units" in result.answer
    assert result.answer.endswith("It only speaks of Scrooge.") and pieces == [result.answer]


INVENTED = "Surely Hamlet did [Data: Sources (77)]."
SAYS_SO = "Surely Hamlet did.\n\n(Not found in what was read: \u201cSurely Hamlet did.\u201d)" + UNCITED


def test_an_answer_that_cites_nothing_says_so_and_the_embedded_engine_stands_beside(
    small: GraphIndex, tmp_path: Path
) -> None:
    with running_model_server(lambda request: INVENTED) as server:
        *pieces, result = open_with_model(small, tmp_path, server).stream(QUESTION)
    assert isinstance(result, SearchResult)
    extractive = small.search(QUESTION)
    assert result.answer == SAYS_SO + BESIDE + extractive.answer and result.citations == extractive.citations
    assert "".join(map(str, pieces)) == result.answer and result.answering["invented_citations"] == 1
    assert result.answering["uncited"] == [{"sentence": "Surely Hamlet did.", "citation": None}]


@pytest.mark.parametrize("method", ["local", "basic", "lazy"])
def test_a_sentence_that_the_shown_text_supports_gets_its_citation(
    small: GraphIndex, tmp_path: Path, method: str
) -> None:
    reply = "Scrooge was haunted by Marley. Marley sold 12 ghosts to Hamlet."
    with running_model_server(lambda request: reply if request.kind == "answer" else None) as server:
        index = open_with_model(small, tmp_path, server)
        *pieces, result = index.stream(QUESTION, method=method)
    assert isinstance(result, SearchResult)
    first, second = result.answering["uncited"]
    assert result.citations[first["citation"] - 1].quote == "Marley haunted Scrooge." and second["citation"] is None
    assert result.answer == (
        f"{reply}\n\n(Found in what was read: \u201c{first['sentence']}\u201d [1])"
        "\n\n(Not found in what was read: \u201cMarley sold 12 ghosts to Hamlet.\u201d)"
    )
    assert "".join(map(str, pieces)) == result.answer


def test_a_model_that_gives_no_answer_is_replaced_and_that_is_said(small: GraphIndex, tmp_path: Path) -> None:
    with running_model_server(lambda request: Fault("refused")) as server:
        result = open_with_model(small, tmp_path, server).search(QUESTION)
    extractive = small.search(QUESTION)
    assert result.answer.startswith("The model gave no answer (the model refused")
    assert result.answer.endswith(extractive.answer) and result.citations == extractive.citations
    assert result.answering["engine"] == "embedded" and "refused" in result.answering["failure"]


def test_a_stream_that_breaks_off_ends_with_the_extractive_answer(small: GraphIndex, tmp_path: Path) -> None:
    with running_model_server(lambda request: Fault("drop-midway")) as server:
        *pieces, result = open_with_model(small, tmp_path, server).stream(QUESTION)
    assert isinstance(result, SearchResult) and "broke off" in result.answering["failure"]
    assert len(pieces) > 1 and str(pieces[-1]).strip() == result.answer


def test_a_wrong_key_is_an_error_not_an_answer(small: GraphIndex, tmp_path: Path) -> None:
    with running_model_server(api_key="right") as server:
        index = open_with_model(small, tmp_path, server)
        with pytest.raises(PipelineError, match="Check the key"):
            index.search(QUESTION)
        with pytest.raises(PipelineError, match="Check the key"):
            list(index.stream(QUESTION))


def test_the_account_tells_calls_tokens_and_money_by_model(small: GraphIndex, tmp_path: Path) -> None:
    priced = {"prompt_price": 1.0, "completion_price": 2.0}
    with running_model_server(lambda request: Reply("Marley.", prompt_tokens=900, completion_tokens=50)) as server:
        index = open_with_model(small, tmp_path, server, answers={"engine": "model", "model": priced})
        usage = index.search(QUESTION).usage
    assert usage.to_dict()["by_model"]["test-chat"] | {"seconds": 0} == {
        "calls": 1, "input_tokens": 900, "output_tokens": 50, "cost": 0.001, "cached": 0, "unpriced": 0, "seconds": 0,
    }  # fmt: skip
    assert usage.to_line().startswith("test-chat: 1 call, 950 tokens, $0.0010, ")


def test_only_the_context_asks_no_model(small: GraphIndex, tmp_path: Path) -> None:
    with running_model_server() as server:
        result = open_with_model(small, tmp_path, server).search(QUESTION, context_only=True)
    assert (result.answer, server.count(), list(result.usage.by_model)) == ("", 0, ["embedded"])


def test_an_index_without_a_root_has_no_model_to_ask(small: GraphIndex, tmp_path: Path) -> None:
    with running_model_server() as server:
        settings = open_with_model(small, tmp_path, server).settings
    with pytest.raises(PipelineError, match="opened without a root"):
        GraphIndex(small.snapshot, settings, small.embedder).search(QUESTION)


def test_microsofts_prompt_works_unchanged(small: GraphIndex, tmp_path: Path) -> None:
    theirs = (
        "---Role---\nAnswer from the tables.\n---Target response length and format---\n{response_type}\n"
        "---Data tables---\n\n{context_data}\n\n---Goal---\nCite [Data: Sources (15, 16), Entities (5, +more)]."
    )
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "local_search_system_prompt.txt").write_text(theirs)
    with running_model_server() as server:
        result = open_with_model(small, tmp_path, server).search(QUESTION)
    assert server.calls[0].kind == "answer" and result.citations and "Marley" in result.answer
