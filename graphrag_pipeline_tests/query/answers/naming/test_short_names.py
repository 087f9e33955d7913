import pytest

from graphrag_pipeline.query.answers.naming.short_names import is_short_for, is_short_for_another
from graphrag_pipeline.query.question import content_words

MILL = "Fire gutted the Crane Paper Mill. A man was taken to Moss Hospital."


@pytest.mark.parametrize(
    ("phrase", "name", "text", "expected"),
    [
        ("The mill, ", "Crane Paper Mill", MILL, True),
        ("A mill, ", "Crane Paper Mill", MILL, False),
        ("The hospital ", "Crane Paper Mill", MILL, False),
        ("The mill ", "Crane Paper Mill", f"{MILL} The Ansel Mill is new.", False),
        ("The mill ", "Old Crane Mill", MILL, False),
        ("The mill ", "Mill", MILL, False),
    ],
)
def test_the_noun_of_the_only_name_that_ends_with_it_is_short_for_it(phrase, name, text, expected):
    assert is_short_for(phrase, content_words(name), text) is expected


@pytest.mark.parametrize(
    ("before", "name", "expected"),
    [
        ("The mill was ", "Moss Hospital", True),
        ("The mill was ", "Lady Rosamund", True),  # the text names a mill
        ("The barge was ", "Lady Rosamund", False),
        ("The mill was ", "Crane Paper Mill", False),
        ("It was ", "Moss Hospital", False),
    ],
)
def test_a_noun_with_the_may_be_another_thing(before, name, expected):
    assert is_short_for_another(before, content_words(name), MILL) is expected
