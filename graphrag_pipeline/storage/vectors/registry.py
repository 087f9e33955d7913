"""The registry of vector stores: the kinds that `vector_store.kind` can name, and opening one of them.

LanceDB is built in. Another store is a class that implements `VectorStore` (`stores.py`), registered under a name:

    register_vector_store("azure_ai_search", lambda folder, options: AzureSearchStore(**options))

`vector_store.module` names the module that registers it. Keep out: the contract of a store.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from graphrag_pipeline.errors import SettingsError
from graphrag_pipeline.settings.settings import VectorStoreSettings
from graphrag_pipeline.storage.vectors.stores import VectorStore

StoreFactory: TypeAlias = "Callable[[Path, Mapping[str, Any]], VectorStore]"
"""A function that makes a store from the root's folder for vectors, which it may use, and `vector_store.options`."""


def _open_lance_store(folder: Path, options: Mapping[str, Any]) -> VectorStore:
    from graphrag_pipeline.storage.vectors.lance import LanceStore

    return LanceStore(folder)


LANCEDB = "lancedb"
_FACTORIES: dict[str, StoreFactory] = {LANCEDB: _open_lance_store}
"""Filled by `register_vector_store`, which the user's module calls when it is imported."""


def register_vector_store(kind: str, factory: StoreFactory) -> None:
    """Make a kind of store available to `vector_store.kind`; it replaces an earlier one of that name."""
    _FACTORIES[kind] = factory


def registered_vector_stores() -> list[str]:
    """Return the kinds that can be opened now, sorted."""
    return sorted(_FACTORIES)


def open_vector_store(settings: VectorStoreSettings, folder: Path, kind: str | None = None) -> VectorStore:
    """Open the store that the settings name, or the kind that a snapshot names.

    Args:
        folder: folder of all vector tables of a root.
        kind: kind named by a snapshot; a kind other than that of the settings is opened without options.

    Raises:
        SettingsError: no store of this kind is registered, or `vector_store.module` cannot be imported.
    """
    wanted = kind or settings.kind
    if settings.module and wanted not in _FACTORIES:
        try:
            importlib.import_module(settings.module)
        except ImportError as error:
            raise SettingsError(f"vector_store.module: {settings.module!r} cannot be imported ({error})") from error
    if wanted not in _FACTORIES:
        raise SettingsError(
            f"vector_store.kind: no store {wanted!r} is registered; there are {', '.join(registered_vector_stores())}; "
            "set vector_store.module to the module that registers it"
        )
    return _FACTORIES[wanted](folder, settings.options if wanted == settings.kind else {})
