"""Settings of new roots that use models: presets, local servers and the mix for small models."""

from __future__ import annotations

import pytest

from graphrag_pipeline.errors import SettingsError
from graphrag_pipeline.settings.file import load_settings
from graphrag_pipeline.settings.presets import (
    MIXED_SECTIONS,
    PRESETS,
    is_loopback,
    model_sections,
    preset_for,
    settings_for_model,
)
from graphrag_pipeline.settings.rendering import render_settings


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:8080/v1", True),
        ("http://localhost:11434/v1", True),
        ("http://[::1]:8000/v1", True),
        ("http://127.8.0.3/v1", True),
        ("https://api.openai.com/v1", False),
        ("http://192.168.0.7:8080/v1", False),
        ("http://localhost.example.com/v1", False),
    ],
)
def test_loopback_addresses(url: str, expected: bool) -> None:
    assert is_loopback(url) is expected


def test_an_address_of_this_machine_gets_settings_of_a_local_server() -> None:
    url = "http://127.0.0.1:9999/v1"
    settings = settings_for_model("chat", "vectors", url, preset=preset_for(None, url))
    chat, vectors = settings.chat_model, settings.embedding_model
    assert 1 <= chat.max_concurrency <= 4
    assert chat.timeout_s == vectors.timeout_s == 600
    assert chat.parameters == {"temperature": 0}
    assert (chat.prompt_price, chat.completion_price, vectors.prompt_price) == (0, 0, 0)
    assert (chat.base_url, vectors.base_url) == (url, url)
    assert preset_for(None, "https://api.example.com/v1") is None


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_makes_settings_that_can_be_written_and_read(name: str, tmp_path) -> None:
    url = None if PRESETS[name].base_url else "https://mine.openai.azure.com"
    settings = settings_for_model("chat", "vectors", url, preset=preset_for(name, url))
    (tmp_path / "settings.yaml").write_text(render_settings(settings), encoding="utf-8")
    assert load_settings(tmp_path, {}) == settings
    assert settings.chat_model.base_url == (url or PRESETS[name].base_url)


def test_the_preset_of_azure_needs_an_address() -> None:
    with pytest.raises(SettingsError, match=r"azure needs the address.*--base-url"):
        preset_for("azure", None)
    with pytest.raises(SettingsError, match="'lmstudio' is not a preset; the presets are openai"):
        preset_for("lmstudio", None)


def test_an_embedding_model_may_have_an_address_of_its_own() -> None:
    local = settings_for_model("chat", "vectors", embedding_base_url="http://127.0.0.1:81/v1")
    assert local.chat_model.base_url.startswith("https://api.openai.com")
    assert local.chat_model.prompt_price is None
    assert (local.embedding_model.base_url, local.embedding_model.prompt_price) == ("http://127.0.0.1:81/v1", 0)
    far = settings_for_model(
        "chat", "vectors", embedding_base_url="https://vectors.example.com/v1", preset=PRESETS["ollama"]
    )
    assert (far.chat_model.prompt_price, far.embedding_model.prompt_price) == (0, None)


def test_the_mix_for_small_models_gives_only_the_answers_to_the_model() -> None:
    settings = settings_for_model("chat", None, sections=MIXED_SECTIONS)
    assert [name for name in model_sections() if getattr(settings, name).engine == "model"] == ["answers"]
    assert "resolution" not in model_sections()
