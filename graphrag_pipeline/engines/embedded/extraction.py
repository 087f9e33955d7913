"""Embedded extraction: entities and relationships of text units, without a chat model.

Each document is read alone, so that a new document changes only its own bucket. `names/document.py` finds the names
and their types; this module makes rows.

Mentions are counted as in the GraphRAG paper (Edge et al. 2024, arXiv:2404.16130): text units overlap, and a sentence
in two text units counts in both. There is one entity mention per text unit, sentence and written form of an entity.
There is one relationship mention per text unit, pair and sentence. `start` and `end` are offsets into the document: of
the first occurrence of the name in the sentence for an entity, of the sentence for a relationship.

`name` is the canonical form of the entity in its document ("Ebenezer Scrooge" where the text says "Mr. Scrooge");
`normalize_title(name)` is its key. `written` is what a reader sees of `document.text[start:end]`. If the title of a
document is a name, its first text unit has one more mention, with `is_about` and without a place.

Keep out: steps that need the whole corpus (`indexing/graph`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, pairwise, zip_longest

import pyarrow as pa

from graphrag_pipeline.engines.embedded.names.document import name_things
from graphrag_pipeline.engines.embedded.names.lines import split_lines
from graphrag_pipeline.engines.embedded.names.predicates import find_predicate
from graphrag_pipeline.engines.embedded.names.prose import holds_prose, mask_code
from graphrag_pipeline.engines.embedded.names.titles import read_title
from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.settings.indexing import GlossaryTerm
from graphrag_pipeline.settings.settings import ExtractionSettings
from graphrag_pipeline.tables import CLAIM_MENTIONS, ENTITY_MENTIONS, RELATIONSHIP_MENTIONS, Table
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.sentences import split_sentences
from graphrag_pipeline.text.structure import CODE, TITLE, Block, Piece, ReadableText, read_structure

STRENGTH = 1.0  # of one sentence that contains two entities
MAX_HEADING = 120  # characters
_ITEM = late_re(r"^[-*+\u2022] ")

title_of = lru_cache(maxsize=1 << 16)(normalize_title)
"""`normalize_title` with a cache, because a document repeats its names."""


@dataclass(frozen=True, slots=True)
class _Occurrence:
    """A name in a document: `start` and `end` in its text, `at` and `behind` in what a reader sees of it."""

    title: str
    name: str
    type: str
    start: int
    end: int
    written: str
    at: int
    behind: int


@dataclass(frozen=True, slots=True)
class _About:
    """The entity that the document is about, described by the first sentence."""

    name: str
    type: str
    description: str


@dataclass(frozen=True, slots=True)
class _TaggedSentence:
    start: int
    end: int
    description: str  # "" for a heading or a fragment
    occurrences: tuple[_Occurrence, ...]
    readable: str  # of the whole document


@dataclass
class _Columns:
    """Rows of a mentions table, collected by column, which is faster than dictionaries."""

    table: Table
    values: dict[str, list] = field(init=False)

    def __post_init__(self) -> None:
        self.values = {name: [] for name in self.table.schema.names}

    def add(self, *row: object) -> None:
        """Add a row; columns after those of the row are null."""
        for column, value in zip_longest(self.values.values(), row):
            column.append(value)

    def to_table(self) -> pa.Table:
        return self.table.sort(pa.table(self.values, schema=self.table.schema))


def extract_graph(documents: pa.Table, text_units: pa.Table, settings: ExtractionSettings) -> dict[str, pa.Table]:
    """Find the entities of each text unit and the pairs that occur in one sentence.

    Args:
        documents: `documents` rows; needs `id`, `title` and `text`.
        text_units: `text_units` rows of these documents; needs `id`, `document_id`, `start`, `end`.

    Returns:
        `entity_mentions`, `relationship_mentions` and `claim_mentions` (always empty), by table name.
    """
    entities, relationships = _Columns(ENTITY_MENTIONS), _Columns(RELATIONSHIP_MENTIONS)
    units = _units_by_document(text_units)
    columns = (documents[name].to_pylist() for name in ("id", "title", "text"))
    for document_id, title, text in zip(*columns, strict=True):
        sentences, about = read_document(title, text, settings.spacy_model, settings.glossary)
        starts = [sentence.start for sentence in sentences]
        ends = [sentence.end for sentence in sentences]
        first = min((start for _, start, _ in units.get(document_id, ())), default=0)
        for unit_id, start, end in units.get(document_id, ()):
            touched = sentences[bisect_right(ends, start) : bisect_left(starts, end)]
            n_entities = _add_entities(unit_id, start, end, touched, settings.glossary, entities)
            if about is not None and start == first:
                row = (about.name, about.type, about.description, None, None, None, None, True)
                entities.add(unit_id, n_entities, *row)
            _add_relationships(unit_id, start, end, touched, settings, relationships)
    return {
        "entity_mentions": entities.to_table(),
        "relationship_mentions": relationships.to_table(),
        "claim_mentions": CLAIM_MENTIONS.empty(),
    }


def read_document(
    title: str, text: str, spacy_model: str = "", glossary: Mapping[str, GlossaryTerm] | None = None
) -> tuple[list[_TaggedSentence], _About | None]:
    """Return the sentences of a document that contain names, with these names, and the entity it is about, or None."""
    structure = read_structure(text)
    source = ReadableText.join(piece for block in structure.blocks for piece in _prose_of(block))
    text = source.text
    spans = split_lines(text, split_sentences(text))
    said = "\n\n".join(block.text for block in structure.blocks if block.kind not in (TITLE, CODE))
    about = read_title(title, said)
    names, links, types = name_things(text, mask_code(text), structure.codes, spans, about, spacy_model, glossary)
    by_sentence: defaultdict[int, list[_Occurrence]] = defaultdict(list)
    for name in names:
        if place := source.source_of(name.start, name.end):  # None for the name of a column before a cell
            form, written = links[name.form], text[name.start : name.end]
            by_sentence[name.sentence].append(
                _Occurrence(title_of(form), form, types[form], *place, written, name.start, name.end)
            )
    sentences = [
        _TaggedSentence(
            *(source.source_of(*spans[n]) or (0, 0)),
            "" if is_heading(text, *spans[n]) else _fold(text, spans[n]),
            tuple(by_sentence[n]),
            text,
        )
        for n in sorted(by_sentence)
    ]
    if about is None:
        return sentences, None
    first = next((span for span in spans if not is_heading(text, *span)), (0, 0))
    return sentences, _About(about.form, types[about.form], _fold(text, first))


def _prose_of(block: Block) -> Sequence[Piece]:
    """Return the pieces of a block that may name something: all but code, unless its lines are prose."""
    is_code = block.kind == CODE and not holds_prose([line.text for line in block.pieces])
    return () if is_code else block.pieces


def is_heading(text: str, start: int, end: int) -> bool:
    """Whether a sentence is a heading or a fragment: short without final punctuation, or written in capitals."""
    sentence = text[start:end].strip()
    if not sentence or len(sentence) > MAX_HEADING:
        return not sentence
    return (sentence.isupper() and " " in sentence) or sentence.rstrip("\"'”’)]»*_")[-1:] not in tuple(
        ".!?…:;,。！？।-—"
    )


def _fold(text: str, span: tuple[int, int]) -> str:
    """Return a sentence on one line, without the mark of an item of a list."""
    return _ITEM.sub("", " ".join(text[slice(*span)].split()))


def _units_by_document(text_units: pa.Table) -> dict[str, list[tuple[str, int, int]]]:
    units: defaultdict[str, list[tuple[str, int, int]]] = defaultdict(list)
    columns = (text_units[name].to_pylist() for name in ("document_id", "id", "start", "end"))
    for document_id, unit_id, start, end in zip(*columns, strict=True):
        units[document_id].append((unit_id, start, end))
    return units


def _add_entities(
    unit_id: str,
    start: int,
    end: int,
    sentences: list[_TaggedSentence],
    glossary: Mapping[str, GlossaryTerm],
    entities: _Columns,
) -> int:
    """Add a mention per sentence and written form, and one that says what a term means; return their number."""
    n_entities = 0
    meanings = {term: f"{term}, {known.meaning}" for term, known in glossary.items()}
    for sentence in sentences:
        seen: set[tuple[str, str]] = set()
        for o in _inside(sentence, start, end):
            key = (o.title, title_of(o.written))
            if key in seen:
                continue
            seen.add(key)
            if meaning := meanings.pop(o.written, ""):
                entities.add(unit_id, n_entities, o.name, o.type, meaning, o.start, o.end, None, o.written, None)
                n_entities += 1
            row = (o.name, o.type, sentence.description, o.start, o.end, None, o.written, None)
            entities.add(unit_id, n_entities, *row)
            n_entities += 1
    return n_entities


def _add_relationships(
    unit_id: str,
    start: int,
    end: int,
    sentences: list[_TaggedSentence],
    settings: ExtractionSettings,
    relationships: _Columns,
) -> None:
    n_relationships = 0
    for sentence in sentences:
        first: dict[str, _Occurrence] = {}
        for occurrence in _inside(sentence, start, end):
            first.setdefault(occurrence.title, occurrence)
        met = list(first.values())
        is_list = len(met) > settings.max_entities_per_sentence
        for a, b in pairwise(met) if is_list else combinations(met, 2):
            predicate = find_predicate(sentence.readable, a.behind, b.at)
            row = (a.name, b.name, sentence.description, STRENGTH, sentence.start, sentence.end, None, predicate)
            relationships.add(unit_id, n_relationships, *row)
            n_relationships += 1


def _inside(sentence: _TaggedSentence, start: int, end: int) -> Iterator[_Occurrence]:
    return (o for o in sentence.occurrences if start <= o.start and o.end <= end)
