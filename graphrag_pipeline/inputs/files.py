"""Input folder: its files in order and their records, on disk or behind an fsspec URL (`remote.py`).

Every file below the folder that is not ignored (`paths.py`) is read, or listed with a problem. A symbolic link to a
file inside the folder is a separate document. A link out of the folder, to nothing or to a folder is a problem; the
input folder itself can be a link. A folder is a `Path` on disk or a URL as text. Equal files give equal records.

Keep out: the content of files (`documents.py`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import bucket_of
from graphrag_pipeline.inputs.documents import read_records
from graphrag_pipeline.inputs.formats import FORMATS, STRUCTURED
from graphrag_pipeline.inputs.paths import GONE, InputFile, is_excluded, is_ignored, label_of
from graphrag_pipeline.inputs.reading_process import is_risky, read_apart
from graphrag_pipeline.inputs.record_files import RECORDS_FOLDER, ReadFile, entry_name, is_cached, read_cached
from graphrag_pipeline.inputs.record_filters import parse_filters, passes_all
from graphrag_pipeline.inputs.remote import COPIES, fetch, list_remote
from graphrag_pipeline.inputs.source_records import (
    SourceRecord,
    access_problem,
    document_id_of,
    format_of,
    problem_record,
)
from graphrag_pipeline.settings.input import InputSettings

_MEGABYTE = 1_000_000


def read_input(
    folder: Path | str,
    settings: InputSettings,
    n_buckets: int,
    buckets: Collection[str] | None = None,
    cache_folder: Path | None = None,
    last_known: Callable[[str], list[SourceRecord]] = lambda _: [],
) -> Iterator[SourceRecord]:
    """Yield the records of the input folder by path, with one file in memory at a time.

    Args:
        buckets: partitions to read; None reads all. Whole-file documents of other partitions are not opened.
        cache_folder: keeps fetched files by the version that their store reports, and parsed or converted records by
            content and settings. None keeps nothing.
        last_known: returns the documents of the last index from a file, or from a folder, whose path ends with "/".
            They stay while the content of the file or folder is not known.

    Raises:
        PipelineError: the folder does not exist or cannot be listed, or no file of a URL can be fetched.
    """
    wanted = None if buckets is None else frozenset(buckets)
    if isinstance(folder, str):
        records = _read_remote(folder, settings, n_buckets, wanted, cache_folder)
    else:
        inputs = _holding(list_input(folder, settings), n_buckets, wanted)
        records = _read_files(inputs, settings, cache_folder)
    return (
        record
        for record in _keep_known(records, last_known, settings.filters)
        if wanted is None or bucket_of(record.document_id, n_buckets) in wanted
    )


def _keep_known(
    records: Iterable[SourceRecord], last_known: Callable[[str], list[SourceRecord]], filters: Sequence[str]
) -> Iterator[SourceRecord]:
    """Yield all records; where the content is not known, the last known ones that pass, with a note."""
    parsed = parse_filters(filters)
    for record in records:
        if not record.is_unknown or record.record:
            yield record
            continue
        note = f"not readable now, the text of the last index stays: {record.problem}"
        kept = [dataclasses.replace(known, note=note) for known in last_known(record.path)]
        is_replaced = kept and not record.path.endswith("/")
        found = [*([] if is_replaced else [record]), *kept]
        yield from (one for one in found if passes_all(one, parsed))


def list_input(folder: Path | str, settings: InputSettings, cache_folder: Path | None = None) -> list[InputFile]:
    """List the files that are not ignored, with problems, sorted by the bytes of their path.

    Args:
        cache_folder: folder for copies of the files of a URL; None if the caller does not use their locations.

    Raises:
        PipelineError: the folder does not exist or cannot be listed.
    """
    if isinstance(folder, str):
        return list_remote(folder, settings.exclude, (cache_folder or Path()) / COPIES)
    if not folder.is_dir():
        raise PipelineError(
            f"`{folder}`: no such input folder; create it and put documents there, or name another in input.folder of "
            "settings.yaml"
        )
    base = os.fsencode(folder)
    try:
        os.scandir(base).close()
    except OSError as error:
        raise PipelineError(
            f"`{folder}`: the input folder cannot be listed ({error.strerror}); change its permissions"
        ) from error
    found = dict(_walk(base, os.path.realpath(base), b"", settings.exclude))
    return [
        InputFile(label_of(name), os.path.join(base, name), problem.text, is_fault=problem.is_fault)
        for name, problem in sorted(found.items(), key=lambda item: item[0])
    ]


def fingerprint_input(folder: Path | str, settings: InputSettings) -> str:
    """Hash the listing of the folder without reading files.

    On disk it covers path, size, times of change and inode, behind a URL path, size and version. Every write changes
    it, even one that keeps size and modification time. Equal fingerprints some seconds apart mean that nothing was
    written between them. If a store reports only sizes, a write that keeps the size is not seen.

    Raises:
        PipelineError: the folder does not exist or cannot be listed.
    """
    hashed = hashlib.sha256()
    for file in list_input(folder, settings):
        hashed.update(f"{file.path}\0{file.problem}\0{_version_of(file)}\0\0".encode())
    return hashed.hexdigest()[:32]


def _version_of(file: InputFile) -> str:
    if file.url_path:
        return f"{file.n_bytes} {file.version}"
    try:
        found = os.stat(file.location)
    except OSError:
        return ""
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino}"


class _Problem(NamedTuple):
    """Why a file or folder cannot be read, and whether that is a fault of access, which may pass."""

    text: str | None
    is_fault: bool = False


def _walk(base: bytes, real_base: bytes, folder: bytes, exclude: tuple[str, ...]) -> Iterator[tuple[bytes, _Problem]]:
    """Yield (path inside `base`, problem) of each file below `folder`, and of folders that cannot be listed."""
    folders = [folder]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(os.path.join(base, folder)) as scanned:
                entries = list(scanned)  # all or none: files of a folder that fails half way are those of last time
        except FileNotFoundError:
            yield folder, _Problem(GONE)
            continue
        except OSError as error:
            text = f"this folder cannot be listed ({error.strerror}); fix its permissions"
            yield folder, _Problem(text, is_fault=True)
            continue
        for entry in entries:
            name = folder + entry.name
            if is_ignored(entry.name) or is_excluded(label_of(name), exclude):
                continue
            is_folder = _is_folder(entry)
            if is_folder:
                folders.append(name + b"/")
                continue
            problem = _problem_of(entry, real_base)
            yield name, problem
            if is_folder is None and problem.is_fault:
                yield name + b"/", problem  # if it is a folder, its documents stay


def _is_folder(entry: os.DirEntry[bytes]) -> bool | None:
    """Return whether an entry is a folder; None if that is not known now."""
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return None  # `_problem_of` says why


def _problem_of(entry: os.DirEntry[bytes], real_base: bytes) -> _Problem:
    """Return why an entry that is not a folder cannot be read; it is not opened, since a pipe would block."""
    try:
        if entry.is_symlink():
            real = os.path.realpath(entry.path, strict=True)
            if not os.path.join(real, b"").startswith(os.path.join(real_base, b"")):
                return _Problem(
                    "symbolic link out of the input folder; put a copy here, or link the whole input folder"
                )
            if os.path.isdir(real):
                return _Problem("symbolic link to a folder: not followed; its files are read where they are")
        mode = entry.stat().st_mode
    except OSError as error:
        if error.errno == errno.ELOOP:
            return _Problem("symbolic link loop; remove it")
        if error.errno == errno.ENOENT:  # the disk of its target may not be mounted now
            is_link = os.path.islink(entry.path)
            return _Problem("symbolic link to nothing; remove it or restore its target" if is_link else GONE, is_link)
        return _Problem(access_problem(error), is_fault=True)
    if stat.S_ISREG(mode):
        return _Problem(None)
    return _Problem("not a regular file (a pipe, socket or device); remove or exclude it")


def _read_remote(
    url: str, settings: InputSettings, n_buckets: int, wanted: frozenset[str] | None, cache_folder: Path | None
) -> Iterator[SourceRecord]:
    with contextlib.ExitStack() as stack:
        kept = cache_folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        inputs = _holding(list_input(url, settings, kept), n_buckets, wanted)
        yield from _read_files(fetch(url, inputs, kept / COPIES), settings, cache_folder)


def _holding(inputs: list[InputFile], n_buckets: int, wanted: frozenset[str] | None) -> list[InputFile]:
    """Return the files that can contain documents of the wanted buckets."""
    return [
        file
        for file in inputs
        if wanted is None
        or file.is_fault
        or (format_of(file.path) in STRUCTURED and not file.problem)
        or bucket_of(document_id_of(file.path), n_buckets) in wanted
    ]


def _read_files(
    inputs: Iterable[InputFile], settings: InputSettings, cache_folder: Path | None
) -> Iterator[SourceRecord]:
    filters = parse_filters(settings.filters)
    for file in inputs:
        for record in _read_file(file, settings, cache_folder):
            if record.record or record.is_unknown or passes_all(record, filters):  # rows were judged with their file
                yield record


def _read_file(file: InputFile, settings: InputSettings, cache_folder: Path | None) -> list[SourceRecord]:
    """Return the records of a file; what goes wrong is a problem of this file."""
    if file.problem:
        return [problem_record(file.path, file.problem, is_unknown=file.is_fault)]
    format = format_of(file.path)
    try:
        n_bytes = file.n_bytes if file.url_path else os.stat(file.location).st_size
        if format not in FORMATS.values():  # do not read a file of an unsupported type, which can be large
            return [dataclasses.replace(record, n_bytes=n_bytes) for record in read_records(file.path, b"", settings)]
        if n_bytes > settings.max_file_mb * _MEGABYTE:
            return [problem_record(file.path, _size_problem(n_bytes, settings), n_bytes=n_bytes, is_unknown=True)]
        if is_risky(file.path, n_bytes):
            with open(file.location, "rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            return read_cached(
                cache_folder,
                file.path,
                digest,
                settings,
                partial(read_apart, file.location, file.path, settings, digest),
            )
        with open(file.location, "rb") as stream:
            data = stream.read()
    except FileNotFoundError:
        return [problem_record(file.path, GONE)]
    except OSError as error:
        return [problem_record(file.path, access_problem(error), is_unknown=True)]
    if not is_cached(format):
        return read_records(file.path, data, settings)
    digest = hashlib.sha256(data).hexdigest()
    return read_cached(
        cache_folder, file.path, digest, settings, lambda: ReadFile(read_records(file.path, data, settings), digest)
    )


def _size_problem(n_bytes: int, settings: InputSettings) -> str:
    return (
        f"has {n_bytes / _MEGABYTE:,.0f} MB, over input.max_file_mb = {settings.max_file_mb:,}; raise it, or split or "
        "exclude the file"
    )


def list_unused_records(folder: Path | str, settings: InputSettings, cache_folder: Path) -> list[Path]:
    """List the copies and cached records that the current input folder and settings do not use.

    Raises:
        PipelineError: the folder does not exist or cannot be listed.
    """
    inputs = list_input(folder, settings, cache_folder)
    used = {os.path.basename(os.fsdecode(file.location)) for file in inputs if file.url_path}
    for file in inputs:
        if not file.problem and is_cached(format_of(file.path)):
            with contextlib.suppress(OSError), open(file.location, "rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
                used.add(entry_name(file.path, digest, settings))
    cached = [*(cache_folder / RECORDS_FOLDER).glob("*"), *(cache_folder / COPIES).glob("*")]
    return sorted(path for path in cached if path.name not in used)
