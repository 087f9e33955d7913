"""The registry of search methods by name."""

from __future__ import annotations

from collections.abc import Mapping

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.query.methods import auto
from graphrag_pipeline.query.methods.method import SearchMethod
from graphrag_pipeline.query.methods.steps import CHOOSABLE

METHODS: Mapping[str, SearchMethod] = {**CHOOSABLE, auto.METHOD.name: auto.METHOD}
"""Search methods, in the order of `settings/search_names.py`."""


def look_up_method(name: str) -> SearchMethod:
    """Return the method of a name.

    Raises:
        PipelineError: no method has this name.
    """
    if name not in METHODS:
        raise PipelineError(f"unknown search method {name!r}; valid: {', '.join(METHODS)}")
    return METHODS[name]
