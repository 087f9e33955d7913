"""Records of replies about names that the passage does not hold, as small models wrote them; forms of names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.engines.model.extraction.kept_records import PassageNames, RecordFilter, refuse_foreign
from graphrag_pipeline.engines.model.extraction.reply_records import parse_claims_reply, parse_graph_reply
from graphrag_pipeline.models.ports import ReplyFormatError
from graphrag_pipeline.models.prompt_echoes import PromptEchoes
from graphrag_pipeline.models.prompts import load_prompt

TEXT = "Mara Ellsworth founded Quillon Robotics in Tarnby. Her partner Idris Vanterpool was an accountant."
ECHOES = load_prompt(None, "extract_graph").echoes
COPIED = """("entity"<|>Ines Calvo<|>PERSON<|>Ines Calvo opened the Brill Observatory in 1962 and was its first head.)
##
("entity"<|>Tarn<|>GEO<|>Tarn is the place above which the Brill Observatory stands.)
##
("entity"<|>Ellsworth, Mara<|>PERSON<|>Mara Ellsworth founded a company.)
##
("entity"<|>Tarnby<|>GEO<|>Tarn is the place above which the Brill Observatory stands.)
##
("relationship"<|>Mara Ellsworth<|>Quillon Robotics<|>She founded it.<|>9)
##
("relationship"<|>Mara Ellsworth<|>Brill Observatory<|>She ran it.<|>9)
<|COMPLETE|>"""


def test_records_of_the_example_are_dropped_and_counted() -> None:
    kept = RecordFilter(TEXT, ECHOES).keep(parse_graph_reply(COPIED))
    assert [(entity.name, entity.description) for entity in kept.entities] == [
        ("Ellsworth, Mara", "Mara Ellsworth founded a company."),
        ("Tarnby", ""),
    ]
    assert [(pair.source, pair.target) for pair in kept.relationships] == [("Mara Ellsworth", "Quillon Robotics")]
    assert kept.problems == {
        "entity not named in the text": 2,
        "relationship of a name not in the text": 1,
        "text of the prompt": 1,
    }


def test_the_passage_of_the_example_itself_keeps_its_records() -> None:
    passage = (
        "Dr Ines Calvo opened the Brill Observatory above Tarn in 1962, was its first head and stands in its place."
    )
    kept = RecordFilter(passage, ECHOES).keep(parse_graph_reply(COPIED))
    assert [entity.name for entity in kept.entities] == ["Ines Calvo", "Tarn"]
    assert kept.entities[0].description.startswith("Ines Calvo opened")


def test_a_sentence_about_the_example_is_left_out_and_the_others_stay() -> None:
    """Names of the example, and its words with other names, as Qwen2.5 0.5B wrote them."""
    own, swapped = "It makes robots.", "Quillon Robotics is the place above which Tarnby stands."
    reply = f"""("entity"<|>Quillon Robotics<|>ORGANIZATION<|>{own} {swapped} It was founded by a friend of Omar Seck.)
##
("relationship"<|>Idris Vanterpool<|>Mara Ellsworth<|>Idris Vanterpool was the pupil and successor of her.<|>8)
##
("relationship"<|>Mara Ellsworth<|>Quillon Robotics<|>She founded it above a tarn.<|>9)"""
    kept = RecordFilter(TEXT, ECHOES).keep(parse_graph_reply(reply))
    described = [record.description for record in (*kept.entities, *kept.relationships)]
    assert described == [own, "", "She founded it above a tarn."]
    assert kept.problems == {"text of the prompt": 2}
    said = f"{TEXT} Above its place stands a mill. He was her pupil and successor. Omar Seck was their friend."
    kept = RecordFilter(said, ECHOES).keep(parse_graph_reply(reply))
    assert not kept.problems and kept.entities[0].description.startswith(f"{own} {swapped}")


def test_a_reply_needs_a_record_about_the_passage_unless_it_is_of_claims() -> None:
    reply = parse_graph_reply(COPIED)
    kept = RecordFilter("Every morning a ferry crossed.", ECHOES).keep(reply)
    with pytest.raises(ReplyFormatError, match=r"does not name 'Ines Calvo', 'Tarn', .* and 2 more"):
        refuse_foreign(kept, reply)
    claims = parse_claims_reply('("claim"<|>Lunn<|>NONE<|>FOUNDING<|>TRUE<|>NONE<|>NONE<|>So.<|>founded)')
    assert refuse_foreign(RecordFilter(TEXT, ECHOES).keep(claims), claims).n_records == 0


def test_a_claim_needs_its_subject_and_loses_an_object_that_is_not_there() -> None:
    record = '("claim"<|>{}<|>{}<|>FOUNDING<|>TRUE<|>NONE<|>NONE<|>So.<|>founded)'
    reply = "##".join(record.format(*names) for names in (("Mara Ellsworth", "Lunn Shipping"), ("Lunn", "NONE")))
    kept = RecordFilter(TEXT, PromptEchoes()).keep(parse_claims_reply(reply))
    assert [(claim.subject, claim.object) for claim in kept.claims] == [("Mara Ellsworth", "NONE")]
    assert kept.problems == {"claim about a name not in the text": 1, "object of a claim not in the text": 1}


FIRE = PassageNames(
    "On the night of 14 February 2023 a fire destroyed the northern third of the hall at Pier Nine in Tarnby. The hall "
    "was rented by Quillon Robotics. An inquiry led by the fire marshal Petra Solheim found that the fire began in a "
    "store room where batteries made by Tarnby Cell Works were charged. The World Health Organization and the U.S. "
    "Department of Defense sent Mr. Scrooge. He was sold by Müller in 37 countries, and the Danes of Paris. The "
    "co-op of the WTO closed."
)
HELD = """
Quillon Robotics | QUILLON ROBOTICS | Solheim, Petra | Ebenezer Scrooge | Fire at Pier Nine | WHO | Dane
Department of Defense | United States Department of Defense | February 14th, 2023 | Quillon Robotics Ltd
The Hall | Dr. Petra Solheim | World Trade Organization | Pier-Nine | Battery | Fire marshal | 37
"""
ABSENT = """
Ines Calvo | Brill Observatory | Tarn | Omar Seck | Leonie Akabua | Bittern | Greed | NATO
Tarn Institute | 38
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


@given(st.text(min_size=1, max_size=30), st.text(max_size=60))
def test_a_passage_holds_what_it_writes(name: str, rest: str) -> None:
    assert PassageNames(f"{rest} {name} {rest}").hold(name, is_exact=True)
    PassageNames(rest).hold(name)


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_share_is_between_none_and_all(text: str, other: str) -> None:
    assert 0 <= PassageNames(text).share_of(other) <= 1
