"""Texts about settings: the file that `init` writes, the list of all options, and the JSON schema for editors.

Keep out: reading the file (`file.py`).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from graphrag_pipeline.errors import SettingsError
from graphrag_pipeline.nearest import suggest
from graphrag_pipeline.settings.file import ReadSettings
from graphrag_pipeline.settings.settings import SEARCH_SETTINGS, SETTINGS_FILE, Settings

QUESTIONS = "for_questions"
SCHEMA_FILE = "settings.schema.json"
"""JSON schema of settings.yaml, beside it."""
_MAIN: dict[str, tuple[str, ...]] = {
    "input": ("folder",),
    **dict.fromkeys(
        ("extraction", "resolution", "descriptions", "reports", "embeddings", "rating", "answers"), ("engine",)
    ),
    "chat_model": ("model", "base_url", "api_key_env"),
    "embedding_model": ("model", "base_url", "api_key_env"),
    "schedule": ("watch_input", "run_cron", "cron"),
    "budget": ("max_tokens", "max_cost"),
}
"""Section -> options that every settings.yaml of `init` has."""


@dataclass(frozen=True)
class ShownOption:
    """One option of a root.

    Attributes:
        name: "section.option".
        source: `default`, `line 4` of settings.yaml, or the name of the environment variable.
        meaning: one line.
    """

    name: str
    value: Any
    default: Any
    source: str
    meaning: str

    def to_line(self) -> str:
        """Return `name: value  (source; default value)  meaning`."""
        default = "" if self.value == self.default else f"; default {_in_yaml(self.default)}"
        return f"{self.name}: {_in_yaml(self.value)}  ({self.source}{default})  {self.meaning}"


def render_settings(settings: Settings | None = None) -> str:
    """Return the text of a `settings.yaml`: the main options, and those that differ from their defaults."""
    settings = settings or Settings()
    lines = [
        f"# yaml-language-server: $schema={SCHEMA_FILE}",
        "# Other options have their defaults; `graphrag-pipeline settings show --all` lists them. A variable",
        "# GRAPHRAG__SECTION__KEY, such as GRAPHRAG__TEXT_UNITS__SIZE=600, overrides this file.",
    ]
    for name, field in Settings.model_fields.items():
        section = getattr(settings, name)
        fields = type(section).model_fields
        shown = {
            key: getattr(section, key)
            for key in fields
            if key in _MAIN.get(name, ()) or getattr(section, key) != getattr(field.default, key)
        }
        if not shown:
            continue
        if len(shown) == 1:
            lines.append(f"{name}: {_in_yaml(shown)}  # {_short(fields[next(iter(shown))])}")
        else:
            lines.append(f"{name}:  # {type(section).__doc__}")
            lines += [f"  {key}: {_in_yaml(value)}  # {_short(fields[key])}" for key, value in shown.items()]
    return "\n".join(lines) + "\n"


@functools.cache
def render_schema() -> str:
    """Return the JSON schema of settings.yaml, which editors complete and check by."""
    schema = Settings.model_json_schema()
    schema["title"] = SETTINGS_FILE
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def list_options(read: ReadSettings, section: str | None = None, is_whole: bool = False) -> Iterator[ShownOption]:
    """Yield the options of one section or of all, in the order of the sections.

    Args:
        is_whole: every option; else the main ones, and those that differ from their defaults.

    Raises:
        SettingsError: no section has the name.
    """
    sections = Settings.model_fields
    if section is not None and section not in sections:
        raise SettingsError(f"unknown section {section!r}{suggest(section, sections)}")
    for name in sections if section is None else (section,):
        for option in _list_section(read, name):
            key = option.name.partition(".")[2]
            if is_whole or option.value != option.default or key in _MAIN.get(name, ()):
                yield option


def _list_section(read: ReadSettings, name: str) -> Iterator[ShownOption]:
    section, default = getattr(read.settings, name), Settings.model_fields[name].default
    for key, field in type(section).model_fields.items():
        if key != QUESTIONS:
            value, usual = getattr(section, key), getattr(default, key)
            yield ShownOption(f"{name}.{key}", value, usual, _find_source(read, name, key), _meaning(field))
    if name.endswith("_search"):
        for key, field in SEARCH_SETTINGS[name.removesuffix("_search")].model_fields.items():
            if key not in type(section).model_fields:
                is_set, usual = key in section.for_questions, field.default
                value = section.for_questions.get(key, usual)
                source = _find_source(read, name, key, QUESTIONS) if is_set else "default"
                yield ShownOption(f"{name}.{QUESTIONS}.{key}", value, usual, source, _meaning(field))


def _find_source(read: ReadSettings, section: str, *keys: str) -> str:
    """Return where the value of an option comes from, under the first of its names that is found."""
    for key in keys:
        if variable := read.variables.get((section, key)):
            return variable
        if line := read.lines.get((section, key)):
            return f"line {line}"
    return "default"


def _meaning(field: FieldInfo) -> str:
    return field.description or ""


def _short(field: FieldInfo) -> str:
    """Return the first sentence of the meaning."""
    first, end, _ = _meaning(field).partition(". ")
    return first + end.strip()


def _as_plain(value: Any) -> Any:
    return value.model_dump(mode="json", exclude_defaults=True) if isinstance(value, BaseModel) else str(value)


def _in_yaml(value: Any) -> str:
    """Return a value on one line of YAML."""
    import yaml

    plain = json.loads(json.dumps(value, default=_as_plain))  # tuples and dates as YAML has them
    rendered = yaml.safe_dump(plain, default_flow_style=True, width=1_000_000, allow_unicode=True, sort_keys=False)
    return rendered.removesuffix("...\n").strip()
