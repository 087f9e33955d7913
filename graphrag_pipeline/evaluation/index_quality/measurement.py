"""Measure the quality of an index, compare it with the embedded engine on a sample, and print the figures."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.evaluation.index_quality.figures import (
    INDEX_PROMPTS,
    MAX_EXAMPLES,
    QualityFigure,
    measure_citations,
    measure_duplicates,
    measure_graph,
    measure_placeholders,
    not_measured,
)
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.identity import bucket_of, text_hash
from graphrag_pipeline.indexing.aggregation_report import (
    WholeAndParts,
    choose_comparisons,
    compare_averages,
    texts_to_compare,
)
from graphrag_pipeline.indexing.embeddings import embedded_unit_texts
from graphrag_pipeline.indexing.ports import Extractor
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stage_code import asks_any_model
from graphrag_pipeline.ports import load_port
from graphrag_pipeline.settings.section import QualitySettings
from graphrag_pipeline.storage.lookups import name_key
from graphrag_pipeline.storage.snapshot_store import EVALUATIONS_FOLDER
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.text.counted import counted, spread_rows
from graphrag_pipeline.text.document_names import DOCUMENT

MAX_CHARACTERS = 1_000_000
"""Characters of documents that the embedded engine reads; the first document is always read."""
N_COMPARED = 12
"""Text units of a model's extraction, evenly spread, that the embedded engine reads, too: about half a second."""
N_AVERAGED = 20
"""Averaged vectors that are compared at least, if the index has so many; whole buckets are read, a second for 1,000
text units."""
_FIGURES = ("engine_ratio", "engine_overlap")

Names = Set[str]
"""The keys of all written names of one entity."""


def find_extractor(snapshot: Snapshot) -> str:
    """Return the model that extracted a snapshot's entities, `an import`, or "" for the embedded engine."""
    manifest = snapshot.manifest
    if manifest.origin == "import":
        return "an import"
    versions = {head["code_version"] for name, head in manifest.heads.items() if name.startswith("entity_mentions/")}
    models = {str(manifest.code.get(version, {}).get("extraction model", "")) for version in versions}
    return ", ".join(sorted(models - {""}))


def compare_engines(snapshot: Snapshot, embedded: Extractor, n_text_units: int = N_COMPARED) -> list[QualityFigure]:
    """Compare the stored extraction of a model with the embedded engine on text units that are evenly spread."""
    model = find_extractor(snapshot)
    if not model:
        return [not_measured(name, "the embedded engine extracted the entities") for name in _FIGURES]
    found = _extract(snapshot, spread_rows(snapshot.n_rows("text_units"), n_text_units), embedded)
    if not found:
        return [not_measured(name, "no text unit has a place in a document") for name in _FIGURES]
    stored = _stored_entities(snapshot, list(found))
    return measure_agreement(model, [(stored[unit], found[unit]) for unit in found])


def measure_agreement(
    model: str, units: Sequence[tuple[Mapping[str, Names], Mapping[str, Names]]]
) -> list[QualityFigure]:
    """Return the ratio and the overlap of the entities of two engines.

    Args:
        model: the model that extracted, or `an import`.
        units: for each text unit the model's entities and those of the embedded engine, with their names, by title.
    """
    missed = Counter(title for theirs, ours in units for title in _unmatched(ours, theirs))
    added = Counter(title for theirs, ours in units for title in _unmatched(theirs, ours))
    n, n_model, n_embedded = len(units), sum(len(theirs) for theirs, _ in units), sum(len(ours) for _, ours in units)
    n_shared = n_model - added.total()
    note = (
        f"{n_model / n:.1f} entities a text unit by {model}, {n_embedded / n:.1f} by the embedded engine, "
        f"{(n_embedded - missed.total()) / n:.1f} of which both find ({n:,} text units)"
    )
    ratio, overlap = n_model / n_embedded if n_embedded else None, n_shared / n_model if n_model else None
    shared = f"{n_shared:,} of {n_model:,} entities of {model}"
    return [
        QualityFigure("engine_ratio", ratio, n, "text units", note, _most_frequent(missed)),
        QualityFigure("engine_overlap", overlap, n, "text units", shared, _most_frequent(added)),
    ]


def _unmatched(entities: Mapping[str, Names], others: Mapping[str, Names]) -> list[str]:
    known = set().union(*others.values())
    return [title for title, names in entities.items() if known.isdisjoint(names)]


def _most_frequent(counts: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(sorted(counts, key=lambda title: (-counts[title], title))[:MAX_EXAMPLES])


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
    """Return text unit id -> title -> names of the snapshot's entities, without documents."""
    units = snapshot.take("text_units", snapshot.rows_of("text_units", unit_ids), ["id", "entity_ids"])
    ids = sorted({entity_id for unit in units for entity_id in unit["entity_ids"]})
    rows = snapshot.take("entities", snapshot.rows_of("entities", ids), ["id", "title", "type", "names"])
    names = {
        row["id"]: (row["title"], {name_key(n) for n in (row["title"], *row["names"])} - {""})
        for row in rows
        if row["type"] != DOCUMENT
    }
    return {unit["id"]: dict(names[one] for one in unit["entity_ids"] if one in names) for unit in units}


_DIGITS = 12
_VERSION = 2
"""Version of the definitions of the figures; raise it when one changes."""


@dataclass(frozen=True)
class IndexQuality:
    """The quality figures of a snapshot.

    Attributes:
        extractor: the model that extracted the entities, `an import`, or the embedded engine.
        figures: in the order of `FIGURES`.
    """

    snapshot: str
    extractor: str
    figures: tuple[QualityFigure, ...]

    def warnings(self, settings: QualitySettings) -> list[QualityFigure]:
        """Return the figures beyond their thresholds."""
        return [figure for figure in self.figures if figure.is_low(settings)]

    def to_dict(self, settings: QualitySettings) -> dict[str, Any]:
        """Return everything as JSON values."""
        rows = [
            {
                **asdict(figure),
                "meaning": figure.kind.meaning,
                "setting": f"quality.thresholds.{figure.kind.option}",
                "threshold": settings.threshold(figure.kind.option),
                "is_warning": figure.is_low(settings),
                "advice": figure.kind.advice,
                "examples_are": figure.kind.listed,
            }
            for figure in self.figures
        ]
        n_warnings = len(self.warnings(settings))
        return {"snapshot": self.snapshot, "extractor": self.extractor, "n_warnings": n_warnings, "figures": rows}


def measure_quality(root: Root, snapshot: Snapshot, before: Snapshot | None = None) -> IndexQuality:
    """Return the quality figures of a snapshot: stored ones, or measured now and stored.

    Args:
        before: the snapshot that was published before; if its stored figures found no placeholder, only texts that
            are new since then are read for them. The figures do not depend on it.

    Raises:
        PipelineError: the snapshot, its vector store or a prompt cannot be read.
    """
    path = _path_of(root, snapshot.id)
    stored = _load(path)
    if stored is not None:
        return stored
    measured = IndexQuality(
        snapshot.id,
        find_extractor(snapshot) or "the embedded engine",
        tuple(_measure(root, snapshot, before if _is_clean(root, before) else None)),
    )
    content = json.dumps(asdict(measured), indent=1, sort_keys=True, ensure_ascii=False)
    files.replace(path, content.encode())
    return measured


def _is_clean(root: Root, snapshot: Snapshot | None) -> bool:
    """Whether no placeholder was found in a snapshot when it was measured with the same prompts."""
    stored = _load(_path_of(root, snapshot.id)) if snapshot else None
    return stored is not None and any(f.name == "placeholders" and f.value == 0 for f in stored.figures)


def _measure(root: Root, snapshot: Snapshot, clean: Snapshot | None) -> Iterator[QualityFigure]:
    extraction = root.settings.extraction
    yield from measure_graph(snapshot, extraction.uses_model and extraction.has_claims)
    yield from measure_duplicates(snapshot)
    yield from measure_citations(snapshot)
    extractor = find_extractor(snapshot)
    if extractor or asks_any_model(root.settings):
        yield measure_placeholders(root, snapshot, clean)
    else:
        yield not_measured("placeholders", "no model wrote the index")
    yield from compare_engines(snapshot, load_port("extractor")(root))
    yield _measure_averages(root, snapshot)


def _measure_averages(root: Root, snapshot: Snapshot) -> QualityFigure:
    """Compare averaged vectors with those of whole texts; only stored vectors are read."""
    name, settings = "averaged_cosine", root.settings
    if snapshot.manifest.origin == "import":
        return not_measured(name, "an import made the vectors")
    if settings.embeddings.engine != "model":
        return not_measured(name, "the bundled embeddings average no vectors")
    units, limits = snapshot.table("text_units"), settings.embedding_model
    buckets = [bucket_of(one, settings.storage.n_buckets) for one in units["document_id"].to_pylist()]
    comparisons: list[WholeAndParts] = []
    for bucket in sorted(set(buckets)):  # the index chose and embedded its sample for each bucket
        texts = embedded_unit_texts(units.filter([one == bucket for one in buckets]))
        comparisons += choose_comparisons(texts, limits, settings.embeddings.n_compared)
        if len(comparisons) >= N_AVERAGED:
            break
    stored = root.models.embedder.read_stored({text_hash(text): text for text in texts_to_compare(comparisons)})
    cosines = compare_averages(comparisons, stored, limits)
    if not cosines:
        return not_measured(name, "no text unit is cut, or `embeddings.n_compared` is 0")
    note = f"{counted(len(cosines), 'texts')} cut on purpose, {min(cosines):.3f} at least"
    return QualityFigure(name, float(np.mean(cosines)), len(cosines), "texts", note)


def _path_of(root: Root, snapshot_id: str) -> Path:
    prompts = {name: root.prompt(name).sha256 for name in INDEX_PROMPTS}
    content = json.dumps([_VERSION, prompts, version("graphrag-pipeline")], sort_keys=True)
    name = f"quality-{files.content_hash(content.encode())[:_DIGITS]}.json"
    return root.path / EVALUATIONS_FOLDER / snapshot_id / name


def _load(path: Path) -> IndexQuality | None:
    """Return stored figures; None if the file is missing or damaged."""
    try:
        values = json.loads(path.read_bytes())
        figures = (QualityFigure(**{**row, "examples": tuple(row["examples"])}) for row in values["figures"])
        return IndexQuality(values["snapshot"], values["extractor"], tuple(figures))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def render_quality(quality: IndexQuality, settings: QualitySettings, before: IndexQuality | None = None) -> list[str]:
    """Return the figures of a snapshot as lines; with those of another snapshot in a column of their own."""
    old = {figure.name: figure for figure in before.figures} if before else {}
    heading = ["figure", "value", *([before.snapshot[:8]] if before else []), "threshold", "", "about"]
    rows = [
        [
            figure.name,
            _show(figure.value),
            *([_show(old[figure.name].value)] if before else []),
            figure.render_threshold(settings),
            "WARN" if figure.is_low(settings) else "",
            figure.note,
        ]
        for figure in quality.figures
    ]
    lines = _align([heading, *rows])
    for figure in quality.warnings(settings):
        lines += ["", *_explain(figure, settings)]
    warned = counted(len(quality.warnings(settings)), "warnings")
    lines += ["", f"snapshot {quality.snapshot}, entities extracted by {quality.extractor}: {warned}"]
    return lines


def _show(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _explain(figure: QualityFigure, settings: QualitySettings) -> Iterator[str]:
    kind = figure.kind
    yield (
        f"{figure.name}: {kind.meaning} is {_show(figure.value)}, wanted "
        f"{figure.render_threshold(settings)} (`quality.thresholds.{kind.option}`)"
    )
    yield f"  {kind.advice}"
    if figure.examples:
        yield f"  {kind.listed[0].upper()}{kind.listed[1:]}:"
    for example in figure.examples:
        yield f"  - {example}"


def _align(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
