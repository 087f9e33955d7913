"""Import of a Microsoft GraphRAG index as a published snapshot: read, repair, embed, freeze, check.

The same folder gives the same snapshot, in any order of its rows. Keep out: reading files (`graphrag_files.py`),
repairing rows (`imported_tables.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.errors import NoSnapshotError, PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.indexing.embeddings import embedded_texts
from graphrag_pipeline.interchange.graphrag_files import output_folder, read_graphrag_tables
from graphrag_pipeline.interchange.imported_tables import RepairedTables, repair_tables
from graphrag_pipeline.models.ports import Embedder
from graphrag_pipeline.publishing.candidates import freeze_candidate, publish
from graphrag_pipeline.settings.rendering import render_settings
from graphrag_pipeline.settings.settings import SETTINGS_FILE, Settings
from graphrag_pipeline.storage.locks import one_writer
from graphrag_pipeline.storage.manifests import Manifest
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.storage.vectors.folders import connect
from graphrag_pipeline.tables import VECTOR_TABLES
from graphrag_pipeline.text.tokens import count_tokens_each

MIN_COSINE = 0.99
"""Minimum cosine at which a stored vector and the embedder's own count as vectors of one model."""
_MAX_SAMPLE = 24
_REMEDY = "nothing was imported. Repair the file, or remove it to make the vectors here"
_VECTOR_NAMES = {
    "default-text_unit-text": ("text_unit_text", "text_unit-text"),
    "default-entity-description": ("entity_description", "entity-description"),
    "default-relationship-description": ("relationship_description", "relationship-description"),
    "default-community-full_content": ("community_full_content", "community-full_content"),
}


@dataclass(frozen=True)
class ImportedVectors:
    """Vector table of the source; `matrix` is float32 of shape (len(ids), dimensions)."""

    ids: list[str]
    matrix: np.ndarray


def read_graphrag_vectors(source: Path) -> dict[str, ImportedVectors]:
    """Return the known vector tables of the source's `lancedb` folder by our name; none without a folder.

    Raises:
        PipelineError: a vector table cannot be read, or has a number that is not finite, vectors of several lengths, or
            two vectors for one id.
    """
    folder = next((path for path in (output_folder(source) / "lancedb", source / "lancedb") if path.is_dir()), None)
    if folder is None:
        return {}
    stems = sorted(path.stem for path in folder.iterdir() if path.suffix == ".lance")
    found = {}
    for name, known in _VECTOR_NAMES.items():
        # The source's settings may put a prefix before the name, joined by "-" or "_".
        stem = next((s for k in known for s in stems if s == k or s.endswith((f"-{k}", f"_{k}"))), None)
        if stem is not None:
            found[name] = _read_vectors(folder, stem)
    return found


def _read_vectors(folder: Path, stem: str) -> ImportedVectors:
    where = folder / f"{stem}.lance"
    try:
        rows = connect(folder).open_table(stem).to_arrow()
        rows = rows.select(["id", "vector"]).combine_chunks()
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise PipelineError(f"`{where}` cannot be read ({error}); {_REMEDY}") from error
    numbers = np.flatnonzero(rows["vector"].is_valid())  # a record without a vector gets one here
    rows = rows.take(pa.array(numbers))
    ids = rows["id"].to_pylist()
    if None in ids:
        raise PipelineError(f"{where}: column 'id', row {numbers[ids.index(None)]} is empty; {_REMEDY}")
    matrix = _matrix(where, numbers, ids, rows["vector"].combine_chunks())
    return _distinct(where, numbers, [str(record_id) for record_id in ids], matrix)


def _matrix(where: Path, numbers: np.ndarray, ids: list[Any], vectors: pa.Array) -> np.ndarray:
    """Return float32 vectors, one per row; all have one length and finite numbers."""
    if not ids:
        return np.zeros((0, 0), np.float32)
    lengths = pc.list_value_length(vectors).to_numpy(zero_copy_only=False)
    other = np.flatnonzero(lengths != lengths[0])
    if len(other):
        raise PipelineError(
            f"{where}: row {numbers[other[0]]} (id {ids[other[0]]!r}) has {lengths[other[0]]} numbers, but row "
            f"{numbers[0]} has {lengths[0]}; {_REMEDY}"
        )
    flat = vectors.flatten().to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore"):  # what is too large for 32 bits becomes infinite
        matrix = np.asarray(flat, dtype=np.float32).reshape(len(ids), -1)
    wrong = np.argwhere(~np.isfinite(matrix))
    if len(wrong):
        row, place = wrong[0]
        raise PipelineError(
            f"{where}: row {numbers[row]} (id {ids[row]!r}), number {place} is {matrix[row, place]}, which is not "
            f"finite; {_REMEDY}"
        )
    return matrix


def _distinct(where: Path, numbers: np.ndarray, ids: list[str], matrix: np.ndarray) -> ImportedVectors:
    """Return each id once; equal texts have one id in Microsoft GraphRAG, and nearly equal vectors."""
    first: dict[str, int] = {}
    for place, record_id in enumerate(ids):
        before = first.setdefault(record_id, place)
        pair = _unit(matrix[[before, place]])
        if before != place and pair.any() and pair[0] @ pair[1] < MIN_COSINE:
            raise PipelineError(
                f"{where}: row {numbers[place]} has the id {record_id!r} of row {numbers[before]} and another vector; "
                f"{_REMEDY}"
            )
    return ImportedVectors(list(first), matrix[list(first.values())])


@dataclass(frozen=True)
class ChosenVectors:
    """Vectors of an import: one matrix per vector table, aligned with its contract table, all of one model."""

    matrices: dict[str, np.ndarray]
    fingerprint: str
    notes: tuple[str, ...]


def choose_vectors(
    repaired: RepairedTables, stored: Mapping[str, ImportedVectors], embedder: Embedder
) -> ChosenVectors:
    """Keep the stored vectors if `embedder` would make the same ones; else make all."""
    dimensions = sorted({vectors.matrix.shape[1] for vectors in stored.values() if vectors.ids})
    reason = _why_foreign(repaired, stored, dimensions, embedder)
    if reason:
        rows_of = {name: repaired.tables[table] for name, (table, _) in VECTOR_TABLES.items()}
        matrices = {name: embedder.embed(embedded_texts(name, rows)) for name, rows in rows_of.items()}
        return ChosenVectors(matrices, embedder.fingerprint, (f"{reason}: all vectors were made here",))
    return _complete(repaired, stored, embedder)


def _why_foreign(
    repaired: RepairedTables, stored: Mapping[str, ImportedVectors], dimensions: list[int], embedder: Embedder
) -> str | None:
    """Return why the stored vectors do not fit the embedder's; None if they fit."""
    if not dimensions:
        return "the source has no vectors in lancedb/"
    if dimensions != [embedder.dimensions]:
        lengths = " and ".join(f"{length}-dimensional" for length in dimensions)
        return f"lancedb/ holds {lengths} vectors of another model than the {embedder.dimensions}-dimensional one here"
    nearest = [cosine for name in sorted(stored) for cosine in _sample_cosines(name, repaired, stored[name], embedder)]
    if not nearest:
        return "lancedb/ holds no vector of a record that the import left as it was, so its model cannot be identified"
    if min(nearest) < MIN_COSINE:
        return f"lancedb/ holds vectors of another model (cosine {min(nearest):.2f} to those made here)"
    return None


def _sample_cosines(name: str, repaired: RepairedTables, stored: ImportedVectors, embedder: Embedder) -> list[float]:
    """Return cosines of stored and own vectors for unchanged records, spread evenly over the table."""
    table = VECTOR_TABLES[name][0]
    rows = repaired.tables[table]
    places = _places(rows, stored)
    usable = np.flatnonzero((places >= 0) & ~_is_changed(table, rows, repaired.changed))
    sample = usable[np.linspace(0, len(usable) - 1, min(len(usable), _MAX_SAMPLE)).astype(np.int64)]
    own = embedder.embed(embedded_texts(name, rows.take(pa.array(sample, pa.int64()))))
    theirs = _unit(stored.matrix[places[sample]])
    return [float(a @ b) for a, b in zip(own, theirs, strict=True) if a.any() or b.any()]


def _complete(repaired: RepairedTables, stored: Mapping[str, ImportedVectors], embedder: Embedder) -> ChosenVectors:
    """Return the stored vectors, and own ones for records without a vector or with a repaired text."""
    matrices, n_made, n_kept = {}, 0, 0
    for name, (table, _) in VECTOR_TABLES.items():
        rows = repaired.tables[table]
        matrix, has_vector = _stored_matrix(rows, stored.get(name), embedder.dimensions)
        missing = np.flatnonzero(~has_vector | _is_changed(table, rows, repaired.changed))
        if len(missing):
            matrix[missing] = embedder.embed(embedded_texts(name, rows.take(pa.array(missing, pa.int64()))))
        matrices[name] = matrix
        n_made, n_kept = n_made + len(missing), n_kept + len(rows) - len(missing)
    note = f"{n_kept} vectors of lancedb/ were kept, {n_made} that were missing or whose text was repaired were made"
    return ChosenVectors(matrices, embedder.fingerprint, (note,))


def _stored_matrix(rows: pa.Table, stored: ImportedVectors | None, dimensions: int) -> tuple[np.ndarray, np.ndarray]:
    """Return stored vectors in the order of `rows`, of length 1 or zero if missing, and whether each exists."""
    matrix = np.zeros((len(rows), dimensions), dtype=np.float32)
    if stored is None or not stored.ids:
        return matrix, np.zeros(len(rows), dtype=bool)
    places = _places(rows, stored)
    found = places >= 0
    matrix[found] = _unit(stored.matrix[places[found]])
    return matrix, found


def _places(rows: pa.Table, stored: ImportedVectors) -> np.ndarray:
    """Return the row in `stored` of each record, -1 if missing.

    Reports may also have their community's number as id, and entities their title (Microsoft GraphRAG's
    `EntityVectorStoreKey`).
    """
    place_of = {record_id: place for place, record_id in enumerate(stored.ids)}
    keys = [rows["id"].to_pylist()]
    if "community" in rows.column_names:
        keys.append([str(number) for number in rows["community"].to_pylist()])
    elif "title" in rows.column_names:
        keys.append(rows["title"].to_pylist())
    found = [next((place_of[key] for key in names if key in place_of), -1) for names in zip(*keys, strict=True)]
    return np.array(found, dtype=np.int64)


def _is_changed(table: str, rows: pa.Table, changed: Collection[tuple[str, str]]) -> np.ndarray:
    return np.array([(table, record_id) in changed for record_id in rows["id"].to_pylist()], dtype=bool)


def _unit(matrix: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)


@dataclass(frozen=True)
class ImportReport:
    """Result of an import.

    Attributes:
        snapshot: id of the published snapshot.
        rows: number of rows of every contract table.
        notes: repairs, one sentence each.
    """

    snapshot: str
    rows: dict[str, int]
    notes: tuple[str, ...]


def import_graphrag(
    source: Path,
    root: Path,
    embedder: Embedder,
    settings: Settings,
    trial: Callable[[Snapshot], None] | None = None,
) -> ImportReport:
    """Publish a GraphRAG index in a root.

    Args:
        source: its project or output folder; read only.
        root: created if it does not exist; gets a settings.yaml if it has none.
        embedder: makes the vectors that the source lacks.

    Raises:
        PipelineError: the root holds an index of its own documents, the source lacks a table or a column, or the
            repaired index fails a check; the published snapshot of the root does not change.
    """
    with one_writer(root):
        store = SnapshotStore(root, settings.vector_store)
        previous = _previous_import(root, store)
        repaired = repair_tables(
            read_graphrag_tables(source),
            settings.reports.max_input_tokens,
            lambda texts: count_tokens_each(texts, settings.text_units.encoding),
        )
        vectors = choose_vectors(repaired, read_graphrag_vectors(source), embedder)
        notes = (*repaired.notes, *vectors.notes)
        counts = {name: rows.num_rows for name, rows in repaired.tables.items()}
        tables = dict(repaired.tables)
        snapshot_id = freeze_candidate(
            store, tables, vectors.matrices, vectors.fingerprint, previous=previous, origin="import", notes=notes
        )
        if not (root / SETTINGS_FILE).exists():
            files.replace(root / SETTINGS_FILE, render_settings(settings).encode())
        # The user names the source that replaces the index, so no number of removed documents holds it back.
        publish(store, snapshot_id, trial=trial, allow_removal=True)
        return ImportReport(snapshot_id, counts, notes)


def _previous_import(root: Path, store: SnapshotStore) -> Manifest | None:
    """Return the manifest of the last import into this root."""
    heads = root / "heads"
    if heads.is_dir() and any(heads.iterdir()):
        raise PipelineError(
            f"`{root}` holds an index of its own documents, which an import would replace; choose another directory "
            "with `--root`"
        )
    try:
        current = store.current()
        return store.manifest(current) if current else None
    except NoSnapshotError:
        return None  # a damaged snapshot has nothing to reuse
