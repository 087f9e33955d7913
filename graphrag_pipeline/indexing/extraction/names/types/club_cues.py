"""Cues of clubs, whose names are those of places: "Merrow Town beat X 3-2", "the striker of X", "X have signed".

`CLUB` is a use that only a club has. `RIVAL` is one that a person has, too ("X beat Y").

Keep out: firms (`trade_cues.py`), last words that only clubs have, such as Rovers (`cues.ORGANIZATION_TAILS`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

import regex

from graphrag_pipeline.indexing.extraction.names.gazetteer import load_places
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, text_before
from graphrag_pipeline.text.late_patterns import late_regex

CLUB, RIVAL = "club", "rival"
_FIRM, _PERSON, _PLACE = "organization role", "PERSON", "GEO"

_PLAYERS = (
    r"(?:striker|midfielder|defender|goalkeeper|winger|full-back|fly-half|batsman|bowler|captain|skipper|coach|manager"
    r"|fans|supporters|squad|player|players|forward|debut|scorer)"
)
_SCORE = r"\d{1,3}[-\u2013]\d{1,3}"
_SPORT_AFTER = late_regex(
    rf"""
    \s+(?:beat\s+\p{{Lu}}[\p{{L}}\s]{{2,40}}?\s{_SCORE}|{_SCORE}|\d{{1,3}},\s+\p{{Lu}}[\p{{L}} \u2019'-]+\s\d{{1,3}})\b
    |\s+into\s+the\s+(?:final|semi-final|quarter-final|lead|play-offs|next\s+round)\b
    |(?:['\u2019]s?)?\s+(?:new\s+|former\s+|head\s+)?{_PLAYERS}\b
    |(?:,\s+who)?\s+(?:(?:has|have|had|were|was)\s+)?(?:relegated|promoted|equalised|won\s+(?:{_SCORE}|promotion)|lost\s+{_SCORE}
        |drew\s+(?:with|{_SCORE})|went\s+(?:ahead|in\s+front)|held\s+on|signed\s+(?:the\s+)?(?:{_PLAYERS}|\p{{Lu}})
        |finished\s+(?:first|second|third|fourth|bottom|top)|kicked\s+off|play\s+(?:at|in|their)|(?:meet|face|host|take\s+on)\s+(?:the\s+)?\p{{Lu}}\p{{L}}+)\b
    """,
    regex.VERBOSE,
)
_SPORT_BEFORE = late_regex(
    rf"\b(?:(?:debut|match|game|fixture|replay|tie)(?:\s+is)?\s+against|points?\s+(?:behind|above|below|ahead\s+of|clear\s+of)"
    rf"|joined\s+the\s+(?:club|side)\s+from|{_PLAYERS}\s+(?:of|at|for)|(?:signed|transferred|loan|loaned)\s+(?:[^.;\n]{{0,40}}\s)?(?:by|from|to|for)"
    rf"|play(?:s|ed)?\s+(?:for|against)|defeat\s+(?:to|by|against)|(?:win|victory|draw|defeat|loss)\s+(?:over|against|with|at)|(?:match|game|fixture|tie|final)\s+between(?:\s\p{{Lu}}\p{{L}}+\s+and)?"
    rf"|{_SCORE}\s+(?:over|against|to|by)|contract\s+with|lost\s+(?:at\s+home\s+|away\s+)?to|\p{{L}}+\s\d{{1,3}},)\s+$"
)
_RIVAL_AFTER = late_regex(
    r"\s+(?:(?:has|have|had)\s+)?(?:beat|defeated|thrashed|scored|(?:last\s+)?won\s+the|lost\s+the|trailed)\b"
)
_RIVAL_BEFORE = (" beat ", " defeated ", " thrashed ", " eliminated ", " edged ", " edge ", " against ", " held ")
_SETS = late_regex(r"\b[0-7]-[0-7](?:\s\(\d{1,2}\))?,\s[0-7]-[0-7]\b")
_LOOK_BACK = 64
_ENDS = (
    ", ",
    "between ",
    "and ",
    "of ",
    "at ",
    "for ",
    "from ",
    "by ",
    "to ",
    "against ",
    "over ",
    "with ",
    "behind ",
    "above ",
    "below ",
)


def read_club_cues(text: str, name: Name) -> Iterator[str]:
    """Yield `CLUB` or `RIVAL` for what a name does in a match, or who plays for it."""
    before = text_before(text, name, _LOOK_BACK)
    is_club = _SPORT_AFTER.match(text, name.end) or (before.endswith(_ENDS) and _SPORT_BEFORE.search(before))
    if is_club and not _plays_sets(text):
        yield CLUB
    elif is_club or _RIVAL_AFTER.match(text, name.end) or before.endswith(_RIVAL_BEFORE):
        yield RIVAL


@lru_cache(maxsize=4)
def _plays_sets(text: str) -> bool:
    """Whether persons and not clubs play in a report, as its scores show: "6-4, 7-6 (5)"."""
    return _SETS.search(text) is not None


def is_club(cues: Counter[str], is_place_noun: bool = False) -> bool:
    """Whether a name that may be a place is a club or a firm: it plays or deals, and more than it lies.

    Args:
        is_place_noun: whether the last word of the name is a noun for places, which only a club or trader outweighs.
    """
    n_club = cues[CLUB] + cues[RIVAL] + cues[_FIRM]
    n_sure = cues[CLUB] + cues["trader"] + (0 if is_place_noun else cues[_FIRM])
    return n_sure > 0 and n_club > cues[_PLACE] + cues["place role"] + cues[_PERSON]


def is_club_of_place(words: Sequence[str], cues: Counter[str]) -> bool:
    """Whether several words that end with a place play in a match, and are no person's: "played for Lyn Oslo"."""
    is_name = len(words) > 1 and words[-1] in load_places() and " ".join(words) not in load_places()
    return is_name and cues[CLUB] > 0 and not cues["person role"]
