"""Scientific names of species: "Staphylococcus aureus" is one name, although its second word has no capital.

Keep out: names of capitalized words (`finder.py`) and terms in lower case (`terms/concepts.py`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from graphrag_pipeline.indexing.extraction.names.capitalization import token_rank
from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.indexing.extraction.names.terms.background import english_rank
from graphrag_pipeline.text.late_patterns import late_regex

_SPECIES = late_regex(
    r"(?<![\p{L}\p{Nd}-])(\p{Lu}\p{Ll}{3,}(?:us|a|um|is|on|as|es|ix|ys))\s+"
    r"(\p{Ll}{2,}(?:us|a|um|is|ae|i|ans|ens|ix|es))(?![\p{L}\p{Nd}'’-])"
)
_BRACKETED = late_regex(
    r"\((\p{Lu}\p{Ll}{3,}(?:us|a|um|is|on|as|es|ix|ys))\s+(\p{Ll}{3,}(?:us|a|um|is|ae|i|ans|ens|ix|es|as|os|or|ax))\)"
)
_MIN_RANK = 20_000  # of an epithet that English also has as a word


def join_species(names: Iterable[Name], text: str, starts: list[int]) -> list[Name]:
    """Return the names with those of species, in reading order, instead of the names that overlap one.

    The genus is no word of English, and the epithet is rare in English; both have Latin endings. In brackets behind
    the common name, the epithet may be a word: "eelgrass (Zostera marina)".

    Args:
        starts: start offset of each sentence, in order.
    """
    matches = [match for match in _SPECIES.finditer(text) if _is_species(match.group(1), match.group(2))]
    taken = {match.start(1) for match in matches}
    matches += [
        match for match in _BRACKETED.finditer(text) if match.start(1) not in taken and _is_rare(match.group(1))
    ]
    found = [
        Name(f"{match[1]} {match[2]}", match.start(1), match.end(2), bisect_right(starts, match.start(1)) - 1)
        for match in matches
    ]
    if not found:
        return list(names)
    kept = [name for name in names if not any(name.start < other.end and other.start < name.end for other in found)]
    return sorted(kept + found, key=lambda name: (name.start, name.end))


def _is_species(genus: str, epithet: str) -> bool:
    stem = epithet.removesuffix("s")
    if stem != epithet and (token_rank(stem) is not None or english_rank(stem)):  # the headline "Krowodrza reopens"
        return False
    return _is_rare(genus) and token_rank(epithet) is None and (english_rank(epithet) or _MIN_RANK) >= _MIN_RANK


def _is_rare(genus: str) -> bool:
    return token_rank(genus) is None and english_rank(genus.lower()) is None


def is_species(form: str) -> bool:
    """Whether the form of a name is that of a species: a genus and an epithet."""
    if len(form.split()) != 2:
        return False
    return _SPECIES.fullmatch(form) is not None or _BRACKETED.fullmatch(f"({form})") is not None
