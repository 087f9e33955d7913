"""Changes of single options in the text of `settings.yaml`; comments, order and all other options stay.

YAML's own parser finds the places, so any valid layout can be edited. Keep out: which options to change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphrag_pipeline.errors import SettingsError
from graphrag_pipeline.settings.file import parse_yaml

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
