"""Vector tables: immutable LanceDB folders, the contract of a vector store, and the registry of stores.

LanceDB, PostgreSQL, Qdrant and Azure AI Search are built in. Another store is a class that implements `VectorStore`
(`stores.py`), registered under a name:

    register_vector_store("milvus", lambda folder, options: MilvusStore(**options))

`vector_store.kind` names it, and `vector_store.module` the module that registers it.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from graphrag_pipeline.errors import SettingsError
from graphrag_pipeline.settings.settings import VectorStoreSettings

if TYPE_CHECKING:
    from graphrag_pipeline.storage.vectors.stores import SnapshotVectors

CLIENT = "lance_namespace_urllib3_client"
"""The package of the client. LanceDB itself needs only its value classes, which are in the subpackage `models`."""
_IS_LOADED = "_is_loaded"


class _WaitingPackage(ModuleType):
    """A package whose `__init__` runs when one of its own names is first asked for; its submodules import as usual."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or _IS_LOADED in self.__dict__:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        assert self.__spec__ is not None and self.__spec__.loader is not None
        self.__dict__[_IS_LOADED] = True
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


def defer_rest_client() -> None:
    """Let `import lancedb` leave the REST client of its hosted catalogues unloaded until something uses it.

    Its validators for 360 methods, which nothing here asks, take 0.75 of the 2.0 s of that import.
    """
    if CLIENT in sys.modules:
        return
    spec = find_spec(CLIENT)
    if spec is None or spec.submodule_search_locations is None:
        return  # another release of LanceDB, without this client
    package = module_from_spec(spec)
    package.__class__ = _WaitingPackage
    sys.modules[CLIENT] = package


defer_rest_client()

StoreFactory: TypeAlias = "Callable[[Path, Mapping[str, Any]], SnapshotVectors]"
"""A function that makes a store from the root's folder for vectors, which it may use, and `vector_store.options`."""


def _open_lance_store(folder: Path, options: Mapping[str, Any]) -> SnapshotVectors:
    from graphrag_pipeline.storage.vectors.lance import LanceStore

    return LanceStore(folder)


def _service(place: str, extra: str) -> StoreFactory:
    """Return the factory of a store whose class, `module:class`, takes the options as named values."""

    def open_service(folder: Path, options: Mapping[str, Any]) -> SnapshotVectors:
        module, _, name = place.partition(":")
        try:
            store = getattr(importlib.import_module(f"{__name__}.{module}"), name)
        except ImportError as error:
            remedy = f"pip install 'graphrag-pipeline[{extra}]'"
            raise SettingsError(f"vector_store.kind: {error}; {remedy}") from error
        known = inspect.signature(store).parameters
        if unknown := sorted(set(options) - set(known)):
            raise SettingsError(f"vector_store.options: {unknown[0]!r} is no option; there are {', '.join(known)}")
        opened: SnapshotVectors = store(**options)
        return opened

    return open_service


LANCEDB = "lancedb"
_FACTORIES: dict[str, StoreFactory] = {
    LANCEDB: _open_lance_store,
    "azure_search": _service("azure_search:AzureSearchStore", "azure"),
    "pgvector": _service("pgvector:PgVectorStore", "postgres"),
    "qdrant": _service("qdrant:QdrantStore", "qdrant"),
}
"""Filled by `register_vector_store`, which the user's module calls when it is imported."""


def register_vector_store(kind: str, factory: StoreFactory) -> None:
    """Make a kind of store available to `vector_store.kind`; it replaces an earlier one of that name."""
    _FACTORIES[kind] = factory


def registered_vector_stores() -> list[str]:
    """Return the kinds that can be opened now, sorted."""
    return sorted(_FACTORIES)


def open_vector_store(settings: VectorStoreSettings, folder: Path, kind: str | None = None) -> SnapshotVectors:
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
