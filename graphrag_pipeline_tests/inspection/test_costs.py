"""What runs cost, in words: nothing that is not known is shown as nothing."""

from __future__ import annotations

from pathlib import Path

from graphrag_pipeline.inspection.costs import append_costs, read_costs, render_costs
from graphrag_pipeline.inspection.estimates import StageEstimate
from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline_tests.roots import make_root


def test_calls_without_a_known_price_are_no_free_calls(tmp_path: Path) -> None:
    root = make_root(tmp_path / "root", {})
    free, mixed, priced = CallStats(), CallStats(), CallStats()
    free.add_call(10, 5, None, 0.1)
    mixed.add_call(10, 5, None, 0.1)
    mixed.add_call(10, 5, 0.25, 0.1)
    priced.add_call(10, 5, 0.5, 0.1)
    estimates = [StageEstimate("extracted_graph", 1, 0, 10, 5, None)]
    append_costs(root, estimates, {"extracted_graph": free, "graph": mixed, "community_reports": priced})
    time, *lines, spent = render_costs(read_costs(root))
    assert {line.split()[0]: line.partition("USD ")[2] for line in lines} == {
        "community_reports": "0.0000 -> 0.5000",
        "extracted_graph": "? -> ?",
        "graph": "0.0000 -> 0.2500 + ?",
    }
    assert time.endswith("Z")
    assert "`spent so far` is more" in spent


def test_without_a_run_there_is_nothing_to_explain(tmp_path: Path) -> None:
    assert render_costs(read_costs(make_root(tmp_path / "root", {}))) == ["no run asked a model yet"]
