"""Whole stages by a chat model: all records through one pool, failures as data, fallbacks by the embedded engine.

`model_extraction.py`, `model_descriptions.py` and `model_reports.py` say how one record is asked about; here are the
tables. What a model fails at is never absent: a text unit without mentions, a description or report by the embedded
engine, flagged; each is a row of the stage's failures, to be asked about again. Keep out: prompts and replies of one
record, Dagster, disk.
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
from graphrag_pipeline.indexing.extraction.model import ExtractionPlan, UnitMentions, extract_text_unit
from graphrag_pipeline.indexing.graph.model_descriptions import (
    Subject,
    SummaryPlan,
    iterate_subjects,
    summarize_subject,
)
from graphrag_pipeline.indexing.reports.community_reports import Report, Writer
from graphrag_pipeline.indexing.reports.contexts import CommunityContext
from graphrag_pipeline.indexing.reports.model import ModelReport, ReportPlan, write_report
from graphrag_pipeline.models.pool import EarlyCheck, Progress, Work, run_all
from graphrag_pipeline.models.ports import ChatModel, Failure
from graphrag_pipeline.tables import CLAIM_MENTIONS, DESCRIPTIONS, ENTITY_MENTIONS, RELATIONSHIP_MENTIONS

FIRST_UNITS = 8
"""Text units looked at first: where none of them yields anything, the prompt or the model is at fault."""
MIN_NAMING_CHARACTERS = 300
"""Characters (some 50 words) of text in which fewer text units than that must name something."""

T = TypeVar("T")


# ----------------------------------------------------------------------------------------------------------- extraction


@dataclass(frozen=True)
class ExtractedByModel:
    """What some text units yield.

    Attributes:
        tables: entity, relationship and claim mentions.
        failures: text units that are in none of them.
        outside_types: type that is not in the list -> number of mentions.
        problems: reason -> number of records left out or mended for it.
    """

    tables: Mapping[str, pa.Table]
    failures: list[Failure]
    outside_types: Mapping[str, int]
    problems: Mapping[str, int]


def collect_extracted(results: Iterable[UnitMentions | Failure]) -> ExtractedByModel:
    """The tables of what `ask_about_units` gives."""
    units, failures = split_failures(results)
    tables = {
        "entity_mentions": ENTITY_MENTIONS.from_rows([row for unit in units for row in unit.entities]),
        "relationship_mentions": RELATIONSHIP_MENTIONS.from_rows([row for unit in units for row in unit.relationships]),
        "claim_mentions": CLAIM_MENTIONS.from_rows([row for unit in units for row in unit.claims]),
    }
    outside_types, problems = (unit.outside_types for unit in units), (unit.problems for unit in units)
    return ExtractedByModel(tables, failures, _sum(outside_types), _sum(problems))


def extraction_works(text_units: pa.Table, plan: ExtractionPlan, model: ChatModel) -> list[Work[UnitMentions]]:
    """What is to be asked about text units, one work each, in their order."""
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
    """The results of `extraction_works`, in order.

    Args:
        model_name: for the message where nothing is found.
        is_proven: prompt and model have found something before, so text units that name nothing are just that.

    Raises:
        PipelineError: the first text units all yield nothing, or the model cannot be asked at all.
    """
    asked = f"model {model_name!r}, asked with {plan.prompt.path}"
    early_check = None if is_proven else EarlyCheck(FIRST_UNITS, partial(_refuse_nothing, asked))
    return run_all(model.stage, works, model.max_concurrency, progress, early_check)


def _refuse_nothing(asked: str, results: Sequence[UnitMentions | Failure]) -> None:
    read = [result for result in results if isinstance(result, UnitMentions)]
    if any(result.entities or result.relationships for result in read):
        return
    if len(results) == 1 and not read:
        return  # one bad reply is a failure like any other
    if len(results) < FIRST_UNITS and read and sum(result.n_characters for result in read) < MIN_NAMING_CHARACTERS:
        return  # a few short text units may well name nothing
    first = results[0]
    if isinstance(first, Failure):
        told = f"{first.record}: {first.reason}" + (f"; the reply starts {first.reply!r}" if first.reply else "")
    else:
        told = f"the reply starts {first.first_reply!r}"
    raise PipelineError(
        f"extraction stopped: {_count_units(len(results))} nothing. {asked}; {told}. Mend the prompt, the model or its "
        "parameters and run again; replies that could be read are kept. Documents that name nothing can be left out "
        "by input.exclude"
    )


def _count_units(n: int) -> str:
    return f"the first {n} text units all yield" if n > 1 else "the only text unit yields"


def _sum(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return dict(sorted(total.items()))


def split_failures(results: Iterable[T | Failure]) -> tuple[list[T], list[Failure]]:
    """Results and failures apart, each in order."""
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
) -> tuple[pa.Table, list[Failure]]:
    """Give every entity and relationship one description.

    Args:
        entities, relationships: stage tables.
        fall_back: describes those that the model fails at.
        known: rows made by the same code version; a key found there is not asked about again, unless it is a fallback.

    Returns:
        `tables.DESCRIPTIONS`, one row per distinct key, and what failed.
    """
    is_known: set[str] = set()
    parts = [DESCRIPTIONS.empty()]
    if known is not None:
        keys = pa.concat_tables([entities.select(["description_key"]), relationships.select(["description_key"])])
        is_kept = pc.and_(pc.is_in(known["description_key"], keys["description_key"]), pc.invert(known["is_fallback"]))
        parts.append(known.filter(is_kept))
        is_known = set(parts[-1]["description_key"].to_pylist())
    subjects = [s for s in iterate_subjects(entities, relationships) if s.description_key not in is_known]
    works = summary_works(subjects, plan, model)
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


def summary_works(subjects: Iterable[Subject], plan: SummaryPlan, model: ChatModel) -> list[Work[dict[str, Any]]]:
    """What is to be asked about subjects, one work each, in their order."""
    return [Work(subject.name, partial(summarize_subject, subject, plan, model)) for subject in subjects]


def _flag_fallback(rows: pa.Table) -> pa.Table:
    position = rows.schema.get_field_index("is_fallback")
    return rows.set_column(position, rows.schema.field(position), pa.repeat(pa.scalar(True), rows.num_rows))


# -------------------------------------------------------------------------------------------------------------- reports


@dataclass
class ModelWriter:
    """Writes reports by a model; a `community_reports.Writer`.

    Attributes:
        fall_back: writes on communities too small to ask about, and on those that the model fails at.
        failures: of all calls so far.
        problems: reason -> number of things left out of replies or mended in them, so far.
    """

    plan: ReportPlan
    model: ChatModel
    min_report_size: int
    fall_back: Writer
    progress: Progress | None = None
    failures: list[Failure] = field(default_factory=list)
    problems: Counter[str] = field(default_factory=Counter)

    def __call__(self, contexts: Sequence[CommunityContext]) -> list[Report]:
        """One report per context, in order."""
        asked = [context for context in contexts if context.n_entities >= self.min_report_size]
        works = [Work(context.community_id, partial(write_report, context, self.plan, self.model)) for context in asked]
        answers = run_all(self.model.stage, works, self.model.max_concurrency, self.progress)
        results = {context.community_id: answer for context, answer in zip(asked, answers, strict=True)}
        self.failures += [result for result in results.values() if isinstance(result, Failure)]
        others = [context for context in contexts if not isinstance(results.get(context.community_id), ModelReport)]
        written = iter(self.fall_back(others))
        return [self._choose(results.get(context.community_id), written) for context in contexts]

    def _choose(self, result: ModelReport | Failure | None, written: Iterator[Report]) -> Report:
        """The model's report, else the next one of the embedded engine."""
        if isinstance(result, ModelReport):
            self.problems.update(result.problems)
            return replace(result.report, request_key=result.request_key)
        report = next(written)
        return report if result is None else replace(report, is_fallback=True)
