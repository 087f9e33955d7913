"""Ports: what a step may ask of a model, whichever engine is behind it.

A step takes the port as an argument, so that a test passes a fake and a settings line another engine. Add a port when a
step needs a new kind of answer; keep out clients, settings and anything that knows one vendor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np


class Embedder(Protocol):
    """Turns texts into vectors; the same text gives the same vector whatever else is in the batch."""

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        ...

    @property
    def fingerprint(self) -> str:
        """Changes whenever the vector of a text may change."""
        ...

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """float32 (n texts, dimensions): rows of length 1, or all zeros for a text that says nothing to the model."""
        ...
