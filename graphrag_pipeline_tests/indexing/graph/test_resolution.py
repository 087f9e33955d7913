import pytest

from graphrag_pipeline.indexing.graph.resolution import Merge, explain_tie, resolve_titles


def alias(title: str, into: str) -> Merge:
    return Merge(title, into, "alias", "only full name", 0.9, needs_neighbour=True)


def test_alias_needs_a_shared_neighbour_and_names_it() -> None:
    proposal = alias("SCROOGE", "EBENEZER SCROOGE")
    counts = {"SCROOGE": 1, "EBENEZER SCROOGE": 1}
    apart = {"SCROOGE": {"BOB"}, "EBENEZER SCROOGE": {"FRED"}}
    assert resolve_titles([proposal], apart, counts) == {}
    near = {"SCROOGE": {"BOB"}, "EBENEZER SCROOGE": {"BOB", "FRED"}}
    assert resolve_titles([proposal], near, counts)["SCROOGE"].evidence == "only full name; both meet BOB"


def test_merged_neighbours_count_as_one() -> None:
    proposals = [alias("BOB", "BOB CRATCHIT"), alias("ANN", "ANN LEE"), alias("EVE", "EVE DAY")]
    near = {
        "BOB": {"ANN", "LONDON"}, "BOB CRATCHIT": {"ANN LEE", "LONDON"},
        "ANN": {"BOB", "EVE"}, "ANN LEE": {"BOB CRATCHIT"}, "EVE": {"ANN"}, "EVE DAY": {"LONDON"},
    }  # fmt: skip
    counts = dict.fromkeys(near, 1)
    merges = resolve_titles(proposals, near, counts)
    assert {title: merge.into for title, merge in merges.items()} == {"BOB": "BOB CRATCHIT", "ANN": "ANN LEE"}
    assert merges["ANN"].evidence == "only full name; both meet BOB CRATCHIT"


def test_entities_that_a_person_keeps_apart_are_not_merged() -> None:
    proposals = [Merge("A", "C", "unicode", "", 1.0), Merge("B", "C", "alias", "", 1.0)]
    merges = resolve_titles(proposals, {}, {"A": 1, "B": 1, "C": 1}, apart=[("A", "B")])
    assert {title: merge.into for title, merge in merges.items()} == {"A": "C"}


def test_a_person_decides_before_any_rule() -> None:
    proposals = [Merge("A", "B", "unicode", "", 1.0), Merge("B", "A", "override", "", 1.0)]
    merges = resolve_titles(proposals, {}, {"A": 1, "B": 1})
    assert {title: (merge.into, merge.rule) for title, merge in merges.items()} == {"B": ("A", "override")}


@pytest.mark.parametrize(
    ("form", "name", "rule"),
    [
        ("Marley", "Jacob Marley", "alias"),
        ("MARLEY'S", "Marley", "possessive"),
        ("WHO", "World Health Organization", "acronym"),
        ("U.S.A", "USA", "unicode"),
        ("December 25, 1843", "25 December 1843", "date"),
    ],
)
def test_a_tie_of_one_document_is_explained(form: str, name: str, rule: str) -> None:
    assert explain_tie(form, name).rule == rule


def test_two_entities_that_meet_stay_apart() -> None:
    near = {"SCROOGE": {"BOB", "FAN SCROOGE"}, "FAN SCROOGE": {"BOB", "SCROOGE"}}
    assert resolve_titles([alias("SCROOGE", "FAN SCROOGE")], near, {"SCROOGE": 1, "FAN SCROOGE": 1}) == {}


def test_chains_end_at_one_title_and_circles_are_cut() -> None:
    proposals = [
        Merge("A", "B", "unicode", "", 1.0),
        Merge("B", "C", "alias", "", 1.0),
        Merge("C", "A", "fuzzy", "", 1.0),
    ]
    merges = resolve_titles(proposals, {}, {"A": 1, "B": 1, "C": 1})
    assert {title: merge.into for title, merge in merges.items()} == {"A": "C", "B": "C"}
