"""Texts about settings: the file of `init`, the list of options, the schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphrag_pipeline.errors import SettingsError
from graphrag_pipeline.settings.file import ENVIRONMENT_PREFIX, load_settings, parse_yaml, read_settings
from graphrag_pipeline.settings.presets import PRESETS, settings_for_model
from graphrag_pipeline.settings.rendering import SCHEMA_FILE, list_options, render_schema, render_settings
from graphrag_pipeline.settings.settings import Settings


def write(folder: Path, text: str) -> Path:
    (folder / "settings.yaml").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("preset", [None, *PRESETS])
def test_the_file_of_init_has_at_most_40_lines(preset: str | None, tmp_path: Path) -> None:
    url = "http://127.0.0.1:1/v1"
    settings = settings_for_model("chat", "vectors", url, preset=PRESETS[preset]) if preset else Settings()
    window = settings.chat_model.model_copy(update={"context_window": 8192})  # as `init` reads it from a local server
    settings = settings.model_copy(update={"chat_model": window})
    text = render_settings(settings)
    assert len(text.splitlines()) <= 40
    assert text.startswith(f"# yaml-language-server: $schema={SCHEMA_FILE}\n")
    assert load_settings(write(tmp_path, text), {}) == settings
    for section in ("input", "extraction", "chat_model", "schedule", "budget"):
        assert f"\n{section}:" in text


def test_every_option_is_listed_with_the_source_of_its_value(tmp_path: Path) -> None:
    text = "text_units:\n  size: 800\nlocal_search: {for_questions: {now: 2025-01-31}, column_delimiter: tab}\n"
    variable = f"{ENVIRONMENT_PREFIX}TEXT_UNITS__OVERLAP"
    read = read_settings(write(tmp_path, text), {variable: "50"})
    options = {option.name: option for option in list_options(read, is_whole=True)}
    assert {f"{name}.{key}" for name, field in Settings.model_fields.items() for key in type(field.default).model_fields
            if key != "for_questions"} <= options.keys()  # fmt: skip
    assert all(option.meaning and "\n" not in option.to_line() for option in options.values())
    assert options["text_units.size"].to_line().startswith("text_units.size: 800  (line 2; default 1200)  Maximum ")
    assert (options["text_units.overlap"].value, options["text_units.overlap"].source) == (50, variable)
    assert options["text_units.encoding"].source == "default"
    now, delimiter = (options[f"local_search.for_questions.{name}"] for name in ("now", "column_delimiter"))
    assert (str(now.value), now.source, delimiter.value, delimiter.source) == ("2025-01-31", "line 3", "tab", "line 3")


def test_the_short_list_has_the_main_options_and_what_differs(tmp_path: Path) -> None:
    read = read_settings(write(tmp_path, "text_units:\n  size: 800\n"), {})
    names = [option.name for option in list_options(read)]
    assert "text_units.size" in names and "budget.max_cost" in names and "text_units.overlap" not in names
    assert [option.name for option in list_options(read, "text_units")] == ["text_units.size"]


def test_an_unknown_section_names_the_nearest_or_all(tmp_path: Path) -> None:
    read = read_settings(write(tmp_path, ""), {})
    with pytest.raises(SettingsError, match="unknown section 'text_unit'; did you mean 'text_units'"):
        list(list_options(read, "text_unit"))
    with pytest.raises(SettingsError, match="unknown section 'x'; valid: input, storage, "):
        list(list_options(read, "x"))


def test_the_schema_takes_the_file_of_init_and_refuses_unknown_options() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(render_schema())
    jsonschema.validate(parse_yaml(render_settings()), schema)
    for wrong in ({"text_units": {"sise": 1}}, {"text_units": {"size": "many"}}, {"text": {}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)
