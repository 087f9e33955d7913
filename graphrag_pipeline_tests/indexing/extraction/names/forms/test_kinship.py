import regex

from graphrag_pipeline.indexing.extraction.names.forms.kinship import link_kin
from graphrag_pipeline.indexing.extraction.names.occurrences import Name


def linked(text: str, *forms: str) -> dict[str, str]:
    names = [Name(form, m.start(), m.end(), 0) for form in forms for m in regex.finditer(form, text)]
    return link_kin(names, {form: form for form in forms}, dict.fromkeys(forms, "PERSON"), text)


def test_kin_is_the_one_person_who_is_called_so() -> None:
    text = "Luise's cousin found it. Luise wept. Her cousin, Matthias, was a carpenter."
    assert linked(text, "Luise", "Luise's cousin", "Matthias") == {"Luise's cousin": "Matthias"}


def test_a_name_may_follow_the_kin_at_once() -> None:
    text = "We met Luise's cousin Matthias."
    assert linked(text, "Luise", "Luise's cousin", "Matthias") == {"Luise's cousin": "Matthias"}


def test_two_persons_or_two_owners_are_not_linked() -> None:
    two = "Luise's cousin found it. Her cousin, Matthias, and his cousin Job met."
    assert linked(two, "Luise", "Luise's cousin", "Matthias", "Job") == {}
    owners = "Luise's cousin met Job's cousin. Her cousin, Matthias, was a carpenter."
    assert linked(owners, "Luise's cousin", "Job's cousin", "Matthias") == {}
    assert linked("Matthias's cousin met his cousin, Matthias.", "Matthias's cousin", "Matthias") == {}
