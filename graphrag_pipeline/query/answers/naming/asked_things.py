"""Things that a question names, in the clause that gives its answer: a name needs them, and not only the verb.

"Farmer Colin Rudge, who owns the land, said ..." names the owner of the land, and of nothing else. So the question for
the subject of a verb needs its object in the clause of that verb: behind an active verb, or before a passive one.
"It" and "which" may stand for a thing that is named before. Words besides the object ("the land of the farm") and
adjectives may be in the sentences before, in the title, or, if they are no names or years, anywhere in the text unit.
Other questions for names and numbers need all their words in the sentence, the one before it, or the title. A verb is
never such a word, nor is a word that only weighs or links. English alone. Keep out: which name belongs to a verb
(`understanding/verb_statements.py`), owners of roles (`stated_roles.py`), and events at a place (`stated_places.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from graphrag_pipeline.query.answers.naming.short_names import is_short_for, is_short_for_another
from graphrag_pipeline.query.answers.naming.subject_statements import (
    read_asked_subject,
    read_head,
    read_subject_parts,
)
from graphrag_pipeline.query.question import content_words, is_english, stem
from graphrag_pipeline.query.selection.passages import Sentence
from graphrag_pipeline.query.understanding.asked_name import AskedName
from graphrag_pipeline.query.understanding.asked_verb import AskedVerb
from graphrag_pipeline.query.understanding.place_statements import LIGHT
from graphrag_pipeline.query.understanding.question_analysis import QuestionAnalysis
from graphrag_pipeline.query.understanding.role_statements import leading_name
from graphrag_pipeline.query.understanding.spoken_roles import without_speakers
from graphrag_pipeline.query.understanding.time_forms import MONTH_NAMES
from graphrag_pipeline.query.understanding.verb_statements import (
    ObjectPart,
    belongs_to,
    find_verbs,
    goes_on,
    goes_on_about,
    read_object_parts,
)
from graphrag_pipeline.query.word_families import is_adverb, means_same, says_little
from graphrag_pipeline.text.late_patterns import late_re

N_BEFORE = 6
"""Sentences before the one with the name that may say what its object belongs to."""
_TITLES = frozenset(map(stem, "mr mrs ms miss dr sir lady lord professor captain".split()))  # noqa: SIM905
_NAME = late_re(r"\b[A-Z\u00c0-\u00de][\w-]*(?:\s+[A-Z\u00c0-\u00de][\w-]*)*")
_YEAR = late_re(r"\b(?:1[5-9]|20)\d\d\b")
_ROOM = late_re(
    rf"\b(?:[Ii]n|[Aa]t|[Nn]ear) (?:the )?(?!(?:{MONTH_NAMES}|\w+day|Mr|Mrs|Miss|Dr)\b)"
    r"(?P<name>[A-Z\u00c0-\u00de][\w-]*(?:\s+[A-Z\u00c0-\u00de][\w-]*)*)"
)
"""A place with a name: "in Great Yarmouth"."""
_PRONOUN = late_re(r"\b(?:he|she|him|it|they|them)\b", re.IGNORECASE)
_FIRST_THING = late_re(r"\W*The ([A-Z\u00c0-\u00de][\w-]*(?: [A-Z\u00c0-\u00de][\w-]*)*) (?=[a-z])")
"""The thing that a sentence begins with: "The Gilded Pike belongs to"."""
_OWNER = late_re(r"\b[\w.-]+['\u2019]s?\s+(?=[a-z])")
_OF_A_LIFE = frozenset(map(stem, "die perish born marry wed retire resign drown".split()))  # noqa: SIM905
"""Verbs of which "the miners" goes on about no person that the sentence before names."""
_NO_OBJECT = late_re(r"\s+as\b", re.IGNORECASE)
"""What is behind a verb without an object: "Who resigned as mayor?"."""
_WORD = late_re(r"[^\W_]+(?:[-'\u2019][^\W_]+)*")


class AskedThings:
    """What a question names besides its verb, to look for it in sentences with a name."""

    def __init__(self, analysis: QuestionAnalysis, asked: AskedName) -> None:
        self._analysis, self._verb, self._anchors = analysis, asked.verb, asked.anchors
        self._is_english = is_english(analysis.question)
        self._needed = _read_needed(analysis, asked)
        self._near = self._needed & (asked.anchors | {word for word in self._needed if word.isdigit()})
        self._object, self._subject = _read_parts(analysis, asked)
        self._is_measure = asked.kind in ("amount", "duration", "count")
        self._is_life = asked.verb is not None and asked.verb.stem in _OF_A_LIFE
        self._years = frozenset(_YEAR.findall(asked.clause))
        self._rooms = [content_words(found["name"]) for found in _ROOM.finditer(asked.clause)]
        self._names = [content_words(found[0]) for found in _NAME.finditer(analysis.question)]
        self._titles: dict[str, frozenset[str]] = {}
        self._units: dict[str, frozenset[str]] = {}

    def are_named(
        self,
        sentence: Sentence,
        own_words: frozenset[str],
        words_before: Sequence[frozenset[str]],
        before: Sentence | None = None,
    ) -> bool:
        """Return whether a sentence with a name has what the question names, with those before it.

        Args:
            own_words: stems of the sentence, with the words of the question that it says in other words.
            words_before: the same of the at most `N_BEFORE` sentences before it, in reading order.
            before: the last of them, if any.
        """
        if not self._is_english:
            return True
        title = self._words_of(self._titles, sentence.unit.document_title)
        beside = words_before[-1] if words_before else frozenset()
        if not self._is_there_and_then(sentence, own_words, beside | title):
            return False
        if self._object is None or self._verb is None:
            is_named = self._needed <= own_words | beside | title
            return is_named and (not self._is_measure or self._is_measured(sentence, own_words, before, title))
        around = own_words | title.union(*words_before)
        if not self._near <= around:
            return False
        if not self._needed <= around and not self._needed <= around | self._words_of(self._units, sentence.unit.text):
            return False
        parts = read_object_parts(sentence.folded, self._verb.word) if self._object else []
        unit = sentence.unit.text
        return not self._object or any(
            self._object <= self._words_in_part(one, self._antecedent(before, one.text), around, unit) for one in parts
        )

    def _antecedent(self, before: Sentence | None, said: str) -> frozenset[str]:
        """Return the words of the sentence before that a pronoun in a part of a sentence may stand for.

        "He" is the person whom that sentence begins with, and "it" the thing, but not a speaker.
        """
        text = without_speakers(before.text) if before else ""
        words = self._words_of(self._units, text) if text else frozenset()
        pronoun = _PRONOUN.search(said)
        is_person = pronoun is not None and pronoun[0].lower() not in ("it", "they", "them")
        first = leading_name(text) if is_person else (found[1] if (found := _FIRST_THING.match(text)) else "")
        if not first:
            return words
        is_owner = re.match(r"['\u2019]s?\b", text[text.index(first) + len(first) :]) is not None
        named = self._analysis.words_in(first)
        return words - named if is_owner else words - (self._anchors - named)

    def are_said_of(self, sentence: Sentence, verb: re.Match[str], before: Sentence | None) -> bool:
        """Return whether the subject of a verb in a sentence is that of the question, or may stand for it.

        A pronoun stands for what the sentence before names, but not for the speaker there. So does "the ship"
        if the question names the subject and the sentence does not.

        Args:
            before: the sentence before it, if any.
        """
        text, title = sentence.text, self._words_of(self._titles, sentence.unit.document_title)
        if self._subject:
            parts = read_subject_parts(text, verb, self._verb) if self._verb else []
            own = self._analysis.words_in(text[: verb.start()]) | title
            for one in parts:
                known = self._antecedent(before, one.text) | own
                if self._subject <= self._words_in_part(one, known, known, sentence.unit.text):
                    return True
        elif not self._anchors or self._anchors & self._analysis.words_in(text):
            return True
        is_named = bool(self._anchors) and not self._anchors & self._analysis.words_in(text)
        goes_on = is_named and goes_on_about(text, verb, is_life=self._is_life)
        goes_on = goes_on and not is_short_for_another(text[: verb.start()], self._subject, sentence.unit.text)
        return goes_on and self._subject <= self._antecedent(before, text[: verb.start()]) | title

    def _is_measured(
        self, sentence: Sentence, own_words: frozenset[str], before: Sentence | None, title: frozenset[str]
    ) -> bool:
        """Return whether a number is that of the subject: it is in the sentence, or a pronoun stands for it."""
        if not self._subject:
            return True
        spoken = without_speakers(sentence.text)
        own = own_words if spoken == sentence.text else self._analysis.words_in(spoken)
        if self._subject <= own:
            return True
        near = title | self._antecedent(before, spoken)
        part = ObjectPart(spoken, goes_on=goes_on(spoken))
        return self._subject <= self._words_in_part(part, near, near | own, sentence.unit.text)

    def _is_there_and_then(self, sentence: Sentence, own_words: frozenset[str], near: frozenset[str]) -> bool:
        """Return whether a sentence says nothing of another place or year than the question.

        "The fair, first held in 1895, is opened by Ida" says nothing of who opened it in 1895.
        """
        text = sentence.text
        for year in self._years:
            found = re.search(rf"\b{year}\b", text)
            if found is None and (year not in near or _YEAR.search(text)):
                return False
            verbs = find_verbs(text, means_same(self._verb.word)) if found and self._verb else []
            if found and verbs and not any(belongs_to(text, one, found.start(), found.end()) for one in verbs):
                return False
        return all(self._is_in(text, words, own_words) for words in self._rooms)

    def _is_in(self, text: str, room: frozenset[str], own_words: frozenset[str]) -> bool:
        """Return whether a sentence says of a place what is asked, or of none."""
        if not room <= own_words:
            return not _ROOM.search(text)
        verbs = find_verbs(text, means_same(self._verb.word)) if self._verb else []
        places = [one for one in _ROOM.finditer(text) if any(belongs_to(text, v, *one.span("name")) for v in verbs)]
        is_stated = any(room <= content_words(one["name"]) for one in _ROOM.finditer(text))
        asked = next((one for one in places if room <= content_words(one["name"])), None)
        if not places or not is_stated or asked is None:
            return not places or not is_stated
        between = text[places[0].end() : asked.start()]
        return not re.search(r",\s+[a-z]", between)  # "who won a prize at Moss, is to leave for a school in Bonn"

    def _words_of(self, known: dict[str, frozenset[str]], text: str) -> frozenset[str]:
        if text not in known:
            known[text] = self._analysis.words_in(text)
        return known[text]

    def _words_in_part(
        self, part: ObjectPart, beside: frozenset[str], around: frozenset[str], text: str
    ) -> frozenset[str]:
        """Return the words of a part, of the sentence before if a pronoun stands for it, and of names it has in short.

        "Frame will be replaced" is about Duncan Frame, if a sentence before has that name, and "the mill" about the
        Crane Paper Mill, if the text names no other mill.
        """
        own = self._analysis.words_in(part.text) | (beside if part.goes_on else frozenset())
        said = [content_words(found[0]) for found in _NAME.finditer(part.text)]
        alone = frozenset().union(*(words for words in said if len(words) == 1))
        short = (name for name in self._names if name & alone and name <= around)
        return own.union(*short, *(name for name in self._names if is_short_for(part.text, name, text)))


def _read_needed(analysis: QuestionAnalysis, asked: AskedName) -> frozenset[str]:
    """Return the stems that the sentences must have: no verbs, titles of persons or words that say little."""
    adverbs = {stem(word) for word in _WORD.findall(analysis.question.lower()) if is_adverb(word)}
    verb = LIGHT | ({asked.verb.stem} if asked.verb else frozenset())
    words = (asked.anchors | asked.focus) - verb - adverbs - _TITLES
    return frozenset(word for word in words if not says_little(word))


def _read_parts(analysis: QuestionAnalysis, asked: AskedName) -> tuple[frozenset[str] | None, frozenset[str]]:
    """Return the stems of the verb's object, of a question for who did it, and those of its subject, of all others.

    The object is None if the question is none for who did something; either part is empty if the question has none.
    """
    if asked.verb is None:
        return None, frozenset()
    if asked.kind != "person":
        return None, read_asked_subject(_OWNER.sub("", asked.clause), asked.verb, asked.anchors) - _TITLES
    if asked.verb.asks_patient:
        return None, frozenset()
    return read_object(analysis.question, asked.verb, asked.anchors) - _TITLES, frozenset()


def read_object(clause: str, verb: AskedVerb, names: frozenset[str]) -> frozenset[str]:
    """Return the stems of the object of a question's verb: its names and its last word, without adjectives.

    "Who leads the Labour group on the council?" asks about {"labour", "group"}. The object of a verb with a
    preposition is behind that: "Who paid for the library?".
    """
    found = re.search(rf"\b{re.escape(verb.word)}\b", clause, re.IGNORECASE)
    if found is None or _NO_OBJECT.match(clause, found.end()):
        return frozenset()
    return read_head(clause[found.end() :], names)
