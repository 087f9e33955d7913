"""Ports of engines: which engine fills a port, found by entry points, so that another package can bring one.

An engine fills one port or more. For each its package declares an entry point of the group `graphrag_pipeline.engines`,
named `ENGINE.PORT`, such as `embedded.extractor`. The entry point names a class or function that makes the port. It is
called with a `Root`, for `rater` with an `IndexReader`, for `answerer` with an `IndexReader` and a receiver of text. An
engine may also have `commands`: a function that adds commands to the command line. Settings choose by `SECTION.engine`.

| port | protocol | section |
|---|---|---|
| `extractor`, `describer`, `reporter` | `indexing.ports` | `extraction`, `descriptions`, `reports` |
| `embedder` | `models.ports.Embedder` | `embeddings` |
| `rater` | `query.search.raters.Rater` | `rating` |
| `answerer` | `query.answers.answering.Answerer` | `answers` |

Keep out: the engines; no module of the package imports one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from graphrag_pipeline.errors import PipelineError

GROUP = "graphrag_pipeline.engines"
EMBEDDED = "embedded"
"""The engine that needs no model and no network; it replaces what another engine fails to make."""
PORTS = {
    "extraction": "extractor",
    "descriptions": "describer",
    "reports": "reporter",
    "embeddings": "embedder",
    "rating": "rater",
    "answers": "answerer",
}
"""Section of the settings -> the port that its `engine` fills."""


@cache
def _installed() -> Mapping[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def engines_with(port: str) -> list[str]:
    """Return the names of the installed engines that fill a port, sorted.

    Raises:
        PipelineError: the entry points of this package are not installed, as after an update of its files alone.
    """
    if f"{EMBEDDED}.extractor" not in _installed():
        raise PipelineError(f"no entry point of the group `{GROUP}` is installed; install graphrag-pipeline again")
    return sorted(name.rpartition(".")[0] for name in _installed() if name.endswith(f".{port}"))


@cache
def load_port(port: str, engine: str = EMBEDDED) -> Any:
    """Return what makes a port of an engine: a class or a function.

    Raises:
        PipelineError: no installed package has the engine, or its module cannot be imported.
    """
    entry = _installed().get(f"{engine}.{port}")
    if entry is None:
        known = ", ".join(engines_with(port))
        raise PipelineError(f"no installed package has the {port} `{engine}`; engines with one: {known}")
    try:
        return entry.load()
    except (ImportError, AttributeError) as error:
        raise PipelineError(f"the {port} `{engine}` ({entry.value}) cannot be loaded: {error}") from error


def load_commands() -> list[Any]:
    """Return the functions that add the commands of engines to the command line, in the order of their engines."""
    return [
        load_port("commands", name.rpartition(".")[0]) for name in sorted(_installed()) if name.endswith(".commands")
    ]
