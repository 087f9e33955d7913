"""Settings: file, environment, clear errors, and a documented file that loads back."""

from pathlib import Path

import pytest

from graphrag_pipeline.errors import SettingsError
from graphrag_pipeline.settings import Settings
from graphrag_pipeline.settings_file import load_settings, render_settings

SAMPLE = Path(__file__).parents[1] / "data" / "settings.yaml"


def write(folder: Path, text: str) -> Path:
    (folder / "settings.yaml").write_text(text, encoding="utf-8")
    return folder


def test_rendered_settings_document_every_option_and_load_back(tmp_path: Path) -> None:
    text = render_settings()
    assert load_settings(write(tmp_path, text), {}) == Settings()
    for name, section in Settings.model_fields.items():
        for key, field in type(section.default).model_fields.items():
            assert f"  # {field.description}\n  {key}:" in text, f"{name}.{key} is not documented"


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


@pytest.mark.parametrize(
    ("text", "environment", "expected"),
    [
        ("text_unit:\n  size: 1\n", {}, "unknown section 'text_unit'; did you mean 'text_units'?"),
        ("text_units:\n  sise: 1\n", {}, "unknown key 'text_units.sise'; did you mean 'size'?"),
        ("text_units:\n  size: many\n", {}, "text_units.size: Input should be a valid integer"),
        ("text_units:\n  overlap: 1200\n", {}, "overlap (1200) must be smaller than size x min_fill"),
        ("local_search:\n  community_share: 0.6\n", {}, "must not exceed 1"),
        ("text_units: [1, 2]\n", {}, "text_units: Input should be a valid dictionary"),
        ("- a\n", {}, "must hold sections"),
        ("a: [\n", {}, "not valid YAML"),
        ("", {"GRAPHRAG__TEXT_UNITS__SISE": "1"}, "environment variable GRAPHRAG__TEXT_UNITS__SISE: unknown key"),
        ("", {"GRAPHRAG__TEXT_UNITS__SIZE": "abc"}, "found 'abc' in environment variable GRAPHRAG__TEXT_UNITS__SIZE"),
        ("local_search:\n  strategy: dept_first\n", {}, "'depth_first'"),
        ("", {"GRAPHRAG__TEXT_UNITS": "1"}, "expected GRAPHRAG__SECTION__KEY"),
        ("", {"GRAPHRAG__TEXT_UNITS__SIZE": "["}, "environment variable GRAPHRAG__TEXT_UNITS__SIZE"),
    ],
)
def test_bad_settings_say_what_and_where(tmp_path: Path, text: str, environment: dict[str, str], expected: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(write(tmp_path, text), environment)
    assert expected in str(caught.value)


def test_settings_file_that_is_missing_or_not_text(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="graphrag-pipeline init"):
        load_settings(tmp_path, {})
    (tmp_path / "settings.yaml").write_bytes(b"\xff\xfe\x00\xd8")
    with pytest.raises(SettingsError, match="cannot be read as UTF-8"):
        load_settings(tmp_path, {})


def test_sections_without_options_mean_their_defaults(tmp_path: Path) -> None:
    assert load_settings(write(tmp_path, "text_units:\n"), {}) == Settings()
    assert load_settings(write(tmp_path, ""), {}) == Settings()
