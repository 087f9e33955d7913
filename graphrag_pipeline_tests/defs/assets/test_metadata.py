"""Metadata of model calls in the UI."""

from __future__ import annotations

from graphrag_pipeline.defs.assets.metadata import of_calls
from graphrag_pipeline.models.accounting import CallStats


def test_calls_show_their_cost_only_where_every_price_is_known() -> None:
    account = CallStats()
    account.add_call(100, 10, 0.25, 0.1)
    assert of_calls(account)["cost_usd"] == 0.25
    account.add_call(100, 10, None, 0.1)
    shown = of_calls(account)
    assert "cost_usd" not in shown and (shown["calls"], shown["unpriced_calls"]) == (2, 1)
    assert of_calls(CallStats()) == {}
