"""Token F1 and ROUGE-L: their laws, and values of SQuAD's script and of the package rouge-score."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.evaluation.questions import measure_overlap, rouge_l, rouge_tokens, squad_tokens, token_f1

texts = st.lists(
    st.sampled_from(["Bob", "the", "clerk", "Tim's", "goose,", "15", "萧炎", "a", "!", "Straße"]), max_size=12
).map(" ".join)


@given(texts, texts)
def test_both_figures_are_symmetric_shares_and_1_on_equality(one: str, other: str) -> None:
    for tokens, figure in ((squad_tokens, token_f1), (rouge_tokens, rouge_l)):
        value = figure(tokens(one), tokens(other))
        assert 0 <= value <= 1 and value == figure(tokens(other), tokens(one))
        assert figure(tokens(one), tokens(one)) == 1
    assert rouge_l(squad_tokens(one), squad_tokens(other)) <= token_f1(squad_tokens(one), squad_tokens(other))


@given(texts, st.lists(texts, min_size=1, max_size=3), texts)
def test_another_accepted_answer_never_lowers_a_figure(answer: str, references: list[str], more: str) -> None:
    one, two = measure_overlap(answer, references), measure_overlap(answer, [*references, more])
    assert measure_overlap(answer, [*references, answer]).is_exact
    if all(part.isascii() for part in (answer, more, *references)):  # the same language is recognized
        assert two.f1 >= one.f1 and two.rouge_l >= one.rouge_l and two.is_contained >= one.is_contained


@pytest.mark.parametrize(
    ("answer", "reference", "f1", "rouge"),
    [
        ("Bob Cratchit", "the clerk was Bob Cratchit", 2 / 3, 4 / 7),
        ("a goose and a pudding", "they ate a goose, then the pudding", 0.5, 0.5),
        ("Scrooge's clerk", "the clerk of Scrooge", 0.4, 2 / 7),
        ("The Denver Broncos!", "Denver Broncos", 1.0, 0.8),
        ("萧炎是萧家的少年", "萧炎", 0.4, 0.4),
        ("", "goose", 0.0, 0.0),
    ],
)
def test_figures_are_those_of_the_published_scripts(answer: str, reference: str, f1: float, rouge: float) -> None:
    """F1 as SQuAD's evaluation script computes it; ROUGE-L as rouge-score 0.1.2 does, but for Chinese."""
    found = measure_overlap(answer, [reference])
    assert (found.f1, found.rouge_l) == (pytest.approx(f1), pytest.approx(rouge))


@pytest.mark.parametrize(
    ("answer", "reference", "f1", "rouge"),
    [
        ("他今年42岁了。", "42岁", 4 / 8, 4 / 8),
        ("用Python写的程序", "程序", 4 / 8, 4 / 8),
        ("价格是100元。", "100 元", 4 / 7, 4 / 7),
        ("会议在2024年3月5日举行。", "2024年", 4 / 13, 4 / 13),
        ("彼はＪａｖａ，Pythonと「C」を使う", "Python", 2 / 10, 2 / 10),
    ],
)
def test_digits_and_latin_words_among_chinese_are_tokens_of_their_own(
    answer: str, reference: str, f1: float, rouge: float
) -> None:
    found = measure_overlap(answer, [reference], "是什么？")
    assert (found.f1, found.rouge_l) == (pytest.approx(f1), pytest.approx(rouge))
    assert found.is_contained and not found.is_exact


def test_articles_are_removed_in_english_alone() -> None:
    german = "Wer steht an der Tür und wartet auf die anderen?"
    assert measure_overlap("an der Tür", ["der Tür"], german).f1 == pytest.approx(0.8)
    assert measure_overlap("an apple", ["apple"], "What did the boy eat in the house?").is_exact


def test_an_answer_contains_a_reference_as_whole_words() -> None:
    assert measure_overlap("He paid fifteen shillings a week.", ["Fifteen shillings"]).is_contained
    assert not measure_overlap("He paid fifteen shilling.", ["fifteen shillings"]).is_contained
    assert measure_overlap("Who knows", ["Bob", "knows"]).is_contained


def test_a_reference_of_articles_alone_is_not_met_by_an_empty_answer() -> None:
    empty, same = measure_overlap("", ["the"]), measure_overlap("A.", ["A"], "Which blood group is it?")
    assert (empty.f1, empty.is_exact, same.f1, same.is_exact, same.is_contained) == (0, False, 1, True, True)
