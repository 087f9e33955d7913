"""Persons named by their kin: "Luise's cousin" is Matthias Brandt, if the document says "her cousin, Matthias Brandt".

Two signs count. The name follows directly: "Luise's cousin Matthias". Or one person only is called "his" or "her
cousin", and one person only has a cousin in the document.

Keep out: forms of one name (`aliases.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from graphrag_pipeline.indexing.extraction.names.cues import KIN
from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.indexing.extraction.names.types.word_types import PERSON
from graphrag_pipeline.text.late_patterns import late_regex

_HELD = late_regex(r"[^']+'s (\p{Ll}+)")
_CALLED = late_regex(r"(?:\b[Hh]is|\b[Hh]er|['’]s)\s+(\p{Ll}+),?\s+$")
_MAX_BEFORE = 30  # characters


def link_kin(names: Iterable[Name], links: Mapping[str, str], types: Mapping[str, str], text: str) -> dict[str, str]:
    """Return the canonical form of "X's cousin" -> that of the one person that it denotes.

    Args:
        names: every occurrence of a name in the document.
        links: canonical form of each written form.
        types: type of each canonical form.
    """
    names = list(names)
    held: defaultdict[str, set[str]] = defaultdict(set)
    for form in {links[name.form] for name in names}:
        match = _HELD.fullmatch(form)
        if match and match.group(1).upper() in KIN:
            held[match.group(1)].add(form)
    if not held:
        return {}
    called: defaultdict[str, set[str]] = defaultdict(set)
    for name in names:
        if types.get(links[name.form]) == PERSON and "'s " not in name.form:
            match = _CALLED.search(text, max(name.start - _MAX_BEFORE, 0), name.start)
            if match and match.group(1) in held:
                called[match.group(1)].add(links[name.form])
    return {
        min(held[kin]): min(persons)
        for kin, persons in called.items()
        if len(persons) == len(held[kin]) == 1 and not min(held[kin]).startswith(f"{min(persons)}'s")
    }
