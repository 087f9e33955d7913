"""Figures kept beside the snapshot that they are of: `evaluations/<snapshot>/<name>.json` in the root.

A name says what was measured and how (`name_retrieval`, `name_comparison`), not of which snapshot: so two snapshots
have comparable figures under one name. No text of documents is kept; the folder of a snapshot goes with it (`prune`,
`forget`). Keep out: measuring.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from graphrag_pipeline.evaluation.comparison import Comparison
from graphrag_pipeline.evaluation.questions import Question
from graphrag_pipeline.evaluation.retrieval_figures import RetrievalFigures
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.storage.garbage import EVALUATIONS_FOLDER

_DIGITS = 12
_SEARCH_SECTIONS = ("local_search", "basic_search", "drift_search", "lazy_search", "auto_search")


def name_retrieval(questions: Sequence[Question], k: int, settings: Settings) -> str:
    """What makes figures of two snapshots comparable: questions, evidence, k, settings of the searches, release."""
    asked = [(question.question, question.evidence) for question in questions]
    searches = {name: getattr(settings, name).model_dump(mode="json") for name in _SEARCH_SECTIONS}
    return f"retrieval-{_digest(asked, k, searches, version('graphrag-pipeline'))}"


def name_comparison(questions: Sequence[Question], comparison: Comparison) -> str:
    """Of questions and conditions."""
    names = [condition.name for condition in comparison.conditions]
    return f"comparison-{_digest([question.question for question in questions], names)}"


def _digest(*values: Any) -> str:
    return files.content_hash(json.dumps(values, sort_keys=True).encode())[:_DIGITS]


def load_retrieval(root: Path, snapshot: str, name: str) -> dict[str, RetrievalFigures]:
    """Figures by method; none where nothing readable is kept."""
    try:
        rows = json.loads(_path(root, snapshot, name).read_bytes())["figures"]
        return {row["method"]: RetrievalFigures(**{**row, "recalls": tuple(row["recalls"])}) for row in rows}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def save_retrieval(root: Path, snapshot: str, name: str, figures: Sequence[RetrievalFigures]) -> None:
    """Keep figures, beside those of other methods under the same name."""
    known = load_retrieval(root, snapshot, name) | {row.method: row for row in figures}
    _save(root, snapshot, name, {"figures": [asdict(known[method]) for method in sorted(known)]})


def save_comparison(root: Path, snapshot: str, name: str, comparison: Comparison) -> None:
    """Keep a comparison; an earlier one under the same name is replaced."""
    _save(root, snapshot, name, comparison.to_dict())


def _save(root: Path, snapshot: str, name: str, values: dict[str, Any]) -> None:
    content = json.dumps({"snapshot": snapshot, **values}, indent=1, sort_keys=True, ensure_ascii=False)
    files.replace(_path(root, snapshot, name), content.encode())


def _path(root: Path, snapshot: str, name: str) -> Path:
    return root / EVALUATIONS_FOLDER / snapshot / f"{name}.json"
