"""Trial searches: one question by each method on a candidate, before it is published.

A search that fails shows what hashes cannot: an index of vectors or of full text that was built wrong. The question is
the title of an entity, the rule-based engine answers, and the vector of the question comes from the candidate. So no
model is asked. Keep out: whether answers are good (`regression_gate.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.settings.search_names import CHOOSABLE_METHODS

if TYPE_CHECKING:
    from graphrag_pipeline.models.ports import Failure
    from graphrag_pipeline.pipeline.root import Root
    from graphrag_pipeline.settings.settings import Settings
    from graphrag_pipeline.storage.snapshots import Snapshot

_VECTORS = "default-text_unit-text"


class _StoredEmbedder:
    """An embedder that knows one vector of the candidate, and gives it to every text."""

    def __init__(self, fingerprint: str, vector: np.ndarray) -> None:
        self.fingerprint = fingerprint
        self.dimensions = len(vector)
        self._vector = vector

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        return np.tile(self._vector, (len(texts), 1))

    def try_embed(
        self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None
    ) -> tuple[np.ndarray, list[Failure]]:
        return self.embed(texts), []


def try_searches(root: Root, snapshot: Snapshot) -> None:
    """Search a snapshot once by each method; an index without text units is not searched.

    Raises:
        PipelineError: a search failed, or basic search found nothing; the message names method and reason.
    """
    if not snapshot.n_rows("text_units"):
        return
    index: GraphIndex | None = None
    for method in CHOOSABLE_METHODS:
        try:
            index = index or GraphIndex(snapshot, _without_models(root.settings), _embedder_of(snapshot), root)
            found = index.search(_question_for(snapshot), method)
        except Exception as error:  # whatever is wrong with a candidate, it is not published
            raise _refusal(snapshot, method, str(error)) from error
        if method == "basic" and not found.context.text_units:
            raise _refusal(snapshot, method, "it found no text unit")


def _refusal(snapshot: Snapshot, method: str, reason: str) -> PipelineError:
    return PipelineError(
        f"candidate {snapshot.id} is not published, since a trial search by the method {method} failed: {reason}. Run "
        "`graphrag-pipeline verify --repair`, then `graphrag-pipeline index`"
    )


def _question_for(snapshot: Snapshot) -> str:
    """Return the title of the first entity, else of the first document."""
    table = "entities" if snapshot.n_rows("entities") else "documents"
    return f"{snapshot.take(table, [0], ['title'])[0]['title']}?"


def _embedder_of(snapshot: Snapshot) -> _StoredEmbedder:
    first = snapshot.take("text_units", [0], ["id"])[0]["id"]
    return _StoredEmbedder(snapshot.manifest.embedding_fingerprint, snapshot.vectors(_VECTORS).vectors([first])[0])


def _without_models(settings: Settings) -> Settings:
    """Return settings by which searches ask no model."""
    changes = {}
    for name in type(settings).model_fields:
        section = getattr(settings, name)
        free = {"engine": "embedded", "rerank": False}
        known = {key: value for key, value in free.items() if hasattr(section, key)}
        changes[name] = section.model_copy(update=known) if known else section
    return settings.model_copy(update=changes)
