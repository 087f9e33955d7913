"""Display names of entities, spelled as people write them: SCROOGE becomes Scrooge, BBC stays.

Keep out: the choice of titles (`indexing/graph/titles.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from graphrag_pipeline.identity import normalize_title


def is_common_noun(name: str) -> bool:
    """Whether a display name is one lower-case word ("door"), so a common noun and not a name."""
    return name.islower() and " " not in name


def display_names(entities: pa.Table, descriptions: pa.Array) -> list[str]:
    """Return the display name of each entity.

    Args:
        entities: needs `title`, `type` and `names` (written forms).
        descriptions: their descriptions, in the same order.
    """
    columns = (entities[c].to_pylist() for c in ("title", "type", "names"))
    return [
        _display_name(title, kind, names or [], text)
        for title, kind, names, text in zip(*columns, descriptions.to_pylist(), strict=True)
    ]


def _display_name(title: str, kind: str, names: Sequence[str], description: str) -> str:
    """Return a written form of the title, else its spelling in the description, else the capitalized title."""
    written = [name for name in names if name != name.upper() and normalize_title(name) == title]
    if written:
        return " ".join(min(written, key=lambda name: (name[0].islower(), name)).split())
    found = re.search(rf"(?<!\w){re.escape(title)}(?!\w)", description, re.IGNORECASE)
    if found and found.group(0) != title:
        return found.group(0)
    is_acronym = " " not in title and kind != "PERSON" and len(title) <= (3 if kind == "GEO" else 5)
    return title if is_acronym else _capitalize(title)


def _capitalize(title: str) -> str:
    small = {"of", "the", "and", "in", "on", "at", "to", "for", "de", "van", "von", "la"}
    words = [word.lower() if word.lower() in small else _capitalize_word(word) for word in title.split(" ")]
    return " ".join([words[0] if "." in words[0] else words[0][:1].upper() + words[0][1:], *words[1:]])


def _capitalize_word(word: str) -> str:
    """Capitalize a word: SCROOGE -> Scrooge, WWW.EXAMPLE.ORG -> www.example.org; BBC, NF-KB, R2 and C++ stay."""
    if re.fullmatch(r"(?:\w+[.])+\w{2,}", word):
        return word.lower()
    is_word = re.fullmatch(r"[^\W\d_]+(?:['-][^\W\d_]+)*[.]?", word)
    has_vowel = re.search(r"[AEIOUY\u00c0-\u017f]", word)
    return word.capitalize() if is_word and has_vowel and word.isupper() else word
