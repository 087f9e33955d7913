"""Objects of a store by name, behind an fsspec URL: read, write, transfer many at once, list, remove.

There are two kinds. A folder of this machine or of a network file system (`file://`) is written by the same atomic
steps as a root. All other URLs go through the package that fsspec names; there a PUT is atomic, and many run in
parallel. The packages read keys and tokens (environment variables, ~/.aws, FSSPEC_S3='{"endpoint_url": ...}'). Keep
out: the meaning of the objects.
"""

from __future__ import annotations

import errno
import functools
import os
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from graphrag_pipeline.errors import PipelineError, StoreError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filesystem.fsspec_errors import describe_error, list_files, missing_package_message, shown_cause
from graphrag_pipeline.settings.urls import mask_url

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_OF_THIS_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""Errors of this machine's disk during a download; they are not errors of the store."""


@contextmanager
def translate_errors(url: str, *passing: type[Exception]) -> Iterator[None]:
    """Raise errors of a store again as `StoreError` with the way out.

    Args:
        url: the store, for the message.
        passing: types of errors that are raised unchanged, for the caller.

    Raises:
        StoreError: the store failed, or its package is not installed.
        PipelineError: the disk of this machine failed.
    """
    try:
        yield
    except PipelineError:
        raise
    except ImportError as error:
        raise StoreError(missing_package_message(url, error)) from None
    except Exception as error:  # the packages of stores have different errors for rights, names and networks
        if isinstance(error, passing):
            raise
        if isinstance(error, OSError) and error.errno in _OF_THIS_MACHINE:
            raise files.write_error(Path(error.filename or tempfile.gettempdir()), error) from error
        raise StoreError(
            f"{mask_url(url)}: the shared store of storage.url failed ({describe_error(error, url)}); check the URL, "
            "the network and the credentials, then run again. Finished work is kept here"
        ) from shown_cause(error, url)


_EXCLUSIVE = ("s3", "s3a", "gs", "gcs", "memory")
"""Protocols whose packages can create an object in one step, only if it does not exist."""
_N_DOWNLOADS = 32
_N_UPLOADS = 8  # each may hold 100 MB of its file


class ObjectStore(Protocol):
    """Objects by name; a name is a relative path with `/`. Every method raises StoreError if the store fails."""

    url: str
    shown_url: str
    """`url` for messages: without user, password and query string."""
    is_exclusive: bool
    """Whether `create` is atomic between machines, if the store implements its protocol."""

    def read(self, name: str) -> bytes | None:
        """Return an object's content; None if it does not exist."""

    def write(self, name: str, data: bytes) -> None:
        """Write an object in one step: a reader gets the old one or the new one."""

    def create(self, name: str, data: bytes) -> bool:
        """Create an object unless it exists; return whether it was created."""

    def upload(self, sources: Mapping[str, Path]) -> None:
        """Upload files as objects, each in one step."""

    def download(self, targets: Mapping[str, Path]) -> list[str]:
        """Download objects to paths, each whole or not at all; return the names that do not exist."""

    def names(self, folder: str) -> list[str]:
        """Return the names of all objects below a folder, sorted."""

    def remove(self, names: Collection[str]) -> None:
        """Remove objects; names that do not exist are ignored."""

    def flush(self) -> None:
        """Let all objects that were written survive a power cut; stores of objects do so by themselves."""

    def for_thread(self) -> ObjectStore:
        """Return the same objects for use by another thread at the same time."""


def open_object_store(url: str) -> ObjectStore:
    """Return the objects behind a URL; no request is sent yet."""
    protocol, _, rest = url.partition("://")
    if not rest.strip("/"):
        raise StoreError(f"{mask_url(url)}: storage.url has no bucket or folder; write one, such as s3://bucket/index")
    return FolderObjectStore(url, Path(rest)) if protocol in ("file", "local") else RemoteObjectStore(url)


class FolderObjectStore:
    """Objects as files of a folder."""

    is_exclusive = True

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.shown_url = mask_url(url)
        self._folder = folder

    def read(self, name: str) -> bytes | None:
        try:
            with translate_errors(self.url, FileNotFoundError):
                return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        with translate_errors(self.url):
            files.replace(self._folder / name, data)

    def create(self, name: str, data: bytes) -> bool:
        path = self._folder / name
        temporary = files.temporary_path(path.parent)
        try:
            with translate_errors(self.url, FileExistsError):
                path.parent.mkdir(parents=True, exist_ok=True)
                with temporary.open("xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.link(temporary, path)  # the one step that fails if the object exists
            return True
        except FileExistsError:
            return False
        finally:
            temporary.unlink(missing_ok=True)

    def upload(self, sources: Mapping[str, Path]) -> None:
        for name, source in sources.items():
            with translate_errors(self.url), source.open("rb") as file:
                files.replace_by(self._folder / name, functools.partial(shutil.copyfileobj, file))

    def download(self, targets: Mapping[str, Path]) -> list[str]:
        missing = []
        for name, target in targets.items():
            try:
                with translate_errors(self.url, FileNotFoundError), (self._folder / name).open("rb") as file:
                    files.replace_by(target, functools.partial(shutil.copyfileobj, file))
            except FileNotFoundError:
                missing.append(name)
        return missing

    def names(self, folder: str) -> list[str]:
        with translate_errors(self.url):
            found = (path for path in (self._folder / folder).rglob("*") if path.is_file())
            return sorted(path.relative_to(self._folder).as_posix() for path in found)

    def remove(self, names: Collection[str]) -> None:
        with translate_errors(self.url):
            for name in names:
                (self._folder / name).unlink(missing_ok=True)

    def flush(self) -> None:
        with translate_errors(self.url):
            if self._folder.is_dir():
                files.flush_to_disk(self._folder)

    def for_thread(self) -> ObjectStore:
        return self


class RemoteObjectStore:
    """Objects of an object store, or of any other file system of fsspec."""

    def __init__(self, url: str, is_cached: bool = True) -> None:
        self.url = url
        self.shown_url = mask_url(url)
        self.is_exclusive = url.partition("://")[0] in _EXCLUSIVE
        self._is_cached = is_cached

    @functools.cached_property
    def _opened(self) -> tuple[AbstractFileSystem, str]:
        from fsspec.core import url_to_fs

        with translate_errors(self.url):
            options = {} if self._is_cached else {"skip_instance_cache": True}
            store, folder = url_to_fs(self.url, **options)
            return store, folder.rstrip("/")

    @property
    def _store(self) -> AbstractFileSystem:
        return self._opened[0]

    def _path(self, name: str) -> str:
        return f"{self._opened[1]}/{name}"

    def read(self, name: str) -> bytes | None:
        path = self._path(name)
        try:
            with translate_errors(self.url, FileNotFoundError):
                # With a start, packages do not request the size first.
                return bytes(self._store.cat_file(path, start=0))
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        path = self._path(name)
        with translate_errors(self.url):
            self._make_folders([path])
            self._store.pipe_file(path, data)

    def create(self, name: str, data: bytes) -> bool:
        path = self._path(name)
        try:
            with translate_errors(self.url, FileExistsError):
                self._make_folders([path])
                self._store.pipe_file(path, data, mode="create")
            return True
        except FileExistsError:
            return False

    def upload(self, sources: Mapping[str, Path]) -> None:
        if not sources:
            return
        paths = [self._path(name) for name in sources]
        with translate_errors(self.url):
            self._make_folders(paths)
            self._store.put([str(path) for path in sources.values()], paths, **self._at_once(_N_UPLOADS))

    def download(self, targets: Mapping[str, Path]) -> list[str]:
        temporaries = {name: files.temporary_path(_made(target.parent)) for name, target in targets.items()}
        try:
            missing = self._fetch(temporaries)
            for name in set(targets) - set(missing):
                os.replace(temporaries[name], targets[name])
            return missing
        finally:
            for temporary in temporaries.values():
                temporary.unlink(missing_ok=True)

    def _fetch(self, targets: Mapping[str, Path]) -> list[str]:
        """Download all; if one object is missing, download one by one and return the missing names."""
        if not targets:
            return []
        paths = [self._path(name) for name in targets]
        try:
            with translate_errors(self.url, FileNotFoundError):
                self._store.get(paths, [str(path) for path in targets.values()], **self._at_once(_N_DOWNLOADS))
            return []
        except FileNotFoundError:
            return [name for name, target in targets.items() if not self._fetch_one(name, target)]

    def _fetch_one(self, name: str, target: Path) -> bool:
        path = self._path(name)
        try:
            with translate_errors(self.url, FileNotFoundError):
                self._store.get_file(path, str(target))
            return True
        except FileNotFoundError:
            return False

    def names(self, folder: str) -> list[str]:
        path, prefix = self._path(folder), self._path("")
        try:
            with translate_errors(self.url, FileNotFoundError):
                self._store.invalidate_cache()
                return sorted(found.removeprefix(prefix) for found in list_files(self._store, path))
        except FileNotFoundError:  # no object was written there yet
            return []

    def remove(self, names: Collection[str]) -> None:
        paths = [self._path(name) for name in names]
        if len(paths) == 1:
            self._remove_one(paths[0])
        if len(paths) <= 1:
            return
        try:
            with translate_errors(self.url, FileNotFoundError):
                self._store.rm(paths)
        except FileNotFoundError:
            for path in paths:
                self._remove_one(path)

    def _remove_one(self, path: str) -> None:
        try:
            with translate_errors(self.url, FileNotFoundError):
                self._store.rm_file(path)
        except FileNotFoundError:
            pass

    def flush(self) -> None:
        pass

    def for_thread(self) -> ObjectStore:
        return self if self._store.async_impl else RemoteObjectStore(self.url, is_cached=False)

    def _at_once(self, n: int) -> dict[str, Any]:
        return {"batch_size": n} if self._store.async_impl else {}

    def _make_folders(self, paths: Iterable[str]) -> None:
        """Create folders for packages that need them; object stores have none."""
        if not self._store.async_impl:
            for folder in sorted({path.rpartition("/")[0] for path in paths}):
                self._store.makedirs(folder, exist_ok=True)


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise files.write_error(folder, error) from error
    return folder
