"""The version of the files of a root as a whole, and the steps that move an older root to the version of this release.

Most changes of a format need no step here. An older JSON file is changed in memory whenever it is read (`formats.py`),
and a stage table with other columns is built again. A step is for what neither can do, such as another place of files.

`snapshots/root.json` holds the version; a root without it has version 1. Steps run once, in order, under the lock of
the writer. The version is written after each step, so that a step that was interrupted runs again: it must leave alone
what it has changed already, and remove the old form of a file only after the new one is whole. Keep out: what steps do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filesystem.sealed_json import seal
from graphrag_pipeline.storage.formats import FileFormat
from graphrag_pipeline.storage.locks import one_writer

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RootStep:
    """A change of the files of a root from one version to the next.

    Attributes:
        release: the release that makes it, and the first one that reads the result.
        does: what it does, for the user, such as "moves vectors to their own folder".
        change: makes it in a root; runs again after an interruption.
    """

    release: str
    does: str
    change: Callable[[Path], None]


STEPS: tuple[RootStep, ...] = ()
"""All steps, oldest first: the first one moves a root from version 1 to 2. Never change or remove one."""


def move_to_this_version(root: Path, steps: Sequence[RootStep] | None = None) -> None:
    """Move an older root to the version of this release; a root of this version costs one look at a file.

    Args:
        steps: None is `STEPS`.

    Raises:
        NewerFormatError: a newer release wrote the root.
        PipelineError: a step failed, or this user may not write into the root; the message names the way out.
    """
    known = STEPS if steps is None else tuple(steps)
    if _read_version(root, known) > len(known):
        return
    try:
        with one_writer(root):
            if not _has_index(root):  # a new one, which this release will write
                _record(root, known)
            for number in range(_read_version(root, known), len(known) + 1):
                _take_step(root, known[:number])
    except PipelineError as error:
        raise PipelineError(f"{_describe_older(root, known)}. Here it failed: {error}") from None


def _take_step(root: Path, steps: Sequence[RootStep]) -> None:
    """Make the last of these steps, and record it once its result is on disk."""
    _log.warning("`%s`: release %s %s, since an earlier release wrote it", root, steps[-1].release, steps[-1].does)
    try:
        steps[-1].change(root)
    except OSError as error:
        raise files.write_error(root, error) from error
    files.flush_to_disk(root)
    _record(root, steps)


def _record(root: Path, steps: Sequence[RootStep]) -> None:
    path = _path(root)
    path.parent.mkdir(parents=True, exist_ok=True)
    files.replace_durably(path, seal({**_format_of(steps).mark, "version": len(steps) + 1}))


def _describe_older(root: Path, steps: Sequence[RootStep]) -> str:
    version = _read_version(root, steps)
    left = ", then it ".join(step.does for step in steps[version - 1 :])
    return (
        f"`{root}` has version {version}, of an earlier release, and this release reads version {len(steps) + 1}. Run "
        f"`graphrag-pipeline verify` once as a user who may write there: it {left}"
    )


def _read_version(root: Path, steps: Sequence[RootStep]) -> int:
    path = _path(root)
    try:
        return int(_format_of(steps).read(path.read_bytes(), path)["version"])
    except FileNotFoundError:
        return 1
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PipelineError(
            f'`{path}` is damaged ({error}); write {{"version": {len(steps) + 1}}} into it if this release has opened '
            "the root before, else restore it from a copy"
        ) from None


def _format_of(steps: Sequence[RootStep]) -> FileFormat:
    return FileFormat(len(steps) + 1, steps[-1].release if steps else "", dict.fromkeys(range(1, len(steps) + 1), dict))


def _path(root: Path) -> Path:
    return root / "snapshots" / "root.json"


def _has_index(root: Path) -> bool:
    return any((root / name).is_dir() for name in ("snapshots", "tables", "heads"))
