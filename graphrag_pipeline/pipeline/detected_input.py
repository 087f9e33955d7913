"""The present state of the input folder: its corpus manifest by bucket, and the version of each bucket.

Only files are read. Keep out: what is stale because of it (`staleness.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from graphrag_pipeline.filesystem import files
from graphrag_pipeline.identity import bucket_keys, bucket_of
from graphrag_pipeline.inputs.detected_files import DETECTED_FILE, DetectedFiles
from graphrag_pipeline.inputs.documents import build_corpus_manifest
from graphrag_pipeline.inputs.files import InputFile
from graphrag_pipeline.inputs.source_records import SourceRecord, without_text
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.storage.table_store import parquet_bytes
from graphrag_pipeline.tables import CORPUS_MANIFEST

INPUT = "input folder"
"""Name of the input folder among a head's inputs."""


def detect_input(root: Root, listed: Sequence[InputFile] | None = None) -> dict[str, pa.Table]:
    """Return the corpus manifest of the present input folder, by bucket; only files that changed are read.

    Args:
        listed: its files, if they were listed before (`Root.list_input`).
    """
    n_buckets = root.settings.storage.n_buckets
    detected = DetectedFiles(root.path / "cache" / DETECTED_FILE, root.settings.input)
    rows: dict[str, list[SourceRecord]] = {key: [] for key in bucket_keys(n_buckets)}
    for record in root.read_input(listed=listed, detected=detected):
        rows[bucket_of(record.document_id, n_buckets)].append(without_text(record))
    detected.save()
    return {key: build_corpus_manifest(records) for key, records in rows.items()}


def list_problems(manifests: Mapping[str, pa.Table]) -> list[tuple[str, str]]:
    """Return (path, problem) of every document that cannot be read, by path."""
    rows = [row for manifest in manifests.values() for row in manifest.select(["path", "problem"]).to_pylist()]
    return sorted((row["path"], row["problem"]) for row in rows if row["problem"])


def list_notes(manifests: Mapping[str, pa.Table]) -> list[tuple[str, str]]:
    """Return (path, note) of every document that was read with a warning, by path."""
    rows = [row for manifest in manifests.values() for row in manifest.select(["path", "note"]).to_pylist()]
    return sorted((row["path"], row["note"]) for row in rows if row["note"])


def input_version(manifest: pa.Table) -> str:
    """Return the version of one bucket of the input folder: equal documents, equal version."""
    return files.content_hash(memoryview(parquet_bytes(CORPUS_MANIFEST.sort(manifest))))


def input_versions(manifests: Mapping[str, pa.Table]) -> dict[str, str]:
    """Return the version of each bucket of the input folder."""
    return {bucket: input_version(manifest) for bucket, manifest in manifests.items()}
