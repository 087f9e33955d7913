"""One record of an index in full: an entity, a community with its report, a document and its text.

A name that means no record, or several, is a `RecordNameError`; `n_most` limits each list of a page. Keep out: lists of
records (`lists.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.dataset as ds

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import WHOLE, best_name
from graphrag_pipeline.query.cited_records import CitedRecord, CitedRecords
from graphrag_pipeline.query.index_reader import SnapshotReader
from graphrag_pipeline.query.records import read_text_units
from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.reading.lookup import find_by_key, find_record, shared_key
from graphrag_pipeline.reading.pages import (
    CitedSource,
    CommunityLink,
    CommunityPage,
    DocumentPage,
    DocumentText,
    EntityLink,
    EntityPage,
    MentionPlace,
    MergedName,
    Neighbour,
    PlacedText,
    ReportedFinding,
    ReportPage,
    TextUnitLink,
    TextUnitPage,
)
from graphrag_pipeline.storage.arrays import find_names
from graphrag_pipeline.text.sentences import split_sentences


def link_communities(reader: SnapshotReader, numbers: Sequence[int]) -> tuple[CommunityLink, ...]:
    """Return links to the communities of some numbers that may be read, in the order of `numbers`."""
    rows = reader.rows_of_numbers("communities", "community", numbers)
    found = reader.snapshot.take("communities", rows[rows >= 0], ["community", "level", "size"])
    titles = _titles(reader, [record["community"] for record in found])
    return tuple(
        CommunityLink(one["community"], one["level"], one["size"], titles.get(one["community"], "")) for one in found
    )


def _titles(reader: SnapshotReader, numbers: Sequence[int]) -> dict[int, str]:
    """Return the titles of the reports of some communities."""
    is_wanted = np.isin(reader.column("community_reports", "community"), numbers)
    rows = np.flatnonzero(is_wanted & reader.row_mask("community_reports"))
    found = reader.snapshot.take("community_reports", rows, ["community", "title"])
    return {record["community"]: record["title"] for record in found}


_BATCH = 50
"""Text units that are read at a time."""


@dataclass(frozen=True)
class NamedSentences:
    """Sentences that write a name.

    Attributes:
        has_more: whether there are more than were asked for.
        n_unnamed: number of text units, among those read, that write none of the names.
    """

    sentences: tuple[PlacedText, ...]
    has_more: bool
    n_unnamed: int


def find_sentences(reader: SnapshotReader, units: Sequence[int], names: Sequence[str], n_most: int) -> NamedSentences:
    """Return the first sentences that write one of some names.

    Args:
        units: rows of text units, in reading order; as many are read as give more than `n_most` sentences.
        names: written forms; if a text unit writes none of them as given, letters of any case count.

    Returns:
        Sentences in the order of `units`, each once even if two text units overlap.
    """
    found: dict[tuple[str, int | str], PlacedText] = {}
    n_unnamed = 0
    for unit in _read_units(reader, units):
        sentences = list(_name_sentences(unit, names))
        n_unnamed += not sentences
        for passage in sentences:
            found.setdefault((passage.document_id, passage.text if passage.start is None else passage.start), passage)
        if len(found) > n_most:
            break
    return NamedSentences(tuple(found.values())[:n_most], len(found) > n_most, n_unnamed)


def _read_units(reader: SnapshotReader, units: Sequence[int]) -> Iterator[TextUnitRecord]:
    for first in range(0, len(units), _BATCH):
        rows = np.array(units[first : first + _BATCH], dtype=np.int64)
        yield from read_text_units(reader, rows, np.zeros(len(rows)))


def _name_sentences(unit: TextUnitRecord, names: Sequence[str]) -> Iterator[PlacedText]:
    places = find_names(unit.text, names) or _find_in_any_case(unit.text, names)
    sentences = split_sentences(unit.text) if places else []
    firsts = [start for start, _ in sentences]
    for number in dict.fromkeys(int(n) - 1 for n in np.searchsorted(firsts, [start for start, _ in places], "right")):
        start, end = sentences[number]
        text = unit.text[start:end]
        start += len(text) - len(text.lstrip())
        yield _passage(unit, text.strip(), *unit.place_of(start, start + len(text.strip())))


def _find_in_any_case(text: str, names: Sequence[str]) -> list[tuple[int, int]]:
    """Return the places of names as whole words; a space of a name is any white space of the text."""
    forms = [r"\s+".join(map(re.escape, name.split())) for name in sorted(names, key=len, reverse=True)]
    pattern = "|".join(filter(None, forms))
    return (
        [match.span() for match in re.finditer(rf"(?<!\w)(?:{pattern})(?!\w)", text, re.IGNORECASE)] if pattern else []
    )


def _passage(unit: TextUnitRecord, text: str, start: int | None, end: int | None) -> PlacedText:
    return PlacedText(
        text, unit.human_readable_id, unit.document_title, unit.document_id, unit.document_path, start, end
    )


def read_entity(reader: SnapshotReader, name: str, n_most: int = 10) -> EntityPage:
    """Return the entity that a title, alias, number or id means."""
    row = find_record(reader, "entity", name)
    [record] = reader.snapshot.take("entities", [row])
    relationships = reader.snapshot.adjacency.of("entity_relationships", row)
    units = reader.snapshot.adjacency.of("entity_text_units", row).tolist()
    names = tuple(dict.fromkeys(record["names"] or ()))
    named = find_sentences(reader, units, [*names, record["title"]], n_most)
    return EntityPage(
        id=record["id"],
        number=record["human_readable_id"],
        title=record["title"],
        name=best_name(record["title"], names),
        type=record["type"],
        types=tuple(record["types"] or ()),
        description=record["description"] or "",
        names=tuple(name for name in names if name != record["title"]),
        merges=read_merges(reader, record["title"]),
        degree=record["degree"],
        relationships=_neighbours(reader, row, _strongest(reader, relationships)[:n_most]),
        n_relationships=len(relationships),
        communities=_communities(reader, row),
        sentences=named.sentences,
        has_more_sentences=named.has_more,
        n_text_units=len(units),
        n_unnamed=named.n_unnamed,
    )


def link_entities(reader: SnapshotReader, rows: Sequence[int], counts: Sequence[int] = ()) -> tuple[EntityLink, ...]:
    """Return links to entities, in the order of `rows`.

    Args:
        counts: `EntityLink.n_text_units` of each; none: 0.
    """
    columns = ["human_readable_id", "title", "names", "type", "degree", "description"]
    found = reader.snapshot.take("entities", list(rows), columns)
    return tuple(
        EntityLink(
            one["human_readable_id"],
            one["title"],
            best_name(one["title"], one["names"]),
            one["type"],
            one["degree"],
            one["description"] or "",
            count,
        )
        for one, count in zip(found, counts or [0] * len(rows), strict=True)
    )


def read_merges(reader: SnapshotReader, title: str) -> tuple[MergedName, ...]:
    """Return the names that were merged into an entity, best first; none in an imported index, and under a filter.

    They are rows of the stage table that the snapshot was joined from. A filter hides them, since their evidence may
    quote a document that does not pass.
    """
    snapshot = reader.snapshot
    head = snapshot.manifest.heads.get(f"entity_merges/{WHOLE}", {})
    folder = snapshot.folder.parent / "tables" / "entity_merges" / WHOLE
    paths = [str(folder / file["name"]) for file in head.get("files", ()) if (folder / file["name"]).is_file()]
    if not paths or reader.document_mask is not None:
        return ()
    rows = ds.dataset(paths, format="parquet").to_table(filter=ds.field("title") == title).to_pylist()
    merges = (MergedName(row["name"], row["rule"], row["evidence"], row["score"]) for row in rows)
    return tuple(sorted(merges, key=lambda merge: (-merge.score, merge.name)))


def _strongest(reader: SnapshotReader, rows: np.ndarray) -> list[int]:
    """Return relationships by weight, then by the degrees of both ends, then in file order."""
    weights, degrees = (reader.column("relationships", name)[rows] for name in ("weight", "combined_degree"))
    ordered: list[int] = rows[np.lexsort((rows, -degrees, -weights))].tolist()
    return ordered


def _neighbours(reader: SnapshotReader, row: int, rows: Sequence[int]) -> tuple[Neighbour, ...]:
    columns = ["human_readable_id", "description", "weight", "n_mentions", "predicates"]
    sources, targets = (reader.snapshot.adjacency.array(f"relationship_{end}")[rows] for end in ("source", "target"))
    others = link_entities(reader, np.where(sources == row, targets, sources).tolist())
    return tuple(
        Neighbour(
            one["human_readable_id"],
            other.title,
            other.name,
            one["description"] or "",
            one["weight"],
            one["n_mentions"],
            tuple(one["predicates"] or ()),
        )
        for one, other in zip(reader.snapshot.take("relationships", list(rows), columns), others, strict=True)
    )


def _communities(reader: SnapshotReader, row: int) -> tuple:
    rows = reader.snapshot.adjacency.of("entity_communities", row)
    numbers = reader.column("communities", "community")[rows].tolist()
    return tuple(sorted(link_communities(reader, numbers), key=lambda link: link.level))


_TABLES = {"entity": "entities", "relationship": "relationships", "claim": "covariates", "report": "community_reports",
           "text_unit": "text_units"}  # fmt: skip
_NAMES = {"entity": ["title"], "relationship": ["source", "target"], "claim": ["subject_id", "object_id"],
          "report": ["title"], "text_unit": ["text"]}  # fmt: skip
_MAX_NAME = 80


def read_report(reader: SnapshotReader, name: str, n_most: int = 10) -> ReportPage:
    """Return the report that a title, number or id means."""
    return _report(reader, find_record(reader, "report", name), n_most)


def read_community(reader: SnapshotReader, name: str, n_most: int = 10) -> CommunityPage:
    """Return the community that a number, the title of its report, or an id means."""
    row = find_record(reader, "community", name)
    [record] = reader.snapshot.take("communities", [row])
    number = record["community"]
    entities = _rows(reader, "entities", record["entity_ids"])
    degrees = reader.column("entities", "degree")[entities]
    leading = entities[np.lexsort((entities, -degrees))]
    reports = np.flatnonzero((reader.column("community_reports", "community") == number)
                             & reader.row_mask("community_reports"))  # fmt: skip
    report = _report(reader, int(reports[0]), n_most) if len(reports) else None
    return CommunityPage(
        id=record["id"],
        number=number,
        level=record["level"],
        size=len(entities),
        title=report.title if report else record["title"],
        parent=next(iter(link_communities(reader, [record["parent"]])), None),
        children=link_communities(reader, record["children"]),
        entities=link_entities(reader, leading[:n_most].tolist()),
        n_entities=len(entities),
        n_relationships=len(_rows(reader, "relationships", record["relationship_ids"])),
        n_text_units=len(_rows(reader, "text_units", record["text_unit_ids"])),
        report=report,
    )


def _rows(reader: SnapshotReader, table: str, ids: Sequence[str]) -> np.ndarray:
    """Return the rows of ids that may be read."""
    rows = reader.snapshot.rows_of(table, list(ids))
    known = rows[rows >= 0]
    readable: np.ndarray = known[reader.row_mask(table)[known]]
    return readable


def _report(reader: SnapshotReader, row: int, n_most: int) -> ReportPage:
    [record] = reader.snapshot.take("community_reports", [row])
    cited = CitedRecords(reader).read_report(row)
    units = [unit for unit in cited.text_unit_rows if reader.row_mask("text_units")[unit]]
    # The places of text units, without their text.
    return ReportPage(
        id=record["id"],
        number=record["human_readable_id"],
        title=record["title"],
        community=link_communities(reader, [record["community"]])[0],
        rank=record["rank"],
        rating_explanation=record["rating_explanation"] or "",
        summary=record["summary"],
        findings=tuple(ReportedFinding(one["summary"], one["explanation"]) for one in record["findings"] or ()),
        content=record["full_content"],
        is_verbatim=record["is_verbatim"],
        is_fallback=record["is_fallback"],
        cited=tuple(_source(reader, one) for one in cited.through[:n_most]),
        n_cited=len(cited.through),
        passages=tuple(_passage(unit, "", unit.start, unit.end) for unit in _read_units(reader, units[:n_most])),
        n_passages=len(units),
    )


def _source(reader: SnapshotReader, cited: CitedRecord) -> CitedSource:
    table = _TABLES[cited.kind]
    rows = reader.snapshot.rows_of(table, [cited.id])
    [record] = reader.snapshot.take(table, rows, _NAMES[cited.kind])
    if cited.kind == "entity":
        record["title"] = link_entities(reader, rows.tolist())[0].name
    elif cited.kind == "relationship":  # the names as written, not the normalized titles
        ends = [int(reader.snapshot.adjacency.array(f"relationship_{end}")[rows[0]]) for end in _NAMES[cited.kind]]
        record.update(zip(_NAMES[cited.kind], (end.name for end in link_entities(reader, ends)), strict=True))
    name = " — ".join(" ".join((record[column] or "").split()) for column in _NAMES[cited.kind])
    shown = name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME - 3]}..."
    return CitedSource(cited.kind, cited.human_readable_id, shown, len(cited.text_unit_rows))


def read_document(reader: SnapshotReader, name: str, n_most: int = 10) -> DocumentPage:
    """Return the document that a path, file name, title, number or id means."""
    row = find_record(reader, "document", name)
    [record] = reader.snapshot.take("documents", [row])
    units = reader.snapshot.rows_of("text_units", record["text_unit_ids"] or [])
    units = units[units >= 0]
    entities, counts = _count_entities(reader, units)
    return DocumentPage(
        id=record["id"],
        number=record["human_readable_id"],
        title=record["title"],
        path=record["path"] or "",
        record=record["record"] or "",
        creation_date=record["creation_date"],
        metadata=read_metadata(record["metadata"]),
        text=record["text"],
        text_units=_link_text_units(reader, units[:n_most]),
        n_text_units=len(units),
        entities=link_entities(reader, entities[:n_most].tolist(), counts[:n_most].tolist()),
        n_entities=len(entities),
    )


def read_metadata(text: str | None) -> Mapping[str, Any]:
    """Return the metadata of a document; an import may hold text that is not a JSON object."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        found = text
    return found if isinstance(found, dict) else {"metadata": found}


def _count_entities(reader: SnapshotReader, units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the entities of text units with the number that mention each, most first, then by degree."""
    _, mentioned = reader.snapshot.adjacency.of_all("text_unit_entities", units)
    entities, counts = np.unique(mentioned, return_counts=True)
    degrees = reader.column("entities", "degree")[entities]
    order = np.lexsort((entities, -degrees, -counts))
    return entities[order], counts[order]


def _link_text_units(reader: SnapshotReader, units: np.ndarray) -> tuple[TextUnitLink, ...]:
    positions, _ = reader.snapshot.adjacency.of_all("text_unit_entities", units)
    counts = np.bincount(positions, minlength=len(units)).tolist()
    found = reader.snapshot.take("text_units", units, ["human_readable_id", "start", "end", "n_tokens"])
    return tuple(
        TextUnitLink(one["human_readable_id"], one["start"], one["end"], one["n_tokens"], count)
        for one, count in zip(found, counts, strict=True)
    )


def read_text(reader: SnapshotReader, name: str, start: int = 0, end: int | None = None) -> DocumentText:
    """Return a part of the text of the document that a name means.

    Args:
        start, end: character offsets, as in citations; an end behind the text is that of the text.
        PipelineError: the part begins behind the end of the text, or ends before it begins.
    """
    row = find_record(reader, "document", name)
    [record] = reader.snapshot.take("documents", [row], ["human_readable_id", "id", "title", "text", "creation_date"])
    text = record["text"]
    stop = len(text) if end is None else min(end, len(text))
    if not 0 <= start <= stop:
        raise PipelineError(
            f"characters {start:,} to {stop:,} are not in the document, which has {len(text):,}; "
            "choose 0 <= start <= end"
        )
    return DocumentText(
        record["human_readable_id"],
        record["id"],
        shared_key(reader.snapshot, record["id"]),
        record["title"],
        start,
        stop,
        len(text),
        text[start:stop],
        record["creation_date"],
    )


def read_mentions(
    reader: SnapshotReader, name: str, start: int = 0, end: int | None = None, n_most: int = 1_000
) -> tuple[tuple[MentionPlace, ...], int]:
    """Return the places where the document that a name means writes names of entities, in reading order.

    Args:
        start, end: character offsets; a mention lies between them.
        n_most: maximum of mentions.

    Returns:
        The mentions, and the number of all between the offsets. Overlapping text units count a place once.
    """
    row = find_record(reader, "document", name)
    [record] = reader.snapshot.take("documents", [row], ["text_unit_ids"])
    units = reader.snapshot.rows_of("text_units", record["text_unit_ids"] or [])
    places = _places(reader, units[units >= 0])
    kept = sorted(place for place in places if start <= place[0] and (end is None or place[1] <= end))
    shown = kept[:n_most]
    links = link_entities(reader, [entity for _, _, entity in shown])
    mentions = (
        MentionPlace(first, last, link.number, link.title, link.name, link.type)
        for (first, last, _), link in zip(shown, links, strict=True)
    )
    return tuple(mentions), len(kept)


def _places(reader: SnapshotReader, units: np.ndarray) -> set[tuple[int, int, int]]:
    """Return (start, end, row of the entity) of the mentions of text units, as offsets in their document."""
    mentions = reader.snapshot.mentions
    found = set()
    for row, unit in zip(units.tolist(), read_text_units(reader, units, np.zeros(len(units))), strict=True):
        edges = range(int(mentions.unit_indptr[row]), int(mentions.unit_indptr[row + 1]))
        for edge in edges:
            for place in range(int(mentions.places_indptr[edge]), int(mentions.places_indptr[edge + 1])):
                first, last = unit.place_of(int(mentions.starts[place]), int(mentions.ends[place]))
                if first is not None and last is not None:
                    found.add((first, last, int(mentions.entities[edge])))
    return found


def read_text_unit(reader: SnapshotReader, key: str, n_most: int = 50) -> TextUnitPage:
    """Return the text unit of a number or id.

    Raises:
        RecordNameError: none that may be read has this key.
    """
    row = find_by_key(reader, "text_unit", key)
    [unit] = read_text_units(reader, np.array([row]), np.zeros(1))
    entities = reader.snapshot.adjacency.of("text_unit_entities", row)
    degrees = reader.column("entities", "degree")[entities]
    leading = entities[np.lexsort((entities, -degrees))]
    return TextUnitPage(
        unit.human_readable_id,
        unit.id,
        unit.document_title,
        unit.document_id,
        unit.document_path,
        unit.start,
        unit.end,
        unit.n_tokens,
        unit.text,
        link_entities(reader, leading[:n_most].tolist()),
        len(entities),
        unit.first_page,
        unit.last_page,
    )
