import regex

from graphrag_pipeline.indexing.extraction.names.forms.firm_pairs import join_firm_pairs
from graphrag_pipeline.indexing.extraction.names.occurrences import Name

ROLL = "Present: Ann Hill (Chair), Tom Wexford, Eve Castell\n\n"


def joined(text: str, *forms: str) -> tuple[list[str], set[str]]:
    names = [Name(form, m.start(), m.end(), 0) for form in forms for m in regex.finditer(form, text)]
    found, firms = join_firm_pairs(sorted(names, key=lambda name: name.start), text)
    assert [text[name.start : name.end] for name in found] == [name.form for name in found]
    return [name.form for name in found], firms


def test_two_words_that_act_together_are_one_firm_in_minutes() -> None:
    text = ROLL + "Accounts will be examined by Ormerod and Pellby as before."
    assert joined(text, "Ormerod", "Pellby") == (["Ormerod and Pellby"], {"Ormerod and Pellby"})


def test_other_pairs_are_two_names() -> None:
    for text in (
        "A study by Ormerod and Pellby showed it.",  # authors
        ROLL + "Work by Ormerod and Pellby. Then Pellby left.",
        ROLL + "Work by Ormerod and Pellby, Zorn and others.",
        ROLL + "Yesterday Ormerod and Pellby met.",
    ):
        assert joined(text, "Ormerod", "Pellby")[1] == set()


def test_a_noun_for_firms_or_what_firms_have_joins_two_surnames_in_every_text() -> None:
    for text in (
        "The builders Ormerod and Pellby won it.",
        "Lawyers from Ormerod and Pellby came.",
        "They met Ormerod and Pellby's clients.",
    ):
        assert joined(text, "Ormerod", "Pellby")[1] == {"Ormerod and Pellby"}


def test_a_well_known_firm_is_one_name_with_and() -> None:
    assert joined("They asked Ernst and Young for it.", "Ernst") == (["Ernst and Young"], {"Ernst and Young"})


def test_a_firm_bears_the_name_of_the_person_before_it() -> None:
    text = ROLL + "Accounts were examined by Lorna Pickles of Pickles and Dean."
    names = [Name(form, text.rindex(form), text.rindex(form) + len(form), 0) for form in ("Pickles", "Dean")]
    assert join_firm_pairs(names, text)[1] == {"Pickles and Dean"}
    other = text.replace("of Pickles", "of Leeds")
    names = [Name(form, other.rindex(form), other.rindex(form) + len(form), 0) for form in ("Leeds", "Dean")]
    assert join_firm_pairs(names, other)[1] == set()


def test_a_clause_may_follow_a_firm_that_bears_the_name_of_a_person() -> None:
    text = ROLL + "Examined by Neil Garrod of Garrod and Finch, who raised nothing."
    names = [Name(form, text.rindex(form), text.rindex(form) + len(form), 0) for form in ("Garrod", "Finch")]
    assert join_firm_pairs(names, text)[1] == {"Garrod and Finch"}
