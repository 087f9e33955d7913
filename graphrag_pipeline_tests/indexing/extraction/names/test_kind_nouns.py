import pytest

from graphrag_pipeline.indexing.extraction.names.kind_nouns import _KINDS, kind_of, kind_of_plural


@pytest.mark.parametrize(
    ("noun", "kind"),
    [
        ("analyst", "person"),
        ("radiologist", "person"),
        ("utility", "body"),
        ("candlemaker", "body"),
        ("estuary", "place"),
        ("grease", "thing"),
        ("festival", "event"),
        ("landlord", None),
        ("sadness", None),
    ],
)
def test_a_noun_names_one_kind_of_thing(noun: str, kind: str | None) -> None:
    assert kind_of(noun) == kind


def test_plurals_name_what_their_singulars_name() -> None:
    assert [kind_of_plural(noun) for noun in ("utilities", "employers", "lakes", "glass", "businessmen", "omen")] == [
        "body", "body", "place", None, "person", None,
    ]  # fmt: skip


def test_a_noun_of_two_kinds_says_nothing() -> None:
    listed = [noun for nouns, _ in _KINDS for noun in nouns]
    twice = {noun.lower() for noun in listed if listed.count(noun) > 1}
    assert all(kind_of(noun) is None for noun in twice)
