"""What text unit selection strategies take and give: candidates, limits, picks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Candidates:
    """The text units of the matched entities; a text unit is a position 0 to n - 1, in reading order.

    Attributes:
        text_units: one int array per entity, entities best first; a text unit may belong to several.
        similarity: (n_entities,) of each entity to the question.
        n_relationships: (n,) relationships of the matched entities in each text unit.
        costs: (n,) what each text unit takes of the budget: tokens, or ones where the budget counts text units.
        relevance: (n,) 0 to 1 from a walk over the graph (`pagerank.py`); None where there was none.
        read_vectors: unit vectors, float32 (k, d), of k positions; None where nothing tells texts apart.
    """

    text_units: tuple[np.ndarray, ...]
    similarity: np.ndarray
    n_relationships: np.ndarray
    costs: np.ndarray
    relevance: np.ndarray | None = None
    read_vectors: Callable[[np.ndarray], np.ndarray] | None = None


@dataclass(frozen=True)
class Limits:
    """How much a strategy may take.

    Attributes:
        budget: in the unit of `Candidates.costs`.
        guaranteed: minimum_guarantee: text units each entity gets.
        cap: per_entity_cap: most text units per entity.
        seated: how many text units each entity has already, outside the budget; they use up its caps, quotas,
            guarantees and rounds. None where nobody has any.
    """

    budget: int
    guaranteed: int = 2
    cap: int = 5
    reserved: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Pick:
    """A text unit and the entity (position) it was taken for, -1 if it is of none."""

    text_unit: int
    entity: int
