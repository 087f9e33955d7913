"""Names in documents that are not English."""

import pyarrow as pa
import pytest

from graphrag_pipeline.engines.embedded.extraction import extract_graph
from graphrag_pipeline.settings.settings import ExtractionSettings
from graphrag_pipeline.text.languages import detect_language, has_han, is_unspaced, joins, simplify, spell_both
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


GERMAN = """Die Bundeskanzlerin Angela Merkel reiste am Montag nach Paris. In der Stadt traf sie den Präsidenten
Emmanuel Macron. Merkel sagte, die Verhandlungen seien schwierig. Das Abkommen betrifft die Landwirtschaft, die
Industrie und den Handel mit Wasser und Strom. Herr Schmidt aus Köln, ein Lehrer, war mit seiner Frau dabei. Die
Deutsche Bank und die Europäische Union unterstützen den Plan. Merkels Regierung hofft auf Geld. Der Hund lief über die
Straße, und das Kind lachte."""
FRENCH = """Le président Emmanuel Macron a rencontré Olaf Scholz à Berlin. La réunion a duré deux heures. Macron a
déclaré que la France resterait en Europe. Les ministres étaient présents. Jeanne d'Arc est née à Domrémy. Elle est
morte à Rouen. Victor Hugo a écrit Les Misérables. Le musée du Louvre se trouve à Paris."""
SPANISH = """El presidente Pedro Sánchez viajó a Bogotá el lunes. La reunión con Gustavo Petro duró dos horas.
Sánchez dijo que España apoyaría el acuerdo. Los ministros estaban presentes. Gabriel García Márquez nació en
Aracataca. También vivió en Barcelona y en la Ciudad de México."""
ITALIAN = """Il presidente Sergio Mattarella ha incontrato Giorgia Meloni a Roma. La riunione è durata due ore. Meloni
ha detto che l'Italia avrebbe sostenuto il piano. Leonardo da Vinci nacque vicino a Firenze. Dante Alighieri scrisse la
Divina Commedia. I ministri erano presenti."""


def names_in(text: str) -> dict[str, str]:
    documents = pa.table({"id": ["d"], "title": ["d"], "text": [text]})
    units = pa.table({"id": ["u"], "document_id": ["d"], "start": [0], "end": [len(text)]})
    mentions = extract_graph(documents, units, ExtractionSettings())["entity_mentions"]
    return dict(zip(mentions["name"].to_pylist(), mentions["type"].to_pylist(), strict=True))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GERMAN, "de"),
        (FRENCH, "fr"),
        (SPANISH, "es"),
        (ITALIAN, "it"),
        ("It was the best of times, it was the worst of times.", "en"),
        ("O presidente não foi para a cidade com os filhos do homem, mas para uma casa.", "pt"),
        ("De man is niet naar het huis van zijn vader, maar naar een ander.", "nl"),
        ("萧炎站在石桥上。", "zh"),
        ("山田さんは東京に住んでいる。", "ja"),
        ("Scrooge 1843", ""),
        ("", ""),
        ("Пушкин родился в Москве.", ""),
    ],
)
def test_language_is_detected_by_function_words_or_script(text: str, expected: str) -> None:
    assert detect_language(text) == expected


def test_german_nouns_are_not_names() -> None:
    found = names_in(GERMAN)
    assert found.keys() >= {"Angela Merkel", "Emmanuel Macron", "Herr Schmidt", "Deutsche Bank", "Europäische Union"}
    assert [name for name in found if " " not in name] == []


@pytest.mark.parametrize(
    ("text", "expected", "unwanted"),
    [
        (FRENCH, ["Emmanuel Macron", "Olaf Scholz", "Berlin", "France", "Europe", "Jeanne d'Arc", "Domrémy", "Rouen",
                  "Victor Hugo", "Louvre", "Paris"], {"La", "Le", "Elle", "Les", "Arc", "Jeanne"}),
        (SPANISH, ["Pedro Sánchez", "Bogotá", "Gustavo Petro", "España", "Gabriel García Márquez", "Aracataca",
                   "Barcelona", "Ciudad de México"], {"El", "La", "Los", "También", "Sánchez"}),
        (ITALIAN, ["Sergio Mattarella", "Giorgia Meloni", "Roma", "Leonardo da Vinci", "Firenze",
                   "Dante Alighieri", "Divina Commedia"], {"Il", "La", "I", "Meloni"}),
    ],
)  # fmt: skip
def test_names_in_romance_languages_are_found(text: str, expected: list[str], unwanted: set[str]) -> None:
    found = names_in(text)
    assert set(expected) <= found.keys()
    assert not unwanted & found.keys()


@pytest.mark.parametrize(
    "text",
    [
        "Александр Пушкин родился в Москве.",
        "김철수는 서울에 산다.",
        "ولد محمد في القاهرة.",
        "กรุงเทพมหานคร",
        "\x00\ufeff",
        "🎄" * 9,
    ],
)
def test_any_script_is_read_without_a_crash(text: str) -> None:
    names_in(text)
