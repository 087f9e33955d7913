"""Words of a question that no text has: what separates questions without an answer."""

from __future__ import annotations

import pytest

from graphrag_pipeline.query.understanding.covered_words import measure_coverage
from graphrag_pipeline_tests.support.roots import open_built

TEXTS = {
    "yard.txt": "Ada Brock founded the boat yard at Welby in 1903. She hired the carpenter Tom Pruitt. Tom Pruitt was "
    "her clerk and her pupil for nine years. The yard paid him two pounds a week and sold forty boats.",
    "quiz.txt": "Question 1: Who founded the boat yard? Send the answer to Welby before May.",
    "school.txt": "谁是李明的老师？王青是李明的老师。他住在山上的小屋里。",
    "guide.txt": "Prune apple trees in winter. The most common errors are blunt tools and late pruning. The guide was "
    "made by a panel of growers under the presidency of Dr Lena Marsh. Stop pruning when buds open.",
    "hobb.txt": "Mr. and Mrs. Hobb shook hands with all. Mr. Hobb wept. The mill opened with a speech of its chair.",
    "town.txt": "Welby is a town on the river Ash. Dr. Ivo Lang was the dentist of Lord Harcourt. Lord Harcourt owned "
    "the mill, and his sister Maud lived at Welby.",
}
METHODS = ["local", "basic", "global", "lazy", "drift"]


@pytest.fixture(scope="module")
def yard(tmp_path_factory):
    with open_built(tmp_path_factory.mktemp("yard") / "root", TEXTS) as index:
        yield index


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("Who founded the boat yard?", ()),
        ("Who established the boat yard?", ()),  # a word of near meaning
        ("What is Tom Pruitt's telephone number?", ("number", "telephone")),
        ("Who was Tom Pruitt's teacher?", ()),  # the text has the role of the other person
        ("Who originally founded the boat yard?", ()),  # an adverb decides nothing
        ("Who will perform the opening ceremony of the boat yard?", ()),
        ("Who is Mr. Hobb's wife?", ()),
        ("Who is the chairman of the mill?", ()),
        ("Who is Tom Pruitt's dentist?", ("dentist",)),  # another person's dentist
        ("Who is Tom Pruitt's dentist, and who founded the boat yard?", ()),  # one of two questions is answered
        ("Who is Tom Pruitt's dentist? What is his telephone number?", ("dentist",)),
        ("What is the capital of Portugal?", ("capital", "portugal")),
        ("How tall was Lord Harcourt?", ("how tall",)),
        ("How old is Tom Pruitt?", ()),  # a text counts his years
        ("What is the name of Tom Pruitt's river?", ("river",)),  # no text says whose
        ("Who is Tom Pruitt's sister?", ("sister",)),  # another person's sister
        ("Who is the president of the panel?", ()),  # a word of its family, and "of" names its holder
        ("What are the main errors?", ()),  # no text has to say "main"
        ("When should pruning be stopped?", ()),
        ("Which events involved growers?", ()),
        ("Who is the president of Portugal?", ("portugal",)),
        ("Wer ist der Zahnarzt von Tom Pruitt?", ()),  # vectors and stems are English
        ("谁是老师？", ()),
    ],
)
def test_a_word_is_missing_if_no_text_has_it_or_one_near_to_it(yard, question, missing):
    assert measure_coverage(yard, question, list(TEXTS.values())).missing == missing


def test_one_missing_word_of_many_does_not_count(yard):
    coverage = measure_coverage(
        yard, "Which famous carpenter did the boat yard pay two pounds a week?", list(TEXTS.values())
    )
    assert coverage.missing == ("famous",)
    assert coverage.is_covered


def test_a_missing_verb_is_not_enough_unless_texts_state_it_by_itself(yard):
    texts = list(TEXTS.values())
    assert measure_coverage(yard, "Which apple trees should be fertilized?", texts).is_covered
    assert measure_coverage(yard, "Who fertilized trees?", texts).is_covered
    assert not measure_coverage(yard, "Who painted trees?", texts).is_covered
    assert not measure_coverage(yard, "When was Tom Pruitt born?", texts).is_covered


@pytest.mark.parametrize(
    ("question", "is_covered"),
    [
        ("Who heads the panel?", True),  # "presidency"
        ("What was the reason for the errors?", True),  # "reason" says little
        ("Who is the yard's lawyer?", False),
        ("How much money did Tom Pruitt get?", True),  # an amount says money
        ("Which university did Ada Brock attend?", False),
        ("Which town did Ada Brock visit?", True),  # a name answers without "town"
        ("What does PRUITT stand for?", True),
        ("Who is Lord Harcourt's husband?", False),
        ("When was Dr. Ivo Lang born?", False),
        ("Who wanted to open the mill?", True),  # an infinitive is a verb
        ("Who was Ada Brock's student?", True),  # "her pupil"
        ("Which prize did Ada Brock receive?", False),
        ("What was the temperature at Welby?", False),
    ],
)
def test_texts_say_words_in_other_words(yard, question, is_covered):
    assert measure_coverage(yard, question, list(TEXTS.values())).is_covered is is_covered


def test_a_verb_that_texts_state_by_itself_must_be_in_a_document_with_the_names(yard):
    texts = ["lang\n\nIvo Lang was a dentist.", "maud\n\nMaud Harcourt was born at Welby in 1901."]
    assert measure_coverage(yard, "When was Maud Harcourt born?", texts).is_covered
    assert measure_coverage(yard, "When was Ivo Lang born?", texts).missing == ("born",)


def test_an_amount_near_the_matter_says_what_it_measures(yard):
    texts = ["In Tashir the mercury reached 48 degrees on Wednesday. Boats on the canal go four miles an hour."]
    assert measure_coverage(yard, "What was the temperature in Tashir?", texts).is_covered
    assert measure_coverage(yard, "How fast do boats go?", texts).is_covered


def test_the_lawyer_of_the_company_may_be_that_of_the_firm(yard):
    text = "Zanj Lines lost its case. The company's lawyer, Neville Patel, announced an appeal. The girl's lawyer wept."
    assert measure_coverage(yard, "Who is the lawyer of Zanj Lines?", [text]).is_covered
    text = text.replace("company's", "boy's")
    assert measure_coverage(yard, "Who is the lawyer of Zanj Lines?", [text]).missing == ("lawyer",)


def test_without_texts_nothing_is_missing(yard):
    assert measure_coverage(yard, "What is Tom Pruitt's telephone number?", []).is_covered


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "question",
    ["What is Tom Pruitt's telephone number?", "Who is Tom Pruitt's dentist?", "What is the capital of Portugal?"],
)
def test_every_method_declines_what_no_text_covers(yard, method, question):
    answer = yard.search(question, method=method).answer
    assert answer.startswith("Not in the index: ")
    assert "no text says" in answer or "none says anything" in answer


def test_a_word_that_texts_say_of_others_is_not_called_absent(yard):
    said = 'no text says "dentist" of what the question names, or anything near'
    assert said in yard.search("Who is Tom Pruitt's dentist?", method="basic").answer
    assert 'no text says "number" or "telephone", or' in yard.search("What is Tom Pruitt's telephone number?").answer


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "question",
    ["Who founded the boat yard?", "How much did the yard pay Tom Pruitt?", "What are the most important errors?"],
)
def test_no_method_declines_what_the_texts_say(yard, method, question):
    assert not yard.search(question, method=method).answer.startswith(("Not", "Nothing"))


@pytest.mark.parametrize("method", METHODS)
def test_a_sentence_that_is_the_question_is_not_quoted(yard, method):
    result = yard.search("Who founded the boat yard?", method=method)
    assert "Ada Brock founded" in result.citations[0].quote
    assert not any("Who founded" in citation.quote for citation in result.citations)


@pytest.mark.parametrize("method", METHODS)
def test_a_chinese_question_in_a_text_is_not_its_answer(yard, method):
    result = yard.search("谁是李明的老师？", method=method)
    assert result.citations[0].quote == "王青是李明的老师。"
    assert not any("谁是" in citation.quote for citation in result.citations)
