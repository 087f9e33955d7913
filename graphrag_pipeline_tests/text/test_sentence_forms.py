from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.text.sentence_forms import (
    count_words,
    find_words,
    is_cry,
    is_sentence,
    leans_on_context,
    weigh_form,
)


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
def test_a_complete_sentence_is_recognized(text):
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
def test_a_heading_or_fragment_is_not_a_sentence(text):
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
def test_a_sentence_that_points_back_is_recognized(text, expected):
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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2024年3月5日举行", ["2024", "年", "3", "月", "5", "日", "举", "行"]),
        ("用Python写的程序", ["用", "Python", "写", "的", "程", "序"]),
        ("佐々木さんのiPhone", ["佐", "々", "木", "さ", "ん", "の", "iPhone"]),
        ("データ・ベースは二〇二四年", [*"データベースは二〇二四年"]),
        ("𠮷野家へ", ["𠮷", "野", "家", "へ"]),
        ("서울의 GPU는 3개다", ["서울의", "GPU는", "3개다"]),
        ("Tim's 2nd co-op's naïve_test", ["Tim's", "2nd", "co", "op's", "naïve", "test"]),
    ],
)
def test_characters_of_scripts_without_spaces_are_words_of_their_own(text, words):
    assert find_words(text) == words


def _is_unspaced(character: str) -> bool:
    return unicodedata.name(character).startswith(("CJK UNIFIED", "HIRAGANA LETTER", "KATAKANA LETTER"))


@given(st.text("萧炎手机さんカナ한글ab9Ωж -_，。", max_size=30))
def test_words_are_single_characters_without_spaces_and_the_runs_between_them(text):
    apart = (f" {character} " if _is_unspaced(character) else character for character in text)
    letters = (character if character.isalnum() else " " for character in "".join(apart))
    assert find_words(text) == "".join(letters).split()


@pytest.mark.parametrize(
    "text",
    [
        "'Not coming upon Christmas Day!'",
        "'I'll give you Mr. Scrooge, the Founder of the Feast!'",
        "'Why, bless my soul!' cried Fred",
        "'Home, little Fan?' returned the boy.",
        "'Why, it's Ali Baba!' 'It's dear old honest Ali Baba!",
        '"No!" said he, "never!"',
        "\u201eWer da?\u201c rief er.",
        "\u00abQui va l\u00e0 ?\u00bb cria-t-il.",
        "\u201c\u4ec0\u4e48\uff01\u201d\u8427\u708e\u559d\u9053\u3002",
    ],
)
def test_direct_speech_that_ends_as_an_exclamation_is_an_exclamation(text):
    assert is_cry(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Scrooge was the Ogre of the family!",
        "'I'll retire to Bedlam.'",
        "'Tis the season in which Scrooge learns to love the world.",
        "'Humbug!' said Scrooge. He walked across the room.",
        "'Belle,' said the husband, turning to his wife with a smile, 'I saw an old friend of yours this afternoon.'",
        "'Not coming!' said Bob, with a sudden declension in his high spirits.",
    ],
)
def test_a_sentence_with_text_around_its_quotations_is_not_an_exclamation(text):
    assert not is_cry(text)


@given(st.text(st.characters(max_codepoint=127)))
def test_words_of_an_ascii_text_are_those_that_it_has_before_other_letters(text: str) -> None:
    assert [*find_words(text), "\u00e9"] == find_words(f"{text} \u00e9")
