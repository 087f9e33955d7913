"""Messages for errors of fsspec and the packages behind it. Keep out: the operations that fail."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.settings.urls import holds_secret, mask_url, mask_urls

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_MAX_REASON_CHARS = 200


def missing_package_message(url: str, error: ImportError) -> str:
    """Return the message for a URL whose package is not installed, with the package to install."""
    protocol = url.partition("://")[0]
    return f"{mask_url(url)}: no installed package reads {protocol}:// ({error}); pip install {_package_for(protocol)}"


def _package_for(protocol: str) -> str:
    from fsspec.registry import known_implementations

    package = known_implementations.get(protocol, {"class": ""})["class"].partition(".")[0]
    return "the package that this error names" if package in ("", "fsspec") else package


def describe_error(error: BaseException, url: str = "") -> str:
    """Return the type and the first line of an error, such as `PermissionError: Access Denied`.

    Args:
        url: what was opened; its secrets and those of other URLs are not shown.
    """
    first = mask_urls(str(error), url.rstrip("/")).partition("\n")[0]
    return f"{type(error).__name__}: {first[:_MAX_REASON_CHARS]}"


def shown_cause(error: BaseException, url: str) -> BaseException | None:
    """Return an error as the cause of ours, for tracebacks in logs and in Dagster; None if they would show a secret."""
    return None if holds_secret("".join(traceback.format_exception(error)), url) else error


def list_files(store: AbstractFileSystem, folder: str) -> dict[str, dict[str, Any]]:
    """Return all files below a folder, by path.

    Stores of objects list them in one go. Others are listed folder by folder, not by `find`, which leaves out a folder
    below the first whose listing fails.

    Raises:
        Exception: a folder cannot be listed; it was not removed.
    """
    if _lists_at_once(store):
        return dict(store.find(folder, detail=True))
    found: dict[str, dict[str, Any]] = {}
    folders = [folder]
    for at in folders:
        try:
            entries = store.ls(at, detail=True)
        except FileNotFoundError:
            if at == folder:
                raise
            continue  # it was removed while the folder was listed
        for entry in entries:
            name = entry["name"]
            if entry["type"] != "directory":
                found[name] = entry
            elif name.rstrip("/") != at.rstrip("/"):
                folders.append(name.rstrip("/"))
    return found


def _lists_at_once(store: AbstractFileSystem) -> bool:
    """Whether the store has a listing of its own of all files below a prefix, which fails as a whole."""
    from fsspec.asyn import AsyncFileSystem

    return isinstance(store, AsyncFileSystem) and type(store)._find is not AsyncFileSystem._find
