"""The extractor of the embedded engine: changed documents are read, unchanged ones keep their mentions.

`extract_graph` reads each document alone. A document with the same title, text and text units as in the previous run,
and the same code, therefore has the same mentions. Keep out: the storage of earlier tables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.engines.embedded.extraction import extract_graph
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.indexing.ports import Extracted
from graphrag_pipeline.models.pool import Progress
from graphrag_pipeline.pipeline.stage_code import installed_version
from graphrag_pipeline.settings.settings import ExtractionSettings
from graphrag_pipeline.tables import STAGE_TABLES

if TYPE_CHECKING:
    from graphrag_pipeline.pipeline.root import Root

RULES = 34
"""Version of the rules; raise it when a change of code changes which mentions are found."""


class EmbeddedExtractor:
    """Finds entities by spaCy, identifiers and terms, and relationships by sentences; an `indexing.ports.Extractor`."""

    def __init__(self, root: Root) -> None:
        self._settings = root.settings.extraction

    def code(self) -> dict[str, Any]:
        """Return the versions of the rules, of spaCy and of the chosen pipeline."""
        code: dict[str, Any] = {"rules": RULES, "package spacy": installed_version("spacy")}
        name = self._settings.spacy_model
        return {**code, "spaCy pipeline": _version_of_pipeline(name)} if name else code

    def extract(
        self,
        documents: pa.Table,
        text_units: pa.Table,
        earlier: Mapping[str, pa.Table] | None = None,
        progress: Progress | None = None,
    ) -> Extracted:
        """Return the mentions of all text units; only changed documents are read."""
        return Extracted(extract_changed_documents(documents, text_units, self._settings, earlier))


def extract_changed_documents(
    documents: pa.Table,
    text_units: pa.Table,
    settings: ExtractionSettings,
    earlier: Mapping[str, pa.Table] | None,
) -> dict[str, pa.Table]:
    """Return the result of `extract_graph`, computed only for documents that differ from `earlier`."""
    if earlier is None:
        return extract_graph(documents, text_units, settings)
    before = _read_contents(earlier["documents"], earlier["text_units"])
    now = _read_contents(documents, text_units)
    changed = pa.array([document for document, content in now.items() if before.get(document) != content], pa.string())
    is_changed = pc.is_in(text_units["document_id"], value_set=changed)
    kept_units = text_units.filter(pc.invert(is_changed))["id"].combine_chunks()
    of_changed = documents.filter(pc.is_in(documents["id"], value_set=changed))
    made = extract_graph(of_changed, text_units.filter(is_changed), settings)
    return {name: _join(name, earlier[name], kept_units, rows) for name, rows in made.items()}


def _version_of_pipeline(name: str) -> str:
    """Return what changes with a spaCy pipeline: its version or, of a folder, its metadata and sizes of files."""
    folder = Path(name)
    if not folder.is_dir():
        return installed_version(name)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    described = [path.read_text(encoding="utf-8") for path in files if path.name in ("meta.json", "config.cfg")]
    return stable_hash(*described, *(f"{path.relative_to(folder)} {path.stat().st_size}" for path in files))


_Content: TypeAlias = "tuple[str, str, list[tuple[str, int, int]]]"
"""Title, text, and id, start and end of each text unit."""


def _read_contents(documents: pa.Table, text_units: pa.Table) -> dict[str, _Content]:
    """Return title, text and text units of each document, by id."""
    units: defaultdict[str, list[tuple[str, int, int]]] = defaultdict(list)
    columns = (text_units[name].to_pylist() for name in ("document_id", "id", "start", "end"))
    for document_id, *unit in zip(*columns, strict=True):
        units[document_id].append(tuple(unit))
    rows = zip(*(documents[name].to_pylist() for name in ("id", "title", "text")), strict=True)
    return {document_id: (title, text, sorted(units[document_id])) for document_id, title, text in rows}


def _join(name: str, earlier: pa.Table, kept_units: pa.Array, made: pa.Table) -> pa.Table:
    kept = earlier.filter(pc.is_in(earlier["text_unit_id"], value_set=kept_units))
    return STAGE_TABLES[name].sort(kept, made)
