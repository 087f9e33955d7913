"""Embedded extraction: entities and relationships of text units by rule, without a model.

Each document is read alone, so that one new document changes one bucket. The steps are `names.py` (where something is
named), `name_types.py` (what kind of thing it is), `aliases.py` (which names are one) and, here, rows per text unit.
Keep out: anything that needs the whole corpus, it happens in `graph`.

How occurrences are counted: one entity mention per text unit, entity and sentence; one relationship mention per text
unit, pair and sentence. Text units overlap, and each has its own mentions: a sentence in two text units counts in both,
as in the GraphRAG paper. `start` and `end` are offsets into the document: of the name's first occurrence in the
sentence for an entity, of the sentence for a relationship.

`name` is the form that stands for the entity in its document ("Ebenezer Scrooge" where the text says "Mr. Scrooge"), so
that `normalize_title(name)` is its key; what is written is `document.text[start:end]`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import combinations

import pyarrow as pa

from graphrag_pipeline.indexing.aliases import tie_names
from graphrag_pipeline.indexing.dates import find_dates
from graphrag_pipeline.indexing.name_types import type_names, vote_types
from graphrag_pipeline.indexing.names import find_names
from graphrag_pipeline.indexing.phrases import is_heading
from graphrag_pipeline.sentences import split_sentences
from graphrag_pipeline.settings import ExtractionSettings
from graphrag_pipeline.tables import CLAIM_MENTIONS, ENTITY_MENTIONS, RELATIONSHIP_MENTIONS, Table, normalize_title

STRENGTH = 1.0  # of one sentence in which two entities meet


@dataclass(frozen=True, slots=True)
class _Occurrence:
    title: str
    name: str
    type: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Sentence:
    start: int
    end: int
    description: str  # "" for a heading or a fragment
    occurrences: tuple[_Occurrence, ...]


@dataclass
class _Columns:
    """Rows of a mentions table, by column: much faster to collect than dictionaries."""

    table: Table
    values: dict[str, list] = field(init=False)

    def __post_init__(self) -> None:
        self.values = {name: [] for name in self.table.schema.names}

    def add(self, *row: object) -> None:
        for column, value in zip(self.values.values(), row, strict=True):
            column.append(value)

    def to_table(self) -> pa.Table:
        return self.table.sort(pa.table(self.values, schema=self.table.schema))


def extract_graph(documents: pa.Table, text_units: pa.Table, settings: ExtractionSettings) -> dict[str, pa.Table]:
    """Find the entities of each text unit and the pairs that meet in a sentence.

    Args:
        documents: `documents` rows; needs `id` and `text`.
        text_units: `text_units` rows of these documents; needs `id`, `document_id`, `start`, `end`.

    Returns:
        `entity_mentions`, `relationship_mentions` and `claim_mentions` (always empty), by table name.
    """
    entities, relationships = _Columns(ENTITY_MENTIONS), _Columns(RELATIONSHIP_MENTIONS)
    units = _units_by_document(text_units)
    for document_id, text in zip(documents["id"].to_pylist(), documents["text"].to_pylist(), strict=True):
        sentences = read_sentences(text)
        starts = [sentence.start for sentence in sentences]
        ends = [sentence.end for sentence in sentences]
        for unit_id, start, end in units.get(document_id, ()):
            touched = sentences[bisect_right(ends, start) : bisect_left(starts, end)]
            _add_mentions(unit_id, start, end, touched, settings, entities, relationships)
    return {
        "entity_mentions": entities.to_table(),
        "relationship_mentions": relationships.to_table(),
        "claim_mentions": CLAIM_MENTIONS.empty(),
    }


def read_sentences(text: str) -> list[_Sentence]:
    """The sentences of a document that name something, with what they name."""
    spans = split_sentences(text)
    headings = [is_heading(text, start, end) for start, end in spans]
    names = sorted(find_names(text, spans, headings) + find_dates(text, spans), key=lambda name: (name.start, name.end))
    written_types = type_names(names, text)
    ties = tie_names(names, written_types, text)
    types = vote_types(names, written_types, ties)
    by_sentence: defaultdict[int, list[_Occurrence]] = defaultdict(list)
    for name in names:
        form = ties[name.form]
        by_sentence[name.sentence].append(_Occurrence(normalize_title(form), form, types[form], name.start, name.end))
    return [
        _Sentence(
            *spans[number],
            "" if headings[number] else " ".join(text[slice(*spans[number])].split()),
            tuple(by_sentence[number]),
        )
        for number in sorted(by_sentence)
    ]


def _units_by_document(text_units: pa.Table) -> dict[str, list[tuple[str, int, int]]]:
    units: defaultdict[str, list[tuple[str, int, int]]] = defaultdict(list)
    columns = (text_units[name].to_pylist() for name in ("document_id", "id", "start", "end"))
    for document_id, unit_id, start, end in zip(*columns, strict=True):
        units[document_id].append((unit_id, start, end))
    return units


def _add_mentions(
    unit_id: str,
    start: int,
    end: int,
    sentences: list[_Sentence],
    settings: ExtractionSettings,
    entities: _Columns,
    relationships: _Columns,
) -> None:
    n_entities = n_relationships = 0
    for sentence in sentences:
        inside = _first_occurrences(sentence, start, end)
        for o in inside:
            entities.add(unit_id, n_entities, o.name, o.type, sentence.description, o.start, o.end, None)
            n_entities += 1
        if len(inside) > settings.max_entities_per_sentence:
            continue
        for a, b in combinations(inside, 2):
            relationships.add(
                unit_id,
                n_relationships,
                a.name,
                b.name,
                sentence.description,
                STRENGTH,
                sentence.start,
                sentence.end,
                None,
            )
            n_relationships += 1


def _first_occurrences(sentence: _Sentence, start: int, end: int) -> list[_Occurrence]:
    """Of each entity the first occurrence in the sentence that lies within [start, end)."""
    first: dict[str, _Occurrence] = {}
    for occurrence in sentence.occurrences:
        if start <= occurrence.start and occurrence.end <= end:
            first.setdefault(occurrence.title, occurrence)
    return list(first.values())
