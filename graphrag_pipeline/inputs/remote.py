"""Input folder behind an fsspec URL (`s3://bucket/docs`, `gs://`, `abfs://`, ...): its listing and copies of its files.

A file is fetched once and kept in the cache by its path and the version that the store reports (ETag, time of change,
generation, ...). So an unchanged folder costs one listing. If a store reports only sizes, as plain HTTP does, every
file is fetched each time. A file that was removed in between, so that it is not listed any more, gets a problem. A file
that cannot be fetched keeps its documents of the last index. A folder that cannot be listed, and a store from which
nothing can be fetched, stop the run: if a network error counted as a deletion, documents would disappear from the
index. The packages of the stores read credentials (environment variables, ~/.aws, FSSPEC_S3='{"endpoint_url": ...}').

Keep out: the content of files (`documents.py`).
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filesystem.fsspec_errors import describe_error, missing_package_message, shown_cause
from graphrag_pipeline.filesystem.fsspec_listing import list_files
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.inputs.formats import FORMATS
from graphrag_pipeline.inputs.paths import GONE, InputFile, is_excluded, is_ignored, label_of
from graphrag_pipeline.inputs.source_records import format_of
from graphrag_pipeline.settings.urls import mask_url

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

COPIES = "input"
"""Folder of the copies in the cache."""

_BATCH_FILES = 256  # files fetched at once, if the store's package supports it
_BATCH_BYTES = 64_000_000
_MIN_FAULTS = 3
"""If so many files and no other were to be fetched, and each failed, the store is at fault."""
_LISTED = "cannot be read (it is listed, but not found); run again, or exclude it"
"""The problem of a file that its store does not find, although it lists it."""
_VERSION_FIELDS = (
    "ETag", "etag", "md5Hash", "crc32c", "generation", "checksum", "sha", "blob_id", "CRC", "LastModified",
    "last_modified", "updated", "mtime", "modified", "modify", "modificationTime", "date_time", "created",
)  # fmt: skip
"""Names of a file's version or time of change in the listings of the stores' packages."""


def list_remote(url: str, exclude: tuple[str, ...], copies: Path) -> list[InputFile]:
    """List the files behind a URL that are not ignored, sorted by the bytes of their path, without fetching them.

    Args:
        copies: folder for the copies of fetched files.

    Raises:
        PipelineError: the store's package is missing, or the store cannot be listed.
    """
    folder, listed = _list(url)
    prefix = folder.rstrip("/") + "/"
    if not all(path.startswith(prefix) for path in listed):
        raise PipelineError(f"`{mask_url(url)}` is a file; name its folder in input.folder of settings.yaml")
    names = sorted((os.fsencode(path.removeprefix(prefix)), path) for path in listed if not path.endswith("/"))
    return [_describe(url, name, listed[path], path, copies) for name, path in names if _counts(name, exclude)]


def _list(url: str) -> tuple[str, Mapping[str, dict[str, Any]]]:
    """Return the path of the folder in its store, and its files by path."""
    with _explained(url, "listed"):
        store, folder = _open(url)
        store.invalidate_cache()  # a long-running process would see old listings
        return folder, list_files(store, folder)


def fetch(url: str, wanted: Sequence[InputFile], copies: Path) -> Iterator[InputFile]:
    """Yield the same files, each after its copy is at its `location`; one that cannot be fetched has a problem.

    Files of an unsupported type are not fetched. If a file is not found, the folder is listed again, once.

    Raises:
        PipelineError: no file of several can be fetched, the folder cannot be listed again, or a copy cannot be
            written.
    """

    @functools.cache
    def listed_again() -> frozenset[str]:
        return frozenset(_list(url)[1])

    for batch in _batches(wanted):
        missing = [file for file in batch if _is_missing(file)]
        failed = _fetch_batch(url, missing, copies, listed_again) if missing else {}
        for file in batch:
            yield failed.get(file.path, file)


def _counts(name: bytes, exclude: tuple[str, ...]) -> bool:
    """Whether neither the file nor one of its folders is ignored or excluded."""
    parts = name.split(b"/")
    folders = (b"/".join(parts[: depth + 1]) for depth in range(len(parts)))
    return not any(part and is_ignored(part) for part in parts) and not any(
        is_excluded(label_of(folder), exclude) for folder in folders
    )


def _describe(url: str, name: bytes, listed: Mapping[str, Any], url_path: str, copies: Path) -> InputFile:
    path = label_of(name)
    n_bytes = int(listed.get("size") or 0)
    fields = [f"{field}={listed[field]}" for field in _VERSION_FIELDS if listed.get(field) is not None]
    version = stable_hash(*fields, str(n_bytes)) if fields else ""
    location = os.fsencode(copies / stable_hash(url, path, version))
    return InputFile(path, location, None, url_path, n_bytes, version)


def _is_missing(file: InputFile) -> bool:
    """Whether a file must be fetched: its version is unknown, or its copy is missing or truncated by a crash."""
    if format_of(file.path) not in FORMATS.values():
        return False
    try:
        return not file.version or os.stat(file.location).st_size != file.n_bytes
    except FileNotFoundError:
        return True


def _batches(wanted: Sequence[InputFile]) -> Iterator[list[InputFile]]:
    batch: list[InputFile] = []
    for file in wanted:
        if batch and (len(batch) == _BATCH_FILES or sum(f.n_bytes for f in batch) + file.n_bytes > _BATCH_BYTES):
            yield batch
            batch = []
        batch.append(file)
    if batch:
        yield batch


def _fetch_batch(
    url: str, missing: Sequence[InputFile], copies: Path, listed_again: Callable[[], frozenset[str]]
) -> dict[str, InputFile]:
    """Write the copies of files; return those that could not be fetched, with their problems, by path.

    Args:
        listed_again: returns the paths of all files in the store that are listed after the fetch failed.
    """
    with _explained(url, "read"):
        store, _ = _open(url)
        # Not `cat`, which reads `*` and `[` in a name as a pattern.
        contents = store.cat_ranges([file.url_path for file in missing], None, None, on_error="return")
        faults = [content for content in contents if _is_fault(content)]
        if len(missing) >= _MIN_FAULTS and len(faults) == len(missing):
            raise faults[0]  # the store is at fault, not the files
    failed = {}
    for file, content in zip(missing, contents, strict=True):
        if isinstance(content, FileNotFoundError):
            is_listed = file.url_path in listed_again()
            failed[file.path] = dataclasses.replace(file, problem=_LISTED if is_listed else GONE, is_fault=is_listed)
        elif isinstance(content, Exception):
            reason = (
                f"cannot be read ({describe_error(content, url)}); run again, change its permissions, or exclude it"
            )
            failed[file.path] = dataclasses.replace(file, problem=reason, is_fault=True)
        elif len(content) < file.n_bytes:
            # Not also for more: some stores list the packed size of what they unpack.
            reason = f"cannot be read (only {len(content):,} of its {file.n_bytes:,} bytes arrived); run again"
            failed[file.path] = dataclasses.replace(file, problem=reason, is_fault=True)
        else:
            files.replace(copies / os.fsdecode(os.path.basename(file.location)), content)
    return failed


def _is_fault(content: object) -> bool:
    """Whether a result of `cat_ranges` is an error that may be the store's: a missing file or permission is not."""
    return isinstance(content, Exception) and not isinstance(content, FileNotFoundError | PermissionError)


def _open(url: str) -> tuple[AbstractFileSystem, str]:
    from fsspec.core import url_to_fs

    store, folder = url_to_fs(url)
    return store, folder


@contextmanager
def _explained(url: str, done: str) -> Iterator[None]:
    """Replace errors of a store by a `PipelineError` with the cause and what to do, in one line."""
    try:
        yield
    except ImportError as error:
        raise PipelineError(missing_package_message(url, error)) from None
    except FileNotFoundError as error:
        raise PipelineError(
            f"`{mask_url(url)}`: no such input folder ({describe_error(error, url)}); create it, or name another in "
            "input.folder of settings.yaml"
        ) from shown_cause(error, url)
    except Exception as error:  # each store's package has different errors for permissions, names and networks
        raise PipelineError(
            f"`{mask_url(url)}`: the input folder cannot be {done} ({describe_error(error, url)}); nothing was "
            "changed. Check the URL, the network and the credentials, then run again"
        ) from shown_cause(error, url)
