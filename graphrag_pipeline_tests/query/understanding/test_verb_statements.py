"""Which name is the subject or object of a verb, and which phrase belongs to it."""

import pytest

from graphrag_pipeline.query.understanding.verb_statements import (
    belongs_to,
    find_verbs,
    is_patient,
    is_subject,
    read_object_parts,
)

VASE = "A vase stolen from a chapel in Ghent in May has been found in a cellar near Bonn, a guard said."


def says(form, text, verb, name):
    start = text.index(name)
    return any(form(text, found, start, start + len(name)) for found in find_verbs(text, frozenset({verb})))


@pytest.mark.parametrize(
    ("verb", "phrase", "expected"),
    [("steal", "Ghent", True), ("find", "Ghent", False), ("find", "Bonn", True), ("steal", "Bonn", False)],
)
def test_a_phrase_belongs_to_the_verb_before_it(verb, phrase, expected):
    assert says(belongs_to, VASE, verb, phrase) is expected


def test_a_phrase_that_opens_a_clause_belongs_to_its_verb():
    assert says(belongs_to, "In Ghent the vase was found.", "find", "Ghent")
    assert not says(belongs_to, "A guard in Ghent said that it was found.", "find", "Ghent")


@pytest.mark.parametrize(
    ("text", "verb", "name", "expected"),
    [
        ("Anna Roth, who filed the charge, smiled.", "fil", "Anna Roth", True),
        ("A former nurse, Anna Roth, had spoken for an hour.", "speak", "Anna Roth", True),
        ("Anna Roth, the tall nurse, closed the door.", "clos", "Anna Roth", True),
        ("The barge was sold by the Polish firm Wisla in May.", "sell", "Wisla", True),
        ("The barge was sold by the Polish firm Wisla in May.", "sell", "Polish", False),
        ("A boy, Tom Hale, drew a map and sent it to Bonn.", "send", "Tom Hale", True),
        ("The sister of Ivo Lang built a mill.", "build", "Ivo Lang", False),
        ("Ivo Lang said that the miller built a mill.", "build", "Ivo Lang", False),
        ("Ivo Lang was paid.", "pay", "Ivo Lang", False),
    ],
)
def test_the_subject_does_what_the_verb_says(text, verb, name, expected):
    assert says(is_subject, text, verb, name) is expected


@pytest.mark.parametrize(
    ("text", "verb", "name", "expected"),
    [
        ("Ivo Lang, 61, was hurt.", "hurt", "Ivo Lang", True),
        ("Ida Kern, who rowed, was given a cup.", "giv", "Ida Kern", True),
        ("She met the miller Ivo Lang in Bonn.", "meet", "Ivo Lang", True),
        ("She wrote to Ivo Lang.", "writ", "Ivo Lang", False),
        ("Ivo Lang hurt his hand.", "hurt", "Ivo Lang", False),
    ],
)
def test_the_patient_is_the_object_or_the_subject_of_a_passive(text, verb, name, expected):
    assert says(is_patient, text, verb, name) is expected


@pytest.mark.parametrize(
    ("text", "verb", "object_part", "other"),
    [
        ("Farmer Rudge, who owns the land, said that sheep would graze.", "owns", "land", "sheep"),
        ("She said that the gate on Mill Street had been replaced by Holroyd.", "replaced", "gate", "She"),
        ("Mr Sykes presented the accounts, which had been examined by Ida Kern.", "examined", "accounts", "Sykes"),
        ("The dome, which weighs a ton, was made by Hardy.", "made", "dome", "ton"),
        ("Asbestos had been found under the hut, and was removed by Enviro.", "removed", "Asbestos", "hut"),
        ("It is a film directed by Paul and produced by Marta.", "produced", "film", "Paul"),
        ("They saw the tor, a hill that Samuel Prout drew in 1811.", "drew", "hill", "They"),
    ],
)
def test_the_object_of_a_verb_is_in_its_clause(text, verb, object_part, other):
    (part,) = read_object_parts(text, verb)
    assert object_part in part.text
    assert other not in part.text
    assert not part.goes_on or "It" in text


def test_a_pronoun_object_goes_on_about_the_sentence_before():
    assert read_object_parts("The luthier Enzo Rialdi, who restored it, confirmed the label.", "restored")[0].goes_on
    assert not read_object_parts("The luthier Enzo Rialdi restored the label.", "restored")[0].goes_on
