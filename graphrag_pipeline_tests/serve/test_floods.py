"""`/health` answers beside 200 hostile requests of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_pipeline_tests.serve.floods import ALL_KINDS, serving, slowest_health
from graphrag_pipeline_tests.support.thoroughness import usually

MOST_S = 5.0
"""Ten times what is wanted on a machine of its own: the attackers and other tests share the processors."""


@pytest.mark.parametrize("kind", usually(ALL_KINDS, "nested", "slow heads"))
def test_health_answers_beside_a_flood(served_root: Path, kind: str) -> None:
    with serving(served_root) as port:
        slowest, n_answered = slowest_health(port, kind)
    assert slowest < MOST_S and (n_answered or kind == "slow heads")  # which never end
