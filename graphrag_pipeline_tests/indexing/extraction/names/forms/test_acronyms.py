import pytest

from graphrag_pipeline.indexing.extraction.names.forms.acronyms import AcronymPair, find_acronym_pairs, place_acronyms
from graphrag_pipeline.indexing.extraction.names.occurrences import Name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We use computed tomography (CT) often.", [("CT", "computed tomography")]),
        ("A CT (computed tomography) scan.", [("CT", "computed tomography")]),
        ("Tumours with non-small cell lung cancer (NSCLC).", [("NSCLC", "non-small cell lung cancer")]),
        ("The estimated glomerular filtration rate (eGFR) fell.", [("eGFR", "estimated glomerular filtration rate")]),
        ("Several mail transport agents (MTAs) exist.", [("MTAs", "mail transport agents")]),
        ("Human epidermal growth factor receptor 2 (HER2)", [("HER2", "Human epidermal growth factor receptor 2")]),
        ("Take alanine aminotransferase (ALT) at once.", [("ALT", "alanine aminotransferase")]),
        ("A 12-lead electrocardiogram (ECG) is made.", [("ECG", "electrocardiogram")]),
        ("The Teska Security Organisation's (TSO) powers", [("TSO", "Teska Security Organisation")]),
        ("a long\nline of byte-order marks (BOM)", [("BOM", "byte-order marks")]),
        ("the College of Midwives and Gynaecologists (COMG)", [("COMG", "College of Midwives and Gynaecologists")]),
        ("the Academy of Nursing and Anatomy (ANA)", [("ANA", "Academy of Nursing and Anatomy")]),
    ],
)
def test_a_short_form_in_brackets_goes_with_its_long_form(text: str, expected: list[tuple[str, str]]) -> None:
    pairs = list(find_acronym_pairs(text))
    assert [(pair.short, pair.long) for pair in pairs] == expected
    assert all(" ".join(text[pair.start : pair.end].split()) == pair.long for pair in pairs)


@pytest.mark.parametrize(
    "text",
    [
        "It was late (I think).",
        "The town (Rome) lay far off.",
        "See the manual (GNU) for it.",
        "Delete the file. Then press (OK).",
        "Most of the cells (see Table 2) were dead.",
        "the record (RR)",
        "The old line (X) or on battery (OB)",
        "",
    ],
)
def test_other_brackets_hold_no_acronym(text: str) -> None:
    assert list(find_acronym_pairs(text)) == []


def test_all_places_of_both_forms_are_names_and_share_the_long_form() -> None:
    text = "Magnetic resonance imaging (MRI) is safe. An MRI takes long. Two MRIs and magnetic resonance imaging help."
    names, acronyms = place_acronyms([Name("Magnetic", 0, 8, 0)], text, [0, 42, 61])
    assert [(text[name.start : name.end], name.form, name.sentence) for name in names] == [
        ("Magnetic resonance imaging", "magnetic resonance imaging", 0),
        ("MRI", "MRI", 0),
        ("MRI", "MRI", 1),
        ("MRIs", "MRIs", 2),
        ("magnetic resonance imaging", "magnetic resonance imaging", 2),
    ]
    assert acronyms == {"MRI": "magnetic resonance imaging", "MRIs": "magnetic resonance imaging"}


def test_a_long_form_of_one_word_shares_its_form_with_the_acronym() -> None:
    text = "An electrocardiogram (ECG) first. The ECG is read."
    names, pairs = place_acronyms([], text, [0, 34])
    assert [name.form for name in names] == ["electrocardiogram", "ECG", "ECG"]
    assert pairs == {"ECG": "electrocardiogram", "ECGs": "electrocardiogram"}


def test_a_long_form_that_is_a_name_is_left_to_the_rules_for_names() -> None:
    text = "The World Health Organization (WHO) met."
    names = [Name("World Health Organization", 4, 29, 0), Name("WHO", 31, 34, 0)]
    assert place_acronyms(names, text, [0]) == (names, {})
    assert list(find_acronym_pairs(text)) == [AcronymPair("WHO", "World Health Organization", 4, 29)]


def test_a_long_form_inside_the_name_of_an_organization_is_a_part_of_it() -> None:
    text = "Atrial Fibrillation Association works on atrial fibrillation (AF)."
    found, _ = place_acronyms([Name("Atrial Fibrillation Association", 0, 31, 0)], text, [0])
    assert [name.form for name in found] == ["Atrial Fibrillation Association", "atrial fibrillation", "AF"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Flood link state advertisements (LSAs) at once. An LSA is old.", {"LSA": "link state advertisement"}),
        ("Read the byte-order marks (BOM) first.", {"BOM": "byte-order marks"}),
    ],
)
def test_a_plural_acronym_goes_with_the_singular_of_its_long_form(text: str, expected: dict[str, str]) -> None:
    _, acronyms = place_acronyms([], text, [0])
    assert expected.items() <= acronyms.items()


def test_a_long_form_does_not_cut_a_name() -> None:
    text = "The system of the International Federation of Gynecology and Obstetrics (FIGO) has four stages."
    start = text.index("International")
    first = "International Federation of Gynecology"
    names, acronyms = place_acronyms([Name(first, start, start + len(first), 0)], text, [0])
    assert acronyms["FIGO"] == "International Federation of Gynecology and Obstetrics"
    assert [name.form for name in names] == ["International Federation of Gynecology and Obstetrics", "FIGO"]
