"""How much of a long test `make test` runs: a few repetitions that spread over the whole range, a few of many cases.

`THOROUGH=1` makes all repetitions, as `make test-all` and `make torture` do. Tests marked `thorough` run only in
`make test-all`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from itertools import product
from typing import Any

import pytest

IS_THOROUGH = os.environ.get("THOROUGH") == "1"


def repetitions(usual: int, thorough: int) -> int:
    """Return how often a test repeats what it does."""
    return thorough if IS_THOROUGH else usual


def usually(cases: Iterable[Any], *kept: Any) -> list[Any]:
    """Return the cases of `pytest.mark.parametrize`; all but the kept ones are marked `thorough`."""
    return [case if case in kept else pytest.param(case, marks=pytest.mark.thorough) for case in cases]


def sums(*cases: Collection[Any]) -> list[Any]:
    """Return the combinations of several parameters; those beyond each case once are marked `thorough`."""
    columns = [list(values) for values in cases]
    kept = [tuple(values[n % len(values)] for values in columns) for n in range(max(map(len, columns)))]
    return [
        combination if combination in kept else pytest.param(*combination, marks=pytest.mark.thorough)
        for combination in product(*columns)
    ]
