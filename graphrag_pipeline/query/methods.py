"""The search methods by name: which section of the settings each reads, and its steps in a row.

Add a method here; Dagster's query jobs run the same steps as ops. Keep out: how a method searches.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from pydantic import BaseModel, ValidationError

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.query.answers.answering import (
    find_relevant,
    follow_drift,
    map_points,
    map_relevant,
    select_global_context,
    start_drift,
    write_answer,
    write_drift_answer,
    write_global_answer,
    write_lazy_answer,
)
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.rendering import SHOWN_COLUMNS
from graphrag_pipeline.query.results import Answer, Context
from graphrag_pipeline.query.search import basic as basic_search
from graphrag_pipeline.query.search import global_ as global_search
from graphrag_pipeline.query.search import local as local_search
from graphrag_pipeline.query.search.auto import Choice, choose_method
from graphrag_pipeline.query.search.lazy import select_lazy_context
from graphrag_pipeline.query.selection.strategies import check_strategy
from graphrag_pipeline.query.streams import Listener
from graphrag_pipeline.query.token_budget import fit_context, limited
from graphrag_pipeline.query.understanding.entity_matching import unknown_names
from graphrag_pipeline.settings.settings import (
    AutoSearchSettings,
    BasicSearchSettings,
    DriftSearchSettings,
    GlobalSearchSettings,
    LazySearchSettings,
    LocalSearchSettings,
    Settings,
)

NO_ANSWER = Answer("")


@dataclass(frozen=True)
class Found:
    """What a search found.

    Attributes:
        selection: how the context was chosen.
        candidates: what else it was chosen from, where that was asked for.
    """

    answer: Answer
    context: Context
    selection: dict[str, Any] = field(default_factory=dict)
    candidates: Context | None = None


def _search_locally(index: IndexReader, question: str, settings: LocalSearchSettings, listener: Listener) -> Found:
    context, candidates = local_search.select_with_candidates(index, question, settings)
    listener.on_context(context)
    selection: dict[str, Any] = {"strategy": settings.strategy}
    if set(settings.shown_columns) != set(SHOWN_COLUMNS):
        selection["shown_columns"] = list(settings.shown_columns)
    if unknown := unknown_names(index, (*settings.include_entity_names, *settings.exclude_entity_names)):
        selection["unknown_entity_names"] = unknown
    is_wanted = listener.is_wanted
    answer = write_answer(index, question, context, listener.on_token, settings) if is_wanted else NO_ANSWER
    return Found(answer, context, selection, candidates)


def _search_globally(index: IndexReader, question: str, settings: GlobalSearchSettings, listener: Listener) -> Found:
    selection = global_search.rate_reports(index, question, settings)
    context = select_global_context(index, question, selection, settings)
    listener.on_context(context)
    if not listener.is_wanted:
        return Found(NO_ANSWER, context, selection.account())
    mapped = map_points(index, question, selection, settings)
    answer = write_global_answer(index, question, mapped, selection, settings, listener.on_token)
    context = replace(context, text_units=(*context.text_units, *answer.text_units))
    return Found(answer, context, {**selection.account(), **mapped.details()})


def _search_basically(index: IndexReader, question: str, settings: BasicSearchSettings, listener: Listener) -> Found:
    context = basic_search.select_basic_context(index, question, settings)
    listener.on_context(context)
    return Found(
        write_answer(index, question, context, listener.on_token) if listener.is_wanted else NO_ANSWER, context
    )


def _search_by_drift(index: IndexReader, question: str, settings: DriftSearchSettings, listener: Listener) -> Found:
    drift = follow_drift(index, question, start_drift(index, question, settings), settings)
    listener.on_context(drift.context)
    answer = (
        write_drift_answer(index, question, drift, settings, listener.on_token) if listener.is_wanted else NO_ANSWER
    )
    return Found(answer, drift.context, drift.account())


def _search_lazily(index: IndexReader, question: str, settings: LazySearchSettings, listener: Listener) -> Found:
    selection = find_relevant(index, question, settings)
    context = select_lazy_context(index, selection, settings.max_context_tokens)
    listener.on_context(context)
    if not listener.is_wanted:
        return Found(NO_ANSWER, context, selection.account())
    mapped = map_relevant(index, question, selection, settings)
    answer = write_lazy_answer(index, question, mapped, selection, settings, listener.on_token)
    return Found(answer, context, {**selection.account(), **mapped.details()})


def _search_automatically(index: IndexReader, question: str, settings: AutoSearchSettings, listener: Listener) -> Found:
    choice = choose_method(index, question, settings)
    chosen, ignored = settings_of_choice(index.settings, choice, settings)
    method = METHODS[choice.method]
    with limited(method.budget_of(chosen)):
        found = method.run(index, question, chosen, listener)
    told: dict[str, Any] = {"chosen": choice.method, "reason": choice.reason}
    if ignored:
        told["ignored_options"] = ignored
    return replace(found, selection=told | found.selection)


@dataclass(frozen=True)
class SearchMethod:
    """One way to answer: which section of the settings it reads, and its steps in a row.

    Attributes:
        budget_option: the most tokens that one question may spend with models.
        context_share: part of that which one call about a context may take.
    """

    section: str
    run: Callable[[IndexReader, str, Any, Listener], Found]
    budget_option: str = "budget"
    context_share: float = 1.0

    def budget_of(self, settings: BaseModel) -> int | None:
        """The most tokens that models may be asked for; None is no limit."""
        most: int | None = getattr(settings, self.budget_option)
        return most

    def now_of(self, settings: BaseModel) -> date | None:
        """The day that "the last week" in a question ends with; None is that of the newest document."""
        now: date | None = getattr(settings, "now")  # noqa: B009 - a field of every section
        return now

    def limited_options(self, options: dict[str, Any], most: int | None) -> dict[str, Any]:
        """Options with a token budget among them, if there is one."""
        return options if most is None else {**options, self.budget_option: most}

    def settings_of(self, settings: Settings, strategy: str | None, options: dict[str, Any]) -> BaseModel:
        """The method's settings with options over them.

        Raises:
            PipelineError: the method has no strategies or not this one, or an option is unknown or does not validate.
        """
        section: BaseModel = getattr(settings, self.section)
        known = type(section).model_fields
        if strategy is not None:
            if "strategy" not in known:
                raise PipelineError(f"strategy {strategy!r}: only local search has text unit selection strategies")
            options = {**options, "strategy": strategy}
        for name in options:
            if name not in known:
                raise PipelineError(f"unknown option {name!r} of {self.section}{_nearest(name, known)}")
        if "strategy" in options:
            check_strategy(options["strategy"])
        try:
            changed = type(section).model_validate({**section.model_dump(), **options})
        except ValidationError as error:
            problems = "; ".join(f"{'.'.join(map(str, p['loc'])) or self.section}: {p['msg']}" for p in error.errors())
            raise PipelineError(f"options of {self.section}: {problems}") from None
        return self._fit(settings, changed)

    def has_option(self, settings: Settings, name: str) -> bool:
        """Whether the method's section of the settings has an option."""
        return name in type(getattr(settings, self.section)).model_fields

    def _fit(self, settings: Settings, section: BaseModel) -> BaseModel:
        """A model's contexts within the token budget, if there is one; of that a method of many calls gets a part."""
        most = self.budget_of(section)
        if most is None or settings.answers.engine == "embedded" or "max_context_tokens" not in section.model_dump():
            return section
        limit: int = getattr(section, "max_context_tokens")  # noqa: B009 - not all sections have it
        fit = fit_context(settings, round(most * self.context_share), limit)
        return section.model_copy(update={"max_context_tokens": fit})


def _nearest(name: str, candidates: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(candidates), n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else f"; valid: {', '.join(candidates)}"


class AutoMethod(SearchMethod):
    """The choice of a method: options that are not its own go to the method chosen."""

    def settings_of(self, settings: Settings, strategy: str | None, options: dict[str, Any]) -> BaseModel:
        """The settings of the choice, with what goes to the method chosen among them (`options`).

        Raises:
            PipelineError: an option that no method has, a strategy that is none, or a value of the choice's own that
                does not validate.
        """
        own = {name: value for name, value in options.items() if self.has_option(settings, name)}
        passed = {name: value for name, value in options.items() if name not in own}
        passed |= {} if strategy is None else {"strategy": strategy}
        given = own.get("options", {})
        if not isinstance(given, Mapping):
            return super().settings_of(settings, None, own)  # says what is wrong with it
        merged = {**settings.auto_search.options, **given, **passed}
        known = {
            name: None for method in METHODS.values() for name in type(getattr(settings, method.section)).model_fields
        }
        for name in merged:
            if name not in known:
                raise PipelineError(f"unknown option {name!r} of auto_search and every method{_nearest(name, known)}")
        if "strategy" in merged:
            check_strategy(merged["strategy"])
        return super().settings_of(settings, None, {**own, "options": merged})


def settings_of_choice(settings: Settings, choice: Choice, auto: AutoSearchSettings) -> tuple[BaseModel, list[str]]:
    """The settings of the method that was chosen, and the names of the options that it has not.

    Raises:
        PipelineError: an option does not validate.
    """
    method = METHODS[choice.method]
    taken = {name: value for name, value in auto.options.items() if method.has_option(settings, name)}
    options = method.limited_options({**choice.options, **taken}, auto.budget)
    return method.settings_of(settings, None, options), [name for name in auto.options if name not in taken]


METHODS: dict[str, SearchMethod] = {
    "local": SearchMethod("local_search", _search_locally),
    "global": SearchMethod("global_search", _search_globally, context_share=0.5),
    "basic": SearchMethod("basic_search", _search_basically),
    "drift": SearchMethod("drift_search", _search_by_drift, context_share=0.25),
    "lazy": SearchMethod("lazy_search", _search_lazily, "max_tokens", context_share=0.5),
    "auto": AutoMethod("auto_search", _search_automatically),
}


def look_up_method(method: str) -> SearchMethod:
    """The method of a name.

    Raises:
        PipelineError: there is none.
    """
    if method not in METHODS:
        raise PipelineError(f"unknown search method {method!r}; valid: {', '.join(METHODS)}")
    return METHODS[method]
