"""Samples for a trial, one function per stage: records, their present results, and how to make them again.

Add a stage that uses a model to `SAMPLERS`. A sample reads the present stage tables, fresh or stale. Keep out: model
calls, counts and costs (`stage_trial.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.citations import number_citations, render_full_content
from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.indexing.ports import CallingDescriber, CallingExtractor, CallingReporter, iterate_subjects
from graphrag_pipeline.indexing.reports.community_reports import Report, report_communities
from graphrag_pipeline.indexing.reports.contexts import CommunityContext
from graphrag_pipeline.models.pool import Work
from graphrag_pipeline.models.ports import ChatModel
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import owner_of
from graphrag_pipeline.publishing.contract_tables import CITED_KINDS
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
    titles = _read_all(root, "documents").select(["id", "title"]).to_pylist()
    title_of = {row["id"]: row["title"] for row in titles}
    old = _results_by_unit({name: _rows_with(_read_all(root, name), "text_unit_id", ids) for name in _MENTIONS}, ids)
    records = [
        SampledRecord(
            row["id"], f"{title_of.get(row['document_id'], '')}, characters {row['start']:,}-{row['end']:,}", was
        )
        for row, was in zip(chosen.select(["id", "document_id", "start", "end"]).to_pylist(), old, strict=True)
    ]
    return Sample(
        "text unit",
        units.num_rows,
        records,
        lambda model: _calling_extractor(root).works(chosen, model),
        lambda mentions: _read_mentions(root, mentions),
        lambda: _extract(root, units, chosen["document_id"].to_pylist(), ids),
    )


def _extract(root: Root, units: pa.Table, document_ids: Sequence[str], ids: Sequence[str]) -> list[Result]:
    """Extract from whole documents, because a name may be introduced in another text unit."""
    documents = _rows_with(_read_all(root, "documents"), "id", set(document_ids))
    of_documents = _rows_with(units, "document_id", set(document_ids))
    return _results_by_unit(root.extractor().extract(documents, of_documents).tables, ids)


def _results_by_unit(mentions: Mapping[str, pa.Table], ids: Sequence[str]) -> list[Result]:
    rows: dict[str, dict[str, list[Row]]] = {unit_id: {name: [] for name in _MENTIONS} for unit_id in ids}
    for name, table in mentions.items():
        for row in table.to_pylist():
            if row["text_unit_id"] in rows:
                rows[row["text_unit_id"]][name].append(row)
    return [_describe_mentions(*rows[unit_id].values()) for unit_id in ids]


def _calling_extractor(root: Root) -> CallingExtractor:
    return cast(CallingExtractor, root.extractor())


def _read_mentions(root: Root, mentions: Any) -> Result:
    tables = _calling_extractor(root).collect([mentions]).tables
    return _describe_mentions(*(tables[name].to_pylist() for name in _MENTIONS))


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
