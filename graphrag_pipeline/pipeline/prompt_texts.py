"""The texts of prompts that results were made with, kept by their hash, and the difference to the present text.

A head names the hash of a prompt only. The texts lie in the cache folder. Without them a difference cannot be
shown, and nothing else is lost. Keep out: which stages a changed prompt makes stale (`code_changes.py`).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.models.prompts import load_prompt
from graphrag_pipeline.pipeline.code_changes import CodeChange
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stage_code import prompts_of, uses_chat_model
from graphrag_pipeline.pipeline.stages import STAGES, Stage

_PROMPT = "prompt "
"""How the names of prompts begin in `CodeChange.name`."""


def keep_prompts(root: Root, stage: Stage) -> None:
    """Keep the present texts of the prompts that a stage sends to its model."""
    if not uses_chat_model(stage, root.settings):
        return
    code = root.code_of(stage)
    for name in prompts_of(stage, root.settings):
        path = _path_of(root, str(code[f"{_PROMPT}{name}"]))
        if not path.exists():
            files.replace(path, root.prompt(name).text.encode())


def check_prompts(root: Root, stages: Iterable[Stage]) -> None:
    """Refuse to run stages whose prompts cannot be used.

    Raises:
        PipelineError: a prompt is not UTF-8 text, lacks a required placeholder, or has an unknown one.
    """
    for name in dict.fromkeys(name for stage in stages for name in prompts_of(stage, root.settings)):
        root.prompt(name)


def find_prompt_problem(root: Root) -> str:
    """Return why a prompt that a stage sends cannot be used; "" if all can."""
    try:
        check_prompts(root, STAGES.values())
    except PipelineError as error:
        return str(error)
    return ""


def diff_prompts(root: Root, changes: Iterable[CodeChange]) -> dict[str, str]:
    """Return prompt -> how its text differs, as a unified diff, for the changed prompts whose old text is known."""
    return {change.name: text for change in changes if (text := diff_prompt(root, change))}


def diff_prompt(root: Root, change: CodeChange) -> str:
    """Return how the text of a changed prompt differs, as a unified diff.

    Returns:
        "" if the change is not one of a prompt, or if the old text is not known.
    """
    if not change.name.startswith(_PROMPT) or change.old is None or change.new is None:
        return ""
    name = change.name.removeprefix(_PROMPT)
    old = _find_text(root, name, str(change.old))
    if old is None:
        return ""
    try:
        new = root.prompt(name).text
    except PipelineError:
        return ""
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), "prompt of the index", f"present {name}", "", "", 2, ""
    )
    return "\n".join(lines)


def _find_text(root: Root, name: str, version: str) -> str | None:
    path = _path_of(root, version)
    if path.exists():
        return path.read_text(encoding="utf-8")
    default = load_prompt(None, name)
    return default.text if default.sha256.startswith(version) else None


def _path_of(root: Root, version: str) -> Path:
    return root.cache_folder / "prompts" / f"{version}.txt"
