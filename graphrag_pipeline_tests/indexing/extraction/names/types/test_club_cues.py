from collections import Counter

import pytest

from graphrag_pipeline.indexing.extraction.extracted_graph import read_document
from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.indexing.extraction.names.types.club_cues import CLUB, RIVAL, is_club, read_club_cues


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Merrow Town, who finished third, have signed Isak Fonn", [CLUB]),
        ("the captain of Merrow Town tore a muscle", [CLUB]),
        ("Merrow Town 19, Vard Exiles 17. It rained.", [CLUB]),
        ("a 3-1 win over Merrow Town on Friday", [CLUB]),
        ("supporters for Merrow Town fans", [CLUB]),
        ("her debut against Merrow Town on Friday", [CLUB]),
        ("Barrow, who lost at home to Merrow Town", [CLUB]),
        ("joined the club from Merrow Town", [CLUB]),
        ("Merrow Town beat Vard", [RIVAL]),
        ("They met at Merrow Town in May", []),
        ("The road to Merrow Town is closed", []),
    ],
)
def test_a_match_and_its_players_show_a_club(text: str, expected: list[str]) -> None:
    start = text.index("Merrow Town")
    assert list(read_club_cues(text, Name("Merrow Town", start, start + 11, 0))) == expected


def test_a_name_is_a_club_if_it_plays_more_than_it_lies() -> None:
    assert is_club(Counter({CLUB: 2, "GEO": 1}))
    assert not is_club(Counter({CLUB: 1, "GEO": 2}))
    assert not is_club(Counter({RIVAL: 2}))


def test_persons_play_where_sets_are_counted() -> None:
    text = (
        "In Ostley the qualifier Zelwa Orrik lost to Brakka Quend 6-4, 7-6 (5). Orrik wept, and Quend lost to nobody."
    )
    found = {one.title: one.type for sentence in read_document("open", text)[0] for one in sentence.occurrences}
    assert (found["ZELWA ORRIK"], found["BRAKKA QUEND"]) == ("PERSON", "PERSON")
