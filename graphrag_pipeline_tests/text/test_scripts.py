import pytest

from graphrag_pipeline.text.scripts import has_han, is_unspaced, joins, simplify, spell_both
from graphrag_pipeline.text.sentence_forms import fold


@pytest.mark.parametrize(
    ("traditional", "simplified"),
    [
        ("葉知秋是誰？", "叶知秋是谁？"),
        ("皇后在後宮裡，為大臣寫信。", "皇后在后宫里，为大臣写信。"),
        ("頭髮發黃", "头发发黄"),
        ("她看著臺灣的山峰", "她看着台湾的山峰"),
    ],
)
def test_both_sets_of_characters_are_read_alike(traditional: str, simplified: str) -> None:
    assert simplify(traditional) == simplified and simplify(simplified) == simplified
    assert fold(traditional) == fold(simplified)
    for written in (traditional, simplified):
        assert set("".join(spell_both(written))) >= {*traditional, *simplified}


def test_the_first_traditional_spelling_has_the_commonest_forms() -> None:
    assert spell_both("叶知秋在台湾")[:2] == ["叶知秋在台湾", "葉知秋在臺灣"]
    assert spell_both("那里") == ["那里", "那裡", "那裏"]


def test_texts_without_chinese_stay_the_same_object() -> None:
    for text in ("Bob Cratchit", "“It’s café”", "홍길동", "ไทย"):
        assert simplify(text) is text and spell_both(text) == [text] and not has_han(text)


@pytest.mark.parametrize("letter", ["林", "の", "ア", "한", "ไ", "ក", "က", "ລ", "\U00020000"])
def test_a_letter_of_a_script_without_blanks_joins_no_word(letter: str) -> None:
    assert is_unspaced(letter) and not joins("n", letter) and not joins(letter, "3")


def test_letters_and_digits_of_other_scripts_join_words() -> None:
    for letter in "aé9яΩא":
        assert joins(letter, "b") and not is_unspaced(letter)
    assert not joins("", "a") and not joins("a", "") and not joins("a", ".")
