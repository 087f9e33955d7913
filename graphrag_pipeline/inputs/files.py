"""Input folder: its files in order and their records, on disk or behind an fsspec URL.

Every file below the folder that is not ignored (`is_ignored`) is read, or listed with a problem. A symbolic link to a
file inside the folder is a separate document. A link out of the folder, to nothing or to a folder is a problem; the
input folder itself can be a link. A folder is a `Path` on disk or a URL as text. Equal files give equal records.

Keep out: the content of files (`documents.py`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fnmatch
import functools
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filesystem.fsspec_errors import describe_error, list_files, missing_package_message, shown_cause
from graphrag_pipeline.identity import bucket_of, stable_hash
from graphrag_pipeline.inputs.documents import read_records
from graphrag_pipeline.inputs.formats import FORMATS, STRUCTURED
from graphrag_pipeline.inputs.reading_process import is_risky, read_apart
from graphrag_pipeline.inputs.source_records import (
    RECORDS_FOLDER,
    ReadFile,
    SourceRecord,
    access_problem,
    document_id_of,
    entry_name,
    format_of,
    is_cached,
    parse_filters,
    passes_all,
    problem_record,
    read_cached,
)
from graphrag_pipeline.settings.input import InputSettings
from graphrag_pipeline.settings.urls import mask_url
from graphrag_pipeline.text.safe_output import escape_json_controls

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

GONE = "was removed while the folder was read"
"""The problem of a file that no longer exists: its documents go, too."""
_IGNORED = ("Thumbs.db", "desktop.ini", "__MACOSX")


@dataclass(frozen=True)
class InputFile:
    """A file of the input folder.

    Attributes:
        path: path inside the folder, as a label.
        location: path of the file, or of its copy, on this machine.
        problem: reason why it cannot be read; None if it can.
        url_path: path in the store behind the folder's URL; "" for a file on disk.
        n_bytes: size that the store reports.
        version: hash of the version that the store reports; "" if it reports only the size.
        is_fault: whether the problem is that it cannot be accessed now, so that its content is not known.
    """

    path: str
    location: bytes
    problem: str | None = None
    url_path: str = ""
    n_bytes: int = 0
    version: str = ""
    is_fault: bool = False


class Detection(Protocol):
    """Knows what was read from unchanged files (`detected_files.py`)."""

    def split(self, listed: Iterable[InputFile]) -> tuple[list[SourceRecord], list[InputFile]]:
        """Return the records of unchanged files, without text, and the files that must be read."""

    def add(self, file: InputFile, records: Sequence[SourceRecord]) -> None:
        """Keep what was read from a file."""


def label_of(name: bytes) -> str:
    """Return a path's bytes as unique text in one line, unchanged if it is UTF-8 without backslashes and controls."""
    text = name.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")
    return escape_json_controls(text).replace("\n", r"\u000a")


def is_ignored(name: bytes) -> bool:
    """Whether a file or folder with this name (not path) is ignored."""
    text = os.fsdecode(name)
    return text.startswith((".", "~$")) or text.endswith("~") or text in _IGNORED or (text[0] == text[-1] == "#")


def is_excluded(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether a pattern matches a path.

    `*` also matches slashes, and a leading `**/` also matches the top folder. An excluded folder excludes its content.
    """
    return any(
        fnmatch.fnmatchcase(path, pattern.rstrip("/")) or fnmatch.fnmatchcase(path, pattern.removeprefix("**/"))
        for pattern in patterns
    )


_MEGABYTE = 1_000_000


def read_input(
    folder: Path | str,
    settings: InputSettings,
    n_buckets: int,
    buckets: Collection[str] | None = None,
    cache_folder: Path | None = None,
    last_known: Callable[[str], list[SourceRecord]] = lambda _: [],
    listed: Sequence[InputFile] | None = None,
    detected: Detection | None = None,
) -> Iterator[SourceRecord]:
    """Yield the records of the input folder by path, with one file in memory at a time.

    Args:
        buckets: partitions to read; None reads all. Whole-file documents of other partitions are not opened.
        cache_folder: keeps fetched files by the version that their store reports, and parsed or converted records by
            content and settings. None keeps nothing.
        last_known: returns the documents of the last index from a file, or from a folder, whose path ends with "/".
            They stay while the content of the file or folder is not known.
        listed: the files, from `list_input` with the same cache folder; None lists them now.
        detected: if given, unchanged files are not opened; their records come first, without text.

    Raises:
        PipelineError: the folder does not exist or cannot be listed, or no file of a URL can be fetched.
    """
    wanted = None if buckets is None else frozenset(buckets)
    if listed is None and not isinstance(folder, str):
        listed = list_input(folder, settings)  # now: an error of the folder is not one of reading
    records = _read(folder, settings, n_buckets, wanted, cache_folder, listed, detected)
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
        hashed.update(f"{file.path}\0{file.problem}\0{state_of(file)}\0\0".encode())
    return hashed.hexdigest()[:32]


def state_of(file: InputFile) -> str:
    """Return size, times of change and inode of a file, or the size and version that its store reports."""
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


def _read(
    folder: Path | str,
    settings: InputSettings,
    n_buckets: int,
    wanted: frozenset[str] | None,
    cache_folder: Path | None,
    listed: Sequence[InputFile] | None,
    detected: Detection | None,
) -> Iterator[SourceRecord]:
    with contextlib.ExitStack() as stack:
        kept = cache_folder
        if isinstance(folder, str) and kept is None:
            kept = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        found = list_input(folder, settings, kept) if listed is None else listed
        inputs: Iterable[InputFile] = choose_files(found, n_buckets, wanted)
        if detected:
            known, inputs = detected.split(inputs)
            yield from known
        if isinstance(folder, str) and kept is not None:
            inputs = fetch(folder, list(inputs), kept / COPIES)
        for file, records in _read_files(inputs, settings, cache_folder):
            if detected:
                detected.add(file, records)
            yield from records


def choose_files(inputs: Sequence[InputFile], n_buckets: int, wanted: Collection[str] | None) -> list[InputFile]:
    """Return the files that can contain documents of the wanted buckets; all if None."""
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
) -> Iterator[tuple[InputFile, list[SourceRecord]]]:
    filters = parse_filters(settings.filters)
    for file in inputs:
        records = _read_file(file, settings, cache_folder)
        # Rows were judged with their file.
        yield file, [one for one in records if one.record or one.is_unknown or passes_all(one, filters)]


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

    A file is fetched once and kept by its path and the version that the store reports; by size alone it is fetched each
    time. A folder that cannot be listed, and a store from which nothing can be fetched, stop the run: if a network
    error counted as a deletion, documents would disappear from the index.

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
    return InputFile(path, location_of_copy(url, path, version, copies), None, url_path, n_bytes, version)


def location_of_copy(url: str, path: str, version: str, copies: Path) -> bytes:
    """Return where a version of a file of a URL is kept on this machine."""
    return os.fsencode(copies / stable_hash(url, path, version))


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
    """Write the copies of files; return those that could not be fetched, with their problems, by path."""
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
