"""Settings: defaults, errors with an address, and presets of servers."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import get_args

import pytest

from graphrag_pipeline.errors import SettingsError
from graphrag_pipeline.models.pieces import fingerprint_of
from graphrag_pipeline.pipeline.stage_code import code_of
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline.settings.file import load_settings
from graphrag_pipeline.settings.indexing import ResolutionRule, ResolutionSettings
from graphrag_pipeline.settings.models import ChatModelSettings
from graphrag_pipeline.settings.presets import (
    MIXED_SECTIONS,
    PRESETS,
    is_loopback,
    model_sections,
    preset_for,
    settings_for_model,
)
from graphrag_pipeline.settings.rendering import render_settings
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline_tests.support.paths import SAMPLE_ROOT

SAMPLE = SAMPLE_ROOT / "settings.yaml"


def write(folder: Path, text: str) -> Path:
    (folder / "settings.yaml").write_text(text, encoding="utf-8")
    return folder


def test_sample_root_has_the_rendered_settings() -> None:
    assert SAMPLE.read_text(encoding="utf-8") == render_settings()


def test_rendered_settings_keep_changed_values(tmp_path: Path) -> None:
    changed = Settings.model_validate(
        {"text_units": {"size": 300, "overlap": 0}, "input": {"exclude": ["*.tmp", "a: b"]}}
    )
    assert load_settings(write(tmp_path, render_settings(changed)), {}) == changed


def test_environment_overrides_the_file(tmp_path: Path) -> None:
    write(tmp_path, "text_units:\n  size: 800\n")
    settings = load_settings(tmp_path, {"GRAPHRAG__TEXT_UNITS__SIZE": "600", "GRAPHRAG_ROOT": "/x"})
    assert settings.text_units.size == 600


def test_equal_texts_are_parsed_once_and_every_change_is_seen(tmp_path: Path) -> None:
    first = load_settings(write(tmp_path, "text_units:\n  size: 800\n"), {})
    assert load_settings(tmp_path, {"PATH": "/bin"}) is first
    assert load_settings(tmp_path, {"GRAPHRAG__TEXT_UNITS__SIZE": "600"}).text_units.size == 600
    assert load_settings(write(tmp_path, "text_units:\n  size: 900\n"), {}).text_units.size == 900
    with pytest.raises(SettingsError):
        load_settings(write(tmp_path, "text_units:\n  size: many\n"), {})
    assert load_settings(write(tmp_path, "text_units:\n  size: 800\n"), {}).text_units.size == 800


@pytest.mark.parametrize(
    ("text", "environment", "expected"),
    [
        ("text_unit:\n  size: 1\n", {}, "unknown section 'text_unit'; did you mean 'text_units'?"),
        ("text_units:\n  sise: 1\n", {}, "unknown key 'text_units.sise'; did you mean 'size'?"),
        (
            "text_units:\n  community_share: 1\n",
            {},
            "unknown key 'text_units.community_share'; it is an option of local_search",
        ),
        ("text_units:\n  size: many\n", {}, "text_units.size: Input should be a valid integer"),
        ("text_units:\n  overlap: 1200\n", {}, "overlap (1200) must be smaller than 0.6 x size"),
        ("local_search:\n  community_share: 0.6\n", {}, "must not exceed 1"),
        ("text_units: [1, 2]\n", {}, "text_units: Input should be a valid dictionary"),
        ("- a\n", {}, "must hold sections"),
        ("a: [\n", {}, "is not valid YAML"),
        (
            "text_units:\n  size: 600\nschedule:\n  cron: ''\ntext_units:\n  overlap: 50\n",
            {},
            "line 5: 'text_units' is there already, in line 1",
        ),
        ("text_units:\n  size: 600\n  size: 700\n", {}, "line 3: 'size' is there already, in line 2"),
        ("text_units: {size: 600, size: 700}\n", {}, "line 1: 'size' is there already, in line 1"),
        (
            "resolution:\n  rules: [alia]\n",
            {},
            "resolution.rules: Value error, unknown rule 'alia'; write true, false or",
        ),
        ("resolution:\n  rules: alias\n", {}, "write true, false or a list of unicode, date,"),
        ("resolution:\n  rules: [embedding]\n", {}, "min_similarity is null"),
        ("resolution:\n  rules: [verdict]\n", {}, "set engine: model"),
        ("", {"GRAPHRAG__TEXT_UNITS__SISE": "1"}, "environment variable GRAPHRAG__TEXT_UNITS__SISE: unknown key"),
        ("", {"GRAPHRAG__TEXT_UNITS__SIZE": "abc"}, "found 'abc' in environment variable GRAPHRAG__TEXT_UNITS__SIZE"),
        ("local_search:\n  strategy: dept_first\n", {}, "'depth_first'"),
        ("", {"GRAPHRAG__TEXT_UNITS": "1"}, "expected GRAPHRAG__SECTION__KEY"),
        ("", {"GRAPHRAG__TEXT_UNITS__SIZE": "["}, "environment variable GRAPHRAG__TEXT_UNITS__SIZE"),
    ],
)
def test_bad_settings_are_reported_with_key_and_file(
    tmp_path: Path, text: str, environment: dict[str, str], expected: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(write(tmp_path, text), environment)
    assert expected in str(caught.value)


def test_rules_that_merge_names_are_switched_all_or_each_on_its_own() -> None:
    every = ResolutionSettings()
    assert every.applied_rules == {*get_args(ResolutionRule)} and not every.is_semantic
    both = {"engine": "model", "min_similarity": 0.9}
    assert ResolutionSettings(**both).uses_model and ResolutionSettings(**both).is_semantic
    exact = ResolutionSettings(rules=False, **both)
    assert (exact.applied_rules, exact.uses_model, exact.is_semantic) == (frozenset(), False, False)
    some = ResolutionSettings(rules=("alias", "embedding"), **both)
    assert (some.applied_rules, some.uses_model, some.least_similarity) == ({"alias", "embedding"}, False, 0.9)


@pytest.mark.parametrize(
    "key",
    ["sk-abcdefg123456", "gsk_a1b2c3d4e5f6", "AIzaSyD4f5g6h7", "0f1e2d3c4b5a69788796a5b4c3d2e1f0",
     "d41d8cd98f00b204e9800998ecf8427e", "my key"],
)  # fmt: skip
def test_a_key_where_the_name_of_a_variable_belongs_is_refused_and_not_repeated(tmp_path: Path, key: str) -> None:
    messages = []
    for text, environment in (
        (f"embedding_model: {{api_key_env: '{key}'}}\n", {}),
        (f"reports:\n  engine: model\n  model: {{model: m, api_key_env: '{key}'}}\n", {}),
        ("", {"GRAPHRAG__CHAT_MODEL__API_KEY_ENV": f"'{key}'"}),
    ):
        with pytest.raises(SettingsError, match="not the name of an environment variable") as caught:
            load_settings(write(tmp_path, text), environment)
        messages.append(str(caught.value))
    with pytest.raises(SettingsError, match=r"chat_model\.api_key_env: .*not the name") as made:
        settings_for_model("test-chat", None, None, key)
    assert not [line for line in [*messages, str(made.value)] if key in line]


@pytest.mark.parametrize("url", ["foo", "localhost:11434/v1", "ftp://host/v1", "http://", "http://[half", ""])
def test_a_base_url_must_be_a_web_address(tmp_path: Path, url: str) -> None:
    with pytest.raises(SettingsError, match=r"chat_model\.base_url: "):
        load_settings(write(tmp_path, f"chat_model:\n  base_url: '{url}'\n"), {})


def test_a_settings_file_that_is_missing_or_not_text_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="graphrag-pipeline init"):
        load_settings(tmp_path, {})
    (tmp_path / "settings.yaml").write_bytes(b"\xff\xfe\x00\xd8")
    with pytest.raises(SettingsError, match="cannot be read as UTF-8"):
        load_settings(tmp_path, {})


def test_sections_without_options_mean_their_defaults(tmp_path: Path) -> None:
    assert load_settings(write(tmp_path, "text_units:\n"), {}) == Settings()
    assert load_settings(write(tmp_path, ""), {}) == Settings()


@pytest.mark.parametrize(
    ("option", "problem"),
    [("context_window: 300", "not a number from 512 on, `read` or null"),
     ("context_window: big", "not a number from 512 on, `read` or null"),
     ("parameters: {max_tokens: many}", "max_tokens is 'many', not a number of tokens from 1 on"),
     ("parameters: {max_completion_tokens: 0}", "max_completion_tokens is 0, not a number of tokens from 1 on")],
)  # fmt: skip
def test_a_window_or_cap_that_cannot_be_is_one_error(tmp_path: Path, option: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(problem)) as found:
        load_settings(write(tmp_path, f"chat_model:\n  {option}\n"), {})
    assert str(found.value).count("chat_model.") == 1


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
    # It may be a proxy to a provider; a preset by name is free.
    assert (chat.prompt_price, chat.completion_price, vectors.prompt_price) == (None, None, None)
    named = settings_for_model("chat", "vectors", url, preset=preset_for("ollama", url))
    assert (named.chat_model.prompt_price, named.embedding_model.prompt_price) == (0, 0)
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
    assert local.embedding_model.base_url == "http://127.0.0.1:81/v1"
    assert local.embedding_model.batch_size == 16
    far = settings_for_model(
        "chat", "vectors", embedding_base_url="https://vectors.example.com/v1", preset=PRESETS["ollama"]
    )
    assert (far.chat_model.prompt_price, far.embedding_model.prompt_price) == (0, None)


def test_a_cheaper_model_may_rate() -> None:
    for sections in (None, MIXED_SECTIONS):
        settings = settings_for_model("chat", None, rating_model="cheap", sections=sections)
        assert settings.rating.engine == "model" and settings.chat_model_for("rating").model == "cheap"
        assert settings.chat_model_for("answers").model == "chat"


def test_the_mix_for_small_models_gives_only_the_answers_to_the_model() -> None:
    settings = settings_for_model("chat", None, sections=MIXED_SECTIONS)
    assert [name for name in model_sections() if getattr(settings, name).engine == "model"] == ["answers"]
    assert "resolution" not in model_sections()


@pytest.mark.parametrize(
    "headers",
    [
        "{Authorization: Bearer hunter2-hunter2}",
        "{X-Api-Key: hunter2-hunter2}",
        "{X-Team: sk-proj-hunter2-hunter2}",
        "{X-Team: {a: hunter2-hunter2}}",
        "[hunter2-hunter2]",
    ],
)
def test_a_header_with_a_secret_in_plain_text_is_refused_and_not_shown(headers: str, tmp_path: Path) -> None:
    for text in (f"headers: {headers}", f"endpoints: [{{headers: {headers}}}]", f"endpoints: {headers}"):
        (tmp_path / "settings.yaml").write_text(f"chat_model: {{{text}}}", encoding="utf-8")
        with pytest.raises(SettingsError) as caught:
            load_settings(tmp_path, {})
        assert "hunter2" not in str(caught.value) and "chat_model" in str(caught.value)


def test_further_endpoints_take_what_they_leave_out_from_the_model() -> None:
    model = ChatModelSettings.model_validate(
        {
            "model": "m",
            "base_url": "https://one.example/v1",
            "api_key_env": "ONE",
            "headers": {"X-Key": "$GATEWAY"},
            "requests_per_minute": 60,
            "endpoints": [
                {"api_key_env": "TWO"},
                {"base_url": "https://other.example/v1", "tokens_per_minute": 9, "api_version": date(2024, 10, 21)},
            ],
        }
    )
    first, second, third = model.places
    assert first == model.model_copy(update={"endpoints": ()})
    assert second == first.model_copy(update={"api_key_env": "TWO"})
    assert third.headers == {} and third.api_version == "2024-10-21"
    assert (third.api_key_env, third.requests_per_minute, third.tokens_per_minute) == ("ONE", 60, 9)
    section = Settings.model_validate(
        {"chat_model": model.model_dump(), "reports": {"model": {"base_url": "http://localhost:1/v1"}}}
    )
    assert section.chat_model_for("reports").places[0].headers == {} and not section.chat_model_for("reports").endpoints
    assert section.chat_model_for("extraction") == model


def test_endpoints_and_headers_make_nothing_stale() -> None:
    plain = settings_for_model("m", "v", "http://localhost:1/v1")
    more = {"headers": {"X-Team": "a"}, "endpoints": [{"api_key_env": "TWO"}]}
    values = plain.model_dump(mode="json")
    changed = Settings.model_validate(
        values
        | {name: values[name] | more for name in ("chat_model", "embedding_model", "rerank_model")}
        | {"reports": values["reports"] | {"model": more}}
    )
    for stage in STAGES.values():
        assert code_of(stage, changed) == code_of(stage, plain)
    assert fingerprint_of(changed.embedding_model) == fingerprint_of(plain.embedding_model)
