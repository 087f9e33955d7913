"""How often a long test repeats what it does, such as a kill at another moment.

`make test` makes a few repetitions that spread over the whole range. `THOROUGH=1` makes all of them, as `make torture`
does.
"""

from __future__ import annotations

import os

IS_THOROUGH = os.environ.get("THOROUGH") == "1"


def repetitions(usual: int, thorough: int) -> int:
    """Return how often a test repeats what it does."""
    return thorough if IS_THOROUGH else usual
