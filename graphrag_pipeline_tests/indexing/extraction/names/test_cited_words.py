import regex

from graphrag_pipeline.indexing.extraction.names.cited_words import drop_cited
from graphrag_pipeline.indexing.extraction.names.occurrences import Name


def test_commands_are_no_names() -> None:
    assert _kept("We Preserve the page. Then Preserve its end. See Preserve.", "Preserve") == 0
    assert _kept("We read Nature. Then Nature fell. See Nature the day after.", "Nature") == 3


def test_titles_of_sections_that_the_text_cites_are_no_names() -> None:
    assert _kept('Use the section Entitled "History", or the section "History".', "History") == 0
    assert _kept('He sang a song entitled "Hello" there.', "Hello") == 1


def test_labels_of_a_form_are_no_names() -> None:
    form = "Problems/Solutions:\n none\n"
    assert _kept(form * 3, "Problems/Solutions") == 0
    assert _kept(form * 2 + "Problems/Solutions follow", "Problems/Solutions") == 3
    assert _kept("It failed. ACTION: Ann to mend it. " * 3, "ACTION") == 0
    assert _kept("Marlene: Yes.\n" * 4, "Marlene") == 4


def test_verbs_of_the_third_person_are_no_names() -> None:
    assert _kept("Number: Specifies the index of it.", "Specifies") == 0


def test_notices_are_no_names() -> None:
    assert _kept("Copyright (c) 1998 Ada Lovelace.", "Copyright") == 0


def _kept(text: str, form: str) -> int:
    names = [Name(form, match.start(), match.end(), 0) for match in regex.finditer(form, text)]
    return len(drop_cited(names, text, [False]))


def test_keys_that_a_plus_joins_are_no_names() -> None:
    assert _kept("Press `Ctrl`+`X` or Ctrl+F1. Hold Ctrl here.", "Ctrl") == 0
    assert _kept("See Hill + Sons. Then Hill left, and Hill came.", "Hill") == 3


def test_series_of_law_reports_are_no_names() -> None:
    assert _kept("He cited [2004] SCR 118 and 162 SCR 44, and 33 SCR § 7.", "SCR") == 0
    assert _kept("See Hill v Lee [2020] EWHC 727 (SCR).", "SCR") == 0
    assert _kept("The SCR 118 engine, 4 of SCR, is old.", "SCR") == 2
