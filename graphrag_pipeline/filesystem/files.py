"""Atomic file operations of a root, each safe against `kill -9` at any moment.

`put_new` and `write_new` write a file that never changes again. `replace` swaps a file atomically. Every file of a root
is written by one of them; objects of a shared store are written by `storage/shared/objects.py`.

Against a power cut, a publication flushes everything written so far (`flush_to_disk`), and then replaces the pointer to
it (`replace_durably`).
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from graphrag_pipeline.errors import NoSnapshotError, PipelineError

TEMPORARY_PREFIX = ".tmp-"
WRITE_REMEDY = "free disk space or fix the permissions, then run again. Finished work is kept."
"""The way out of a failed write, for messages."""
_MAX_REASON_CHARS = 120


def content_hash(data: bytes | memoryview) -> str:
    """Return 32 hex digits of sha256: the name of an immutable file."""
    return hashlib.sha256(data).hexdigest()[:32]


def put_new(path: Path, data: bytes | memoryview) -> None:
    """Write an immutable file, unless it exists with that content."""
    if not (path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data):
        replace(path, data)


def write_new(folder: Path, suffix: str, write: Callable[[BinaryIO], object]) -> tuple[str, int]:
    """Write an immutable file straight to disk, since it may be large, and name it after its content.

    Args:
        suffix: end of the name, such as ".parquet".
        write: writes the content.

    Returns:
        Its name in `folder` and its size in bytes.

    Raises:
        PipelineError: the disk is full or the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary = temporary_path(folder)
        try:
            with open(temporary, "x+b") as file:
                write(file)
                n_bytes = file.tell()
                file.seek(0)
                name = hashlib.file_digest(file, "sha256").hexdigest()[:32] + suffix
            os.replace(temporary, folder / name)  # a file of this name is equal, or damaged
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise write_error(folder, error) from error
    return name, n_bytes


def replace(path: Path, data: bytes | memoryview) -> None:
    """Write `data` to `path` in one step, so that a reader sees the old file or the new one.

    Raises:
        PipelineError: the disk is full or the folder cannot be written.
    """
    replace_by(path, lambda file: file.write(data))


def replace_durably(path: Path, data: bytes) -> None:
    """Replace a small file like `replace`; after the return it also survives a power cut.

    Raises:
        PipelineError: the disk is full, the folder cannot be written, or the disk reports that it lost data.
    """

    def write(file: BinaryIO) -> None:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())

    replace_by(path, write)
    _on_folder(path.parent, os.fsync)


def replace_private(path: Path, data: bytes) -> None:
    """Replace a file like `replace`; only its owner may read it, from the first byte on.

    Raises:
        PipelineError: the disk is full or the folder cannot be written.
    """

    def write(file: BinaryIO) -> None:
        os.fchmod(file.fileno(), 0o600)
        file.write(data)

    replace_by(path, write)


def replace_by(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Replace a file like `replace`, with content that `write` puts straight to disk, since it may be large."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = temporary_path(path.parent)
        try:
            with open(temporary, "xb") as file:
                write(file)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise write_error(path, error) from error


def link_or_copy(source: Path, target: Path) -> None:
    """Give a file a second name, or copy it if the file system has no links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def temporary_path(folder: Path) -> Path:
    """Return an unused path in `folder`, for a file that is moved to its place once it is whole."""
    # Not tempfile: only the owner can read its files, and other users may read a root.
    return folder / f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}"


def flush_to_disk(folder: Path) -> None:
    """Flush all written files of the file system that holds `folder`, against a power cut.

    Once a publication: one flush of a thousand files takes less than a flush of each, at 10 ms a file. Where a file
    system cannot be flushed apart, all of the machine are.

    Raises:
        PipelineError: the disk reports that it lost data.
    """
    flush_one = _load_syncfs()
    if flush_one is None:
        getattr(os, "sync", lambda: None)()
    else:
        _on_folder(folder, flush_one)


@functools.cache
def _load_syncfs() -> Callable[[int], None] | None:
    """Return a call of Linux's `syncfs`, which Python does not offer; None on other systems."""
    try:
        syncfs = ctypes.CDLL(None, use_errno=True).syncfs
    except (OSError, AttributeError, TypeError):
        return None

    def flush(descriptor: int) -> None:
        if syncfs(descriptor) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    return flush


def _on_folder(folder: Path, flush: Callable[[int], None]) -> None:
    """Call `flush` with an open descriptor of a folder."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            flush(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise write_error(folder, error) from error


def write_error(path: Path, error: OSError | RuntimeError) -> PipelineError:
    """Return the error for a write that failed: what, where, what to do."""
    reason = getattr(error, "strerror", None) or error
    return PipelineError(f"`{path}` cannot be written ({reason}); {WRITE_REMEDY}")


def read_error(path: Path, error: Exception) -> NoSnapshotError:
    """Return the error for a file of a snapshot that cannot be read: what, why, what to do.

    Args:
        error: why it cannot be read.
    """
    reason = (getattr(error, "strerror", None) or str(error).partition("\n")[0])[:_MAX_REASON_CHARS]
    return NoSnapshotError(
        f"`{path}` is missing or damaged ({reason}); run `graphrag-pipeline verify --repair` or `graphrag-pipeline "
        "index`, which make it again; an imported index may need `graphrag-pipeline import` again"
    )


CHECK = "check"
"""Key of the hash of all other keys and values."""


def seal(values: Mapping[str, Any]) -> bytes:
    """Return JSON of an object with the hash of its content, so that a changed byte is seen."""
    return _encode({**values, CHECK: _check_of(values)})


def read_sealed(data: bytes, is_required: bool = False) -> dict[str, Any]:
    """Return the object of a JSON file without its hash.

    Args:
        is_required: no release wrote this file without a hash.

    Raises:
        ValueError: the file is not JSON of an object, or its content does not have the hash that it holds.
    """
    values = json.loads(data)
    if not isinstance(values, dict):
        raise ValueError("not a JSON object")
    check = values.pop(CHECK, None)
    if (check is not None or is_required) and not _is_sealed_by(data, check) and check != _check_of(values):
        raise ValueError("a byte changed since it was written")
    return values


def _is_sealed_by(data: bytes, check: object) -> bool:
    """Return whether a file as `seal` writes it, without the line of its hash, has that hash.

    To write the values again takes ten times as long; that is left for a file that another program laid out.
    """
    line = f'\n "{CHECK}": "{check}"'.encode()
    before, found, after = data.partition(line)
    if not found:
        return False
    rest = before + after[1:] if after.startswith(b",") else before.removesuffix(b",") + after
    return content_hash(rest) == check


def _check_of(values: Mapping[str, Any]) -> str:
    return content_hash(_encode(values))


def _encode(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, indent=1, sort_keys=True, ensure_ascii=False).encode()
