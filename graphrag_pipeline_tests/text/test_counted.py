import pytest

from graphrag_pipeline.text.counted import counted


@pytest.mark.parametrize(
    ("n", "nouns", "expected"),
    [
        (0, "documents", "0 documents"),
        (1, "documents", "1 document"),
        (1, "text units", "1 text unit"),
        (1, "entities", "1 entity"),
        (1, "replies", "1 reply"),
        (1200, "communities", "1,200 communities"),
    ],
)
def test_one_is_singular_and_thousands_are_grouped(n, nouns, expected):
    assert counted(n, nouns) == expected
