from __future__ import annotations

from graphrag_pipeline.indexing.extraction.names.forms.species import is_species, join_species
from graphrag_pipeline.indexing.extraction.names.occurrences import Name


def test_the_two_words_of_a_species_are_one_name() -> None:
    text = "Staphylococcus aureus is common. Marcus was there, and Pseudomonas aeruginosa grew."
    names = [Name("Staphylococcus", 0, 14, 0), Name("Marcus", 33, 39, 1)]
    found = join_species(names, text, [0, 33])
    assert [(name.form, name.start, name.sentence) for name in found] == [
        ("Staphylococcus aureus", 0, 0),
        ("Marcus", 33, 1),
        ("Pseudomonas aeruginosa", 55, 1),
    ]


def test_words_of_english_are_no_species() -> None:
    text = "Venus is bright. Columbus sails. Atlas maps of Africa serves us. Krowodrza reopens."
    assert join_species([], text, [0]) == []


def test_a_species_in_brackets_may_have_an_epithet_that_is_a_word() -> None:
    text = "We mapped eelgrass (Zostera marina) and boats (Marina view)."
    assert [name.form for name in join_species([], text, [0])] == ["Zostera marina"]
    assert is_species("Zostera marina") and not is_species("Marina view")
