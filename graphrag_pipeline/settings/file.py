"""Settings file of a root: `settings.yaml`, overridden by the environment.

Keep out: the options themselves (`settings.py`), and texts about them (`rendering.py`).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from graphrag_pipeline.errors import SettingsError
from graphrag_pipeline.nearest import nearest_name, suggest
from graphrag_pipeline.settings.removed import is_known, move_options
from graphrag_pipeline.settings.settings import SETTINGS_FILE, Settings
from graphrag_pipeline.settings.urls import mask_url, mask_urls

if TYPE_CHECKING:
    import yaml
    from pydantic_core import ErrorDetails

ENVIRONMENT_PREFIX = "GRAPHRAG__"


@dataclass(frozen=True)
class ReadSettings:
    """The settings of a root, and where their values come from.

    Attributes:
        lines: (section, option) -> line of the file, from 1.
        variables: (section, option) -> name of the variable that sets it.
        ignored: options of earlier releases with a value that does nothing now.
    """

    settings: Settings
    lines: Mapping[tuple[str, ...], int]
    variables: Mapping[tuple[str, ...], str]
    ignored: tuple[str, ...]


def load_settings(root: Path, environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings of a root from `settings.yaml`, overridden by `GRAPHRAG__SECTION__KEY` variables.

    Every stage and check reads them. Equal texts and variables give the same frozen object, without parsing again.

    Raises:
        SettingsError: the file is missing or not YAML, a key is unknown (the nearest valid one is named), or a value
            does not validate.
    """
    return read_settings(root, environment).settings


def read_settings(root: Path, environment: Mapping[str, str] | None = None) -> ReadSettings:
    """Read what `load_settings` reads, with the places of the values."""
    path = root / SETTINGS_FILE
    found = os.environ if environment is None else environment
    variables = sorted((name, value) for name, value in found.items() if name.startswith(ENVIRONMENT_PREFIX))
    return _validate(path, _read_text(path), tuple(variables))


@functools.lru_cache(maxsize=64)
def _validate(path: Path, text: str, environment: tuple[tuple[str, str], ...]) -> ReadSettings:
    values = _parse_sections(path, text)
    storage = values.get("storage")
    is_ignored = isinstance(storage, dict) and storage.get("ignore_environment") is True
    variables = {} if is_ignored else _apply_environment(values, dict(environment))
    ignored = move_options(values)
    try:
        return ReadSettings(Settings.model_validate(values), _find_lines(text), variables, tuple(ignored))
    except ValidationError as error:
        raise SettingsError(_explain(error, path, variables)) from None


def _find_lines(text: str) -> dict[tuple[str, ...], int]:
    """Return the line of each option, from 1; {} for an empty file."""
    import yaml

    document = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    sections = document.value if isinstance(document, yaml.MappingNode) else []
    return {
        (name.value, key.value): key.start_mark.line + 1
        for name, section in sections
        if isinstance(section, yaml.MappingNode)
        for key, _ in section.value
    }


def parse_yaml(text: str) -> Any:
    """Return the plain values of a YAML text.

    Every stage reads settings, so libyaml is used if it is installed: it is ten times as fast.

    Raises:
        yaml.YAMLError: the text is not valid YAML, or a key is there twice, of which YAML would drop the first.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        node = loader.get_single_node()
        _refuse_repeated_keys(node)
        return None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()


def _refuse_repeated_keys(node: yaml.Node | None) -> None:
    import yaml

    waiting, seen = [node], set[int]()
    while waiting:
        node = waiting.pop()
        if node is None or id(node) in seen or isinstance(node, yaml.ScalarNode):
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
            continue
        first: dict[tuple[str, str], int] = {}
        for key, value in node.value:
            waiting.append(value)
            line = key.start_mark.line + 1
            name = (key.tag, key.value) if isinstance(key, yaml.ScalarNode) else (key.tag, str(id(key)))
            if name in first:
                raise yaml.MarkedYAMLError(
                    f"line {line}: {key.value!r} is there already, in line {first[name]}; put both together under one "
                    f"{key.value!r}, or delete one"
                )
            first[name] = line


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SettingsError(
            f"`{path}` not found; make a root with `graphrag-pipeline init {path.parent}`, or pass one with `--root`"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"`{path}` cannot be read as UTF-8 text ({error}); repair or replace the file") from None


def _parse_sections(path: Path, text: str) -> dict[str, Any]:
    import yaml

    try:
        values = parse_yaml(text)
    except yaml.YAMLError as error:
        raise SettingsError(f"`{path}` is not valid YAML: {error}") from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise SettingsError(f"`{path}` must hold sections such as `text_units:`, found {type(values).__name__}")
    # YAML reads a section whose options are all commented out as null; it gets its defaults.
    return {str(key): {} if value is None else value for key, value in values.items()}


def _apply_environment(values: dict[str, Any], environment: Mapping[str, str]) -> dict[tuple[str, ...], str]:
    """Set values from the variables; returns the name of the variable behind each (section, key)."""
    import yaml

    variables: dict[tuple[str, ...], str] = {}
    for name in sorted(environment):
        parts = name[len(ENVIRONMENT_PREFIX) :].lower().split("__")
        if len(parts) != 2 or not all(parts):
            raise SettingsError(
                f"{name}: expected {ENVIRONMENT_PREFIX}SECTION__KEY, such as GRAPHRAG__TEXT_UNITS__SIZE"
            )
        section, key = parts
        unknown = None if is_known(section, key) else _unknown_key((section, key))
        if unknown:
            raise SettingsError(f"environment variable {name}: {unknown}")
        target = values.setdefault(section, {})
        if not isinstance(target, dict):
            raise SettingsError(
                f"{SETTINGS_FILE}: section {section!r} must hold options, found {mask_urls(repr(target))}"
            )
        try:
            target[key] = parse_yaml(environment[name])
        except yaml.YAMLError as error:
            raise SettingsError(f"environment variable {name}: {error}") from None
        variables[section, key] = name
    return variables


def _explain(error: ValidationError, path: Path, variables: Mapping[tuple[str, ...], str]) -> str:
    lines = []
    for problem in error.errors():
        where = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            lines.append(_unknown_key(tuple(str(part) for part in problem["loc"])) or f"unknown key {where!r}")
        else:
            variable = variables.get(tuple(str(part) for part in problem["loc"][:2]))
            source = f" in environment variable {variable}" if variable else ""
            hint = "; quote a text that holds ': '" if variable and isinstance(problem["input"], dict) else ""
            lines.append(f"{where or 'settings'}: {problem['msg']} (found {_show(problem)}{source}{hint})")
    return f"{path}: " + "; ".join(lines)


def _show(problem: ErrorDetails) -> str:
    """Return the found value as text, without possible secrets."""
    value = problem["input"]
    if isinstance(value, dict):
        return "'this section'"
    if problem["loc"][-1:] == ("api_key_env",):
        return "a value that is not shown"
    return repr(mask_url(value)) if isinstance(value, str) else mask_urls(repr(value))


def _unknown_key(location: tuple[str, ...]) -> str | None:
    """Return what is wrong with a key path, with the nearest valid one; None if it is valid."""
    sections = Settings.model_fields
    if location[0] not in sections:
        return f"unknown section {location[0]!r}{suggest(location[0], sections)}"
    options = type(sections[location[0]].default).model_fields
    if len(location) > 1 and location[1] not in options:
        homes = [name for name in sections if location[1] in type(sections[name].default).model_fields]
        is_of_others = homes and not nearest_name(location[1], options)
        advice = f"; it is an option of {', '.join(homes)}" if is_of_others else suggest(location[1], options)
        return f"unknown key {'.'.join(location)!r}{advice}"
    return None
