from collections import Counter

from graphrag_pipeline.indexing.extraction.names.types.acronym_types import SEVERAL, type_acronym, type_acronyms


def test_an_acronym_has_the_type_of_its_long_form() -> None:
    types = {"CT": "ORGANIZATION", "EPA": "CONCEPT", "Environmental Protection Agency": "ORGANIZATION"}
    acronyms = {"CT": "computed tomography", "EPA": "Environmental Protection Agency"}
    typed = type_acronyms(types, acronyms)
    assert typed["CT"] == typed["computed tomography"] == "CONCEPT"
    assert typed["EPA"] == "ORGANIZATION"


def test_an_acronym_with_a_long_form_of_common_words_is_a_term() -> None:
    long = "Completely Fair Scheduler"
    types = type_acronyms({"CFS": "ORGANIZATION", long: "UNKNOWN"}, {"CFS": long})
    assert types == {"CFS": "CONCEPT", long: "CONCEPT"}


def test_one_deed_makes_no_body_of_an_acronym_in_a_manual() -> None:
    acts = Counter({"agent": 1})
    assert type_acronym("NAS", 2, acts, False) == "ORGANIZATION"
    assert type_acronym("NAS", 2, acts, False, is_explaining=True) == "CONCEPT"
    assert type_acronym("SAFI", 2, Counter(), False) == "GEO"
    assert type_acronym("SAFI", 2, Counter(), False, is_explaining=True) == "CONCEPT"


def test_an_authority_in_small_letters_is_a_term_and_an_association_a_body() -> None:
    assert type_acronyms({"CA": "ORGANIZATION"}, {"CA": "certificate authority"})["CA"] == "CONCEPT"
    assert type_acronyms({"PTA": "CONCEPT"}, {"PTA": "parent teacher association"})["PTA"] == "ORGANIZATION"


def test_what_has_a_plural_is_no_organization_of_its_own() -> None:
    acts = Counter({"ORGANIZATION": 2})
    assert type_acronym("ECG", 2, acts, False) == "ORGANIZATION"
    assert type_acronym("ECG", 2, acts + Counter({SEVERAL: 1}), False) == "CONCEPT"
    assert type_acronym("BMW", 2, acts + Counter({SEVERAL: 1}), False) == "ORGANIZATION", "a firm, and its cars"
