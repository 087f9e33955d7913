"""Words of one family ("direct", "director", "direction"), and words of a question that no answer needs to repeat.

A family is the stem without its endings of derivation. "main" and "important" only weigh what they stand beside, and
"involve" and "kind" only link it: no text has to say them. English alone. Keep out: vectors of words.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from graphrag_pipeline.query.question import stem
from graphrag_pipeline.text.extractive import words_of

_ENDINGS = """
ership ation ition ment ance ence ancy ency ant ent ery or er ist ship ion ness ity ive ure age al ly e
""".split()  # noqa: SIM905
MIN_BASE = 4
"""Letters of a family."""
_LITTLE_TEXT = """
main major principal primary key important importance significant essential central top various certain common typical
general overall frequent often usual different several other
involve include concern mention relate regard refer contain consist exist occur
event thing kind sort type part example case way
"""
_LITTLE = frozenset(map(stem, _LITTLE_TEXT.split()))


def says_little(word_stem: str) -> bool:
    """Return whether the word of a stem only weighs or links the words of a question: "main", "kind", "involve"."""
    return word_stem in _LITTLE


@functools.lru_cache(maxsize=65_536)
def family_of(word: str) -> str:
    """Return what the words of a family share: "presid" of "president" and "presidency"."""
    base = stem(word)
    for _ in range(2):
        ending = next((end for end in _ENDINGS if base.endswith(end) and len(base) - len(end) >= _least(end)), "")
        base = base.removesuffix(ending) if ending else base
    return base


def families_in(texts: Iterable[str]) -> set[str]:
    """Return the families of all words of some texts."""
    return {family_of(word) for text in texts for word in words_of(text)}


def _least(ending: str) -> int:
    return MIN_BASE if len(ending) > 1 else MIN_BASE + 2
