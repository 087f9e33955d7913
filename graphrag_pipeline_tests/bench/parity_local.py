"""Local contexts of ours and of Microsoft GraphRAG for the same entities: the `local` part of `parity.py`.

Both read one index: `graphrag_pipeline_tests/data/microsoft_christmas_carol`, imported, and exported again in
Microsoft's layout (`exported`). So both have the repaired graph, and every difference is one of the search. The peer
also reads Microsoft's own tables (`source`). What differs there only is what the import repairs: endpoints of
relationships without an entity become entities, and relationships that repeat a pair become one, so degrees, ranks and
numbers of relationships change.

100 questions name one entity, two entities, or a report. Each is matched to entities by our index; both programs
surround the same entities, in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphrag_pipeline.interchange.graphrag_import import import_graphrag
from graphrag_pipeline.interchange.index_export import export_snapshot
from graphrag_pipeline.models.static_embeddings import load_static_embeddings
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.search.local import select_around
from graphrag_pipeline.query.understanding.entity_matching import Match, match_entities
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.text import tokens
from graphrag_pipeline_tests.bench.parity import Comparison, Peer, compare
from graphrag_pipeline_tests.support.paths import MICROSOFT_INDEX

N_QUESTIONS = 100
K = 10
LEVEL = 2
WHOLE = 10**7
"""Tokens that hold all candidates, so that the whole order is compared."""
LIMITS = {"whole": WHOLE, "usual": 12_000, "small": 4_000}
PARTS = {
    "reports": "community reports",
    "entities": "entities",
    "relationships": "relationships",
    "claims": "claims",
    "sources": "text units",
}
RECORDING = "local"


def make_questions(index: GraphIndex, n: int = N_QUESTIONS) -> list[str]:
    """Return questions on single entities, pairs and themes, spread evenly over the index."""
    titles = [name.title() for name in index.snapshot.table("entities")["title"].to_pylist()]
    pairs = index.snapshot.table("relationships").select(["source", "target"]).to_pylist()
    themes = index.snapshot.table("community_reports")["title"].to_pylist()
    single = [f"Who or what is {title}?" for title in _spread(titles, 2 * n // 5)]
    double = [
        f"What have {pair['source'].title()} and {pair['target'].title()} to do with each other?"
        for pair in _spread(pairs, 2 * n // 5)
    ]
    broad = [f"What does the story say about {title}?" for title in _spread(themes, n - len(single) - len(double))]
    return [*single, *double, *broad]


def _spread(values: Sequence[Any], n: int) -> list[Any]:
    return [values[place * len(values) // n] for place in range(n)]


def match_ids(index: GraphIndex, questions: Sequence[str]) -> list[list[str]]:
    """Return the ids of the entities of each question, best first."""
    ids = index.snapshot.table("entities")["id"].to_pylist()
    found = (match_entities(index, question, K) for question in questions)
    return [[ids[m.row] for m in sorted(matches, key=lambda match: -match.score)] for matches in found]


def select_ours(index: GraphIndex, ids: Sequence[str], max_tokens: int) -> Context:
    """Return our context around given entities, by the reference strategy."""
    rows = index.snapshot.rows_of("entities", list(ids)).tolist()
    matches = [Match(row, 1 - place / 100, False) for place, row in enumerate(rows)]
    settings = index.settings.local_search.model_copy(
        update={"strategy": "depth_first", "max_context_tokens": max_tokens, "community_level": LEVEL}
    )
    return select_around(index, "a question", matches, settings)


def numbers_of(context: Context) -> dict[str, list[int]]:
    """Return the numbers of the records in each part of a context."""
    tables = {"sources": context.text_units, **{part: getattr(context, part) for part in PARTS if part != "sources"}}
    return {part: [record.human_readable_id for record in tables[part]] for part in PARTS}


def run_ours(index: GraphIndex, matched: Sequence[Sequence[str]]) -> dict[str, list[dict[str, Any]]]:
    """Return what `peer_local.py` returns, of ours."""
    return {name: [numbers_of(select_ours(index, ids, limit)) for ids in matched] for name, limit in LIMITS.items()}


def ask_peer(peer: Peer, tables: dict[str, Path], matched: Sequence[Sequence[str]]) -> Any:
    """Return the peer's contexts by name of the tables and of the limit."""
    runs = {
        f"{tables_name} {limit_name}": {
            "tables": str(folder),
            "level": LEVEL,
            "options": {
                "max_context_tokens": limit,
                "text_unit_prop": 0.5,
                "community_prop": 0.15,
                "top_k_relationships": 10,
                "include_entity_rank": True,
                "include_relationship_weight": True,
            },
        }
        for tables_name, folder in tables.items()
        for limit_name, limit in LIMITS.items()
    }
    return peer.run("peer_local.py", {"ranks": str(tokens._RANKS), "matched": matched, "runs": runs})


def compare_with_peer(peer: Peer, folder: Path) -> list[Comparison]:
    """Compare the parts of the contexts of all questions, at each limit."""
    import_graphrag(MICROSOFT_INDEX, folder / "root", load_static_embeddings(), Settings())
    with GraphIndex.open(folder / "root") as index:
        questions = make_questions(index)
        matched = match_ids(index, questions)
        export_snapshot(index.snapshot, folder / "exported", "graphrag")
        theirs = ask_peer(peer, {"exported": folder / "exported"}, matched)
        ours = run_ours(index, matched)
    return compare_runs(questions, ours, theirs, "exported")


def compare_runs(questions: Sequence[str], ours: Any, theirs: Any, tables: str) -> list[Comparison]:
    """Compare each part at each limit."""
    return [
        compare(
            f"local, {tables}, {limit} context: {PARTS[part]}",
            questions,
            [found[part] for found in ours[limit]],
            [found[part] for found in theirs[f"{tables} {limit}"]],
        )
        for limit in LIMITS
        for part in PARTS
    ]
