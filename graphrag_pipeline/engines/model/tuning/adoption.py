"""Adopting a tuned set: the settings name it, its entity types replace the present ones, and it can be taken back.

Nothing is overwritten but the options in `settings.yaml`. `prompts/tuned/adopted.json` keeps their former values, and
the former text as long as nothing else changes in the file. Keep out: what a set holds (`pipeline/tuned_sets.py`).
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphrag_pipeline.engines.model.tuning.tuner import TUNED_PROMPTS
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.inspection.costs import StageEstimate
from graphrag_pipeline.inspection.estimates import estimate_index
from graphrag_pipeline.inspection.extraction_room import explain_excess
from graphrag_pipeline.pipeline.detected_input import detect_input
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline.pipeline.staleness import StalePartition, find_stale, group_stale
from graphrag_pipeline.pipeline.tuned_sets import TUNED_FOLDER, TunedSet
from graphrag_pipeline.settings.file import ENVIRONMENT_PREFIX, MISSING, load_settings, read_options, set_options
from graphrag_pipeline.settings.settings import SETTINGS_FILE, Settings

_RECORD = "adopted.json"
ADOPTED = ("tuning", "adopted")
_USERS = ("extracted_graph", "summarized_descriptions", "community_reports")


@dataclass(frozen=True)
class Effect:
    """What a change of the settings makes stale or fresh.

    Attributes:
        stale: stage and reasons -> partitions, of those that are fresh now.
        n_stale_before: partitions that are stale now.
        n_becoming_fresh: those of them that are fresh then; None if the prompts in force cannot be read, so that
            nothing tells which are stale now.
        estimates: model calls of the next index run, of all that is stale then.
    """

    stale: dict[tuple[str, str], list[str]]
    n_stale_before: int
    n_becoming_fresh: int | None
    estimates: tuple[StageEstimate, ...]


def options_of(tuned: TunedSet) -> dict[tuple[str, str], Any]:
    """Return the options that adopting a set changes."""
    options: dict[tuple[str, str], Any] = {ADOPTED: tuned.name}
    for section, values in tuned.settings.items():
        options |= {(section, key): value for key, value in values.items()}
    return options


def root_with(root: Root, tuned: TunedSet) -> Root:
    """Return the root as it would be with a set adopted; nothing is written."""
    values = root.settings.model_dump(mode="json")
    for (section, key), value in options_of(tuned).items():
        values[section][key] = value
    return _with_settings(root, Settings.model_validate(values))


def _with_settings(root: Root, settings: Settings) -> Root:
    changed = copy.copy(root)
    for name in ("models", "embedder"):
        changed.__dict__.pop(name, None)
    changed.__dict__["settings"] = settings
    return changed


def preview(root: Root, changed: Root) -> Effect:
    """Return what becomes stale in a changed root, and what indexing it would cost."""
    manifests = detect_input(root)
    after = find_stale(changed, manifests)
    try:
        stale_now, is_whole = find_stale(root, manifests), True
    except PipelineError:
        if not root.settings.tuning.adopted:
            raise
        stale_now, is_whole = after, False  # the prompts of the adopted set cannot be read
    before = {(item.stage, item.partition) for item in stale_now}
    caused: list[StalePartition] = [item for item in after if (item.stage, item.partition) not in before]
    n_fresh = len(before - {(item.stage, item.partition) for item in after}) if is_whole else None
    return Effect(group_stale(caused), len(before), n_fresh, tuple(estimate_index(changed, after)))


def refuse_too_long(changed: Root, name: str) -> None:
    """Raise if the extraction prompt of a set does not fit the window of the model.

    Args:
        changed: the root with the set adopted, from `root_with`.

    Raises:
        PipelineError: with the figures.
    """
    if excess := explain_excess(changed):
        raise PipelineError(
            f"`{name}` is not adopted, because text units of full length would fail: {excess}. Or write a set for this "
            "window: `graphrag-pipeline tune`, which chooses the number of examples by it"
        )


def list_unused(settings: Settings) -> list[str]:
    """Return a line for each stage that reads no prompt, so that a set changes nothing there."""
    stages = [STAGES[name] for name in _USERS]
    users = [(name, stage.engine) for stage in stages for name in stage.prompts if name in TUNED_PROMPTS]
    return [
        f"{section}.engine is {getattr(settings, section).engine}: the tuned `{name}` is not used"
        for name, section in users
        if not getattr(settings, section).uses_model
    ]


# ----------------------------------------------------------------------------------------------------- adopt and revert


def adopt(root: Root, tuned: TunedSet) -> list[str]:
    """Write the options of a set into `settings.yaml`; return them as lines.

    Raises:
        PipelineError: another set is adopted, an environment variable overrides an option, or the file cannot be
            changed.
    """
    if root.settings.tuning.adopted:
        raise PipelineError(
            f"the tuned set `{root.settings.tuning.adopted}` is adopted; run `graphrag-pipeline tune revert` first"
        )
    options = options_of(tuned)
    _refuse_overridden(options)
    before = _read_settings(root)
    after = set_options(before, options)
    old = {name: value for name, value in read_options(before, list(options)).items() if value is not MISSING}
    record = {
        "name": tuned.name,
        "text": before,
        "after": hashlib.sha256(after.encode()).hexdigest(),
        "old": [[*name, old[name]] for name in options if name in old],
        "new": [[*name, value] for name, value in options.items()],
    }
    text = json.dumps(record, ensure_ascii=False, indent=1, sort_keys=True)
    files.replace(_record_path(root.path), f"{text}\n".encode())
    _write_settings(root, after)
    return [f"{section}.{key}: {value}" for (section, key), value in options.items()]


def reverted_settings(root: Root) -> tuple[str, str, list[str]]:
    """Return the name of the adopted set, the text of `settings.yaml` without it, and lines on what stays.

    Raises:
        PipelineError: no set is adopted, or the record of the former values is missing.
    """
    name = root.settings.tuning.adopted
    if not name:
        raise PipelineError("no tuned set is adopted; `graphrag-pipeline tune list` shows the sets of this root")
    record = _read_record(root.path, name)
    present = _read_settings(root)
    if hashlib.sha256(present.encode()).hexdigest() == record["after"]:
        return name, record["text"], []
    old = {(section, key): value for section, key, value in record["old"]}
    new = {(section, key): value for section, key, value in record["new"]}
    found = read_options(present, list(new))
    unchanged = {option: old.get(option, MISSING) for option, value in new.items() if found[option] == value}
    kept = [
        f"{'.'.join(option)} was changed since and stays: {found[option]}" for option in new if option not in unchanged
    ]
    return name, set_options(present, unchanged), kept


def revert(root: Root) -> tuple[str, list[str]]:
    """Take the adopted set back; return its name and lines on options that stay because they were changed since.

    Raises:
        PipelineError: no set is adopted, or the file cannot be changed.
    """
    name, text, kept = reverted_settings(root)
    _write_settings(root, text)
    _record_path(root.path).unlink(missing_ok=True)
    return name, kept


def root_without(root: Root) -> Root:
    """Return the root as it would be with the adopted set taken back; nothing is written."""
    _, text, _ = reverted_settings(root)
    changed = [(section, key) for section, key, _ in _read_record(root.path, root.settings.tuning.adopted)["new"]]
    values, defaults = root.settings.model_dump(mode="json"), Settings().model_dump(mode="json")
    for (section, key), value in read_options(text, changed).items():
        values[section][key] = defaults[section][key] if value is MISSING else value
    return _with_settings(root, Settings.model_validate(values))


def _refuse_overridden(options: Iterable[tuple[str, str]]) -> None:
    for section, key in options:
        variable = f"{ENVIRONMENT_PREFIX}{section}__{key}".upper()
        if variable in os.environ:
            raise PipelineError(f"the environment variable {variable} overrides settings.yaml; unset it, then adopt")


def _read_settings(root: Root) -> str:
    return root.read_file(SETTINGS_FILE).decode("utf-8-sig")


def _write_settings(root: Root, text: str) -> None:
    """Write `settings.yaml` and check that it can be read."""
    files.replace(root.path / SETTINGS_FILE, text.encode())
    load_settings(root.path)


def _record_path(root: Path) -> Path:
    return root / TUNED_FOLDER / _RECORD


def _read_record(root: Path, name: str) -> dict[str, Any]:
    path = _record_path(root)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        record = {"problem": str(error)}
    if record.get("name") != name:
        raise PipelineError(
            f"`{path}` does not hold the settings from before `{name}` was adopted; in settings.yaml, empty "
            "`tuning.adopted` and set `extraction.entity_types` by hand"
        )
    return record
