"""Comparison of the present prompts with a tuned set: both extract the same text units, figures stand side by side.

The text units were not shown to the model when it wrote the set. Replies are stored: an index with either set of
prompts does not pay for them again. The index does not change. Keep out: figures (`extraction_figures.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from graphrag_pipeline.engines.model.extraction.extractor import ModelExtractor
from graphrag_pipeline.engines.model.tuning.adoption import root_with
from graphrag_pipeline.engines.model.tuning.corpus import Corpus
from graphrag_pipeline.engines.model.tuning.extraction_figures import (
    COUNTS,
    FIGURES,
    ExtractionFigures,
    UnitFigures,
    measure_unit,
    sum_figures,
)
from graphrag_pipeline.engines.model.tuning.sampling import choose_units
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.confidence import PairedDifference, compare_amounts, compare_pairs
from graphrag_pipeline.inspection.costs import StageEstimate, estimate_extraction, with_price
from graphrag_pipeline.inspection.stage_trial import TrialModel
from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.models.pool import run_all
from graphrag_pipeline.models.ports import Failure
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.tuned_sets import TunedSet
from graphrag_pipeline.settings.section import TuningSample
from graphrag_pipeline.text.entity_types import CONCEPT

PRESENT = "present prompts"
_STAGE = "extracted_graph"


@dataclass(frozen=True)
class Side:
    """One set of prompts: its figures, what the sample cost and what all text units would cost.

    Attributes:
        name: of the tuned set; `PRESENT` for the prompts in force.
        sample: calls of the sample that were paid now.
        backfill: calls of all text units, scaled from the sample, its stored replies included.
    """

    name: str
    figures: ExtractionFigures
    sample: StageEstimate
    backfill: StageEstimate


@dataclass(frozen=True)
class ComparedUnit:
    """A text unit and the names that only one side found; a failure is the reason why a side has none."""

    id: str
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]
    n_both: int
    old_failure: str = ""
    new_failure: str = ""


@dataclass(frozen=True)
class PromptComparison:
    """Present prompts and tuned set on the same text units.

    Attributes:
        n_units: text units of the corpus.
        embedded: names a text unit that the embedded engine finds, without key phrases.
        differences: figure -> new minus old, paired by text unit.
    """

    old: Side
    new: Side
    n_units: int
    embedded: float
    differences: tuple[PairedDifference, ...]
    units: tuple[ComparedUnit, ...]


def choose_compared(root: Root, corpus: Corpus, tuned: TunedSet, size: int) -> pa.Table:
    """Return at most `size` text units that the model did not see when it wrote the set, nor another of their text.

    Raises:
        PipelineError: the model saw the text of every text unit.
    """
    settings = TuningSample()
    chosen = choose_units(
        corpus.units,
        settings.sample,
        size,
        settings.seed,
        root.settings.storage.n_buckets,
        lambda: root.static_embedder,
        excluded=_find_seen(corpus.units, tuned),
    )
    if not chosen:
        raise PipelineError(
            f"the model saw all {corpus.units.num_rows:,} text units when it wrote the set `{tuned.name}`, so none is "
            "left to compare on; add documents, or write another set with a smaller --size"
        )
    return corpus.rows_of([unit.id for unit in chosen])


def _find_seen(units: pa.Table, tuned: TunedSet) -> set[str]:
    """Return the ids of text units whose text is in the sample or in an example of the set."""
    ids = {unit_id for unit_id, _ in tuned.sample} | {example.text_unit_id for example in tuned.examples}
    rows = list(zip(units["id"].to_pylist(), units["text"].to_pylist(), strict=True))
    texts = {text for unit_id, text in rows if unit_id in ids}
    return {unit_id for unit_id, text in rows if text in texts}


def estimate_comparison(root: Root, tuned: TunedSet, units: pa.Table) -> list[StageEstimate]:
    """Return the calls, tokens and cost of both sides; replies that are stored cost nothing."""
    sides = ((root, PRESENT), (root_with(root, tuned), tuned.name))
    return [replace(estimate_extraction(side, units), stage=name) for side, name in sides]


def compare_sets(root: Root, corpus: Corpus, tuned: TunedSet, units: pa.Table) -> PromptComparison:
    """Extract text units with the present prompts and with the set.

    Raises:
        PipelineError: no request can be answered, or the budget is spent. Replies so far are stored.
    """
    ids = units["id"].to_pylist()
    by_rule = corpus.find_by_rule(ids)
    old = _extract(root, PRESENT, units, by_rule, corpus.units.num_rows)
    new = _extract(root_with(root, tuned), tuned.name, units, by_rule, corpus.units.num_rows)
    return PromptComparison(
        old.side,
        new.side,
        corpus.units.num_rows,
        sum(len(_names(rows)) for rows in by_rule.values()) / len(ids),
        tuple(_compare(figure, new.values(figure), old.values(figure)) for figure in FIGURES),
        tuple(_compare_unit(*row) for row in zip(ids, old.units, new.units, old.failures, new.failures, strict=True)),
    )


def _compare(figure: str, new: Sequence[float | None], old: Sequence[float | None]) -> PairedDifference:
    return (compare_amounts if figure in COUNTS else compare_pairs)(figure, new, old)


@dataclass(frozen=True)
class _Extracted:
    """One side with the figures of each text unit (None if it failed) and the reasons of failures ("" if not)."""

    side: Side
    units: tuple[UnitFigures | None, ...]
    failures: tuple[str, ...]

    def values(self, figure: str) -> list[float | None]:
        return [getattr(unit, figure) if unit else None for unit in self.units]


def _extract(
    root: Root, name: str, units: pa.Table, by_rule: Mapping[str, Sequence[Mapping[str, Any]]], n_all: int
) -> _Extracted:
    account = CallStats()
    model = TrialModel(root.counted_in(account).models.chat_model("extraction"))
    results = run_all(_STAGE, ModelExtractor(root).works(units, model), model.max_concurrency)
    mentions = [None if isinstance(result, Failure) else result for result in results]
    pairs = zip(units["id"].to_pylist(), mentions, strict=True)
    measured = tuple(measure_unit(found, by_rule[unit_id]) if found else None for unit_id, found in pairs)
    side = Side(name, sum_figures(measured, mentions), _paid(account), _scale(root, model, n_all / units.num_rows))
    return _Extracted(side, measured, tuple(r.reason if isinstance(r, Failure) else "" for r in results))


def _paid(account: CallStats) -> StageEstimate:
    cost = None if account.n_unpriced else account.cost
    tokens = account.prompt_tokens, account.completion_tokens
    return StageEstimate(_STAGE, account.n_calls, account.n_cached, *tokens, cost)


def _scale(root: Root, model: TrialModel, share: float) -> StageEstimate:
    """Return the calls of the sample, stored replies included, scaled to all text units."""
    counts = (round(n * share) for n in (model.n_replies, model.prompt_tokens, model.completion_tokens))
    n_calls, prompt_tokens, completion_tokens = counts
    scaled = StageEstimate(_STAGE, n_calls, 0, prompt_tokens, completion_tokens, is_scaled=True)
    return with_price(root.settings, scaled, "extraction")


def _names(rows: Sequence[Mapping[str, Any]]) -> set[str]:
    return {row["name"] for row in rows if row["type"] != CONCEPT}


def _compare_unit(
    unit_id: str, old: UnitFigures | None, new: UnitFigures | None, old_failure: str, new_failure: str
) -> ComparedUnit:
    before, after = (unit.names if unit else frozenset() for unit in (old, new))
    return ComparedUnit(
        unit_id,
        tuple(sorted(before - after)),
        tuple(sorted(after - before)),
        len(before & after),
        old_failure,
        new_failure,
    )
