"""The name or number that a question asks for: its kind, the names that it starts from, and its other words.

"Who is Scrooge's clerk and what does he do?" asks for a person. Its first clause starts from Scrooge, and the person
must be near the word "clerk". A question with names alone ("Who is Tiny Tim?") asks for no other name, and one for an
office ("Who is the harbour master?") starts from none. "Which company owns the cable?" is read as "Who owns the cable?"
for the name of an organization.

Rules are for questions in Latin script, with question words of `question_analysis.py`. Keep out: finding the name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from graphrag_pipeline.query.question import is_latin, stem, topic_words
from graphrag_pipeline.query.understanding.asked_role import AskedRole, read_asked_role
from graphrag_pipeline.query.understanding.asked_verb import AskedVerb, read_asked_verb
from graphrag_pipeline.query.understanding.question_analysis import BODY, kind_of
from graphrag_pipeline.text.extractive import words_of
from graphrag_pipeline.text.late_patterns import late_re

_NEXT_CLAUSE = late_re(r"[?;,]?\s+and\s+(?=(?:what|who|where|when|how|why|which)\b)|[?;]\s*(?=\S)", re.IGNORECASE)
_OWNER = late_re(r"['\u2019]s?\s+(?=[a-z])")
_CAPITAL = late_re(r"(?<=[\s(\"'\u2018\u201c-])[A-Z\u00c0-\u00de][\w.-]*")
_WHICH_BODY = late_re(rf"(?P<before>\W*)(?:which|what)\s+{BODY}\s+(?!do\b|does\b|did\b)(?=[a-z])", re.IGNORECASE)
"""What asks for the organization that does something, or to which something is done."""
_WHOSE = late_re(r"\W*whose\b", re.IGNORECASE)
_MEASURE_WORDS = frozenset(stem(word) for word in ("many", "much", "long", "old", "year", "date", "day"))
_MEASURES = {
    "date": r"when|(?:what|which)\s+(?:year|date|day)",
    "duration": r"how\s+(?:long|old)",
    "amount": r"how\s+much",
    "count": r"how\s+many",
}


@dataclass(frozen=True)
class AskedName:
    """The name or number that a question asks for.

    Attributes:
        kind: person, place, date, duration, amount or count.
        anchors: stems of the words that name what the question starts from.
        focus: stems of its other content words, at least one.
        verb: whose subject, object, place or time is sought; None without one, and of a question for a role.
        role: the role whose holder it asks for: "Scrooge's clerk", "the author of Faust"; None for other questions.
        clause: the first clause of the question, with "who" for "which company".
        is_body: whether only an organization is asked for.
    """

    kind: str
    anchors: frozenset[str]
    focus: frozenset[str]
    verb: AskedVerb | None
    role: AskedRole | None
    clause: str
    is_body: bool = False

    @property
    def is_role(self) -> bool:
        return self.role is not None


def first_clause(question: str) -> str:
    """Return the first clause of a question, its owners apart: "Who is Scrooge's clerk" names Scrooge, too."""
    return _OWNER.sub(" of the ", _NEXT_CLAUSE.split(question.strip(), maxsplit=1)[0])


def read_asked_name(question: str, name_words: frozenset[str]) -> AskedName | None:
    """Return what name or number the first clause of a question asks for; None if it asks for none.

    Args:
        name_words: stems of the words that name entities of the index. They count if no word has a capital.
    """
    clause = _NEXT_CLAUSE.split(question.strip(), maxsplit=1)[0]
    clause, n_bodies = _WHICH_BODY.subn(r"\g<before>Who ", clause, count=1) if is_latin(clause) else (clause, 0)
    role = None if n_bodies else read_asked_role(clause)
    kind = "person" if role else _kind(clause) if is_latin(question) else ""
    if not kind:
        return None
    words = topic_words(clause)
    capitals = {stem(word) for found in _CAPITAL.findall(clause) for word in words_of(found)}
    is_office = role is not None and not role.owner  # an entity may be named HARBOUR MASTER
    anchors = frozenset() if is_office else frozenset(words & capitals) or words & name_words
    focus = words - anchors - _MEASURE_WORDS
    verb = None if role or _WHOSE.match(clause) else read_asked_verb(clause)
    is_readable = bool(focus) and (verb is not None or not n_bodies)
    return AskedName(kind, anchors, focus, verb, role, clause, bool(n_bodies)) if is_readable else None


def _kind(clause: str) -> str:
    kind = kind_of(clause)
    if kind != "number":
        return kind
    opening = r"\W*(?:\w+\s+)?"
    return next((k for k, words in _MEASURES.items() if re.match(rf"{opening}(?:{words})\b", clause, re.I)), "")
