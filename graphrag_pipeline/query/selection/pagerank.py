"""Personalised PageRank over entities and text units, near a question (after HippoRAG 2, arXiv 2502.14802).

The walk starts at the entities that the question names and, with the weight `UNIT_SEED`, at the text units that basic
search finds; at each step it goes on with probability `DAMPING` over a mention edge (`storage/mentions.py`), else back
to a start. A relationship is walked by way of the text units that state it. An edge weighs

    idf(entity) x (ABOUT if the text unit's document is about the entity) x (1 + NEAR x similarity^2)

where similarity is that of the question to the nearest sentence that makes the mention. Where the walk leaves one of
the first text units, it is at least that of the words beside the name (`relations.py`): they tell the director of a
film from its actors. It holds in this direction only, or the director's other films would outweigh his own article.

The walk is local: it sees `MAX_UNITS` text units, those that the first steps of an unweighted walk reach with most
mass, so its cost does not grow with the graph; where there are no more, it is the full walk. Mass that an entity would
send to text units outside is lost.

Names decide as much as they say: a name that one text unit in a thousand has leads somewhere, one that is on every
page does not. So ranks are a mean of the walk's and basic search's scores, weighted by how rare the names are.
Keep out: tokens, strategies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.names import NamedQuestion
from graphrag_pipeline.query.selection.pagerank_subgraph import (
    ABOUT_WEIGHT,
    UNIT_SEED_WEIGHT,
    Seeds,
    find_neighbourhood,
    idf_of,
)
from graphrag_pipeline.query.selection.relations import score_relations
from graphrag_pipeline.query.selection.windows import embed_question, score_sentences
from graphrag_pipeline.storage.arrays import Sentences, expand_rows
from graphrag_pipeline.storage.mentions import Mentions

DAMPING = 0.7
SIMILARITY_WEIGHT = 16.0
"""DAMPING and NEAR are those of methods.md section 7."""
N_STEPS = 16
"""0.7^16 is 0.003: what is left to walk moves no rank that matters."""
N_FIRST = 4
"""Text units whose mentions are read word by word: those about each named entity, and the best of basic search."""
MAX_UNITS = 160
"""Text units in the neighbourhood: what two hops from four names need; twice or half as many give the same ranks."""


def rank_by_pagerank(
    index: IndexReader, named: NamedQuestion, found: Sequence[tuple[int, float]], max_units: int | None = MAX_UNITS
) -> tuple[np.ndarray, np.ndarray]:
    """Text units by the walk from a question, best first.

    Args:
        found: rows and scores of the text units that basic search finds, best first.
        max_units: how many text units the walk sees; None is all, the full walk.

    Returns:
        Rows, and scores from 0 to 1; the order of `found` where the question names nothing that is known.
    """
    mentions = index.snapshot.mentions
    seeds = _make_seeds(mentions, named, found)
    if not len(seeds.entities):
        return seeds.text_units, seeds.unit_weights / max(seeds.unit_weights.max(initial=0.0), 1e-12)
    units = np.arange(len(mentions.unit_indptr) - 1)
    if max_units is not None and max_units < len(units):
        units = find_neighbourhood(mentions, seeds, max_units)
    scores = _pagerank(index, mentions, seeds, units, named.words)
    of_basic = np.zeros(len(units))
    of_basic[np.searchsorted(units, seeds.text_units)] = seeds.unit_weights
    combined = seeds.pagerank_share * _to_one(scores) + (1 - seeds.pagerank_share) * _to_one(of_basic)
    combined = np.round(combined, 9)
    order = np.lexsort((units, -combined))
    return units[order], combined[order]


def _to_one(scores: np.ndarray) -> np.ndarray:
    largest = float(scores.max(initial=0.0))
    return scores / largest if largest > 0 else scores


def _make_seeds(mentions: Mentions, named: NamedQuestion, found: Sequence[tuple[int, float]]) -> Seeds:
    """Every name weighs the same, whatever it says, so that a comparison hears both sides."""
    n_units = len(mentions.unit_indptr) - 1
    weights: dict[int, float] = {}
    rarity = []
    for rows in named.names:
        idf = idf_of(mentions, np.array(rows))
        rarity.append(float(idf.mean()) / np.log1p(max(n_units, 1)))
        shares = idf / idf.sum() if idf.any() else np.full(len(rows), 1 / len(rows))  # no text units, no rarity
        for row, share in zip(rows, shares, strict=True):
            weights[row] = weights.get(row, 0.0) + float(share) / len(named.names)
    entities = np.array(sorted(weights), dtype=np.int64)
    scores = np.array([score for _, score in found])
    unit_weights = np.exp(scores - scores.max(initial=-np.inf)) if len(scores) else scores
    return Seeds(
        entities=entities,
        entity_weights=np.array([weights[row] for row in entities.tolist()]),
        text_units=np.array([row for row, _ in found], dtype=np.int64),
        unit_weights=unit_weights / unit_weights.sum() if len(scores) else unit_weights,
        pagerank_share=min(float(np.mean(rarity)), 1.0) if rarity else 0.0,
    )


# ---------------------------------------------------------------------------------------------------------------- walk


def _pagerank(
    index: IndexReader, mentions: Mentions, seeds: Seeds, units: np.ndarray, words: Sequence[str]
) -> np.ndarray:
    """Probability of the walk to be at each text unit of its neighbourhood, float (len(units),)."""
    positions, edges = expand_rows(mentions.unit_indptr, units)
    entities, ends = np.unique(np.r_[mentions.entities[edges], seeds.entities], return_inverse=True)
    ends = ends[: len(edges)]
    near = _sentence_similarity(index, mentions, units, positions, edges, words)
    about = np.where(mentions.is_about[edges], ABOUT_WEIGHT, 1.0)
    into_unit = about * (1 + SIMILARITY_WEIGHT * near**2)
    beside = _relation_similarity(index, mentions, seeds, units, edges, words)
    into_entity = idf_of(mentions, entities)[ends] * about * (1 + SIMILARITY_WEIGHT * np.maximum(near, beside) ** 2)

    degrees = mentions.entity_indptr[entities + 1] - mentions.entity_indptr[entities]
    outside = degrees - np.bincount(ends, minlength=len(entities))
    of_entity = np.bincount(ends, into_unit, minlength=len(entities)) + outside
    of_unit = np.bincount(positions, into_entity, minlength=len(units))
    to_unit = into_unit / of_entity[ends]
    to_entity = into_entity / of_unit[positions]

    start_entities, start_units = np.zeros(len(entities)), np.zeros(len(units))
    start_entities[np.searchsorted(entities, seeds.entities)] = seeds.entity_weights / (1 + UNIT_SEED_WEIGHT)
    start_units[np.searchsorted(units, seeds.text_units)] = (
        UNIT_SEED_WEIGHT * seeds.unit_weights / (1 + UNIT_SEED_WEIGHT)
    )
    return run_pagerank(positions, ends, to_unit, to_entity, start_units, start_entities)


def run_pagerank(
    units: np.ndarray,
    entities: np.ndarray,
    to_unit: np.ndarray,
    to_entity: np.ndarray,
    start_units: np.ndarray,
    start_entities: np.ndarray,
) -> np.ndarray:
    """Probability of a walk with restart to be at each text unit, by `N_STEPS` power iterations.

    Args:
        units, entities: the two ends of each edge, int (n edges,).
        to_unit, to_entity: probability to take the edge from its entity, and from its text unit.
        start_units, start_entities: probability to start at each node; together 1.
    """
    at_units, at_entities = start_units, start_entities
    for _ in range(N_STEPS):
        arriving = np.bincount(units, at_entities[entities] * to_unit, minlength=len(start_units))
        leaving = np.bincount(entities, at_units[units] * to_entity, minlength=len(start_entities))
        at_units = (1 - DAMPING) * start_units + DAMPING * arriving
        at_entities = (1 - DAMPING) * start_entities + DAMPING * leaving
    return at_units


def _sentence_similarity(
    index: IndexReader,
    mentions: Mentions,
    units: np.ndarray,
    positions: np.ndarray,
    edges: np.ndarray,
    words: Sequence[str],
) -> np.ndarray:
    """Cosine of what the question asks to the nearest sentence that makes each mention, 0 to 1; 0 where none does."""
    sentences = index.snapshot.sentences
    vector = embed_question(index.snapshot, " ".join(words))
    of_edge, places = expand_rows(mentions.places_indptr, edges)
    rows = _sentences_at(sentences, units, positions[of_edge], mentions.starts[places])
    distinct, group = np.unique(rows, return_inverse=True)
    cosines = score_sentences(sentences, vector, distinct)
    nearest = np.zeros(len(edges))
    np.maximum.at(nearest, of_edge, np.clip(cosines[group], 0.0, 1.0))
    return nearest


def _sentences_at(sentences: Sentences, units: np.ndarray, which: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Row of the sentence in which each character of some text units stands.

    Args:
        which: position in `units` of each character, ascending.
        offsets: of each character inside its text unit.
    """
    unit_of, rows = expand_rows(sentences.indptr, units)
    step = np.int64(1) << 32
    places = np.searchsorted(unit_of * step + sentences.starts[rows], which * step + offsets, side="right") - 1
    return rows[places]


def _relation_similarity(
    index: IndexReader, mentions: Mentions, seeds: Seeds, units: np.ndarray, edges: np.ndarray, words: Sequence[str]
) -> np.ndarray:
    """Of edges of the first text units to entities that are not asked about: how near the words beside the name are."""
    owners_of, places_of = expand_rows(mentions.about_indptr, seeds.entities)
    is_near_start = np.arange(len(owners_of)) - np.searchsorted(owners_of, owners_of) < N_FIRST
    about = mentions.text_units[mentions.about_edges[places_of[is_near_start]]]
    first = np.intersect1d(np.r_[about, seeds.text_units[:N_FIRST]], units)
    is_named = np.isin(mentions.entities[edges], seeds.entities)
    is_read = np.isin(mentions.text_units[edges], first) & ~mentions.is_about[edges] & ~is_named
    read = np.flatnonzero(is_read)
    texts = {
        int(row): record["text"]
        for row, record in zip(first, index.snapshot.take("text_units", first, ["text"]), strict=True)
    }
    of_edge, places = expand_rows(mentions.places_indptr, edges[read])
    owners = mentions.text_units[edges[read]][of_edge].tolist()
    spans = zip(owners, mentions.starts[places].tolist(), mentions.ends[places].tolist(), strict=True)
    scores = score_relations(words, [(texts[owner], start, end) for owner, start, end in spans])
    beside = np.zeros(len(edges))
    np.maximum.at(beside, read[of_edge], scores)
    return beside
