"""Figures and their limits; a failing command is not a figure."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_pipeline_tests.bench.measuring import CommandFailedError, Figure, measure_command


def test_a_row_shows_whether_the_limit_holds() -> None:
    assert Figure("index: time", 12.345, "s", 90).to_row() == "| index: time | 12.35 s | 90 s | ok |"
    assert Figure("index: time", 91, "s", 90).to_row() == "| index: time | 91.00 s | 90 s | **over** |"
    assert Figure("index: processor", 91, "s").to_row() == "| index: processor | 91.00 s |  |  |"
    assert Figure("recall@5", 0.6805, "", least=0.652).to_row() == "| recall@5 | 0.680 | at least 0.652 | ok |"
    assert Figure("recall@5", 0.64, "", least=0.652).to_row() == "| recall@5 | 0.640 | at least 0.652 | **under** |"
    assert [Figure("x", 3, "s", least=least).is_under for least in (None, 2, 3, 4)] == [False, False, False, True]
    assert [Figure("x", 3, "s", limit).is_over for limit in (None, 2, 3)] == [False, True, False]


@pytest.mark.thorough
def test_a_command_is_measured_and_a_failing_one_reported(tmp_path: Path) -> None:
    usage = measure_command(tmp_path, "init", str(tmp_path))
    assert (tmp_path / "settings.yaml").exists()
    assert usage.wall_s > 0 and usage.cpu_s > 0 and usage.peak_bytes > 10_000_000
    with pytest.raises(CommandFailedError, match="no readable documents"):
        measure_command(tmp_path, "index")
