"""The automatic choice of a method as one step; the steps of the method that it picks follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.nearest import suggest
from graphrag_pipeline.query.answers.answering import Answerer
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.methods.method import SearchMethod, SearchStep
from graphrag_pipeline.query.methods.registry import METHODS
from graphrag_pipeline.query.methods.state import SearchState
from graphrag_pipeline.query.search.auto import Choice, choose_method
from graphrag_pipeline.query.selection.strategies import check_strategy
from graphrag_pipeline.settings.settings import AutoSearchSettings, Settings


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
        known = dict.fromkeys(name for method in METHODS.values() for name in method.options)
        for name in merged:
            if name not in known:
                raise PipelineError(f"unknown option {name!r} of auto_search and every method{suggest(name, known)}")
        if "strategy" in merged:
            check_strategy(merged["strategy"])
        return super().settings_of(settings, None, {**own, "options": merged})


def _choose(index: IndexReader, state: SearchState, answerer: Answerer) -> SearchState:
    auto: AutoSearchSettings = state.query.settings
    choice = choose_method(index, state.query.question, find_possible(index, auto))
    method = METHODS[choice.method]
    settings, ignored = settings_of_choice(index.settings, choice, auto)
    query = replace(state.query, method=choice.method, settings=settings, budget=method.budget_of(settings))
    selection: dict[str, Any] = {**state.selection, "chosen": choice.method, "reason": choice.reason}
    if ignored:
        selection["ignored_options"] = ignored
    return replace(state, query=query, found=choice, selection=selection)


def find_possible(index: IndexReader, auto: AutoSearchSettings) -> set[str]:
    """Return the methods that the settings allow and that find something to read in the index."""
    return {name for name in auto.methods if METHODS[name].can_read(index)}


def settings_of_choice(settings: Settings, choice: Choice, auto: AutoSearchSettings) -> tuple[BaseModel, list[str]]:
    """Return the settings of the method that was chosen, and the names of the options that it does not have.

    Raises:
        PipelineError: an option does not validate.
    """
    method = METHODS[choice.method]
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
