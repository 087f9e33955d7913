from __future__ import annotations

import pytest

from graphrag_pipeline.engines.model.extraction.conversations import UnitMentions
from graphrag_pipeline.engines.model.extraction.kept_records import ABSENT_NAME
from graphrag_pipeline.engines.model.tuning.comparison import measure_agreement, measure_unit, sum_figures


def entity(name: str, kind: str = "PERSON", description: str = "") -> dict:
    return {"name": name, "type": kind, "description": description}


def pair(source: str, target: str) -> dict:
    return {"source": source, "target": target, "description": "", "strength": 1.0}


def by_rule(*names: str, kind: str = "PERSON") -> list[dict]:
    return [{"name": name, "type": kind} for name in names]


def test_figures_of_a_text_unit() -> None:
    entities = [
        entity("Ines Calvo"),
        entity("INES CALVO", description="again"),
        entity("Tarn", "MOON"),
        entity("Zaphod"),
    ]
    mentions = UnitMentions(
        entities,
        [pair("Ines Calvo", "Tarn"), pair("Tarn", "INES CALVO")],
        [],
        {"MOON": 1},
        {"repeated": 2, ABSENT_NAME: 1},
        1,
    )
    found = measure_unit(mentions, by_rule("Ines Calvo", "Brill Observatory", "Tarn"))
    assert found.values == {
        "entities": 3,
        "relationships": 1,
        "outside_share": 1 / 4,
        "repeated_share": (2 + 1 + 1) / 8,  # repeats that were left out, of a name and type, of a pair
        "absent_share": 1 / 5,  # of the records, before the absent one was left out
        "isolated_share": 1 / 3,
        "agreement": pytest.approx(2 / 3),
    }


def test_nothing_found_has_no_shares_and_no_agreement_to_lose() -> None:
    found = measure_unit(UnitMentions([], [], [], {}, {}, 1), by_rule("Tarn")).values
    assert [found[name] for name in ("entities", "outside_share", "agreement")] == [0, None, 0.0]


@pytest.mark.parametrize(
    ("names", "rule", "f1"),
    [
        ({"CALVO"}, by_rule("Ines Calvo"), 1.0),
        ({"DR INES CALVO"}, by_rule("Ines Calvo"), 1.0),
        ({"CAL"}, by_rule("Ines Calvo"), 0.0),
        ({"THE SEA"}, by_rule("the sea", kind="CONCEPT") + by_rule("Tarn"), 0.0),
        ({"THE SEA", "TARN"}, by_rule("the sea", kind="CONCEPT") + by_rule("Tarn"), 1.0),
        ({"TARN"}, by_rule("the sea", kind="CONCEPT"), None),
    ],
)
def test_names_agree_by_their_words_and_key_phrases_need_not_be_found(names, rule, f1) -> None:
    assert measure_agreement(names, rule) == f1


def test_a_failed_text_unit_is_counted_and_not_a_zero() -> None:
    mentions = UnitMentions([entity("Tarn")], [], [], {}, {"no name": 1}, 1)
    figures = sum_figures([measure_unit(mentions, []), None], [mentions, None])
    assert (figures.n_units, figures.n_failed, figures.n_distinct) == (1, 1, 1)
    assert figures.means["entities"].mean == 1 and figures.means["agreement"].mean is None
    assert figures.types == {"PERSON": 1} and figures.problems == {"no name": 1}
