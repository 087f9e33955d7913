"""The verb of an English question and what is asked of it: "Where was the stolen car found?" asks where it was found.

The subject of "who" is sought ("Who closed the pass?"), the object of "whom did" ("Whom did Ida beat?"), and the place
or time of "where" and "when". A passive has its participle at the end of its clause, an active its base behind the
subject. Keep out: sentences of texts (`verb_statements.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from graphrag_pipeline.query.question import is_english, is_past_form, stem
from graphrag_pipeline.text.late_patterns import late_re

_WORD = late_re(r"[^\W_]+(?:[-'\u2019][^\W_]+)*")
_BE = frozenset("is are was were be been being".split())  # noqa: SIM905
_DO = frozenset("do does did".split())  # noqa: SIM905
_AUXILIARY = _DO | frozenset("has have had will would can could may might must shall should".split())  # noqa: SIM905
_ADVERBS = frozenset("first finally later once ever still also now again then never already not".split())  # noqa: SIM905
_PREPOSITIONS = frozenset(
    """about above across after against along at before behind below beside between by down during for from in inside
    into near off on onto out outside over through to towards under until up upon with within without""".split()  # noqa: SIM905
)
_PARTICLES = frozenset(("up", "out", "down", "off"))
_GOING_TO = late_re(r"\b(?:is|are|was|were)(?P<subject>\b.*?)\s+going\s+to\b(?=\s+[a-z])", re.IGNORECASE)
_HELPERS = _AUXILIARY | _BE | _ADVERBS
_DETERMINERS = frozenset("the a an his her its their my your our this that these those all".split())  # noqa: SIM905
_OPENING = late_re(r"\W*(?P<word>whom?|where|when|how|why|what|which|whose)\b(?P<rest>.*)", re.IGNORECASE | re.DOTALL)


_TIME = late_re(
    r"(?:\s+(?:(?:next|last|this|every|each)\s+\w+|today|yesterday|tomorrow|now|then|first|again|later))+[?.!\s]*\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class AskedVerb:
    """The verb of a question.

    Attributes:
        word: as the question writes it, in small letters.
        stem: of the word.
        is_passive: whether it is a participle behind a form of "be".
        asks_object: whether its object is sought: "Whom did Ida beat?".
        has_object: whether a noun phrase follows it: "When did Ida sell the mill?".
        preposition: the word that closes the question ("Where was it taken from?"); "" without one.
    """

    word: str
    stem: str
    is_passive: bool
    asks_object: bool
    preposition: str
    has_object: bool = False

    @property
    def asks_patient(self) -> bool:
        """Whether it asks whom something was done to: "Whom did Ida beat?", "Who was hurt?"."""
        return self.asks_object or self.is_passive


def read_asked_verb(clause: str) -> AskedVerb | None:
    """Return the verb of a question's first clause; None if it has none besides "be", or is not in English."""
    opening = _OPENING.match(_GOING_TO.sub(r"will\g<subject>", clause))
    if opening is None or not is_english(clause):
        return None
    asking, written = opening["word"].lower(), _WORD.findall(_TIME.sub("", opening["rest"]))
    closing = written.pop().lower() if len(written) > 1 and written[-1] in _PREPOSITIONS - _PARTICLES else ""
    words = [word.lower() for word in written]
    place = _find_verb(asking, written, words)
    if place is None:
        return None
    before = set(words[:place])
    is_passive = bool(before & _BE) and is_past_form(words[place])
    asks_object = asking in ("who", "whom") and not before <= _HELPERS
    behind = words[place + 1] if place + 1 < len(words) else ""
    has_object = bool(behind) and behind not in _PREPOSITIONS | {"of", "and", "when", "while"}
    return AskedVerb(words[place], stem(words[place]), is_passive, asks_object, closing, has_object)


def _find_verb(asking: str, written: list[str], words: list[str]) -> int | None:
    """Return the position of the verb among the words behind the question word."""
    first = _skip_helpers(words, 0)
    if first is None:
        return None
    if asking == "who" and not _DO & set(words[:first]) and written[first] == words[first]:
        is_be = bool(_BE & set(words[:first]))
        is_verb = words[first] not in _DETERMINERS | _PREPOSITIONS and (not is_be or is_past_form(words[first]))
        return first if is_verb else None
    if not first and asking in ("which", "what", "how", "whose"):  # "how many whales were saved"
        helper = next((i for i, word in enumerate(words) if word in _AUXILIARY | _BE), None)
        if helper is None:  # "which clubs joined the league"
            return next((i for i in range(1, len(words)) if is_past_form(words[i])), None)
        start = _skip_helpers(words, helper)
        if start is None or (is_past_form(words[start]) and not _DO & set(words[helper:start])):
            return start
        first = start
    helpers = set(words[:first])
    if not helpers & (_BE | _AUXILIARY):
        return None
    return _last_participle(words, first) if helpers & _BE else _base_behind_subject(written, words, first)


def _skip_helpers(words: list[str], start: int) -> int | None:
    return next((i for i in range(start, len(words)) if words[i] not in _HELPERS), None)


def _last_participle(words: list[str], start: int) -> int | None:
    """Return the last participle before a clause of time."""
    end = next((i for i in range(start, len(words)) if words[i] in ("when", "while", "after", "before")), len(words))
    places = [i for i in range(start, end) if is_past_form(words[i])]
    return places[-1] if places else None


def _base_behind_subject(written: list[str], words: list[str], start: int) -> int | None:
    """Return the word behind the subject that a phrase, an object or the end follows."""
    links = _DETERMINERS | _PREPOSITIONS | {"of", "and"}
    for i in range(start + 1, len(words)):
        behind = written[i + 1] if i + 1 < len(words) else ""
        ends = not behind or behind in links - {"of"} or behind != behind.lower()
        if ends and written[i] == words[i] and words[i] not in links and words[i - 1] not in links:
            return i
    return None
