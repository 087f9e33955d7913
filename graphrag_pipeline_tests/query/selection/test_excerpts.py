import itertools
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.query.selection.excerpts import ExcerptFinder, cut_excerpt
from graphrag_pipeline.query.selection.local_text_units import TextUnitPool
from graphrag_pipeline.query.selection.mentions import find_mentions
from graphrag_pipeline.query.selection.reranking import Candidates
from graphrag_pipeline.query.understanding.entity_matching import Match
from graphrag_pipeline.text.sentences import split_sentences
from graphrag_pipeline.text.tokens import count_tokens

TEXT = "The fog was thick. Old Fezziwig laughed all over himself. He called out to Dick. Then they danced."
WORDS = st.sampled_from(
    ["Marley", "was", "dead", "to", "begin", "with.", "There", "no", "doubt!", "萧炎", "。", "(so)\n\n"]
)


def test_an_excerpt_grows_by_whole_sentences_behind_and_before_in_turn():
    mention = find_mentions(TEXT, ["Fezziwig"])[0]
    cuts = [TEXT[slice(*cut_excerpt(TEXT, mention, n))] for n in (12, 18, 24, 100)]
    assert cuts == [TEXT[19:57], TEXT[19:80], TEXT[:80], TEXT]


def test_an_excerpt_of_a_long_sentence_is_the_words_around_the_mention():
    text = "and " * 200 + "Fezziwig danced " + "or " * 200
    start, end = cut_excerpt(text, find_mentions(text, ["Fezziwig"])[0], 20)
    assert count_tokens(text[start:end]) <= 20
    assert text[start:end].startswith("and and") and "Fezziwig danced" in text[start:end]


class Reader:
    """The tables of one entity that is in all of some text units, with the numbers of texts read at once."""

    def __init__(self, names: list[str], texts: list[str]) -> None:
        self.snapshot = self
        self.n_read: list[int] = []
        self._names, self._texts = names, texts

    def take(self, table: str, rows: Sequence[int], _columns: object) -> list[dict[str, object]]:
        if table == "entities":
            return [{"title": self._names[0], "names": self._names} for _ in rows]
        self.n_read.append(len(rows))
        return [{"text": self._texts[row]} for row in rows]

    def find(self) -> list[str]:
        """Return the excerpts of the entity."""
        n = len(self._texts)
        everything = np.arange(n)
        candidates = Candidates((everything,), (np.zeros(n, int),), np.ones(1), np.full(n, 500))
        finder = ExcerptFinder(
            self, "Who?", [Match(0, 1.0, False)], TextUnitPool(everything, candidates, everything[:0])
        )
        return [self._texts[p.text_unit][p.excerpt.start : p.excerpt.end] for p in finder.find([0], 8) if p.excerpt]


PAGE = "The rain fell on the town. Nobody came to the door. The clock struck nine in the hall. "


def test_a_name_is_looked_for_until_a_text_unit_has_it():
    for place, n_read in ((1, [3]), (7, [3, 8]), (20, [3, 8, 21]), (63, [3, 8, 21, 32])):
        reader = Reader(["MR RARELING"], [PAGE + "Mr Rareling came." * (unit == place) for unit in range(70)])
        assert reader.find() == ["Mr Rareling came."]
        assert reader.n_read == n_read
    assert Reader(["MR RARELING"], [PAGE + "Mr Rareling came." * (unit == 64) for unit in range(70)]).find() == []


def test_a_name_in_a_later_text_unit_is_before_words_of_it_and_all_words_before_half():
    pages = [PAGE + text for text in ("A dead goose.", "He was a man. He is dead.", PAGE, "The dead man lay.")]
    assert Reader(["DEAD MAN"], pages).find() == ["The dead man lay."]
    assert Reader(["DEAD MAN"], pages[:2]).find() == ["He was a man. He is dead."]
    assert Reader(["DEAD MAN"], pages[:1]).find() == ["A dead goose."]


NAMES = ["Ali Baba", "Bob", "Carol", "Dick", "Eve"]


def find_of_all(text: str, max_tokens: int) -> list[tuple[int, int, tuple[int, ...]]]:
    """Return (start, end, entities) of the excerpts of `NAMES` in one text unit."""

    class OneText:
        def __init__(self) -> None:
            self.snapshot = self

        def take(self, table: str, rows: Sequence[int], _columns: object) -> list[dict[str, object]]:
            return [{"title": NAMES[r], "names": [NAMES[r]]} if table == "entities" else {"text": text} for r in rows]

    n = len(NAMES)
    unit, counts = (np.zeros(1, int),) * n, (np.zeros(1, int),) * n
    candidates = Candidates(unit, counts, np.ones(n), np.full(1, 500))
    matches = [Match(row, 1 - row / 10, False) for row in range(n)]
    finder = ExcerptFinder(OneText(), "Who?", matches, TextUnitPool(np.zeros(1, int), candidates, np.zeros(0, int)))
    picks = finder.find(range(n), max_tokens)
    assert all(pick.text_unit == 0 for pick in picks)
    whole = (len(text) - len(text.lstrip()), len(text.rstrip()), tuple(range(n)))
    return [(p.excerpt.start, p.excerpt.end, p.excerpt.entities) if p.excerpt else whole for p in picks]


PIECES = st.sampled_from([*NAMES, "and", "the rain fell,", "danced.", "So it was!", "\n\n", "However long it is,"])


@given(pieces=st.lists(PIECES, min_size=1, max_size=80), limit=st.integers(20, 45))
def test_excerpts_of_a_text_unit_do_not_overlap_and_keep_the_limit_and_every_entity(pieces, limit):
    text = " ".join(pieces)
    found = sorted(find_of_all(text, limit))
    for (start, end, entities), (later, _, _) in itertools.zip_longest(found, found[1:], fillvalue=(len(text), 0, ())):
        assert 0 <= start < end <= min(later, len(text))
        assert text[start:end] == text[start:end].strip()
        assert count_tokens(text[start:end]) <= limit
        named = {e for e, name in enumerate(NAMES) if find_mentions(text[start:end], [name])}
        assert named <= set(entities) or (start, end) == (0, len(text.strip()))
    heard = {entity for *_, entities in found for entity in entities}
    assert {e for e, name in enumerate(NAMES) if find_mentions(text, [name])} <= heard


def test_excerpts_are_joined_as_long_as_the_whole_fits():
    text = "Bob danced in the hall. Then came Carol with a long song of the sea and the wind. At last Dick laughed."
    assert find_of_all(text, 60) == [(0, len(text), tuple(range(5)))]
    parts = find_of_all(text, 20)
    assert [text[start:end] for start, end, _ in parts] == [
        "Bob danced in the hall. Then came Carol with a long song of the sea and the wind.",
        "At last Dick laughed.",
    ]


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
