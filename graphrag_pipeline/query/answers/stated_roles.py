"""The holder of a role, from sentences that state it in a fixed form: "Her husband, the bus conductor Frank Ellis".

Forms, with the owner A of the question ("Who is A's wife?"), the role R, the other person's role I, and a name N:
- "A's R, N", and "his R, N" or "her R was the nurse N" in a sentence that is about A;
- "N's I, A", and "his I A" in a sentence that is about N: "Fred came in to his uncle Scrooge" makes Fred the nephew;
- for a spouse, "he married N" in a sentence that is about A;
- for a parent, "she was the daughter of King N and M" or "... of N and his wife M" in a sentence that is about A.

A sentence is about the name at its beginning. If it begins with a pronoun, it is about the name at the beginning of the
sentence before it, and so on; sentences without a name between them are passed over. At the beginning of a document it
is about the title. The gender of the role must be that of the
pronoun. Sentences that give different names give none. English alone. Keep out: names by nearness (`named_answers.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import content_words, stem
from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.query.selection.passages import Sentence, sentences_of
from graphrag_pipeline.query.understanding.asked_name import AskedName
from graphrag_pipeline.query.understanding.roles import Role, find_role

MAX_BACK = 8
"""Sentences that are read backwards for the name that a pronoun stands for."""
_NAME = (
    r"(?P<name>(?:(?:Mrs?|Miss|Dr|Sir|Lady|Lord|Dame|Captain|King|Queen|Count|Duke|Prince|Princess)\.? )?"
    r"[A-Z\u00c0-\u00de](?:\.|[\w'\u2019-]*\w)(?: (?:(?:de|von|van|der|bin|al|la|le|du) )*"
    r"[A-Z\u00c0-\u00de](?:\.(?= [A-Z])|[\w-]*\w))*)"
)
_LONG_NAME = r"[A-Z\u00c0-\u00de][\w'\u2019-]*(?: (?:(?:de|von|van|der|bin|al|of|the) )*[A-Z\u00c0-\u00de][\w-]*)*"
_PARENTS = re.compile(
    rf"\b(?:was|is|,|as) (?:the |a )?(?:[\w-]+ )?(?:son|daughter|child) of (?P<title>King |Count |Duke |Emperor |Sir )?"
    rf"(?P<father>{_LONG_NAME})(?:,[^,.]{{1,40}},)? and (?P<wife>his (?:[a-z]+ )?wife,? )?(?P<mother>{_LONG_NAME})"
)
_FILLER = (
    r"(?:,? (?:(?:was|is) )?(?:(?:the|an?) (?:(?!of\b|and\b|to\b|with\b|by\b|in\b|from\b|at\b|for\b)[a-z-]+ ){1,3}"
    r"|an? [\w-]+, )|,? (?:(?:was|is|named|called|old|young|little) )?)"
)
_SUBJECT = re.compile(rf"\W*(?:In \d{{4}},? |Old |Young |Little )?{_NAME}")
_PRONOUN = re.compile(r"\W*(?:(?:In|On|At|After|Before) [^,.]{1,30},? )?(?:he|she|his|her|they|their)\b", re.IGNORECASE)
_NOT_NAMES = frozenset(
    """he she it they his her its their the a an in on at after before when while but and so then there this that these
    those as if for from with by to my your our who what where one no not all some many most""".split()  # noqa: SIM905
)
_GENDERS = {"his": "male", "he": "male", "her": "female", "she": "female"}
_SPOUSES = frozenset(map(stem, ("husband", "wife", "spouse")))


@dataclass(frozen=True)
class StatedRole:
    """A name, and the sentence that states its role, behind the one that says whose pronoun it is, if there is one."""

    name: str
    sentences: tuple[Sentence, ...]


def find_stated_role(index: IndexReader, asked: AskedName, units: Sequence[TextUnitRecord]) -> StatedRole | None:
    """Return the holder of the role that a question asks for; None if no sentence states one.

    The name is empty if sentences disagree.
    """
    if not asked.is_role or len(asked.focus) != 1 or not asked.anchors:
        return None
    word = next(iter(asked.focus))
    found = [stated for unit in units for stated in _read_unit(asked, word, find_role(word), unit)]
    found = [stated for stated in found if _is_person(index, stated.name)]
    if not found:
        return None
    longest = max(found, key=lambda stated: len(stated.name))
    words = content_words(longest.name)
    return longest if all(content_words(stated.name) <= words for stated in found) else StatedRole("", ())


def _is_person(index: IndexReader, name: str) -> bool:
    """Return whether a name is that of a person in the index, or unknown and of several words."""
    found = index.snapshot.take("entities", index.names.find(name), ["type"])
    return any(entity["type"] == "PERSON" for entity in found) or (not found and " " in name)


def _read_unit(asked: AskedName, word: str, role: Role | None, unit: TextUnitRecord) -> Iterator[StatedRole]:
    sentences = sentences_of(unit)
    for i, sentence in enumerate(sentences):
        for name, gender, is_back in _read(asked, word, role, sentences, i):
            words = content_words(name)
            is_other = not words & asked.anchors or (len(words) > 1 and not words <= asked.anchors)
            if is_other and name.split()[0].lower() not in _NOT_NAMES and _fits(role, gender):
                yield StatedRole(name, (*((sentences[i - 1],) if is_back and i else ()), sentence))


def _fits(role: Role | None, gender: str) -> bool:
    return not gender or role is None or not role.gender or role.gender == gender


def _read(
    asked: AskedName, word: str, role: Role | None, sentences: Sequence[Sentence], i: int
) -> Iterator[tuple[str, str, bool]]:
    """Yield (name, gender that the sentence gives it, whether a pronoun leads back) of each form in a sentence."""
    text = sentences[i].folded
    subject, is_back = _subject_of(sentences, i)
    is_about = asked.anchors <= content_words(subject)
    role_word = rf"{re.escape(word[: max(len(word) - 1, 3)])}\w*"
    for found in re.finditer(rf"(?P<owner>[\w'\u2019 -]+?)['\u2019]s? {role_word}{_FILLER}{_NAME}", text):
        if asked.anchors <= content_words(" ".join(found["owner"].split()[-4:])):
            yield found["name"], "", False
    if is_about:
        for found in re.finditer(rf"(?<!and )\b(?:[Hh]is|[Hh]er) {role_word}{_FILLER}{_NAME}", text):
            yield found["name"], "", is_back
        if word in _SPOUSES:
            for found in re.finditer(rf"\bmarried (?:to )?(?:the )?(?:[a-z-]+ )?{_NAME}", text):
                yield found["name"], "", is_back
        if role and role.word in ("father", "mother"):
            for found in _PARENTS.finditer(text):
                if found["title"] or found["wife"]:
                    yield found[role.word], "", is_back
    for inverse in role.inverses if role else ():
        yield from _read_inverse(asked, inverse, word, text, subject, is_back)


def _read_inverse(
    asked: AskedName, inverse: str, word: str, text: str, subject: str, is_back: bool
) -> Iterator[tuple[str, str, bool]]:
    """Yield the forms in which the owner of the question has the other person's role."""
    if word in _SPOUSES or inverse in ("cousin", "partner", "friend"):
        for found in re.finditer(rf"{_NAME}['\u2019]s? {inverse}{_FILLER}{_NAME.replace('name', 'of', 1)}", text):
            if asked.anchors <= content_words(found["of"]):
                yield found["name"], "", False
    if not subject or asked.anchors <= content_words(subject):
        return
    for found in re.finditer(rf"(?<!and )\b(?P<whose>[Hh]is|[Hh]er) {inverse}{_FILLER}{_NAME}(?! (?:and|or) )", text):
        if asked.anchors <= content_words(found["name"]):
            yield subject, _GENDERS[found["whose"].lower()], is_back


def may_be_about(anchors: frozenset[str], text: str) -> bool:
    """Return whether a sentence begins with a name that has one of some words, or with a pronoun."""
    name = leading_name(text)
    return bool(content_words(name) & anchors) if name else _PRONOUN.match(text) is not None


def leading_name(text: str) -> str:
    """Return the name at the beginning of a sentence, "" without one."""
    found = _SUBJECT.match(text)
    return found["name"] if found and found["name"].split()[0].lower() not in _NOT_NAMES else ""


def _subject_of(sentences: Sequence[Sentence], i: int) -> tuple[str, bool]:
    """Return the name that a sentence is about, "" if unknown, and whether a sentence before it says so."""
    for back in range(min(i, MAX_BACK) + 1):
        text = sentences[i - back].folded
        if name := leading_name(text):
            return name, back > 0
        passes = back > 0 and not re.search(r"(?<=[a-z,;] )[A-Z\u00c0-\u00de]\w", text)
        if not _PRONOUN.match(text) and not passes:
            return "", False
    unit = sentences[i].unit
    is_beginning = i <= MAX_BACK and unit.start == 0
    return (re.sub(r" \(.*\)$", "", unit.document_title), False) if is_beginning else ("", False)
