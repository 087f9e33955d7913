"""The version of the JSON files of a root and of a shared store, and the names that such files may hold.

The version of a file is the number in `format`; a file without one has format 1. A file of a later release is refused
with the release that reads it, from its key `needs_release`. A name from a file becomes a part of a path. So it is
checked: it cannot leave its folder. Keep out: the meaning of the files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from graphrag_pipeline.errors import NewerFormatError, PipelineError
from graphrag_pipeline.filesystem.files import read_sealed

Values = dict[str, Any]
FORMAT = 1
"""The version that this release writes, and the newest one that it reads. Raise it with a change of any file."""
_NAME = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_.-]{0,199}")
ANY_KEY = ""
"""In a shape: any key (`check_shape`)."""
_INT_END = 2**63
_MAX_SHOWN = 60
_RELEASE = re.compile(r"\d+(\.\d+)*[0-9a-z.]*")


def read_values(data: bytes, place: object) -> Values:
    """Return the values of a JSON file, without the keys of its version and its hash.

    Args:
        place: path or URL of the file, for messages.

    Raises:
        NewerFormatError: a newer release wrote the file.
        ValueError: the file is damaged.
    """
    return check_version(read_sealed(data), place)


def check_version(values: object, place: object) -> Values:
    """Return values that were read from JSON without the keys of the version, as `read_values` does."""
    if not isinstance(values, dict):
        raise ValueError("it holds no JSON object")
    found, release = values.get("format", FORMAT), values.get("needs_release")
    if not isinstance(found, int) or found < 1:
        raise ValueError(f"its format is {found!r}")
    if found > FORMAT:
        is_release = isinstance(release, str) and _RELEASE.fullmatch(release)
        needed = f"release {release} or later" if is_release else f"a later release than {installed_release()}"
        raise NewerFormatError(
            f"`{place}` has format {found}, which needs {needed} of graphrag-pipeline; upgrade it. If no later release "
            "was used here, the file is damaged: delete it and run `graphrag-pipeline index`"
        )
    return {key: value for key, value in values.items() if key not in ("format", "needs_release")}


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
