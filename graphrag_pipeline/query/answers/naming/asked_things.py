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

from graphrag_pipeline.query.question import content_words, is_english, stem
from graphrag_pipeline.query.selection.passages import Sentence, sentences_of
from graphrag_pipeline.query.understanding.asked_name import AskedName
from graphrag_pipeline.query.understanding.asked_verb import AskedVerb
from graphrag_pipeline.query.understanding.place_statements import LIGHT
from graphrag_pipeline.query.understanding.question_analysis import QuestionAnalysis
from graphrag_pipeline.query.understanding.verb_statements import ObjectPart, read_object_parts
from graphrag_pipeline.query.word_families import is_adverb, says_little

N_BEFORE = 6
"""Sentences before the one with the name that may say what its object belongs to."""
_TITLES = frozenset(map(stem, "mr mrs ms miss dr sir lady lord professor captain".split()))  # noqa: SIM905
_PHRASE = re.compile(
    r"\s+(?:of|in|on|at|to|from|for|with|by|about|against|near|into|after|before|during|under|over|as|when|while)\s+",
    re.IGNORECASE,
)
_NAME = re.compile(r"\b[A-Z\u00c0-\u00de][\w-]*(?:\s+[A-Z\u00c0-\u00de][\w-]*)*")
_NO_OBJECT = re.compile(r"\s+as\b", re.IGNORECASE)
"""What is behind a verb without an object: "Who resigned as mayor?"."""
_WORD = re.compile(r"[^\W_]+(?:[-'\u2019][^\W_]+)*")


def names_asked_things(analysis: QuestionAnalysis, asked: AskedName, sentence: Sentence) -> bool:
    """Return whether the sentence with a name has what the question names besides its verb, with those before it."""
    needed = _read_needed(analysis, asked)
    if not is_english(analysis.question):
        return True
    before = _before(sentence, N_BEFORE)
    own, title = analysis.words_in(sentence.text), analysis.words_in(sentence.unit.document_title)
    beside = analysis.words_in(before[-1].text) if before else frozenset()
    if asked.kind != "person" or asked.verb is None or asked.verb.asks_patient:
        return needed <= own | beside | title
    around = own | title.union(*(analysis.words_in(one.text) for one in before))
    near = needed & (asked.anchors | {word for word in needed if word.isdigit()})
    if not near <= around or not needed <= around | analysis.words_in(sentence.unit.text):
        return False
    strict = read_object(analysis.question, asked.verb, asked.anchors) - _TITLES
    parts = read_object_parts(sentence.folded, asked.verb.word)
    held = (_words_in_part(analysis, part, beside, around) for part in parts)
    return not strict or any(strict <= words for words in held)


def _words_in_part(
    analysis: QuestionAnalysis, part: ObjectPart, beside: frozenset[str], around: frozenset[str]
) -> frozenset[str]:
    """Return the words of a part, of the sentence before if a pronoun stands for it, and of names it has in short.

    "Frame will be replaced" is about Duncan Frame, if a sentence before has that name.
    """
    own = analysis.words_in(part.text) | (beside if part.goes_on else frozenset())
    names = [content_words(found[0]) for found in _NAME.finditer(analysis.question)]
    said = [content_words(found[0]) for found in _NAME.finditer(part.text)]
    alone = frozenset().union(*(words for words in said if len(words) == 1))
    return own.union(*(name for name in names if name & alone and name <= around))


def _read_needed(analysis: QuestionAnalysis, asked: AskedName) -> frozenset[str]:
    """Return the stems that the sentences must have: no verbs, titles of persons or words that say little."""
    adverbs = {stem(word) for word in _WORD.findall(analysis.question.lower()) if is_adverb(word)}
    verb = LIGHT | ({asked.verb.stem} if asked.verb else frozenset())
    words = (asked.anchors | asked.focus) - verb - adverbs - _TITLES
    return frozenset(word for word in words if not says_little(word))


def read_object(clause: str, verb: AskedVerb, names: frozenset[str]) -> frozenset[str]:
    """Return the stems of the object of a question's verb: its names and its last word, without adjectives.

    "Who leads the Labour group on the council?" asks about {"labour", "group"}. The object of a verb with a
    preposition is behind that: "Who paid for the library?".
    """
    found = re.search(rf"\b{re.escape(verb.word)}\b", clause, re.IGNORECASE)
    if found is None or _NO_OBJECT.match(clause, found.end()):
        return frozenset()
    phrases = [phrase for phrase in _PHRASE.split(f" {clause[found.end() :]}") if content_words(phrase)]
    words = _WORD.findall(phrases[0].lower()) if phrases else []
    stems = [stem(word) for word in words if content_words(word) and not is_adverb(word)]
    stems = [word for word in stems if not says_little(word)]
    return frozenset(names.intersection(stems)) | frozenset(stems[-1:])


def _before(sentence: Sentence, n: int) -> list[Sentence]:
    sentences = sentences_of(sentence.unit)
    place = next((i for i, one in enumerate(sentences) if one.start == sentence.start), 0)
    return list(sentences[max(place - n, 0) : place])
