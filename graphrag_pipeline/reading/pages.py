"""Rows of an index's tables, in pages: what a record has in each list, with links to other records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class EntityLink:
    """An entity on the page of another record.

    Attributes:
        name: its best written form.
        n_text_units: number of the text units of that record that mention it; 0 where it was not counted.
    """

    number: int
    title: str
    name: str
    type: str
    degree: int
    description: str
    n_text_units: int = 0


@dataclass(frozen=True)
class CommunityLink:
    """A community on the page of another record; `title` is that of its report, "" without one."""

    number: int
    level: int
    size: int
    title: str


@dataclass(frozen=True)
class Neighbour:
    """A relationship of an entity; `title` and `name` are those of the other, `predicates` verb phrases and labels."""

    number: int
    title: str
    name: str
    description: str
    weight: float
    n_mentions: int | None
    predicates: tuple[str, ...] = ()


@dataclass(frozen=True)
class MergedName:
    """A written form that resolution merged into an entity, with the rule, its evidence and certainty (0 to 1)."""

    name: str
    rule: str
    evidence: str
    score: float


@dataclass(frozen=True)
class PlacedText:
    """A span of a document's text.

    Attributes:
        text: the sentence; "" if only the place matters.
        text_unit: number of the text unit that it was read from.
        path: of the document in the input folder; "" where an import has none.
    """

    text: str
    text_unit: int
    document: str
    document_id: str
    path: str
    start: int | None
    end: int | None


@dataclass(frozen=True)
class EntityPage:
    """An entity in full.

    Attributes:
        name: its best written form.
        names: written forms besides the title.
        merges: names that resolution merged; empty in an imported index, and under a filter.
        relationships: strongest first: by weight, then by the degrees of both ends.
        sentences: that write one of its names, in reading order.
        has_more_sentences: whether there are more than were asked for.
        n_text_units: number of text units that mention it.
        n_unnamed: number of text units, among those read for `sentences`, that mention it but write none of its names.
    """

    id: str
    number: int
    title: str
    name: str
    type: str
    types: tuple[str, ...]
    description: str
    names: tuple[str, ...]
    merges: tuple[MergedName, ...]
    degree: int
    relationships: tuple[Neighbour, ...]
    n_relationships: int
    communities: tuple[CommunityLink, ...]
    sentences: tuple[PlacedText, ...]
    has_more_sentences: bool
    n_text_units: int
    n_unnamed: int


@dataclass(frozen=True)
class ReportedFinding:
    """One finding of a report."""

    summary: str
    explanation: str


@dataclass(frozen=True)
class CitedSource:
    """A record that a report cites.

    Attributes:
        kind: entity, relationship, claim, report or text_unit.
        n_text_units: number of text units that it comes from.
    """

    kind: str
    number: int
    name: str
    n_text_units: int


@dataclass(frozen=True)
class ReportPage:
    """A community report in full.

    Attributes:
        rank: its rating, 0 to 10.
        content: the whole report as markdown.
        cited: the records that its text cites, the most specific kind first.
        passages: text units behind it: of the cited records, or of its community if it cites none.
    """

    id: str
    number: int
    title: str
    community: CommunityLink
    rank: float
    rating_explanation: str
    summary: str
    findings: tuple[ReportedFinding, ...]
    content: str
    is_verbatim: bool
    is_fallback: bool
    cited: tuple[CitedSource, ...]
    n_cited: int
    passages: tuple[PlacedText, ...]
    n_passages: int


@dataclass(frozen=True)
class TextUnitLink:
    """A text unit of a document."""

    number: int
    start: int | None
    end: int | None
    n_tokens: int
    n_entities: int


@dataclass(frozen=True)
class DocumentPage:
    """A document in full.

    Attributes:
        record: id or row number inside a structured file; "" for a whole file.
        metadata: of the document itself.
        entities: those in the most of its text units first.
    """

    id: str
    number: int
    title: str
    path: str
    record: str
    creation_date: str | None
    metadata: Mapping[str, Any]
    text: str
    text_units: tuple[TextUnitLink, ...]
    n_text_units: int
    entities: tuple[EntityLink, ...]
    n_entities: int


@dataclass(frozen=True)
class CommunityPage:
    """A community in full.

    Attributes:
        size: number of its entities.
        parent: the community one level above; None at level 0.
        entities: leading ones first, by degree.
        n_relationships: with both ends in the community.
        report: None if it has none.
    """

    id: str
    number: int
    level: int
    size: int
    title: str
    parent: CommunityLink | None
    children: tuple[CommunityLink, ...]
    entities: tuple[EntityLink, ...]
    n_entities: int
    n_relationships: int
    n_text_units: int
    report: ReportPage | None


@dataclass(frozen=True)
class EntityRow:
    """An entity; `degree` counts its relationships, `name` is its best written form."""

    number: int
    id: str
    title: str
    name: str
    type: str
    description: str
    degree: int
    n_text_units: int


@dataclass(frozen=True)
class RelationshipRow:
    """A relationship; `source` and `target` are titles, and their numbers lead to the entities."""

    number: int
    id: str
    source: str
    target: str
    source_number: int
    target_number: int
    description: str
    weight: float
    n_text_units: int


@dataclass(frozen=True)
class CommunityRow:
    """A community.

    Attributes:
        title: of its report; else its own.
        parent: number of the community one level above; None at level 0.
        report: number of its report; None without one.
        rank: rating of its report, 0 to 10.
    """

    number: int
    id: str
    level: int
    size: int
    title: str
    parent: int | None
    n_children: int
    report: int | None
    rank: float | None


@dataclass(frozen=True)
class ReportRow:
    """A community report; `rank` is its rating, 0 to 10."""

    number: int
    id: str
    community: int
    level: int
    size: int
    title: str
    summary: str
    rank: float


@dataclass(frozen=True)
class DocumentRow:
    """A document.

    Attributes:
        record: id or row number inside a structured file; "" for a whole file.
    """

    number: int
    id: str
    title: str
    path: str
    record: str
    creation_date: str | None
    metadata: Mapping[str, Any]
    n_characters: int
    n_text_units: int


@dataclass(frozen=True)
class RelationshipPage:
    """A relationship in full.

    Attributes:
        passages: text units that it comes from, with their text.
        predicates: verb phrases and labels, such as "incident commander".
    """

    number: int
    id: str
    source: EntityLink
    target: EntityLink
    description: str
    weight: float
    n_mentions: int | None
    passages: tuple[PlacedText, ...]
    n_passages: int
    predicates: tuple[str, ...] = ()


@dataclass(frozen=True)
class TextUnitPage:
    """A text unit in full; `start` and `end` are offsets in its document, pages are None if not known."""

    number: int
    id: str
    document: str
    document_id: str
    path: str
    start: int | None
    end: int | None
    n_tokens: int
    text: str
    entities: tuple[EntityLink, ...]
    n_entities: int
    first_page: int | None = None
    last_page: int | None = None


@dataclass(frozen=True)
class NearEntity:
    """An entity near another one; `distance` counts relationships between them, 0 for the entity itself."""

    entity: EntityLink
    distance: int


@dataclass(frozen=True)
class Neighbourhood:
    """The entities around one, nearest first, and the relationships between them.

    Attributes:
        n_entities: within this distance, also those that are not listed.
    """

    entities: tuple[NearEntity, ...]
    n_entities: int
    relationships: tuple[RelationshipRow, ...]
    n_relationships: int


@dataclass(frozen=True)
class DocumentText:
    """A part of a document's text: `text == document.text[start:end]`.

    Attributes:
        key: names the document in links, the same for each reader of the root.
    """

    number: int
    id: str
    key: str
    title: str
    start: int
    end: int
    n_characters: int
    text: str
    creation_date: str | None


@dataclass(frozen=True)
class MentionPlace:
    """A place where a document writes a name of an entity."""

    start: int
    end: int
    number: int
    title: str
    name: str
    type: str


@dataclass(frozen=True)
class ValueCount:
    """A value and the number of records that have it."""

    value: str
    count: int


@dataclass(frozen=True)
class FieldFacet:
    """A field of documents that filters can name.

    Attributes:
        values: the most frequent ones.
        n_values: distinct values.
    """

    name: str
    values: tuple[ValueCount, ...]
    n_values: int


@dataclass(frozen=True)
class IndexFacets:
    """Counts of an index.

    Attributes:
        counts: records by table.
        types: of entities.
        levels: of communities; 0 is the coarsest.
        fields: of documents.
    """

    counts: Mapping[str, int]
    types: tuple[ValueCount, ...]
    levels: tuple[ValueCount, ...]
    fields: tuple[FieldFacet, ...]
