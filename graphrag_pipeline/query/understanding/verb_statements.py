"""Verbs of English sentences: which name is the subject or object of a verb, and which phrase belongs to it.

"A car stolen from a garage in Lyon has been found in a quarry": the garage belongs to "stolen", the quarry to "found".
A phrase belongs to the verb before it in the same clause, or to the verb behind it if no other one is before it. The
subject is before an active verb ("Ida Kern, who closed the pass"), and behind "by" with a passive. English alone.

Keep out: the verb of a question (`asked_verb.py`), and which statement answers it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from graphrag_pipeline.query.question import content_words, is_past_form, stem
from graphrag_pipeline.query.word_families import means_same
from graphrag_pipeline.text.late_patterns import late_re

_WORD = late_re(r"[^\W_]+(?:[-'\u2019][^\W_]+)*")
_BREAK = late_re(
    r"[;:.!?\u2014](?:\s|$)|,\s+(?:and|but|as|or|so|then)\b|\b(?:who|which|whose|that|while|when|after|before|because"
    r"|although|though|where|until|since|if)\b|\bas\s+\w+\s+as\b"
)
_DETERMINER = late_re(
    r"\b(?:the|an?|his|her|its|their|my|your|our|this|that|these|those|some|any|no|[\w.]+['\u2019]s?)\s+(?:\w+ly\s+)?\Z",
    re.IGNORECASE,
)
_BE_BEFORE = late_re(r"\b(?:is|are|was|were|be|been|being)(?:\s+(?:\w+ly|not|never|also|later|then|first|now))*\s+\Z")
_HELPERS_BEFORE = late_re(
    r"(?:\s+(?:has|have|had|will|would|can|could|may|might|must|shall|should|did|does|do|is|are|was|were|be|been|being"
    r"|not|never|also|later|then|first|now|soon|again|still|once|already|\w+ly))+\s*\Z"
)
_PRONOUN = r"\b(?:he|she|it|they|who|which|that)"
_RELATIVES = ("which", "that", "who", "whom")
_PRONOUN_SUBJECT = late_re(rf"{_PRONOUN}\W*\Z", re.IGNORECASE)
_KNOWN_SUBJECT = late_re(
    rf"(?:{_PRONOUN}|\b(?:the|this|that|his|her|its|their)\s+(?:[\w-]+\s+){{0,2}}[\w-]+)\W*\Z", re.IGNORECASE
)
_RELATIVE = late_re(r",?\s*\b(?:who|which)\s*\Z")
_COORDINATED = late_re(r",?\s+(?:and|but)(?:\s+then)?\s*\Z")
_INSERTED = late_re(r",(?:[^,;:.]|(?<=\d)[,.](?=\d)|\.(?=\s?[A-Z]))*,\s*\Z")
_RELATIVE_INSERTED = late_re(r",\s+(?:who|which|whose)\b[^,;:]*,\s*\Z")
_LINKED_BEFORE = late_re(
    r"\b(?:of|by|with|to|in|from|for|at|near|on|against|about|under|beside|than|as|like)\s+(?:the\s+)?(?:[a-z]+\s+)?\Z"
)
_BY = late_re(r"\s*(?:[\w'\u2019-]+\s+){0,3}?by\s+(?:the\s+|an?\s+|his\s+|her\s+|their\s+)?(?:[\w-]+\s+){0,3}\Z")
_BY_APPOSED = late_re(r"\s*by\s+(?:the|his|her|its|their)\s+(?:[\w-]+\s+){0,2}[\w-]+,\s+\Z")
_CLOSES = late_re(r"\s*(?:[.,;:!?)]|$)")
"""What is behind a name that stands beside a noun: "by the caretaker, Ted Loveridge."."""
_OBJECT = late_re(r"\s+(?:the\s+|an?\s+|his\s+|her\s+|their\s+)?(?:[a-z-]+\s+){0,3}\Z")
_NOUN_BEHIND = late_re(
    r"\s+(?!(?:and|or|of|in|at|on|by|to|from|for|with|about|after|before|as|who|when|while|was|is|were|are|had|has|the"
    r"|an?|his|her|their|near|because|but|into|over|under|against|during|that|where|last|next|this|again|yesterday)\b)"
    r"[a-z]+"
)


_PRONOUN_OBJECT = late_re(
    r"\s*(?:[a-z]+\s+)?(?:it|them|him|her|this|these|those|there|here|so)\b(?=\W*(?:$|[,.;:]|[a-z]))"
)
_PRONOUN_CLAUSE = late_re(r"\b(?:it|they|he|she|this|these|those)\b", re.IGNORECASE)
_STANDS_FOR = late_re(r"\b(?:it|they|he|she|its|their|his|her)\b|^\W*(?:This|These|Those)\b", re.IGNORECASE)
_THING = (
    r"\W*the\s+(?:buildings?|structure|company|firm|club|group|organi[sz]ation|vessel|ship|boat|animals?|work|book|site"
    r"|town|village|place|machine|device|disease|condition|drug|project|scheme)\b"
)
_THING_CLAUSE = late_re(rf"{_THING}\W*\Z", re.IGNORECASE)
_THING_OPENS = late_re(_THING, re.IGNORECASE)
"""A noun that names again what the sentence before names: "The building was given to the town"."""
_BY_BEHIND = late_re(r"[^,;:.!?]*\bby\b")


@dataclass(frozen=True)
class ObjectPart:
    """The part of a sentence that has the object of a verb; `goes_on` if a pronoun there stands for what is before."""

    text: str
    goes_on: bool


def find_verbs(text: str, verbs: frozenset[str]) -> list[re.Match[str]]:
    """Return the words of a sentence with the stem of one of some verbs, in order; no adjectives such as "the lost"."""
    return [
        found
        for found in _WORD.finditer(text)
        if found[0][:1].islower() and stem(found[0].lower()) in verbs and not _DETERMINER.search(text[: found.start()])
    ]


def has_verb(text: str) -> bool:
    """Return whether a part of a sentence has a past form or a participle that is a verb."""
    return next(_past_forms(text), None) is not None


def _past_forms(text: str) -> Iterator[re.Match[str]]:
    for found in _WORD.finditer(text):
        if is_past_form(found[0]) and not _DETERMINER.search(text[: found.start()]):
            yield found


def belongs_to(text: str, verb: re.Match[str], start: int, end: int) -> bool:
    """Return whether a phrase of a sentence belongs to a verb, not to another one of the sentence."""
    if verb.end() <= start:
        between = text[verb.end() : start]
        return not _BREAK.search(between) and not has_verb(between)
    if end > verb.start():
        return start <= verb.start()
    between, before = text[end : verb.start()], text[:start]
    opening = max((found.end() for found in _BREAK.finditer(before)), default=0)
    return not _BREAK.search(between) and not has_verb(between) and not has_verb(before[opening:])


def is_subject(text: str, verb: re.Match[str], start: int, end: int) -> bool:
    """Return whether a name does what a verb says: before an active verb, or behind "by" with a passive."""
    if verb.end() <= start:
        between = text[verb.end() : start]
        by = _BY.match(between) or (_BY_APPOSED.match(between) and _CLOSES.match(text, end))
        return is_past_form(verb[0]) and bool(by) and not _BREAK.search(between) and not _NOUN_BEHIND.match(text, end)
    if end > verb.start() or _BE_BEFORE.search(text[: verb.start()]):
        return False
    return _opens_clause(text, verb.start(), start, end)


def is_patient(text: str, verb: re.Match[str], start: int, end: int) -> bool:
    """Return whether something is done to a name: before a passive verb, or the object of an active one."""
    is_passive = bool(_BE_BEFORE.search(text[: verb.start()]))
    if verb.end() <= start:
        between = text[verb.end() : start]
        return not is_passive and bool(_OBJECT.match(between)) and not _LINKED_BEFORE.search(between)
    return is_passive and end <= verb.start() and _opens_clause(text, verb.start(), start, end)


def read_object_parts(text: str, verb: str) -> list[ObjectPart]:
    """Return the part of a sentence that has the object of each word that says a verb: what is done to what.

    That is what is behind an active verb, and the subject of a passive one or of a participle with "by".
    """
    return [read_object_part(text, found) for found in find_verbs(text, means_same(verb))]


def is_passive_at(text: str, verb: re.Match[str]) -> bool:
    """Return whether a form of "be" is before a verb."""
    return bool(_BE_BEFORE.search(text[: verb.start()]))


def read_object_part(text: str, verb: re.Match[str]) -> ObjectPart:
    """Return the part of a sentence that has the object of a verb (`read_object_parts`)."""
    behind = text[verb.end() :]
    ends = [found.start() for found in (*_BREAK.finditer(behind), *_past_forms(behind))]
    behind = behind[: min(ends, default=len(behind))]
    clause, opener, ahead = _read_clause(text, verb)
    is_relative, is_passive = opener in _RELATIVES, is_passive_at(text, verb)
    if not is_passive and not (is_past_form(verb[0]) and _BY_BEHIND.match(behind)):
        has_subject = bool(content_words(_HELPERS_BEFORE.sub("", clause)))
        antecedent = _after_verbs(ahead) if is_relative and opener != "who" and has_subject else ""
        return ObjectPart(f"{antecedent} {behind}", bool(_PRONOUN_OBJECT.match(behind)))
    subject = _HELPERS_BEFORE.sub("", clause) if is_passive else _after_verbs(clause)
    return _subject_part(subject, ahead, is_relative=is_relative)


def read_part_before(text: str, verb: re.Match[str]) -> ObjectPart:
    """Return the part of a sentence that has the subject of a verb: what is before it in its clause.

    That of a relative clause is what it follows: "her uncle, a smith who died".
    """
    clause, opener, ahead = _read_clause(text, verb)
    return _subject_part(_HELPERS_BEFORE.sub("", clause), ahead, is_relative=opener in _RELATIVES)


def _read_clause(text: str, verb: re.Match[str]) -> tuple[str, str, str]:
    """Return what is before a verb in its clause, the word that opens the clause, and the clause before it."""
    before = _without_inserted(text[: verb.start()])
    *earlier, (start, opener) = [(0, ""), *((found.end(), found[0]) for found in _BREAK.finditer(before))]
    clause = before[start:]
    ahead = before[earlier[-1][0] : start - len(opener)] if earlier else ""
    earlier_verbs = list(_past_forms(clause))
    if earlier_verbs and _COORDINATED.search(clause):  # "was found and repaired by"
        clause = clause[: earlier_verbs[-1].start()]
    return clause, opener.strip(), ahead


def _subject_part(subject: str, ahead: str, *, is_relative: bool) -> ObjectPart:
    if not content_words(subject) and ahead and not _PRONOUN_CLAUSE.search(subject):
        subject = _after_verbs(ahead) if is_relative else _before_verbs(ahead)
    return ObjectPart(subject, bool(_PRONOUN_CLAUSE.search(subject) or _THING_CLAUSE.match(subject)))


def _without_inserted(before: str) -> str:
    """Return what is before a verb without a relative clause between commas: "Frame, who had a post, will be"."""
    helpers = _HELPERS_BEFORE.search(before)
    end = helpers.start() if helpers else len(before)
    found = _RELATIVE_INSERTED.search(before[:end])
    return before[: found.start()] + " " + before[end:] if found else before


def _after_verbs(text: str) -> str:
    return text[max((found.end() for found in _past_forms(text)), default=0) :]


def _before_verbs(text: str) -> str:
    return text[: min((found.start() for found in _past_forms(text)), default=len(text))]


def goes_on(text: str) -> bool:
    """Return whether a clause has a pronoun, or begins with "the building", for what is named before."""
    return bool(_STANDS_FOR.search(text) or _THING_OPENS.match(text))


def goes_on_about(text: str, verb: re.Match[str], *, is_life: bool) -> bool:
    """Return whether the subject of a verb may be what a sentence before names: "it", "the ship", not "two miners".

    Args:
        is_life: whether only a pronoun may, since a noun such as "the miners" names others.
    """
    before = _HELPERS_BEFORE.sub("", text[: verb.start()])
    return bool((_PRONOUN_SUBJECT if is_life else _KNOWN_SUBJECT).search(before))


def _opens_clause(text: str, position: int, start: int, end: int) -> bool:
    """Return whether a name is the subject of the verb at a position."""
    before = _HELPERS_BEFORE.sub("", text[:position]).rstrip()
    if relative := _RELATIVE.search(before):
        before = before[: relative.start()]
    elif coordinated := _COORDINATED.search(before):
        earlier = list(_past_forms(before[: coordinated.start()]))
        if not earlier or _BREAK.search(before, earlier[-1].end(), coordinated.start()):
            return False
        return end <= earlier[-1].start() and _opens_clause(text, earlier[-1].start(), start, end)
    elif inserted := _INSERTED.search(before):
        if end == inserted.start() and not _LINKED_BEFORE.search(text[:start]):
            return True
        before = before.rstrip(", ")
    return len(before.rstrip(", ")) == end and not _LINKED_BEFORE.search(text[:start])
