"""Changes of code between a head and now: prompts, models, settings, packages and schemas by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphrag_pipeline.pipeline.data_versions import owned_tables
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stage_code import UNUSABLE
from graphrag_pipeline.pipeline.stages import CANDIDATE, STAGES, Stage
from graphrag_pipeline.storage.table_store import Head, code_version_of

_HASHED = ("schema", "prompt ")
"""Beginnings of names whose values are hashes, which say nothing to a reader."""


@dataclass(frozen=True)
class CodeChange:
    """A prompt, model, setting, package or schema that differs from the one a partition was made with.

    Attributes:
        name: from `stage_code.code_of`, such as "prompt community_report" or "reports.max_words".
        old, new: values, or hashes of prompts; None if the name did not exist.
    """

    name: str
    old: Any
    new: Any

    def to_line(self) -> str:
        if str(self.new).startswith(UNUSABLE):
            return f"{self.name} {self.new}"
        if self.name.startswith(_HASHED):
            return (
                f"{self.name} {'is new' if self.old is None else 'is not used now' if self.new is None else 'changed'}"
            )
        return f"{self.name}: {show_value(self.old)} -> {show_value(self.new)}"


def show_value(value: Any) -> str:
    """Return a value as settings.yaml has it: null, true, [a, b]."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False).replace('"', "")


def find_changed_code(root: Root) -> list[str]:
    """Return the stages that a prompt, a model, a setting or another release made stale, and why."""
    found = []
    for stage in (*STAGES.values(), CANDIDATE):
        code = root.code_of(stage)
        changes = (find_code_changes(root, stage, key, code) for key in stage.partitions(root.settings))
        changed = next((listed for listed in changes if listed), None)
        if changed:
            found.append(f"{stage.name}: {'; '.join(change.to_line() for change in changed)}")
    return found


def find_code_changes(root: Root, stage: Stage, partition: str, code: Mapping[str, Any]) -> list[CodeChange]:
    """Return where the code that made a partition differs from the code now, by name.

    Args:
        code: what the stage depends on now, from `Root.code_of`.
    """
    heads = (root.tables.head(table, partition) for table in owned_tables(stage))
    found: list[CodeChange] = []
    for head in heads:
        found += [change for change in (find_head_changes(head, code) if head else []) if change not in found]
    return found


def find_head_changes(head: Head, code: Mapping[str, Any]) -> list[CodeChange]:
    """Return where the code that made a head differs from the code now, by name."""
    return [] if head.code_version == code_version_of(code) else find_version_changes(head.code, code)


def find_version_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[CodeChange]:
    """Return where two versions of a stage's code differ, by name."""
    changes = (CodeChange(name, old.get(name), new.get(name)) for name in sorted({*old, *new}))
    return [change for change in changes if change.old != change.new]
