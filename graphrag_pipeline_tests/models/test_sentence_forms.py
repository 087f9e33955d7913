from __future__ import annotations

import pytest

from graphrag_pipeline.models.sentence_forms import count_words, is_sentence, leans_on_context, weigh_form


@pytest.mark.parametrize(
    "text",
    [
        "Scrooge was a miser.",
        '"Bah!" said Scrooge, "Humbug!"',
        "“I wear the chain I forged in life,” replied the Ghost.",
        "In 1843 the firm had been Scrooge and Marley for years.",
        "The team is credited as a producer of the eBook",
        "萧炎是乌坦城萧家的少爷。",
        "Скрудж был скупым человеком.",
    ],
)
def test_a_sentence_stands_alone(text):
    assert is_sentence(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "...",
        "STAVE ONE",
        "# Marley's Ghost",
        "The Last of the Spirits.",
        "A Christmas Carol in Prose, by Charles Dickens.",
        "and so he went to bed.",
        "He said:",
        "Bah! Humbug!",
        "| Name | Age | Town |",
        "- a list item that goes on for a while",
        "* * * * *",
        "第一章",
        "He stooped down to hear it, but at the first sound of",
    ],
)
def test_a_heading_or_fragment_does_not(text):
    assert not is_sentence(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She also welcomes Martha.", True),
        ("Through these actions, Fred shows affection.", True),
        ("“He died seven years ago,” Scrooge replied.", True),
        ("All the other ladies expressed the same opinion.", True),
        ("Hermione reads.", False),
        ("Hermione reads at the same time as Ron.", False),
        ("他是萧家的少年。", True),
        ("萧炎没有回答。", False),
        ("Scrooge likes her.", False),
    ],
)
def test_a_sentence_that_points_back_is_known(text, expected):
    assert leans_on_context(text) is expected


@pytest.mark.parametrize(
    "text",
    [
        "She also welcomes her daughter Martha warmly.",
        '"Bah!" said Scrooge to his nephew and the clerk.',
        "Scrooge said, 'it is not my business to be kind.",
        "Is there nobody who would keep Christmas with him?",
        "Marley was dead.",
        "Scrooge " + "and the clerk and the nephew and the ghost " * 8 + "met.",
    ],
)
def test_a_sentence_that_reads_badly_alone_weighs_less(text):
    assert (
        weigh_form(text)
        < weigh_form("Scrooge was the sole executor of Jacob Marley's will and his only mourner.")
        == 1.0
    )


def test_words_are_counted_in_scripts_without_spaces():
    assert count_words("Marley was dead.") == 3
    assert 5 <= count_words("萧炎已经站在后山的石台上。") <= 8
