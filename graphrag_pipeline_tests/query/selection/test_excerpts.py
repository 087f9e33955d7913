import itertools

from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.query.question import content_words
from graphrag_pipeline.query.selection.excerpts import cut_excerpt, find_mentions, find_words, is_named
from graphrag_pipeline.text.sentences import split_sentences
from graphrag_pipeline.text.tokens import count_tokens

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
    def found(name):
        span = find_words(TEXT, [content_words(name)])
        return span and TEXT[slice(*span)]

    assert found("Dick's call") == "He called out to Dick."
    assert found("the dance in the fog") is None, "four sentences apart is no mention"
    assert found("Fezziwig's call") == "Old Fezziwig laughed all over himself. He called out to Dick."
    assert find_words(TEXT, []) is None


def test_an_excerpt_grows_by_whole_sentences_behind_and_before_in_turn():
    mention = find_mentions(TEXT, ["Fezziwig"])[0]
    cuts = [TEXT[slice(*cut_excerpt(TEXT, mention, n))] for n in (12, 18, 24, 100)]
    assert cuts == [TEXT[19:57], TEXT[19:80], TEXT[:80], TEXT]


def test_an_excerpt_of_a_long_sentence_is_the_words_around_the_mention():
    text = "and " * 200 + "Fezziwig danced " + "or " * 200
    start, end = cut_excerpt(text, find_mentions(text, ["Fezziwig"])[0], 20)
    assert count_tokens(text[start:end]) <= 20
    assert text[start:end].startswith("and and") and "Fezziwig danced" in text[start:end]


@given(words=st.lists(WORDS, min_size=1, max_size=60), place=st.integers(0, 59), limit=st.integers(1, 60))
def test_laws_of_excerpts(words, place, limit):
    place %= len(words)
    text = " ".join(words)
    start = sum(len(word) + 1 for word in words[:place])
    mention = (start, start + len(words[place].strip()))
    first, last = cut_excerpt(text, mention, limit)
    assert first <= mention[0] and mention[1] <= last
    assert text[first:last] == text[first:last].strip()
    assert count_tokens(text[first:last]) <= max(limit, count_tokens(text[slice(*mention)]) + 2)
    [sentence] = [s for s in split_sentences(text) if s[0] <= mention[0] < s[1]]
    if mention[1] <= sentence[1] and count_tokens(text[slice(*sentence)].strip()) <= limit:
        ends = set(itertools.chain(*split_sentences(text)))
        assert any(text[end:first].strip() == "" for end in ends if end <= first)
        assert any(text[last:end].strip() == "" for end in ends if end >= last)
