import pytest

from graphrag_pipeline.engines.embedded.names.acronyms import find_acronyms, find_definitions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The World Health Organization (WHO) met.", {"WHO": "World Health Organization"}),
        ("By computed tomography (CT), it was seen.", {"CT": "computed tomography"}),
        ("The CT (computed tomography) was clear.", {"CT": "computed tomography"}),
        ("Centers for Disease Control (CDC) and (see below) more.", {"CDC": "Centers for Disease Control"}),
        ("An electrocardiogram (ECG) was made.", {}),
        ("The Food and Drug Administration (FDA; since 1906)", {"FDA": "Food and Drug Administration"}),
        ("The FDA approval (FDA) is no long form.", {}),
        ("It costs a lot (USD 20) here.", {}),
    ],
)
def test_a_short_form_in_parentheses_belongs_to_the_words_with_its_letters(text: str, expected: dict) -> None:
    assert {short: text[start:end] for short, (start, end) in find_definitions(text).items()} == expected


def test_acronyms_are_counted_without_units_and_shouted_lines() -> None:
    assert find_acronyms("The API of the DNS and the API took 20 MB of it.\nREAD THIS NOW\n") == {"API": 2, "DNS": 1}
