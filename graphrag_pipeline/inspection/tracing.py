"""Trace of a citation of an answer to reports, communities, entities, mentions, text units and documents.

This module parses citations. `trace_tree.py` finds the sources of a record, `trace_origins.py` their origins. Keep out:
rendering.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from graphrag_pipeline.citations import KIND_OF_RECORD, KINDS, render_citation, split_written
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.inspection.trace_origins import FindRun
from graphrag_pipeline.inspection.trace_tree import TraceNode, Tracer
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import SNAPSHOT
from graphrag_pipeline.query.index.graph_index import GraphIndex

_BARE = re.compile(r"\s*([A-Za-z][A-Za-z _]*?)\s*[:#(]?\s*((?:\d+\s*[-\u2013,]?\s*)+)\)?\s*")
_KINDS = {kind.lower(): kind for kind in KINDS} | {
    kind.replace("_", " "): name for kind, name in KIND_OF_RECORD.items()
}
_KINDS |= {"source": "Sources", "text units": "Sources", "covariate": "Claims", "covariates": "Claims"}


@dataclass(frozen=True)
class Trace:
    """Result of a trace.

    Attributes:
        citation: the citation in standard form.
        published_by: id of the Dagster run that published the snapshot.
        missing: "Entities 99" for each number without a record.
    """

    citation: str
    snapshot: str
    published_by: str | None
    nodes: tuple[TraceNode, ...]
    missing: tuple[str, ...]


def read_citation(text: str) -> dict[str, list[int]]:
    """Parse a citation into kind -> record numbers.

    Args:
        text: as in answers, `[Data: Entities (12, 13); Reports (3)]`, or shorter: `Entities (12)`, `Entities:12`,
            `entity 12`, several of them with `;` between them.

    Raises:
        PipelineError: the text names no record.
    """
    cited: dict[str, list[int]] = {}
    for kind, numbers in _read_bracketed(text) or _read_bare(text):
        if kind in KINDS:
            cited.setdefault(kind, []).extend(int(number) for number in numbers if number.isdecimal())
    if not any(cited.values()):
        raise PipelineError(
            f"{text!r} names no record; write it as answers do, such as '[Data: Entities (12, 13)]', or 'Entities:12', "
            f"of {', '.join(KINDS)}; the list of sources below an answer explains its plain [1]"
        )
    return {kind: list(dict.fromkeys(numbers)) for kind, numbers in cited.items()}


def _read_bracketed(text: str) -> list[tuple[str, list[str]]]:
    return [part for _, _, cited in split_written(text) for part in cited or ()]


def _read_bare(text: str) -> list[tuple[str, list[str]]]:
    found = [match for part in text.split(";") if (match := _BARE.fullmatch(part))]
    named = [(_KINDS.get(match.group(1).lower().replace("_", " ").strip()), match.group(2)) for match in found]
    bracketed = render_citation((kind, [numbers.strip()]) for kind, numbers in named if kind)
    return _read_bracketed(bracketed)


def trace_citation(root: Root, index: GraphIndex, citation: str, find_run: FindRun, n_most: int = 3) -> Trace:
    """Trace a citation in an index.

    Args:
        index: of the root.
        n_most: maximum text units of a record, mentions in a text unit, findings and cited records of a report.

    Raises:
        PipelineError: the citation names no record of the index.
    """
    cited = read_citation(citation)
    tracer = Tracer(root, index, find_run, n_most)
    nodes, missing = [], []
    for kind, numbers in cited.items():
        for number in numbers:
            found = tracer.find(kind, number)
            if found:
                nodes.append(tracer.trace(found))
            else:
                missing.append(f"{kind} {number}")
    normalized = render_citation((kind, map(str, numbers)) for kind, numbers in cited.items())
    if not nodes:
        raise PipelineError(f"{normalized}: snapshot {index.snapshot.id} has no such record")
    published_by = find_run(SNAPSHOT.name, WHOLE, index.snapshot.id)
    return Trace(normalized, index.snapshot.id, published_by, tuple(nodes), tuple(missing))
