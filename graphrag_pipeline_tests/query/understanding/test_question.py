import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.query.understanding.question import (
    MAX_QUESTION_CHARS,
    NameIndex,
    asked_words,
    content_words,
    is_overview,
    read_question,
)

TITLES = ["SCROOGE", "GHOST OF CHRISTMAS PAST", "CHRISTMAS", "JACOB MARLEY", "萧炎", "WHO", "O'BRIEN", "THE BOY"]
NAMES = NameIndex(TITLES, [[], ["the Ghost of Christmas Past"], [], ["Old Marley"], [], [], [], []])


def found(question):
    return [TITLES[row] for row in NAMES.find(question)]


@pytest.mark.parametrize(
    ("question", "titles"),
    [
        ("Who is Scrooge?", ["SCROOGE"]),
        ("what did scrooge's clerk want?", ["SCROOGE"]),
        ("What does the Ghost of Christmas Past show Scrooge?", ["GHOST OF CHRISTMAS PAST", "SCROOGE"]),
        ("Why old Marley?", ["JACOB MARLEY"]),
        ("Who is Jacob\n Marley, at Christmas?", ["JACOB MARLEY", "CHRISTMAS"]),
        ("萧炎是谁？", ["萧炎"]),
        ("Where does O\u2019Brien live?", ["O'BRIEN"]),
        ("Is a boy there?", ["THE BOY"]),
        ("Who is it?", []),
        ("scrooges and marleyans", []),
        ("!!! \U0001f384", []),
    ],
)
def test_names_that_a_question_says_in_full(question, titles):
    assert found(question) == titles


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
    assert asked_words(question) == words


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


FILM_NAMES = NameIndex(["DIRECTOR", "BLOOD STREET", "PALO ALTO (2013 FILM)", "PALO ALTO", "萧炎"], [[]] * 5)


@pytest.mark.parametrize(
    ("question", "rows", "words"),
    [
        ("Where was the director of film Blood Street born?", ((1,),), ("director", "film", "born")),
        ("where was the director of blood street born?", ((0,), (1,)), ("born",)),
        ("Who is the father of the director of Palo Alto (2013 Film)?", ((2,),), ("father", "director")),
        ("Is Palo Alto older than Blood Street?", ((3,), (1,)), ("older",)),
        ("萧炎是谁？", ((4,),), ()),
        ("What is it?", (), ()),
    ],
)
def test_a_question_is_taken_apart_into_names_and_what_is_asked_of_them(question, rows, words):
    named = FILM_NAMES.take_apart(question)
    assert named.names == rows
    assert named.words == words
