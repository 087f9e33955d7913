"""Document titles as names: the entity that a document is about.

"Lilli's Marriage" and "Beno Zax (film)" are names; "stave_1", "0042" and "Prices rise again" are not. A qualifier in
parentheses belongs to the title; the text writes the name without it.

Keep out: other names (`finder.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.text.late_patterns import late_regex
from graphrag_pipeline.text.name_words import words
from graphrag_pipeline.text.word_ranks import is_common_word

MAX_TITLE_WORDS = 12

_QUALIFIED = late_regex(r"(?P<name>.+?)\s*\((?P<qualifier>[^()]+)\)")
_STEM = late_regex(r"[\p{Ll}\d]+(?:[-_.\s][\p{Ll}\d]+)*|.*[_/\\].*|[^\p{L}]*|.*\.\p{Ll}{1,5}")
_NUMERAL = late_regex(r"[IVXLCDM]+")
_LATER_PARTS = words("""
of the a an in on at to for and or de la le du des del der von van di da y e und et with from by bin ibn bint ben no dem
den do dos das zu ter
""")
_PERSONS = words("""
politician footballer actor actress singer musician writer author poet painter director king queen prince princess
bishop saint cricketer composer engineer scientist general journalist player wrestler boxer
""")
_PLACES = words("city town village river county island country district municipality lake mountain station")
_ORGANIZATIONS = words("band company club team newspaper magazine university school party publisher label")
_EVENTS = words("battle war festival tournament election")
_WORKS = words(
    "film novel song album single play series opera musical book poem painting soundtrack ep miniseries manga"
)
_TYPES = (
    ("CONCEPT", _WORKS),
    ("PERSON", _PERSONS),
    ("GEO", _PLACES),
    ("ORGANIZATION", _ORGANIZATIONS),
    ("EVENT", _EVENTS),
)


@dataclass(frozen=True, slots=True)
class DocumentTitle:
    """The title of a document that is a name.

    Attributes:
        form: the title with white space folded.
        name: the title without a qualifier, as the text writes it.
        qualifier: text in parentheses, "" without one.
    """

    form: str
    name: str
    qualifier: str

    @property
    def type(self) -> str | None:
        """The type that the qualifier names, or None."""
        last = self.qualifier.upper().split()
        return next((kind for kind, listed in _TYPES if last and listed & set(last)), None)


def read_title(title: str, text: str) -> DocumentTitle | None:
    """Return the title of a document as the name of an entity; None if it is not a name.

    A title with a capital that occurs in the text is a name. Any other title must be written like a name: every word
    except function words has a capital, and no word occurs only in sentences.
    """
    form = " ".join(title.split())
    match = _QUALIFIED.fullmatch(form)
    name, qualifier = (match["name"], match["qualifier"]) if match else (form, "")
    parts = name.split()
    if not normalize_title(name) or len(parts) > MAX_TITLE_WORDS or _STEM.fullmatch(name):
        return None
    has_capital = any(part[0].isupper() for part in parts)
    if not (_is_written_as_name(parts, bool(qualifier)) or (has_capital and _places(name, text))):
        return None
    return DocumentTitle(form, name, qualifier)


def _is_written_as_name(parts: list[str], is_qualified: bool) -> bool:
    from spacy.lang.en.stop_words import STOP_WORDS

    if len(parts) == 1 and not is_qualified and is_common_word(parts[0].upper()):
        return False
    for number, part in enumerate(parts):
        key = part.strip(",.:;!?'\"").upper()
        if number and (key in _LATER_PARTS or _NUMERAL.fullmatch(key)):
            continue
        if part[0].isalpha() and part.islower():
            return parts[number - 1].endswith(",")  # "Bertha, daughter of Lothair II"
        if number and not is_qualified and key.lower() in STOP_WORDS:
            return False
    return True


def spellings_in(title: DocumentTitle, text: str) -> set[str]:
    """Return how a text writes a title, white space folded: also in capitals or, unless it is common, small letters."""
    return {" ".join(text[start : start + len(title.name)].split()) for start in _places(title.name, text)}


def _places(name: str, text: str) -> set[int]:
    spellings = {name, name.upper(), name.replace("'", "’"), name.replace("’", "'")}
    if " " in name or not is_common_word(name.upper()):
        spellings.add(name.lower())
    line = text.replace("\n", " ")
    places = set()
    for spelling in spellings:
        place = line.find(spelling) if len(spelling) == len(name) else -1
        while place >= 0:
            end = place + len(name)
            if not (line[place - 1 : place].isalnum() or line[end : end + 1].isalnum()):
                places.add(place)
            place = line.find(spelling, end)
    return places
