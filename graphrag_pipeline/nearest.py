"""The name that a misspelt one was meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LEAST_ALIKE = 0.5
"""Similarity by `difflib`, from 0 to 1, below which a known name is no guess."""


def nearest_name(name: object, known: Iterable[str]) -> str | None:
    """Return the known name that is most like `name`; None if no name is alike."""
    return next(iter(difflib.get_close_matches(str(name), list(known), n=1, cutoff=_LEAST_ALIKE)), None)


def suggest(name: object, known: Iterable[str]) -> str:
    """Return the end of an error message about an unknown name: the nearest known one, or all that are known."""
    names = list(known)
    near = nearest_name(name, names)
    return f"; did you mean {near!r}?" if near else f"; valid: {', '.join(names)}"
