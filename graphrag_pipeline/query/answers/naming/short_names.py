"""Names in short: "the mill" for the Crane Paper Mill, if the text names no other mill.

Keep out: forms that the index has of an entity (`understanding/question_analysis.py`).
"""

from __future__ import annotations

import functools
import re

from graphrag_pipeline.query.question import content_words, stem
from graphrag_pipeline.query.understanding.roles import GROUPS
from graphrag_pipeline.text.late_patterns import late_re

_KINDS = frozenset(map(stem, GROUPS))
_DEFINITE = late_re(r"\b[Tt]he\s+(?P<noun>[a-z][a-z-]+),?\s+(?:(?:was|is|were|are|had|has|been)\s+)*\Z")
_CAPITALS = late_re(r"(?:[A-Z\u00c0-\u00de][\w-]*(?:['\u2019]s?)?\s+)+[A-Z\u00c0-\u00de][\w-]*")


def is_short_for(phrase: str, name: frozenset[str], text: str) -> bool:
    """Return whether a phrase such as "the mill" stands for a name in a text.

    Args:
        phrase: with "the" before its noun.
        name: stems of the words of the name; its noun is one of them.
        text: must have the name, and no other name that ends with the noun.
    """
    found = re.search(r"\b[Tt]he\s+(?P<noun>[a-z][a-z-]+)\b", phrase)
    if found is None or len(name) < 2 or stem(found["noun"]) not in name:
        return False
    named = [words for last, words in _read_names(text) if last == stem(found["noun"])]
    return any(name <= words for words in named) and all(words <= name or name <= words for words in named)


def is_short_for_another(before: str, name: frozenset[str], text: str) -> bool:
    """Return whether "the mill" before a verb is another thing than a name: a hospital, or what the text names a mill.

    Args:
        before: the part of a sentence before the verb.
        name: stems of the words of the name.
    """
    found = _DEFINITE.search(before)
    noun = stem(found["noun"]) if found else ""
    if not noun or noun in name:
        return False
    return bool(name & _KINDS) or any(last == noun and not name <= words for last, words in _read_names(text))


@functools.lru_cache(maxsize=64)
def _read_names(text: str) -> list[tuple[str, frozenset[str]]]:
    """Return the last word and all words of each name of two words or more, as stems."""
    return [(stem(found[0].split()[-1].lower()), content_words(found[0])) for found in _CAPITALS.finditer(text)]
