"""The sentence that says who a person is, or a speech to the person."""

import re
from pathlib import Path

from graphrag_pipeline.query.answers.naming.who_is import find_definition
from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.query.understanding.question_analysis import QuestionAnalysis
from graphrag_pipeline_tests.support.roots import open_built

VISIT = (
    "The rain had not stopped for three days, and Oskar sat by the fire of the old mill.\n\n"
    "Someone knocked. Oskar rose and took the lamp. Oskar was slow.\n\n"
    "'It is only me. Your sister Ada. The road is gone. Will you open, Oskar?'\n\n"
    "Oskar opened. 'You are wet, Ada,' he said, and Oskar put more wood on the fire of the mill.\n"
)


def test_a_speech_that_relates_the_person_is_quoted_first(tmp_path: Path) -> None:
    with open_built(tmp_path / "root", {"visit.txt": VISIT}) as index:
        quotes = [line for line in index.search("Who is Oskar?").answer.splitlines() if line.startswith("- ")]
    assert quotes[0].startswith("- Your sister Ada. The road is gone. Will you open, Oskar?")


OF_A_PART = "They could scarcely have any bearing on the death of Ezra, his old teacher, for that was long past."
OF_THE_WHOLE = "'In life I was your teacher, Ezra Pollock.'"


def test_a_sentence_with_the_whole_name_comes_before_one_with_a_part_of_it() -> None:
    asked = frozenset({"pollock"})
    forms = tuple((re.compile(rf"\b{form}\b"), asked) for form in (r"Ezra\s+Pollock", "Pollock", "Ezra"))
    analysis = QuestionAnalysis("Who was Pollock?", asked, asked, forms, None, ())
    text = f"{OF_A_PART}\n\n{OF_THE_WHOLE}"
    unit = TextUnitRecord("u", 0, "d", "school", text, 0, len(text), 30, 1.0)
    (found,) = find_definition("Who was Pollock?", analysis, [unit])
    assert found.folded == OF_THE_WHOLE


def test_a_person_who_is_described_and_then_named_is_quoted_with_the_description() -> None:
    described = "At sight of a tall carpenter in a red cap, the boy cried--"
    text = f"Ruddock laughed. {described}\n\n'Why, it's old Ruddock! He lives.'\n\nRuddock laid down the saw."
    analysis = QuestionAnalysis("Who is Ruddock?", frozenset({"ruddock"}), frozenset({"ruddock"}), (), None, ())
    unit = TextUnitRecord("u", 0, "d", "shop", text, 0, len(text), 30, 1.0)
    found = find_definition("Who is Ruddock?", analysis, [unit])
    assert [sentence.folded for sentence in found] == [described, "'Why, it's old Ruddock!"]
    other = text.replace("a tall carpenter in a red cap", "the gate")
    assert (
        find_definition("Who is Ruddock?", analysis, [TextUnitRecord("u", 0, "d", "shop", other, 0, 9, 30, 1.0)]) == ()
    )


def test_the_entry_of_a_list_says_what_a_code_means_and_not_the_sentence_that_mentions_it() -> None:
    text = "The control unit then shows E12. Call for help.\n\nE12 Ignition failed. Measure the igniter.\n\nE120 Fan."
    unit = TextUnitRecord("u", 0, "d", "errors", text, 0, len(text), 30, 1.0)
    analysis = QuestionAnalysis("", frozenset({"e12"}), frozenset(), (), None, ())
    found = find_definition("What does error E12 mean?", analysis, [unit])
    assert [sentence.folded for sentence in found] == ["E12 Ignition failed.", "Measure the igniter."]
    assert find_definition("What does error E13 mean?", analysis, [unit]) == ()
