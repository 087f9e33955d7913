"""Words of a question that texts do not have, nor any word of near meaning: the sign that an index has no answer.

"What is Scrooge's telephone number?" is near to many texts by its names, and none says "telephone" or anything like it.
A word is missing if no text has its stem or a word of its family, no sentence near to another word of the question says
it by another word (`word_families.py`) or as an amount, and no word of the texts has a cosine of `NEAR` or more to it
(static vectors). Words such as "main" are never missing. Names of entities are left out: whether a text has a name says
little about the rest of the question. A question is not covered if the missing words have at least `MISSING_SHARE` of
the weight of its other words. The weight of a word is its rarity among the sentences, twice that of a missing word with
a capital, and half that of a missing verb besides that of "who". So one missing word of a long question does not count.
Nor does a missing verb alone ("resigned"), unless texts state it by itself ("born"). Such a verb, and the noun behind
"which", must be in a document with the names of the question. Of "Whom did Bob love, and who haunted Scrooge?" it is
enough if one part is covered. A sentence that is the question itself does not count. A question for a measure ("How
tall is Scrooge?") needs a sentence with one beside its subject.

Of a question for the holder of a role ("Scrooge's dentist") only texts with the names count, since another person's
dentist answers nothing. It is also missing if each mention names another owner; "the company's" names none. A role with
a known direction (`roles.py`) is missing unless the texts have it, the role of the other person, or its verb: vectors
put all relatives near to each other.

Chosen on the sample and on three texts written for it. `NEAR`: of the words of questions that these texts answer in
other words, "earn" has 0.68 and "employer" 0.72; of words without an answer, "telephone" has 0.57 and "computer" 0.58.
Vectors and stems are English, so a question in another language is always covered. Keep out: what an answer says
instead.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import (
    content_words,
    is_english,
    is_function_word,
    repeats_question,
    stem,
    topic_words,
)
from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.query.understanding.asked_role import AskedRole, read_asked_role
from graphrag_pipeline.query.understanding.asked_verb import read_asked_verb
from graphrag_pipeline.query.understanding.definitions import read_short_form
from graphrag_pipeline.query.understanding.question_analysis import kind_of, read_name_words
from graphrag_pipeline.query.understanding.role_statements import owners_of
from graphrag_pipeline.query.understanding.roles import GROUPS, find_role
from graphrag_pipeline.query.word_families import family_of, is_adverb, is_said_by_itself, said_by, says_little
from graphrag_pipeline.text.currencies import CURRENCIES
from graphrag_pipeline.text.extractive import words_of
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.sentences import split_sentences

NEAR = 0.6
NEAR_NAME = 0.75
"""The same for a word with a capital and for an office: vectors put all countries and all trades near to each other."""
MISSING_SHARE = 0.4
VERB = 0.5
"""Weight of a missing verb of the question: texts say the same with many verbs ("save", "rescue", "refloat").
Of "Who cast the bell?" and "How much does it weigh?" the verb is what is asked, so it has its full weight."""
N_NEAR = 3
"""Sentences on each side in which a word of the question makes a text one about it."""
_HOW_MUCH = late_re(r"\W*how much\b", re.IGNORECASE)
_WHICH = late_re(
    r"\W*(?:which|what)\s+([a-z]+)\s+(?:do|does|did|has|have|had|is|was|are|were|will|would|can|could)\b", re.I
)
_NAMED_KINDS = frozenset(
    """age bank book church city club colour color company country date day drug firm group hospital hotel island job
    kind lake land language man month mountain name nationality newspaper number paper part party people person place
    prize province region religion river road school sea season ship state street team time town village way woman
    year""".split()  # noqa: SIM905
)
"""Nouns that a name or a number answers without them: "Which town did Ida visit?"."""
_HOW = late_re(r"\W*how (long|far|often|old|tall|high|wide|broad|deep|heavy|large|big|fast)\b", re.IGNORECASE)
_AMOUNTS = tuple(
    (frozenset(map(stem, words.split())), late_re(said, re.IGNORECASE))
    for words, said in (
        (
            "price cost fee money sum pay worth budget reward fine penalty expensive",
            r"[$\u00a3\u20ac]\s?\d|\b\d[\d.,]*\s+(?:million|billion)\b"
            rf"|\b(?:\d[\d.,]*|\w+)\s+(?:[a-z]+\s)?{CURRENCIES}\b",
        ),
        ("temperature hot cold heat", r"\bdegrees?\b|\d\s?\u00b0"),
        (
            "fast speed slow quick",
            r"\b(?:miles?|kilomet(?:er|re)s?|km|knots?|met(?:er|re)s?)\s+(?:an?|per)\s+\w+|\bkm/h|\bmph\b",
        ),
    )
)
"""Words for an amount, and how a text gives it without them."""
_CEREMONY = late_re(
    r"\b(?:(perform|conduct|hold|lead)\w*\s+(?:the|an?)\s+)?[a-z]+(?:ing|ion|al)\s+(ceremony)\b", re.IGNORECASE
)
"""A phrase of which only the middle says what happens: "perform the opening ceremony"."""
_NEXT_QUESTION = late_re(
    r"\?\s+(?=\w)|,?\s+and\s+(?=(?:who|whom|whose|what|when|where|which|why|how)\b)", re.IGNORECASE
)
_COUPLE = late_re(r"\bMr\.?\s+and\s+Mrs\.?\s+(?P<name>[A-Z][\w-]+)")
_CAPITAL = late_re(r"(?<=[\s(\"'\u2018\u201c-])[A-Z\u00c0-\u00de][\w-]+")
_LENGTH = r"(?:feet|foot|ft|inch(?:es)?|met(?:er|re)s?|centimet(?:er|re)s?|kilomet(?:er|re)s?|m|cm|km|miles?|yards?)"
_WEIGHT = r"(?:kilo(?:gram)?s?|kg|grams?|pounds?|stones?|tons?|tonnes?|ounces?|hundredweight)"
_COUNTED = (
    r"(?:\d[\d.,]*|\w+teen|\w+ty(?:-\w+)?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|half|an?"
    r"|hundred|thousand)"
)
_Said = tuple[str, frozenset[str]]
_MEASURES = tuple(
    (late_re(rf"how (?:{asked})\b", re.IGNORECASE), late_re(value, re.IGNORECASE))
    for asked, value in (
        ("tall|high", rf"\b(?:tall|height|{_COUNTED}[\s-]+{_LENGTH})\b(?! (?:tall|high)er)"),
        ("wide|broad|deep", rf"\b(?:wide|broad|width|deep|depth|{_COUNTED}[\s-]+{_LENGTH})\b"),
        ("heavy", rf"\b(?:weigh\w*|heavy|{_COUNTED}[\s-]+{_WEIGHT})\b"),
        (
            "old",
            rf"\b(?:aged?|born|birthday|{_COUNTED}[\s-]+(?:years?|months?|weeks?)"
            r"|(?:in|since|from|of) (?:1\d{3}|20\d\d))\b",
        ),
    )
)


@dataclass(frozen=True)
class Coverage:
    """How far texts have the words of a question.

    Attributes:
        missing: the missing words, as the question writes them in small letters, in alphabetical order.
        share: of the weight of the words besides names, 0-1.
        verb: of the question, unless it asks who does something; "" without one.
    """

    missing: tuple[str, ...] = ()
    share: float = 0.0
    verb: str = ""

    @property
    def is_of_verb(self) -> bool:
        """Whether no word is missing but the verb of the question."""
        return set(self.missing) <= {self.verb}

    @property
    def is_covered(self) -> bool:
        """Whether the texts may have what is asked. They say "resigned" in many ways, so it alone is not enough."""
        is_open = bool(self.verb) and self.is_of_verb and not is_said_by_itself(self.verb)
        return self.share < MISSING_SHARE or is_open

    def describe(self) -> str:
        """Return the missing words in quotation marks, such as `"telephone" or "number"`."""
        return " or ".join(f'"{word}"' for word in self.missing)


def texts_of(units: Sequence[TextUnitRecord]) -> list[str]:
    """Return text units under the titles of their documents, as `measure_coverage` reads them."""
    return [f"{unit.document_title}\n\n{unit.text}" for unit in units]


def measure_coverage(index: IndexReader, question: str, texts: Sequence[str]) -> Coverage:
    """Return which words of a question texts do not have; of several questions in one, of the one they cover best."""
    if not texts or not is_english(question):
        return Coverage()
    sentences_of = {text: _read_sentences(text) for text in texts}
    parts = filter(None, _NEXT_QUESTION.split(question))
    measured = (_measure_part(index, part, texts, sentences_of) for part in parts)
    return min(measured, key=lambda coverage: coverage.share)


def _read_sentences(text: str) -> list[_Said]:
    return [(text[start:end], words_of(text[start:end])) for start, end in split_sentences(text)]


def _measure_part(
    index: IndexReader, question: str, texts: Sequence[str], sentences_of: Mapping[str, Sequence[_Said]]
) -> Coverage:
    """Measure one question; `sentences_of` has the sentences of each text, with their words."""
    names = read_name_words(index, question)
    measured = _HOW.match(question)
    sought = topic_words(question) - names - content_words(measured[1] if measured else "")
    asking = {"stand", "mean", "short"} if read_short_form(question) else set()
    idle = {stem(word) for word in words_of(question) if is_adverb(word)} - _capital_stems(question)
    idle |= {stem(word) for found in _CEREMONY.finditer(question) for word in found.groups() if word}
    sought = frozenset(word for word in sought - asking - idle if not says_little(word))
    role = read_asked_role(question)
    sought -= {"new", "current", "present"} if role and role.is_now else set()
    about = _about(question, role, texts)
    said = [one for text in about for one in sentences_of[text] if not repeats_question(question, one[0])]
    if role and role.head in ("wife", "husband", "spouse") and any(_is_couple(role, one) for one, _ in said):
        return Coverage()
    if unsaid := _find_unsaid(question, role, [sentence for sentence, _ in said]):
        return Coverage((unsaid,), 1.0)
    if unspoken := _find_lost(index, question, texts):
        return Coverage((unspoken,), 1.0)
    sentences = [words for _, words in said]
    stems = Counter(held for words in sentences for held in set(map(stem, words)))
    absent = sorted(word for word in words_of(question) if stem(word) in sought and not stems[stem(word)])
    narrow = {word.lower() for word in _CAPITAL.findall(question)} | ({role.head} if role else set())
    narrow |= {word for word in absent if is_said_by_itself(word)}
    said_near = _count_said_near(absent, content_words(question), said)
    absent = [word for word in absent if not said_near.get(word)]
    missing = _find_missing(index, absent, narrow, frozenset().union(*sentences), frozenset(stems))
    if not missing:
        return Coverage()
    if role and role.head in missing:
        return Coverage(tuple(missing), 1.0)
    lost_names = _capital_stems(question).intersection(map(stem, missing))
    n_near = Counter({stem(word): n for word, n in said_near.items()})
    weights = {
        word: math.log(1 + (len(sentences) + 8) / ((stems[word] or n_near[word]) + 0.5))
        * (2 if word in lost_names else 1)
        for word in sorted(sought)
    }
    asked = read_asked_verb(question)
    is_sought = kind_of(question) == "person" or _HOW_MUCH.match(question)
    verb = asked.stem if asked and not is_sought else ""
    lost = sum(weights[word] * (VERB if word == verb else 1) for word in sorted({stem(word) for word in missing}))
    infinitive = missing[0] if len(missing) == 1 and re.search(rf"\bto {missing[0]}\b", question) else ""
    return Coverage(tuple(missing), lost / sum(weights.values()), infinitive or (asked.word if asked else ""))


def _about(question: str, role: AskedRole | None, texts: Sequence[str]) -> Sequence[str]:
    """Return the texts that name the owner of the role that is asked for; all, if none does."""
    if role is None or not role.owner:
        return texts
    names = role.owner & _capital_stems(question) or role.owner
    about = [text for text in texts if names <= content_words(text)]
    if about and role.known:  # a document names a person in full only once, and chapters go on about the person
        about = [text for text in texts if names & content_words(text)]
    return about or texts


def _find_lost(index: IndexReader, question: str, texts: Sequence[str]) -> str:
    """Return the noun behind "which", or a verb such as "born", if no document with the names of the question says it.

    "Which car did Ida buy?" A town, a firm or a year is answered by its name or number alone. "" if it is said.
    """
    names, lost = _capital_stems(question), ""
    if found := _WHICH.match(question):
        kind = found[1].lower()
        lost = "" if kind in _NAMED_KINDS or says_little(stem(kind)) else kind
    elif (asked := read_asked_verb(question)) and is_said_by_itself(asked.word):
        lost = asked.word
    if not lost or not names:
        return ""
    titles = {text.split("\n", 1)[0] for text in texts if names <= content_words(text)}
    words = frozenset().union(*(words_of(text) for text in texts if text.split("\n", 1)[0] in titles))
    if not words or said_by(lost) & set(map(family_of, words)):
        return ""
    narrow = {lost} if is_said_by_itself(lost) else set()
    return lost if _find_missing(index, [lost], narrow, words, frozenset(map(stem, words))) else ""


def _find_unsaid(question: str, role: AskedRole | None, sentences: Sequence[str]) -> str:
    """Return the role of which every mention is that of another, or the measure that no text gives; else ""."""
    if role and role.owner:
        others = {*role.known.inverses, *role.known.said_by} if role.known else set()
        if others & set().union(*map(words_of, sentences)):
            return ""
        if _is_held_in_group(question, role, sentences):
            return ""
        owners = [owner for one in sentences for owner in owners_of(role.head, one)]
        return role.head if owners and all(_is_of_another(role, owner) for owner in owners) else ""
    measure, asked = _read_measure(question)
    if measure is None:
        return ""
    subject = topic_words(question) - content_words(asked)
    near = (" ".join(sentences[max(i - 1, 0) : i + 2]) for i, one in enumerate(sentences) if measure.search(one))
    return "" if any(subject & content_words(text) for text in near) else asked.lower()


def _is_couple(role: AskedRole, text: str) -> bool:
    """Return whether a sentence has the owner of a role with his wife: "Mr. and Mrs. Fezziwig"."""
    return any(role.owner & content_words(found["name"]) for found in _COUPLE.finditer(text))


def _is_held_in_group(question: str, role: AskedRole, sentences: Sequence[str]) -> bool:
    """Return whether a sentence has an office and all words of its owner, if that is a group without a capital.

    "A committee under the chair of Dr Roth" has the chair of the committee, though "of" names its holder.
    """
    if role.known or role.owner & _capital_stems(question):
        return False
    return any(owners_of(role.head, one) and role.owner <= content_words(one) for one in sentences)


def _capital_stems(question: str) -> set[str]:
    return {stem(word.lower()) for word in _CAPITAL.findall(question)}


def _read_measure(question: str) -> tuple[re.Pattern[str] | None, str]:
    """Return the pattern of the measure that a question asks for, None without one, and the words that ask for it."""
    matches = ((value, asked.match(question)) for asked, value in _MEASURES)
    return next(((value, found[0]) for value, found in matches if found), (None, ""))


def _is_of_another(role: AskedRole, owner: str) -> bool:
    """Return whether an owner is another one; a thing ("the name of Ned's dog") without one is not it.

    "The company's lawyer" may be that of the firm that the question names.
    """
    if not owner:
        return not role.is_person
    if owner in GROUPS and role.known is None:
        return False
    return owner != "his" and not role.owner & content_words(owner)


def _count_said_near(absent: Sequence[str], asked: frozenset[str], said: Sequence[_Said]) -> dict[str, int]:
    """Return the number of sentences near to a word of the question that say an absent word in another word.

    Verbs such as "find" are in most texts, and say nothing of a discovery if they are about something else. An amount
    of money says a price.
    """
    amounts = {word: said for word in absent for words, said in _AMOUNTS if stem(word) in words}
    others = {word: ways for word in absent if len(ways := said_by(word)) > 1 or word in amounts}
    if not others:
        return {}
    families = [frozenset(map(family_of, words)) for _, words in said]
    stems = [frozenset(map(stem, words)) for _, words in said]
    found = {}
    for word, ways in others.items():
        rest = asked.union(*(said_by(other) for other in absent if other != word))
        about = [bool(rest & held or asked & own) for held, own in zip(families, stems, strict=True)]
        found[word] = sum(
            any(about[max(i - N_NEAR, 0) : i + N_NEAR + 1])
            and (bool(ways & families[i]) or (word in amounts and bool(amounts[word].search(text))))
            for i, (text, _) in enumerate(said)
        )
    return found


def _find_missing(
    index: IndexReader, absent: Sequence[str], narrow: set[str], words: frozenset[str], stems: frozenset[str]
) -> list[str]:
    """Return the absent words that no word of the texts stands for.

    Args:
        narrow: words for which only a word of nearly the same meaning stands.
    """
    families = set(map(family_of, words))
    absent = [word for word in absent if family_of(word) not in families]
    roles = {word: find_role(stem(word)) for word in absent}
    others = [word for word in absent if roles[word] is None]
    far = {
        word
        for word, role in roles.items()
        if role and not role.related & stems and not stems & set(map(stem, role.same))
    }
    vocabulary = sorted(word for word in words if not is_function_word(word))
    if others and vocabulary:
        nearness = (index.embed_passages(others) @ index.embed_passages(vocabulary).T).max(axis=1)
        others = [
            word for word, cosine in zip(others, nearness.tolist(), strict=True) if cosine < _needed(word, narrow)
        ]
    return sorted(far.union(others))


def _needed(word: str, narrow: set[str]) -> float:
    return NEAR_NAME if word in narrow else NEAR
