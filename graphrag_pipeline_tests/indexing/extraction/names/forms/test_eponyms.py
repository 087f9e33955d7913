import regex

from graphrag_pipeline.indexing.extraction.names.forms.eponyms import join_eponyms
from graphrag_pipeline.indexing.extraction.names.occurrences import Name


def joined(text: str, form: str, kind: str = "UNKNOWN") -> tuple[list[str], set[str]]:
    names = [Name(form, match.start(), match.end(), 0) for match in regex.finditer(form, text)]
    found, forms = join_eponyms(names, {form: kind}, {form: form}, text)
    assert [text[name.start : name.end] for name in found] == [name.form for name in found]
    return [name.form for name in found], forms


def test_a_name_that_one_noun_of_science_always_follows_is_half_of_a_term() -> None:
    text = "Calculate the modified Marshall score. The Marshall score helps."
    assert joined(text, "Marshall") == (["Marshall score"] * 2, {"Marshall score"})
    assert joined("Give Ringer's lactate at once.", "Ringer") == (["Ringer's lactate"], {"Ringer's lactate"})


def test_a_name_alone_and_other_nouns_keep_the_name_whole() -> None:
    assert joined("The Marshall score. Marshall wrote it.", "Marshall") == (["Marshall"] * 2, set())
    assert joined("Marshall's house is old.", "Marshall") == (["Marshall"], set())
    assert joined("The Pfizer process is old.", "Pfizer", "ORGANIZATION") == (["Pfizer"], set())
