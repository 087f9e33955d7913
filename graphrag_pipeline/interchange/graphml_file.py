"""The graph of a snapshot for networkx, and as one GraphML file for networkx, Gephi, Cytoscape and yEd.

Nodes are entities, edges are relationships, by their ids. Every column is an attribute; null has none. Entities also
have `community_0`, `community_1`, ...: the number of their community at each level. In GraphML, lists are JSON text.
What XML cannot hold (control characters, lone surrogates) becomes U+FFFD there, in ids, too.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.storage.snapshots import Snapshot

if TYPE_CHECKING:
    import networkx as nx

GRAPHML_FILE = "graph.graphml"
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read_graph(snapshot: Snapshot) -> nx.Graph:
    """Return the entities and relationships of a snapshot, all in memory."""
    import networkx as nx

    graph = nx.Graph()
    entities = _with_communities(snapshot.table("entities"), snapshot.table("communities"))
    graph.add_nodes_from((row["id"], _attributes(row)) for row in entities.to_pylist())
    relationships = snapshot.table("relationships").to_pylist()
    graph.add_edges_from((row["source_id"], row["target_id"], _attributes(row)) for row in relationships)
    return graph


def write_graphml(snapshot: Snapshot, folder: Path) -> dict[str, int]:
    """Write `graph.graphml` into a folder; returns its number of nodes and edges."""
    import networkx as nx

    graph = nx.relabel_nodes(read_graph(snapshot), xml_id, copy=False)
    for _, attributes in [*graph.nodes(data=True), *((None, data) for *_, data in graph.edges(data=True))]:
        attributes.update((name, xml_text(value)) for name, value in attributes.items() if not _is_number(value))
    nx.write_graphml_xml(graph, folder / GRAPHML_FILE, edge_id_from_attribute="id")  # with lxml, another file
    return {f"{GRAPHML_FILE} nodes": graph.number_of_nodes(), f"{GRAPHML_FILE} edges": graph.number_of_edges()}


def _attributes(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


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


def xml_id(record_id: str) -> str:
    """Return an id for XML; one with characters that XML cannot hold ends with a hash, to be unique."""
    clean = _ILLEGAL.sub("\ufffd", record_id)
    return clean if clean == record_id else f"{clean}-{stable_hash(record_id)[:8]}"


def xml_text(value: Any) -> str:
    """Return a value as text for XML: lists as JSON, line ends as XML readers return them."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _ILLEGAL.sub("\ufffd", text).replace("\r\n", "\n").replace("\r", "\n")
