"""Whole stages by a chat model: all records in one pool, failures as data, fallbacks by the embedded engine.

`extraction/model.py`, `graph/model_descriptions.py` and `reports/model.py` request one record each. This module makes
tables of the results. A failed record stays in the index: a text unit without mentions, or a description or report
that the embedded engine writes and that is marked as a fallback. Each failure is also a row in the stage's table of
failures, so that a later run requests it again. Keep out: prompts and replies of one record, Dagster, disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.indexing.extraction.kept_records import ABSENT_NAME
from graphrag_pipeline.indexing.extraction.model import ExtractionPlan, UnitMentions, extract_text_unit
from graphrag_pipeline.indexing.graph.model_descriptions import (
    Subject,
    SummaryPlan,
    iterate_subjects,
    needs_call,
    summarize_subject,
)
from graphrag_pipeline.indexing.reports.community_reports import Report, Writer
from graphrag_pipeline.indexing.reports.contexts import CommunityContext
from graphrag_pipeline.indexing.reports.model import ModelReport, ReportPlan, write_report
from graphrag_pipeline.models.pool import EarlyCheck, Progress, Work, run_all
from graphrag_pipeline.models.ports import ChatModel, Failure
from graphrag_pipeline.tables import CLAIM_MENTIONS, DESCRIPTIONS, ENTITY_MENTIONS, RELATIONSHIP_MENTIONS

FIRST_UNITS = 8
"""Number of text units checked first. If none of them yields a record, the prompt or the model does not work."""
MIN_NAMING_CHARACTERS = 300
"""Characters (about 50 words). Fewer than `FIRST_UNITS` text units with less text than this may name nothing."""

T = TypeVar("T")


# ----------------------------------------------------------------------------------------------------------- extraction


@dataclass(frozen=True)
class ExtractedByModel:
    """The mentions and failures of some text units.

    Attributes:
        tables: entity, relationship and claim mentions.
        failures: text units without a usable reply; they are in none of the tables.
        outside_types: type that is not in the configured list -> number of mentions.
        problems: reason -> number of records that were left out or repaired for it.
    """

    tables: Mapping[str, pa.Table]
    failures: list[Failure]
    outside_types: Mapping[str, int]
    problems: Mapping[str, int]


def collect_extracted(results: Iterable[UnitMentions | Failure]) -> ExtractedByModel:
    """Build the tables from the results of `extract_text_units`."""
    units, failures = split_failures(results)
    tables = {
        "entity_mentions": ENTITY_MENTIONS.from_rows([row for unit in units for row in unit.entities]),
        "relationship_mentions": RELATIONSHIP_MENTIONS.from_rows([row for unit in units for row in unit.relationships]),
        "claim_mentions": CLAIM_MENTIONS.from_rows([row for unit in units for row in unit.claims]),
    }
    outside_types, problems = (unit.outside_types for unit in units), (unit.problems for unit in units)
    return ExtractedByModel(tables, failures, _sum(outside_types), _sum(problems))


def extraction_works(text_units: pa.Table, plan: ExtractionPlan, model: ChatModel) -> list[Work[UnitMentions]]:
    """Return one extraction work per text unit, in order."""
    pairs = zip(text_units["id"].to_pylist(), text_units["text"].to_pylist(), strict=True)
    return [Work(unit_id, partial(extract_text_unit, unit_id, text, plan, model)) for unit_id, text in pairs]


def extract_text_units(
    works: Sequence[Work[UnitMentions]],
    plan: ExtractionPlan,
    model: ChatModel,
    model_name: str,
    progress: Progress | None = None,
    is_proven: bool = False,
) -> list[UnitMentions | Failure]:
    """Run `extraction_works` and return the results in order.

    Args:
        model_name: for the error message if nothing is found.
        is_proven: whether this prompt and model found something before; then text units may yield nothing.

    Raises:
        PipelineError: the first text units all yield nothing, the endpoint answers none of them, or the model cannot
            be called.
    """
    used = f"model {model_name!r}, prompt {plan.prompt.path}"
    early_check = None if is_proven else EarlyCheck(FIRST_UNITS, partial(_refuse_nothing, used))
    return run_all(model.stage, works, model.max_concurrency, progress, early_check)


def _refuse_nothing(used: str, results: Sequence[UnitMentions | Failure]) -> None:
    unanswered = [result for result in results if isinstance(result, Failure) and result.is_unanswered]
    if len(unanswered) == len(results) > 1:
        raise PipelineError(
            f"extraction stopped: the endpoint answered none of the first {len(results)} text units "
            f"({used.split(',')[0]}; {unanswered[0].record}: {unanswered[0].reason}). If the server is slow, raise "
            "timeout_s or lower max_concurrency; replies so far are stored."
        )
    if len(unanswered) > len(results) / 2:
        return  # too few answers to judge prompt and model
    read = [result for result in results if isinstance(result, UnitMentions)]
    if any(result.entities or result.relationships for result in read):
        return
    if len(results) == 1 and not read:
        return  # a single bad reply is an ordinary failure
    is_short = len(results) < FIRST_UNITS and sum(result.n_characters for result in read) < MIN_NAMING_CHARACTERS
    if is_short and read and not any(ABSENT_NAME in result.problems for result in read):
        return  # a few short text units can name nothing
    first = results[0]
    if isinstance(first, Failure):
        is_shown = "the reply starts" in first.reason or not first.reply
        cause = f"{first.record}: {first.reason}" + ("" if is_shown else f"; the reply starts {first.reply!r}")
    else:
        counts = ", ".join(f"{n} x {reason}" for reason, n in first.problems.items())
        cause = f"{counts + '; ' if counts else ''}the reply starts {first.first_reply!r}"
    raise PipelineError(
        f"extraction stopped: {_count_units(len(results))} nothing ({used}; {cause}). Change the prompt, the model or "
        "its parameters and run again; usable replies are kept. To leave out documents that name nothing, list them "
        "in `input.exclude`."
    )


def _count_units(n: int) -> str:
    return f"the first {n} text units all yield" if n > 1 else "the only text unit yields"


def _sum(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return dict(sorted(total.items()))


def split_failures(results: Iterable[T | Failure]) -> tuple[list[T], list[Failure]]:
    """Separate results and failures, each in order."""
    kept: list[T] = []
    failures: list[Failure] = []
    for result in results:
        if isinstance(result, Failure):
            failures.append(result)
        else:
            kept.append(result)
    return kept, failures


# --------------------------------------------------------------------------------------------------------- descriptions

Summarize = Callable[[pa.Table, pa.Table], pa.Table]
"""Entities and relationships -> `tables.DESCRIPTIONS`, by the embedded engine."""


def summarize_descriptions_by_model(
    entities: pa.Table,
    relationships: pa.Table,
    plan: SummaryPlan,
    model: ChatModel,
    fall_back: Summarize,
    known: pa.Table | None = None,
    progress: Progress | None = None,
    problems: Counter[str] | None = None,
) -> tuple[pa.Table, list[Failure]]:
    """Give every entity and relationship one description.

    Args:
        entities, relationships: stage tables.
        fall_back: describes the records for which the model failed.
        known: rows of the same code version; their keys are not requested again, except fallbacks.
        problems: counts the replies that were cut off.

    Returns:
        `tables.DESCRIPTIONS`, one row per distinct key, and the failures.
    """
    is_known: set[str] = set()
    parts = [DESCRIPTIONS.empty()]
    if known is not None:
        keys = pa.concat_tables([entities.select(["description_key"]), relationships.select(["description_key"])])
        is_kept = pc.and_(pc.is_in(known["description_key"], keys["description_key"]), pc.invert(known["is_fallback"]))
        parts.append(known.filter(is_kept))
        is_known = set(parts[-1]["description_key"].to_pylist())
    subjects = [s for s in iterate_subjects(entities, relationships) if s.description_key not in is_known]
    works = summary_works(subjects, plan, model, problems)
    results = run_all(model.stage, works, model.max_concurrency, progress)
    rows, failures = split_failures(results)
    parts.append(DESCRIPTIONS.from_rows(rows))
    failed = [s.description_key for s, r in zip(subjects, results, strict=True) if isinstance(r, Failure)]
    if failed:
        chosen = [
            rows.filter(pc.is_in(rows["description_key"], pa.array(failed))) for rows in (entities, relationships)
        ]
        parts.append(_flag_fallback(fall_back(*chosen)))
    return DESCRIPTIONS.sort(pa.concat_tables(parts)), failures


def summary_works(
    subjects: Iterable[Subject], plan: SummaryPlan, model: ChatModel, problems: Counter[str] | None = None
) -> list[Work[dict[str, Any]]]:
    """Return one summary work per subject, in order; `problems` counts the replies that were cut off."""
    return [
        Work(subject.name, partial(summarize_subject, subject, plan, model, problems), not needs_call(subject, plan))
        for subject in subjects
    ]


def _flag_fallback(rows: pa.Table) -> pa.Table:
    position = rows.schema.get_field_index("is_fallback")
    return rows.set_column(position, rows.schema.field(position), pa.repeat(pa.scalar(True), rows.num_rows))


# -------------------------------------------------------------------------------------------------------------- reports


@dataclass
class ModelWriter:
    """A `community_reports.Writer` that requests reports of a model.

    Attributes:
        fall_back: writes the reports on communities below `min_report_size` and those for which the model failed.
        failures: failures of all calls so far.
        problems: reason -> number of parts of replies left out or repaired so far.
    """

    plan: ReportPlan
    model: ChatModel
    min_report_size: int
    fall_back: Writer
    progress: Progress | None = None
    failures: list[Failure] = field(default_factory=list)
    problems: Counter[str] = field(default_factory=Counter)

    def __call__(self, contexts: Sequence[CommunityContext]) -> list[Report]:
        """Return one report per context, in order."""
        requested = [context for context in contexts if context.n_entities >= self.min_report_size]
        works = [
            Work(context.community_id, partial(write_report, context, self.plan, self.model)) for context in requested
        ]
        answers = run_all(self.model.stage, works, self.model.max_concurrency, self.progress)
        results = {context.community_id: answer for context, answer in zip(requested, answers, strict=True)}
        self.failures += [result for result in results.values() if isinstance(result, Failure)]
        others = [context for context in contexts if not isinstance(results.get(context.community_id), ModelReport)]
        written = iter(self.fall_back(others))
        return [self._choose(results.get(context.community_id), written) for context in contexts]

    def _choose(self, result: ModelReport | Failure | None, written: Iterator[Report]) -> Report:
        """Return the model's report, else the next one of the embedded engine."""
        if isinstance(result, ModelReport):
            self.problems.update(result.problems)
            return replace(result.report, request_key=result.request_key)
        report = next(written)
        return report if result is None else replace(report, is_fallback=True)
