"""Try a stage on a sample of its input, without a change to the index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.citations import number_citations, render_full_content
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.indexing.document_entities import without_documents
from graphrag_pipeline.indexing.ports import CallingDescriber, CallingExtractor, CallingReporter, iterate_subjects
from graphrag_pipeline.indexing.reports.community_reports import Report, report_communities
from graphrag_pipeline.indexing.reports.contexts import CommunityContext
from graphrag_pipeline.indexing.text_units import with_context
from graphrag_pipeline.inspection.costs import StageEstimate, with_price
from graphrag_pipeline.inspection.estimates import estimate_index
from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.models.metering import Meter, MeteredModel
from graphrag_pipeline.models.pool import Work, run_all
from graphrag_pipeline.models.ports import ChatModel, Failure
from graphrag_pipeline.pipeline.code_changes import CodeChange, find_code_changes
from graphrag_pipeline.pipeline.detected_input import INPUT
from graphrag_pipeline.pipeline.prompt_texts import diff_prompts
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stage_code import uses_chat_model
from graphrag_pipeline.pipeline.stages import STAGES, Stage, all_upstream_of, owner_of
from graphrag_pipeline.pipeline.staleness import StalePartition, find_stale_versions
from graphrag_pipeline.publishing.contract_tables import CITED_KINDS
from graphrag_pipeline.text.counted import spread_rows
from graphrag_pipeline.text.tokens import count_tokens_each

_MENTIONS = ("entity_mentions", "relationship_mentions", "claim_mentions")
_REPORTED = ("communities", "entities", "relationships", "covariates", "descriptions")

Row = Mapping[str, Any]
Choose = Callable[[Sequence[str]], list[str]]
"""Chooses the ids of the sample among all."""


@dataclass(frozen=True)
class Result:
    """Result of a stage for a record: its text and, for extraction, the names found."""

    text: str
    found: frozenset[str] = frozenset()


@dataclass(frozen=True)
class SampledRecord:
    """A record and its result in the stage tables."""

    id: str
    name: str
    old: Result


@dataclass(frozen=True)
class Sample:
    """Records of one stage, and how to make them again.

    Attributes:
        asked_about: kind of the records, in words.
        n_records: number of all records that the stage sends to its model.
        works: one work per record, for a model.
        read: converts the reply of a work to a result.
        make: one result per record by an engine without calls.
    """

    asked_about: str
    n_records: int
    records: Sequence[SampledRecord]
    works: Callable[[ChatModel], list[Work[Any]]]
    read: Callable[[Any], Result]
    make: Callable[[], list[Result]]


def _read_all(root: Root, table: str) -> pa.Table:
    parts = [root.tables.read(table, partition) for partition in owner_of(table).partitions(root.settings)]
    return pa.concat_tables(parts).combine_chunks()


def _rows_with(rows: pa.Table, column: str, values: Iterable[str]) -> pa.Table:
    return rows.filter(pc.is_in(rows[column], value_set=pa.array(sorted(values), pa.string())))


# ----------------------------------------------------------------------------------------------------------- extraction


def sample_text_units(root: Root, choose: Choose) -> Sample:
    """Text units and their mentions."""
    units = _read_all(root, "text_units")
    ids = choose(units["id"].to_pylist())
    chosen = _rows_with(units, "id", ids).sort_by("id")
    all_documents = _read_all(root, "documents")
    title_of = dict(zip(all_documents["id"].to_pylist(), all_documents["title"].to_pylist(), strict=True))
    stored = {name: _rows_with(_read_all(root, name), "text_unit_id", ids) for name in _MENTIONS}
    old = _results_by_unit(without_documents(stored), ids)
    records = [
        SampledRecord(
            row["id"], f"{title_of.get(row['document_id'], '')}, characters {row['start']:,}-{row['end']:,}", was
        )
        for row, was in zip(chosen.select(["id", "document_id", "start", "end"]).to_pylist(), old, strict=True)
    ]
    extractor = root.extractor()

    def read(mentions: Any) -> Result:
        tables = cast(CallingExtractor, extractor).collect([mentions]).tables
        return _describe_mentions(*(tables[name].to_pylist() for name in _MENTIONS))

    def make() -> list[Result]:  # from whole documents, because a name may be introduced in another text unit
        document_ids = set(chosen["document_id"].to_pylist())
        documents = _rows_with(all_documents, "id", document_ids)
        found = extractor.extract(documents, _rows_with(units, "document_id", document_ids))
        return _results_by_unit(found.tables, ids)

    return Sample(
        "text unit",
        units.num_rows,
        records,
        lambda model: cast(CallingExtractor, extractor).works(with_context(chosen, all_documents), model),
        read,
        make,
    )


def _results_by_unit(mentions: Mapping[str, pa.Table], ids: Sequence[str]) -> list[Result]:
    rows: dict[str, dict[str, list[Row]]] = {unit_id: {name: [] for name in _MENTIONS} for unit_id in ids}
    for name, table in mentions.items():
        for row in table.to_pylist():
            if row["text_unit_id"] in rows:
                rows[row["text_unit_id"]][name].append(row)
    return [_describe_mentions(*rows[unit_id].values()) for unit_id in ids]


def _describe_mentions(entities: Iterable[Row], relationships: Iterable[Row], claims: Iterable[Row]) -> Result:
    """Render one line per mention, under the normalized name of the entity or pair."""
    found: dict[str, list[str]] = {}
    for row in entities:
        found.setdefault(normalize_title(row["name"]), []).append(f"({row['type']}) {row['description']}")
    for row in relationships:
        ends = sorted(normalize_title(row[end]) for end in ("source", "target"))
        found.setdefault(" -- ".join(ends), []).append(f"({row['strength']:g}) {row['description']}")
    claimed = [f"claim {row['subject']} -> {row['object']} ({row['status']}) {row['description']}" for row in claims]
    lines = [f"{name} {text}".rstrip() for name, texts in found.items() for text in texts]
    return Result("\n".join(lines + claimed), frozenset(found))


# --------------------------------------------------------------------------------------------------------- descriptions


def sample_descriptions(root: Root, choose: Choose) -> Sample:
    """Entities and relationships whose descriptions a model summarizes, and their summaries."""
    tables = root.tables.read("entities"), root.tables.read("relationships")
    describer = root.describer()
    calling = cast(CallingDescriber, describer) if root.settings.descriptions.uses_model else None
    several = {
        subject.description_key: subject
        for subject in iterate_subjects(*tables)
        if (calling.needs_call(subject) if calling else len(set(subject.descriptions)) > 1)
    }
    keys = choose(list(several))
    subjects = [several[key] for key in keys]
    stored = _descriptions_by_key(_rows_with(root.tables.read("descriptions"), "description_key", keys))

    def make() -> list[Result]:
        entities, relationships = (_rows_with(rows, "description_key", keys) for rows in tables)
        made = _descriptions_by_key(describer.describe(entities, relationships).descriptions)
        return [made[key] for key in keys]

    return Sample(
        "entity or relationship with several descriptions",
        len(several),
        [SampledRecord(s.description_key, s.name, stored.get(s.description_key, Result(""))) for s in subjects],
        lambda model: cast(CallingDescriber, describer).works(subjects, model),
        lambda row: Result(row["description"]),
        make,
    )


def _descriptions_by_key(rows: pa.Table) -> dict[str, Result]:
    pairs = zip(rows["description_key"].to_pylist(), rows["description"].to_pylist(), strict=True)
    return {key: Result(text) for key, text in pairs}


# -------------------------------------------------------------------------------------------------------------- reports


def sample_communities(root: Root, choose: Choose) -> Sample:
    """Communities that are large enough for a model report; their children keep the present reports."""
    stored = {row["community_id"]: row for row in root.tables.read("community_reports").to_pylist()}
    settings = root.settings.reports
    contexts: dict[str, CommunityContext] = {}

    def recall(reported: Sequence[CommunityContext]) -> list[Report]:
        contexts.update((context.community_id, context) for context in reported)
        return [_stored_report(context, stored) for context in reported]

    report_communities(
        **{table: root.tables.read(table) for table in _REPORTED},
        settings=settings,
        write=recall,
        count_tokens=partial(count_tokens_each, encoding=root.settings.text_units.encoding),
    )
    reporter = root.reporter()
    least = reporter.least_size
    large = [key for key, context in contexts.items() if context.n_entities >= least]
    chosen = [contexts[key] for key in choose(large)]
    show = partial(_show_report, _numbers_in_contexts(root, chosen))
    return Sample(
        f"community of at least {least} entities",
        len(large),
        [SampledRecord(c.community_id, ", ".join(c.central), show(_stored_report(c, stored))) for c in chosen],
        lambda model: cast(CallingReporter, reporter).works(chosen, model),
        lambda made: show(made.report),
        lambda: [show(report) for report in reporter.write(chosen)],
    )


def _stored_report(context: CommunityContext, stored: Mapping[str, Row]) -> Report:
    """Return the present report; an empty one if the community has none yet."""
    row = stored.get(context.community_id)
    if row is None:
        return Report(", ".join(context.central), "", (), 0.0, "")
    findings = tuple((finding["summary"], finding["explanation"]) for finding in row["findings"])
    return Report(row["title"], row["summary"], findings, row["rank"], row["rating_explanation"])


def _show_report(numbers: Mapping[str, Mapping[str, int]], report: Report) -> Result:
    """Render a report as queries read it, with citations by the numbers of the published snapshot."""
    findings = [{"summary": heading, "explanation": text} for heading, text in report.findings]
    text = render_full_content(report.title, report.summary, findings)
    return Result(f"{number_citations(text, numbers)}\n\nRating {report.rank:g}: {report.rating_explanation}")


def _numbers_in_contexts(root: Root, contexts: Sequence[CommunityContext]) -> dict[str, dict[str, int]]:
    """Return kind in a citation -> id -> published number, for all records in these contexts."""
    rows = root.snapshots.record_numbers(root.snapshots.current_manifest())
    ids = {record_id for context in contexts for listed in context.numbers.values() for record_id in listed}
    known = _rows_with(rows, "id", ids).to_pylist() if rows is not None else []
    return {
        kind: {row["id"]: row["number"] for row in known if row["kind"] == stored}
        for kind, stored in CITED_KINDS.items()
    }


SAMPLERS: dict[str, Callable[[Root, Choose], Sample]] = {
    "extracted_graph": sample_text_units,
    "summarized_descriptions": sample_descriptions,
    "community_reports": sample_communities,
}
"""Stage -> sampler, for the stages that `try` supports."""
EMBEDDED = "the embedded engine"


@dataclass(frozen=True)
class TriedRecord:
    """One record of the sample.

    Attributes:
        id, name: of the text unit, of the described entity or relationship, or of the community.
        old: text in the stage tables; "" if none.
        new: text made now; "" if that failed.
        added, removed: names found only now, and names found only before, for extraction.
        failure: why there is no new text; "" if there is one.
    """

    id: str
    name: str
    old: str
    new: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    failure: str = ""

    @property
    def is_changed(self) -> bool:
        return self.old != self.new


@dataclass(frozen=True)
class Trial:
    """Result of a trial.

    Attributes:
        made_by: the model's name, or the embedded engine.
        changes: of prompts, model, settings and code since the index was made.
        stale_above: stages above it that must run, and why; the sample reads their present results. Changes of the
            input folder are not checked.
        n_records: records of the index that the stage sends to its model.
        sample: model calls of the sample; None without a model.
        backfill: model calls of all records, scaled from the sample, including its replies.
        estimate: model calls that remain for a backfill (`estimates.py`), with the sample's replies stored.
        prompt_differences: prompt -> unified diff of the changed prompts whose old text is known.
    """

    stage: str
    made_by: str
    changes: tuple[CodeChange, ...]
    stale_above: tuple[str, ...]
    n_records: int
    records: tuple[TriedRecord, ...]
    sample: StageEstimate | None = None
    backfill: StageEstimate | None = None
    estimate: StageEstimate | None = None
    prompt_differences: Mapping[str, str] = field(default_factory=dict)


def find_tried_stage(name: str) -> Stage:
    """Return a stage by its name or by its section of the settings.

    Raises:
        PipelineError: the stage does not exist or cannot be tried; the message lists the stages that can.
    """
    for stage_name in SAMPLERS:
        if name in (stage_name, STAGES[stage_name].engine):
            return STAGES[stage_name]
    known = ", ".join(f"{stage} (or {STAGES[stage].engine})" for stage in SAMPLERS)
    raise PipelineError(
        f"`{name}` is not a stage to try; use {known}; for merges use `graphrag-pipeline merges --dry-run`"
    )


def try_stage(root: Root, stage: Stage, n_sample: int) -> Trial:
    """Run a stage on a sample of its records and compare with the stage tables.

    Raises:
        PipelineError: the stage or a stage above it never ran, there is no record to try, the model is not available,
            or the budget is spent.
    """
    sample = SAMPLERS[stage.name](root, lambda ids: [sorted(ids)[row] for row in spread_rows(len(ids), n_sample)])
    if not sample.records:
        raise PipelineError(f"`{stage.name}` has nothing to try: the index has no {sample.asked_about}")
    changes, above = _find_changes(root, stage), _find_stale_above(root, stage)
    if not uses_chat_model(stage, root.settings):
        return Trial(stage.name, EMBEDDED, changes, above, sample.n_records, _compare(sample, sample.make()))
    account, meter = CallStats(), Meter()
    model = MeteredModel(root.counted_in(account).models.chat_model(stage.engine), meter)
    results = run_all(stage.name, sample.works(model), model.max_concurrency)
    made = [result if isinstance(result, Failure) else sample.read(result) for result in results]
    stale = [StalePartition(stage.name, partition, (), changes) for partition in stage.partitions(root.settings)]
    [estimate] = estimate_index(root, stale)
    return Trial(
        stage.name,
        root.settings.chat_model_for(stage.engine).model,
        changes,
        above,
        sample.n_records,
        _compare(sample, made),
        paid_calls(stage, account),
        scale_calls(root, stage, meter, sample.n_records / len(sample.records)),
        estimate,
        diff_prompts(root, changes),
    )


def _find_changes(root: Root, stage: Stage) -> tuple[CodeChange, ...]:
    code = root.code_of(stage)
    found = (find_code_changes(root, stage, partition, code) for partition in stage.partitions(root.settings))
    return tuple(next((changes for changes in found if changes), ()))


def _find_stale_above(root: Root, stage: Stage) -> tuple[str, ...]:
    manifest = STAGES["corpus_manifest"]
    heads = {partition: root.tables.head(manifest.name, partition) for partition in manifest.partitions(root.settings)}
    as_indexed = {partition: head.inputs.get(INPUT, "") if head else "" for partition, head in heads.items()}
    names = {other.name for other in all_upstream_of(stage)}
    stale = [item for item in find_stale_versions(root, as_indexed) if item.stage in names]
    return tuple(dict.fromkeys(f"{item.stage}: {'; '.join(item.reasons)}" for item in stale))


def _compare(sample: Sample, made: Sequence[Result | Failure]) -> tuple[TriedRecord, ...]:
    return tuple(
        TriedRecord(record.id, record.name, record.old.text, "", failure=new.reason)
        if isinstance(new, Failure)
        else TriedRecord(
            record.id,
            record.name,
            record.old.text,
            new.text,
            tuple(sorted(new.found - record.old.found)),
            tuple(sorted(record.old.found - new.found)),
        )
        for record, new in zip(sample.records, made, strict=True)
    )


def scale_calls(root: Root, stage: Stage, meter: Meter, share: float) -> StageEstimate:
    """Return the calls of a sample, stored replies included, scaled to all records, with their cost."""
    counts = (round(n * share) for n in (meter.replies, meter.prompt_tokens, meter.completion_tokens))
    n_calls, prompt_tokens, completion_tokens = counts
    scaled = StageEstimate(stage.name, n_calls, 0, prompt_tokens, completion_tokens, is_scaled=True)
    return with_price(root.settings, scaled, stage.model_section)


def paid_calls(stage: Stage, account: CallStats) -> StageEstimate:
    """Return the calls of a sample that were paid, and their cost."""
    cost = None if account.n_unpriced else account.cost
    tokens = account.prompt_tokens, account.completion_tokens
    return StageEstimate(stage.name, account.n_calls, account.n_cached, *tokens, cost)
