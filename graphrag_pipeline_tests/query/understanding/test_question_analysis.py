import pytest

from graphrag_pipeline.query.search.basic import select_basic_context
from graphrag_pipeline.query.understanding.question_analysis import analyze_question
from graphrag_pipeline_tests.support.roots import open_built

OFFICE = {
    "one.txt": "They say that Ebenezer Scrooge kept an office in London. Old Scrooge had a clerk in a cold cell. The "
    "clerk copied letters for Scrooge until seven o'clock. Nobody in the street ever stopped Scrooge.",
    "two.txt": "On Sunday the parson of London came to Scrooge's clerk, and there Bob Cratchit met him with the "
    "whole family. They had a goose. Then Bob Cratchit sang, and Mrs. Cratchit wept.",
}


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    with open_built(tmp_path_factory.mktemp("office") / "root", OFFICE) as index:
        yield index


def ask(index, question):
    units = select_basic_context(index, question, index.settings.basic_search).text_units
    return analyze_question(index, question, units)


def test_other_forms_of_a_named_entity_count_as_the_words_of_the_question(office):
    analysis = ask(office, "Where did Ebenezer Scrooge work?")
    assert analysis.words == {"ebenezer", "scroog", "work"}
    assert analysis.name_words == {"ebenezer", "scroog"}
    assert {"ebenezer", "scroog"} <= analysis.words_in("Scrooge kept an office.")
    assert "ebenezer" not in analysis.words_in("Bob kept an office.")


@pytest.mark.parametrize(
    ("question", "answers", "does_not"),
    [
        ("Who is Ebenezer Scrooge's clerk?", "There was Bob Cratchit.", "There was Scrooge, who had a clerk."),
        ("Where did Scrooge have his office?", "It was in London.", "It was in a street."),
        ("How many letters did the clerk copy?", "He copied twenty.", "He copied some."),
        ("When did the clerk stop?", "At seven he did.", "In haste he did."),
        ("How often did the parson come?", "He came twice a week.", "He came with nine men."),
        ("How many letters did the clerk copy?", "Twenty long letters.", "Letters for two men who came."),
        ("Why did the clerk stop?", "He was cold because of the cell.", "He was cold."),
        ("Where did the clerk sleep?", "He slept in chambers above the office.", "He slept in peace."),
        ("In which city did the parson live?", "He lived in London.", "He lived in a big city."),
    ],
)
def test_an_answer_names_a_person_a_place_or_a_number_that_the_question_does_not(office, question, answers, does_not):
    analysis = ask(office, question)
    assert analysis.is_answered_by(answers)
    assert not analysis.is_answered_by(does_not)


@pytest.mark.parametrize("question", ["Who is Bob Cratchit?", "What did the clerk copy?", "Scrooge"])
def test_other_questions_have_no_kind_of_answer(office, question):
    analysis = ask(office, question)
    assert analysis.answer is None
    assert analysis.is_answered_by("anything")


def test_the_answer_to_who_names_a_person(office):
    answer = office.search("Who is Ebenezer Scrooge's clerk?").answer
    assert "there Bob Cratchit met him" in answer


def test_a_question_about_a_name_alone_asks_for_the_description(office):
    analysis = ask(office, "Who is Ebenezer Scrooge?")
    assert analysis.is_described_by("They say that Ebenezer Scrooge kept an office in London. And so on.")
    assert not analysis.is_described_by("And so on. They say that Ebenezer Scrooge kept an office in London.")
    assert not ask(office, "Who met Ebenezer Scrooge?").is_described_by(
        "They say that Ebenezer Scrooge kept an office."
    )


def test_a_measure_and_used_to_are_no_words_of_the_answer(office):
    assert ask(office, "How often did the parson come?").words == {"parson", "com"}
    assert ask(office, "Who used to own the office?").words == {"own", "offic"}
    assert "find" in ask(office, "Who found the goose?").words
    assert "los" in ask(office, "Who lost the goose?").words


def test_the_noun_of_which_company_or_in_which_part_is_no_word_of_the_answer(office):
    assert ask(office, "In which part of London did Scrooge live?").words == {"london", "scroog", "liv"}
    assert ask(office, "Which company owned the office?").words == {"own", "offic"}
    assert "part" in ask(office, "Which part of the office was cold?").words


def test_a_text_says_the_words_of_a_question_in_other_words(office):
    analysis = ask(office, "Who owns the office?")
    assert "own" in analysis.words_in("The owner was ill.")
    assert "own" not in analysis.own_words_in("The owner was ill.")


def test_what_is_asked_of_a_named_thing_is_no_name(tmp_path):
    texts = {
        "manual.txt": "The Ostara H200 is a boiler. The nominal output is 20 kW. Keep the boiler clean.",
        "test.txt": "Run the boiler at nominal output for an hour. The nominal output of a boiler is on its plate.",
    }
    with open_built(tmp_path / "root", texts) as index:
        analysis = ask(index, "What is the nominal output of the Ostara H200?")
        assert analysis.name_words == {"ostara", "h200"}
        assert analysis.description == ()
        assert ask(index, "What is the Ostara H200?").is_described_by("The Ostara H200 is a boiler.")
