"""Listing of all files below a folder of fsspec; an error is never an empty folder. Keep out: their content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem


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
