"""Prices of models: by the list, by settings, or unknown."""

from __future__ import annotations

import logging

import pytest

from graphrag_pipeline.models.prices import find_price


@pytest.mark.parametrize("url", ["https://api.openai.com/v1", "https://mine.openai.azure.com", "http://127.0.0.1:1/v1"])
def test_a_known_model_has_its_price_at_its_provider_and_behind_an_unknown_address(url: str) -> None:
    price = find_price("gpt-4o-mini", url)
    assert price is not None
    assert price.cost(1_000_000, 1_000_000) == pytest.approx(0.15 + 0.60)
    embedding = find_price("text-embedding-3-small", url)
    assert embedding is not None
    assert embedding.cost(1_000_000, 0) == pytest.approx(0.02)


def test_settings_come_before_the_list() -> None:
    price = find_price("gpt-4o-mini", "https://api.openai.com/v1", 2.0, 4.0)
    assert price is not None
    assert price.cost(500_000, 250_000) == pytest.approx(2.0)
    free = find_price("llama3.2", "http://localhost:11434/v1", 0.0)
    assert free is not None
    assert free.cost(10, 10) == 0.0


def test_an_unknown_model_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert find_price("never-heard-of", "http://127.0.0.1:9/v1") is None
        assert find_price("never-heard-of", "http://127.0.0.1:9/v1") is None
    assert len([record for record in caplog.records if "never-heard-of" in record.message]) == 1
