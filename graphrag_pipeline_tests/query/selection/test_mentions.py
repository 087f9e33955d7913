from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.query.selection.mentions import (
    WordedText,
    find_half,
    find_mentions,
    find_words,
    is_named,
    words_of_name,
)

TEXT = "The fog was thick. Old Fezziwig laughed all over himself. He called out to Dick. Then they danced."
WORDS = st.sampled_from(
    ["Marley", "was", "dead", "to", "begin", "with.", "There", "no", "doubt!", "萧炎", "。", "(so)\n\n"]
)


def spans_of(text, *names):
    return [text[start:end] for start, end in find_mentions(text, names)]


def test_a_mention_is_a_name_as_whole_words_in_any_case_and_with_any_white_space():
    assert spans_of("Tim, TINY\nTIM and Timothy; tiny tims", "Tiny Tim") == ["TINY\nTIM"]
    assert spans_of("Mr. Cratchit and Bob Cratchit", "Bob Cratchit", "CRATCHIT") == ["Cratchit", "Bob Cratchit"]
    assert spans_of("萧炎是谁？", "萧炎") == ["萧炎"]
    assert spans_of("O'Brien (C++) said", "O'Brien", "C++") == ["O'Brien", "C++"]
    assert spans_of("anything", "", "  ") == []
    assert spans_of("Tiny\n   Tim, İstanbul", "TINY TIM") == ["Tiny\n   Tim"]


@given(words=st.lists(WORDS, max_size=30), names=st.lists(WORDS, min_size=1, max_size=3))
def test_a_text_is_named_where_a_mention_is_found(words, names):
    text = " ".join(words)
    assert is_named(text, names) <= bool(find_mentions(text, names))
    for start, end in find_mentions(text, names):
        assert " ".join(text[start:end].lower().split()) in {" ".join(name.lower().split()) for name in names}


def test_words_of_a_name_count_in_the_shortest_run_of_three_sentences_at_most():
    worded = WordedText.of(TEXT)

    def found(name):
        span = find_words(worded, list(words_of_name(name)))
        return span and TEXT[slice(*span)]

    assert found("Dick's call") == "He called out to Dick."
    assert found("the dance in the fog") is None, "four sentences apart is no mention"
    assert found("Fezziwig's call") == "Old Fezziwig laughed all over himself. He called out to Dick."
    assert find_words(worded, []) is None


def half_of(name, *texts):
    found = find_half([WordedText.of(text) for text in texts], list(words_of_name(name)))
    return found and texts[found[0]][slice(*found[1])]


def test_half_of_the_words_of_a_name_count_in_the_sentence_that_tells_most():
    scratch = 'It was an old, cold day. "Well!" said the first. "Old Scratch has got his own at last, hey?" They went.'
    assert half_of("DEATH OF OLD SCRATCH", scratch) == '"Old Scratch has got his own at last, hey?"'
    assert (
        half_of("THE CRATCHIT FAMILY", "So did the two young Cratchits. They sat.") == "So did the two young Cratchits."
    )
    assert half_of("GHOST OF CHRISTMAS PAST", "It was Christmas. It was a ghost.") is None, "one of three words"
    assert half_of("FEZZIWIG'S BALL", "Fezziwig came. Fezziwig sat.", "Fezziwig led. What a ball!") == "What a ball!"
    assert half_of("OLD JOE", "Joe came.", "Then old Joe spoke.") == "Then old Joe spoke.", "both words tell more"


def test_letters_and_scripts_without_spaces_have_no_half():
    assert half_of("J. Miller", "Plan J is best.") is None
    assert half_of("J. Miller", "Plan J is best.", "A miller sang.") == "A miller sang."
    assert half_of("萧炎", "天气炎热。") is None
    assert half_of("", "Anything.") is None
