import pytest

from graphrag_pipeline.indexing.graph.merge_proposals import propose_merges
from graphrag_pipeline.indexing.graph.resolution import TitleRecord


def propose(*titles: tuple[str, str, int]) -> list[tuple[str, str, str]]:
    return [(merge.title, merge.into, merge.rule) for merge in propose_merges(TitleRecord(*t) for t in titles)]


@pytest.mark.parametrize(
    ("titles", "expected"),
    [
        ([("ZÜRICH", "GEO", 1), ("ZURICH", "GEO", 5)], [("ZÜRICH", "ZURICH", "unicode")]),
        ([("蕭炎", "PERSON", 1), ("萧炎", "PERSON", 3)], [("蕭炎", "萧炎", "unicode")]),
        ([("U.S.A.", "GEO", 2), ("USA", "GEO", 9)], [("U.S.A.", "USA", "unicode")]),
        ([("SCROOGE'S", "PERSON", 1), ("SCROOGE", "PERSON", 9)], [("SCROOGE'S", "SCROOGE", "possessive")]),
        ([("MCDONALD'S", "ORGANIZATION", 9), ("MCDONALD", "PERSON", 1)], []),
        ([("THE GHOST", "PERSON", 1), ("GHOST", "PERSON", 9)], [("THE GHOST", "GHOST", "alias")]),
        ([("APPLE INC", "ORGANIZATION", 1), ("APPLE", "UNKNOWN", 9)], [("APPLE INC", "APPLE", "alias")]),
        ([("SCROOGE", "PERSON", 9), ("EBENEZER SCROOGE", "PERSON", 1)], [("SCROOGE", "EBENEZER SCROOGE", "alias")]),
        ([("MR. SCROOGE", "PERSON", 1), ("SCROOGE", "PERSON", 9)], [("MR. SCROOGE", "SCROOGE", "alias")]),
        ([("CRATCHIT", "PERSON", 9), ("BOB CRATCHIT", "PERSON", 1), ("PETER CRATCHIT", "PERSON", 1)], []),
        ([("MRS. CRATCHIT", "PERSON", 9), ("BOB CRATCHIT", "PERSON", 1)], []),
        ([("MS. ZHOU", "PERSON", 3), ("HELEN ZHOU", "PERSON", 2)], [("MS. ZHOU", "HELEN ZHOU", "alias")]),
        ([("MS. ZHOU", "PERSON", 3), ("PETER ZHOU", "PERSON", 2)], []),
        ([("MS. ZHOU", "PERSON", 3), ("HELEN ZHOU", "PERSON", 2), ("ANNA ZHOU", "PERSON", 1)], []),
        ([("MR. ZHOU", "PERSON", 3), ("MRS. ZHOU", "PERSON", 2)], []),
        ([("ZHOU", "PERSON", 3), ("MRS. ZHOU", "PERSON", 2)], []),
        ([("ZHOU", "PERSON", 3), ("MRS. ZHOU", "PERSON", 2), ("HELEN ZHOU", "PERSON", 2)],
         [("MRS. ZHOU", "HELEN ZHOU", "alias")]),
        ([("MS. SMITH", "PERSON", 3), ("HELEN SMITH", "PERSON", 2)], []),
        ([("WASHINGTON", "GEO", 9), ("GEORGE WASHINGTON", "PERSON", 1)], []),
        ([("WHO", "ORGANIZATION", 9), ("WORLD HEALTH ORGANIZATION", "ORGANIZATION", 1)],
         [("WHO", "WORLD HEALTH ORGANIZATION", "acronym")]),
        ([("DNA", "CONCEPT", 9), ("DEOXYRIBO NUCLEIC-ACID", "CONCEPT", 1)],
         [("DNA", "DEOXYRIBO NUCLEIC-ACID", "acronym")]),
        ([("US", "GEO", 9), ("UNITED STATES", "GEO", 1)], [("US", "UNITED STATES", "acronym")]),
        ([("ATLANTIC", "GEO", 9), ("ATLANTIC OCEAN", "GEO", 1)], [("ATLANTIC", "ATLANTIC OCEAN", "acronym")]),
        ([("UN", "ORGANIZATION", 1), ("UNITED NATIONS", "ORGANIZATION", 2)], [("UN", "UNITED NATIONS", "acronym")]),
        ([("NOTICES", "CONCEPT", 1), ("NOTICE", "CONCEPT", 5)], [("NOTICES", "NOTICE", "alias")]),
        ([("TUMOR", "CONCEPT", 1), ("TUMOUR", "CONCEPT", 5)], [("TUMOR", "TUMOUR", "alias")]),
        ([("WORKFLOW", "CONCEPT", 5), ("WORK-FLOW", "CONCEPT", 1)], [("WORK-FLOW", "WORKFLOW", "alias")]),
        ([("CRATCHITS", "PERSON", 1), ("CRATCHIT", "PERSON", 5)], []),
        ([("SET", "CONCEPT", 9), ("SINGLE ENERGY TRANSFER", "CONCEPT", 1)], []),
        ([("DNA", "ORGANIZATION", 9), ("DEOXYRIBO NUCLEIC-ACID", "CONCEPT", 1)], []),
        ([("AMA", "ORGANIZATION", 1), ("AMERICAN MEDICAL ASSOCIATION", "ORGANIZATION", 1),
          ("AMERICAN MARKETING ASSOCIATION", "ORGANIZATION", 1)], []),
        ([("FEZZIWIGG WAREHOUSE", "ORGANIZATION", 1), ("FEZZIWIG WAREHOUSE", "ORGANIZATION", 9)],
         [("FEZZIWIGG WAREHOUSE", "FEZZIWIG WAREHOUSE", "fuzzy")]),
        ([("FEZZIWIGG WAREHOUSE", "ORGANIZATION", 1), ("FEZZIWIG WAREHOUSE", "GEO", 9)], []),
        ([("APOLLO MISSION 11", "EVENT", 1), ("APOLLO MISSION 12", "EVENT", 1)], []),
        ([("ROBERT SMITHSON", "PERSON", 1), ("ROBERTA SMITHSON", "PERSON", 1)], []),
        ([("JOHN CRATCHIT", "PERSON", 1), ("JOHN CRATCHITS", "PERSON", 1)], []),
        ([("LOUIS XIV", "PERSON", 1), ("LOUIS XVI", "PERSON", 1)], []),
    ],
)  # fmt: skip
def test_rules_propose(titles: list[tuple[str, str, int]], expected: list[tuple[str, str, str]]) -> None:
    assert propose(*titles) == expected
    assert propose(*reversed(titles)) == expected


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([("BENO ZAX", 1, False), ("BENO ZAX (FILM)", 1, True)], [("BENO ZAX", "BENO ZAX (FILM)", "alias")]),
        ([("BENO ZAX", 1, True), ("BENO ZAX (FILM)", 1, True)], []),
        ([("BENO ZAX", 1, False), ("BENO ZAX (FILM)", 1, False)], []),
        ([("BENO ZAX", 1, False), ("BENO ZAX (FILM)", 1, True), ("BENO ZAX (NOVEL)", 1, True)], []),
        ([("PARIS", 1, False, "GEO"), ("PARIS (MYTHOLOGY)", 1, True)], []),
    ],
)
def test_a_name_goes_to_the_only_document_of_that_name(records: list, expected: list) -> None:
    given = [TitleRecord(title, *(kind or ["UNKNOWN"]), n, about) for title, n, about, *kind in records]
    proposals = propose_merges(given)
    assert [(merge.title, merge.into, merge.rule) for merge in proposals] == expected


@pytest.mark.parametrize(
    ("ties", "expected"),
    [
        ({"MRI": {"MAGNETIC RESONANCE IMAGING"}}, [("MRI", "MAGNETIC RESONANCE IMAGING", "acronym")]),
        ({"MRI": {"MAGNETIC RESONANCE IMAGING", "MOUNTAIN RESCUE IRELAND"}}, []),
        ({"SCAN": {"MAGNETIC RESONANCE IMAGING"}}, []),  # other initials: an alias of one document
        ({"MRI": {"MRI SCAN"}}, []),
    ],
)
def test_an_acronym_that_another_document_defines_is_its_long_form(
    ties: dict[str, set[str]], expected: list[tuple[str, str, str]]
) -> None:
    titles = ["MRI", "SCAN", "MAGNETIC RESONANCE IMAGING", "MOUNTAIN RESCUE IRELAND", "OTHER", "MRI SCAN"]
    records = [TitleRecord(title, "CONCEPT", 1) for title in titles]
    merges = [m for m in propose_merges(records, ["acronym"], ties) if not m.needs_neighbour]
    assert [(m.title, m.into, m.rule) for m in merges] == expected


def test_a_rank_without_a_common_neighbour_is_not_a_woman_of_that_surname() -> None:
    records = [TitleRecord(title, "PERSON", 2) for title in ("CAPTAIN ROSEWARNE", "TAMSIN ROSEWARNE")]
    assert all(merge.needs_neighbour for merge in propose_merges(records))


def test_arabic_names_with_the_article_are_one_in_other_latin_spellings() -> None:
    titles = (("AL QAEDA", 5), ("AL-QA'IDA", 1), ("AL-QAIDA", 2), ("AL-QUDS", 1), ("ALCAIDA", 1))
    merges = propose_merges(TitleRecord(title, "ORGANIZATION", n) for title, n in titles)
    assert {merge.title: merge.into for merge in merges if merge.into == "AL QAEDA"} == {
        "AL-QA'IDA": "AL QAEDA",
        "AL-QAIDA": "AL QAEDA",
    }
