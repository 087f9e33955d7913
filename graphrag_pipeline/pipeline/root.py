"""A root: the folder of one project, with its settings, stores and models.

The user edits `settings.yaml`, `prompts/` and `input/`. The product writes `tables/`, `heads/`, `snapshots/`,
`evaluations/`, `cache/` and `dagster/`. Command line, Dagster definitions and queries all start from a `Root`. Keep
out: Dagster.
"""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from graphrag_pipeline.errors import NoSnapshotError, PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.identity import bucket_keys
from graphrag_pipeline.models.accounting import Caller, CallStats
from graphrag_pipeline.models.ports import Embedder, load_static_embedder
from graphrag_pipeline.models.prompts import TO_FORMER, Prompt, default_prompts, load_prompt
from graphrag_pipeline.pipeline.stage_code import UNUSABLE, code_of, embeds, prompts_of
from graphrag_pipeline.pipeline.stages import Stage
from graphrag_pipeline.pipeline.tuned_sets import find_prompt_folder
from graphrag_pipeline.ports import PORTS, load_port
from graphrag_pipeline.settings.file import load_settings
from graphrag_pipeline.settings.rendering import SCHEMA_FILE, render_schema, render_settings
from graphrag_pipeline.settings.settings import SETTINGS_FILE, Settings
from graphrag_pipeline.settings.urls import mask_url
from graphrag_pipeline.storage.dagster_home import DAGSTER_YAML, prepare_home
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline.storage.table_store import TableStore

if TYPE_CHECKING:
    from graphrag_pipeline.indexing.ports import Describer, Extractor, Reporter
    from graphrag_pipeline.inputs.files import Detection, InputFile
    from graphrag_pipeline.inputs.source_records import SourceRecord
    from graphrag_pipeline.models.endpoints.clients import ModelClients
    from graphrag_pipeline.pipeline.last_known import LastKnownDocuments
    from graphrag_pipeline.pipeline.published_documents import PublishedDocuments
    from graphrag_pipeline.storage.shared.shared_store import SharedStore
    from graphrag_pipeline.storage.snapshots import Snapshot

ROOT_VARIABLE = "GRAPHRAG_ROOT"
PROMPTS_FOLDER = "prompts"
VIEWS_FOLDER = "views"
"""Folder of the roots that hold only the documents which some principals may read."""
_SHOWN_DIGITS = 16  # of a prompt's hash, as `status` shows it
_OWNED = ("tables/", "heads/", "snapshots/", "evaluations/", "cache/", "dagster/", f"{VIEWS_FOLDER}/")


def find_root(path: str | Path | None = None) -> Path:
    """Return the root to work on: `path`, else $GRAPHRAG_ROOT, else `.` or `./data` if it holds settings.yaml.

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


def init_root(path: Path, settings: Settings | None = None) -> list[Path]:
    """Make a root: settings, the prompts, an empty input folder, a .gitignore for generated folders.

    Args:
        settings: to write; the defaults if None.

    Returns:
        The files and folders made; existing ones stay unchanged.

    Raises:
        PipelineError: `path` is a file, cannot be written, or has invalid settings; or it has settings already and
            `settings` are given.
    """
    if path.exists() and not path.is_dir():
        raise PipelineError(f"`{path}` is not a directory; pass a directory to `init`")
    if settings and (path / SETTINGS_FILE).exists():
        raise PipelineError(f"`{path / SETTINGS_FILE}` exists already and is not overwritten; edit it, or move it away")
    made = []
    starting = {
        SETTINGS_FILE: render_settings(settings),
        ".gitignore": "".join(f"/{name}\n" for name in _OWNED),
        "dagster/dagster.yaml": DAGSTER_YAML,
        **{f"{PROMPTS_FOLDER}/{name}": text for name, text in default_prompts().items()},
    }
    for name, text in starting.items():
        if not (path / name).exists():
            files.replace(path / name, text.encode())
            made.append(path / name)
    write_schema(path)
    prepare_home(path / "dagster")
    folder = load_settings(path).input.place(path)
    if isinstance(folder, Path) and not folder.exists():
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise files.write_error(folder, error) from error
        made.append(folder)
    return made


def write_schema(path: Path) -> None:
    """Write the JSON schema of settings.yaml of this release beside it, for editors; a root may be read-only."""
    with suppress(PipelineError):
        files.put_new(path / SCHEMA_FILE, render_schema().encode())


class Root:
    """A root with its settings, stores and models.

    Args:
        path: a folder that holds settings.yaml.
        key_prefix: beginning of the keys of its assets, in a deployment of several roots.
        group_name: of all its assets there; None for a group of each kind.

    Attributes:
        accounts: statistics that count the calls of its models (see `counted_in`).
    """

    def __init__(self, path: Path, key_prefix: Sequence[str] = (), group_name: str | None = None) -> None:
        self.path = path
        self.key_prefix = tuple(key_prefix)
        self.group_name = group_name
        self.tables = TableStore(path)
        self.accounts: tuple[CallStats, ...] = ()

    def counted_in(self, *accounts: CallStats) -> Self:
        """Return this root with models whose calls also count in these accounts."""
        root = copy.copy(self)
        root.accounts = (*self.accounts, *accounts)
        for name in ("models", "embedder"):
            root.__dict__.pop(name, None)
        return root

    @functools.cached_property
    def settings(self) -> Settings:
        return load_settings(self.path)

    @functools.cached_property
    def snapshots(self) -> SnapshotStore:
        return SnapshotStore(self.path, self.settings.vector_store, self.shared.fetch if self.shared else None)

    @functools.cached_property
    def shared(self) -> SharedStore | None:
        """The store that this root is a working copy of; None if the index is only in this root."""
        if not self.settings.storage.url:
            return None
        from graphrag_pipeline.storage.shared.shared_store import SharedStore

        return SharedStore(self.path, self.settings)

    def follow(self) -> None:
        """Fetch the published snapshot of the shared store, if the root has one."""
        if self.shared:
            self.shared.follow()

    def open_snapshot(self, snapshot_id: str | None = None) -> Snapshot:
        """Open the published snapshot, or a given one.

        If the published one is pruned while it is opened, as by another machine, the newest one is opened.

        Args:
            snapshot_id: None is the published one.

        Raises:
            NoSnapshotError: nothing is published, or a file of the snapshot is missing.
        """
        if snapshot_id is None:
            return self._open_published()
        if not self.snapshots.path_of(snapshot_id).exists():
            self.follow()
        return self.snapshots.open(snapshot_id)

    def _open_published(self) -> Snapshot:
        failed: str | None = None
        while True:
            self.follow()
            wanted = self.snapshots.current()
            try:
                return self.snapshots.open(wanted)
            except NoSnapshotError:
                if wanted in (failed, None):
                    raise
                failed = wanted

    def fetch_stages(self, snapshot: str) -> None:
        """Fetch the stage tables that a snapshot was joined from, as far as the shared store still has them."""
        if self.shared:
            self.shared.fetch(snapshot, has_stages=True)

    def pull(self) -> None:
        """Fetch everything current in the shared store, if the root has one: heads and their files, too."""
        if self.shared:
            self.shared.pull()

    def writing(self) -> AbstractContextManager[None]:
        """Be the only writer of the shared store, if any; to be taken after `one_index_run` and before `one_writer`."""
        return self.shared.writing() if self.shared else nullcontext()

    def adding(self, buckets: Collection[str]) -> AbstractContextManager[None]:
        """Write buckets of the shared store, if any, beside other writers of other buckets."""
        return self.shared.adding(buckets) if self.shared else nullcontext()

    def collecting(self) -> AbstractContextManager[None]:
        """Publish the buckets that are built in the block together, at its end; without a shared store nothing."""
        if not self.shared:
            return nullcontext()
        from graphrag_pipeline.storage.shared.shared_store import collecting

        return collecting(self.path)

    @property
    def input_folder(self) -> Path | str:
        """The folder with the documents; its URL if it is not on this machine. A view reads another root instead."""
        return self.settings.input.place(self.path)

    @property
    def shown_input(self) -> str:
        """The input folder for messages; a URL is without user, password and query string."""
        return mask_url(str(self.input_folder))

    @property
    def is_imported(self) -> bool:
        """Whether the published snapshot came from `import`, not from the input folder.

        If the pointer or its manifest is lost, the newest manifest counts. If all manifests are lost, it was an
        import that left files of snapshots and none of a stage.
        """
        manifest = self.snapshots.current_manifest() or self.snapshots.newest_manifest()
        if manifest:
            return manifest.origin == "import"
        return self.snapshots.has_unnamed_files() and not any((self.path / "tables").glob("*/*/*"))

    @property
    def cache_folder(self) -> Path:
        """The folder of stored replies, vectors, costs and converted files, which other roots may share."""
        return self.settings.storage.cache_place(self.path)

    @property
    def shares_cache(self) -> bool:
        """Whether the folder of the cache is not this root's own."""
        return self.cache_folder.resolve() != (self.path / "cache").resolve()

    def list_input(self) -> list[InputFile] | None:
        """Return the files of the present input folder; None if the documents come from another root."""
        from graphrag_pipeline.inputs.files import list_input

        if self.settings.input.published_by:
            return None
        return list_input(self.input_folder, self.settings.input, self.cache_folder)

    def read_input(
        self,
        buckets: Collection[str] | None = None,
        listed: Sequence[InputFile] | None = None,
        detected: Detection | None = None,
    ) -> Iterator[SourceRecord]:
        """Yield documents and problems of the present input folder; of some buckets only, if given.

        A file or folder that cannot be read now keeps its documents of the last index, with a note.

        Args:
            listed: the files, if they were listed before (`list_input`).
            detected: if given, files that did not change are not opened, and their records have no text.
        """
        from graphrag_pipeline.inputs.files import read_input

        if self._published_documents is not None:
            return self._published_documents.records(self.settings.storage.n_buckets, buckets)
        n_buckets, find_known = self.settings.storage.n_buckets, self.last_known().find
        return read_input(
            self.input_folder, self.settings.input, n_buckets, buckets, self.cache_folder, find_known, listed, detected
        )

    @functools.cached_property
    def _published_documents(self) -> PublishedDocuments | None:
        """The documents of another root's snapshot, if they are the input instead of a folder."""
        chosen = self.settings.input
        if not chosen.published_by:
            return None
        from graphrag_pipeline.pipeline.published_documents import PublishedDocuments

        source = Root((self.path / chosen.published_by).resolve())
        source.fetch_stages(chosen.snapshot)
        return PublishedDocuments(source.tables, source.snapshots.manifest(chosen.snapshot), chosen.filters)

    def last_known(self) -> LastKnownDocuments:
        """Return the documents of the last index."""
        from graphrag_pipeline.pipeline.last_known import LastKnownDocuments

        return LastKnownDocuments(self.tables, bucket_keys(self.settings.storage.n_buckets))

    def read_file(self, name: str) -> bytes:
        """Return the content of a file of the root that the user edits; empty if it is missing."""
        path = self.path / name
        try:
            return path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise PipelineError(f"`{path}` cannot be read ({error.strerror}); repair its permissions") from None

    @functools.cached_property
    def models(self) -> ModelClients:
        """The clients of the models; opens the cache of replies."""
        from graphrag_pipeline.models.endpoints.clients import open_clients

        return open_clients(self.settings, self.path).for_caller(Caller(self.accounts))

    @functools.cached_property
    def embedder(self) -> Embedder:
        """The embedder of searched texts and of questions."""
        embedder: Embedder = self._port("embeddings")
        return embedder

    @functools.cached_property
    def static_embedder(self) -> Embedder:
        """The bundled static embeddings, which rank sentences under any embedding model."""
        return load_static_embedder()

    def _port(self, section: str) -> Any:
        return load_port(PORTS[section], getattr(self.settings, section).engine)(self)

    def extractor(self) -> Extractor:
        """Return the extractor that the settings name."""
        extractor: Extractor = self._port("extraction")
        return extractor

    def describer(self) -> Describer:
        """Return the describer that the settings name."""
        describer: Describer = self._port("descriptions")
        return describer

    def reporter(self) -> Reporter:
        """Return the reporter that the settings name."""
        reporter: Reporter = self._port("reports")
        return reporter

    def prompt(self, name: str) -> Prompt:
        """Return a prompt: the file of the adopted tuned set, else the file in `prompts/`, else the default."""
        tuned = find_prompt_folder(self.path, self.settings.tuning.adopted, name)
        return load_prompt(tuned, name, TO_FORMER) if tuned else load_prompt(self.path / PROMPTS_FOLDER, name)

    def code_of(self, stage: Stage) -> dict[str, Any]:
        """Return everything but its inputs that the result of a stage depends on, read from disk.

        The version of a prompt that cannot be used is the reason; `prompt_texts.check_prompts` raises it as an error.
        """
        return code_of(
            stage,
            self.settings,
            self._embedding_identity() if embeds(stage, self.settings) else None,
            self.static_embedder.fingerprint if stage.embeds_statically else "",
            {name: self._version_of(name) for name in prompts_of(stage, self.settings)},
            self._port(stage.engine).code() if stage.engine in PORTS else None,
        )

    def _version_of(self, prompt: str) -> str:
        try:
            return self.prompt(prompt).sha256[:_SHOWN_DIGITS]
        except PipelineError as error:
            return f"{UNUSABLE}: {error}"

    def _embedding_identity(self) -> dict[str, Any]:
        """Return what vectors depend on, by name, without opening the cache."""
        if self.settings.embeddings.engine != "model":
            return {"embedding model": self.embedder.fingerprint}
        from graphrag_pipeline.models.pieces import identity_of

        return identity_of(self.settings.embedding_model)
