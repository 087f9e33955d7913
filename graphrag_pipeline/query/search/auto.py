"""Automatic choice of the search method, by rules on the question and on the index; no model is called.

    no entities in the index                                     basic
    nothing specific is named, or the wording is corpus-wide     global; lazy if the index has no reports
      and nothing but concepts is named
    two questions in one, about a name                           drift; local without reports
    two names or more, or a comparison                           local by the graph strategy
    a name                                                       local
    else                                                         basic

If the settings do not allow a method, or the index has nothing for it to read, the next one is taken; `basic` always
works. A model would cost a call per question for what these rules find at no cost. Wording is English, with a few words
of German, French, Spanish and Chinese. Keep out: how a method searches.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import is_overview
from graphrag_pipeline.text.late_patterns import late_re

MAX_NAMES_LISTED = 3
CONCEPT = "CONCEPT"
"""Type of an entity that is a subject, such as "inflation", and not one thing with a name."""

_CORPUS_WIDE = late_re(
    r"\b(?:themes?|topics?|overview|summari[sz]e|summary|overall|in general|trends?|patterns?|takeaways?|key points"
    r"|across\s+(?:the|all|these|every)|(?:all|most|entire|whole)\s+(?:of\s+)?(?:the\s+)?"
    r"(?:documents|texts|corpus|data\w*|reports|articles|sources)"
    r"|(?:last|past|recent|latest)\s+(?:\w+\s+)?(?:days?|weeks?|months?|years?|news)|catch me up"
    r"|themen|überblick|zusammenfass\w*|insgesamt|thèmes|résum\w+|aperçu|temas|resum\w+|en general)\b"
    r"|主题|概述|总结|概括|总体|趋势",
    re.IGNORECASE,
)
_COMPARES = late_re(
    r"\b(?:compar\w+|differ\w*|versus|vs|similarit\w+|in common|relat(?:ed|ion\w*)\s+(?:to|between|with)|connect\w*"
    r"|between|both|vergleich\w*|unterschied\w*|différence\w*|diferencia\w*)\b|比较|区别|关系",
    re.IGNORECASE,
)
_SECOND_QUESTION = late_re(
    r"\b(?:and|but|und|et|y)\s*,?\s+(?:also\s+)?(?:how|what|why|who|whom|whose|where|when|which|wie|was|warum|wer|wo|wann"
    r"|comment|pourquoi|qui|où|cómo|qué|quién)\b|\?.+\?",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True)
class Choice:
    """A method, the reason for it, and options over the settings of its section."""

    method: str
    reason: str
    options: dict[str, Any] = field(default_factory=dict)


def choose_method(index: IndexReader, question: str, possible: Collection[str]) -> Choice:
    """Return the first method that fits the question and is possible; else `basic`.

    Args:
        possible: methods that the settings allow and that find something to read in the index.
    """
    for choice in _by_question(index, question):
        if choice.method in possible:
            return choice
    return Choice("basic", "no other method is allowed here that can work on this index")


def _by_question(index: IndexReader, question: str) -> list[Choice]:
    """Return the methods for a question, the best fit first."""
    entities = _entities_in(index, question)
    names = [entity["title"] for entity in entities]
    named = ", ".join(names[:MAX_NAMES_LISTED])
    graph = {"strategy": "graph"}
    is_corpus_wide = _CORPUS_WIDE.search(question) and not any(entity["type"] != CONCEPT for entity in entities)
    if is_overview(question) or is_corpus_wide:
        why = "the question is about the documents as a whole"
        return [Choice("global", why), Choice("lazy", f"{why}, and the index has no reports to read")]
    if names and _SECOND_QUESTION.search(question):
        why = f"the question asks several things about {named}"
        return [Choice("drift", why), Choice("local", why, graph)]
    if len(names) > 1:
        return [Choice("local", f"the question names {named}: evidence may lie on the way between them", graph)]
    if names and _COMPARES.search(question):
        return [Choice("local", f"the question relates {named} to something else", graph)]
    if names:
        return [Choice("local", f"the question names {named}")]
    return [Choice("basic", "the question names no entity of the index")]


def _entities_in(index: IndexReader, question: str) -> Sequence[dict[str, Any]]:
    """Return title and type of the entities that a question names, one for each name, in reading order."""
    rows = [rows[0] for rows in index.names.take_apart(question).names]
    return index.snapshot.take("entities", rows, ["title", "type"])
