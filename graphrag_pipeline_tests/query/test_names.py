import pytest

from graphrag_pipeline.query.names import NameIndex

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
