from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.engines.embedded.names.folded_text import FoldedText
from graphrag_pipeline.text.sentences import split_sentences


@given(st.text(alphabet="aB.\n \t", max_size=80))
def test_every_word_is_found_again_in_the_original(text: str) -> None:
    folded = FoldedText(text, split_sentences(text))
    assert folded.text.split() == text.split()
    place = 0
    for word in text.split():
        place = folded.text.index(word, place)
        start, end = folded.place_of(place, place + len(word))
        assert text[start:end] == word
        first, last = folded.spans[folded.sentence_of(place)]
        assert first <= place and place + len(word) <= last
        place += len(word)


def test_a_name_over_a_line_break_has_its_place_in_the_original() -> None:
    text = "We met Ebenezer\n  Scrooge. He left."
    folded = FoldedText(text, split_sentences(text))
    assert folded.text == "We met Ebenezer Scrooge.\nHe left.\n"
    assert folded.prose == "We met Ebenezer Scrooge. He left. "
    name = folded.name_at("Ebenezer Scrooge", 7, 23)
    assert text[name.start : name.end] == "Ebenezer\n  Scrooge" and name.sentence == 0
    assert folded.is_first(25) and not folded.is_first(7)
