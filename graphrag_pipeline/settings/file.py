"""Read a settings file, with options of earlier releases; find the line of an option, and edit the file.

Remove an option: take it out of its section, make its default a constant where it is used, and add it to
`REMOVED_OPTIONS`. An option that was part of the version of a stage stays part of it, so that an index stays fresh.
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
from graphrag_pipeline.settings.section import THRESHOLDS
from graphrag_pipeline.settings.settings import REPLY_TOKENS, SEARCH_SETTINGS, SETTINGS_FILE, Settings
from graphrag_pipeline.settings.urls import mask_url, mask_urls

if TYPE_CHECKING:
    import yaml
    from pydantic_core import ErrorDetails

_ENDPOINT = {"use_spans": False, "backoff_s": 0.5}
REMOVED_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "input": {"max_unzipped_ratio": 100, "max_nesting": 100},
    "storage": {"verify_days": 30.0},
    "text_units": {"min_fill": 0.6},
    "reports": {"max_findings": 8},
    "publishing": {"golden_k": 5, "max_named_drop": None},
    "quality": {"n_compared_entities": 500, "duplicate_similarity": 0.95, "n_compared_text_units": 25},
    "schedule": {"retry_after_s": 300},
    "notifications": {"timeout_s": 10.0},
    "local_search": {"excerpt_tokens": 100},
    "global_search": {
        "nearest_reports": None,
        "best_roots": None,
        "overview_roots": None,
        "filtered_texts": True,
        "max_concurrency": None,
        "max_rated_per_level": None,
        "decline_unknown": None,
    },
    "lazy_search": {"max_failures": 5, "batch_size": 5},
    "answers": {"max_passages": 5, "check_uncited": True, "max_sentences": None},
    "evaluation": {"seed": 86, "language": "auto", "n_personas": 5, "n_tasks": 5},
    "tuning": {
        "max_context_tokens": 4000,
        "max_types": 12,
        "max_example_tokens": 150,
        "sample": "random",
        "size": 15,
        "seed": 86,
        "n_examples": 3,
    },
    "chat_model": _ENDPOINT,
    "embedding_model": {**_ENDPOINT, "completion_price": None, "averaging": "by_tokens"},
    "rerank_model": {
        **_ENDPOINT,
        "api_version": None,
        "tokens_per_minute": None,
        "completion_price": None,
        "max_attempts": 3,
        "max_document_tokens": 2000,
    },
}
"""Section -> option that does nothing now -> its last default."""

_IN_VERSIONS = {"text_units": "min_fill", "reports": "max_findings"}
"""Section -> the option that was part of the version of stages."""


def result_options(settings: Settings, name: str) -> dict[str, Any]:
    """Return the options of a section that change a result, with the constants that were options once."""
    section = getattr(settings, name)
    values: dict[str, Any] = section.result_options()
    if option := _IN_VERSIONS.get(name):
        values[option] = REMOVED_OPTIONS[name][option]
    if name in REPLY_TOKENS and section.uses_model:
        values["max_reply_tokens"] = settings.own_reply_tokens(name)
    return values


def move_options(values: dict[str, Any]) -> list[str]:
    """Take options of earlier releases out of the values of a file, and put those with another place there.

    Returns:
        "section.option" of each with a value that was not its default and does nothing now.
    """
    ignored = []
    for name, section in values.items():
        if not isinstance(section, dict):
            continue
        for option, default in REMOVED_OPTIONS.get(name, {}).items():
            if section.pop(option, default) != default:
                ignored.append(f"{name}.{option}")
        place, defaults = _new_place(name)
        for option in [option for option in section if option in defaults]:
            value, default = section.pop(option), defaults[option]
            if value != (list(default) if isinstance(default, tuple) else default):
                section[place] = {option: value, **(section.get(place) or {})}
    return ignored


def is_known(section: str, option: str) -> bool:
    """Return whether earlier releases had an option that is none of the section now."""
    return option in REMOVED_OPTIONS.get(section, {}) or option in _new_place(section)[1]


def _new_place(section: str) -> tuple[str, Mapping[str, Any]]:
    """Return the option of a section that holds what were options once, and these with their defaults."""
    method = section.removesuffix("_search")
    if section.endswith("_search") and method in SEARCH_SETTINGS:
        fields = SEARCH_SETTINGS[method].model_fields
        own = type(Settings.model_fields[section].default).model_fields
        return "for_questions", {name: field.default for name, field in fields.items() if name not in own}
    if section == "quality":
        return "thresholds", THRESHOLDS
    return "model", {"max_reply_tokens": REPLY_TOKENS[section]} if section in REPLY_TOKENS else {}


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
    if not {"api_key_env", "headers", "endpoints"}.isdisjoint(problem["loc"]):
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


Options = Mapping[tuple[str, str], Any]
"""(section, key) -> plain value."""

MISSING = object()
"""Value of an option that the text does not hold."""


def read_options(text: str, names: Options | list[tuple[str, str]]) -> dict[tuple[str, str], Any]:
    """Return the values of options in the text, `MISSING` for those that it does not hold."""
    values = parse_yaml(text) or {}
    sections = {section: values.get(section) or {} for section, _ in names}
    return {(section, key): sections[section].get(key, MISSING) for section, key in names}


def set_options(text: str, options: Options) -> str:
    """Return the text with these options; the value `MISSING` removes one.

    Raises:
        SettingsError: the layout does not allow the change, such as an anchor that several options share.
    """
    wanted = parse_yaml(text) or {}
    for (section, key), value in options.items():
        text = _set_option(text, section, key, value)
        inner = dict(wanted.get(section) or {})
        inner.pop(key, None)
        wanted[section] = inner if value is MISSING else inner | {key: value}
    found = parse_yaml(text) or {}
    if {name: value for name, value in found.items() if value} != {n: value for n, value in wanted.items() if value}:
        names = ", ".join(f"{section}.{key}" for section, key in options)
        raise SettingsError(f"the layout of settings.yaml does not allow to set {names} there; edit the file by hand")
    return text


def _set_option(text: str, section: str, key: str, value: Any) -> str:
    import yaml

    document = yaml.compose(text)
    found = _find(document, section)
    if found is None:
        return text if value is MISSING else f"{_with_newline(text)}{section}:\n  {key}: {_render(value)}\n"
    name, options = found
    option = _find(options, key)
    if option is None:
        return text if value is MISSING else _insert(text, name, options, f"{key}: {_render(value)}")
    if value is not MISSING:
        return _replace(text, *option, _render(value))
    return _remove(text, options, *option)


def _find(node: Any, name: str) -> tuple[Any, Any] | None:
    """Return the nodes of a name and its value in a mapping."""
    pairs = node.value if node is not None and node.id == "mapping" else []
    return next(((key, value) for key, value in pairs if key.value == name), None)


def _replace(text: str, key: Any, value: Any, rendered: str) -> str:
    """Replace the value behind a key, from the colon to its last character."""
    return f"{text[: _after_colon(text, key)]} {rendered}{text[_end_of(value) :]}"


def _after_colon(text: str, key: Any) -> int:
    return text.index(":", key.end_mark.index) + 1


def _end_of(node: Any) -> int:
    """Return the end of a value; the mark of a block is behind the comments below it."""
    if node.id == "scalar" or node.flow_style or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end_of(last[1] if node.id == "mapping" else last)


def _insert(text: str, name: Any, options: Any, line: str) -> str:
    """Put an option first in its section."""
    if options.id == "mapping" and options.flow_style:
        place = options.start_mark.index + 1
        return f"{text[:place]}{line}{', ' if options.value else ''}{text[place:]}"
    if options.id == "mapping" and options.value:
        place = options.value[0][0].start_mark.index
        return f"{text[:place]}{line}\n{' ' * options.value[0][0].start_mark.column}{text[place:]}"
    place = _after_colon(text, name)
    end = max(place, _end_of(options)) if options.value else place  # `section: null`, or nothing
    return f"{text[:place]}\n  {line}{text[end:]}"


def _remove(text: str, options: Any, key: Any, value: Any) -> str:
    """Remove an option that `_insert` put there: its line, or its part of a section in braces."""
    start, end = key.start_mark.index, _end_of(value)
    if options.flow_style:
        rest = text[end:]
        return text[:start] + rest[len(rest) - len(rest.lstrip(", ")) :]
    start = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", end - 1) + 1
    return text[:start] + (text[stop:] if stop else "")


def _render(value: Any) -> str:
    import yaml

    rendered = yaml.safe_dump(value, default_flow_style=True, width=1_000_000, allow_unicode=True)
    return rendered.removesuffix("...\n").strip()


def _with_newline(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"
