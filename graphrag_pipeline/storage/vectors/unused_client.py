"""LanceDB without the generated REST client of its hosted catalogues, which this package never asks.

`import lancedb` builds validators for 360 methods of that client: 0.75 of its 2.0 s, in every command and every step.
Keep out: LanceDB itself.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

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
    """Let `import lancedb` leave the REST client unloaded until something uses it. Does nothing if it is loaded."""
    if CLIENT in sys.modules:
        return
    spec = find_spec(CLIENT)
    if spec is None or spec.submodule_search_locations is None:
        return  # another release of LanceDB, without this client
    package = module_from_spec(spec)
    package.__class__ = _WaitingPackage
    sys.modules[CLIENT] = package
