import pytest

from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.indexing.extraction.names.terms.concepts import (
    choose_concepts,
    find_concepts,
    find_speakers,
    score_phrases,
)
from graphrag_pipeline.indexing.extraction.names.terms.word_uses import count_uses

TIDES = """A tidal barrage holds water back. When the sea is low, the barrage lets the water through a turbine. The
turbine turns, and the turbine makes power. Every barrage changes the mud flats behind it; birds live on mud flats. A
turbine wears out in salt water. Engineers built the barrage for the turbine, and a second turbine for the barrage."""


def test_words_far_more_frequent_than_in_english_are_concepts() -> None:
    chosen = list(choose_concepts(TIDES * 4, set()))
    assert chosen == ["mud flat", "tidal barrage", "salt water", "turbine", "barrage", "water"]


def test_occurrences_are_found_outside_of_names_in_reading_order() -> None:
    text = TIDES * 4
    names = find_concepts(text, [Name("Tidal Barrage", 2, 15, 0)], [0])
    written = [text[name.start : name.end].lower() for name in names]
    assert written[:6] == ["water", "barrage", "water", "turbine", "turbine", "turbine"]
    assert {name.form for name in names} == {"mud flat", "salt water", "turbine", "barrage", "water"}
    assert [name.start for name in names] == sorted(name.start for name in names)


def test_plurals_go_with_their_singular() -> None:
    text = "It has the turbine, and of the turbines I know nothing. " * 8
    assert choose_concepts(text, set())["turbine"] == ["turbine", "turbines"]


def test_a_phrase_that_is_a_name_is_not_a_concept() -> None:
    assert "turbine" not in choose_concepts(TIDES * 4, {"TURBINE"})


def test_words_that_english_prose_does_not_know_are_terms_if_named_twice_without_an_article() -> None:
    text = "Do not combine losartan with it; losartan is started at a low dose, unless hyperkalaemia occurs. "
    chosen = choose_concepts(text + "If hyperkalaemia is severe, call us. Then a nurse will look at it. " * 12, set())
    assert {"losartan", "hyperkalaemia"} <= set(chosen)


def test_a_verb_with_a_preposition_is_no_term() -> None:
    text = "The sandbar depends on it, and a good sandbar depends on them. Of the sandbar we know the sandbar. " * 9
    assert list(choose_concepts(text, set())) == ["sandbar"]


def test_everyday_things_are_concepts_only_where_frequent() -> None:
    talk = "He said what he had to say about it and went on his way to where nobody knew him or his trade at all. "
    seldom = talk * 200 + "It lay by the candle. " * 6
    assert choose_concepts(seldom, set()) == {}
    assert list(choose_concepts(seldom.replace("candle", "goblet"), set())) == ["goblet"]
    assert list(choose_concepts(seldom + "It lay by the candle. " * 14, set())) == ["candle"]


def test_the_subject_of_a_verb_of_speech_is_a_person() -> None:
    text = "The phantom rose. 'Captive!' cried the phantom. The turbine said nothing."
    places = [(form, text.index(form, start)) for form, start in (("phantom", 0), ("phantom", 30), ("turbine", 0))]
    concepts = [Name(form, start, start + len(form), 0) for form, start in places]
    assert find_speakers(text, concepts) == {"phantom"}


@pytest.mark.parametrize("text", ["", "word", "The cat sat. The cat ran. The cat slept.", "!" * 500])
def test_little_text_has_no_concepts(text: str) -> None:
    assert choose_concepts(text, set()) == {}


GUIDELINE = """Colon cancer starts in a polyp. Surgery is the treatment of colon cancer. After surgery, some need
chemotherapy. The extent of the cancer is found before surgery. In addition, a biopsy is taken where the cancer started.
Adjuvant chemotherapy follows surgery. A biopsy of the polyp is sent to the laboratory. The purpose of chemotherapy is
to kill cells. Doctors removed the polyp, and the cancer started again. A biopsy shows whether the cancer has spread. It
is possible to repeat chemotherapy. In addition, see the overview of the extent of the cancer."""


def test_terms_of_a_guideline_lead_without_words_of_every_explanation() -> None:
    chosen = set(choose_concepts(GUIDELINE * 4, set()))
    assert chosen >= {"colon cancer", "surgery", "cancer", "chemotherapy", "biopsy", "polyp"}
    assert not chosen & {"cancer started", "addition", "extent", "overview", "purpose", "possible"}


def test_a_shorter_term_counts_only_outside_of_longer_ones() -> None:
    text = "The low bone density scan failed. " * 4 + "A scan of bone density. The bone density rose. "
    frequencies, scores = score_phrases(count_uses(text, [(0, len(text))]))
    assert frequencies["bone", "density"] == 6
    assert scores["bone", "density"] == 2.0  # log2(2) * (6 - 4)


def test_adjectives_and_numbers_are_no_terms() -> None:
    text = (
        "An insecure turbine fails. It is insecure, and an insecure, old turbine breaks forty-seven teeth of a wheel. "
    )
    assert not {"insecure", "forty-seven", "forty-seven teeth"} & set(choose_concepts(text * 6, set()))


def test_a_phrase_keeps_the_word_that_always_precedes_it_and_drops_superlatives() -> None:
    text = "A total contact cast is dry. The total contact cast is of plaster. It is a total contact cast. " * 2
    text += "The newest snapshot is small. The newest snapshot is here. A snapshot is made. The snapshot ends. " * 2
    concepts = choose_concepts(text, set())
    assert "total contact cast" in concepts and "contact cast" not in concepts
    assert not any(concept.startswith("newest") for concept in concepts)


def test_participles_of_states_comparatives_and_verbs_of_the_document_are_no_terms() -> None:
    text = (
        "The repository is encrypted, and is encrypted by them. If encrypted, an encrypted repository is safe. "
        "An older repository is slow. The older repository is here. The shared printer is big. "
        "A shared printer is here. "
        "It is recoded by recoding it: you must recode it, and they recode the printer. A recode of it is slow. "
    )
    chosen = set(choose_concepts(text * 2 + FILLER, set()))
    assert chosen >= {"shared printer", "repository"}
    assert not chosen & {"encrypted repository", "older repository", "recode"}


def test_how_a_list_is_written_makes_no_term() -> None:
    text = "It is a comma-separated list. Of the comma-separated list we know it. "
    text += "The pooled list, or a pooled list, is here. "
    chosen = set(choose_concepts(text * 2 + FILLER, set()))
    assert "pooled list" in chosen and "comma-separated list" not in chosen


def test_a_general_word_of_a_list_is_no_term() -> None:
    text = "We know the bupropion or shortcomings of it. Give varenicline or bupropion. "
    assert "bupropion" in choose_concepts(text + FILLER, set())
    assert not {"shortcoming", "shortcomings"} & set(choose_concepts(text + FILLER, set()))


FILLER = "Then a nurse will look at it, and a doctor will call us again. " * 15


def test_a_common_word_that_others_always_describe_is_no_term_of_its_own() -> None:
    uses = "It may be long QT syndrome. It may be toxic syndrome. It may be a Dravet syndrome. It is a rare syndrome. "
    assert "syndrome" not in choose_concepts(uses + FILLER, set())
    assert "syndrome" in choose_concepts(
        uses + "The syndrome is mild. Of the syndrome we know little. " + FILLER, set()
    )


def test_a_verb_with_a_noun_of_its_own_is_no_term() -> None:
    text = (
        "If the first drug fails, wait. Both drugs fail in time. Such drugs fail at night. If a drug fails, call us. "
    )
    chosen = choose_concepts(text + FILLER, set())
    assert not {"fail", "drug fail"} & set(chosen)


def test_a_phrase_keeps_a_first_word_that_may_be_a_verb_if_it_nearly_always_has_it() -> None:
    text = "It may burst the pipe. They burst it. The burst buffer state is set. Of the burst buffer state we know it. "
    chosen = choose_concepts(text * 2 + "See the burst buffer state. " + FILLER, set())
    assert "burst buffer state" in chosen and "buffer state" not in chosen


@pytest.mark.parametrize("term", ["corpus callosotomy", "focal cortical dysplasia", "deep vein thrombosis"])
def test_a_coined_word_keeps_the_words_that_always_precede_it(term: str) -> None:
    chosen = choose_concepts(f"It may be {term}. The portal vein is seen. {FILLER}", set())
    assert term in chosen
    assert "callosotomy" in choose_concepts(f"It requires callosotomy. {FILLER}", set())


def test_a_term_that_is_also_a_name_is_found_in_lower_case() -> None:
    text = "The Mud Flats Act. A mud flat is wet. Every mud flat has birds. Of the mud flats we know it. " + FILLER
    names = [Name("Mud Flat", 4, 13, 0)]
    assert "mud flat" not in {name.form for name in find_concepts(text, names, [0])}
    found = find_concepts(text, names, [0], terms=frozenset({"MUD FLAT"}))
    assert [text[name.start : name.end] for name in found if name.form == "mud flat"] == ["mud flat"] * 2 + [
        "mud flats"
    ]


def test_rare_words_of_a_list_and_with_a_dose_are_terms() -> None:
    chosen = choose_concepts(f"Offer varenicline or bupropion. It begins with clopidogrel 75 mg a day. {FILLER}", set())
    assert {"varenicline", "bupropion", "clopidogrel"} <= set(chosen)
    others = choose_concepts(
        f"It is juxtarenal or suprarenal. See varenicline. Ask radiologists, optometrists. {FILLER}", set()
    )
    assert not {"juxtarenal", "suprarenal", "varenicline", "radiologists", "optometrists"} & set(others)
