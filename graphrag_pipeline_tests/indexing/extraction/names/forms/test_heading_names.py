from __future__ import annotations

import pytest
import regex

from graphrag_pipeline.indexing.extraction.extracted_graph import read_document
from graphrag_pipeline.indexing.extraction.names.forms.heading_names import split_joined
from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.indexing.extraction.names.phrases import is_heading

PROSE = "The Licensor grants a licence to each Recipient of the work, and no Recipient pays for it. " * 4


@pytest.mark.parametrize(
    "heading", ["4. Conveying Verbatim Copies.", "2. Verbatim Copies\n---------", "Verbatim Copies"]
)
def test_common_words_that_only_headings_have_are_no_entities(heading: str) -> None:
    assert "VERBATIM COPIES" not in titles_of(f"{PROSE}\n\n{heading}\n\n{PROSE}")
    assert "VERBATIM COPIES" in titles_of(f"{PROSE}\n\n{heading}\n\nHe made Verbatim Copies of it. {PROSE}")


def test_a_line_that_is_repeated_is_navigation_and_a_person_in_a_heading_stays() -> None:
    text = f"{PROSE}\n\nPrev UpChapter 3. Copies\n\n{PROSE}\n\n" * 4 + "Ms Fiona Castell\n\n"
    assert {"PREV UPCHAPTER", "FIONA CASTELL"} & titles_of(text) == {"FIONA CASTELL"}


def test_a_sentence_in_title_case_inside_a_paragraph_is_no_heading() -> None:
    text = "He came. Scrooge Laughed. Then he left."
    assert not is_heading(text, 9, 25)
    assert is_heading("1. Legal Rights.\n\nHe came.", 0, 17)
    assert not is_heading("Anna, Ben.\n\nHe came.", 0, 11)


def test_two_names_that_of_the_joins_are_two() -> None:
    text = "A Source Form of the Covered Software. " + "The Source Form and Covered Software. " * 4
    assert forms_after_split(text)[:2] == ["Source Form", "Covered Software"]
    assert forms_after_split(text.replace("and", "in"))[0] == "Source Form"
    assert forms_after_split("A Source Form of the Covered Software.") == ["Source Form of the Covered Software"]


def test_a_person_ends_before_the_firm_of_that_person() -> None:
    found = titles_of(
        "The agent, Fiona Kettering of Kettering Planning Partnership, said so. Maria Theresa of Austria left."
    )
    assert {"FIONA KETTERING", "KETTERING PLANNING PARTNERSHIP", "MARIA THERESA OF AUSTRIA"} <= found


def forms_after_split(text: str) -> list[str]:
    pattern = r"Source Form of the Covered Software|Source Form|Covered Software"
    names = [Name(match.group(), match.start(), match.end(), 0) for match in regex.finditer(pattern, text)]
    found = split_joined(names, text)
    assert all(text[name.start : name.end] == name.form for name in found)
    return [name.form for name in found]


def titles_of(text: str) -> set[str]:
    return {occurrence.title for sentence in read_document("note", text)[0] for occurrence in sentence.occurrences}
