from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.indexing.graph.claims import fold_claims


def claim(unit: str, position: int = 0, **changed: Any) -> dict[str, Any]:
    """Return a claim of document `d`, unless named otherwise; the number in the id of a text unit is its position."""
    row = {
        "text_unit_id": unit, "position": position, "document_id": "d", "unit_position": int(unit[-1]),
        "subject_id": "ACME", "object_id": "NONE", "type": "FRAUD", "status": "TRUE", "start_date": "2020-01-01",
        "end_date": None, "description": "Acme was fined.", "source_text": "Acme paid a fine.", "request_key": None,
    }  # fmt: skip
    return row | changed


def units_of(*claims: dict[str, Any]) -> list[list[str]]:
    return sorted(row["text_unit_ids"] for row in fold_claims(claims))


def test_a_claim_of_two_text_units_is_one_row_with_both() -> None:
    (row,) = fold_claims([claim("u2", description="ACME  was\nfined. "), claim("u1"), claim("u1", position=3)])
    assert (row["text_unit_id"], row["text_unit_ids"], row["description"]) == ("u1", ["u1", "u2"], "Acme was fined.")


def test_claims_that_differ_in_anything_stay_apart() -> None:
    changes = [
        {"subject_id": "BETA"}, {"object_id": "BETA"}, {"type": "TAX"}, {"status": "FALSE"}, {"start_date": None},
        {"end_date": "2021"}, {"description": "Acme was sued.", "source_text": "Acme was in court."},
    ]  # fmt: skip
    for changed in changes:
        assert units_of(claim("u1"), claim("u2", **changed)) == [["u1"], ["u2"]]


def test_other_words_about_the_same_quote_are_one_claim_if_each_text_unit_has_one() -> None:
    other = claim("u2", description="Acme got a fine.")
    assert units_of(claim("u1"), other) == [["u1", "u2"]]
    two = claim("u1", position=1, description="Acme had money.")
    assert units_of(claim("u1"), two, other) == [["u1"], ["u1"], ["u2"]]
    assert units_of(claim("u1", source_text=""), claim("u2", source_text="", description="x")) == [["u1"], ["u2"]]


def test_each_document_keeps_its_own_claim() -> None:
    assert units_of(claim("u1"), claim("v1", document_id="e")) == [["u1"], ["v1"]]


_CLAIMS = st.lists(
    st.builds(
        claim,
        st.sampled_from(["u1", "u2", "u3"]),
        st.integers(0, 3),
        description=st.sampled_from(["a", "A ", "b"]),
        source_text=st.sampled_from(["", "q", "Q", "r"]),
    ),
    max_size=8,
    unique_by=lambda row: (row["text_unit_id"], row["position"]),
)


@given(_CLAIMS, st.randoms(use_true_random=False))
def test_the_order_of_mentions_does_not_matter_and_no_text_unit_is_lost(claims: list[dict], random: Random) -> None:
    folded = fold_claims(claims)
    assert fold_claims(random.sample(claims, len(claims))) == folded
    assert {unit for row in folded for unit in row["text_unit_ids"]} == {row["text_unit_id"] for row in claims}
    assert len({row["id"] for row in folded}) == len(folded)
