"""The four aims of text unit selection, measured for every strategy on the sample, in text units of two sizes.

For each question about A Christmas Carol (`retrieval.py`), local search selects a context of the default size, shared
packing. Means over the questions:

- relevance: cosine of the text units to the question, weighted by 1 / log2(1 + position): a weighted mean.
- density: distinct relationships of matched entities that whole text units state, per 1,000 tokens of all text units.
- coverage: share of the matched entities that a text unit or an excerpt informs.
- diversity: 1 - the mean cosine of two text units.

Vectors are the bundled ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np

from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.search.local import LocalSelection, select_with_candidates
from graphrag_pipeline.query.selection.strategies import STRATEGIES
from graphrag_pipeline.settings.settings import LocalSearchSettings
from graphrag_pipeline_tests.bench.measuring import Figure
from graphrag_pipeline_tests.bench.retrieval import DATA, open_stories

LEAST_COVERAGE = 0.95
"""Of the strategies with excerpts."""


@dataclass(frozen=True)
class Aims:
    """The four aims of one selection, or their means."""

    relevance: float
    density: float
    coverage: float
    diversity: float


def measure_aims(index: GraphIndex, question: str, found: LocalSelection) -> Aims:
    """Return the four aims of a selection that has text units."""
    units = found.context.text_units
    vectors = index.embed_passages([unit.text for unit in units])
    weights = 1 / np.log2(1 + np.arange(1, len(units) + 1))
    nearness = vectors @ index.embed_passages([question])[0]
    n_tokens = sum(unit.n_tokens for unit in units)
    heard = {title for unit in units for title in unit.entities}
    return Aims(
        relevance=float(nearness @ weights / weights.sum()),
        density=1000 * len(_stated_relationships(index, found.context, heard | set(found.unheard))) / n_tokens,
        coverage=len(heard) / len(heard | set(found.unheard)),
        diversity=1 - _mean_of_pairs(vectors @ vectors.T),
    )


def _stated_relationships(index: GraphIndex, context: Context, matched: set[str]) -> set[int]:
    adjacency = index.snapshot.adjacency
    entities = index.snapshot.rows_of("entities", sorted(matched), "title")
    units = index.snapshot.rows_of("text_units", [unit.id for unit in context.text_units if not unit.is_excerpt])
    of_entities = adjacency.of_all("entity_relationships", entities)[1]
    return set(of_entities.tolist()) & set(adjacency.of_all("text_unit_relationships", units)[1].tolist())


def _mean_of_pairs(cosines: np.ndarray) -> float:
    upper = cosines[np.triu_indices(len(cosines), 1)]
    return float(upper.mean()) if len(upper) else 0.0


def measure_strategies(index: GraphIndex) -> Iterator[tuple[str, Aims]]:
    """Yield the mean aims of each strategy over the questions."""
    questions = [item["question"] for item in json.loads((DATA / "carol_questions.json").read_text(encoding="utf-8"))]
    for strategy in STRATEGIES:
        settings = LocalSearchSettings(strategy=strategy, packing="shared")
        found = [(question, select_with_candidates(index, question, settings)) for question in questions]
        aims = [astuple(measure_aims(index, question, one)) for question, one in found if one.context.text_units]
        yield strategy, Aims(*np.mean(aims, axis=0).tolist())


def run(folder: Path) -> Iterator[Figure]:
    """Yield a figure for each text unit size, strategy and aim; indexes in the folder are used again."""
    for size, index in open_stories(folder):
        for strategy, aims in measure_strategies(index):
            for aim, value in vars(aims).items():
                least = LEAST_COVERAGE if aim == "coverage" and strategy != "depth_first" else None
                yield Figure(f"{size} tokens, {strategy}: {aim}", value, "", least=least)
