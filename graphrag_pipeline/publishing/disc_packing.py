"""Packing of discs: groups of discs without overlap, related ones near each other, and the circle around each group.

All groups are packed at once, in arrays. Places come first: on a spiral, largest inside, pushed apart until no two
overlap. Then discs of about one size and one distance from the centre exchange their places, so that each lies in the
direction of the discs that it is related to. No random number is used. Keep out: what the discs are (`layout.py`).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

_GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))
"""Turn between neighbours of a spiral, radians: it fills a disc evenly."""
_GAP = 1.04
"""Radius of the free space around a disc, per radius of the disc."""
_CLASS = 1.12
"""Ratio of two neighbouring classes of size; a disc gets the place of the largest of its class."""
_LOOSENESS = 1.2
"""Distance of the spiral's places per distance that the areas inside need; equal discs do not overlap from here on."""
_N_PUSHES = 60
_N_PER_SEARCH = 6
"""Pushes between two searches for places that are near each other."""
_N_CENTRE_STEPS = 40
_N_EXCHANGES = 12


def pack_discs(
    group: np.ndarray, radii: np.ndarray, pairs: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the centres of discs, each group around its own origin, and the radius of the circle around each group.

    Args:
        group: number of the group of each disc, from 0; every number has a disc.
        radii: of each disc, positive.
        pairs: int (n, 2), related discs of one group.
        weights: of each pair, positive.
    """
    size = np.ceil(np.log(radii) / math.log(_CLASS) - 1e-9).astype(np.int64)
    wide = _GAP * _CLASS ** size.astype(np.float64)
    related = np.bincount(pairs.ravel(), weights=np.repeat(weights, 2), minlength=len(group))
    order = np.lexsort((np.arange(len(group)), -related, -size, group))
    places = np.empty((len(group), 2))
    places[order] = _start(group[order], wide[order])
    places = _separate(group, wide, places)
    ring = np.floor(np.sqrt((places**2).sum(axis=1)) / (2.2 * wide)).astype(np.int64)
    exchangeable = np.unique(np.c_[group, size, ring], axis=0, return_inverse=True)[1].ravel()
    points = exchange_places(places, exchangeable, np.zeros_like(places), pairs.T, weights, _N_EXCHANGES)
    return _centre(points, wide, group)


def _start(group: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """Return places on a spiral by the area of the discs further inside; discs are in the order of their group."""
    area = radii**2
    first = np.searchsorted(group, group)
    before = np.cumsum(area) - area
    inside = before - before[first]
    distance = _LOOSENESS * np.sqrt(np.where(inside > 0, inside + area / 2, 0))
    return distance[:, None] * _directions(np.arange(len(group)) - first)


def _separate(group: np.ndarray, radii: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the places after overlapping ones were pushed apart, and each group was widened by the overlap left."""
    near = np.zeros((0, 2), dtype=np.int64)
    for step in range(_N_PUSHES):
        if step % _N_PER_SEARCH == 0:
            near = _find_near(group, radii, places)
        if not _push(places, radii, near):
            break
    near = _find_near(group, radii, places)
    needed = np.ones(int(group.max()) + 1)
    np.maximum.at(needed, group[near[:, 0]], radii[near].sum(axis=1) / _ways(places, near)[1])
    return places * needed[group][:, None]


def _find_near(group: np.ndarray, radii: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the pairs of discs of one group that overlap or nearly do, int64 (n, 2), each pair once.

    Discs are searched by classes of size, so that a large disc does not make small ones look far.
    """
    from scipy.spatial import cKDTree

    apart = 10 * (np.abs(places).max() + radii.max())  # groups are far from each other
    points = np.c_[places, group * apart]
    size = np.floor(np.log2(radii)).astype(np.int64)
    found = [np.zeros((0, 2), dtype=np.int64)]
    for number in np.unique(size).tolist():
        large, smaller = np.flatnonzero(size == number), np.flatnonzero(size <= number)
        reach = 2.2 * float(radii[large].max())
        near = cKDTree(points[large]).sparse_distance_matrix(cKDTree(points[smaller]), reach, output_type="ndarray")
        pairs = np.c_[large[near["i"]], smaller[near["j"]]]
        is_close = near["v"] < 1.1 * radii[pairs].sum(axis=1)
        found.append(pairs[is_close & ((size[pairs[:, 1]] < number) | (pairs[:, 0] < pairs[:, 1]))])
    pairs = np.concatenate(found)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def _push(places: np.ndarray, radii: np.ndarray, near: np.ndarray) -> bool:
    """Move overlapping discs apart, the smaller one further; return whether any overlapped. Changes `places`."""
    way, distance = _ways(places, near)
    overlap = radii[near].sum(axis=1) - distance
    is_over = overlap > 1e-3 * radii[near].min(axis=1, initial=np.inf)
    near, way = near[is_over], way[is_over] * (overlap / distance)[is_over, None]
    areas = radii[near] ** 2
    for end, sign in ((0, -0.6), (1, 0.6)):
        moves = sign * way * (areas[:, 1 - end] / areas.sum(axis=1))[:, None]
        for axis in (0, 1):
            places[:, axis] += np.bincount(near[:, end], weights=moves[:, axis], minlength=len(places))
    return bool(is_over.any())


def _ways(points: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the vector from the first to the second point of each pair, and its length; equal points differ a bit."""
    way = points[pairs[:, 1]] - points[pairs[:, 0]]
    same = (way == 0).all(axis=1)
    way[same] = 1e-6 * _directions(np.abs(pairs[same, 1] - pairs[same, 0]))
    return way, np.sqrt((way**2).sum(axis=1))


def _centre(points: np.ndarray, radii: np.ndarray, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the points around the centre of the smallest circle around their group, nearly, and its radius.

    The centre moves towards the farthest disc by ever smaller steps (Badoiu and Clarkson, 2003).
    """
    order = np.argsort(group, kind="stable")
    group, ordered, radius = group[order], points[order], radii[order]
    first = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    centre = ordered[first].copy()
    for step in range(_N_CENTRE_STEPS):
        reach = np.sqrt(((ordered - centre[group]) ** 2).sum(axis=1)) + radius
        farthest = np.lexsort((reach, group))[np.r_[first[1:], len(group)] - 1]
        way = ordered[farthest] - centre
        distance = np.maximum(np.sqrt((way**2).sum(axis=1)), 1e-9)
        centre += way * ((distance + radius[farthest]) / distance / (step + 2))[:, None]
    around = np.maximum.reduceat(np.sqrt(((ordered - centre[group]) ** 2).sum(axis=1)) + radius, first)
    centred = np.empty_like(points)
    centred[order] = ordered - centre[group]
    return centred, around


def spiral(slots: np.ndarray) -> np.ndarray:
    """Return the places of a spiral that fills a disc evenly: slot n lies at the distance sqrt(n), (n, 2)."""
    places: np.ndarray = np.sqrt(slots)[:, None] * _directions(slots)
    return places


def exchange_places(
    places: np.ndarray, ring: np.ndarray, origin: np.ndarray, ends: np.ndarray, weights: np.ndarray, n_passes: int
) -> np.ndarray:
    """Return the places after those of a ring were exchanged, so that each lies in the direction of its relations.

    Args:
        places: (n, 2).
        ring: number of the set in which each may be exchanged, -1: it stays.
        origin: (n, 2), around which directions are measured; one for each ring.
        ends: int (2, n pairs), related places.
        weights: of each pair.
    """
    movable = np.flatnonzero(ring >= 0)
    both, others, twice = ends.ravel(), ends[::-1].ravel(), np.tile(weights, 2)
    total = np.maximum(np.bincount(both, weights=twice, minlength=len(places)), 1e-9)[movable, None]
    by_place = _by_direction(places[movable] - origin[movable], ring[movable])
    placed = places.copy()
    for _ in range(n_passes):
        sums = [np.bincount(both, twice * placed[others, axis], minlength=len(places)) for axis in (0, 1)]
        wanted = np.stack(sums, axis=1)[movable] / total - origin[movable]
        is_free = (wanted == -origin[movable]).all(axis=1)  # without a relation it may stay
        wanted[is_free] = (placed - origin)[movable[is_free]]
        placed[movable[_by_direction(wanted, ring[movable])]] = places[movable[by_place]]
    return placed


def _by_direction(ways: np.ndarray, ring: np.ndarray) -> np.ndarray:
    return np.lexsort((np.round(np.arctan2(ways[:, 1], ways[:, 0]), 9), ring))


@lru_cache(maxsize=2)
def _circle(n: int) -> np.ndarray:
    """Return the unit vectors after 0, 1, 2 ... golden angles; by functions that every processor computes alike."""
    return np.array([(math.cos(i * _GOLDEN_ANGLE), math.sin(i * _GOLDEN_ANGLE)) for i in range(n)]).reshape(n, 2)


def _directions(steps: np.ndarray) -> np.ndarray:
    """Return the unit vectors after some numbers of golden angles, (n, 2)."""
    return _circle(1 << int(steps.max(initial=0)).bit_length())[steps]
