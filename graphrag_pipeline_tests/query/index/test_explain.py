import json

from graphrag_pipeline.query.index.explain import explain_strategies, render_explanation, to_records
from graphrag_pipeline.query.search.local import select_local_context
from graphrag_pipeline.query.selection.strategies import STRATEGIES
from graphrag_pipeline.settings.settings import LocalSearchSettings

QUESTION = "How does Bob Cratchit treat Tiny Tim?"


def test_every_strategy_is_shown_the_chosen_one_first(carol):
    picks = explain_strategies(carol, QUESTION, LocalSearchSettings(strategy="graph"))
    shown = list(dict.fromkeys(pick.strategy for pick in picks))
    assert shown[0] == "graph"
    assert set(shown) == set(STRATEGIES)


def test_the_picks_are_those_of_the_context_token_by_token(carol):
    settings = LocalSearchSettings(strategy="round_robin")
    context = select_local_context(carol, QUESTION, settings)
    picks = [p for p in explain_strategies(carol, QUESTION, settings) if p.strategy == "round_robin"]
    assert [p.text_unit for p in picks] == [unit.human_readable_id for unit in context.text_units]
    assert [p.entities for p in picks] == [unit.entities for unit in context.text_units]
    assert picks[-1].cumulative_tokens == sum(unit.n_tokens for unit in context.text_units)


def test_a_table_per_strategy_and_plain_records(carol):
    picks = explain_strategies(carol, QUESTION, LocalSearchSettings())
    text = render_explanation(picks)
    for strategy in STRATEGIES:
        assert f"## {strategy}: " in text
    assert "| # | text unit | document | tokens | cumulative | score | informs |" in text
    assert json.loads(json.dumps(to_records(picks)))[0]["place"] == 1


def test_nothing_to_pick_is_said():
    assert "No strategy picks" in render_explanation([])
