import pytest

from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.indexing.extraction.names.types.place_cues import JOURNEY, PLACE, read_place_cues


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a village north of Teska was cut off", [PLACE]),
        ("The line will cross the Teska on a bridge", [PLACE]),
        ("On Sunday the Teska burst its banks", [PLACE]),
        ("the mayor of Teska said no", [PLACE]),
        ("Teska city council voted", [PLACE]),
        ("a bridge over the Teska", [PLACE]),
        ("They were flown to Teska at night", [JOURNEY]),
        ("It will not sail to Teska until May", [JOURNEY]),
        (
            "a farm at Teska, three miles north of Vard",
            [
                PLACE,
            ],
        ),
        ("the president of Teska said no", []),
        ("Teska burst into tears", []),
    ],
)
def test_sides_waters_and_seats_show_a_place(text: str, expected: list[str]) -> None:
    start = text.index("Teska")
    assert list(read_place_cues(text, Name("Teska", start, start + 5, 0))) == expected
