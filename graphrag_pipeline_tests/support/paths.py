"""Paths that tests read from: the repository, its sample root and the test data."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
SAMPLE_ROOT = REPOSITORY / "data"
TEST_DATA = Path(__file__).parents[1] / "data"
MICROSOFT_INDEX = TEST_DATA / "microsoft_christmas_carol"
