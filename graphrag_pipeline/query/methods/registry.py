"""The registry of search methods: name -> the `METHOD` of the module of that name in this folder.

A method's module is imported when the method is first looked up. `settings/search_names.py` is the table of names.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from importlib import import_module
from keyword import iskeyword

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.query.methods.method import SearchMethod
from graphrag_pipeline.settings.search_names import SEARCH_METHODS


class _Methods(Mapping[str, SearchMethod]):
    """Search methods by name, in the order of the table."""

    def __getitem__(self, name: str) -> SearchMethod:
        if name not in SEARCH_METHODS:
            raise KeyError(name)
        return _load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(SEARCH_METHODS)

    def __len__(self) -> int:
        return len(SEARCH_METHODS)


METHODS: Mapping[str, SearchMethod] = _Methods()


@functools.cache
def _load(name: str) -> SearchMethod:
    module = import_module(f"graphrag_pipeline.query.methods.{name}{'_' * iskeyword(name)}")
    method: SearchMethod = module.METHOD
    return method


def look_up_method(name: str) -> SearchMethod:
    """Return the method of a name.

    Raises:
        PipelineError: no method has this name.
    """
    if name not in METHODS:
        raise PipelineError(f"unknown search method {name!r}; valid: {', '.join(METHODS)}")
    return METHODS[name]
