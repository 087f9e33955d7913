"""Citations in a model's text: the same markers however the text comes in pieces, and only of what was shown."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphrag_pipeline.engines.model.answers.shown import CitedText, shown_numbers
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.results import Context

FRAGMENTS = ["Marley ", "haunted Scrooge", "[Data: Sources (1)]", " [data: Entities (1, 2-3)]", "[", "]", "[Da", "ta: ",
             "Sources (2)]", "[3]", " [1, 2]", "[4", "【Data：Source（2）】", "\n\n- ", "  ", "[see above]", "(1)",
             "。", " and", ", ", "an", "[9] und ", "【数", "据：来源（1）】", "[Daten: Quellen (2)]",
             "[Data: Sources (1)", " [Data: Entities (1", "[Data: Sources (2]", ". Then ", "; ", "\n"]  # fmt: skip


def everything(index: GraphIndex) -> Context:
    return index.search("Who haunted Scrooge?", context_only=True, top_k_entities=5).context


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=8), st.lists(st.integers(1, 6), min_size=1, max_size=5))
def test_pieces_change_nothing(small: GraphIndex, fragments: list[str], lengths: list[int]) -> None:
    text, shown = "".join(fragments), shown_numbers(everything(small))
    whole = CitedText(small, shown)
    expected = whole.add(text) + whole.rest()
    cut = CitedText(small, shown)
    pieces, start = [], 0
    for length in itertools.cycle(lengths):
        if start >= len(text):
            break
        pieces.append(cut.add(text[start : start + length]))
        start += length
    assert "".join(pieces) + cut.rest() == expected
    assert (cut.citations, cut.n_invented) == (whole.citations, whole.n_invented)
    assert [citation.number for citation in whole.citations] == list(range(1, len(whole.citations) + 1))


def test_text_is_handed_on_unless_a_citation_may_begin_in_it(small: GraphIndex) -> None:
    cited = CitedText(small, shown_numbers(everything(small)))
    assert cited.add("Marley haunted him") == "Marley haunted him"
    assert cited.add(" [") == "" and cited.add("see") == " [see"
    assert cited.add("] [Data: Sou") == "]" and cited.add("rces (1)].") == " [1]."


def test_a_citation_without_its_bracket_is_settled_by_the_next_sentence(small: GraphIndex) -> None:
    cited = CitedText(small, {"Sources": frozenset({1})})
    assert cited.add("Marley did [Data: Sources (1)") == "Marley did" and cited.add(". ") == ""
    assert cited.add("Th") == " [1]. Th" and cited.add("en he left.") == "en he left."
    assert cited.add(" Again [Data: Sources (1") == " Again" and cited.rest() == " [1]"
    assert len(cited.citations) == 1 and cited.n_invented == 0


def test_one_passage_has_one_marker_and_what_was_not_shown_has_none(small: GraphIndex) -> None:
    cited = CitedText(small, {"Sources": frozenset({1})})
    text = "Marley haunted Scrooge [Data: Sources (1)]. Again [Data: Sources (1, 2)] [Data: Entities (1); Maps (3)]."
    assert cited.add(text) + cited.rest() == "Marley haunted Scrooge [1]. Again [1]."
    assert cited.n_invented == 3 and len(cited.citations) == 1


def test_a_marker_of_the_models_own_is_invented(small: GraphIndex) -> None:
    cited = CitedText(small, {"Sources": frozenset({1})})
    text = "Marley [7] haunted Scrooge [Data: Sources (1)][2, 3]. In [1843] he was [dead]【4】."
    assert cited.add(text) + cited.rest() == "Marley haunted Scrooge [1]. In [1843] he was [dead]."
    assert cited.n_invented == 4 and len(cited.citations) == 1


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Marley did [Data: Sources (1)] and [Data: Sources (9)].", "Marley did [1]."),
        ("Marley did [Data: Sources (1)], [Data: Sources (9)], and [7].", "Marley did [1]."),
        ("Marley did [Data: Sources (9)] und [Data: Sources (1)].", "Marley did [1]."),
        ("Marley did [Data: Sources (1)], [Data: Sources (9)] and [Data: Sources (1)].", "Marley did [1] and [1]."),
        ("Marley did, [Data: Sources (9)].", "Marley did."),
        ("Marley did [Data: Sources (9)] and laughed [Data: Sources (1)], and", "Marley did and laughed [1], and"),
    ],
)
def test_what_joined_a_removed_citation_goes_with_it(small: GraphIndex, written: str, read: str) -> None:
    cited = CitedText(small, {"Sources": frozenset({1})})
    assert "".join(map(cited.add, written)) + cited.rest() == read
