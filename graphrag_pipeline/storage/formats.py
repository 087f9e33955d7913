"""Versions of the JSON files of a root and of a shared store, and the names that such files may hold.

The version of a file is the number in `format`; a file without one has format 1. It is read before all other keys,
except the hash of the file (`filesystem/files.py`), since a damaged file must not look like a newer one. A
newer file is refused with the release that reads it, from its key `needs_release`. An older file is changed in memory
by one stated step per version. To change a format: raise the number, name the release, and add the step from the number
before. A root of each release is kept in `graphrag_pipeline_tests/data/roots/`, written by
`graphrag_pipeline_tests/support/kept_root.py`, so that the step is tried on real files.

A name from a file becomes a part of a path. So it is checked: it cannot leave its folder. Keep out: the meaning of the
files.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from graphrag_pipeline.errors import NewerFormatError, PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filesystem.files import read_sealed, seal
from graphrag_pipeline.storage.locks import one_writer

Values = dict[str, Any]
_NAME = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_.-]{0,199}")
ANY_KEY = ""
"""In a shape: any key (`check_shape`)."""
_INT_END = 2**63
_MAX_SHOWN = 60
_RELEASE = re.compile(r"\d+(\.\d+)*[0-9a-z.]*")


@dataclass(frozen=True)
class FileFormat:
    """The version of a kind of file.

    Attributes:
        number: the version that this release writes, and the newest one that it reads.
        needs_release: the first release that reads this version; "" for version 1, which every release reads.
        steps: version -> the function that changes its values into those of the next version.
    """

    number: int = 1
    needs_release: str = ""
    steps: Mapping[int, Callable[[Values], Values]] = field(default_factory=dict)

    @property
    def mark(self) -> Values:
        """The keys that a file of this version begins with; none for version 1."""
        return {"format": self.number, "needs_release": self.needs_release} if self.number > 1 else {}

    def read(self, data: bytes, place: object) -> Values:
        """Return the values of a file in this version, without the keys of the version.

        Args:
            place: path or URL of the file, for messages.

        Raises:
            NewerFormatError: a newer release wrote the file.
            ValueError: the file is damaged.
        """
        return self.convert(read_sealed(data), place)

    def convert(self, values: object, place: object) -> Values:
        """Return values that were read from JSON in this version (`read`)."""
        if not isinstance(values, dict):
            raise ValueError("it holds no JSON object")
        found, release = values.get("format", 1), values.get("needs_release")
        if not isinstance(found, int) or found < 1:
            raise ValueError(f"its format is {found!r}")
        if found > self.number:
            raise NewerFormatError(_describe_newer(place, found, release))
        values = {key: value for key, value in values.items() if key not in ("format", "needs_release")}
        for number in range(found, self.number):
            values = self.steps[number](values)
        return values


def _describe_newer(place: object, found: int, release: object) -> str:
    is_release = isinstance(release, str) and _RELEASE.fullmatch(release)
    needed = f"release {release} or later" if is_release else f"a later release than {installed_release()}"
    return (
        f"`{place}` has format {found}, which needs {needed} of graphrag-pipeline; upgrade it. If no later release was "
        "used here, the file is damaged: delete it and run `graphrag-pipeline index`"
    )


def installed_release() -> str:
    """Return the installed release of this package."""
    try:
        return version("graphrag-pipeline")
    except PackageNotFoundError:  # it runs from its source, without an installation
        return "this one"


def check_shape(values: object, shape: object, key: str = "it") -> None:
    """Check the types in values that were read from JSON, so that a wrong one is found here and not where it is used.

    Args:
        shape: a type, `object` for any; a tuple of shapes of which one must fit; `[shape]` for a list; `{key: shape}`
            for an object with at least these keys; one that ends in `?` may be missing, and `ANY_KEY` stands for all.
            An `int` is not negative.
        key: names the place in the message.

    Raises:
        ValueError: a value has another type.
    """
    if shape is object:
        return
    if isinstance(shape, tuple):
        if not any(_has_shape(values, one) for one in shape):
            raise ValueError(f"{key} is {_shown(values)}")
    elif isinstance(shape, list) and isinstance(values, list):
        for value in values:
            check_shape(value, shape[0], f"an item of {key}")
    elif isinstance(shape, dict) and isinstance(values, dict):
        if ANY_KEY in shape:
            for name, value in values.items():
                check_shape(value, shape[ANY_KEY], repr(name))
            return
        for wanted, one in shape.items():
            name = wanted.removesuffix("?")
            if name in values:
                check_shape(values[name], one, repr(name))
            elif name == wanted:
                raise ValueError(f"{key} has no {name!r}")
    elif type(values) is not shape or (isinstance(values, int) and not 0 <= values < _INT_END):
        raise ValueError(f"{key} is {_shown(values)}")


def _has_shape(values: object, shape: object) -> bool:
    try:
        check_shape(values, shape)
    except ValueError:
        return False
    return True


def _shown(values: object) -> str:
    text = repr(values)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def is_name(text: object) -> bool:
    """Return whether a text can be a part of a path: letters, digits, `_`, `.`, `-`; no dot or dash at the start."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def check_names(names: Iterable[object], place: object, is_valid: Callable[[object], bool] = is_name) -> None:
    """Check that names are valid, so that none leads out of its folder.

    Args:
        place: path or URL of the file that holds the names, for messages.

    Raises:
        PipelineError: a name could lead out of its folder.
    """
    for name in names:
        if not is_valid(name):
            raise foreign_name_error(name, place)


def foreign_name_error(name: object, place: object) -> PipelineError:
    """Return the error for a name that could lead out of the folders of an index."""
    return PipelineError(
        f"`{place}` names the file or folder {name!r}, which is not a name that graphrag-pipeline gives; check "
        "who may write there, since it may have been changed on purpose. Nothing that it names was written"
    )


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
