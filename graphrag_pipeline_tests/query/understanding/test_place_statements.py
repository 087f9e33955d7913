"""Places that sentences state."""

from __future__ import annotations

import pytest

from graphrag_pipeline.query.question import content_words
from graphrag_pipeline.query.understanding.place_statements import read_made_places, read_places


@pytest.mark.parametrize(
    ("events", "text", "place"),
    [
        ("party", "The party was held in the garden of the old chapel.", "the garden of the old chapel"),
        ("dinner", "His dinner will be held at the Golden Anchor.", "the Golden Anchor"),
        ("die", "Otto Kern died in the infirmary at Selby in March.", "the infirmary at Selby"),
        ("conference", "The conference took place at the town hall of Ostrava.", "the town hall of Ostrava"),
        ("sleep", "Joan slept under a table.", "under a table"),
        ("born", "Ida was born in Faro, and lives in Oslo.", "Faro"),
    ],
)
def test_the_place_nearest_to_the_event_is_read(events, text, place):
    best = max(read_places(text, content_words(events)), key=lambda stated: stated.nearness)
    assert best.place == place


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ("party", "The party was held in June."),
        ("party", "The party was loud, and Ida stayed in the kitchen."),
        ("party", "Ida stayed in the kitchen."),
    ],
)
def test_another_phrase_is_no_place_of_the_event(events, text):
    assert list(read_places(text, content_words(events))) == []


def test_a_room_that_is_made_the_room_of_the_event_is_its_place():
    text = "The floor was swept, and the malt-house was hung with green and made as merry a supper-room as ever."
    (exact,) = read_made_places(text, content_words("supper"))
    (kind,) = read_made_places(text, content_words("feast"))
    assert (exact.place, kind.place) == ("the malt-house", "the malt-house")
    assert exact.nearness > kind.nearness
    assert list(read_made_places(text, content_words("trial"))) == []
