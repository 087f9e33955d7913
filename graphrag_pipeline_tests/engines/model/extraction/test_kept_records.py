"""Records of replies about names that the passage does not hold, as small models wrote them."""

from __future__ import annotations

import pytest

from graphrag_pipeline.engines.model.extraction.kept_records import RecordFilter, cut_copied_clauses, refuse_foreign
from graphrag_pipeline.engines.model.extraction.passage_names import PassageNames
from graphrag_pipeline.engines.model.extraction.reply_records import parse_claims_reply, parse_graph_reply
from graphrag_pipeline.models.ports import ReplyFormatError
from graphrag_pipeline.models.prompt_echoes import PromptEchoes
from graphrag_pipeline.models.prompts import load_prompt

EXAMPLES = load_prompt(None, "extract_graph").echoes.example_values
PASSAGE = PassageNames(
    "Nordwerk opened an office in Brantwick in 1987. Mayor Lund spoke at the opening. Piet Maas works for Nordwerk."
)


@pytest.mark.parametrize(
    ("text", "own"),
    [
        (
            "The Nordwerk office in Brantwick was opened in 1987 by Mayor Lund and later run by the Mayor.",
            "The Nordwerk office in Brantwick was opened in 1987 by Mayor Lund.",
        ),
        ("Mayor Lund spoke in Brantwick and was her first head.", "Mayor Lund spoke in Brantwick."),
        (
            "Piet Maas works for Nordwerk, was the pupil and successor of Mayor Lund, and spoke in 1987.",
            "Piet Maas works for Nordwerk, and spoke in 1987.",
        ),
        ("Mayor Lund was its first head and spoke in Brantwick.", "Mayor Lund spoke in Brantwick."),
        ("Mayor Lund was its first head, which Brantwick remembers. He spoke.", "He spoke."),
        ("The old mayor of the town was its first head and spoke.", ""),
        ("Mayor Lund was her first head.", ""),
    ],
)
def test_a_copied_clause_is_cut_and_the_rest_of_the_sentence_stays(text: str, own: str) -> None:
    assert cut_copied_clauses(text, EXAMPLES, PASSAGE) == own


@pytest.mark.parametrize(
    "text",
    [
        "Mayor Lund opened the office and ran it.",
        "Piet Maas took over the office from her.",
        "Piet Maas was her pupil and the head of the office.",
        "Nordwerk opened an office in 1987, later a shop, and ran both.",
        "",
    ],
)
def test_good_text_with_words_of_the_example_stays(text: str) -> None:
    assert cut_copied_clauses(text, EXAMPLES, PASSAGE) == text


@pytest.mark.parametrize("said", ["The first of them was Lund.", "Its heads were Lund and Maas.", "A heading."])
def test_words_that_the_passage_holds_in_some_form_are_no_copy(said: str) -> None:
    text = "Mayor Lund spoke in Brantwick and was its first head."
    assert cut_copied_clauses(text, EXAMPLES, PassageNames(said)) == text


def test_examples_of_a_users_prompt_need_a_longer_run_for_they_may_be_from_the_same_corpus() -> None:
    own = frozenset({"The bell tower plays a crucial role in guiding ships through fog, wrote Ines Calvo."})
    common = "Nordwerk has an office and plays a crucial role in the town."
    assert cut_copied_clauses(common, own, PASSAGE) == common
    copied = "Nordwerk has an office and plays a crucial role in guiding ships through fog."
    assert cut_copied_clauses(copied, own, PASSAGE) == "Nordwerk has an office."


def test_scripts_without_spaces_are_not_judged() -> None:
    text = "\u8bf7\u7528\u4e00\u53e5\u8bdd\u8bf4\u660e\u7406\u7531\u5e76\u4e14\u4e0d\u8981\u6dfb\u52a0"
    assert cut_copied_clauses(text, frozenset({text}), PASSAGE) == text


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


def test_a_description_that_mixes_the_passage_with_a_name_of_the_example_is_dropped() -> None:
    reply = """("entity"<|>Quillon Robotics<|>ORGANIZATION<|>It was founded by Mara, a friend of Omar Seck.)
##
("relationship"<|>Mara Ellsworth<|>Quillon Robotics<|>She founded it above a tarn.<|>9)"""
    kept = RecordFilter(TEXT, ECHOES).keep(parse_graph_reply(reply))
    assert [entity.description for entity in kept.entities] == [""]
    assert kept.relationships[0].description == "She founded it above a tarn."
    assert kept.problems == {"text of the prompt": 1}


def test_an_example_with_other_names_is_left_out_unless_the_passage_says_so() -> None:
    swapped = "Quillon Robotics is the place above which Tarnby stands."
    own = "It makes robots."
    reply = f"""("entity"<|>Quillon Robotics<|>ORGANIZATION<|>{own} {swapped})
##
("entity"<|>Tarnby<|>GEO<|>{swapped})
##
("relationship"<|>Idris Vanterpool<|>Mara Ellsworth<|>Idris Vanterpool was the pupil and successor of her.<|>8)
##
("relationship"<|>Tarnby<|>Quillon Robotics<|>The Quillon Robotics stands above Tarnby.<|>9)
##
("relationship"<|>Mara Ellsworth<|>Quillon Robotics<|>Mara Ellsworth designed the Quillon Robotics and ran it.<|>9)"""
    kept = RecordFilter(TEXT, ECHOES).keep(parse_graph_reply(reply))
    assert [record.description for record in (*kept.entities, *kept.relationships)] == [own, "", "", "", ""]
    assert kept.problems == {"text of the prompt": 5}
    said = f"{TEXT} Above its place stands a mill. He was her pupil and successor, who designed and ran it."
    kept = RecordFilter(said, ECHOES).keep(parse_graph_reply(reply))
    assert not kept.problems and all(record.description for record in (*kept.entities, *kept.relationships))


def test_a_clause_of_the_example_inside_a_sentence_is_cut_and_counted() -> None:
    reply = """("entity"<|>Quillon Robotics<|>ORGANIZATION<|>It is in Tarnby. Mara founded it and was its first head.)
##
("relationship"<|>Idris Vanterpool<|>Mara Ellsworth<|>Idris was her partner, an accountant and later run by her.<|>8)"""
    kept = RecordFilter(TEXT, ECHOES).keep(parse_graph_reply(reply))
    assert kept.entities[0].description == "It is in Tarnby. Mara founded it."
    assert kept.relationships[0].description == "Idris was her partner, an accountant."
    assert kept.problems == {"text of the prompt": 2}


@pytest.mark.parametrize("head", ["the Mayor", "Omar Seck"])
def test_a_sentence_that_is_like_an_example_but_for_a_true_part_keeps_that_part(head: str) -> None:
    """As Qwen2.5 0.5B wrote it."""
    office = "Nordwerk opened an office in Brantwick in 1987. Mayor Lund spoke at the opening."
    described = "The Nordwerk office in Brantwick was opened in 1987 by Mayor Lund"
    reply = parse_graph_reply(f'("entity"<|>Nordwerk<|>ORGANIZATION<|>{described} and later run by {head}.)')
    assert RecordFilter(office, ECHOES).keep(reply).entities[0].description == f"{described}."


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
