"""Views of a root: their places, and their settings and files, which follow those of the root.

A view is a root of its own, made by the same pipeline from only the documents that pass the filters of some principals.
So nothing in it depends on another document. It reads the documents of a snapshot that its root published, and shares
the cache of replies, so a model is not paid again for a document. Keep out: making views (`views.py`).
"""

from __future__ import annotations

import difflib
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from graphrag_pipeline.access.access_file import ViewRules
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filters import Filter, each_value, parse_filter, read_value
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.models.prompts import default_prompts
from graphrag_pipeline.pipeline.root import PROMPTS_FOLDER, VIEWS_FOLDER, Root, init_root
from graphrag_pipeline.pipeline.tuned_sets import TUNED_FOLDER
from graphrag_pipeline.query.filtering.document_mask import DocumentFields, StoredField
from graphrag_pipeline.settings.input import InputSettings
from graphrag_pipeline.settings.rendering import render_settings
from graphrag_pipeline.settings.settings import OVERRIDES_FILE, SETTINGS_FILE, Settings

_ID_DIGITS = 16


def view_id(filters: Sequence[str]) -> str:
    """Return the name of the view of these filters; their order does not matter."""
    return stable_hash("view", *sorted({text.strip() for text in filters}))[:_ID_DIGITS]


def find_view(root: Path, filters: Sequence[str]) -> Path:
    """Return the place of the view of these filters, whether it exists or not."""
    if not filters:
        raise PipelineError("a view needs at least one filter; without one the root itself is read")
    return root / VIEWS_FOLDER / view_id(filters)


def derive_settings(root: Root, filters: Sequence[str], rules: ViewRules, snapshot: str = "") -> Settings:
    """Return the settings of a view: those of its root, on the documents that pass, and within `rules`.

    Args:
        snapshot: of the root, whose documents are read.

    Raises:
        PipelineError: the root's prompts were tuned on all documents, and `rules` do not allow them in views.
    """
    settings = root.settings
    if settings.tuning.adopted and settings.extraction.uses_model and not rules.tuned_prompts:
        raise PipelineError(
            f"`{root.path}` has adopted the tuned prompts `{settings.tuning.adopted}`, whose examples may quote any "
            "document; run `graphrag-pipeline tune revert`, or set `views.tuned_prompts: true` in access.yaml"
        )
    place = find_view(root.path, filters)
    changed: dict[str, dict[str, Any]] = {
        "input": {
            "folder": InputSettings().folder,
            "published_by": os.path.relpath(root.path.resolve(), place.resolve()),
            "snapshot": snapshot,
            "filters": tuple(sorted(set(filters))),
        },
        "storage": {
            "cache_folder": os.path.relpath(root.cache_folder.resolve(), place.resolve()),
            "url": f"{settings.storage.url.rstrip('/')}/{VIEWS_FOLDER}/{place.name}" if settings.storage.url else None,
            "ignore_environment": True,
        },
        "tuning": {"adopted": settings.tuning.adopted if rules.tuned_prompts else ""},
        # Documents that are no longer permitted must go, however many they are, and whatever questions then find.
        "publishing": {"max_removed_share": 1.0, "golden_questions": ""},
        # A deferred report would keep sentences of a document that left.
        "reports": {"rewrite_share": 0.0},
        "quality": {"measure_after_publishing": False},
    }
    if rules.engine == "embedded":
        for section in ("descriptions", "reports", "resolution"):
            changed.setdefault(section, {})["engine"] = "embedded"
        if isinstance(settings.resolution.rules, tuple):
            changed["resolution"]["rules"] = tuple(name for name in settings.resolution.rules if name != "verdict")
    if rules.embeddings == "embedded":
        changed["embeddings"] = {"engine": "embedded"}
    values = {name: section | changed.get(name, {}) for name, section in settings.model_dump().items()}
    defaults = Settings().model_dump()
    return Settings.model_validate(values | {name: defaults[name] for name in ("schedule", "notifications")})


def write_view(root: Root, filters: Sequence[str], rules: ViewRules, snapshot: str) -> Root:
    """Make or update the settings, prompts and overrides of a view, and return it.

    Args:
        snapshot: of the root, whose documents are read.

    Raises:
        PipelineError: a file cannot be written, or tuned prompts are not allowed.
    """
    settings, place = derive_settings(root, filters, rules, snapshot), find_view(root.path, filters)
    wanted = {SETTINGS_FILE: render_settings(settings).encode()}
    wanted |= {f"{PROMPTS_FOLDER}/{name}": _read(root.path / PROMPTS_FOLDER / name, text) for name, text in
               default_prompts().items()}  # fmt: skip
    wanted[OVERRIDES_FILE] = root.read_file(OVERRIDES_FILE)
    for name, data in wanted.items():
        if data or (place / name).exists():
            files.put_new(place / name, data)
    _copy_tuned(root.path, place, settings.tuning.adopted)
    init_root(place)
    return Root(place)


def _read(path: Path, default: str) -> bytes:
    return path.read_bytes() if path.exists() else default.encode()


def _copy_tuned(root: Path, place: Path, adopted: str) -> None:
    if not adopted:
        shutil.rmtree(place / TUNED_FOLDER, ignore_errors=True)
        return
    for source in sorted((root / TUNED_FOLDER / adopted).glob("*")):
        files.put_new(place / TUNED_FOLDER / adopted / source.name, source.read_bytes())


_N_NAMED = 3


def advise(root: Root, filters: Sequence[str]) -> list[str]:
    """Return what is odd about filters in the published index of a root, one line each; for the operator only.

    Raises:
        PipelineError: no document has a field of the filters, or nothing is published.
    """
    with closing(root.open_snapshot()) as snapshot:
        fields = DocumentFields(snapshot.table("documents"))
        n_documents, found = snapshot.n_rows("documents"), []
        passing = np.ones(n_documents, dtype=bool)
        for condition in map(parse_filter, filters):
            mask, field = fields.mask_of(condition), fields.find(condition)
            passing &= mask & _has_value(field)
            found += [*_advise_on_values(condition, field), *_advise_on_missing(condition, field)]
    if n_documents and not passing.any():
        found.append(f"none of the {n_documents:,} documents passes {' and '.join(filters)}, so nothing can be read")
    return found


def _advise_on_values(condition: Filter, field: StoredField) -> Iterator[str]:
    if condition.operator not in ("=", "!="):
        return
    counted = Counter(field.codes.tolist())
    held = [(value, counted[code]) for code, of in enumerate(field.values) for value in each_value(of)]
    texts = Counter[str]()
    for value, count in held:
        texts[read_value(value).text] += count
    is_listed = len(condition.values) > 1
    for written in condition.values[: -1 if is_listed else None]:
        wanted = read_value(written)
        if wanted.is_text and wanted.text not in texts:
            near = difflib.get_close_matches(wanted.text, list(texts), n=_N_NAMED, cutoff=0.5)
            named = near or [text for text, _ in texts.most_common(_N_NAMED)]
            listed = ", ".join(f"{text!r} ({texts[text]:,})" for text in named)
            yield f"no document has {written!r} in {condition.field!r}; the nearest values: {listed}"


def _advise_on_missing(condition: Filter, field: StoredField) -> Iterator[str]:
    n_missing = int((~_has_value(field)).sum())
    if n_missing:
        yield f"{n_missing:,} documents have no {condition.field!r}, so they do not pass {condition.text!r}"


def _has_value(field: StoredField) -> np.ndarray:
    return np.array([bool(each_value(of)) and of != "" for of in field.values], dtype=bool)[field.codes]
