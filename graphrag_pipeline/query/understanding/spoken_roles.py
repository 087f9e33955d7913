"""Roles and names that a conversation gives to its speakers: "'Do go on, Fred,' said Ida" behind "said Roth's nephew".

Speakers of neighbouring paragraphs answer each other. So a name by which one calls the other is that of the other, and
a word such as "uncle" or "dear brother" is the other's role to the speaker. A paragraph that calls two persons by name
says nothing. English alone. Keep out: which statement answers a question (`answers/naming/stated_roles.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from graphrag_pipeline.query.question import stem
from graphrag_pipeline.query.understanding.role_statements import NAME, NOT_NAMES, gender_of
from graphrag_pipeline.query.understanding.roles import find_role
from graphrag_pipeline.text.late_patterns import late_re

_PARAGRAPH = late_re(r"\S(?:[^\n]|\n(?![ \t]*\n))*")
_SPEECH = late_re(
    r"(?<![\w.,!?;])['\u2018](?P<single>(?=\w).*?)(?:(?<=[.,!?;\u2014-])['\u2019](?!\w)|$)"
    r"|[\"\u201c](?P<double>.*?)(?:[\"\u201d]|$)"
)
_SAYS = (
    r"(?:said|says|cried|asked|replied|returned|answered|exclaimed|pleaded|hinted|observed|shouted|growled|whispered"
    r"|added|repeated|murmured|laughed|interrupted|called|muttered|snapped|sighed|inquired|continued|demanded|remarked)"
)
_STOPS = r"(?:to|with|in|at|on|as|from|and|who|of|for|by|when|but|after|before|again|once|\w+ly)\b"
_PHRASE = rf"(?:(?:[Tt]he|{NAME}['\u2019]s?) (?:(?!{_STOPS})[a-z-]+ ?){{1,3}}|{NAME}|\b[Hh]e\b|\b[Ss]he\b)"
_TAG = late_re(rf"\b{_SAYS} (?P<behind>{_PHRASE})|(?P<before>{_PHRASE})\s*{_SAYS}\b")
_SPEAKER_TAG = late_re(
    rf"(?<=[,.!?;\u2014-]['\"\u2019\u201d]) (?:(?:\w+ed|said|says) {_PHRASE}|{_PHRASE}\s*(?:\w+ed|said|says)\b)"
)
_OF_SPEAKER = late_re(r"\b(?:I|me|my|we|us|our|[Mm]yself)\b")
_FOND = r"(?:(?:my|dear|dearest|little|old|poor|young|good|sweet),? )*"
_CALLED = late_re(rf"(?:\A|[,!?.;] ){_FOND}(?P<name>{NAME})(?=[,!?.;])")
_KIN = {"papa": "father", "dad": "father", "daddy": "father", "mamma": "mother", "mama": "mother", "mum": "mother"}
_KIN |= {"mummy": "mother", "auntie": "aunt", "grandpa": "grandfather", "grandma": "grandmother"}
_KIN |= {word: word for word in "father mother brother sister uncle aunt son daughter cousin nephew niece".split()}  # noqa: SIM905
_KIN |= {word: word for word in ("grandfather", "grandmother", "husband", "wife")}
_KIN_CALLED = late_re(rf"(?:\A|[,!?.;] ){_FOND}(?P<kin>{'|'.join(_KIN)})(?=[,!?.;])", re.IGNORECASE)
_NOT_CALLED = NOT_NAMES | set(_KIN) | {"god", "lord", "heaven", "heavens", "sir", "madam", "spirit"}
_MALE = late_re(r"\b(?:he|his|him|boy|lad|man|gentleman|father|brother|son|uncle|nephew)\b", re.IGNORECASE)
_FEMALE = late_re(r"\b(?:she|her|girl|lady|woman|mother|sister|daughter|aunt|niece)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Speaker:
    """Who speaks a paragraph.

    Attributes:
        phrase: how the paragraph calls the speaker: "the boy", "Hale's nephew", "Silas"; "" if it does not.
        names: names by which the others call the speaker.
        gender: by the words beside the phrase; "" if unknown.
    """

    phrase: str
    names: tuple[str, ...]
    gender: str


@dataclass(frozen=True)
class SpokenRole:
    """A role that a conversation gives: `role` is the holder's to the owner, or, if `role` is "", the phrase names it.

    Attributes:
        start, end: of the part of the text that says it.
    """

    role: str
    holder: Speaker
    owner: Speaker | None
    start: int
    end: int


@dataclass
class _Turn:
    start: int
    end: int
    phrase: str
    gender: str
    said_at: int
    called: list[tuple[str, int]]
    kin: list[tuple[str, int]]
    names: Counter[str] = field(default_factory=Counter)

    @property
    def speaker(self) -> Speaker:
        return Speaker(self.phrase, tuple(name for name, _ in self.names.most_common(1)), self.gender)


def read_spoken_roles(text: str, is_person: Callable[[str, bool], bool]) -> Iterator[SpokenRole]:
    """Yield the roles that the conversations in a text give to their speakers.

    Args:
        is_person: whether a name is that of a person; its second argument says whether it begins a sentence, where
            "Why" and "Christmas" have a capital, too.
    """
    turns = [_read_turn(text, found.start(), found.end(), is_person) for found in _PARAGRAPH.finditer(text)]
    pairs = [(first, second) for first, second in pairwise(turns) if first and second]
    for first, second in pairs:
        for turn, other in ((first, second), (second, first)):
            if turn.phrase != other.phrase or not turn.phrase:
                turn.names.update(name for name, _ in other.called)
    _share_names([turn for turn in turns if turn])
    for first, second in pairs:
        for turn, other in ((first, second), (second, first)):
            yield from _read_pair(turn, other)


def without_speakers(text: str) -> str:
    """Return a text without the names of those who speak in it, unless they speak of themselves.

    "'He is dead,' said Silas" says nothing of Silas.
    """
    return text if _OF_SPEAKER.search(text) else _SPEAKER_TAG.sub(" ", text)


def _share_names(turns: list[_Turn]) -> None:
    """Give each speaker the names of all paragraphs that call the speaker by the same phrase."""
    known: dict[str, Counter[str]] = {}
    for turn in turns:
        if turn.phrase and turn.phrase.lower() not in ("he", "she"):
            known.setdefault(turn.phrase.lower(), Counter()).update(turn.names)
    for turn in turns:
        turn.names = known.get(turn.phrase.lower(), turn.names)


def _read_pair(turn: _Turn, other: _Turn) -> Iterator[SpokenRole]:
    """Yield what two neighbours say: the name of who has the role in the phrase, and the role that one calls."""
    for _, position in other.called if turn.phrase else ():
        yield SpokenRole("", turn.speaker, None, *_span(turn.said_at, position))
    for kin, position in turn.kin:
        if turn.phrase or other.phrase:
            said_at = next((at for _, at in other.called), other.said_at)
            yield SpokenRole(kin, other.speaker, turn.speaker, *_span(position, said_at))


def _span(one: int, other: int) -> tuple[int, int]:
    return min(one, other), max(one, other)


def _read_turn(text: str, start: int, end: int, is_person: Callable[[str, bool], bool]) -> _Turn | None:
    """Read a paragraph; None if it has no direct speech."""
    written = text[start:end].replace("\n", " ")
    speeches = list(_SPEECH.finditer(written))
    if not speeches:
        return None
    narrated = _SPEECH.sub(lambda found: "\x01" + " " * (len(found[0]) - 1), written)
    tag = _TAG.search(narrated)
    phrase = (tag["behind"] or tag["before"]).strip() if tag else ""
    beside = narrated[tag.start() :].split("\x01")[0].split(".")[0] if tag else ""
    called, kin = [], []
    for speech in speeches:
        group = "single" if speech["single"] is not None else "double"
        offset = start + speech.start(group)
        called += [(name, offset + at) for name, at, opens in _names_called(speech[group]) if is_person(name, opens)]
        kin += [
            (_KIN[found["kin"].lower()], offset + found.start("kin")) for found in _KIN_CALLED.finditer(speech[group])
        ]
    if len({name for name, _ in called}) > 1:
        called = []
    return _Turn(start, end, phrase, _gender(beside), start + (tag.start() if tag else 0), called, kin)


def _names_called(speech: str) -> Iterator[tuple[str, int, bool]]:
    """Yield (name, position, whether it begins a sentence) of the names that a speech calls."""
    for found in _CALLED.finditer(speech):
        name, before = found["name"], re.findall(r"[a-z]+", speech[: found.start()])[-1:]
        opens = found.start("name") == 0 or speech[found.start()] in "!?."
        is_apposed = bool(before) and not opens and find_role(stem(before[0])) is not None
        if name.split()[0].lower() not in _NOT_CALLED and not is_apposed and (not opens or speech[found.end()] in ",!"):
            yield name, found.start("name"), opens


def _gender(beside: str) -> str:
    found = [
        (match.start(), gender)
        for pattern, gender in ((_MALE, "male"), (_FEMALE, "female"))
        if (match := pattern.search(beside))
    ]
    return min(found)[1] if found else gender_of(beside.strip())
