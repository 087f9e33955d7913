"""Methods and strategies: one table of names, and an implementation for each."""

from __future__ import annotations

import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.query.methods.registry import METHODS, look_up_method
from graphrag_pipeline.query.selection.strategies import STRATEGIES
from graphrag_pipeline.settings import search_names
from graphrag_pipeline.settings.settings import AutoSearchSettings, Settings


def test_each_name_has_a_method_of_that_name_with_a_section_of_the_settings() -> None:
    assert list(METHODS) == list(search_names.SEARCH_METHODS)
    for name, method in METHODS.items():
        assert method.name == name
        assert method.section in Settings.model_fields and method.budget_option in method.options
        assert method.steps and all(step.description for step in method.steps)


def test_steps_of_one_name_are_one_step() -> None:
    steps = [step for method in METHODS.values() for step in method.steps]
    assert len({step.name for step in steps}) == len({id(step) for step in steps})


def test_an_unknown_method_names_the_valid_ones() -> None:
    with pytest.raises(PipelineError, match="unknown search method 'best'; valid: local, global"):
        look_up_method("best")


def test_each_name_has_a_strategy() -> None:
    assert tuple(STRATEGIES) == search_names.STRATEGIES


def test_auto_may_choose_every_other_method() -> None:
    assert set(AutoSearchSettings().methods) == set(METHODS) - {"auto"}
