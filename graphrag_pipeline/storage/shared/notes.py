"""What a working copy remembers of its store, in `cache/store/`, by the store's URL.

What the store said last is what both had in common: what changed here is told by it from what changed there. Whoever
removes these notes loses nothing: the store counts then. Keep out: comparing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.storage.shared.state import StoreState


class StoreNotes:
    """The notes about one store.

    Args:
        folder: of all notes.
    """

    def __init__(self, folder: Path, url: str) -> None:
        name = stable_hash(url)[:16]
        self._state_path = folder / f"{name}.json.gz"
        self._joined_path = folder / f"{name}.joined"
        self._pending_path = folder / f"{name}.again.json"

    def state(self) -> StoreState | None:
        """What the store said last; None if that is not known."""
        try:
            return StoreState.from_bytes(self._state_path.read_bytes(), str(self._state_path))
        except (FileNotFoundError, PipelineError):  # a damaged one: as good as none
            return None

    def write_state(self, state: StoreState) -> None:
        files.replace(self._state_path, state.to_bytes())

    @property
    def is_joined(self) -> bool:
        """Whether somebody has seen that the documents of the root are those of the store."""
        return self._joined_path.exists()

    def join(self) -> None:
        files.replace(self._joined_path, b"")

    def pending_uploads(self) -> list[str]:
        """Archives that are to be put into the store again, although it has them; sorted."""
        return list(json.loads(self._pending_path.read_bytes())) if self._pending_path.exists() else []

    def write_pending_uploads(self, names: Iterable[str]) -> None:
        files.replace(self._pending_path, json.dumps(sorted(names)).encode())
