"""Personalised PageRank over entities and text units near a question (after HippoRAG 2, Gutierrez et al. 2025).

The paper is arXiv 2502.14802. Nodes are entities and text units; edges are mentions (`storage/mentions.py`). With P the
row-normalised edge weights, d = DAMPING and s the seeds:

    p[0] = s;  p[k+1] = (1 - d) s + d P^T p[k],  N_STEPS times

The seeds are the entities that the question names, and the text units that basic search finds. The latter weigh
UNIT_SEED_WEIGHT together, before all seeds are divided by their sum. The weight of the edge between an entity e and a
text unit u is

    w(u -> e) = idf(e) * a * (1 + SIMILARITY_WEIGHT * max(c, r)^2)
    w(e -> u) = a * (1 + SIMILARITY_WEIGHT * c^2)

- a is ABOUT_WEIGHT if the title of u's document names e, else 1.
- c is the cosine of the question to the nearest sentence of u that mentions e.
- r is the similarity of the words beside the name, for edges out of the first text units only; else 0.
  It separates the director of a film from its actors. In the other direction it would rank the director's other films
  above the article about the director.

Only a neighbourhood of MAX_UNITS text units is computed, so the cost does not grow with the
graph. The idea is that of local push (Andersen, Chung and Lang 2006). The probability that an entity would send to text
units outside is lost.

Similarity of a question to the words beside an entity's name.

The vector of a whole sentence is the same for all people in it: of "a film directed by A, written by B and starring C
and D", all four are equally near to "director". So this module compares the content words on each side of the name with
those of the question, one by one, by static vectors (cosine of director and directed 0.43, of husband and wife 0.82):

    score = max over the words v beside the name of max over the question's words w of cos(v, w) * DECAY^g

g is the number of content words between v and the name, plus 1 for a word after the name. No list of relations is
needed.

Neighbourhood of the mention graph for local PageRank, of a size that does not depend on the graph.

Three steps push the probability mass of the seeds outwards: names -> text units -> entities -> text units. Edges weigh
idf and ABOUT_WEIGHT only, without similarity to the question. The text units with most mass form the neighbourhood.
Local push (Andersen, Chung and Lang 2006, "Local graph partitioning using PageRank vectors") bounds the work likewise.

Keep out: the order that local search makes of it (`graph_ranking.py`), tokens, strategies.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graphrag_pipeline.models.ports import load_static_embedder
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.names import NamedQuestion
from graphrag_pipeline.query.question import is_searched
from graphrag_pipeline.query.selection.hybrid_ranking import embed_question, score_sentences, to_one
from graphrag_pipeline.storage.arrays import Sentences, expand_rows, group_rows
from graphrag_pipeline.storage.mentions import Mentions
from graphrag_pipeline.text.late_patterns import late_re

ABOUT_WEIGHT = 3.0
"""Factor of a mention edge if the title of the text unit's document names the entity."""
UNIT_SEED_WEIGHT = 0.05
"""Weight of all text unit seeds together; the entity seeds weigh 1 (passage node weight of HippoRAG 2)."""
MAX_DEGREE = 256
"""An entity in more text units than this is a hub: only its edges to text units about it or already found count."""


@dataclass(frozen=True)
class Seeds:
    """Seeds of personalised PageRank.

    Attributes:
        entities, entity_weights: rows, and weights that add up to 1.
        text_units, unit_weights: rows, best first, and weights that add up to 1.
        pagerank_share: 0 to 1, the share of PageRank in the final score; higher for rarer names.
    """

    entities: np.ndarray
    entity_weights: np.ndarray
    text_units: np.ndarray
    unit_weights: np.ndarray
    pagerank_share: float


def find_neighbourhood(mentions: Mentions, seeds: Seeds, max_units: int) -> np.ndarray:
    """Return the rows of the text units with most mass, at most `max_units` or all seeds, ascending.

    Mass goes from the named entities to their text units. From the best of these and the seeds it goes to the entities
    that they mention, and from the best of those to their text units. The seeds are always among the result.
    """
    # `units` and `entities` are ascending rows; `mass` of the same length is the probability at each.
    units, mass = _spread_to_units(mentions, seeds.entities, seeds.entity_weights, seeds.text_units)
    n_units = len(mentions.unit_indptr) - 1
    of_seeds = UNIT_SEED_WEIGHT * seeds.unit_weights
    units, mass = _sum_by(np.concatenate((units, seeds.text_units)), np.concatenate((mass, of_seeds)), n_units)
    best = _largest(mass, max_units // 4)
    entities, entity_mass = _spread_to_entities(mentions, units[best], mass[best])
    near = _largest(entity_mass, 2 * max_units)
    more, more_mass = _spread_to_units(mentions, entities[near], entity_mass[near], units)
    mass[np.searchsorted(units, seeds.text_units)] += 2.0  # more than the total mass, so that seeds are never cut
    units, mass = _sum_by(np.concatenate((units, more)), np.concatenate((mass, more_mass)), n_units)
    return np.sort(units[_largest(mass, max(max_units, len(seeds.text_units)))])


def _spread_to_units(
    mentions: Mentions, entities: np.ndarray, mass: np.ndarray, known: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the text units of entities and their mass; of a hub, only those about it and those in `known`."""
    degrees = mentions.entity_indptr[entities + 1] - mentions.entity_indptr[entities]
    is_hub = degrees > MAX_DEGREE
    positions, places = expand_rows(mentions.entity_indptr, entities[~is_hub])
    owners, edges = np.flatnonzero(~is_hub)[positions], mentions.entity_edges[places].astype(np.int64)
    hub_owners, hub_edges = _edges_of_hubs(mentions, entities, np.flatnonzero(is_hub), known)
    owners, edges = np.concatenate((owners, hub_owners)), np.concatenate((edges, hub_edges))
    weights = np.where(mentions.is_about[edges], ABOUT_WEIGHT, 1.0) / np.maximum(degrees[owners], 1)
    return _sum_by(mentions.text_units[edges], mass[owners] * weights, len(mentions.unit_indptr) - 1)


def _edges_of_hubs(
    mentions: Mentions, entities: np.ndarray, hubs: np.ndarray, known: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return (position in `entities`, edge) of the hubs' edges to text units about them and to known ones."""
    if not len(hubs):
        return hubs, hubs
    positions, places = expand_rows(mentions.about_indptr, entities[hubs])
    _, of_known = expand_rows(mentions.unit_indptr, known)
    ends = mentions.entities[of_known]
    order = np.argsort(entities[hubs])
    found = np.minimum(np.searchsorted(entities[hubs][order], ends), len(hubs) - 1)
    is_kept = (entities[hubs][order][found] == ends) & ~mentions.is_about[of_known]
    owners = np.concatenate((hubs[positions], hubs[order][found[is_kept]]))
    return owners, np.concatenate((mentions.about_edges[places].astype(np.int64), of_known[is_kept]))


def _spread_to_entities(mentions: Mentions, units: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    positions, edges = expand_rows(mentions.unit_indptr, units)
    ends = mentions.entities[edges]
    weights = idf_of(mentions, ends) * np.where(mentions.is_about[edges], ABOUT_WEIGHT, 1.0)
    totals = np.bincount(positions, weights, minlength=len(units))
    return _sum_by(ends, mass[positions] * weights / totals[positions], len(mentions.entity_indptr) - 1)


def _sum_by(rows: np.ndarray, mass: np.ndarray, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    found, group = group_rows(rows, n_rows)
    return found, np.bincount(group, mass, minlength=len(found))


def _largest(mass: np.ndarray, n: int) -> np.ndarray:
    """Return the positions of the n rows with most mass, most first, ties to the lower row; rows are ascending."""
    worth = -np.round(mass, 12)
    if len(worth) <= n or n < 1:
        return np.argsort(worth, kind="stable")[:n]
    among = np.flatnonzero(worth <= np.partition(worth, n - 1)[n - 1])  # sort only the n largest and their ties
    return among[np.argsort(worth[among], kind="stable")[:n]]


def idf_of(mentions: Mentions, entities: np.ndarray) -> np.ndarray:
    """Return idf = ln(1 + N / n) > 0: N text units, of which n mention the entity."""
    n_units = len(mentions.unit_indptr) - 1
    degrees = mentions.entity_indptr[entities + 1] - mentions.entity_indptr[entities]
    return np.log1p(n_units / np.maximum(degrees, 1))


N_WORDS = 4
"""Content words that are read on each side of a name: a verb, an object and an apposition."""
DECAY = 0.8
"""Factor for each word in between, and for words after the name: in "directed by A and starring B, C", the verb before
a name belongs to it."""
MAX_CHARS = 160
"""Characters that are read on each side; four content words rarely take more."""
_WORD = late_re(r"[^\W\d_]+(?:['\u2019\-][^\W\d_]+)*")
"""A word; read backwards, a text has the same words."""
_SENTENCE_END = late_re(r"[.!?。！？]\s|\n")
_SENTENCE_START = late_re(r"\s[.!?。！？]|\n")
"""The end of the sentence before, read backwards."""

_DECAYS = [DECAY**distance for distance in range(N_WORDS + 1)]

Place = tuple[str, int, int]
"""A text, and the character offsets at which a name starts and ends in it."""


def score_relations(words: Sequence[str], places: Sequence[Place]) -> np.ndarray:
    """Return the similarity of a question to the words beside each name, 0 to 1, float64 (len(places),).

    Args:
        words: of the question, without the names (`names.NamedQuestion.words`).
    """
    scores = [0.0] * len(places)
    if not words or not places:
        return np.array(scores)
    backwards = {text: text[::-1] for text, _, _ in places}
    sides = [
        (i, far, side)
        for i, (text, start, end) in enumerate(places)
        for far, side in enumerate(_read_sides(text, backwards[text], start, end))
        if side
    ]
    vocabulary = sorted({word for _, _, side in sides for word in side})
    if not vocabulary:
        return np.array(scores)
    vectors = np.array([_embed_word(word) for word in (*words, *vocabulary)])
    nearest = np.clip((vectors[: len(words)] @ vectors[len(words) :].T).max(axis=0), 0.0, 1.0)
    near = dict(zip(vocabulary, nearest.tolist(), strict=True))
    for i, far, side in sides:
        scores[i] = max(scores[i], *[near[word] * _DECAYS[far + gap] for gap, word in enumerate(side)])
    return np.array(scores)


def _read_sides(text: str, backwards: str, start: int, end: int) -> tuple[list[str], list[str]]:
    """Return the content words before a name and after it in its sentence, nearest first, without other names.

    The words before it are read from right to left, so that no more are read than are wanted.

    Args:
        backwards: the text from its last letter to its first.
    """
    before, after = len(text) - start, min(end + MAX_CHARS, len(text))
    first = min(before + MAX_CHARS, len(text))
    if sentence_start := _SENTENCE_START.search(backwards, before, first):
        first = sentence_start.start()
    if sentence_end := _SENTENCE_END.search(text, end, after):
        after = sentence_end.start()
    return _first_words(backwards, before, first, -1), _first_words(text, end, after, 1)


def _first_words(text: str, start: int, end: int, direction: int) -> list[str]:
    """Return the first content words of a part of a text; its words read backwards where `direction` is -1."""
    words = (match.group()[::direction] for match in _WORD.finditer(text, start, end))
    return list(itertools.islice(filter(_is_content_word, words), N_WORDS))


@functools.lru_cache(maxsize=4_096)
def _embed_word(word: str) -> np.ndarray:
    vector: np.ndarray = load_static_embedder().embed([word])[0]
    return vector


@functools.lru_cache(maxsize=65_536)
def _is_content_word(word: str) -> bool:
    return word[0].islower() and is_searched(word)


DAMPING = 0.7
"""Probability to follow an edge; otherwise the step goes back to a seed."""
SIMILARITY_WEIGHT = 16.0
"""How much similarity to the question strengthens an edge: by up to 17 times, for a cosine of 1."""
N_STEPS = 16
"""Power iterations: 0.7^16 = 0.003, so further ones would change no rank that matters."""
SEED_POWER = 4
"""Power of a text unit's score in its weight as a seed: the best ones count most."""
N_FIRST = 4
"""Number of text units about each named entity, and of basic search, whose mentions are read word by word."""
MAX_UNITS = 160
"""Text units in the neighbourhood: enough for two hops from four names; half or twice as many give the same ranks."""


def score_by_pagerank(
    index: IndexReader, named: NamedQuestion, seeds: Seeds, max_units: int | None = MAX_UNITS
) -> tuple[np.ndarray, np.ndarray]:
    """Score the text units near the seeds by personalised PageRank.

    Args:
        seeds: with at least one entity.
        max_units: text units in the neighbourhood; None computes PageRank over the whole graph.

    Returns:
        Rows of text units, ascending, which include those of the seeds, and scores, 0 to 1.
    """
    mentions = index.snapshot.mentions
    units = np.arange(len(mentions.unit_indptr) - 1)
    if max_units is not None and max_units < len(units):
        units = find_neighbourhood(mentions, seeds, max_units)
    return units, to_one(_pagerank(index, mentions, seeds, units, named.words))


def make_seeds(mentions: Mentions, named: NamedQuestion, found: Sequence[tuple[int, float]]) -> Seeds:
    """Return the seeds; every name has the same weight, so that a comparison of two things reaches both.

    The weight of a name is divided among its entities by idf. Text units weigh score ^ SEED_POWER, normalised to sum 1.

    Args:
        found: rows and scores, 0 to 1, of the text units that basic search finds, best first.
    """
    n_units = len(mentions.unit_indptr) - 1
    weights: dict[int, float] = {}
    rarity = []
    for rows in named.names:
        idf = idf_of(mentions, np.array(rows))
        rarity.append(float(idf.mean()) / np.log1p(max(n_units, 1)))
        shares = idf / idf.sum() if idf.any() else np.full(len(rows), 1 / len(rows))  # an empty index has no idf
        for row, share in zip(rows, shares, strict=True):
            weights[row] = weights.get(row, 0.0) + float(share) / len(named.names)
    entities = np.array(sorted(weights), dtype=np.int64)
    scores = np.array([score for _, score in found])
    unit_weights = np.maximum(scores, 1e-3) ** SEED_POWER
    return Seeds(
        entities=entities,
        entity_weights=np.array([weights[row] for row in entities.tolist()]),
        text_units=np.array([row for row, _ in found], dtype=np.int64),
        unit_weights=unit_weights / max(unit_weights.sum(), 1e-300),
        pagerank_share=min(float(np.mean(rarity)), 1.0) if rarity else 0.0,
    )


# ------------------------------------------------------------------------------------------------------------ iteration


def _pagerank(
    index: IndexReader, mentions: Mentions, seeds: Seeds, units: np.ndarray, words: Sequence[str]
) -> np.ndarray:
    """Return the PageRank of each text unit of a neighbourhood, float (len(units),).

    Args:
        units: rows of the neighbourhood's text units, ascending.
        words: of the question, without the names.
    """
    # Edge k joins text unit units[positions[k]] and entity entities[ends[k]]; all arrays of weights are per edge.
    positions, edges = expand_rows(mentions.unit_indptr, units)
    mentioned = np.concatenate((mentions.entities[edges], seeds.entities))
    entities, ends = group_rows(mentioned, len(mentions.entity_indptr) - 1)
    ends = ends[: len(edges)]
    near = _sentence_similarity(index, mentions, units, positions, edges, words)
    about = np.where(mentions.is_about[edges], ABOUT_WEIGHT, 1.0)
    into_unit = about * (1 + SIMILARITY_WEIGHT * near**2)
    beside = _relation_similarity(index, mentions, seeds, units, edges, words)
    into_entity = idf_of(mentions, entities)[ends] * about * (1 + SIMILARITY_WEIGHT * np.maximum(near, beside) ** 2)

    # Divide by the sum of weights at the node. Each edge of an entity to text units outside counts with weight 1.
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
    """Return the personalised PageRank of each text unit after `N_STEPS` power iterations.

    Args:
        units, entities: the two ends of each edge, int (n edges,).
        to_unit, to_entity: probability to follow the edge from its entity, and from its text unit.
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
    """Return for each mention edge the cosine of the question to the nearest sentence that mentions the entity.

    Returns:
        float (len(edges),), 0 to 1; 0 for an edge without a place in the text.
    """
    sentences = index.snapshot.sentences
    vector = embed_question(index.snapshot, " ".join(words))
    of_edge, places = expand_rows(mentions.places_indptr, edges)
    rows = _sentences_at(sentences, units, positions[of_edge], mentions.starts[places])
    distinct, group = group_rows(rows, len(sentences.starts))
    cosines = score_sentences(sentences, vector, distinct)
    nearest = np.zeros(len(edges))
    np.maximum.at(nearest, of_edge, np.clip(cosines[group], 0.0, 1.0))
    return nearest


def _sentences_at(sentences: Sentences, units: np.ndarray, which: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the row of the sentence that contains each character of some text units.

    Args:
        which: position in `units` of each character, ascending.
        offsets: of each character inside its text unit.
    """
    unit_of, rows = expand_rows(sentences.indptr, units)
    # One sorted key per sentence, (text unit, start), finds all characters with a single search.
    step = np.int64(1) << 32
    places = np.searchsorted(unit_of * step + sentences.starts[rows], which * step + offsets, side="right") - 1
    return rows[places]


def _relation_similarity(
    index: IndexReader, mentions: Mentions, seeds: Seeds, units: np.ndarray, edges: np.ndarray, words: Sequence[str]
) -> np.ndarray:
    """Return for each edge the similarity of the question to the words beside the entity's name.

    Only edges of the first text units are read (`N_FIRST`), to entities that neither the question nor the document's
    title names. The others have 0. float (len(edges),).
    """
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
