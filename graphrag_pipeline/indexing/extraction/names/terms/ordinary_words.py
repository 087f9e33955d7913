"""Ordinary words among the terms of a text that reports what persons, bodies and places do: "team", "border".

Such texts (news, minutes, articles on persons and places) are about what has a name. A reader looks up "seagrass"
there, but not "border". Keep out: the choice of terms (`concepts.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from graphrag_pipeline.indexing.extraction.names.kind_nouns import PERSON_NOUN, kind_of, kind_of_plural
from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.indexing.extraction.names.terms.background import UNKNOWN_RANK, english_rank
from graphrag_pipeline.indexing.extraction.names.terms.word_uses import MIN_PRONOUN_SHARE

_MIN_PROPER = 0.06  # of the words of a text are names of persons, bodies, places and events, if it is about these
_MIN_PROPER_IN_PAST = 0.035  # the same of a text that tells what happened, and is no story
_MIN_PROPER_IN_NEWS = 0.02  # the same of a text that quotes in the present, as news do: "Mr Kemp says"
_SAYS = (" says ", " says,", " say ", " spoke to reporters", " said yesterday", " said on ")
_MIN_SAYS, _MIN_SAYS_SHARE = 2, 0.008
_MIN_PAST = 0.5  # words of the past for one of the present
_PRESENT = (" is ", " are ", " can ", " may ", " must ", " should ")
_PAST = (" was ", " were ", " had ", " said ", " did ")
_PRONOUNS = (" I ", " he ", " He ", " she ", " She ", " him ", " his ", " her ", " me ", " my ")
_MIN_RANK = 10_000  # of a word of one field in English; "border" has 1,680


def reports(text: str, n_proper: int) -> bool:
    """Whether a text reports what has a name.

    Args:
        n_proper: occurrences of persons, organizations, places and events.
    """
    n_words = max(len(text.split()), 1)
    n_says = sum(map(text.count, _SAYS))
    if n_says >= max(_MIN_SAYS, _MIN_SAYS_SHARE * n_words) and n_proper >= _MIN_PROPER_IN_NEWS * n_words:
        return True
    if n_proper < _MIN_PROPER_IN_PAST * n_words:
        return False
    n_past, n_present, n_pronouns = (sum(map(text.count, words)) for words in (_PAST, _PRESENT, _PRONOUNS))
    is_story = n_pronouns >= MIN_PRONOUN_SHARE * n_words
    return n_proper >= _MIN_PROPER * n_words or (n_past > _MIN_PAST * n_present and not is_story)


def drop_ordinary_words(concepts: Iterable[Name]) -> list[Name]:
    """Return the terms without the single words of every day and those for persons ("skipper")."""
    return [concept for concept in concepts if " " in concept.form or not _is_ordinary(concept.form)]


def _is_ordinary(word: str) -> bool:
    is_person = PERSON_NOUN in (kind_of(word), kind_of_plural(word))
    return is_person or (english_rank(word) or UNKNOWN_RANK) < _MIN_RANK
