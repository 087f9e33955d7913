"""Names of the sample: a weak model gives them back as entity types.

Names are those that the embedded engine finds. Keep out: the request for entity types (`requests.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.text.languages import detect_language
from graphrag_pipeline.text.name_words import (
    CONCEPT,
    EVENT_TAILS,
    ORGANIZATION_HEADS,
    ORGANIZATION_TAILS,
    PERSON,
    PLACE_HEADS,
    PLACE_TAILS,
)
from graphrag_pipeline.text.sentence_forms import find_words

_WORD = re.compile(r"[^\W\d_]+")
_INSIDE = re.compile(r"(?<=[a-z\u00df-\u00ff,;] )[A-Z\u00c0-\u00de][^\W\d_]+")
"""A word with a capital that does not begin a sentence."""
_KINDS = frozenset(
    word.upper() for word in (*ORGANIZATION_TAILS, *ORGANIZATION_HEADS, *PLACE_TAILS, *PLACE_HEADS, *EVENT_TAILS)
) | {"PERSON", "ORGANIZATION", "GEO", "EVENT", "LOCATION", "PLACE", "CONCEPT", "DATE", "WORK", "PRODUCT", "PEOPLE"}
"""Words for kinds of entities, also where the texts have them in names only."""


@dataclass(frozen=True)
class SampleNames:
    """Names in the sample.

    Attributes:
        names: titles of names, without key phrases.
        name_words: words of persons' names, and words that the texts write inside sentences with a capital only; in
            upper case. German texts, which write every noun so, do not count for the latter.
        common_words: words that the texts write in lower case, in upper case here: "museum" is not only a name.
    """

    names: frozenset[str] = frozenset()
    name_words: frozenset[str] = frozenset()
    common_words: frozenset[str] = frozenset()

    def hold(self, entity_type: str) -> bool:
        """Return whether an entity type is a name of the sample, or has a word that is only a name there."""
        words = find_words(normalize_title(entity_type))
        own = [word for word in words if word not in self.common_words and word not in _KINDS]
        return bool(own) and (normalize_title(entity_type) in self.names or not self.name_words.isdisjoint(own))


def read_names(texts: Iterable[str], mentions: Mapping[str, Sequence[Mapping[str, Any]]]) -> SampleNames:
    """Return the names of a sample.

    Args:
        mentions: text unit id -> rows with `name` and `type` of the embedded engine.
    """
    given = list(texts)
    rows = [row for listed in mentions.values() for row in listed if row["type"] != CONCEPT]
    persons = (normalize_title(row["name"]) for row in rows if row["type"] == PERSON)
    written = {word for text in given for word in _WORD.findall(text)}
    inside = {word.upper() for text in given if detect_language(text) != "de" for word in _INSIDE.findall(text)}
    common = frozenset(word.upper() for word in written if word == word.lower() != word.upper())
    return SampleNames(
        frozenset(normalize_title(row["name"]) for row in rows),
        frozenset(word for title in persons for word in find_words(title)) | inside,
        common,
    )
