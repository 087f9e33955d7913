"""Places that English sentences state: "was held in the old library", "the barn was made a ball-room".

Of a question with a verb, the place must belong to the verb (`verb_statements.py`), or follow it behind "to" or
"from". A place is a phrase behind a preposition with the name of a place or a noun such as "barn", up to its own
phrases ("the infirmary at Selby"), or the subject of a sentence that makes it the room of an event. Keep out: which
place answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from graphrag_pipeline.query.question import stem
from graphrag_pipeline.query.understanding.asked_verb import AskedVerb
from graphrag_pipeline.query.understanding.role_statements import NAME
from graphrag_pipeline.query.understanding.time_forms import MONTH_NAMES
from graphrag_pipeline.query.understanding.verb_statements import belongs_to, find_verbs
from graphrag_pipeline.query.word_families import means_same
from graphrag_pipeline.text.late_patterns import late_re

_NOUNS = frozenset(
    """abbey academy airport annex apartment arena attic bakery ball-room bank bar barn barracks basement beach bed
    bedroom boat boat-house boathouse brewery bridge building cabin cafe cage camp canal canteen castle
    cathedral cave cellar cemetery center centre chamber chapel church churchyard city clearing cliff clinic
    club coast college corner corridor cottage counting-house court courthouse courtyard deck desert ditch
    dock drawing-room dungeon embassy factory farm field forest fort gallery garden garret grave graveyard
    greenhouse gymnasium hall harbor harbour hill hospital hotel house hut infirmary inn island jail kitchen
    laboratory lake lane library lobby loft market marketplace meadow mill monastery mountain museum
    observatory office orangery orchard palace park parlour passage pavilion pawnshop pier pitch playground
    pond port prison pub quarry quay restaurant river road roof room school schoolroom shed ship shop shore
    slope square stable stadium stage stairs station store street studio supermarket table tavern temple tent
    theater theatre tomb tower town train tree tunnel university valley vault villa village ward warehouse
    well wharf wood woods workshop yard zoo""".split()  # noqa: SIM905
)
_FLAT = (
    r"flat(?!\s+(?!(?:of|in|at|on|near|by|to|from|with|behind|above|and|or|but|where|when|which|that|is|was)\b)[a-z])"
)
_ONE_NOUN = rf"(?:[a-z]+-)?(?:{'|'.join(sorted(_NOUNS, key=lambda noun: (-len(noun), noun)))}|{_FLAT})s?\b(?!-)"
_NOUN = rf"{_ONE_NOUN}(?:\s+{_ONE_NOUN})?"
_DETERMINER = rf"(?:[Tt]he|an?|his|her|their|its|my|our|this|that|{NAME}['\u2019]s?)"
_WORDS = r"(?:(?!(?:of|and|or|in|at|on|by|with|to|was|were|is)\b)[a-z][\w'\u2019-]*\s+){0,3}?"
_TIME = rf"(?:{MONTH_NAMES}|\w+day|Christmas|Easter|Spring|Summer|Autumn|Winter)\b"
_THING = rf"(?:{_DETERMINER}\s+{_WORDS}{_NOUN}|(?:the\s+)?(?!{_TIME}){NAME})"
_MORE = rf"(?:\s+(?:of|in|at|on|near|by|behind|beside|above|below|off|outside|in front of)\s+{_THING})"
_BESIDE = r"[Ii]nside|[Bb]ehind|[Uu]nder|[Bb]eneath|[Nn]ear|[Oo]utside|[Aa]board|[Bb]eside|[Aa]bove|[Bb]elow|[Oo]ff"
_LOCATED = late_re(
    rf"\b(?:(?:[Ii]n|[Aa]t|[Oo]n)\s+|(?=(?:{_BESIDE})\s))(?P<place>(?:(?:{_BESIDE})\s+)?{_THING}{_MORE}{{0,2}})"
)
NOUN_PHRASE = (
    r"\b(?:in|at|on|into|inside|behind|under|near|beside|above|below|opposite)\s+"
    rf"(?!(?:an?|some|any)\s)(?:{_DETERMINER}\s+)?{_WORDS}{_NOUN}"
)
"""A pattern of a place without a name: "in chambers", "behind the old mill", but not "in a street"."""
_MOVED = {
    way: late_re(rf"\s+(?:(?!(?:{other})\b)[\w'\u2019-]+\s+){{0,5}}?(?:{words})\s+(?P<place>{_THING}{_MORE}{{0,2}})")
    for way, words, other in (("from", "from|out of|off", "to|into|onto"), ("to", "to|into|onto", "from|of"))
}
"""Forms behind a verb by which something is moved from a place or to it: "taken from a tower in Bruges"."""
_TAKING = frozenset(map(stem, "steal rob loot snatch kidnap abduct escape disappear vanish".split()))  # noqa: SIM905
_MADE = late_re(
    rf"\b(?P<place>[Tt]he\s+{_WORDS}{_NOUN})\s+(?:was|were|became|is|had\s+been)\b[^.;]*?"
    r"\b(?P<event>[a-z]+)-?(?:room|hall|house|floor)\b"
)
_BREAK = late_re(r"[;:]|,\s+(?:and|but|as|while|who|because)\b|\bas\s+\w+\s+as\b")
_SOCIAL = frozenset(
    map(stem, ("ball", "dance", "feast", "supper", "dinner", "party", "wedding", "banquet", "breakfast", "reception"))
)
LIGHT = frozenset(map(stem, ("hold", "take", "place", "happen", "give", "occur", "keep", "celebrate", "locate")))
"""Stems of words that say only that something happens."""
MAX_DISTANCE = 80
"""Characters between a word of the question and the place."""


@dataclass(frozen=True)
class PlaceStatement:
    """A place, as the sentence writes it on one line, and how near it is to words of the question, 0-1."""

    place: str
    nearness: float


def read_places(text: str, events: frozenset[str], verb: AskedVerb | None = None) -> Iterator[PlaceStatement]:
    """Yield the places of events that a sentence states.

    Args:
        events: stems of the words for what happens there.
        verb: of the question; a place must then belong to it. "Where was it held?" may be said with another light verb.
    """
    if verb is None:
        words = [found for found in re.finditer(r"[^\W_]+", text) if stem(found[0].lower()) in events]
    else:
        words = find_verbs(text, LIGHT if verb.stem in LIGHT else means_same(verb.word))
        moved = [one for word in words for one in _read_moved(text, word, verb)]
        if moved or verb.preposition == "from":
            yield from moved
            return
    for found in _LOCATED.finditer(text):
        near = [word for word in words if verb is None or belongs_to(text, word, found.start(), found.end())]
        if gaps := [gap for word in near if (gap := _gap(text, word, found)) is not None]:
            yield PlaceStatement(" ".join(found["place"].split()), 1.0 - min(gaps) / (2 * MAX_DISTANCE))


def _read_moved(text: str, word: re.Match[str], verb: AskedVerb) -> Iterator[PlaceStatement]:
    """Yield the place behind a verb that something is moved to; from, if the question or the verb asks for that."""
    is_from = verb.preposition == "from" or verb.stem in _TAKING
    found = _MOVED["from" if is_from else "to"].match(text, word.end())
    if found and belongs_to(text, word, found.start("place"), found.end("place")):
        yield PlaceStatement(" ".join(found["place"].split()), 1.0)


def read_made_places(text: str, events: frozenset[str]) -> Iterator[PlaceStatement]:
    """Yield the places that a sentence makes the room of an event: 1 for the event itself, 0.5 for one of its kind."""
    for found in _MADE.finditer(text):
        event = stem(found["event"])
        if event in events or (event in _SOCIAL and events & _SOCIAL):
            yield PlaceStatement(" ".join(found["place"].split()), 1.0 if event in events else 0.5)


def _gap(text: str, word: re.Match[str], place: re.Match[str]) -> int | None:
    """Return the characters between a word and a place of the same clause; one before the word is as far again."""
    is_behind = word.end() <= place.start()
    between = text[word.end() : place.start()] if is_behind else text[place.end() : word.start()]
    is_inside = place.start("place") <= word.start() < place.end()
    if is_inside or len(between) > MAX_DISTANCE or _BREAK.search(between):
        return None
    return len(between) if is_behind else min(2 * len(between), 2 * MAX_DISTANCE)
