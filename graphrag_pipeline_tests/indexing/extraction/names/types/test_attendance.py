import pytest

from graphrag_pipeline.indexing.extraction.extracted_graph import read_document
from graphrag_pipeline.indexing.extraction.names.types.attendance import (
    choose_attendees,
    choose_surnames,
    find_attendees,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Present: Wei Zhang, T. Nance (Clerk)\nWei spoke.", {"Wei Zhang", "Wei", "T. Nance"}),
        ("**There:** Tobias Brandt (Tobi), Owen from Platform", {"Tobias Brandt", "Tobias", "Tobi", "Owen"}),
        ("Apologies: Cllr Mrs P. Tolland; 3 members of the public", {"P. Tolland"}),
        ("Attendees:\n- Ines Carvalho\n- Marek\n\nBudapest", {"Ines Carvalho", "Ines", "Marek"}),
        ("Notes: the pump at Pound Lane has failed again.", set()),
        ("There: we went to Vienna and to Brno in the same week.", set()),
    ],
)
def test_an_attendance_list_names_persons(text: str, expected: set[str]) -> None:
    assert find_attendees(text) == expected


def test_an_attendee_may_have_a_form_of_address() -> None:
    forms = ["Cllr R. Ashby", "R. Ashby", "Mill Lane"]
    assert choose_attendees(forms, {"R. Ashby"}) == {"Cllr R. Ashby", "R. Ashby"}


MINUTES = """# Retro

**Facilitator:** Wei
**There:** Wei Zhang, Marek Dvořák (back end), Tobias Brandt

## What happened
Marek finished the dual writes. The backfill is still running, and Wei looked at it.
Team Osprey has the burn-rate alert. Marek: "We should copy it." The van was stopped on the B3217.
The bull at Hensworth Farm broke loose, and 25/01834/HOU was refused.
"""


def test_first_names_roads_farms_and_teams_of_minutes_have_types() -> None:
    found = {one.title: one.type for sentence in read_document("minutes", MINUTES)[0] for one in sentence.occurrences}
    assert found["WEI"] == "PERSON"
    assert (found["B3217"], found["HENSWORTH FARM"], found["TEAM OSPREY"]) == ("GEO", "GEO", "ORGANIZATION")
    assert "HOU" not in found  # the end of a reference


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "In the room: Wei, Marisol. Remote: Piotrek, Deepa. Off sick: Lennart",
            {"Wei", "Marisol", "Piotrek", "Deepa"},
        ),
        (
            "Members\nDr Meenakshi Iyer, Medical Director\nTomasz Zielinski, Chair\n\nNext",
            {"Meenakshi Iyer", "Meenakshi"},
        ),
        ("Also present: Leonora Baptiste, CDS Co-operatives (agent); PC Alan Trimble", {"Leonora Baptiste", "Alan"}),
        ("Apologies: Gwilym Rees, the Adeyemi family, Bao Tran", {"Gwilym Rees", "Bao Tran"}),
        ("25/61 Apologies: Cllr T. Garside (holiday)", {"T. Garside"}),
        ("Apologies were received from Edith Lowell and Samuel Okoro.", {"Edith Lowell", "Samuel Okoro"}),
    ],
)
def test_more_forms_of_attendance_lists(text: str, expected: set[str]) -> None:
    found = find_attendees(text)
    assert expected <= found
    assert not {"CDS Co-operatives", "CDS", "Medical Director", "Medical"} & found


def test_a_labelled_list_alone_is_no_heading() -> None:
    found = [
        one.title
        for sentence in read_document("note", "Apologies: Ann Hill, Bo Trevik")[0]
        for one in sentence.occurrences
    ]
    assert found == ["ANN HILL", "BO TREVIK"]


def test_a_word_in_brackets_is_short_for_a_name_with_its_initial() -> None:
    found = find_attendees(
        "Present: Thomas Hillard (Tom), Ewan Raistrick (Northern), Ann Fell, Raigmore Hospital, Inverness\n"
    )
    assert {"Thomas Hillard", "Tom", "Ewan Raistrick", "Ann Fell"} <= found
    assert not {"Northern", "Inverness", "Raigmore Hospital"} & found


def test_surnames_of_attendees_are_persons_unless_they_are_words_or_places() -> None:
    attendees = {"Gwen Asante", "Gwen", "Ruth Bradford", "Ann Bridge"}
    assert choose_surnames(["Asante", "Gwen", "Bradford", "Bridge", "Tessim"], attendees) == {"Asante"}
    text = "Attendees: Gwen Asante (chair), Jo Tessim\n\nAsante has welcomed the firm. Tessim expects more."
    found = {o.name: o.type for sentence in read_document("x", text)[0] for o in sentence.occurrences}
    assert found == {"Gwen Asante": "PERSON", "Jo Tessim": "PERSON"}


BOARD = """Brambex Holdings plc

Directors present:
Dame Olu Zarrick (Chair)
Piet Vossen (Chief Executive)
Mina Quell-Hart (Non-executive)

In attendance: Sven Ostrow (SO), Operations Director; Gil Tarn and four members of the public

1. Accounts
PV presented the accounts. MQH asked about the loan, and the AGM was set for May. Action: SO to write. CT left.
"""


def test_initials_stand_for_the_only_attendee_who_has_them() -> None:
    found = {one.title for sentence in read_document("board", BOARD)[0] for one in sentence.occurrences}
    assert {"OLU ZARRICK", "PIET VOSSEN", "MINA QUELL-HART", "SVEN OSTROW", "GIL TARN", "CT"} <= found
    assert not found & {"PV", "MQH", "SO", "OPERATIONS DIRECTOR", "DIRECTORS"}
