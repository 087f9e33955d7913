"""A root: one project of a user, and the parts of the product that belong to it.

`settings.yaml`, `prompts/` and `input/` are the user's; `tables/`, `heads/`, `snapshots/`, `cache/` and `dagster/`
are ours. Command line, Dagster definitions and queries all start from a `Root`. Keep out: Dagster.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.ports import Embedder
from graphrag_pipeline.settings import SETTINGS_FILE, Settings, load_settings, render_settings
from graphrag_pipeline.stages import Stage, code_of
from graphrag_pipeline.storage.snapshots import SnapshotStore
from graphrag_pipeline.storage.table_store import TableStore

if TYPE_CHECKING:
    from graphrag_pipeline.indexing.documents import SourceRecord

ROOT_VARIABLE = "GRAPHRAG_ROOT"
_OWNED = ("tables/", "heads/", "snapshots/", "cache/", "dagster/")


def find_root(path: str | Path | None = None) -> Path:
    """The root to work on: `path`, else $GRAPHRAG_ROOT, else the current folder or `./data` if they hold settings.yaml.

    Raises:
        PipelineError: none of them is a root.
    """
    named = path or os.environ.get(ROOT_VARIABLE)
    if named:
        return Path(named).expanduser().resolve()
    for candidate in (Path.cwd(), Path.cwd() / "data"):
        if (candidate / SETTINGS_FILE).is_file():
            return candidate
    raise PipelineError(
        f"no root here: {Path.cwd()} has no {SETTINGS_FILE}, nor has ./data; make one with "
        f"`graphrag-pipeline init DIR`, or name one with --root DIR or {ROOT_VARIABLE}"
    )


def init_root(path: Path) -> list[Path]:
    """Make a root: documented settings, an empty input folder, a .gitignore for what runs make.

    Returns:
        The files and folders made; what was there is left alone.
    """
    made = []
    for name, text in ((SETTINGS_FILE, render_settings()), (".gitignore", "".join(f"/{name}\n" for name in _OWNED))):
        file = path / name
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            made.append(file)
    folder = path / load_settings(path).input.folder
    if not folder.exists():
        folder.mkdir(parents=True)
        made.append(folder)
    return made


class Root:
    """A root with its settings, stores and models.

    Args:
        path: a folder that holds settings.yaml.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tables = TableStore(path)
        self.snapshots = SnapshotStore(path)

    @functools.cached_property
    def settings(self) -> Settings:
        return load_settings(self.path)

    @property
    def input_folder(self) -> Path:
        return self.path / self.settings.input.folder

    @property
    def cache_folder(self) -> Path:
        return self.path / "cache"

    def read_input(self, buckets: Collection[str] | None = None) -> Iterator[SourceRecord]:
        """Documents and problems of the input folder as it is now; of some buckets only, if named."""
        from graphrag_pipeline.storage.input_files import read_input

        n_buckets = self.settings.storage.n_buckets
        return read_input(self.input_folder, self.settings.input, n_buckets, buckets, self.cache_folder)

    def read_file(self, name: str) -> bytes:
        """A file of the root that a person edits; empty if it is not there."""
        path = self.path / name
        try:
            return path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise PipelineError(f"{path}: cannot be read ({error.strerror}); mend its permissions") from None

    @functools.cached_property
    def embedder(self) -> Embedder:
        from graphrag_pipeline.models.static_embeddings import load_static_embeddings

        return load_static_embeddings()

    def code_of(self, stage: Stage) -> dict[str, Any]:
        """What the result of a stage depends on besides its inputs, read from disk."""
        return code_of(stage, self.settings, self.embedder.fingerprint if stage.embeds else "")
