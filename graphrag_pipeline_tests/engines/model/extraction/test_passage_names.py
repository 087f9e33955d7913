"""Which forms of a name a passage holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.engines.model.extraction.passage_names import PassageNames

FIRE = PassageNames(
    "On the night of 14 February 2023 a fire destroyed the northern third of the hall at Pier Nine in Tarnby. The hall "
    "was rented by Quillon Robotics. An inquiry led by the fire marshal Petra Solheim found that the fire began in a "
    "store room where batteries made by Tarnby Cell Works were charged. The World Health Organization and the U.S. "
    "Department of Defense sent Mr. Scrooge. He was sold by Müller in 37 countries, and the Danes of Paris. The "
    "co-op of the WTO closed."
)
HELD = """
Quillon Robotics | QUILLON ROBOTICS | Solheim, Petra | Ebenezer Scrooge | Fire at Pier Nine | WHO | DoD | Mueller | Dane
Department of Defense | United States Department of Defense | Feb 14, 2023 | February 14th, 2023 | Quillon Robotics Ltd
The Hall | Dr. Petra Solheim | World Trade Organization | coop | Pier-Nine | Battery | Fire marshal | 37
"""
ABSENT = """
Ines Calvo | Brill Observatory | Tarn | Omar Seck | Paris Observatory | Leonie Akabua | Bittern | Greed | NATO
Tarn Institute | 38 | Narrator
"""


def names_in(listed: str) -> list[str]:
    return [name.strip() for line in listed.strip().splitlines() for name in line.split("|")]


@pytest.mark.parametrize("name", names_in(HELD))
def test_a_form_of_a_name_is_held(name: str) -> None:
    assert FIRE.hold(name)


@pytest.mark.parametrize("name", names_in(ABSENT))
def test_another_name_is_not_held(name: str) -> None:
    assert not FIRE.hold(name)


def test_an_exact_form_has_all_words() -> None:
    assert FIRE.hold("Solheim, Petra", is_exact=True) and not FIRE.hold("Ebenezer Scrooge", is_exact=True)


@pytest.mark.parametrize(
    ("text", "held", "absent"),
    [
        ("鲁镇的酒店，孔乙己是站着喝酒", "孔乙己", "阿尿"),
        ("鲁镇的酒店，孔乙己", "鲁镇酒店", "周树人"),
        ("В Белогорской крепости", "Белогорская крепость", "Екатерина"),
        ("스크루지는 갔다", "스크루지", "크래칫"),
    ],
    ids=["characters", "half", "Cyrillic", "Hangul"],
)
def test_other_scripts(text: str, held: str, absent: str) -> None:
    assert PassageNames(text).hold(held) and not PassageNames(text).hold(absent)
    assert PassageNames(text).hold("Lu Xun"), "a translated name cannot be judged"
    assert not PassageNames(text).hold("Lu Xun", is_exact=True)


def test_a_text_in_the_first_person_has_a_narrator() -> None:
    assert PassageNames("I went home.").hold("The Narrator")


@given(st.text(min_size=1, max_size=30), st.text(max_size=60))
def test_a_passage_holds_what_it_writes(name: str, rest: str) -> None:
    assert PassageNames(f"{rest} {name} {rest}").hold(name, is_exact=True)
    PassageNames(rest).hold(name)


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_share_is_between_none_and_all(text: str, other: str) -> None:
    assert 0 <= PassageNames(text).share_of(other) <= 1
