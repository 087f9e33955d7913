"""Statements of who has a role and whose it is, as English sentences make them.

Behind the role: "his assistant, a Welshman called Rhys Morgan", "his uncle Scrooge", "the chair of the board is Ida".
In brackets: "Graham Penhale (Clerk)".
Before it: "Ned Garrick, landlord of the Blue Boar,", "Tom became the mate of the Petrel", "elected Ida as treasurer".
By a verb: "Karl married Ida", "Karl was followed by Ida", "Ida taught him".

The owner is a possessive, a phrase behind "of", or a pronoun. "His" is the only person named before it in the sentence,
or the one beside it ("Quill and his daughter"). Without one it is the person that a sentence before begins with or
names alone, and at the beginning of a document its title. "Its" is the thing that the sentence before begins with, else
the title. "My" is the speaker, "your" a person called by name in the
same speech. Two candidates give none. Keep out: which statement answers a question.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from graphrag_pipeline.query.question import content_words, is_past_form
from graphrag_pipeline.text.late_patterns import late_re

MAX_BACK = 3
"""Sentences that are read backwards for the name that a pronoun stands for."""
_UPPER = r"[A-Z\u00c0-\u00de]"
_WORD = rf"{_UPPER}(?:['\u2019]{_UPPER})?(?:[\w-]*\w)?(?:\.(?= {_UPPER}))?"
NAME = rf"{_WORD}(?: (?:(?:de|von|van|der|bin|al|la|le|du|of|the) )*{_WORD})*"
NOT_NAMES = frozenset(
    """he she it they i we you his her its their my our your the a an in on at after before when while but and so then
    there this that these those as if for from with by to who what where one no not all some many most both here yes oh
    inside behind under over upon once now later until since though although because during between mr mrs""".split()  # noqa: SIM905
)
_NOUN, _VERB = "\x01", "\x02"
"""What stands for the role or verb in a text, so that a pattern is compiled once."""
_ADJECTIVE = (
    r"(?:(?!(?:of|and|or|to|with|by|in|from|at|for|was|is|were|who|that|as|but|on|had|has|not|his|her|their|its|my|your"
    r"|which|when|while|whose|the|an?)\b)[a-z][\w-]* )"
)
_WHOSE = r"\b(?P<whose>[Hh]is|[Hh]er|[Tt]heir|[Ii]ts|[Mm]y|[Yy]our) "
_POSSESSIVE = rf"(?:(?P<owner>(?:[Tt]he )?(?:{NAME}|[a-z]+))['\u2019]s? |{_WHOSE})"
_OF = (
    r" (?:of |(?:to|at|in|on|aboard) (?=(?:the|an?) |[A-Z])|for (?=the |[A-Z]))"
    r"(?P<of>(?:the |an? |his |her )?(?:[^,.;:!?()]|(?<=Mr)\.|(?<=Mrs)\.|(?<=Dr)\.|(?<=wife),){2,60}?)"
    r"(?<! the)(?<! an)(?<! a)(?<! of)(?<!Mr)(?<!Mrs)(?<!Dr)"
)
_SMALL = r"(?:My|Your|Our|His|Her|Their|Its|The|An?|This|That|No|One)\b"
_ROLE = rf"(?P<modifiers>{_ADJECTIVE}{{0,3}}){_NOUN}"
_NP = rf"(?:{_POSSESSIVE}|\b(?P<article>[Tt]he|[Aa]n?) |^\W*(?:(?!{_SMALL}){_UPPER}[a-z]+ )?){_ROLE}"
_AN = rf"(?:the|an?) {_ADJECTIVE}{{1,3}}"
_CALLED = r"(?:named|called|by the name of) "
_APPOSED = rf"(?:, {_AN}|,? an? (?:[\w-]+ ){{1,5}}?{_CALLED}|,? {_CALLED}|,? an? [\w-]+(?: [\w-]+)?, |, )"
_IS = (
    r"(?: (?:since|from|in) \d{4})? (?:is|was|were|became|becomes|remains) "
    rf"(?:{_CALLED}|{_AN}(?:{_CALLED})?|an? [\w-]+, )?"
)
_BEHIND = late_re(
    rf"{_NP}(?:(?: {_AN}| )(?P<beside>{NAME})|(?:{_OF})?"
    rf"(?:{_APPOSED}(?P<apposed>{NAME})(?=\s*(?:[,.;:!?)(]|$| and\b))|{_IS}(?P<is>{NAME})))"
)
_BECAME = (
    r"(?:is|was|were|became|becomes|become|remained|remains|(?:had|has) been|served as|worked as|acted as|"
    r"(?:is|was|were) (?:elected|appointed|made|chosen|named|re-elected)(?: as)?)"
)
_BEFORE = late_re(
    rf"(?:\b[Tt]he )?(?P<holder>{NAME}|\b[Hh]e\b|\b[Ss]he\b)"
    r"(?:(?P<comma>, (?:(?:who (?:is|was)|then|now|once|for [a-z0-9 -]{3,20}) )?)"
    rf"|,?(?: who)? (?:later |then |soon )?{_BECAME}(?: (?:then|now|once|also|later|still))? "
    r"(?:(?:[\w.'\u2019-]+,? ){1,8}?and (?:later )?|(?:[a-z'\u2019-]+,? ){1,8}?(?<=, ))?| as )"
    rf"(?:{_POSSESSIVE}|(?P<article>[Tt]he|[Aa]n?) )?{_ROLE}(?:{_OF})?"
    r"(?P<end>\s*(?:[.;:!?)(]|,|$)| (?:until|from|since|who|when|in|for|while|but)\b"
    r"| and\b(?! (?:his|[A-Z])))"
)
_BRACKETED = late_re(
    rf"(?P<holder>{NAME}) \((?:(?P<article>[Tt]he) )?(?P<modifiers>{_ADJECTIVE}{{0,3}}){_NOUN}"
    rf"(?: of (?P<of>[^(),;]{{2,60}}))?[),;]"
)
_OWNED = late_re(
    rf"(?:(?P<owner>{NAME}|[a-z]+)['\u2019]s? (?:[\w-]+ ){{0,3}})?{_NOUN}(?: (?:of|to) (?:the )?(?P<of>{NAME}))?"
)
_POSSESSED = late_re(
    rf"\b(?:his|her|their|my|your|our|has|had|have|owns?|owned|keeps?|kept|with) (?:[\w-]+ ){{0,3}}{_NOUN}",
    re.IGNORECASE,
)
_LOCATES = late_re(r"\b(?:in|at|from|near|into)\s+\Z")
_PAST = late_re(r"\b(?:was|were|became|had been|former|late|first|until)\b")
_SAYS = r"(?:said|says|cried|asked|replied|answered|returned|added|whispered|exclaimed)"
_SPEAKS = late_re(rf"['\u2019\"\u201d] {_SAYS} (?:old |young )?{NAME}\Z")
_GOES_ON = late_re(r"[ ,]['\u2018\"\u201c]\w")
_SPEAKER = late_re(rf"\b{_SAYS} (?P<name>{NAME})|(?P<before>{NAME}|\b[Hh]e|\b[Ss]he) {_SAYS}\b")
_VERBS = {
    "spouse": r"married",
    "successor": r"(?:succeeded|followed|replaced|succeeds|follows|replaces)",
    "teacher": r"(?:taught|tutored)",
    "master": r"apprenticed",
    "fianc\u00e9": r"engaged",
}
_ONE = rf"(?:(?:the |an? )?{_ADJECTIVE}{{0,2}})(?P<%s>{NAME}|\b(?:[Hh]e|[Ss]he|him|her)\b)"
_HAD = r"(?:,? who|,)?(?: (?:had|has|later|then|soon))*"
_ACTIVE = late_re(rf"{_ONE % 'holder'}{_HAD} {_VERB}(?: in \d{{4}})?(?: to)? {_ONE % 'owner'}")
_PASSIVE = late_re(
    rf"{_ONE % 'owner'}{_HAD} (?:was|is|been) (?:\w+ )?{_VERB}(?: for [^,.]{{3,20}}| in \d{{4}})? (?:by|to) "
    + _ONE % "holder"
)
_WHEN = r"(?:In|On|At|After|Before|For|By) [^,.]{1,30},? "
_PRONOUN_FIRST = late_re(rf"\W*(?:{_WHEN})?(?P<word>he|she|his|her|they|their)\b", re.IGNORECASE)
_MALE = ("his", "he", "him", "mr", "sir", "lord", "king", "prince", "duke", "count", "emperor", "uncle", "grandfather")
_FEMALE = ("her", "she", "mrs", "miss", "ms", "lady", "dame", "queen", "princess", "duchess", "aunt", "grandmother")
_GENDERS = dict.fromkeys(_MALE, "male") | dict.fromkeys(_FEMALE, "female")
_THING = late_re(
    rf"\W*(?P<thing>(?:The|An?) (?=(?P<words>[a-z][a-z -]*))|(?:The |An? )?(?P<name>{NAME}(?:['\u2019] {NAME})?))"
)
_NEXT_THING = late_re(rf"\b(?P<word>\w+) (?:(?:the|an?|another) [\w]|{_UPPER})")
_LINKS = frozenset(
    "about after at before behind between by during for from in into near of on since to under until with".split()  # noqa: SIM905
)
_THING_ENDS = frozenset("is was has had will would can could may must in at on of near and".split())  # noqa: SIM905
MAX_THING_WORDS = 3
_PRONOUNS = ("he", "him", "his", "she", "her", "their")


@dataclass(frozen=True)
class RoleStatement:
    """A role that a sentence gives to a person.

    Attributes:
        holder: name of who has it.
        owner: name or phrase of whose it is; "" if the sentence does not say.
        gender: of the owner, if a pronoun or a title says it.
        modifiers: words before the role.
        is_back: whether a sentence before says who a pronoun is.
        is_plain: whether the holder is beside the role, with no verb between.
        is_past: whether it says that the holder had the role before.
    """

    holder: str
    owner: str
    gender: str
    modifiers: frozenset[str]
    is_back: bool
    is_plain: bool
    is_past: bool = False


def gender_of(name: str) -> str:
    """Return the gender that the title of a name says, or ""."""
    return _GENDERS.get(name.split()[0].lower().rstrip("."), "") if name else ""


class RoleReader:
    """Reader of the statements in the sentences of one text unit.

    Args:
        texts: the sentences, each on one line.
        title: of the document; "" if the text unit is not its beginning.
        is_person: whether a name may be that of a person.
    """

    def __init__(self, texts: Sequence[str], title: str, is_person: Callable[[str], bool]) -> None:
        self._texts = texts
        self._title = re.sub(r" \(.*\)$", "", title)
        self._is_person = is_person

    def read(self, i: int, role: str, modifiers: frozenset[str] = frozenset()) -> Iterator[RoleStatement]:
        """Yield the statements of the role in sentence i.

        Args:
            modifiers: words before the role, which a title may write with capitals: "the Harbour Engineer".
        """
        text = self._texts[i]
        before = "".join(rf"{re.escape(word)}\s+|" for word in sorted(modifiers))
        for found in re.finditer(rf"\b((?:{before}(?!))*){re.escape(role)}\b(?!['\u2019-])", text, re.IGNORECASE):
            marked = f"{text[: found.start()]}{found[1].lower()}{_NOUN}{text[found.end() :]}"
            yield from (
                list(self._read_bracketed(marked)) or list(self._read_before(i, marked)) or self._read_behind(i, marked)
            )
        if role in _VERBS:
            for found in re.finditer(rf"\b{_VERBS[role]}\b", text):
                yield from self._read_verb(i, role, f"{text[: found.start()]}{_VERB}{text[found.end() :]}")

    def _read_bracketed(self, text: str) -> Iterator[RoleStatement]:
        """Yield the office in brackets behind a name, as in lists of those present: "Graham Penhale (Clerk)"."""
        for found in _BRACKETED.finditer(text):
            modifiers = frozenset(found["modifiers"].lower().split())
            yield RoleStatement(found["holder"], self._in_full(found["of"] or ""), "", modifiers, False, True)

    def _read_behind(self, i: int, text: str) -> Iterator[RoleStatement]:
        if found := _BEHIND.search(text):
            holder = found["beside"] or found["apposed"] or found["is"]
            yield from self._state(i, found, holder, not found["is"], found["of"] or "")

    def _read_before(self, i: int, text: str) -> Iterator[RoleStatement]:
        for found in _BEFORE.finditer(text):
            rest = text[found.start("end") :]
            is_list = found["comma"] and found["article"] and re.match(r",? and (?:the|an?|his|her) ", rest)
            if is_list or (found["comma"] and re.match(rf",? (?:{_AN})?{NAME}(?:,|$)", rest)):
                continue
            name, is_back = self._resolve(i, found["holder"], found.start())
            of = found["of"] or ""
            if of == of.lower() and (named := re.match(rf", ({NAME})[,.;]", rest)):
                of = named[1]
            if name:
                yield from self._state(i, found, name, bool(found["comma"]), of, is_back)

    def _read_verb(self, i: int, role: str, text: str) -> Iterator[RoleStatement]:
        for form in (_PASSIVE,) if role in ("master", "fianc\u00e9") else (_ACTIVE, _PASSIVE):
            if found := form.search(text):
                holder, back = self._resolve(i, found["holder"], found.start("holder"))
                owner, is_back = self._resolve(i, found["owner"], found.start("owner"), holder)
                if holder and owner:
                    gender = _GENDERS.get(found["owner"].lower(), "") or gender_of(owner)
                    yield RoleStatement(holder, self._in_full(owner), gender, frozenset(), back or is_back, False)

    def _state(
        self, i: int, found: re.Match[str], holder: str, is_plain: bool, of: str, is_back: bool = False
    ) -> Iterator[RoleStatement]:
        owner, whose = found["owner"] or of, (found["whose"] or "").lower()
        gender = _GENDERS.get(whose, "") or gender_of(owner)
        if whose:
            owner, from_before = self._owner(i, whose, found.start("whose"), holder)
            is_back = is_back or from_before
            if not owner:
                return
        if holder.split()[0].lower() not in NOT_NAMES or holder.startswith(("Mr ", "Mrs ")):
            modifiers = frozenset(found["modifiers"].lower().split())
            owner = re.sub(r"['\u2019]s?$", "", owner)
            is_past = _PAST.search(found[0]) is not None
            yield RoleStatement(
                self._in_full(holder), self._in_full(owner), gender, modifiers, is_back, is_plain, is_past
            )

    def _in_full(self, name: str) -> str:
        """Return the title of the document for a part of it, such as the surname of the person it is about.

        "The quarry" is no part of a headline that has the word, too.
        """
        words, title = content_words(name), content_words(self._title)
        is_name = bool(words) and words < title and name.split()[-1] != name.split()[-1].lower()
        return self._title if is_name and self._is_person(self._title) else name

    def _owner(self, i: int, whose: str, position: int, holder: str) -> tuple[str, bool]:
        if whose == "my":
            return self._speaker(i, holder)
        if whose == "your":
            return self._addressed(i, position, holder), False
        if whose == "its":
            text, is_first = self._texts[i][:position], not self._texts[i][:position].strip()
            thing = leading_thing(self._texts[i - 1] if is_first and i else text)
            return (thing, is_first) if thing else (self._title, False)
        return self._resolve(i, whose, position, holder)

    def _resolve(self, i: int, word: str, position: int, other: str = "") -> tuple[str, bool]:
        """Return the person that a name or pronoun stands for, "" if unknown, and whether a sentence before says so."""
        if word.lower() not in _PRONOUNS:
            return word, False
        text = self._texts[i][:position]
        before = [(end, name) for end, name in self._persons(i, other) if end <= position and not _speaks(text, end)]
        opening = _PRONOUN_FIRST.match(text)
        if before and not (opening and opening["word"].lower() == word.lower()):
            if re.fullmatch(r",? (?:and|with) (?:[a-z]+ )?", text[before[-1][0] :]):
                return before[-1][1], False
            return "" if opening else self._only([name for _, name in before]), False
        return self._subject_before(i, other), True

    def _subject_before(self, i: int, other: str) -> str:
        for back in range(i - 1, max(i - 1 - MAX_BACK, -1), -1):
            text = self._texts[back]
            leading = leading_name(text)
            if leading:
                return "" if content_words(leading) <= content_words(other) else leading
            persons = [name for _, name in self._persons(back, other)]
            if persons and not _PRONOUN_FIRST.match(text):
                return self._only(persons)
        return self._title if i <= MAX_BACK else ""

    def _persons(self, i: int, other: str = "") -> list[tuple[int, str]]:
        """Return (end, name) of the persons in a sentence, and of the name at its beginning, without another one."""
        text = self._texts[i]
        leading, found = leading_name(text), []
        for match in re.finditer(rf"\b{NAME}", text):
            name = match[0]
            if name.split()[0].lower() in NOT_NAMES or content_words(name) <= content_words(other):
                continue
            if name == leading or (self._is_person(name) and not _LOCATES.search(text[: match.start()])):
                found.append((match.end(), name))
        return found

    @staticmethod
    def _only(names: Sequence[str]) -> str:
        """Return the longest of names that are all parts of it, else ""."""
        longest = max(names, key=len)
        return longest if all(content_words(name) <= content_words(longest) for name in names) else ""

    def _speaker(self, i: int, holder: str) -> tuple[str, bool]:
        found = _SPEAKER.search(self._texts[i])
        word = (found["name"] or found["before"]) if found else ""
        if word.lower() in ("he", "she"):
            return self._subject_before(i, holder), True
        return (word, False) if word.split()[:1] and word.split()[0].lower() not in NOT_NAMES else ("", False)

    def _addressed(self, i: int, position: int, holder: str) -> str:
        """Return who is called by name behind "your" in the same speech, or before it in the same paragraph."""
        speech = " ".join([self._texts[i][position:], *self._texts[i + 1 : i + 1 + MAX_BACK]])
        speech = re.split(r"(?<=[.!?,])['\u2019\"\u201d](?=\s|$)", speech)[0]
        before = " ".join([*self._texts[max(i - 1, 0) : i], self._texts[i][:position]])
        found = re.search(rf", (?P<name>{NAME})[?!.,]?$", speech) or re.search(rf", (?P<name>{NAME})[?!.,]", before)
        return found["name"] if found and not content_words(found["name"]) <= content_words(holder) else ""


def owners_of(role: str, text: str) -> list[str]:
    """Return the owner of each mention of a role in a text: a name, "his" for any pronoun or "has", or ""."""
    owners = []
    for found in re.finditer(rf"\b{re.escape(role)}(?:s|es)?\b", text, re.IGNORECASE):
        near = f"{text[max(found.start() - 60, 0) : found.start()]}{_NOUN}{text[found.end() :][:60]}"
        owned = _OWNED.search(near)
        name = (owned["owner"] or owned["of"] or "") if owned else ""
        owners.append(name or ("his" if _POSSESSED.search(near) else ""))
    return owners


def _speaks(text: str, end: int) -> bool:
    """Return whether the person named before `end` goes on speaking: "his" is then another one."""
    return bool(_SPEAKS.search(text[:end]) and _GOES_ON.search(text, end))


def leading_name(text: str) -> str:
    """Return the name at the beginning of a sentence, "" without one."""
    found = re.match(rf"\W*(?:In \d{{4}},? |Old |Young |Little )?(?P<name>{NAME})", text)
    return found["name"] if found and found["name"].split()[0].lower() not in NOT_NAMES else ""


def leading_thing(text: str) -> str:
    """Return the thing at the beginning of a sentence: a name, or the words before a verb ("The paper mill has").

    "" if "its" may stand for another one behind the verb: "The museum bought the mill."
    """
    found = _THING.match(text)
    if found is None or any(
        one["word"].lower() not in _LINKS for one in _NEXT_THING.finditer(text, found.end("thing"))
    ):
        return ""
    if found["name"]:
        return found["name"] if found["name"].split()[0].lower() not in NOT_NAMES else ""
    words = found["words"].split()
    end = next((i for i, word in enumerate(words) if word in _THING_ENDS or is_past_form(word)), len(words))
    return " ".join(words[:end]) if end <= MAX_THING_WORDS else ""
