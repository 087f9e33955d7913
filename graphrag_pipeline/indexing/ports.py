"""Ports of the index: what an engine offers that extracts, describes or reports.

The `Calling...` protocols are for an engine whose results are calls of the root's chat model. Their calls can be
estimated, tried on a sample, sent for many buckets together, and recalled to forget a document. An engine without
calls, or with clients of its own, fills only the shorter protocol. Keep out: engines, and which one is used
(`load_port`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from graphrag_pipeline.indexing.reports.community_reports import Report
from graphrag_pipeline.indexing.reports.contexts import CommunityContext
from graphrag_pipeline.models.pool import Progress, Work
from graphrag_pipeline.models.ports import ChatModel, Failure, Message


@dataclass(frozen=True)
class Extracted:
    """The mentions of some text units.

    Attributes:
        tables: `entity_mentions`, `relationship_mentions` and `claim_mentions`.
        failures: text units without a usable result; they are in none of the tables.
        outside_types: type that is not in the configured list -> number of mentions.
        problems: reason -> number of records that were left out or repaired for it.
    """

    tables: Mapping[str, pa.Table]
    failures: Sequence[Failure] = ()
    outside_types: Mapping[str, int] = field(default_factory=dict)
    problems: Mapping[str, int] = field(default_factory=dict)


class Extractor(Protocol):
    """Finds entities, relationships and claims in the text units of documents; made from a `Root`."""

    def code(self) -> Mapping[str, Any]:
        """Return what the result depends on besides settings, prompts and model, by name: versions of rules, packages.

        A change makes the stage stale. `status` shows the names.
        """
        ...

    def extract(
        self,
        documents: pa.Table,
        text_units: pa.Table,
        earlier: Mapping[str, pa.Table] | None = None,
        progress: Progress | None = None,
    ) -> Extracted:
        """Return the mentions of all text units of some documents. A document's result depends on it alone.

        Args:
            earlier: the tables that the stage read and wrote last time with the same code: `documents`, `text_units`
                and those of `Extracted.tables`. A result that is still right may be taken from them.
        """
        ...


class CallingExtractor(Extractor, Protocol):
    """An extractor that calls a chat model for each text unit."""

    def works(self, text_units: pa.Table, model: ChatModel) -> list[Work[Any]]:
        """Return one work per text unit, in order; needs `id`, `text` and `context` (`text_units.with_context`)."""
        ...

    def send(
        self, works: Sequence[Work[Any]], model: ChatModel, progress: Progress | None = None
    ) -> list[Any | Failure]:
        """Run works and return their results in order.

        Raises:
            PipelineError: the first text units all yield nothing, or the model cannot be called.
        """
        ...

    def collect(self, results: Iterable[Any | Failure]) -> Extracted:
        """Return the mentions in the results of works."""
        ...

    def frame(self) -> list[Message]:
        """Return the first request about a text unit, without its text."""
        ...


@dataclass(frozen=True)
class Subject:
    """An entity or relationship to describe: `kind` is "entity" or "relationship", `name` its name in a prompt."""

    description_key: str
    kind: str
    name: str
    descriptions: tuple[str, ...]


def iterate_subjects(entities: pa.Table, relationships: pa.Table) -> Iterator[Subject]:
    """Yield one subject per distinct `description_key`, in the order of the keys.

    Args:
        entities: needs `title`, `descriptions` and `description_key`.
        relationships: needs `source`, `target`, `descriptions` and `description_key`.
    """
    subjects: dict[str, Subject] = {}
    names = entities["title"].to_pylist()
    _add_subjects(subjects, entities, "entity", names)
    ends = zip(relationships["source"].to_pylist(), relationships["target"].to_pylist(), strict=True)
    _add_subjects(subjects, relationships, "relationship", [f"{source} and {target}" for source, target in ends])
    return (subjects[key] for key in sorted(subjects))


def _add_subjects(subjects: dict[str, Subject], rows: pa.Table, kind: str, names: Sequence[str]) -> None:
    columns = rows["description_key"].to_pylist(), rows["descriptions"].to_pylist()
    for name, key, descriptions in sorted(zip(names, *columns, strict=True), key=lambda row: row[0]):
        subjects.setdefault(key, Subject(key, kind, name, tuple(descriptions or ())))


@dataclass(frozen=True)
class Described:
    """Descriptions of records.

    Attributes:
        descriptions: `tables.DESCRIPTIONS`, one row per distinct `description_key`.
        failures: records without a usable result; the table has a replacement, marked `is_fallback`.
        problems: reason -> number of results that were cut off or repaired for it.
    """

    descriptions: pa.Table
    failures: Sequence[Failure] = ()
    problems: Mapping[str, int] = field(default_factory=dict)


class Describer(Protocol):
    """Gives entities and relationships one description each; made from a `Root`."""

    def code(self) -> Mapping[str, Any]:
        """Return what the result depends on besides settings, prompts and model; see `Extractor.code`."""
        ...

    def describe(
        self,
        entities: pa.Table,
        relationships: pa.Table,
        known: pa.Table | None = None,
        progress: Progress | None = None,
    ) -> Described:
        """Return one description for each entity and relationship.

        Args:
            entities, relationships: stage tables.
            known: rows of the same code; their keys need not be described again, except fallbacks.
        """
        ...


class CallingDescriber(Describer, Protocol):
    """A describer that calls a chat model."""

    def needs_call(self, subject: Subject) -> bool:
        """Whether a description takes a call; another is joined or copied."""
        ...

    def works(self, subjects: Iterable[Subject], model: ChatModel) -> list[Work[dict[str, Any]]]:
        """Return one work per subject, in order; its result is a row of `tables.DESCRIPTIONS`."""
        ...


class Reporter(Protocol):
    """Writes community reports; made from a `Root`.

    Attributes:
        failures: of all calls so far.
        problems: reason -> number of parts of results left out or repaired so far.
        least_size: entities from which on a community's report is more than its descriptions.
    """

    failures: Sequence[Failure]
    problems: Mapping[str, int]
    least_size: int

    def code(self) -> Mapping[str, Any]:
        """Return what the result depends on besides settings, prompts and model; see `Extractor.code`."""
        ...

    def write(self, contexts: Sequence[CommunityContext], progress: Progress | None = None) -> list[Report]:
        """Return one report per context, in order."""
        ...


class CallingReporter(Reporter, Protocol):
    """A reporter that calls a chat model for each community of `least_size`."""

    def works(self, contexts: Sequence[CommunityContext], model: ChatModel) -> list[Work[Any]]:
        """Return one work per context, in order; the `report` of its result is a `Report`."""
        ...
