from __future__ import annotations

import pytest

from graphrag_pipeline.indexing.extraction.extracted_graph import read_document

ROLL = """Present: Ann Hill (Chair), Tom Wexford, Eve Castell

Ann Hill opened the meeting. Eve Castell read the letter.

"""


def _types(text: str) -> dict[str, str]:
    return {one.title: one.type for sentence in read_document("minutes", text)[0] for one in sentence.occurrences}


@pytest.mark.parametrize(
    ("sentence", "title", "expected"),
    [
        ("We paid the invoice from Zorbex at once.", "ZORBEX", "ORGANIZATION"),
        ("The account with Brambank was closed.", "BRAMBANK", "ORGANIZATION"),
        ("There is £4,000 with Brambank now.", "BRAMBANK", "ORGANIZATION"),
        ("Now Zorbex charged us for the second visit.", "ZORBEX", "ORGANIZATION"),
        ("A van came because Zorbex have lost the key.", "ZORBEX", "ORGANIZATION"),
        ("Then Zorbex's engineers found the fault.", "ZORBEX", "ORGANIZATION"),
        ("He rang our insurer, Zorbex, about the roof.", "ZORBEX", "ORGANIZATION"),
        ("Payments: Tom Wexford £30, Zorbex £341.00 (bins).", "ZORBEX", "ORGANIZATION"),
        ("We asked three firms: Zorbex, Hollin Rinks and Plimco (£900).", "PLIMCO", "ORGANIZATION"),
        ("They read letters from Plimco and other suppliers.", "PLIMCO", "ORGANIZATION"),
        ("The boiler by Plimco leaked.", "PLIMCO", "ORGANIZATION"),
        ("In the end Plimco had offered to mend it.", "PLIMCO", "ORGANIZATION"),
        ("The logs moved from Zorblog to the cellar.", "ZORBLOG", "CONCEPT"),
        ("She looked at the Zorblog dashboard.", "ZORBLOG", "CONCEPT"),
        ("He upgraded Zorblog on Friday.", "ZORBLOG", "CONCEPT"),
        ("In Zorblog, open the list of members.", "ZORBLOG", "CONCEPT"),
        ("The accounts are kept in Zorblog.", "ZORBLOG", "CONCEPT"),
        ("We will ask Zorbina from Finance about it.", "ZORBINA", "PERSON"),
        ("They rang for Zorbina. Zorbina found the fault in the pump. She will write it down.", "ZORBINA", "PERSON"),
        ("The bridge over the Zorb was closed.", "ZORB", "GEO"),
        ("They walked from Ockle to Zorbham again.", "ZORBHAM", "GEO"),
        ("The dogs on Ockle Green bark.", "OCKLE GREEN", "GEO"),
        ("The wind blew over Zorbex again.", "ZORBEX", "UNKNOWN"),
    ],
)
def test_dealings_show_what_minutes_name_in_passing(sentence: str, title: str, expected: str) -> None:
    assert _types(ROLL + sentence).get(title) == expected


def test_a_city_that_charges_is_a_firm() -> None:
    assert _types(ROLL + "Our broker said that Zurich wanted £7,800.")["ZURICH"] == "ORGANIZATION"
    assert _types(ROLL + "Tom Wexford came from Zurich.")["ZURICH"] == "GEO"


def test_well_known_names_have_types_where_the_text_says_nothing() -> None:
    types = _types(ROLL + "Eve Castell mentioned Grafana again. Then Barclays was on the list.")
    assert (types["GRAFANA"], types["BARCLAYS"]) == ("CONCEPT", "ORGANIZATION")


def test_evidence_of_the_text_goes_before_well_known_names() -> None:
    assert _types("The village of Grafana lies near Oslo. We met in Grafana, and left Grafana.")["GRAFANA"] == "GEO"
    roll = "Present: Ann Hill, Otis Marsh, Sage Brown\n\n"
    types = _types(roll + "Ann Hill thanked Otis. Then Otis and Sage left the room, and Sage was late.")
    assert types["OTIS MARSH"] == types["SAGE BROWN"] == "PERSON"


def test_a_well_known_name_that_is_a_word_needs_others_beside_it() -> None:
    alone = _types("The boat had much Slack in its rope. Then the Slack was taken in, and Slack it was.")
    assert alone.get("SLACK") != "ORGANIZATION"
    listed = _types(ROLL + "We use Grafana and Jira. Questions go into Slack.")
    assert listed["SLACK"] == "CONCEPT"


def test_an_attendee_with_the_name_of_a_place_is_a_person() -> None:
    assert _types(ROLL)["ANN HILL"] == "PERSON"


def test_names_in_a_list_share_a_type() -> None:
    types = _types(ROLL + "We shall keep Jira, Zorblog and Plimtrack.")
    assert types["ZORBLOG"] == types["PLIMTRACK"] == "CONCEPT"
