"""Names of the sample, as the embedded engine finds them: a weak model gives them back as entity types.

Keep out: the request for entity types (`requests.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.indexing.extraction.names.types.word_types import CONCEPT, PERSON
from graphrag_pipeline.text.sentence_forms import find_words

_SMALL_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True)
class SampleNames:
    """Names in the sample.

    Attributes:
        names: titles of names, without key phrases.
        person_words: words of the titles of persons.
        common_words: words that the texts write in lower case, in upper case here: "museum" is not only a name.
    """

    names: frozenset[str] = frozenset()
    person_words: frozenset[str] = frozenset()
    common_words: frozenset[str] = frozenset()

    def hold(self, entity_type: str) -> bool:
        """Return whether an entity type is a name of the sample, or has a word of a person's name."""
        words = find_words(normalize_title(entity_type))
        own = [word for word in words if word not in self.common_words]
        if not own:
            return False
        return normalize_title(entity_type) in self.names or any(word in self.person_words for word in own)


def read_names(texts: Iterable[str], mentions: Mapping[str, Sequence[Mapping[str, Any]]]) -> SampleNames:
    """Return the names of a sample.

    Args:
        mentions: text unit id -> rows with `name` and `type` of the embedded engine.
    """
    rows = [row for listed in mentions.values() for row in listed if row["type"] != CONCEPT]
    persons = (normalize_title(row["name"]) for row in rows if row["type"] == PERSON)
    written = {word for text in texts for word in _SMALL_WORD.findall(text)}
    return SampleNames(
        frozenset(normalize_title(row["name"]) for row in rows),
        frozenset(word for title in persons for word in find_words(title)),
        frozenset(word.upper() for word in written if word == word.lower() != word.upper()),
    )
