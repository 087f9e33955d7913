"""Notes of a working copy about its store, in `cache/store/`, by the store's URL.

The last state read from the store is the common base of both sides: it separates local changes from changes in the
store. Removing the notes loses nothing; the store's state then wins. Keep out: comparing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from graphrag_pipeline.errors import NewerFormatError, PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.storage.shared.state import StoreState


class StoreNotes:
    """The notes about one store.

    Args:
        folder: the folder of all notes.
    """

    def __init__(self, folder: Path, url: str) -> None:
        name = stable_hash(url)[:16]
        self._state_path = folder / f"{name}.json.gz"
        self._joined_path = folder / f"{name}.joined"
        self._pending_path = folder / f"{name}.again.json"

    def state(self) -> StoreState | None:
        """Return the last state read from the store; None if it is unknown.

        Raises:
            NewerFormatError: a newer release wrote it.
        """
        try:
            return StoreState.from_bytes(self._state_path.read_bytes(), str(self._state_path))
        except NewerFormatError:
            raise
        except (FileNotFoundError, PipelineError):  # a damaged note counts as missing
            return None

    def write_state(self, state: StoreState) -> None:
        """Save the last common state of copy and store."""
        files.replace(self._state_path, state.to_bytes())

    @property
    def is_joined(self) -> bool:
        """Return whether a run confirmed that the documents of the root are those of the store."""
        return self._joined_path.exists()

    def join(self) -> None:
        """Record that the documents of the root are those of the store."""
        files.replace(self._joined_path, b"")

    def pending_uploads(self) -> list[str]:
        """Return the archives to upload again although the store has them, sorted."""
        return list(json.loads(self._pending_path.read_bytes())) if self._pending_path.exists() else []

    def write_pending_uploads(self, names: Iterable[str]) -> None:
        """Save the archives to upload again."""
        files.replace(self._pending_path, json.dumps(sorted(names)).encode())
