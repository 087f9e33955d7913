"""All quality figures of one snapshot, measured once and stored.

They are stored as `evaluations/<snapshot>/quality-<hash>.json`, where the hash covers the samples, the prompts that
placeholders are read from, and the release. Thresholds are not part of it: a changed threshold judges stored figures
again. Figures are the same for the same snapshot. Keep out: showing them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from graphrag_pipeline.evaluation.index_quality.duplicates import measure_duplicates
from graphrag_pipeline.evaluation.index_quality.engine_agreement import (
    N_COMPARED,
    agreement_figures,
    compare_engines,
    find_extractor,
)
from graphrag_pipeline.evaluation.index_quality.figures import QualityFigure
from graphrag_pipeline.evaluation.index_quality.graph_figures import measure_graph
from graphrag_pipeline.evaluation.index_quality.placeholders import INDEX_PROMPTS, measure_placeholders
from graphrag_pipeline.evaluation.index_quality.report_figures import measure_citations
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.ports import load_port
from graphrag_pipeline.settings.quality import QualitySettings
from graphrag_pipeline.storage.garbage import EVALUATIONS_FOLDER
from graphrag_pipeline.storage.snapshots import Snapshot

_DIGITS = 12
_VERSION = 1
"""Version of the definitions of the figures; raise it when one changes."""


@dataclass(frozen=True)
class IndexQuality:
    """The quality figures of a snapshot.

    Attributes:
        extractor: the model that extracted the entities, `an import`, or the embedded engine.
        figures: in the order of `FIGURES`.
    """

    snapshot: str
    extractor: str
    figures: tuple[QualityFigure, ...]

    def warnings(self, settings: QualitySettings) -> list[QualityFigure]:
        """Return the figures beyond their thresholds."""
        return [figure for figure in self.figures if figure.is_low(settings)]

    def to_dict(self, settings: QualitySettings) -> dict[str, Any]:
        """Return everything as JSON values."""
        rows = [
            {
                **asdict(figure),
                "meaning": figure.kind.meaning,
                "setting": f"quality.thresholds.{figure.kind.option}",
                "threshold": settings.threshold(figure.kind.option),
                "is_warning": figure.is_low(settings),
                "advice": figure.kind.advice,
                "examples_are": figure.kind.listed,
            }
            for figure in self.figures
        ]
        n_warnings = len(self.warnings(settings))
        return {"snapshot": self.snapshot, "extractor": self.extractor, "n_warnings": n_warnings, "figures": rows}


def measure_quality(root: Root, snapshot: Snapshot, before: Snapshot | None = None) -> IndexQuality:
    """Return the quality figures of a snapshot: stored ones, or measured now and stored.

    Args:
        before: the snapshot that was published before; if its stored figures found no placeholder, only texts that
            are new since then are read for them. The figures do not depend on it.

    Raises:
        PipelineError: the snapshot, its vector store or a prompt cannot be read.
    """
    path = _path_of(root, snapshot.id)
    stored = _load(path)
    if stored is not None:
        return stored
    measured = IndexQuality(
        snapshot.id,
        find_extractor(snapshot) or "the embedded engine",
        tuple(_measure(root, snapshot, before if _is_clean(root, before) else None)),
    )
    content = json.dumps(asdict(measured), indent=1, sort_keys=True, ensure_ascii=False)
    files.replace(path, content.encode())
    return measured


def _is_clean(root: Root, snapshot: Snapshot | None) -> bool:
    """Whether no placeholder was found in a snapshot when it was measured with the same prompts."""
    stored = _load(_path_of(root, snapshot.id)) if snapshot else None
    return stored is not None and any(f.name == "placeholders" and f.value == 0 for f in stored.figures)


def _measure(root: Root, snapshot: Snapshot, clean: Snapshot | None) -> Iterator[QualityFigure]:
    extraction = root.settings.extraction
    yield from measure_graph(snapshot, extraction.uses_model and extraction.has_claims)
    yield from measure_duplicates(snapshot)
    yield from measure_citations(snapshot)
    yield measure_placeholders(root, snapshot, clean)
    found = compare_engines(snapshot, load_port("extractor")(root), N_COMPARED)
    yield from agreement_figures(found, find_extractor(snapshot))


def _path_of(root: Root, snapshot_id: str) -> Path:
    prompts = {name: root.prompt(name).sha256 for name in INDEX_PROMPTS}
    content = json.dumps([_VERSION, prompts, version("graphrag-pipeline")], sort_keys=True)
    name = f"quality-{files.content_hash(content.encode())[:_DIGITS]}.json"
    return root.path / EVALUATIONS_FOLDER / snapshot_id / name


def _load(path: Path) -> IndexQuality | None:
    """Return stored figures; None if the file is missing or damaged."""
    try:
        values = json.loads(path.read_bytes())
        figures = (QualityFigure(**{**row, "examples": tuple(row["examples"])}) for row in values["figures"])
        return IndexQuality(values["snapshot"], values["extractor"], tuple(figures))
    except (OSError, ValueError, KeyError, TypeError):
        return None
