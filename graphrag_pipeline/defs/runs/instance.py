"""The Dagster home of a root, and Dagster's storage in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.pipeline.root import Root, write_schema
from graphrag_pipeline.storage.dagster_home import databases_in, prepare_home

if TYPE_CHECKING:
    from dagster import DagsterInstance


def dagster_home(root: Root) -> Path:
    """Return the Dagster home: $DAGSTER_HOME, else `dagster/` in the root; make it, or repair it (`prepare_home`).

    A root that ignores the environment has its own records.

    Raises:
        PipelineError: it cannot be written.
    """
    named = None if root.settings.storage.ignore_environment else os.environ.get("DAGSTER_HOME")
    home = (Path(named) if named else root.path / "dagster").resolve()
    prepare_home(home)
    write_schema(root.path)
    return home


@dataclass
class _KeptInstances:
    """Instances that stay open, by Dagster home.

    Attributes:
        closing: closes them.
    """

    closing: ExitStack
    by_home: dict[Path, DagsterInstance] = field(default_factory=dict)

    def get(self, home: Path) -> DagsterInstance:
        """Return the instance of a home, opened at the first call."""
        if home not in self.by_home:
            self.by_home[home] = self.closing.enter_context(_open(home))
        return self.by_home[home]


_kept: ContextVar[_KeptInstances | None] = ContextVar("kept instances", default=None)


@contextmanager
def keeping_instances() -> Iterator[None]:
    """Keep the instances that `open_instance` opens from here on open until the end: opening one takes 0.1 s."""
    with ExitStack() as closing:
        token = _kept.set(_KeptInstances(closing))
        try:
            yield
        finally:
            _kept.reset(token)


def _open(home: Path) -> DagsterInstance:
    from dagster import DagsterInstance

    from graphrag_pipeline.defs.runs.private_api import NO_COMPUTE_LOGS, InstanceRef
    from graphrag_pipeline.defs.runs.sqlite_storage import OpenEventLog

    # To capture the output of steps would redirect that of the command.
    changes: dict[str, Any] = {"compute_logs": NO_COMPUTE_LOGS}
    if path := databases_in(home).get("event_log_storage"):
        place = {"module": OpenEventLog.__module__, "class": OpenEventLog.__name__}
        changes["event_log_storage"] = {**place, "config": {"base_dir": str(path.parent)}}
    return DagsterInstance.from_ref(InstanceRef.from_dir(str(home), overrides=changes))


@contextmanager
def open_instance(root: Root) -> Iterator[DagsterInstance]:
    """Open Dagster's storage of a root.

    Raises:
        PipelineError: it cannot be read or written.
    """
    from sqlalchemy.exc import SQLAlchemyError

    home, kept = dagster_home(root), _kept.get()
    try:
        with nullcontext(kept.get(home)) if kept else _open(home) as instance:
            yield instance
    except (SQLAlchemyError, OSError) as error:
        reason = getattr(error, "orig", None) or error
        raise PipelineError(
            f"{home}: Dagster's records cannot be read or written ({reason}); {files.WRITE_REMEDY} "
            "You may also remove this folder: the next run rebuilds it."
        ) from error
