import pytest

from graphrag_pipeline.query.answers.quoting import Floor, quote_passages, quote_runs
from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.query.search.basic import select_basic_context
from graphrag_pipeline.query.selection.passages import MAX_PASSAGE_SENTENCES, MAX_PASSAGE_WORDS, sentences_of
from graphrag_pipeline.query.understanding.question_analysis import analyze_question
from graphrag_pipeline.text.sentence_forms import count_words
from graphrag_pipeline.text.sentences import split_sentences
from graphrag_pipeline_tests.support.roots import open_built

SHORT_TEXTS = {
    "de.txt": "Olaf Scholz ist ein deutscher Politiker der SPD. Er war von 2021 bis 2025 Bundeskanzler der "
    "Bundesrepublik Deutschland. Olaf Scholz wohnt in Potsdam. Der Zug war spät. Die Straße war leer. Angela Merkel "
    "war seine Vorgängerin. Der Kaffee war kalt. Die Katze schlief auf dem Sofa.",
    "zh.txt": "萧炎是萧家的少年。他曾经是天才。萧炎的父亲是萧战。药老是萧炎的老师。药老住在戒指里。萧薰儿喜欢萧炎。"
    "天气很好。街上没有人。萧炎写下休书。三年之约就此定下。萧炎离开乌坦城。他前往魔兽山脉修炼。",
    "en.txt": "Bill Gates founded Microsoft in 1975. The weather was nice. Paul Allen met Bill Gates at school. Satya "
    "Nadella leads Microsoft today. The train was late. The street was empty.",
}


@pytest.fixture(scope="module")
def short_texts(tmp_path_factory):
    return open_built(tmp_path_factory.mktemp("short"), SHORT_TEXTS)


def quote(index, question, n=6, said=(), **floor):
    units = select_basic_context(index, question, index.settings.basic_search).text_units
    return quote_passages(index, analyze_question(index, question, units), units, n, said, **floor)


def test_quotations_are_verbatim_and_those_of_a_document_in_reading_order(carol):
    said = quote(carol, "What did Scrooge see in the knocker?")
    assert said
    assert all(text == " ".join(citation.quote.split()) for text, citation in said)
    for document_id in {citation.document_id for _, citation in said}:
        starts = [citation.start for _, citation in said if citation.document_id == document_id]
        assert starts == sorted(starts)


def test_documents_are_in_the_order_of_their_best_passages():
    first, second = (
        sentences_of(TextUnitRecord(f"u{i}", i, f"d{i}", f"title {i}", text, 0, len(text), 9, 0.5))
        for i, text in enumerate(("Ida came. Bo left.", "Cy sang. Di slept. Ed ran."))
    )
    quotes = quote_runs([[second[2]], [first[1]], [second[0]]])
    assert [text for text, _ in quotes] == ["Cy sang.", "Ed ran.", "Bo left."]


@pytest.mark.parametrize("n", [0, 1, 2])
def test_no_more_than_asked_and_nothing_that_was_said(carol, n):
    said = quote(carol, "What did Scrooge see in the knocker?", n)
    assert len(said) <= n
    assert not {text for text, _ in said} & {text for text, _ in quote(carol, "What is the knocker?", said=said)}


def test_nothing_below_the_floor_is_quoted(carol):
    assert not quote(carol, "Which knocker did Scrooge see?", floor=Floor(1.1, 0.0))


@pytest.mark.parametrize(
    ("question", "answers", "beside"),
    [
        ("Wer ist Olaf Scholz?", "Er war von 2021 bis 2025 Bundeskanzler", ["Der Zug", "Die Straße", "Der Kaffee"]),
        ("Who is Satya Nadella?", "Satya Nadella leads Microsoft today.", ["weather", "train", "street"]),
        ("萧炎是谁？", "萧炎是萧家的少年。", ["天气很好", "街上没有人"]),
    ],
)
def test_what_stands_beside_an_answer_is_not_quoted(short_texts, question, answers, beside):
    quoted = [text for text, _ in quote(short_texts, question)]
    assert any(answers in text for text in quoted)
    assert not [word for word in beside for text in quoted if word in text]


def test_a_long_run_is_several_quotations(short_texts):
    said = quote(short_texts, "萧炎是谁？")
    assert len(said) > 1
    assert all(len(split_sentences(text)) <= MAX_PASSAGE_SENTENCES for text, _ in said)


@pytest.mark.parametrize("question", ["Who was Marley?", "Who is Ebenezer Scrooge's clerk?", "Who is Tiny Tim?"])
def test_a_quotation_is_a_few_sentences(carol, question):
    for text, citation in quote(carol, question):
        n_sentences = len(split_sentences(citation.quote))
        assert n_sentences == 1 or (n_sentences <= 3 and count_words(text) <= MAX_PASSAGE_WORDS)


def test_a_quotation_inside_a_passage_is_not_broken(carol):
    assert not [text for text, _ in quote(carol, "How did Jacob Marley die?") if text.startswith("Marley's Ghost!'")]


CARRIED = {
    "bakery.txt": "A fire destroyed the Mendel bakery in the old town of Quedlau early on Sunday. Nobody was hurt. "
    "Seventy firefighters fought the flames until noon. Owner Jakob Roth said that the recipes were safe in a bank.",
    "ferry.txt": "The captain of a ferry that sank in March was sentenced to six years in prison on Thursday. Rashid "
    "Omari had let too many people board, the High Court found. Survivors wept in the courtroom.",
    "rust.txt": "Rust is the most common disease of pears. It spots leaves of young trees. It is caused by a fungus "
    "that winters on juniper. Neglected rust leads to loss of fruit. Spraying should start in April, before the buds "
    "open. A high dose causes burns.",
    "mill.txt": "The paper mill at Arn was closed in May. The old mill was known for its smoke. Its last batch weighed "
    "forty tonnes. The water board wants the land.",
    "school.txt": "'Know it!' said Harker. 'Was I apprenticed here?'\n\nThey went in.\n\nAt the desk by the stove sat "
    "Silas Dorn. Silas Dorn drank tea.",
}


@pytest.fixture(scope="module")
def carried(tmp_path_factory):
    return open_built(tmp_path_factory.mktemp("carried"), CARRIED)


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("Who owns the Mendel bakery?", "Owner Jakob Roth said"),  # the bakery is three sentences before
        ("Who was sentenced to six years in prison?", "Rashid Omari had let"),  # the next sentence names him
        ("How many tonnes did the last batch of the mill weigh?", "forty tonnes"),
        ("To whom was Harker apprenticed?", "sat Silas Dorn."),  # two paragraphs behind the question in the text
        ("What causes rust?", "It is caused by a fungus"),  # "it" goes on about the rust
    ],
)
def test_a_passage_goes_on_about_what_stands_before_it(carried, question, says):
    assert any(says in text for text, _ in quote(carried, question))
