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
"""Makes a store from the root's folder for vectors, which it may use, and `vector_store.options`."""


def _open_lance_store(folder: Path, options: Mapping[str, Any]) -> VectorStore:
    from graphrag_pipeline.storage.vectors.lance import LanceStore

    return LanceStore(folder)


LANCEDB = "lancedb"
_FACTORIES: dict[str, StoreFactory] = {LANCEDB: _open_lance_store}


def register_vector_store(kind: str, factory: StoreFactory) -> None:
    """Make a kind of store available to `vector_store.kind`; the last one registered under a name counts."""
    _FACTORIES[kind] = factory


def registered_vector_stores() -> list[str]:
    """The kinds that can be opened now."""
    return sorted(_FACTORIES)


def open_vector_store(settings: VectorStoreSettings, folder: Path, kind: str | None = None) -> VectorStore:
    """The store that the settings name, or, where a snapshot says so, one of another kind with its defaults.

    Args:
        folder: of all vector tables of a root.

    Raises:
        SettingsError: no store of this kind is registered, or the module that should register it cannot be imported.
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
            "name the module that registers it in vector_store.module"
        )
    return _FACTORIES[wanted](folder, settings.options if wanted == settings.kind else {})
