"""Agreement between a model's stored extraction and the embedded engine on the same text units.

No model is called: the model's entities are those of the snapshot, and the embedded engine reads the documents of some
text units now. Two entities are one if any of their written names are equal (`lookups.name_key`). The text units are
evenly spread over the snapshot. Their documents end at `MAX_CHARACTERS`, which take the engine a few seconds. Keep out:
which engine is right.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.evaluation.index_quality.figures import (
    MAX_EXAMPLES,
    QualityFigure,
    not_measured,
    spread_rows,
)
from graphrag_pipeline.indexing.ports import Extractor
from graphrag_pipeline.storage.lookups import name_key
from graphrag_pipeline.storage.snapshots import Snapshot

MAX_CHARACTERS = 1_000_000
"""Characters of documents that the embedded engine reads; the first document is always read."""
N_COMPARED = 12
"""Text units of a model's extraction, evenly spread, that the embedded engine reads, too: about half a second."""
_FIGURES = ("engine_ratio", "engine_overlap")

Names = Set[str]
"""The keys of all written names of one entity."""


@dataclass(frozen=True)
class EngineAgreement:
    """Entities of both engines in the same text units.

    Attributes:
        model: the model that extracted, or `an import`.
        n_text_units: text units compared.
        n_model, n_embedded: entities, summed over the text units.
        n_shared_model: entities of the model that the embedded engine finds in the same text unit.
        n_shared_embedded: entities of the embedded engine that the model has in the same text unit.
        missed: entities that only the embedded engine finds, in at least one text unit; the most frequent first.
        added: entities that only the model has.
    """

    model: str
    n_text_units: int
    n_model: int
    n_embedded: int
    n_shared_model: int
    n_shared_embedded: int
    missed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    def describe(self) -> str:
        """Return the counts in one sentence."""
        ours, theirs = self.n_embedded / self.n_text_units, self.n_model / self.n_text_units
        shared = self.n_shared_embedded / self.n_text_units
        return (
            f"{theirs:.1f} entities a text unit by {self.model}, {ours:.1f} by the embedded engine, {shared:.1f} of "
            f"which both find ({self.n_text_units:,} text units)"
        )


def find_extractor(snapshot: Snapshot) -> str:
    """Return the model that extracted a snapshot's entities, `an import`, or "" for the embedded engine."""
    manifest = snapshot.manifest
    if manifest.origin == "import":
        return "an import"
    versions = {head["code_version"] for name, head in manifest.heads.items() if name.startswith("entity_mentions/")}
    models = {str(manifest.code.get(version, {}).get("extraction model", "")) for version in versions}
    return ", ".join(sorted(models - {""}))


def compare_engines(snapshot: Snapshot, embedded: Extractor, n_text_units: int) -> EngineAgreement | None:
    """Compare the stored extraction of a model with the embedded engine; None if nothing can be compared."""
    model = find_extractor(snapshot)
    rows = spread_rows(snapshot.n_rows("text_units"), n_text_units) if model else []
    found = _extract(snapshot, rows, embedded) if rows else {}
    if not found:
        return None
    stored = _stored_entities(snapshot, list(found))
    return count_agreement(model, [(stored[unit], found[unit]) for unit in found])


def count_agreement(model: str, units: Sequence[tuple[Mapping[str, Names], Mapping[str, Names]]]) -> EngineAgreement:
    """Count shared entities.

    Args:
        units: for each text unit the model's entities and those of the embedded engine, with their names, by title.
    """
    missed: defaultdict[str, int] = defaultdict(int)
    added: defaultdict[str, int] = defaultdict(int)
    for theirs, ours in units:
        for title in _unmatched(ours, theirs):
            missed[title] += 1
        for title in _unmatched(theirs, ours):
            added[title] += 1
    n_model, n_embedded = sum(len(theirs) for theirs, _ in units), sum(len(ours) for _, ours in units)
    return EngineAgreement(
        model,
        len(units),
        n_model,
        n_embedded,
        n_model - sum(added.values()),
        n_embedded - sum(missed.values()),
        _most_frequent(missed),
        _most_frequent(added),
    )


def _unmatched(entities: Mapping[str, Names], others: Mapping[str, Names]) -> list[str]:
    known = set().union(*others.values())
    return [title for title, names in entities.items() if known.isdisjoint(names)]


def _most_frequent(counts: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(sorted(counts, key=lambda title: (-counts[title], title))[:MAX_EXAMPLES])


def agreement_figures(found: EngineAgreement | None, extractor: str) -> list[QualityFigure]:
    """Return the ratio and the overlap of an agreement; without values if it is None."""
    if found is None:
        reason = (
            "the embedded engine extracted the entities" if not extractor else "no text unit has a place in a document"
        )
        return [not_measured(name, reason) for name in _FIGURES]
    ratio = found.n_model / found.n_embedded if found.n_embedded else None
    overlap = found.n_shared_model / found.n_model if found.n_model else None
    shared = f"{found.n_shared_model:,} of {found.n_model:,} entities of {found.model}"
    counted = (found.n_text_units, "text units")
    return [
        QualityFigure("engine_ratio", ratio, *counted, found.describe(), found.missed),
        QualityFigure("engine_overlap", overlap, *counted, shared, found.added),
    ]


def _extract(snapshot: Snapshot, rows: Sequence[int], embedded: Extractor) -> dict[str, dict[str, Names]]:
    """Return text unit id -> title -> names, by the embedded engine, for text units whose documents fit."""
    units = snapshot.table("text_units").take(pa.array(rows, pa.int64())).select(["id", "document_id", "start", "end"])
    units = units.filter(units["start"].is_valid())
    if not units.num_rows:
        return {}
    documents = snapshot.table("documents").take(snapshot.rows_of("documents", _chosen_documents(snapshot, units)))
    fitting = set(documents["id"].to_pylist())
    units = units.filter([document_id in fitting for document_id in units["document_id"].to_pylist()])
    found: dict[str, dict[str, set[str]]] = {unit: {} for unit in units["id"].to_pylist()}
    mentions = embedded.extract(documents, units).tables["entity_mentions"]
    for row in mentions.select(["text_unit_id", "name", "written"]).to_pylist():
        names = {name_key(name) for name in (row["name"], row["written"]) if name} - {""}
        found[row["text_unit_id"]].setdefault(row["name"], set()).update(names)
    return {unit: dict(entities) for unit, entities in found.items()}


def _chosen_documents(snapshot: Snapshot, units: pa.Table) -> list[str]:
    """Return the documents of text units, in order, up to `MAX_CHARACTERS`."""
    ids = list(dict.fromkeys(units["document_id"].to_pylist()))
    lengths = pc.utf8_length(snapshot.table("documents")["text"].take(snapshot.rows_of("documents", ids))).to_pylist()
    chosen: list[str] = []
    n_characters = 0
    for document_id, length in zip(ids, lengths, strict=True):
        n_characters += length
        if chosen and n_characters > MAX_CHARACTERS:
            break
        chosen.append(document_id)
    return chosen


def _stored_entities(snapshot: Snapshot, unit_ids: list[str]) -> dict[str, dict[str, Names]]:
    """Return text unit id -> title -> names of the snapshot's entities."""
    units = snapshot.take("text_units", snapshot.rows_of("text_units", unit_ids), ["id", "entity_ids"])
    ids = sorted({entity_id for unit in units for entity_id in unit["entity_ids"]})
    rows = snapshot.take("entities", snapshot.rows_of("entities", ids), ["id", "title", "names"])
    names = {row["id"]: (row["title"], {name_key(n) for n in (row["title"], *row["names"])} - {""}) for row in rows}
    return {unit["id"]: dict(names[entity_id] for entity_id in unit["entity_ids"]) for unit in units}
