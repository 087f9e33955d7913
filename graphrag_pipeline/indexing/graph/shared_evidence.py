"""Evidence of mentions without offsets: which part of two overlapping text units a model must have read them in.

A model names a pair of entities, but not the sentence. The evidence of the pair in a text unit is the first of these
that the text unit has, and it may have several of the kind:

1. sentences that hold both names, each whole or by half of its identifying words with capitals ("Cratchit" for "Bob
   Cratchit", but not "day" for "Seventh Day")
2. sentences that hold an identifying word of both names ("the Ghost" for "Ghost of Christmas Past")
3. the shortest runs of sentences from one name to the other, which stand for pronouns

The evidence of a single entity are the sentences of the first two kinds with its name. Common words and words of less
than three letters identify nothing, unless a name has no others. Keep out: mentions and their counts (`repeats.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from functools import cached_property

import regex

from graphrag_pipeline.text.languages import SMALL_WORDS
from graphrag_pipeline.text.scripts import UNSPACED
from graphrag_pipeline.text.sentence_forms import fold
from graphrag_pipeline.text.sentences import split_sentences

_RUN = regex.compile(r"[\p{L}\p{M}\p{N}]+")
_UNSPACED = regex.compile(f"[{UNSPACED}]")
_MIN_WORD = 3  # letters of a word that identifies a name
_COMMON = frozenset(word for words in SMALL_WORDS.values() for word in words)
_ANY, _MOST = 1, 2
"""How much of a name a sentence holds: an identifying word, or all of them or half of them with capitals."""


def _spell(text: str) -> str:
    """Return the folded words of a text between single blanks, characters of scripts without blanks apart."""
    return _join(_split(text))


def _spell_capitals(text: str) -> str:
    """Return the words of a text that do not begin with a small letter, in the form of `_spell`."""
    return _join(word for word in _split(text) if not word[0].islower())


def _split(text: str) -> list[str]:
    return _RUN.findall(_UNSPACED.sub(r" \g<0> ", text))


def _join(words: Iterable[str]) -> str:
    return f" {fold(' '.join(words))} "


class SpelledName:
    """The written forms of one entity's name, as they are searched."""

    def __init__(self, forms: Iterable[str]) -> None:
        self._forms = sorted({tuple(_identifying_words(form)) for form in forms} - {()})
        self._words = sorted(set(itertools.chain.from_iterable(self._forms)))

    def measure_in(self, sentence: str, capitals: str) -> int:
        """Return how much of the name a sentence holds: 0, `_ANY` or `_MOST`.

        Args:
            sentence, capitals: as from `_spell` and `_spell_capitals`.
        """
        found = {word for word in self._words if word in sentence}
        if not found:
            return 0
        named = {word for word in found if word in capitals}
        is_most = any(found.issuperset(form) or 2 * len(named.intersection(form)) >= len(form) for form in self._forms)
        return _MOST if is_most else _ANY


def _identifying_words(name: str) -> list[str]:
    """Return the words that identify a name in the form of `_spell`; the whole name if it has only other words."""
    runs = dict.fromkeys(_RUN.findall(fold(name)))
    words = [run for run in runs if _UNSPACED.search(run) or (len(run) >= _MIN_WORD and run not in _COMMON)]
    return [_spell(word) for word in words] or [_spell(name)] * bool(runs)


class SpelledText:
    """The sentences of a part of a text unit, in which names are searched."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._measured: dict[SpelledName, list[int]] = {}

    @cached_property
    def _sentences(self) -> list[tuple[str, str]]:
        sentences = (self._text[start:end] for start, end in split_sentences(self._text))
        return [(_spell(sentence), _spell_capitals(sentence)) for sentence in sentences]

    def measure(self, name: SpelledName) -> list[int]:
        """Return how much of a name each sentence holds: 0, `_ANY` or `_MOST`."""
        if name not in self._measured:
            self._measured[name] = [name.measure_in(*sentence) for sentence in self._sentences]
        return self._measured[name]


def is_evidence_shared(
    before: SpelledText,
    shared: SpelledText,
    own: SpelledText,
    names: Sequence[SpelledName],
    is_same_description: bool,
) -> bool:
    """Return whether a mention in the later of two text units comes from text that the earlier one has, too.

    Args:
        before, shared, own: the text of the earlier text unit alone, of both, and of the later one alone.
        names: of the entity, or of both entities of the pair.
        is_same_description: whether both text units describe the mention in the same words.
    """
    later = _find_evidence([shared, own], 0, names)
    is_read_again = 0 in later if is_same_description else later == {0}
    return is_read_again and 1 in _find_evidence([before, shared], 1, names)


def _find_evidence(parts: Sequence[SpelledText], shared: int, names: Sequence[SpelledName]) -> set[int]:
    """Return the places of the parts that have evidence; a run of sentences from part to part is the other one's.

    Args:
        parts: two, in the order of the text.
        shared: place of the part that both text units have.
    """
    held = [[part.measure(name) for name in names] for part in parts]
    for least in (_MOST, _ANY):
        places = {
            place for place, rows in enumerate(held) if any(min(levels) >= least for levels in zip(*rows, strict=True))
        }
        if places:
            return places
    if len(names) < 2:
        return set()
    n_first = len(held[0][0])
    first, second = ([i for i, level in enumerate([*a, *b]) if level] for a, b in zip(*held, strict=True))
    runs = [(abs(i - j), min(i, j) >= n_first, max(i, j) >= n_first) for i in first for j in second]
    shortest = min((length for length, _, _ in runs), default=0)
    return {int(end) if start == end else 1 - shared for length, start, end in runs if length == shortest}
