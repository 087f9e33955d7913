from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.engines.embedded.names.lines import split_lines
from graphrag_pipeline.text.sentences import split_sentences

WRAPPED = """The council met in the evening and spoke for a long while about the bridge that Mayor
Whitcombe had promised, and about the road to Harrow
Falls, which the flood had taken away. It was late when Mr. Marsh rose to speak to them.
"""


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in split_lines(text, split_sentences(text))]


def test_a_heading_is_apart_from_the_text_in_the_next_line() -> None:
    text = "Diagnosis\nOffer a biopsy.\n\nKey points\nSurgery\nThe surgeon removes the polyp."
    assert split(text) == [
        *("Diagnosis\n", "Offer a biopsy.\n\n", "Key points\n", "Surgery\n", "The surgeon removes the polyp."),
    ]


def test_a_wrapped_line_is_not_a_heading() -> None:
    assert split(WRAPPED) == [WRAPPED[slice(*span)] for span in split_sentences(WRAPPED)]


@given(st.text(alphabet="aB .\n1,", max_size=200))
def test_the_parts_cover_the_text_in_order(text: str) -> None:
    assert "".join(split(text)) == text


def test_a_line_before_an_item_of_a_list_ends_on_purpose() -> None:
    long = "d. Agreement with Parametrix for the design of the Cannery Road sidewalk and of its lamps, not to exceed"
    text = f"{long} $188,400 in all\ne. Purchase of cameras from Axon\nMotion by Hill carried."
    assert split(text) == [
        f"{long} $188,400 in all\n",
        "e. Purchase of cameras from Axon\n",
        "Motion by Hill carried.",
    ]
