"""Usage of models for one question: calls, tokens, money and seconds, by model.

An `Account` counts the calls of one question by section of the settings; `IndexReader.for_question` hands it to the
models. The JSON form of `QueryUsage` is part of the contract of a search's result. Keep out: the content of calls.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.text.counted import counted

EMBEDDINGS = "embeddings"
"""The section that calls to the embedding model count in."""
RERANKING = "reranking"
"""The section that calls to the reranking model count in."""


@dataclass(frozen=True)
class ModelUsage:
    """Usage of one model for a query.

    Attributes:
        calls: calls that the endpoint answered; `cached` requests were answered from the store.
        cost: US dollars, without those of the `unpriced` calls. 0 for the embedded engine.
        seconds: total time of all calls; calls side by side count each.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    cached: int = 0
    unpriced: int = 0
    seconds: float = 0.0

    def __add__(self, other: ModelUsage) -> ModelUsage:
        return ModelUsage(**{name: mine + vars(other)[name] for name, mine in vars(self).items()})

    def __str__(self) -> str:
        cached = f", {self.cached} cached" if self.cached else ""
        unpriced = f" and {counted(self.unpriced, 'calls')} of unknown price" if self.unpriced else ""
        priced = f"${self.cost:.4f}{unpriced}"
        cost = priced if self.cost or not self.unpriced else "price unknown"
        tokens = self.input_tokens + self.output_tokens
        calls = f"{counted(self.calls, 'calls')}{cached}"
        return f"{calls}, {tokens:,} tokens, {cost}, {self.seconds:.1f} s"


EMBEDDED = "embedded"
"""The embedded engine's name where usage is given by model."""


@dataclass(frozen=True)
class QueryUsage:
    """Calls, tokens and cost of a query, by model."""

    by_model: dict[str, ModelUsage] = field(default_factory=dict)

    def __add__(self, other: QueryUsage) -> QueryUsage:
        names = sorted({*self.by_model, *other.by_model})
        none = ModelUsage()
        return QueryUsage({name: self.by_model.get(name, none) + other.by_model.get(name, none) for name in names})

    @property
    def of_models(self) -> ModelUsage:
        """The usage of all models, without that of the embedded engine."""
        return sum((used for name, used in self.by_model.items() if name != EMBEDDED), ModelUsage())

    def to_dict(self) -> dict[str, Any]:
        total = sum(self.by_model.values(), ModelUsage())
        return {
            "calls": total.calls,
            "cached": total.cached,
            "tokens": total.input_tokens + total.output_tokens,
            "cost": total.cost,
            "by_model": {name: asdict(used) for name, used in sorted(self.by_model.items())},
        }

    def to_line(self) -> str:
        """Return one line about the chat and embedding models that were called, "" if none was."""
        lines = ((name, used) for name, used in sorted(self.by_model.items()) if name != EMBEDDED)
        return "; ".join(f"{name}: {used}" for name, used in lines)


def embedded_usage(n_read: int, n_written: int) -> QueryUsage:
    """Return the usage of the embedded engine: tokens read and written, no call, no cost."""
    return QueryUsage({EMBEDDED: ModelUsage(input_tokens=n_read, output_tokens=n_written)})


# ------------------------------------------------------------------------------------------------------------- accounts


@dataclass(frozen=True)
class Account:
    """Calls by section of the settings."""

    by_section: dict[str, CallStats] = field(default_factory=dict)

    def section(self, name: str) -> CallStats:
        """Return the statistics that count the calls of a section."""
        return self.by_section.setdefault(name, CallStats())

    def by_model(self, settings: Settings) -> dict[str, ModelUsage]:
        """Return the usage of each model by its name; models without calls are left out."""
        used: dict[str, ModelUsage] = {}
        for section, stats in self.by_section.items():
            if stats.n_calls or stats.n_cached:
                name = _model_of(section, settings)
                used[name] = used.get(name, ModelUsage()) + _usage_of(stats)
        return used


def _model_of(section: str, settings: Settings) -> str:
    if section == EMBEDDINGS:
        return settings.embedding_model.model
    return settings.rerank_model.model if section == RERANKING else settings.chat_model_for(section).model


def _usage_of(stats: CallStats) -> ModelUsage:
    return ModelUsage(
        calls=stats.n_calls,
        input_tokens=stats.prompt_tokens,
        output_tokens=stats.completion_tokens,
        cost=stats.cost,
        cached=stats.n_cached,
        unpriced=stats.n_unpriced,
        seconds=stats.seconds,
    )
