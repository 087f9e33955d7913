"""Sentence ends by rule; the spans are always the whole text."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.text.sentences import MAX_SENTENCE, grapheme_start, split_sentences

CASES = {
    "plain": ["One. ", "Two? ", "Three! ", "Four"],
    "titles": ["Mr. and Mrs. Smith met Dr. Who in St. Ives. ", "They left."],
    "latin abbreviations": ["Some, e.g. Bob, i.e. Robert, came. ", "He left."],
    "initials": ["J. R. R. Tolkien and G.K. Chesterton wrote. ", "He read."],
    "acronym before a name": ["The U.S. Army came."],
    "acronym at the end": ["He left the U.S. ", "The rest stayed."],
    "company": ["Acme Inc. Bob owns it. ", "Fine."],
    "numbers": ["See No. 5 and Fig. 2 on p. 12. ", "It is 3.14 m."],
    "no as an answer": ["No. ", "Five came."],
    "month": ["He came on Dec. 24. ", "It snowed."],
    "quotation goes on": ["'Bah!' said Scrooge. ", "'Humbug!'"],
    "quotation ends": ['He said "Stop!" ', "Then he left. ", "(Not I.) ", "So."],
    "ellipsis": ["Wait... what? ", "Wait... ", "He left… ", "Now."],
    "footnote": ["It is so.[12] ", "And so."],
    "line break inside": ["A sentence\nover two lines. ", "Next."],
    "paragraph": ["A title\n\n", "A paragraph without an end\n \n\n", "Last"],
    "markdown headings": ["# One. Two\n", "Body. ", "Body\n\n", "## Three. Four\n", "Body"],
    "list": ["Intro:\n", "- one\n", "* two\n", "3. three. ", "Four\n", "(a) five"],
    "table": ["| a | b |\n", "| c | d |"],
    "chinese": ["你好。", "“走吧！”", "他说。", "真的？！", "是"],
    "japanese quotation": ["「行こう。」", "彼は言った。"],
    "hindi": ["यह है। ", "वह है।"],
    "arabic": ["ما هذا؟ ", "كتاب۔ ", "نعم"],
    "german": ["Das ist z.B. „gut.“ ", "Ja."],
    "no space after": ["See example.com and node.js for v1.2.3 now."],
    "white space": ["  \n One. \t\n", "Two. "],
}


@pytest.mark.parametrize("sentences", CASES.values(), ids=CASES)
def test_sentences_end_where_a_reader_ends_them(sentences):
    text = "".join(sentences)
    assert [text[start:end] for start, end in split_sentences(text)] == sentences


def test_an_empty_text_has_no_sentence_and_white_space_is_one():
    assert split_sentences("") == []
    assert split_sentences(" \n ") == [(0, 3)]


texts = st.lists(
    st.sampled_from([*"aAbI1 \n\t.!?…。！\"'”)#-|*[]", "Mr. ", "U.S. ", "\n\n", "# ", "\u0301", "👩\u200d", "\ud800"])
).map("".join)


@given(st.one_of(st.text(), texts))
def test_spans_partition_the_text_and_begin_with_a_letter(text):
    spans = split_sentences(text)
    assert "".join(text[start:end] for start, end in spans) == text
    assert all(0 < end - start <= MAX_SENTENCE for start, end in spans)
    assert all(not text[start].isspace() for start, _ in spans[1:])


@given(texts, texts)
def test_a_paragraph_is_split_alike_at_any_place(before, after):
    def of(text):
        return [text[start:end].strip() for start, end in split_sentences(text)]

    before, after = before.strip() or "a", after.strip() or "b"
    assert of(before + "\n\n" + after) == of(before) + of(after)


@pytest.mark.parametrize("unit", ["word ", "a", "é\u0301", "👩\u200d👧", "🇩🇪", "\n ", "\r\n"])
def test_no_sentence_is_longer_than_the_limit_nor_cut_inside_a_letter(unit):
    text = "x" + unit * 20_000 + "y"
    spans = split_sentences(text)
    assert "".join(text[start:end] for start, end in spans) == text
    assert max(end - start for start, end in spans) <= MAX_SENTENCE
    assert all(grapheme_start(text, start) == start for start, _ in spans)


def test_an_edit_before_an_overlong_sentence_moves_few_of_its_cuts():
    text = " ".join(f"word{number * 7919 % 10_007}" for number in range(60_000))
    cut = {text[start:end] for start, end in split_sentences(text)}
    edited = "new words on top " + text
    assert len({edited[start:end] for start, end in split_sentences(edited)} - cut) <= len(cut) / 4


@pytest.mark.parametrize(
    "text",
    ["a" * 2_000_000, "." * 2_000_000 + "x", "。" * 2_000_000 + "，", "\n" * 2_000_000, "\n " * 1_000_000 + "x",
     "." + '"' * 2_000_000, "!'" * 1_000_000, "\n" + "\t" * 2_000_000 + "x", "." + "[1]" * 700_000 + "x",
     "#" * 2_000_000, "e" + "\u0301" * 2_000_000],
    ids=lambda text: ascii(text[:4]),
)  # fmt: skip
def test_time_grows_with_length_only(text):
    start = time.process_time()
    split_sentences(text)
    assert time.process_time() - start < 5
