"""Embedded extraction of changed documents; unchanged documents keep their mentions.

`extract_graph` reads each document alone. A document with the same title, text and text units as in the previous run,
and the same code, therefore has the same mentions.

Keep out: the storage of earlier tables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.engines.embedded.extraction import extract_graph
from graphrag_pipeline.settings.settings import ExtractionSettings
from graphrag_pipeline.tables import STAGE_TABLES


def extract_changed_documents(
    documents: pa.Table,
    text_units: pa.Table,
    settings: ExtractionSettings,
    earlier: Mapping[str, pa.Table] | None,
) -> dict[str, pa.Table]:
    """Return the result of `extract_graph`, computed only for changed documents.

    Args:
        earlier: by table, `documents` and `text_units` of the previous run and their mentions by the same code and
            settings; None without a previous run.
    """
    if earlier is None:
        return extract_graph(documents, text_units, settings)
    before = _read_contents(earlier["documents"], earlier["text_units"])
    now = _read_contents(documents, text_units)
    changed = pa.array([document for document, content in now.items() if before.get(document) != content], pa.string())
    is_changed = pc.is_in(text_units["document_id"], value_set=changed)
    kept_units = text_units.filter(pc.invert(is_changed))["id"].combine_chunks()
    made = extract_graph(
        documents.filter(pc.is_in(documents["id"], value_set=changed)), text_units.filter(is_changed), settings
    )
    return {name: _join(name, earlier[name], kept_units, rows) for name, rows in made.items()}


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
    return STAGE_TABLES[name].sort(pa.concat_tables([kept, made]))
