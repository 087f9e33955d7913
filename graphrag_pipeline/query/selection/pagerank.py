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

Only a neighbourhood of MAX_UNITS text units is computed (`pagerank_subgraph.py`), so the cost does not grow with the
graph. The idea is that of local push (Andersen, Chung and Lang 2006). The probability that an entity would send to text
units outside is lost.

Similarity of a question to the words beside an entity's name.

The vector of a whole sentence is the same for all people in it: of "a film directed by A, written by B and starring C
and D", all four are equally near to "director". So this module compares the content words on each side of the name with
those of the question, one by one, by static vectors (cosine of director and directed 0.43, of husband and wife 0.82):

    score = max over the words v beside the name of max over the question's words w of cos(v, w) * DECAY^g

g is the number of content words between v and the name, plus 1 for a word after the name. No list of relations is
needed.

Keep out: the order that local search makes of it (`graph_ranking.py`), tokens, strategies.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

import numpy as np

from graphrag_pipeline.models.ports import load_static_embedder
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.names import NamedQuestion
from graphrag_pipeline.query.question import is_searched
from graphrag_pipeline.query.selection.hybrid_ranking import to_one
from graphrag_pipeline.query.selection.pagerank_subgraph import (
    ABOUT_WEIGHT,
    UNIT_SEED_WEIGHT,
    Seeds,
    find_neighbourhood,
    idf_of,
)
from graphrag_pipeline.query.selection.windows import embed_question, score_sentences
from graphrag_pipeline.storage.arrays import Sentences, expand_rows, group_rows
from graphrag_pipeline.storage.mentions import Mentions
from graphrag_pipeline.text.late_patterns import late_re

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
