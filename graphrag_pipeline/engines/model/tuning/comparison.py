"""Comparison of the present prompts with a tuned set: both extract the same text units, figures stand side by side.

The text units were not shown to the model when it wrote the set. Replies are stored: an index with either set of
prompts does not pay for them again. The index does not change.

Figures of extraction by one set of prompts over a sample of text units. Pure: mentions in, numbers out.

    entities, relationships    distinct names, distinct pairs of a text unit
    outside_share              entity mentions of types outside the list of the set
    repeated_share             junk by repetition: records that repeat an earlier one, word for word or by name and type
    absent_share               entity records that were left out because the text unit holds their name in no form
    isolated_share             distinct names without a relationship in their text unit
    agreement                  F1 of the names and those of the embedded engine

A name agrees with another one if the words of one are all words of the other. Key phrases of the embedded
engine may be found or not: they support a name of the model, but need not be found.

Keep out: figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from graphrag_pipeline.engines.model.extraction.conversations import UnitMentions
from graphrag_pipeline.engines.model.extraction.extractor import ModelExtractor
from graphrag_pipeline.engines.model.extraction.kept_records import ABSENT_NAME
from graphrag_pipeline.engines.model.extraction.reply_records import REPEATED
from graphrag_pipeline.engines.model.tuning.adoption import root_with
from graphrag_pipeline.engines.model.tuning.sampling import Corpus, choose_units
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.confidence import (
    Estimate,
    PairedDifference,
    compare_pairs,
    estimate_mean,
    estimate_share,
)
from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.inspection.costs import StageEstimate, estimate_extraction
from graphrag_pipeline.inspection.stage_trial import paid_calls, scale_calls
from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.models.metering import Meter, MeteredModel
from graphrag_pipeline.models.pool import run_all
from graphrag_pipeline.models.ports import Failure
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline.pipeline.tuned_sets import TunedSet
from graphrag_pipeline.settings.section import TuningSample
from graphrag_pipeline.text.name_words import CONCEPT
from graphrag_pipeline.text.sentence_forms import find_words

Row = Mapping[str, Any]
FIGURES = {
    "entities": estimate_mean,
    "relationships": estimate_mean,
    "outside_share": estimate_share,
    "repeated_share": estimate_share,
    "absent_share": estimate_share,
    "isolated_share": estimate_share,
    "agreement": estimate_share,
}
"""Figure of a text unit -> how its mean is estimated."""


@dataclass(frozen=True)
class UnitFigures:
    """Titles of the entities of one text unit, and its figures; a share is None without entities."""

    names: frozenset[str]
    values: Mapping[str, float | None]


@dataclass(frozen=True)
class ExtractionFigures:
    """Figures of a sample of text units.

    Attributes:
        n_units, n_failed: text units with and without a usable reply.
        means: figure -> mean over text units with its interval.
        n_distinct: distinct names over all text units.
        types: entity type -> number of mentions, most first.
        problems: reason -> number of records that were left out or repaired.
    """

    n_units: int
    n_failed: int
    means: Mapping[str, Estimate]
    n_distinct: int
    types: Mapping[str, int]
    problems: Mapping[str, int]


def measure_unit(mentions: UnitMentions, by_rule: Sequence[Row]) -> UnitFigures:
    """Return the figures of a text unit.

    Args:
        by_rule: entity mentions of the embedded engine in it.
    """
    entities, relationships = mentions.entities, mentions.relationships
    names = {normalize_title(row["name"]) for row in entities}
    pairs = {frozenset(normalize_title(row[end]) for end in ("source", "target")) for row in relationships}
    n_kept, n_again = len(entities) + len(relationships), mentions.problems.get(REPEATED, 0)
    n_distinct = len({(normalize_title(row["name"]), row["type"]) for row in entities}) + len(pairs)
    n_absent = mentions.problems.get(ABSENT_NAME, 0)
    values = {
        "entities": len(names),
        "relationships": len(pairs),
        "outside_share": _share(sum(mentions.outside_types.values()), len(entities)),
        "repeated_share": _share(n_again + n_kept - n_distinct, n_kept + n_again),
        "absent_share": _share(n_absent, len(entities) + n_absent),
        "isolated_share": _share(len(names - set().union(*pairs)), len(names)),
        "agreement": measure_agreement(names, by_rule),
    }
    return UnitFigures(frozenset(names), values)


def _share(n: int, total: int) -> float | None:
    return n / total if total else None


def measure_agreement(names: set[str], by_rule: Sequence[Row]) -> float | None:
    """Return the F1 of names and those of the embedded engine; None if it finds no name but key phrases."""
    all_known = {normalize_title(row["name"]) for row in by_rule}
    wanted = {normalize_title(row["name"]) for row in by_rule if row["type"] != CONCEPT}
    if not wanted:
        return None
    right = sum(any(_agree(name, known) for known in all_known) for name in names)
    found = sum(any(_agree(name, known) for name in names) for known in wanted)
    precision, recall = (right / len(names) if names else 0.0), found / len(wanted)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _agree(name: str, other: str) -> bool:
    words, others = set(find_words(name)), set(find_words(other))
    return words <= others or others <= words


def sum_figures(units: Sequence[UnitFigures | None], mentions: Sequence[UnitMentions | None]) -> ExtractionFigures:
    """Return the figures of a sample; None stands for a text unit without a usable reply."""
    read, results = [unit for unit in units if unit], [result for result in mentions if result]
    types = Counter(row["type"] for result in results for row in result.entities)
    problems: Counter[str] = Counter()
    for result in results:
        problems.update(result.problems)
    values = {name: [unit.values[name] for unit in read] for name in FIGURES}
    return ExtractionFigures(
        n_units=len(read),
        n_failed=len(units) - len(read),
        means={name: FIGURES[name]([v for v in of_units if v is not None]) for name, of_units in values.items()},
        n_distinct=len(frozenset().union(*(unit.names for unit in read))),
        types=dict(sorted(types.items(), key=lambda item: (-item[1], item[0]))),
        problems=dict(sorted(problems.items())),
    )


PRESENT = "present prompts"
_STAGE = STAGES["extracted_graph"]


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
    ids, n_all = units["id"].to_pylist(), corpus.units.num_rows
    by_rule = corpus.find_by_rule(ids)
    old = _extract(root, PRESENT, units, by_rule, n_all)
    new = _extract(root_with(root, tuned), tuned.name, units, by_rule, n_all)
    n_names = sum(len({row["name"] for row in rows if row["type"] != CONCEPT}) for rows in by_rule.values())
    differences = []
    for figure in FIGURES:
        values = ([unit.values[figure] if unit else None for unit in side.units] for side in (new, old))
        differences.append(compare_pairs(figure, *values))
    compared = [_compare_unit(*row) for row in zip(ids, old.units, new.units, old.failures, new.failures, strict=True)]
    return PromptComparison(old.side, new.side, n_all, n_names / len(ids), tuple(differences), tuple(compared))


@dataclass(frozen=True)
class _Extracted:
    """One side with the figures of each text unit (None if it failed) and the reasons of failures ("" if not)."""

    side: Side
    units: tuple[UnitFigures | None, ...]
    failures: tuple[str, ...]


def _extract(
    root: Root, name: str, units: pa.Table, by_rule: Mapping[str, Sequence[Mapping[str, Any]]], n_all: int
) -> _Extracted:
    account, meter = CallStats(), Meter()
    model = MeteredModel(root.counted_in(account).models.chat_model("extraction"), meter)
    results = run_all(_STAGE.name, ModelExtractor(root).works(units, model), model.max_concurrency)
    mentions = [None if isinstance(result, Failure) else result for result in results]
    pairs = zip(units["id"].to_pylist(), mentions, strict=True)
    measured = tuple(measure_unit(found, by_rule[unit_id]) if found else None for unit_id, found in pairs)
    scaled = scale_calls(root, _STAGE, meter, n_all / units.num_rows)
    side = Side(name, sum_figures(measured, mentions), paid_calls(_STAGE, account), scaled)
    return _Extracted(side, measured, tuple(r.reason if isinstance(r, Failure) else "" for r in results))


def _compare_unit(
    unit_id: str, old: UnitFigures | None, new: UnitFigures | None, old_failure: str, new_failure: str
) -> ComparedUnit:
    before, after = (unit.names if unit else frozenset() for unit in (old, new))
    only = tuple(sorted(before - after)), tuple(sorted(after - before))
    return ComparedUnit(unit_id, *only, len(before & after), old_failure, new_failure)
