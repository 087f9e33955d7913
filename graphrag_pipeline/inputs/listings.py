"""The files of one bucket as a message to another machine, so that it does not list the whole input folder itself.

Who may write to the shared store must not choose what another machine opens. So a name that leads out of the input
folder is refused, and what a file is now is looked up where it is read. Keep out: who sends it.
"""

from __future__ import annotations

import gzip
import json
import os
import stat
import zlib
from collections.abc import Sequence
from pathlib import Path

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.inputs.files import COPIES, GONE, InputFile, label_of, location_of_copy
from graphrag_pipeline.inputs.source_records import access_problem
from graphrag_pipeline.settings.urls import mask_url


def pack_listing(listed: Sequence[InputFile], folder: Path | str) -> bytes:
    """Return files of a folder as bytes; the same files give the same bytes."""
    rows = [
        {
            "name": file.url_path or os.fsdecode(os.path.relpath(file.location, os.fsencode(folder))),
            "path": file.path,
            "problem": file.problem,
            "is_fault": file.is_fault,
            "n_bytes": file.n_bytes,
            "version": file.version,
        }
        for file in listed
    ]
    return gzip.compress(json.dumps(rows).encode(), mtime=0)


def listing_version(data: bytes) -> str:
    """Return the hash of a packed listing."""
    return stable_hash(gzip.decompress(data).decode())[:16]


def unpack_listing(data: bytes, folder: Path | str, cache_folder: Path) -> list[InputFile]:
    """Return the files of a packed listing as `list_input` would; a file on disk is looked at now.

    Args:
        cache_folder: as in `list_input`.

    Raises:
        PipelineError: it is damaged, or names a file outside the folder.
    """
    try:
        rows = json.loads(gzip.decompress(data))
        return [_file_of(row, folder, cache_folder) for row in rows]
    except (OSError, EOFError, zlib.error, ValueError, TypeError, KeyError) as error:
        raise PipelineError(
            f"the list of files for a bucket of `{mask_url(str(folder))}` in the shared store is damaged ({error}); "
            "index this bucket again"
        ) from None


def _file_of(row: dict, folder: Path | str, cache_folder: Path) -> InputFile:
    name, path = str(row["name"]), str(row["path"])
    if isinstance(folder, str):
        return _remote_file(row, name, path, folder, cache_folder)
    location = os.path.join(os.fsencode(folder), os.fsencode(name))
    if row["is_fault"]:
        return InputFile(path, location, str(row["problem"]), is_fault=True)
    if os.path.isabs(name) or ".." in Path(name).parts or label_of(os.fsencode(name)) != path:
        raise ValueError(f"it names {name!r}")
    problem, is_fault = _problem_now(location, os.path.realpath(os.fsencode(folder)))
    return InputFile(path, location, problem and (row["problem"] or problem), is_fault=is_fault)


def _problem_now(location: bytes, base: bytes) -> tuple[str | None, bool]:
    """Return why a file cannot be read now, and whether that is a fault of access."""
    if not os.path.realpath(location).startswith(os.path.join(base, b"")):
        return "symbolic link out of the input folder; put a copy here", False
    try:
        is_file = stat.S_ISREG(os.stat(location).st_mode)
    except FileNotFoundError:
        return GONE, False
    except OSError as error:
        return access_problem(error), True
    return (None if is_file else "is no file; remove or exclude it"), False


def _remote_file(row: dict, name: str, path: str, folder: str, cache_folder: Path) -> InputFile:
    from fsspec.core import url_to_fs

    inside = url_to_fs(folder)[1].rstrip("/") + "/"
    if not name.startswith(inside) or ".." in name.split("/"):
        raise ValueError(f"it names {name!r}")
    version = str(row["version"])
    return InputFile(
        path, location_of_copy(folder, path, version, cache_folder / COPIES), None, name, int(row["n_bytes"]), version
    )
