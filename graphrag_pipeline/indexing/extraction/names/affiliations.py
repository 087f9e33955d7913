"""Persons named with what they belong to: "Fiona Kettering of Kettering Planning Partnership" is two names.

Keep out: persons with a title or a place (`phrases.splits_after_person`).
"""

from __future__ import annotations

from collections.abc import Set

from graphrag_pipeline.indexing.extraction.names.capitalization import is_common_word, is_proper_word, token_rank
from graphrag_pipeline.indexing.extraction.names.cues import (
    DESCRIBING_HONORIFICS,
    FEMALE_HONORIFICS,
    GIVEN_NAMES,
    HONORIFICS,
    LEGAL_SUFFIXES,
    LONERS,
    MALE_HONORIFICS,
    NATIONALITIES,
    NOBLE,
    ORGANIZATION_HEADS,
    ORGANIZATION_TAILS,
    PLACE_HEADS,
    PLACE_TAILS,
    RANKS,
    words,
)
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_countries, load_places, strip_accents
from graphrag_pipeline.indexing.extraction.names.kind_nouns import PERSON_NOUN, kind_of, kind_of_plural
from graphrag_pipeline.indexing.extraction.names.phrases import Phrase, PhrasePiece

_MAX_PARTICLE = 3  # letters: "De Lier"
_FIRM_TAILS = LEGAL_SUFFIXES | words("group brothers bros sons holdings industries motors")
_FAMILY_TAILS = words("son sons nephew nephews daughter daughters brothers partners associates company")
_NOT_IN_PERSONS = ORGANIZATION_HEADS | ORGANIZATION_TAILS | PLACE_HEADS | PLACE_TAILS | LONERS | NOBLE | HONORIFICS
_TITLES = _NOT_IN_PERSONS | GIVEN_NAMES
_HONORIFICS_OR_GIVEN = HONORIFICS | GIVEN_NAMES
_PATRONYMICS = ("VNA", "VICH", "VITCH")
_OFFICES = (HONORIFICS - DESCRIBING_HONORIFICS) | {"SECRETARY"}
_MAX_PERSON = 3  # words of a person's name
_MAX_EVERYDAY_RANK = 100_000
_MAX_HOLDER = 4
_MIN_WITH_OFFICE = 3  # words of owner, office and holder
_PARTICLES = words("bin ibn ben van von de di da do dos das del della du al el")
_OF_STATE = words("secretary minister attorney director commissioner chief head")
_ADDRESSES = FEMALE_HONORIFICS | MALE_HONORIFICS | NOBLE | words("dr rev revd reverend hon messrs herrn don doña")
_TITLED_OFFICES = _OFFICES - _ADDRESSES
_KEPT_OFFICES = _OFFICES - {"SECRETARY", "MASTER"}
# Of offices: "Foreign Minister", "Secretary of State".
DOMAINS = words("""
foreign state defence defense finance health education transport trade home interior justice immigration environment
agriculture industry energy labour labor employment opposition shadow federal executive managing general senior
assistant associate national parliamentary press media science culture tourism planning housing communications
intelligence police security operations financial operating technology technical marketing policy staff treasury
commerce communities families women veterans resources fisheries mines development revenue welfare assembly
oil petroleum water district circuit magistrates special medical scientific sport sports youth budget infrastructure
economy forestry
""")
_ESTATES = words("duchy archduchy earldom barony viceroyalty sultanate emirate sheikhdom principality margraviate")
# Of firms, never the first word of their names.
_TRADES = words("""
chipmaker carmaker automaker drugmaker planemaker shipbuilder insurer lender retailer carrier broadcaster brewer
startup start-up manufacturer regulator watchdog supplier rival rivals
""")
# Of persons and of firms.
_OWNERS = words(
    "owner co-owner landlord landlady employer partner developer producer broadcaster publisher wing prop hooker"
)  # or firms


def ends_person(run: list[PhrasePiece], connector: PhrasePiece, following: tuple[PhrasePiece, ...]) -> bool:
    """Whether "of" after two names of a person leads to a name of two words or more.

    Two given names belong together with the place: "Maria Theresa of Great Britain". Behind a given and a family name,
    a country is enough: "Anton Verhoeven of the Netherlands". A role before the person is no
    part of the name: "Geologist Lucy Whitfield of the University of Leeds".
    """
    if connector.key != "OF":
        return False
    if run[0].key == "DET":  # "Det Con Imogen Sharrock of City of London Police"
        run = run[2:]
    n_roles = count_role_words(run)
    is_noble = any(piece.key in NOBLE for piece in run[:n_roles])
    run = run[n_roles:]
    if n_roles and len(run) > 1 and not is_noble:  # "Economist Khadim Bamba Diagne of ..."
        return True
    if len(run) > 2 and run[0].key in GIVEN_NAMES and not any(p.is_connector for p in run):
        return not {piece.key for piece in run} & (_NOT_IN_PERSONS - HONORIFICS)  # "Donald John Currie of Port Askaig"
    if len(run) != 2:
        return False
    first, last = (piece.key for piece in run)
    words = [piece.key for piece in following if not piece.is_connector]
    if len(words) < 2:
        is_rare = token_rank(last.lower()) is None and not _is_word(first)  # "Emile Surette of Lunenburg"
        is_rare = is_rare or (token_rank(words[-1].lower()) is None and not _is_place(words[-1]))  # "of Sydbank"
        return first in GIVEN_NAMES and (is_rare or words[-1] in load_countries()) and _is_family_name(last)
    if {first, last} & _NOT_IN_PERSONS or last in GIVEN_NAMES or not all(piece.text.istitle() for piece in run):
        return False
    is_member = words[0] in ORGANIZATION_HEADS and not _is_word(last)  # "Diva Amon of the University of ..."
    return n_roles > 0 or first in GIVEN_NAMES or is_member or not (_is_word(first) or _is_word(last))


def _is_family_name(key: str) -> bool:
    """Whether the second word of a person is no part of a ruler's name: not "Maria Theresa" and "Louis XIV"."""
    is_numeral = set(key) <= set("IVX")
    key = strip_accents(key)
    return not is_numeral and key not in GIVEN_NAMES | _NOT_IN_PERSONS and not key.endswith(_PATRONYMICS)


def ends_firm(run: list[PhrasePiece], connector: PhrasePiece, following: tuple[PhrasePiece, ...]) -> bool:
    """Whether "of" after the name of a firm or people leads to its place: "Reays of Wigton", "Nova Power of Linz".

    A name that begins with a common noun goes on: "Isle of Man", "Ghost of Christmas Past".
    """
    is_family_firm = run[-1].key in _FAMILY_TAILS and any(piece.key == "AND" for piece in run)
    if connector.key == "OF" and is_family_firm:  # "Jukes and Son of Coleford"
        return True
    is_country = len(run) > 1 and " ".join(piece.key for piece in following[1:]) in load_countries()
    if following[0].key == "THE" and (following[-1].text.isupper() or is_country):  # "Zelwa of the OSF"
        following = following[1:]
    if connector.key != "OF" or any(piece.is_connector for piece in (*run, *following)):
        return False
    if any(_is_word(piece.key) and len(piece.key) > _MAX_PARTICLE for piece in following):
        return False
    first, last = run[0], run[-1]
    if is_country and not {piece.key for piece in run} & _NOT_IN_PERSONS and not _is_word(first.key):
        return True  # "Van Dongen Leaf of the Netherlands"
    if len(run) > 1 and following[0].key == last.key:  # "Lorna Pickles of Pickles and Dean"
        return True
    if len(run) == 1:
        is_title = first.key in _TITLES or first.key in _ESTATES
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


def split_office(
    pieces: list[PhrasePiece], family_names: Set[str] = frozenset()
) -> tuple[list[PhrasePiece], list[PhrasePiece]]:
    """Return the owner of an office and its holder: "Qantas" and "Geoff Dixon" of "Qantas Chief Executive Geoff Dixon".

    The office is dropped; an honorific before the holder stays ("President Pervez Musharraf"). The owner is empty if
    only common words stand before the office ("Victorian Opposition Leader"). Both are empty if the words are one name.

    Args:
        family_names: as in `opens_with_role`.
    """
    if len(pieces) < _MIN_WITH_OFFICE:
        return [], []
    place = next(
        (n for n in range(2, len(pieces)) if _ends_office(pieces, n) and _is_holder(pieces, n, family_names)), 0
    )
    if not place:
        return [], []
    n_owner = place - 3 if pieces[place - 2].key == "OF" else place - 1
    while n_owner and _describes_office(pieces[n_owner - 1]):
        n_owner -= 1
    owner = pieces[:n_owner]
    while owner and owner[0].key in RANKS | {"ASSISTANT", "ASSOCIATE"}:
        owner = owner[1:]
    if (not owner and pieces[place - 1].key in HONORIFICS) or (owner and owner[0].key in GIVEN_NAMES):
        return [], []  # "Prime Minister Tony Blair", "Norman Earl Thomson"
    begin = place - (pieces[place - 1].key in _KEPT_OFFICES)
    return (owner if _is_owner(owner) else []), pieces[begin:]


def _ends_office(pieces: list[PhrasePiece], end: int) -> bool:
    """Whether an office ends before a place: "Commissioner", "Secretary of State"."""
    if end > 2 and pieces[end - 2].key == "OF" and pieces[end - 3].key in _OF_STATE:
        return pieces[end - 1].key in DOMAINS
    return _is_office(pieces[end - 1]) and not pieces[end - 2].is_connector


def _is_office(piece: PhrasePiece) -> bool:
    is_titled = piece.key in _TITLED_OFFICES
    return piece.text.istitle() and not piece.is_possessive and (is_titled or _is_person_noun(piece.key))


def _is_holder(pieces: list[PhrasePiece], start: int, family_names: Set[str]) -> bool:
    rest = pieces[start:]
    words = [piece for piece in rest if not piece.is_connector]
    first, last = rest[0], rest[-1]
    if first.is_connector or not all(map(_may_be_of_person, words)):
        return False
    if len(words) == 2 and first.key in GIVEN_NAMES:  # "Mervyn King", "Ann Hill"
        return last.key not in ORGANIZATION_TAILS | LONERS
    if any(piece.key in _NOT_IN_PERSONS for piece in words):
        return False
    if len(words) == 1:
        is_office = (
            pieces[start - 1].key in _OFFICES and not is_common_word(last.key) and token_rank(last.key.lower()) is None
        )
        return last.key in family_names or is_office
    if len(words) > _MAX_HOLDER or any(piece.key not in _PARTICLES for piece in rest if piece.is_connector):
        return False
    return first.key in GIVEN_NAMES or _are_rare(words)


def _may_be_of_person(piece: PhrasePiece) -> bool:
    is_initial = len(piece.key) == 1 or "." in piece.text
    return piece.text[0].isupper() and (is_initial or not piece.text.isupper())


def _describes_office(piece: PhrasePiece) -> bool:
    """Whether a word belongs to the office behind it: "Deputy", "Foreign", "Israeli"."""
    key = piece.key
    if piece.is_possessive or piece.is_connector:
        return False
    return key in RANKS or key in HONORIFICS or key in DOMAINS or key in NATIONALITIES or _is_person_noun(key)


def _is_owner(pieces: list[PhrasePiece]) -> bool:
    """Whether words before an office are a name: "Qantas", "Reserve Bank", not "Victorian Opposition"."""
    if not pieces:
        return False
    is_body = len(pieces) > 1 and pieces[-1].key in ORGANIZATION_TAILS
    named = (piece for piece in pieces if not piece.is_connector)
    return is_body or any(p.text.isupper() or not _is_role_word(p) or _is_place(p.key) for p in named)


def _is_place(key: str) -> bool:
    return key in load_places() and is_proper_word(key)  # "Enterprise" is a town


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
    is_people = pieces[0].key in NATIONALITIES or (pieces[0].key.endswith("IAN") and not _is_word(pieces[0].key))
    if len(pieces) > 2 and is_people and _holds_office(pieces[1:]):
        return 1  # "Israeli Prime Minister Ariel Sharon"
    if pieces[0].key in RANKS and pieces[1].key in HONORIFICS:
        return 0
    n_origin = 1 if pieces[0].key in NATIONALITIES else 2 * (" ".join(p.key for p in pieces[:2])[:-1] in load_places())
    rest = pieces[n_origin:]
    is_person = len(rest) > 1 and (rest[0].key in GIVEN_NAMES or (len(rest) == 2 and _are_unknown(rest)))
    if n_origin and is_person and rest[-1].key not in _NOT_IN_PERSONS:
        return n_origin  # "the South African Ayo Brandvold"
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
    pieces = [piece for n, piece in enumerate(pieces) if not n or piece.key not in _PARTICLES]  # "Romão dos Santos"
    if any(piece.text.isupper() or piece.is_connector or piece.key in _NOT_IN_PERSONS for piece in pieces):
        return False
    is_rare_family = len(pieces) == 2 and token_rank(pieces[1].key.lower()) is None  # "Batsman Innocent Kaia"
    return _are_rare(pieces) or (is_rare_family and pieces[1].text.istitle())


def _are_unknown(pieces: list[PhrasePiece]) -> bool:
    return all(piece.text.istitle() and token_rank(piece.key.lower()) is None for piece in pieces)


def _are_rare(pieces: list[PhrasePiece]) -> bool:
    return not any(map(_is_everyday, pieces)) and not all(_is_word(piece.key) for piece in pieces)


def _is_everyday(piece: PhrasePiece) -> bool:
    """Whether English writes a word often, and mostly without a capital; a rare word may be a name abroad."""
    rank = token_rank(piece.key.lower())
    return rank is not None and rank < _MAX_EVERYDAY_RANK and is_common_word(piece.key)


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
