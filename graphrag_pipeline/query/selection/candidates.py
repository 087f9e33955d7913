"""Input and output of the text unit selection strategies: candidates, limits, picks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Candidates:
    """The text units that a strategy chooses from; each is a position from 0 to n - 1, in reading order.

    Attributes:
        text_units: one ascending int array per matched entity, best entity first; a text unit may be in several.
        n_of_entity: one int array per matched entity, along with its `text_units`: relationships of this entity that
            each of them states.
        similarity: (n_entities,) cosine of each entity to the question.
        costs: (n,) cost of each text unit: tokens, or 1 where the budget counts text units.
        relevance: (n,) 0 to 1, by personalised PageRank (`pagerank.py`); None if it was not computed.
        read_vectors: returns unit vectors, float32 (k, d), of k positions; None if texts are not compared.
    """

    text_units: tuple[np.ndarray, ...]
    n_of_entity: tuple[np.ndarray, ...]
    similarity: np.ndarray
    costs: np.ndarray
    relevance: np.ndarray | None = None
    read_vectors: Callable[[np.ndarray], np.ndarray] | None = None

    @functools.cached_property
    def informs(self) -> np.ndarray:
        """Whether each entity has each text unit, bool (n_entities, n)."""
        found = np.zeros((len(self.text_units), len(self.costs)), dtype=bool)
        for entity, units in enumerate(self.text_units):
            found[entity, units] = True
        return found

    @functools.cached_property
    def owners(self) -> np.ndarray:
        """The first entity that each text unit informs, -1 if it informs none: int64 (n,)."""
        found = np.full(len(self.costs), -1, dtype=np.int64)
        for entity in reversed(range(len(self.text_units))):
            found[self.text_units[entity]] = entity
        return found


@dataclass(frozen=True)
class Limits:
    """Limits on the number and the cost of the text units that a strategy takes.

    Attributes:
        budget: in the unit of `Candidates.costs`.
        guaranteed: text units that each entity gets under `minimum_guarantee`.
        cap: most text units for each entity under `per_entity_cap`.
        reserved: number of text units that each entity has already, outside the budget. They use up its cap, quota,
            guarantee and rounds. None means 0 for each entity.
    """

    budget: int
    guaranteed: int = 2
    cap: int = 5
    reserved: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Excerpt:
    """A part of a text unit: character offsets in its text, tokens, and the matched entities that it mentions."""

    start: int
    end: int
    n_tokens: int
    entities: tuple[int, ...]


@dataclass(frozen=True)
class Pick:
    """A text unit and the position of the entity that it was taken for; -1 if it informs no matched entity.

    Attributes:
        excerpt: the part that is taken; None if it is the whole text unit.
        mentions: of a whole text unit: matched entities whose mention in an overlapping neighbour lies in it, too.
    """

    text_unit: int
    entity: int
    excerpt: Excerpt | None = None
    mentions: tuple[int, ...] = ()
