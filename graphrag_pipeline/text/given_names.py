"""Given names of many languages, from the bundled file `bundled/given_names.txt`.

The list is our own, made for this purpose from common knowledge; no other list was copied.

Keep out: names that are mostly words, places, family names or acronyms ("Hope", "Florence", "Carter", "Nat").
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def load_given_names() -> tuple[frozenset[str], frozenset[str]]:
    """Return the given names of women only in all languages, and all given names, in upper case (45 KB are read)."""
    text = (files("graphrag_pipeline") / "bundled" / "given_names.txt").read_text(encoding="utf-8")
    _, women, others = text.split("\n\n")
    return _names_of(women), _names_of(women) | _names_of(others)


def _names_of(part: str) -> frozenset[str]:
    return frozenset(name.upper() for line in part.split("\n") if not line.startswith("#") for name in line.split())


FEMALE_GIVEN_NAMES, GIVEN_NAMES = load_given_names()
"""Given names of women only, in all languages, and all given names, in upper case."""
