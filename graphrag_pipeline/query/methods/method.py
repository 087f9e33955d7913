"""The declaration of a search method: the section of the settings that it reads, and its steps.

Keep out: how a method searches (`search/`), which methods there are (`registry.py`), and running steps
(`index/graph_index.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from pydantic import BaseModel, ValidationError

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.nearest import suggest
from graphrag_pipeline.query.answers.answering import Answerer
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.methods.state import SearchState
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.selection.strategies import check_strategy
from graphrag_pipeline.query.token_budget import fit_context, window_room
from graphrag_pipeline.settings.settings import SEARCH_SETTINGS, Settings


@dataclass(frozen=True)
class SearchStep:
    """One step of a search; the command line runs it in a row with the others, Dagster as an op.

    Attributes:
        name: of the op.
        description: of the op.
        run: takes the state so far and returns it with what this step found.
        show: returns the metadata that the op shows.
    """

    name: str
    description: str
    run: Callable[[IndexReader, SearchState, Answerer], SearchState]
    show: Callable[[SearchState], dict[str, Any]]


@dataclass(frozen=True)
class SearchMethod:
    """One way to answer.

    Attributes:
        description: of its Dagster job.
        steps: the last one writes the answer; those of the method that `auto` picks follow its own.
        needs: contract tables that must have a readable row.
        budget_option: the setting with the most tokens that one question may spend with models.
        context_share: part of that which one call about a context may take.
    """

    name: str
    description: str
    steps: tuple[SearchStep, ...]
    needs: tuple[str, ...] = ()
    budget_option: str = "budget"
    context_share: float = 1.0

    @property
    def section(self) -> str:
        """Name of the section of the settings that the method reads."""
        return f"{self.name}_search"

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options of one question."""
        fields = SEARCH_SETTINGS[self.name].model_fields
        return tuple(name for name in fields if name != "for_questions")

    def budget_of(self, settings: BaseModel) -> int | None:
        """Return the most tokens of prompts and replies; None is no limit."""
        most: int | None = getattr(settings, self.budget_option)
        return most

    def now_of(self, settings: BaseModel) -> date | None:
        """Return the day that "the last week" in a question ends with; None is that of the newest document."""
        now: date | None = getattr(settings, "now")  # noqa: B009 - a field of every section
        return now

    def limit_options(self, options: dict[str, Any], most: int | None) -> dict[str, Any]:
        """Return options with a token budget among them, if there is one."""
        return options if most is None else {**options, self.budget_option: most}

    def can_read(self, index: IndexReader) -> bool:
        """Whether the index holds what the method reads."""
        return all(index.row_mask(table).any() for table in self.needs)

    def settings_of(self, settings: Settings, strategy: str | None, options: Mapping[str, Any]) -> BaseModel:
        """Return the method's settings with options over them.

        Raises:
            PipelineError: the method has no strategies or not this one, or an option is unknown or does not validate.
        """
        if self.name not in SEARCH_SETTINGS:
            raise PipelineError(f"a search method names `{self.section}`, which is not a section of the settings")
        if strategy is not None:
            if "strategy" not in self.options:
                raise PipelineError(f"strategy {strategy!r}: only local search has text unit selection strategies")
            options = {**options, "strategy": strategy}
        for name in options:
            if name not in self.options:
                raise PipelineError(f"unknown option {name!r} of {self.section}{suggest(name, self.options)}")
        if "strategy" in options:
            check_strategy(options["strategy"])
        try:
            changed = settings.search(self.name, **options)
        except ValidationError as error:
            problems = "; ".join(f"{'.'.join(map(str, p['loc'])) or self.section}: {p['msg']}" for p in error.errors())
            raise PipelineError(f"options of {self.section}: {problems}") from None
        return self._fit(settings, changed)

    def _fit(self, settings: Settings, section: BaseModel) -> BaseModel:
        """Lower a model's context limit to its window, if it is set, and to the token budget.

        A context of a method of many calls gets a share of the budget.
        """
        if settings.answers.engine == "embedded" or "max_context_tokens" not in self.options:
            return section
        limit: int = getattr(section, "max_context_tokens")  # noqa: B009 - not all sections have it
        fit = min(limit, window_room(settings) or limit)
        most = self.budget_of(section)
        if most is not None:
            fit = min(fit, fit_context(settings, round(most * self.context_share), limit))
        return section if fit == limit else section.model_copy(update={"max_context_tokens": fit})


def count_records(context: Context) -> dict[str, Any]:
    """Return the number of records in each table of a context, and its tokens."""
    return {name: len(records) for name, records in vars(context).items()} | {"tokens": context.n_tokens}


def as_text(account: Mapping[str, Any]) -> dict[str, Any]:
    """Return an account whose values are texts."""
    return {key: str(value) for key, value in account.items()}
