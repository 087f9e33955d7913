"""Model calls and tables of text in the UI."""

from __future__ import annotations

from graphrag_pipeline.defs.assets.pages.metadata import as_markdown, as_table, of_calls
from graphrag_pipeline.models.accounting import CallStats


def test_calls_show_their_cost_only_where_every_price_is_known() -> None:
    account = CallStats()
    account.add_call(100, 10, 0.25, 0.1)
    assert of_calls(account)["model cost (USD)"] == 0.25
    account.add_call(100, 10, None, 0.1)
    shown = of_calls(account)
    assert "model cost (USD)" not in shown and (shown["model calls"], shown["model calls without a price"]) == (2, 1)
    assert of_calls(CallStats()) == {}


def test_cells_hold_no_image_or_link() -> None:
    row = ["![x](http://evil.example/p.png)", "<img src=x>", "a|b", "Scrooge"]
    assert as_table(("a", "b", "c", "d"), [row]).splitlines()[-1] == (
        "| ![x\\](http\u2060://evil.example/p.png) | &lt;img src=x> | a\\|b | Scrooge |"
    )


def test_an_answer_holds_no_image_and_keeps_its_markers() -> None:
    assert as_markdown("**Bob** [1] ![x](y)").value == "**Bob** [1] ![x\\](y)"


def test_values_are_words_and_no_python() -> None:
    row = [None, True, 12345, 0.123456, ["Bob", "Tim"], list("abcdefgh")]
    assert as_table(("a", "b", "c", "d", "e", "f"), [row]).splitlines()[-1] == (
        "|  | yes | 12,345 | 0.1235 | Bob, Tim | a, b, c, d, e, f and 2 more |"
    )
