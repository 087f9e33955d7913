"""Persons named with what they belong to: "Fiona Kettering of Kettering Planning Partnership" is two names.

Keep out: persons with a title or a place (`phrases.splits_after_person`).
"""

from __future__ import annotations

from collections.abc import Set

from graphrag_pipeline.indexing.extraction.names.capitalization import is_common_word, is_proper_word, token_rank
from graphrag_pipeline.indexing.extraction.names.cues import (
    DESCRIBING_HONORIFICS,
    GIVEN_NAMES,
    HONORIFICS,
    LEGAL_SUFFIXES,
    LONERS,
    NATIONALITIES,
    NOBLE,
    ORGANIZATION_HEADS,
    ORGANIZATION_TAILS,
    PLACE_HEADS,
    PLACE_TAILS,
    RANKS,
    words,
)
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_countries, strip_accents
from graphrag_pipeline.indexing.extraction.names.kind_nouns import PERSON_NOUN, kind_of, kind_of_plural
from graphrag_pipeline.indexing.extraction.names.phrases import Phrase, PhrasePiece

_MAX_PARTICLE = 3  # letters: "De Lier"
_FIRM_TAILS = LEGAL_SUFFIXES | words("group brothers bros sons holdings industries motors")
_NOT_IN_PERSONS = ORGANIZATION_HEADS | ORGANIZATION_TAILS | PLACE_HEADS | PLACE_TAILS | LONERS | NOBLE | HONORIFICS
_TITLES = _NOT_IN_PERSONS | GIVEN_NAMES
_HONORIFICS_OR_GIVEN = HONORIFICS | GIVEN_NAMES
_PATRONYMICS = ("VNA", "VICH", "VITCH")
_OFFICES = (HONORIFICS - DESCRIBING_HONORIFICS) | {"SECRETARY"}
_MAX_PERSON = 3  # words of a person's name
# Of firms, never the first word of their names.
_TRADES = words("""
chipmaker carmaker automaker drugmaker planemaker shipbuilder insurer lender retailer carrier broadcaster brewer
startup start-up manufacturer regulator watchdog supplier rival
""")
# Of persons and of firms.
_OWNERS = words(
    "owner co-owner landlord landlady employer partner developer producer broadcaster publisher"
)  # or firms


def ends_person(run: list[PhrasePiece], connector: PhrasePiece, following: tuple[PhrasePiece, ...]) -> bool:
    """Whether "of" after two names of a person leads to a name of two words or more.

    Two given names belong together with the place: "Maria Theresa of Great Britain". Behind a given and a family name,
    a country is enough: "Anton Verhoeven of the Netherlands". A role before the person is no
    part of the name: "Geologist Lucy Whitfield of the University of Leeds".
    """
    if connector.key != "OF":
        return False
    n_roles = count_role_words(run)
    run = run[n_roles:]
    if len(run) > 2 and run[0].key in GIVEN_NAMES and not any(p.is_connector for p in run):
        return not {piece.key for piece in run} & (_NOT_IN_PERSONS - HONORIFICS)  # "Donald John Currie of Port Askaig"
    if len(run) != 2:
        return False
    first, last = (piece.key for piece in run)
    words = [piece.key for piece in following if not piece.is_connector]
    if len(words) < 2:
        return first in GIVEN_NAMES and words[-1] in load_countries() and _is_family_name(last)
    if {first, last} & _NOT_IN_PERSONS or last in GIVEN_NAMES or not all(piece.text.istitle() for piece in run):
        return False
    return n_roles > 0 or first in GIVEN_NAMES or not (_is_word(first) or _is_word(last))


def _is_family_name(key: str) -> bool:
    """Whether the second word of a person is no part of a ruler's name: not "Maria Theresa" and "Louis XIV"."""
    is_numeral = set(key) <= set("IVX")
    key = strip_accents(key)
    return not is_numeral and key not in GIVEN_NAMES | _NOT_IN_PERSONS and not key.endswith(_PATRONYMICS)


def ends_firm(run: list[PhrasePiece], connector: PhrasePiece, following: tuple[PhrasePiece, ...]) -> bool:
    """Whether "of" after the name of a firm or people leads to its place: "Reays of Wigton", "Nova Power of Linz".

    A name that begins with a common noun goes on: "Isle of Man", "Ghost of Christmas Past".
    """
    if connector.key != "OF" or any(piece.is_connector for piece in (*run, *following)):
        return False
    if any(_is_word(piece.key) and len(piece.key) > _MAX_PARTICLE for piece in following):
        return False
    first, last = run[0], run[-1]
    if len(run) > 1 and following[0].key == last.key:  # "Lorna Pickles of Pickles and Dean"
        return True
    if len(run) == 1:
        is_title = first.key in _TITLES
        return (
            not is_title
            and first.text.istitle()
            and not _is_word(first.key)
            and not _is_word(first.key.removesuffix("S"))
        )
    is_numbered = set(last.key) <= set("IVX")  # "Hugh IV of Lusignan"
    is_rare = len(run) == 2 and first.key not in _TITLES and not is_numbered and not _is_word(first.key)
    is_headed = _is_word(last.key) and last.key not in _NOT_IN_PERSONS  # "Nova Innovation of Leith"
    return last.key in _FIRM_TAILS or (is_rare and (is_headed or not _is_word(last.key)))


def opens_with_role(pieces: list[PhrasePiece], family_names: Set[str]) -> bool:
    """Whether common words before a person say what the person is: "Enterprise Minister Roisin Kerrigan".

    Args:
        family_names: words that the document writes behind given names: "Council Member Doucette".
    """
    return count_role_words(pieces, family_names) > 0


def count_role_words(pieces: list[PhrasePiece], family_names: Set[str] = frozenset()) -> int:
    """Return the number of common words before a person that say what the person is, 0 without a person.

    A given name, or a name of this document, shows where the person begins. Two or three words that English does not
    know are one behind a single word for persons: "Midfielder Ayo Brandvold".
    """
    if len(pieces) < 2 or pieces[0].key in _HONORIFICS_OR_GIVEN or pieces[0].is_connector:
        return 0
    if len(pieces) > 2 and pieces[0].key in NATIONALITIES and _holds_office(pieces[1:]):
        return 1  # "Israeli Prime Minister Ariel Sharon"
    if pieces[0].key in RANKS and pieces[1].key in HONORIFICS:
        return 0
    place = next((n for n, piece in enumerate(pieces) if n and piece.key in GIVEN_NAMES), 0)
    if not 0 < place < len(pieces) - 1:
        place = len(pieces) - 1 if pieces[-1].key in family_names else 0
    is_role = _is_person_noun(pieces[place - 1].key) if place else _is_person_noun(pieces[0].key)
    if not place and pieces[0].key in _TRADES and _are_rare(pieces[1:]):  # "Chipmaker Ostara"
        return 1
    if not place:
        return _count_before_rare(pieces)
    before = pieces[:place]
    is_role = is_role or (before[-1].key in HONORIFICS and place < len(pieces) - 1)
    return place if is_role and all(map(_is_role_word, before)) else 0


def _count_before_rare(pieces: list[PhrasePiece]) -> int:
    """Return the number of role words before two or three rare words: "Federal Attorney-General Daryl Tessim" has 2."""
    for n in range(1, len(pieces) - 1):
        if not _is_role_word(pieces[n - 1]):
            return 0
        is_person = _is_person_noun(pieces[n - 1].key) and len(pieces) - n <= _MAX_PERSON
        if is_person and _are_person(pieces[n:]):
            return n
    return 0


def _holds_office(pieces: list[PhrasePiece]) -> bool:
    """Whether words begin with an office: "President Megawati", "Prime Minister Sharon", not "Premier League"."""
    if pieces[-1].key in ORGANIZATION_TAILS:
        return False
    return pieces[0].key in _OFFICES or (pieces[1].key in _OFFICES and len(pieces) > 2)


def _is_role_word(piece: PhrasePiece) -> bool:
    return not piece.is_connector and (token_rank(piece.key.lower()) is not None or _is_person_noun(piece.key))


def _are_person(pieces: list[PhrasePiece]) -> bool:
    """Whether words with a capital may name a person: one that English does not know, and no everyday word."""
    if any(piece.text.isupper() or piece.is_connector or piece.key in _NOT_IN_PERSONS for piece in pieces):
        return False
    return _are_rare(pieces)


def _are_rare(pieces: list[PhrasePiece]) -> bool:
    return not any(is_common_word(piece.key) for piece in pieces) and not all(_is_word(piece.key) for piece in pieces)


def _is_person_noun(key: str) -> bool:
    return PERSON_NOUN in (kind_of(key.lower()), kind_of_plural(key.lower())) or key in _OWNERS


def is_plural_opener(first: PhrasePiece, phrase: Phrase) -> bool:
    """Whether a common plural opens the sentence before "of": "Interpreters of DA Languages"."""
    is_first = phrase.is_weak and not phrase.is_heading and not first.start
    is_common = is_common_word(first.key) or kind_of_plural(first.key.lower()) is not None
    return is_first and first.key.endswith("S") and is_common and first.key not in ORGANIZATION_HEADS


def _is_word(key: str) -> bool:
    """Whether English has a word in lower case, and does not write it mostly with a capital."""
    return token_rank(key.lower()) is not None and not is_proper_word(key)
