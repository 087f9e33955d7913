import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.query.question import MAX_QUESTION_CHARS, content_words, is_overview, read_question, topic_words


def test_content_words_are_stems_without_stop_words():
    assert content_words("What were the Spirits' visits like?") == {"spirit", "visit"}
    assert content_words("who is it") == frozenset()


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("What happens to Tiny Tim?", {"tiny", "tim"}),
        ("Who plays the harp?", {"harp"}),
        ("What is the name of the play?", {"nam", "play"}),
        ("Wo studierte Einstein?", {"studiert", "einstein"}),
        ("Who is Che?", {"che"}),
        ("Who is Belle?", {"belle"}),
    ],
)
def test_asking_words_count_only_where_nothing_else_is_left(question, words):
    assert topic_words(question) == words


@pytest.mark.parametrize("question", ["What are the main themes of the story?", "Catch me up on the last two weeks"])
def test_a_question_that_names_nothing_specific_is_an_overview(question):
    assert is_overview(question)


@pytest.mark.parametrize("question", ["How does Scrooge change?", "What does it say about poverty?", "!!!"])
def test_other_questions_are_not(question):
    assert not is_overview(question)


def test_a_long_question_is_cut_to_its_two_ends():
    text = read_question("start " + "x " * 50_000 + " end")
    assert text.startswith("start")
    assert text.endswith("end")
    assert len(text) == MAX_QUESTION_CHARS + 1


@pytest.mark.parametrize("question", ["", " \n\t", "\0"])
def test_an_empty_question_is_refused(question):
    with pytest.raises(PipelineError, match="question is empty"):
        read_question(question)


@pytest.mark.parametrize("run", [" ", "\t\n", ". ", "\u0301", '"', "?!"])
def test_a_long_run_without_letters_is_read_in_part(run):
    read = read_question(f"Who is{run * 5_000}Tim?")
    assert len(read) < 40 and read.startswith("Who is") and read.endswith("Tim?")
    assert read_question("Who ... is -- Tim?!") == "Who ... is -- Tim?!"


@pytest.mark.parametrize(
    ("asked", "written"), [("ISTANBUL'a kim?", "İstanbul'da"), ("ılık", "ILIK"), ("Nord\u00adwerk", "Nordwerk's")]
)
def test_words_are_compared_without_suffixes_and_the_dots_of_turkish(asked: str, written: str) -> None:
    assert content_words(written) <= content_words(read_question(asked))
