"""The values of lists: one row per record, frozen, and plain JSON by `dataclasses.asdict`.

`number` is the human-readable id of citations; that of a community is its own number. Keep out: how rows are found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphrag_pipeline.reading.pages import EntityLink, PlacedText


@dataclass(frozen=True)
class EntityRow:
    """An entity; `degree` counts its relationships."""

    number: int
    id: str
    title: str
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


@dataclass(frozen=True)
class TextUnitPage:
    """A text unit in full; `start` and `end` are offsets in its document."""

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


@dataclass(frozen=True)
class MentionPlace:
    """A place where a document writes a name of an entity."""

    start: int
    end: int
    number: int
    title: str
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
