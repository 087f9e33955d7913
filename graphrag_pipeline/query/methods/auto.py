"""The automatic choice of a method as one step; the steps of the method that it picks follow.

Automatic choice of the search method, by rules on the question and on the index; no model is called.

    no entities in the index                                     basic
    nothing specific is named, or the wording is corpus-wide     global; lazy if the index has no reports
      and nothing but concepts is named
    two questions in one, about a name                           drift; local without reports
    two names or more, or a comparison                           local by the graph strategy
    a name                                                       local
    else                                                         basic

If the settings do not allow a method, or the index has nothing for it to read, the next one is taken; `basic` always
works. A model would cost a call per question for what these rules find at no cost. Wording is English, with a few words
of German, French, Spanish and Chinese.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.nearest import suggest
from graphrag_pipeline.query.answers.answering import Answerer
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.methods.method import SearchMethod, SearchStep
from graphrag_pipeline.query.methods.state import SearchState
from graphrag_pipeline.query.methods.steps import CHOOSABLE
from graphrag_pipeline.query.question import find_identifiers, is_overview
from graphrag_pipeline.query.selection.strategies import check_strategy
from graphrag_pipeline.settings.settings import AutoSearchSettings, Settings
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
    names_one = find_identifiers(question) or any(entity["type"] != CONCEPT for entity in entities)
    is_corpus_wide = _CORPUS_WIDE.search(question) and not names_one
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


class AutoMethod(SearchMethod):
    """The choice of a method: options that are not its own go to the method chosen."""

    def settings_of(self, settings: Settings, strategy: str | None, options: Mapping[str, Any]) -> BaseModel:
        """Return the settings of the choice; its `options` hold what goes to the method chosen.

        Raises:
            PipelineError: an option that no method has, an unknown strategy, or a value of the choice's own options
                that does not validate.
        """
        own = {name: value for name, value in options.items() if name in self.options}
        passed = {name: value for name, value in options.items() if name not in own}
        passed |= {} if strategy is None else {"strategy": strategy}
        given = own.get("options", {})
        if not isinstance(given, Mapping):
            return super().settings_of(settings, None, own)  # raises the error
        merged = {**settings.auto_search.options, **given, **passed}
        known = dict.fromkeys(name for method in CHOOSABLE.values() for name in method.options)
        for name in merged:
            if name not in known:
                raise PipelineError(f"unknown option {name!r} of auto_search and every method{suggest(name, known)}")
        if "strategy" in merged:
            check_strategy(merged["strategy"])
        return super().settings_of(settings, None, {**own, "options": merged})


def _choose(index: IndexReader, state: SearchState, answerer: Answerer) -> SearchState:
    auto: AutoSearchSettings = state.query.settings
    choice = choose_method(index, state.query.question, find_possible(index, auto))
    method = CHOOSABLE[choice.method]
    settings, ignored = settings_of_choice(index.settings, choice, auto)
    query = replace(state.query, method=choice.method, settings=settings, budget=method.budget_of(settings))
    selection: dict[str, Any] = {**state.selection, "chosen": choice.method, "reason": choice.reason}
    if ignored:
        selection["ignored_options"] = ignored
    return replace(state, query=query, found=choice, selection=selection)


def find_possible(index: IndexReader, auto: AutoSearchSettings) -> set[str]:
    """Return the methods that the settings allow and that find something to read in the index."""
    return {name for name in auto.methods if CHOOSABLE[name].can_read(index)}


def settings_of_choice(settings: Settings, choice: Choice, auto: AutoSearchSettings) -> tuple[BaseModel, list[str]]:
    """Return the settings of the method that was chosen, and the names of the options that it does not have.

    Raises:
        PipelineError: an option does not validate.
    """
    method = CHOOSABLE[choice.method]
    taken = {name: value for name, value in auto.options.items() if name in method.options}
    options = method.limit_options({**choice.options, **taken}, auto.budget)
    return method.settings_of(settings, None, options), [name for name in auto.options if name not in taken]


def _show_choice(state: SearchState) -> dict[str, Any]:
    choice: Choice = state.found
    shown = {"method": choice.method, "reason": choice.reason, **choice.options}
    ignored = state.selection.get("ignored_options", [])
    return shown | ({"ignored options": ", ".join(ignored)} if ignored else {})


METHOD = AutoMethod(
    name="auto",
    description="Picks one of the other searches by the question, and says why.",
    steps=(
        SearchStep(
            "choose_method",
            "Pick the method by the question; the ops of the others are skipped.",
            _choose,
            _show_choice,
        ),
    ),
)
