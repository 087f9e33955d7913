"""The Dagster home of a root, and Dagster's storage in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.pipeline.root import DAGSTER_YAML, Root

if TYPE_CHECKING:
    from dagster import DagsterInstance


def dagster_home(root: Root) -> Path:
    """Return the Dagster home: $DAGSTER_HOME, else `dagster/` in the root; create it with telemetry off."""
    named = os.environ.get("DAGSTER_HOME")
    home = (Path(named) if named else root.path / "dagster").resolve()
    if not (home / "dagster.yaml").exists():
        files.replace(home / "dagster.yaml", DAGSTER_YAML.encode())
    return home


@contextmanager
def open_instance(root: Root) -> Iterator[DagsterInstance]:
    """Open Dagster's storage of a root.

    Raises:
        PipelineError: it cannot be read or written.
    """
    from dagster import DagsterInstance
    from sqlalchemy.exc import SQLAlchemyError

    from graphrag_pipeline.defs.runs.event_log import overrides_for
    from graphrag_pipeline.defs.runs.private_api import InstanceRef

    home = dagster_home(root)
    try:
        with DagsterInstance.from_ref(InstanceRef.from_dir(str(home), overrides=overrides_for(home))) as instance:
            yield instance
    except (SQLAlchemyError, OSError) as error:
        reason = getattr(error, "orig", None) or error
        raise PipelineError(
            f"{home}: Dagster's records cannot be read or written ({reason}); {files.WRITE_REMEDY} "
            "You may also remove this folder: the next run rebuilds it."
        ) from error
