"""The encodings of short texts in Latin letters: those of Europe's languages, and no other one for Western texts."""

from __future__ import annotations

import gzip
import json
from itertools import islice

import pytest

from graphrag_pipeline.inputs.legacy_encodings import find_latin_encoding, guess_encoding
from graphrag_pipeline_tests.support.paths import REPOSITORY
from graphrag_pipeline_tests.support.thoroughness import repetitions

EASTERN = [
    ("cp1250", "Smlouva nabývá účinnosti dnem zveřejnění v registru smluv."),
    ("iso8859_2", "Děti šly ráno do školy a večer se vrátily domů. Babička jim uvařila knedlíky se zelím."),
    ("cp1250", "Dobrý deň, ako sa máte? Ďakujem, veľmi dobre."),
    ("cp1250", "Kráľ Matej žil v Budíne a vládol múdro."),
    ("cp1250", "Mátyás király Budán élt, és bölcsen uralkodott. Az ország erős volt."),
    ("iso8859_2", "A szerződés az aláírás napján lép hatályba, és egy évig érvényes."),
    ("cp1250", "Mikołaj Kopernik urodził się w Toruniu w 1473 roku."),
    ("iso8859_2", "Zażółć gęślą jaźń. Mikołaj Kopernik urodził się w Toruniu w 1473 roku. Umowa wchodzi w życie."),
    ("cp1250", "Čovjek je došao kući kasno navečer."),
    ("iso8859_2", "Contractul intră în vigoare la data semnării de către părţi."),
    ("cp1257", "Rīga ir Latvijas galvaspilsēta un lielākā pilsēta."),
    ("cp1257", "Vilnius yra Lietuvos sostinė ir didžiausias miestas."),
    ("cp1254", "İstanbul Türkiye'nin en büyük şehridir."),
    ("iso8859_9", "Çocuklar sabah okula gittiler, akşam eve döndüler."),
]
WESTERN = [
    "Die Straße führt über die Brücke nach Köln.",
    "Le château fut bâti en 1672 par François Mansart.",
    "Où est passé le cœur de l’œuvre ?",
    "¿Dónde está la niña? La canción «Mañana» se oyó en Córdoba.",
    "São Paulo não é a capital. A reunião começou às três.",
    "La città è più bella così. Perché non verrà?",
    "Åsa gick över ån och såg på älgen i Östersund.",
    "Rødgrød med fløde på øen Ærø i år.",
    "Hyvää päivää, minä olen täällä tänään. Äiti meni töihin.",
    "Það er ekki allt gull sem glóir, sagði Þórður.",
    "The café’s menu – “fresh” – costs £5 or €6; naïve Zoë.",
    "Tallinn on Eesti pealinn ja suurim linn. Õhtul läksime koju.",
    "Müller",
    "été",
]


@pytest.mark.parametrize(("encoding", "text"), EASTERN)
def test_one_sentence_is_read_in_the_encoding_of_its_language(encoding: str, text: str) -> None:
    data = text.encode(encoding)
    assert data.decode(guess_encoding(data) or "ascii") == text


@pytest.mark.parametrize("text", WESTERN)
def test_a_western_sentence_stays_western(text: str) -> None:
    data = text.encode("cp1252")
    assert data.decode(guess_encoding(data) or "ascii") == text


def test_no_english_article_with_foreign_names_is_read_as_another_language() -> None:
    path = REPOSITORY / "graphrag_pipeline_tests" / "data" / "retrieval" / "2wiki_corpus.jsonl.gz"
    n_articles = repetitions(500, thorough=10_000)
    wrong, n_judged = [], 0
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in islice(lines, n_articles):
            text = " ".join(map(str, json.loads(line).values()))
            data = text.encode("cp1252", "ignore")
            found = find_latin_encoding(data)
            n_judged += found is not None
            if found and data.decode(found) != data.decode("cp1252"):
                wrong.append(text)
    assert wrong == [] and n_judged > 60


@pytest.mark.parametrize("text", ["plain", "", "«»", "Это русский текст".encode("cp1251").decode("latin-1")])
def test_a_text_without_letters_of_one_language_is_not_judged(text: str) -> None:
    assert find_latin_encoding(text.encode("latin-1")) is None
