import pytest

from graphrag_pipeline.text.initials import count_initials, letters_of


@pytest.mark.parametrize(
    ("short", "long", "n"),
    [
        ("WHO", "World Health Organization", 3),
        ("FeNO", "fractional exhaled nitric oxide", 4),
        ("CT", "computed tomography", 2),
        ("HLA-B", "human leukocyte antigen B", 4),
        ("MHRA", "Medicines and Healthcare products Regulatory Agency", 4),
        ("WHO", "what she thought to be so", 1),
        ("CT", "", 0),
    ],
)
def test_letters_of_an_abbreviation_start_words_in_order(short, long, n):
    assert count_initials(letters_of(short), long.split()) == n


def test_letters_and_digits_count_in_small_letters():
    assert letters_of("HbA1c-X") == ["h", "b", "a", "1", "c", "x"]
