"""Documents and rows as entities: what the data of a file says exactly, beside what an engine finds in texts.

A document is an entity of type DOCUMENT, with its names, its labels and the identifiers it mentions. A question can
then name a document, and a way through the graph leads from a service to the incidents about it. A file without title,
codes, labels and identifiers is no entity, nor is a row that has a title alone. One that is about one thing, such as an
article of an encyclopedia, is that thing already (`is_about`), unless it has a code. A row is the entity that
`input.tables` makes of it.

Keep out: how names are found in a text (the engines), and what a document says about itself (`inputs/labels.py`).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.filters import flatten_metadata
from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.settings.input import InputSettings, RelatedColumn, TableMapping
from graphrag_pipeline.tables import ENTITY_MENTIONS, RELATIONSHIP_MENTIONS, Table
from graphrag_pipeline.text.document_names import DOCUMENT, MIN_LETTERS, name_document
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.name_words import DOUBTFUL, IDENTIFIER, UNKNOWN
from graphrag_pipeline.text.sentences import split_sentences
from graphrag_pipeline.text.structure import FRONT_MATTER, HIDDEN, TITLE, read_structure

STRENGTH = 1.0
"""Of what a document says by a label or a mention: that of one sentence."""

MAX_DESCRIPTION = 300
"""Characters of the first sentence in the description of a document."""

_LISTED = late_re(r"\s*[,;/]\s*|\s*\([^()]*\)\s*")

_Row = dict[str, Any]
_ROW = ("id", "record", "metadata")


def add_documents(
    documents: pa.Table,
    text_units: pa.Table,
    tables: Mapping[str, pa.Table],
    settings: InputSettings,
    names_documents: bool = True,
) -> dict[str, pa.Table]:
    """Return the mentions with those of the documents themselves.

    A document is mentioned in each of its text units. It is related to each value of its metadata that is the name of
    an entity in it, by the label, and to each identifier that it mentions. A row of a mapped table is mentioned by the
    name and type of its entity, and related to the entities that the mapping finds in its columns. Names of columns
    are no entities.

    Args:
        documents: needs `id`, `title`, `text`, `path`, `record` and `metadata`.
        text_units: of these documents; needs `id`, `document_id` and `position`.
        tables: `entity_mentions` and `relationship_mentions`; others stay as they are.
        settings: say what rows are.
        names_documents: whether documents that are no mapped rows become entities.
    """
    units = _units_of(text_units)
    mentions, relationships = _without_columns(documents, units, tables)
    own = _mentions_by_document(mentions, {unit: document for document, ids in units.items() for unit in ids})
    next_mention, next_relationship = (_next_positions(rows) for rows in (mentions, relationships))
    new_mentions: list[_Row] = []
    new_relationships: list[_Row] = []
    for document in documents.select(["id", "title", "text", "path", "record", "metadata"]).to_pylist():
        ids, found = units.get(document["id"], []), own.get(document["id"], [])
        values = json.loads(document["metadata"])
        mapping = settings.mapping_of(document["path"], document["record"], values)
        if not ids:
            continue
        if mapping:
            named, links = _read_row(document["title"], dict(flatten_metadata(values)), mapping, ids)
        elif names_documents:
            named, links = _name_whole(document, values, found, ids)
        else:
            continue
        for row in named:
            new_mentions.append(row | {"position": next_mention[row["text_unit_id"]], "is_exact": True})
            next_mention[row["text_unit_id"]] += 1
        for row in links:
            new_relationships.append(row | {"position": next_relationship[row["text_unit_id"]]})
            next_relationship[row["text_unit_id"]] += 1
    return {
        **tables,
        "entity_mentions": _append(ENTITY_MENTIONS, mentions, new_mentions),
        "relationship_mentions": _append(RELATIONSHIP_MENTIONS, relationships, new_relationships),
    }


def _without_columns(
    documents: pa.Table, units: Mapping[str, list[str]], tables: Mapping[str, pa.Table]
) -> tuple[pa.Table, pa.Table]:
    """Return the mentions without those of the columns of rows, which are labels and no entities."""
    columns = {
        unit: {normalize_title(name) for name, _ in flatten_metadata(json.loads(metadata))}
        for own_id, record, metadata in zip(*(documents[name].to_pylist() for name in _ROW), strict=True)
        if record
        for unit in units.get(own_id, ())
    }

    def keep(table: pa.Table, *names: str) -> pa.Table:
        rows = zip(table["text_unit_id"].to_pylist(), *(table[name].to_pylist() for name in names), strict=True)
        kept = [all(normalize_title(name) not in columns.get(unit, ()) for name in ends) for unit, *ends in rows]
        return table.filter(pa.array(kept, pa.bool_()))

    mentions, relationships = tables["entity_mentions"], tables["relationship_mentions"]
    return (keep(mentions, "name"), keep(relationships, "source", "target")) if columns else (mentions, relationships)


def _name_whole(
    document: _Row, values: Mapping[str, Any], found: list[_Row], units: list[str]
) -> tuple[list[_Row], list[_Row]]:
    """Return the mentions of a document as an entity and its relationships; none if it is no entity."""
    names = name_document(document["title"], "" if document["record"] else document["path"])
    links = list(_relationships_of(names.main, document["title"], values, found))
    doubtful = {row["name"] for row in found if row["type"] == DOUBTFUL}
    is_thing = any(row["is_about"] for row in found)
    is_titled = not document["record"] and document["title"] != PurePosixPath(document["path"]).stem
    has_links = any(link["target"] not in doubtful for link in links)
    is_named = _is_name(names.main, document["record"]) and not is_thing
    if not (names.has_code or (is_named and (is_titled or has_links))):
        return [], []
    said = _describe(document["title"] if document["title"] != names.main else "", document["text"])
    return list(_mentions_of(names.main, names.others, DOCUMENT, said, units)), links


def _read_row(
    name: str, values: Mapping[str, Any], mapping: TableMapping, units: list[str]
) -> tuple[list[_Row], list[_Row]]:
    """Return the mentions of a row's entity and of those in its columns, and its relationships with them."""

    def say(column: str) -> str:
        return " ".join(RelatedColumn().names_in(values.get(column)))

    if not say(mapping.entity):
        return [], []
    kind, said = say(mapping.type_column) or mapping.type, say(mapping.description)
    aliases = tuple(RelatedColumn().names_in(values.get(mapping.aliases)))
    mentions = list(_mentions_of(name, aliases, kind.upper() or UNKNOWN, said, units))
    links = []
    for column, related in mapping.relationships.items():
        predicate = column.replace("_", " ")
        for other in related.names_in(values.get(column)):
            if normalize_title(other) == normalize_title(name):
                continue
            mentions += _mentions_of(other, (), related.type.upper() or UNKNOWN, "", units[:1])
            place = {"name": other, "text_unit_id": units[0]}
            links.append(_relationship(place, name, f"{name}: {predicate} {other}", predicate))
    return mentions, links


def _is_name(name: str, record: str) -> bool:
    """Return whether a document has a name: no number, and not the place of its row in a file."""
    is_place = bool(record) and name.endswith(f" {record}")
    return not is_place and sum(map(str.isalpha, name)) >= MIN_LETTERS


def without_documents(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Return the mentions as they were before `add_documents`."""
    mentions, relationships = tables["entity_mentions"], tables["relationship_mentions"]
    is_exact = pc.fill_null(mentions["is_exact"], False)
    is_found = pc.or_(pc.is_valid(relationships["start"]), pc.is_valid(relationships["request_key"]))
    return {
        **tables,
        "entity_mentions": mentions.filter(pc.invert(is_exact)),
        "relationship_mentions": relationships.filter(is_found),
    }


def _units_of(text_units: pa.Table) -> dict[str, list[str]]:
    """Return the ids of the text units of each document, in order."""
    units: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for row in text_units.select(["id", "document_id", "position"]).to_pylist():
        units[row["document_id"]].append((row["position"], row["id"]))
    return {document: [unit for _, unit in sorted(rows)] for document, rows in units.items()}


def _mentions_by_document(mentions: pa.Table, document_of: Mapping[str, str]) -> dict[str, list[_Row]]:
    rows: defaultdict[str, list[_Row]] = defaultdict(list)
    for row in mentions.select(["text_unit_id", "name", "type", "written", "is_about"]).to_pylist():
        rows[document_of[row["text_unit_id"]]].append(row)
    return rows


def _next_positions(rows: pa.Table) -> defaultdict[str, int]:
    positions: defaultdict[str, int] = defaultdict(int)
    for unit, position in zip(rows["text_unit_id"].to_pylist(), rows["position"].to_pylist(), strict=True):
        positions[unit] = max(positions[unit], position + 1)
    return positions


def _describe(title: str, text: str) -> str:
    """Return the title of a document and the first sentence that is no heading or label, in one line."""
    blocks = (block for block in read_structure(text).blocks if block.kind not in (TITLE, HIDDEN, FRONT_MATTER))
    first = next((block.text for block in blocks if not block.labels), "")
    start, end = next(iter(split_sentences(first)), (0, 0))
    sentence = " ".join(first[start:end].split())[:MAX_DESCRIPTION]
    return ": ".join(filter(None, (title, sentence)))


def _mentions_of(main: str, others: tuple[str, ...], kind: str, description: str, units: list[str]) -> Iterator[_Row]:
    """Yield a mention in each text unit, and in the first one mention by each other name."""
    for number, unit in enumerate(units):
        yield {"text_unit_id": unit, "name": main, "type": kind, "description": "" if number else description}
    for name in others:
        yield {"text_unit_id": units[0], "name": main, "type": kind, "description": "", "written": name}


def _relationships_of(main: str, title: str, values: Mapping[str, Any], found: list[_Row]) -> Iterator[_Row]:
    """Yield what the document's labels say of entities in it, then the identifiers that it mentions, each once."""
    named: dict[str, _Row] = {}
    for row in found:
        for name in filter(None, (row["name"], row["written"])):
            named.setdefault(normalize_title(name), row)
    related = {normalize_title(main)}
    for label, value in values.items():
        for part in _parts_of(value):
            mention = named.get(normalize_title(part))
            if mention and normalize_title(mention["name"]) not in related:
                related.add(normalize_title(mention["name"]))
                said = label.replace("_", " ")
                yield _relationship(mention, main, f"{title}: {said} {part}", said)
    for row in found:
        if row["type"] in (IDENTIFIER, DOUBTFUL) and normalize_title(row["name"]) not in related:
            related.add(normalize_title(row["name"]))
            yield _relationship(row, main, "", None)


def _parts_of(value: object) -> list[str]:
    """Return the texts of a value: those of a list, else what commas divide, without parentheses."""
    values = value if isinstance(value, list) else [value]
    return [part for one in values if isinstance(one, str) for part in _LISTED.split(one) if part]


def _relationship(row: _Row, main: str, description: str, predicate: str | None) -> _Row:
    ends = {"source": main, "target": row["name"], "description": description, "strength": STRENGTH}
    return {"text_unit_id": row["text_unit_id"], **ends, "predicate": predicate}


def _append(table: Table, rows: pa.Table, more: list[_Row]) -> pa.Table:
    columns = dict.fromkeys(table.schema.names)
    made = pa.Table.from_pylist([columns | row for row in more], schema=table.schema)
    return table.sort(rows, made) if more else rows
