"""Export of the graph as one GraphML file, for networkx, Gephi, Cytoscape and yEd.

Nodes are entities, edges are relationships, with their ids. Every column is an attribute; lists are JSON text, and null
has no attribute. Entities also have `community_0`, `community_1`, ...: the number of their community at each level.
Text that XML cannot hold (control characters, lone surrogates) becomes U+FFFD, in ids, too. Rows are written in
batches, because networkx would need the whole graph in memory. `networkx.read_graphml` reads the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.storage.snapshots import Snapshot

GRAPHML_FILE = "graph.graphml"
_BATCH_ROWS = 4_096
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_OPENING = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
"""


def write_graphml(snapshot: Snapshot, folder: Path) -> dict[str, int]:
    """Write `graph.graphml` into a folder; returns its number of nodes and edges."""
    entities = _with_communities(snapshot.table("entities"), snapshot.table("communities"))
    relationships = snapshot.table("relationships")
    with open(folder / GRAPHML_FILE, "w", encoding="utf-8", newline="\n") as file:
        file.write(_OPENING)
        file.writelines(_keys("node", entities.schema))
        file.writelines(_keys("edge", relationships.schema))
        file.write('<graph edgedefault="undirected">\n')
        for row in _rows(entities):
            file.write(f"<node id={xml_id(row['id'])}>{_data('node', row)}</node>\n")
        for row in _rows(relationships):
            ends = f"source={xml_id(row['source_id'])} target={xml_id(row['target_id'])}"
            file.write(f"<edge id={xml_id(row['id'])} {ends}>{_data('edge', row)}</edge>\n")
        file.write("</graph>\n</graphml>\n")
    return {f"{GRAPHML_FILE} nodes": entities.num_rows, f"{GRAPHML_FILE} edges": relationships.num_rows}


def _with_communities(entities: pa.Table, communities: pa.Table) -> pa.Table:
    """Return `entities` with one column per level: the community number, null below the entity's finest community."""
    members = communities["entity_ids"].combine_chunks()
    rows = pc.index_in(members.flatten(), value_set=entities["id"].combine_chunks()).to_numpy(zero_copy_only=False)
    owners = members.value_parent_indices().to_numpy()
    levels, numbers = (communities[column].to_numpy()[owners] for column in ("level", "community"))
    for level in np.unique(levels):
        here = levels == level
        column = np.full(entities.num_rows, -1, dtype=np.int64)
        column[rows[here]] = numbers[here]
        entities = entities.append_column(f"community_{level}", pa.array(column, mask=column < 0))
    return entities


def _keys(element: str, schema: pa.Schema) -> Iterator[str]:
    """Declarations of the attributes of nodes or edges."""
    for field in schema:
        if field.name != "id":
            kind = _attribute_type(field.type)
            yield f'<key id="{element}_{field.name}" for="{element}" attr.name="{field.name}" attr.type="{kind}"/>\n'


def _attribute_type(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "long"
    return "double" if pa.types.is_floating(kind) else "boolean" if pa.types.is_boolean(kind) else "string"


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
        yield from batch.to_pylist()


def _data(element: str, row: dict[str, Any]) -> str:
    return "".join(
        f'<data key="{element}_{name}">{xml_text(value)}</data>'
        for name, value in row.items()
        if name != "id" and value is not None
    )


def xml_id(record_id: str) -> str:
    """Return an id as a quoted attribute; one with characters that XML cannot hold ends with a hash, to be unique."""
    clean = _ILLEGAL.sub("\ufffd", record_id)
    return quoteattr(clean if clean == record_id else f"{clean}-{stable_hash(record_id)[:8]}")


def xml_text(value: Any) -> str:
    """Return a value as text of an element: lists as JSON, characters that XML cannot hold as U+FFFD."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # XML readers turn a plain carriage return into a line feed.
    return escape(_ILLEGAL.sub("\ufffd", text), {"\r": "&#13;"})
