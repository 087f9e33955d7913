from graphrag_pipeline.indexing.extraction.extracted_graph import read_document
from graphrag_pipeline.indexing.extraction.names.forms.offices import drop_offices
from graphrag_pipeline.indexing.extraction.names.occurrences import Name


def kept(text: str, *forms: str, attendees: frozenset[str] = frozenset()) -> list[str]:
    names = [Name(form, text.index(form), text.index(form) + len(form), 0) for form in forms]
    return [name.form for name in drop_offices(names, text, attendees)]


def test_an_office_without_holder_is_no_entity_of_a_report() -> None:
    text = "The Foreign Minister, a Member of Parliament, met US Defence Secretary, Minister Jo Hill and Oil Search."
    forms = ("Foreign Minister", "Member of Parliament", "US Defence Secretary", "Minister Jo Hill", "Oil Search")
    assert kept(text, *forms) == ["Minister Jo Hill", "Oil Search"]


def test_minutes_keep_the_offices_that_act() -> None:
    text = "Present: Jo Hill (Finance Officer), Bo Lee (Tessim Council), Al Roe (Convener). The Town Clerk left."
    forms = ("Jo Hill", "Finance Officer", "Tessim Council", "Convener", "Town Clerk")
    assert kept(text, *forms, attendees=frozenset({"Jo Hill"})) == ["Jo Hill", "Tessim Council", "Town Clerk"]


def test_an_office_before_its_holder_leaves_its_body() -> None:
    text = "The President of the Ostley Relief Society, Ann Hill, and the Minister for Ports, Tom Lee, met Jo Baker."
    found = {one.title for sentence in read_document("news", text)[0] for one in sentence.occurrences}
    assert found == {"OSTLEY RELIEF SOCIETY", "ANN HILL", "TOM LEE", "JO BAKER"}


def test_a_person_named_as_a_trade_stays_in_the_list() -> None:
    text = "Present: Ann Cook, Jo Baker, Clerk; Bo Lee - Head of Estates; Al Roe - Vice Principal Finance\n\nNo."
    found = {one.title for sentence in read_document("minutes", text)[0] for one in sentence.occurrences}
    assert found == {"ANN COOK", "JO BAKER", "BO LEE", "AL ROE"}


def test_a_party_or_the_own_committee_is_no_entity() -> None:
    text = "The Court heard that the Trust had met. The Committee of Zelquo thanked Ann Hill. The Committee wept."
    found = {one.title for sentence in read_document("minutes", text)[0] for one in sentence.occurrences}
    assert found == {"COMMITTEE OF ZELQUO", "ANN HILL"}
