"""Import of a Microsoft GraphRAG index as a published snapshot: read, repair, embed, freeze, check.

The same folder gives the same snapshot, in any order of its rows. Keep out: reading files (`graphrag_files.py`),
repairing rows (`imported_tables.py`), choosing vectors (`graphrag_vectors.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from graphrag_pipeline.errors import NoSnapshotError, PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.interchange.graphrag_files import read_graphrag_tables
from graphrag_pipeline.interchange.graphrag_vectors import choose_vectors, read_graphrag_vectors
from graphrag_pipeline.interchange.imported_tables import repair_tables
from graphrag_pipeline.models.ports import Embedder
from graphrag_pipeline.publishing.candidates import freeze_candidate, publish
from graphrag_pipeline.settings.rendering import render_settings
from graphrag_pipeline.settings.settings import SETTINGS_FILE, Settings
from graphrag_pipeline.storage.locks import one_writer
from graphrag_pipeline.storage.manifests import Manifest
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.text.tokens import count_tokens_each


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
    keep_vectors: bool = False,
    trial: Callable[[Snapshot], None] | None = None,
) -> ImportReport:
    """Publish a GraphRAG index in a root.

    Args:
        source: its project or output folder; read only.
        root: created if it does not exist; gets a settings.yaml if it has none.
        embedder: makes the vectors that the source lacks.
        keep_vectors: keep the source's vectors even if another model than `embedder` made them.
        trial: see `publish`.

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
        vectors = choose_vectors(repaired, read_graphrag_vectors(source), embedder, keep_vectors)
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
    """Return the manifest of the last import into this root.

    Raises:
        PipelineError: the root holds an index of its own documents.
    """
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
