"""Sentences that say who has a role, and whose it is."""

from __future__ import annotations

import pytest

from graphrag_pipeline.query.understanding.asked_role import read_asked_role, read_role_of_verb
from graphrag_pipeline.query.understanding.role_statements import RoleReader, leading_thing

PLACES = {"Lindau", "Petrel", "Red Lion"}


def read(role, *texts, title="Ruth Adler"):
    """Return (holder, owner) of what the last sentence states."""
    reader = RoleReader(texts, title, lambda name: name not in PLACES)
    return [(said.holder, said.owner) for said in reader.read(len(texts) - 1, role)]


@pytest.mark.parametrize(
    ("role", "text", "holder", "owner"),
    [
        ("husband", "Annis went home with her husband, John Webb, in the rain.", "John Webb", "Annis"),
        ("landlord", "The landlord of the Red Lion, a fat man called Ned Pike, laughed.", "Ned Pike", "the Red Lion"),
        ("assistant", "Her assistant was called Peter Hollis.", "Peter Hollis", "Ruth Adler"),
        ("assistant", "Her assistant, a young man named Peter Hollis, laughed.", "Peter Hollis", "Ruth Adler"),
        ("chair", "The chair of the board is Ida Roth.", "Ida Roth", "the board"),
        ("executive", "Its chief executive since 2019 is Nora Lunt.", "Nora Lunt", "Ruth Adler"),
        ("manager", "Works manager Stan Hartley reported a fire.", "Stan Hartley", ""),
        ("mate", "Tom Weber was mate of the barge Petrel, which sank.", "Tom Weber", "the barge Petrel"),
        ("vicar", "The Reverend John Moss, for thirty years vicar of Elm, died.", "Reverend John Moss", "Elm"),
        ("treasurer", "The meeting elected Ida Roth as treasurer of the fund.", "Ida Roth", "the fund"),
        ("clerk", "Tobias became a pupil of Ida Roth, and later the clerk of Mr. Hale.", "Tobias", "Mr. Hale"),
        ("gamekeeper", "Silas is Ida's cousin and the gamekeeper of Squire Dell.", "Silas", "Squire Dell"),
        ("daughter", "Ida was the daughter of the old smith, Otto Kern, and sang.", "Ida", "Otto Kern"),
        ("uncle", '"My uncle Abney is out," said Rupert.', "Abney", "Rupert"),
        ("uncle", '"Captain Rudd is my uncle," said Tobias.', "Captain Rudd", "Tobias"),
        ("daughter", "In the inn sat Doctor Quill with his daughter Phoebe.", "Phoebe", "Doctor Quill"),
        ("spouse", "Ida Kern married the baker Karl Moser in 1950.", "Ida Kern", "Karl Moser"),
        ("spouse", "Ida Kern was married in 1950 to Karl Moser.", "Karl Moser", "Ida Kern"),
        ("successor", "She was followed by Karl Moser.", "Karl Moser", "Ruth Adler"),
    ],
)
def test_a_sentence_states_a_role(role, text, holder, owner):
    assert read(role, text) == [(holder, owner)]


def test_a_pronoun_is_the_person_before():
    assert read("sister", "Karl Moser had a mill.", "It was old.", "His sister Ida kept the books.") == [
        ("Ida", "Karl Moser")
    ]


def test_the_person_called_in_a_speech_is_your():
    reader = RoleReader(["'Your uncle Scrooge.", "Will you let me in, Fred?'"], "", lambda name: True)
    assert [(said.holder, said.owner) for said in reader.read(0, "uncle")] == [("Scrooge", "Fred")]


@pytest.mark.parametrize(
    ("role", "texts"),
    [
        ("sister", ["Karl Moser met Otto Kern in town, and later his sister Ida came."]),  # two persons
        ("sexton", ["The guests were Bob, the sexton, and the vicar."]),  # a list
        ("sister", ["Anna, her sister Ida, and Bob came."]),  # Ida is the sister, not Anna
        ("cousin", ["Her cousin was late."]),
        ("schoolmistress", ["Jabez had been engaged to the schoolmistress."]),
    ],
)
def test_an_unclear_sentence_states_nothing_wrong(role, texts):
    assert {holder for holder, _ in read(role, *texts)} <= {"Ida"}
    assert not {owner for _, owner in read(role, *texts)} & {"Karl Moser", "Otto Kern", "Bob"}


@pytest.mark.parametrize(
    ("question", "head", "modifiers", "owner"),
    [
        ("Who is Anna Berger's sister?", "sister", set(), {"anna", "berger"}),
        ("Who is the managing director of the Orchard Press?", "director", {"managing"}, {"orchard", "press"}),
        ("Who is the head of research?", "head", set(), {"research"}),
        ("Who is the innkeeper?", "innkeeper", set(), set()),
        ("What is the name of Ned's dog?", "dog", set(), {"ned"}),
        ("Whom did Ida Kern marry?", "spouse", set(), {"ida", "kern"}),
        ("To whom was Tom apprenticed?", "master", set(), {"tom"}),
    ],
)
def test_the_role_of_a_question_is_read(question, head, modifiers, owner):
    asked = read_asked_role(question)
    assert (asked.head, asked.modifiers, asked.owner) == (head, modifiers, owner)


@pytest.mark.parametrize("question", ["Who is Tiny Tim?", "Who founded the mill?", "What are the main themes?"])
def test_other_questions_ask_for_no_role(question):
    assert read_asked_role(question) is None


@pytest.mark.parametrize(
    ("text", "thing"),
    [
        ("The Tamar Rail Users' Group said it had lost patience.", "Tamar Rail Users' Group"),
        ("The paper mill has closed.", "paper mill"),
        ("Orran Museum opened in May.", "Orran Museum"),
        ("The museum bought the mill.", ""),  # "its" may be either
        ("The museum bought Crane Mill.", ""),
        ("He closed it.", ""),
    ],
)
def test_its_is_the_only_thing_that_a_sentence_begins_with(text, thing):
    assert leading_thing(text) == thing


def test_the_subject_of_a_verb_may_be_the_holder_of_a_role():
    asked = read_role_of_verb("Who owns the paper mill?")
    assert asked is not None
    assert (asked.head, asked.owner, asked.is_now, asked.may_be_body) == ("owner", {"paper", "mill"}, True, True)
    assert read_role_of_verb("Who sold the paper mill?") is None
