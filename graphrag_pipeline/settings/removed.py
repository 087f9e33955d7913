"""Options of earlier releases, which files may still have: those that do nothing now, and those with another place.

Remove an option: take it out of its section, make its default a constant where it is used, and add it here. An option
that was part of the version of a stage stays part of it, so that an index stays fresh. Keep out: reading the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphrag_pipeline.settings.quality import THRESHOLDS
from graphrag_pipeline.settings.settings import REPLY_TOKENS, SEARCH_SETTINGS, Settings

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
        "decline_unknown": None,
    },
    "lazy_search": {"max_failures": 5, "batch_size": 5},
    "answers": {"max_passages": 5, "check_uncited": True, "max_sentences": None},
    "evaluation": {"seed": 86, "language": "auto"},
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
