"""Clauses of an example inside sentences about a passage, as small models wrote them, and good text worded like one."""

from __future__ import annotations

import pytest

from graphrag_pipeline.engines.model.extraction.copied_clauses import cut_copied_clauses
from graphrag_pipeline.engines.model.extraction.passage_names import PassageNames
from graphrag_pipeline.models.prompts import load_prompt

EXAMPLES = load_prompt(None, "extract_graph").echoes.example_values
PASSAGE = PassageNames(
    "Nordwerk opened an office in Brantwick in 1987. Mayor Lund spoke at the opening. Piet Maas works for Nordwerk."
)


@pytest.mark.parametrize(
    ("text", "own"),
    [
        (
            "The Nordwerk office in Brantwick was opened in 1987 by Mayor Lund and later run by the Mayor.",
            "The Nordwerk office in Brantwick was opened in 1987 by Mayor Lund.",
        ),
        ("Mayor Lund spoke in Brantwick and was her first head.", "Mayor Lund spoke in Brantwick."),
        (
            "Piet Maas works for Nordwerk, was the pupil and successor of Mayor Lund, and spoke in 1987.",
            "Piet Maas works for Nordwerk, and spoke in 1987.",
        ),
        ("Mayor Lund was its first head and spoke in Brantwick.", "Mayor Lund spoke in Brantwick."),
        ("Mayor Lund was its first head, which Brantwick remembers. He spoke.", "He spoke."),
        ("The old mayor of the town was its first head and spoke.", ""),
        ("Mayor Lund was her first head.", ""),
    ],
)
def test_a_copied_clause_is_cut_and_the_rest_of_the_sentence_stays(text: str, own: str) -> None:
    assert cut_copied_clauses(text, EXAMPLES, PASSAGE) == own


@pytest.mark.parametrize(
    "text",
    [
        "Mayor Lund opened the office and ran it.",
        "Piet Maas took over the office from her.",
        "Piet Maas was her pupil and the head of the office.",
        "Nordwerk opened an office in 1987, later a shop, and ran both.",
        "",
    ],
)
def test_good_text_with_words_of_the_example_stays(text: str) -> None:
    assert cut_copied_clauses(text, EXAMPLES, PASSAGE) == text


@pytest.mark.parametrize("said", ["The first of them was Lund.", "Its heads were Lund and Maas.", "A heading."])
def test_words_that_the_passage_holds_in_some_form_are_no_copy(said: str) -> None:
    text = "Mayor Lund spoke in Brantwick and was its first head."
    assert cut_copied_clauses(text, EXAMPLES, PassageNames(said)) == text


def test_examples_of_a_users_prompt_need_a_longer_run_for_they_may_be_from_the_same_corpus() -> None:
    own = frozenset({"The bell tower plays a crucial role in guiding ships through fog, wrote Ines Calvo."})
    common = "Nordwerk has an office and plays a crucial role in the town."
    assert cut_copied_clauses(common, own, PASSAGE) == common
    copied = "Nordwerk has an office and plays a crucial role in guiding ships through fog."
    assert cut_copied_clauses(copied, own, PASSAGE) == "Nordwerk has an office."


def test_scripts_without_spaces_are_not_judged() -> None:
    text = "\u8bf7\u7528\u4e00\u53e5\u8bdd\u8bf4\u660e\u7406\u7531\u5e76\u4e14\u4e0d\u8981\u6dfb\u52a0"
    assert cut_copied_clauses(text, frozenset({text}), PASSAGE) == text
