import regex

from graphrag_pipeline.indexing.extraction.names.forms.compounds import join_compounds
from graphrag_pipeline.indexing.extraction.names.occurrences import Name


def joined(text: str, form: str, link: str = "", kind: str = "CONCEPT") -> tuple[list[str], dict[str, str]]:
    names = [Name(form, match.start(), match.end(), 0) for match in regex.finditer(form, text)]
    found, compounds = join_compounds(names, {form: kind, link: kind}, {form: link or form}, text)
    assert all(text[name.start : name.end].startswith(form) for name in found)
    return [name.form for name in found], compounds


def test_an_acronym_is_half_of_the_term_that_dominates() -> None:
    text = "Give an ACE inhibitor. An ACE inhibitor helps. Two ACE inhibitors, and ACE itself, are known."
    assert joined(text, "ACE") == (["ACE inhibitor"] * 3 + ["ACE"], {"ACE": "ACE inhibitor"})


def test_other_acronyms_stay_whole() -> None:
    text = "Give an ACE inhibitor. An ACE inhibitor helps. The ACE gene is known. The ACE test is old."
    assert joined(text, "ACE") == (["ACE"] * 4, {})
    assert joined("The CFS design. A CFS design. The CFS design.", "CFS") == (["CFS"] * 3, {})  # says little
    text = "Give an ACE inhibitor. " * 3
    assert joined(text, "ACE", link="angiotensin-converting enzyme")[1] == {}
    assert joined(text, "ACE", kind="ORGANIZATION")[1] == {}


def test_an_acronym_that_only_occurs_before_a_hyphen_is_part_of_the_term() -> None:
    text = "A patient with ST-segment elevation is sent there."
    assert joined(text, "ST") == (["ST-segment elevation"], {"ST": "ST-segment elevation"})
    assert joined("The ST-segment elevation. The ST score.", "ST") == (["ST", "ST"], {})
    assert joined("An HIV-infected person is here.", "HIV") == (["HIV"], {})


def test_a_rare_word_that_one_noun_always_follows_is_half_of_the_term() -> None:
    text = "He counted the Tessean skate. Few Tessean skates are left."
    assert joined(text, "Tessean") == (["Tessean skate"] * 2, {"Tessean": "Tessean skate"})
    assert joined(text + " The Tessean is rare.", "Tessean")[1] == {}
    assert joined("The Tessean skate is rare.", "Tessean")[1] == {}
