"""The written form of one name, from the words of its phrase: possessives, particles, plurals of acronyms, and words
cut at a line's end.

Keep out: which words of a phrase are a name (`finder.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from graphrag_pipeline.indexing.extraction.names.brands import load_organizations
from graphrag_pipeline.indexing.extraction.names.capitalization import CapitalizationEvidence
from graphrag_pipeline.indexing.extraction.names.cues import HOLDINGS, KIN, PERSON_VERBS, SAINTS, STOPWORDS
from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.indexing.extraction.names.phrases import Phrase, PhrasePiece
from graphrag_pipeline.indexing.extraction.names.predicates import VERBS
from graphrag_pipeline.text.late_patterns import late_regex

AFTER_PERSON = STOPWORDS | PERSON_VERBS | VERBS
"""Words in capitals that go on after a person's name."""
_HELD_WORDS = KIN | HOLDINGS
_BREAK = late_regex(r"[-\u2010\u00ad][ \t]*\n[ \t]*(\p{Ll}++)")  # a word hyphenated at the end of a line
_DOTTED = late_regex(r"\.\p{Lu}\.$")  # U.S.
_PLURAL = late_regex(r"(\p{Lu}{2,})s")  # "ECGs", which are counted, typed and linked as the ECG
_WORD_AFTER = late_regex(r"[ \n]+(\p{L}+)([ \n]+(?:the|an?|its|their)\b)?")
_MAX_PARTICLE = 16  # characters, with the article before it
_PARTICLE = late_regex(  # "bin Laden", "von der Leyen", but not "the van Ford built"
    r"(?<![\p{L}-])(?:(?:bin|ibn|bint|von(?: der| dem)?|van de[nr])[ ]|(?:al|el)-|"
    r"(?<!\b(?:[Aa]|[Tt]he|his|her|its|their|this|that) )van[ ])$"
)
_HELD = late_regex(r"(\p{Ll}{3,}+)(?:['’]s\s+(\p{Ll}{3,}+))?")


def name_of(pieces: list[PhrasePiece], phrase: Phrase, text: str, is_english: bool) -> Name:
    """Return the name of words of a phrase, with the particle before a single word: "bin Laden"."""
    is_church = _is_church(pieces, phrase, text) or _is_brand(pieces)
    owners = pieces if is_church else pieces[:-1]
    form = " ".join(piece.text + ("'s" if piece.is_possessive and piece in owners else "") for piece in pieces)
    end = phrase.start + pieces[-1].end + 2 * is_church
    start = phrase.start + pieces[0].start
    particle = _PARTICLE.search(text, max(start - _MAX_PARTICLE, 0), start) if is_english else None
    if particle and len(pieces) == 1:
        form, start = f"{particle.group()}{form}", particle.start()
    return Name(cut_plural(_fold_form(form)), start, end, phrase.sentence)


def join_line_break(name: Name, text: str, evidence: CapitalizationEvidence) -> Name:
    """Join a name that is hyphenated at a line break: "Cratch-", "it" to "Cratchit", if the document has that word."""
    match = _BREAK.match(text, name.end) if text[name.end : name.end + 1] in ("-", "\u2010", "\u00ad") else None
    if match is None or not evidence.capital[f"{name.form.split()[-1]}{match.group(1)}".upper()]:
        return name
    return Name(name.form + match.group(1), name.start, match.end(), name.sentence)


def find_held(owner: Name, text: str, limit: int) -> Iterator[Name]:
    """Yield the name of a possessive with a kinship or place word: "Scrooge's nephew", "Bob Cratchit's house"."""
    place = owner.end + 2
    while place < limit and text[place].isspace():
        place += 1
    match = _HELD.match(text, place, limit)
    if match is None or match.group(1).upper() not in _HELD_WORDS:
        return
    form, end = f"{owner.form}'s {match.group(1)}", match.end(1)
    if match.group(2) and match.group(2).upper() in KIN:
        form, end = f"{form}'s {match.group(2)}", match.end(2)
    yield Name(form, owner.start, end, owner.sentence)


def cut_plural(word: str) -> str:
    """Return an acronym in the plural without its "s", other words as they are."""
    plural = _PLURAL.fullmatch(word)
    return plural.group(1) if plural else word


def _is_church(pieces: list[PhrasePiece], phrase: Phrase, text: str) -> bool:
    """Whether a saint's possessive is a name, because no noun follows: "the bells of St. Mary's were ringing"."""
    if len(pieces) != 2 or pieces[0].key not in SAINTS or not pieces[1].is_possessive:
        return False
    after = _WORD_AFTER.match(text, phrase.start + pieces[1].end + 2)
    return after is None or after.group(1).upper() in AFTER_PERSON or after.group(2) is not None


def _is_brand(pieces: list[PhrasePiece]) -> bool:
    """Whether a well-known firm is written with a possessive: "Moody's"."""
    return len(pieces) == 1 and pieces[0].is_possessive and f"{pieces[0].key}'S" in load_organizations()


def _fold_form(form: str) -> str:
    return form.replace("’", "'").replace("\u2010", "-").replace("\u2011", "-").removesuffix(".") + (
        "." if _DOTTED.search(form) else ""
    )
