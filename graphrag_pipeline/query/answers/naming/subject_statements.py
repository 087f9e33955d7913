"""Subjects of verbs: what a question for a time, a place or an amount is about, and what a sentence says of whom.

"When did Ida Kern die?" asks about Ida Kern. "Her uncle, Max Kern, a smith who died in 1921" says it of Max Kern, and
"He died in 1921" of the person in the sentence before. English alone. Keep out: subjects that are sought, as of "who"
(`understanding/verb_statements.py`).
"""

from __future__ import annotations

import re

from graphrag_pipeline.query.question import content_words, stem
from graphrag_pipeline.query.understanding.asked_verb import AskedVerb
from graphrag_pipeline.query.understanding.verb_statements import (
    ObjectPart,
    is_passive_at,
    read_object_part,
    read_part_before,
)
from graphrag_pipeline.query.word_families import is_adverb, says_little
from graphrag_pipeline.text.late_patterns import late_re

PHRASE = late_re(
    r"\s+(?:of|in|on|at|to|from|for|with|by|about|against|near|into|after|before|during|under|over|as|when|while)\s+",
    re.IGNORECASE,
)
"""What begins a phrase behind a noun or a verb."""
_HELPER = late_re(
    r"\b(?:do|does|did|is|are|was|were|has|have|had|will|would|can|could|may|might|must|shall|should)\s+(?P<subject>.*)",
    re.IGNORECASE | re.DOTALL,
)
_WORD = late_re(r"[^\W_]+(?:[-'\u2019][^\W_]+)*")
_IDLE = frozenset("first last finally later once ever still also now again then never already not been be".split())  # noqa: SIM905
_ALONE = late_re(r"\s*(?:$|[,.;:)\d]|(?:in|on|at|by|from|for|to|into|near|under|after|before|during|with|as|of)\b)")
"""What is behind a verb without an object: "first held in 1895", "will begin in May", but not "held a fair"."""


def read_head(text: str, names: frozenset[str]) -> frozenset[str]:
    """Return the stems of a noun phrase: the names in it and its last word, without its own phrases and adjectives."""
    phrases = [phrase for phrase in PHRASE.split(f" {text}") if content_words(phrase)]
    words = _WORD.findall(phrases[0].lower()) if phrases else []
    stems = [stem(word) for word in words if content_words(word) and not is_adverb(word) and word not in _IDLE]
    stems = [word for word in stems if not says_little(word)]
    return frozenset(names.intersection(stems)) | frozenset(stems[-1:])


def read_asked_subject(clause: str, verb: AskedVerb, names: frozenset[str]) -> frozenset[str]:
    """Return the stems of the subject of a question's verb: its names and its last word; empty without a subject.

    "When did the vicar of Moss open the fair?" asks about {"vicar"}.
    """
    found = _HELPER.search(clause)
    if found is None:
        return frozenset()
    places = [one for one in _WORD.finditer(found["subject"]) if one[0].lower() == verb.word]
    return read_head(found["subject"][: places[-1].start()], names) if places else frozenset()


def read_subject_parts(text: str, verb: re.Match[str], asked: AskedVerb) -> list[ObjectPart]:
    """Return the parts of a sentence that may have the subject of a question's verb, for a word that says the verb.

    That is what something is done to if the question has a passive. "When did the mill close?" may be said of what
    the firm closed.
    """
    is_passive = is_passive_at(text, verb)
    is_alone = bool(_ALONE.match(text, verb.end()))
    parts = []
    if not asked.is_passive or is_alone:
        parts.append(read_part_before(text, verb))
    if asked.is_passive or is_passive or is_alone or not asked.has_object:
        parts.append(read_object_part(text, verb))
    if is_passive and (by := re.compile(r"[^,;:.!?]*?\bby\s+").match(text, verb.end())):
        parts.append(ObjectPart(re.split(r"[,;:.!?]", text[by.end() :])[0], goes_on=False))
    return parts
