"""Store of evaluation figures: `evaluations/<snapshot>/<name>.json` in the root.

A name is a hash of what was measured and how (`name_retrieval`, `name_answers`, `name_comparison`), without the
snapshot. So comparable figures of two snapshots have the same name. The files hold no text but the beginning
of what a model answered. `prune` and `forget` delete the folder of a snapshot with the snapshot. Keep out: measuring.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from graphrag_pipeline.evaluation.answer_figures import AnswerFigures
from graphrag_pipeline.evaluation.answer_judging import JUDGING_PROMPTS
from graphrag_pipeline.evaluation.comparison import Comparison
from graphrag_pipeline.evaluation.questions import Question
from graphrag_pipeline.evaluation.retrieval_figures import RetrievalFigures
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.models.prompts import PROMPT_NAMES
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.settings.search_names import SEARCH_METHODS
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.storage.snapshot_store import EVALUATIONS_FOLDER

Figures = TypeVar("Figures", RetrievalFigures, AnswerFigures)
_DIGITS = 12
_ANSWER_FIGURES = 3
"""Version of the figures of answers. Figures of another version have another name, and are measured again."""
_SEARCHES = tuple(name for name in SEARCH_METHODS if name != "global")
"""Methods that return text units in an order of their own."""
_ANSWERING = (*(f"{name}_search" for name in SEARCH_METHODS), "rating", "answers")
"""Sections that decide what an answer says."""


def name_retrieval(questions: Sequence[Question], k: int, settings: Settings) -> str:
    """Return the name of retrieval figures: a hash of questions, evidence, k, search settings and release."""
    gold = [(question.question, question.evidence) for question in questions]
    searches = {name: settings.search(name).model_dump(mode="json") for name in _SEARCHES}
    return f"retrieval-{_digest(gold, k, searches, version('graphrag-pipeline'))}"


def name_comparison(questions: Sequence[Question], comparison: Comparison) -> str:
    """Return the name of a comparison: a hash of its questions and conditions."""
    names = [condition.name for condition in comparison.conditions]
    return f"comparison-{_digest([question.question for question in questions], names)}"


def name_answers(questions: Sequence[Question], is_judged: bool, root: Root) -> str:
    """Return the name of figures of answers: a hash of questions, references, and all that answers and judges."""
    gold = [(question.question, question.answers) for question in questions]
    settings = root.settings
    used = {name: getattr(settings, name).model_dump(mode="json") for name in _ANSWERING}
    models = [name for name in ("rating", "answers") if getattr(settings, name).engine == "model"]
    prompts = [name for name in PROMPT_NAMES if name.split("_")[0] in (*SEARCH_METHODS, "rate")] if models else []
    if is_judged:
        models, prompts = [*models, "evaluation"], [*prompts, *JUDGING_PROMPTS]
        used["evaluation"] = settings.evaluation.max_context_tokens
    chat = {
        name: settings.chat_model_for(name).model_dump(mode="json", include={"model", "base_url", "parameters"})
        for name in models
    }
    hashes = {name: root.prompt(name).sha256 for name in prompts}
    return f"answers-{_digest(_ANSWER_FIGURES, gold, used, chat, hashes, version('graphrag-pipeline'))}"


def _digest(*values: Any) -> str:
    return files.content_hash(json.dumps(values, sort_keys=True).encode())[:_DIGITS]


@dataclass(frozen=True)
class StoredFigures:
    """The figures of one file; the beginning of its name says what was measured."""

    snapshot: str
    name: str
    values: dict[str, Any]


def list_figures(root: Path) -> list[StoredFigures]:
    """Return the figures of every file that can be read, by snapshot and name."""
    found = []
    for path in sorted((root / EVALUATIONS_FOLDER).glob("*/*.json")):
        try:
            values = json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(values, dict):
            found.append(StoredFigures(path.parent.name, path.stem, values))
    return found


def load_figures(root: Path, snapshot: str, name: str, kind: type[Figures]) -> dict[str, Figures]:
    """Return stored figures by method; an empty dict if no readable file exists."""
    try:
        rows = json.loads(_path(root, snapshot, name).read_bytes())["figures"]
        return {row["method"]: TypeAdapter(kind).validate_python(row) for row in rows}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def save_figures(root: Path, snapshot: str, name: str, figures: Sequence[Figures]) -> None:
    """Store figures, beside those of other methods under the same name."""
    known = load_figures(root, snapshot, name, type(figures[0])) | {row.method: row for row in figures}
    _save(root, snapshot, name, {"figures": [asdict(known[method]) for method in sorted(known)]})


def save_comparison(root: Path, snapshot: str, name: str, comparison: Comparison) -> None:
    """Store a comparison; it replaces an earlier one under the same name."""
    _save(root, snapshot, name, comparison.to_dict())


def _save(root: Path, snapshot: str, name: str, values: dict[str, Any]) -> None:
    content = json.dumps({"snapshot": snapshot, **values}, indent=1, sort_keys=True, ensure_ascii=False)
    files.replace(_path(root, snapshot, name), content.encode())


def _path(root: Path, snapshot: str, name: str) -> Path:
    return root / EVALUATIONS_FOLDER / snapshot / f"{name}.json"
