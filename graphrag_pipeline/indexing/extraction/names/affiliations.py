"""Persons named with what they belong to: "Fiona Kettering of Kettering Planning Partnership" is two names.

Keep out: persons with a title or a place (`phrases.splits_after_person`).
"""

from __future__ import annotations

from collections.abc import Set

from graphrag_pipeline.indexing.extraction.names.capitalization import is_common_word, is_proper_word, token_rank
from graphrag_pipeline.indexing.extraction.names.cues import (
    GIVEN_NAMES,
    HONORIFICS,
    LEGAL_SUFFIXES,
    LONERS,
    NOBLE,
    ORGANIZATION_HEADS,
    ORGANIZATION_TAILS,
    PLACE_HEADS,
    PLACE_TAILS,
    RANKS,
    words,
)
from graphrag_pipeline.indexing.extraction.names.kind_nouns import PERSON_NOUN, kind_of, kind_of_plural
from graphrag_pipeline.indexing.extraction.names.phrases import Phrase, PhrasePiece

_MAX_PARTICLE = 3  # letters: "De Lier"
_FIRM_TAILS = LEGAL_SUFFIXES | words("group brothers bros sons holdings industries motors")
_NOT_IN_PERSONS = ORGANIZATION_HEADS | ORGANIZATION_TAILS | PLACE_HEADS | PLACE_TAILS | LONERS | NOBLE | HONORIFICS


def ends_person(run: list[PhrasePiece], connector: PhrasePiece, following: tuple[PhrasePiece, ...]) -> bool:
    """Whether "of" after two names of a person leads to a name of two words or more.

    Two given names belong together with the place: "Maria Theresa of Great Britain".
    """
    if connector.key == "OF" and len(run) > 2 and run[0].key in GIVEN_NAMES and not any(p.is_connector for p in run):
        return not {piece.key for piece in run} & (_NOT_IN_PERSONS - HONORIFICS)  # "Donald John Currie of Port Askaig"
    if connector.key != "OF" or len(run) != 2 or sum(not piece.is_connector for piece in following) < 2:
        return False
    first, last = (piece.key for piece in run)
    if {first, last} & _NOT_IN_PERSONS or last in GIVEN_NAMES or not all(piece.text.istitle() for piece in run):
        return False
    return first in GIVEN_NAMES or not (_is_word(first) or _is_word(last))


def ends_firm(run: list[PhrasePiece], connector: PhrasePiece, following: tuple[PhrasePiece, ...]) -> bool:
    """Whether "of" after the name of a firm or people leads to its place: "Reays of Wigton", "SMS Group of Linz".

    A name that begins with a common noun goes on: "Isle of Man", "Ghost of Christmas Past".
    """
    if connector.key != "OF" or any(piece.is_connector for piece in (*run, *following)):
        return False
    if any(_is_word(piece.key) and len(piece.key) > _MAX_PARTICLE for piece in following):
        return False
    first, last = run[0], run[-1]
    if len(run) == 1:
        is_title = first.key in _NOT_IN_PERSONS | GIVEN_NAMES
        return (
            not is_title
            and first.text.istitle()
            and not _is_word(first.key)
            and not _is_word(first.key.removesuffix("S"))
        )
    is_numbered = set(last.key) <= set("IVX")  # "Hugh IV of Lusignan"
    is_rare = len(run) == 2 and first.key not in _NOT_IN_PERSONS | GIVEN_NAMES and not is_numbered
    return last.key in _FIRM_TAILS or (is_rare and not _is_word(first.key) and not _is_word(last.key))


def opens_with_role(pieces: list[PhrasePiece], family_names: Set[str]) -> bool:
    """Whether common words before a person say what the person is: "Enterprise Minister Roisin Kerrigan".

    Args:
        family_names: words that the document writes behind given names: "Council Member Doucette".
    """
    place = next((n for n, piece in enumerate(pieces) if n and piece.key in GIVEN_NAMES), 0)
    if not 0 < place < len(pieces) - 1:
        place = len(pieces) - 1 if pieces[-1].key in family_names else 0
    is_rank = pieces[0].key in RANKS and len(pieces) > 1 and pieces[1].key in HONORIFICS
    if not place or is_rank or pieces[0].key in HONORIFICS | GIVEN_NAMES:
        return False
    before = pieces[:place]
    is_role = (before[-1].key in HONORIFICS and place < len(pieces) - 1) or kind_of(
        before[-1].key.lower()
    ) == PERSON_NOUN
    return is_role and all(not piece.is_connector and token_rank(piece.key.lower()) is not None for piece in before)


def is_plural_opener(first: PhrasePiece, phrase: Phrase) -> bool:
    """Whether a common plural opens the sentence before "of": "Interpreters of DA Languages"."""
    is_first = phrase.is_weak and not phrase.is_heading and not first.start
    is_common = is_common_word(first.key) or kind_of_plural(first.key.lower()) is not None
    return is_first and first.key.endswith("S") and is_common and first.key not in ORGANIZATION_HEADS


def _is_word(key: str) -> bool:
    """Whether English has a word in lower case, and does not write it mostly with a capital."""
    return token_rank(key.lower()) is not None and not is_proper_word(key)
