"""Limits of names within a phrase: where one name ends and another begins.

Keep out: persons before "of" (`phrases.py`, `affiliations.py`), and whether words are a name (`finder.py`).
"""

from __future__ import annotations

from graphrag_pipeline.indexing.extraction.names.brands import is_well_known
from graphrag_pipeline.indexing.extraction.names.capitalization import (
    CapitalizationEvidence,
    is_common_word,
    token_rank,
)
from graphrag_pipeline.indexing.extraction.names.cues import (
    BUILDINGS,
    GIVEN_NAMES,
    HONORIFICS,
    ORGANIZATION_TAILS,
    ORGANIZATIONS,
    ORGANIZATIONS_IN_CAPITALS,
    PLACE_TAILS,
    RANKS,
    SAINTS,
    SHIPS,
    words,
)
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_places
from graphrag_pipeline.indexing.extraction.names.kind_nouns import is_trade
from graphrag_pipeline.indexing.extraction.names.occurrences import is_also_a_word
from graphrag_pipeline.indexing.extraction.names.phrases import Phrase, PhrasePiece
from graphrag_pipeline.text.late_patterns import late_regex

_AFTER_POSSESSIVE = PLACE_TAILS | ORGANIZATION_TAILS | words("meadow field green wood mill corner")
_AFTER_PLACES = PLACE_TAILS | ORGANIZATION_TAILS | BUILDINGS
_IN = frozenset({"IN", "FROM", "AT", "ACROSS", "NEAR", "OUTSIDE"})
_CUPS = words("cup trophy")
_OWNED_DAYS = words("day eve")
_GROUPS = words("women men fishermen children people workers students teachers farmers writers artists pensioners")
_FIRM_TAILS = words("sons co company brothers")
_FAMILY_TAILS = words("son nephew nephews daughter daughters partners associates")
FIELD_ENDINGS = ("OLOGY", "GRAPHY", "METRY", "NOMY", "ICS", "TION", "MENT", "URE", "ERY", "ISM")
_CHOSEN = RANKS | words("chair vice-chair chairman chairwoman chairperson treasurer secretary")
_OF_FIELDS = words("of for on")
_MAX_EVERYDAY_RANK = 60_000  # of a word in lower case: "securities", not "treasury"
_AFTER_DETECTIVE = words("con const sgt insp supt ch garda")
_MAX_RANK = 5  # letters
_NO_RANKS = SHIPS | ORGANIZATIONS_IN_CAPITALS | HONORIFICS  # honorifics stay with the name
_OBJECT = late_regex(r"[ \n]+(?:with|the|an?|to|from|your|its)\b")
_PLURAL_ACRONYM = late_regex(r"\p{Lu}{2,}s")
ADDRESSES = frozenset({"Mr", "Mrs", "Ms", "Miss", "Messrs", "Dr", "Prof"})
_IDENTIFIER = late_regex(r"(?!(?:Ma?c|[DL][aei]|Fitz|Van)\p{Lu})\p{Lu}\w*\p{Ll}\p{Lu}\w+")  # SaveComplete, not DeMille


def is_place(key: str) -> bool:
    """Whether a word is a place in every position, also in a heading or a dateline."""
    return key in load_places() and len(key) > 3 and not is_common_word(key)


def is_origin(pieces: list[PhrasePiece]) -> bool:
    """Whether words are the adjective of a place of several words: "Saudi Arabian", "South African"."""
    return " ".join(piece.key for piece in pieces)[:-1] in load_places()


def splits_list(
    run: list[PhrasePiece],
    connector: PhrasePiece,
    following: tuple[PhrasePiece, ...],
    evidence: CapitalizationEvidence,
) -> bool:
    """Whether "and" joins two names: "the Senate and Defense Committee", not "the Food and Drug Administration".

    One name goes on if an everyday word stands before "and", which is no name elsewhere in the document.
    """
    last = run[-1].key
    if connector.key != "AND" or following[0].key in _FIRM_TAILS:
        return False
    if following[0].key in _FAMILY_TAILS:  # "Jukes and Son", not "Father and Son"
        return is_common_word(last)
    if any(piece.is_connector for piece in run):
        return any(piece.key in _OF_FIELDS for piece in run) and _ends_field(run[-1], following)
    rank = token_rank(last.lower())
    is_everyday = rank is not None and rank < _MAX_EVERYDAY_RANK and not is_place(last)
    if last.endswith(("IC", "AL")) and len(last) > 5 and not is_place(last) and not evidence.alone[last]:
        return False  # "the National Oceanic and Atmospheric Administration"
    is_body = last in ORGANIZATIONS or (last in ORGANIZATION_TAILS and (len(run) > 1 or not last.endswith("S")))
    return not is_everyday or is_body or evidence.alone[last] > 0  # not "the Securities and Exchange Commission"


def _ends_field(last: PhrasePiece, following: tuple[PhrasePiece, ...]) -> bool:
    """Whether "and" ends a body named by its field: "the Board of Trade and Lloyds", not "of Trade and Industry"."""
    if is_place(last.key):
        return True
    named = [piece.key for piece in following if not piece.is_connector]
    is_tailed = len(named) > 1 and named[-1] in ORGANIZATION_TAILS and not named[-1].endswith("S")
    is_body = is_tailed or named[-1] in ORGANIZATIONS
    is_person = following[0].key in GIVEN_NAMES and not is_also_a_word(following[0].key)
    field = named[-1].rpartition("-")[2]
    return is_body or is_person or not (is_also_a_word(field) or field.endswith(FIELD_ENDINGS))


def is_initial(number: int, phrase: Phrase) -> bool:
    """Whether an "A" is the first of several initials of a person: "A N Sowden", "A. B. Lee"."""
    following = phrase.pieces[number + 1 : number + 3]
    if phrase.pieces[number].key != "A" or not following:
        return False
    if phrase.pieces[number].text == "A.":
        return following[0].text[0].isupper()
    if len(following) < 2:
        return False
    initial, surname = following
    return len(initial.key) == 1 and len(surname.key) > 1 and surname.text[0].isupper()


def is_rank(pieces: list[PhrasePiece], phrase: Phrase, evidence: CapitalizationEvidence) -> bool:
    """Whether a short word before a person is a rank or an office, and no body.

    "DS Nicola Farrant", then "DS Farrant"; "Det Con Imogen Sharrock".
    """
    first, *others = pieces
    n = phrase.pieces.index(first)
    if first.key == "DET" and len(others) > 1:
        return others[0].key in _AFTER_DETECTIVE | GIVEN_NAMES
    if n and phrase.pieces[n - 1].key == "DET":
        return first.key in _AFTER_DETECTIVE
    if (
        not (first.text.isupper() and first.text.isalpha() and 1 < len(first.text) <= _MAX_RANK)
        or first.key in _NO_RANKS
    ):
        return False
    if not others or first.is_possessive or not all(piece.text.istitle() or piece.is_connector for piece in others):
        return False
    if others[-1].key in _AFTER_PLACES or is_place(first.key) or is_well_known(first.key):
        return False
    return (len(others) > 1 and others[0].key in GIVEN_NAMES) or (
        len(others) == 1 and first.key in evidence.ranks and others[0].key in evidence.family_names
    )


def _follows_place(number: int, phrase: Phrase) -> bool:
    """Whether a rare word begins another name behind a place at the start of a sentence: "In Israel BioBee breeds"."""
    piece, place = phrase.pieces[number], phrase.pieces[number - 1]
    is_behind = number == 2 and phrase.is_weak and phrase.pieces[0].key in _IN and not piece.is_connector
    if not is_behind or place.key in GIVEN_NAMES or place.is_possessive or not is_place(place.key):
        return False
    return token_rank(piece.key.lower()) is None and piece.key not in _AFTER_PLACES


def starts_name(number: int, phrase: Phrase, run: list[PhrasePiece], evidence: CapitalizationEvidence) -> bool:
    """Whether a word starts another name: "Candlemas Mr. Pokorny", "SaveComplete ShutdownCancelled", "M CPUs"."""
    piece, before = phrase.pieces[number], run[-1]
    if before.key in evidence.data_types or (len(run) == 1 and _follows_place(number, phrase)):
        return True
    if run[0].text.rstrip(".") in ADDRESSES and piece.key in _CHOSEN and len(run) > 1:  # "Mr Bo Vice Chair"
        return True
    if piece.text.rstrip(".") in ADDRESSES:
        if before.key == "OFFICER":  # "Chief Medical Officer Dr Ann Hill"
            return True
        return evidence.alone[before.key] > 0 and before.key not in HONORIFICS  # not "Saving Mr. Banks"
    if _IDENTIFIER.fullmatch(piece.text):
        return len(before.text) == 1 or _IDENTIFIER.fullmatch(before.text) is not None
    return len(before.text) == 1 and _PLURAL_ACRONYM.fullmatch(piece.text) is not None


def repeats(piece: PhrasePiece, run: list[PhrasePiece], evidence: CapitalizationEvidence) -> bool:
    """Whether a word repeats the name before it: "called Scrooge Scrooge", or a title and the first words.

    A word that the document writes only doubled is one name: "Cora Cora".
    """
    is_doubled = len(run) == 1 and not piece.is_after_break and not evidence.alone[piece.key]
    if len(piece.key) == 1 or (is_doubled and piece.text.istitle()):  # J. R. R. Tolkien
        return False
    return piece.key in ((run[-1].key, run[0].key) if piece.is_after_break else (run[-1].key,))


def keeps_possessive(
    piece: PhrasePiece, phrase: Phrase, run: list[PhrasePiece], evidence: CapitalizationEvidence
) -> bool:
    """Whether a possessive is inside a name: "St. Paul's Churchyard" and "Harbour Commissioner's Office" are one name.

    "Scrooge's Ghost" is two.
    """
    following = [other for other in phrase.pieces if other.start > piece.start]
    if not following or following[0].is_connector:
        return False
    last = following[-1].key
    if last in _OWNED_DAYS and len(following) == 1 and len(run) > 1 and run[0].key == "NEW":  # "New Year's Day"
        return True
    if last in _CUPS and len(following) == 1 and len(run) == 1:  # "the America's Cup"
        return True
    if len(run) == 1 and is_place(piece.key):  # "Australia's Commonwealth Bank"
        return False
    is_office = following[0].key == "OFFICE" and not any(other.key in GIVEN_NAMES for other in run)
    is_saint = run[0].key in SAINTS
    is_kept = (is_saint or len(run) == 1 or run[-1].key in _GROUPS) and last in _AFTER_POSSESSIVE
    is_held = following[0].text.istitle() and following[0].key not in HONORIFICS  # "St Cuthbert's Sixth Form"
    is_sign = len(run) == 1 and not evidence.alone[piece.key] and _are_titled_words(piece, following)
    is_trader = len(run) == 1 and len(following) == 1 and _is_trade(following[0])
    return (
        is_office or is_kept or is_sign or is_trader or (is_saint and len(run) > 1 and (last in BUILDINGS or is_held))
    )


def _is_trade(held: PhrasePiece) -> bool:
    """Whether a word names a shop or firm by its trade: "Pender's Jewellers", "Costa's Bakery"."""
    return held.text.istitle() and is_trade(held.key.lower())


def _are_titled_words(owner: PhrasePiece, held: list[PhrasePiece]) -> bool:
    """Whether an owner is a common noun, and what it holds common nouns with a capital: "Tanner's Row"."""
    is_noun = is_also_a_word(owner.key.capitalize()) and owner.key not in GIVEN_NAMES and owner.key not in HONORIFICS
    return is_noun and all(piece.text.istitle() and is_also_a_word(piece.text) for piece in held)


def opens_task(word: PhrasePiece, text: str, end: int) -> bool:
    """Whether a gerund stands before its object in a cited heading: "see Dealing with errors"."""
    return word.text.istitle() and word.key.endswith("ING") and _OBJECT.match(text, end) is not None


def precedes_known_name(pieces: list[PhrasePiece], phrase: Phrase, evidence: CapitalizationEvidence) -> bool:
    """Whether a word only precedes what is a name alone: "Normal CA125 is", and "see Configuring Kerberos".

    It does so as the first word of a sentence, before a code or an acronym, and as a gerund anywhere.
    """
    first, second, *others = pieces
    rank = token_rank(second.key.lower())
    is_word = is_also_a_word(second.text) and rank is not None and rank < _MAX_EVERYDAY_RANK
    is_title = second.key in GIVEN_NAMES or second.key in load_places()  # "Calling Karan", "Morning Ireland"
    is_person = first.key in GIVEN_NAMES or first.key in evidence.family_names
    if others or is_word or is_person or is_title or not first.text.istitle() or not is_common_word(first.key):
        return False
    if first.key.endswith("ING"):
        return evidence.capital[second.key] > 1
    is_opening = phrase.is_weak and not first.start and (first.key, second.key) not in evidence.sure_pairs
    return is_opening and second.text.isupper() and evidence.alone[second.key] > 0
