"""The Dagster home of a root as files: its settings, and its databases before any process of Dagster opens them.

Dagster's processes make the databases of a new home when they first open it. If several start at once, as `dagster dev`
and two runs do, some of them fail. They may also leave a database with two revisions of its schema, which no later
process opens (dagster-io/dagster#27390). So `init`, and each of our commands that opens the home, makes them first,
from the SQL text in `bundled/dagster_home`: Dagster's own way would add 4 s to `init`. A later release of Dagster reads
them as those of a home that an earlier release made. Keep out: Dagster.
"""

from __future__ import annotations

import functools
import logging
import os
import sqlite3
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from enum import Enum
from pathlib import Path

from graphrag_pipeline.filesystem import files
from graphrag_pipeline.settings.file import parse_yaml
from graphrag_pipeline.storage.locks import one_home_repair

_log = logging.getLogger(__name__)

DAGSTER_YAML = """telemetry:
  enabled: false
nux:
  enabled: false
retention:
  sensor: {purge_after_days: {skipped: 2, success: 30, failure: 30}}
  schedule: {purge_after_days: {skipped: 30, success: 30, failure: 30}}
  auto_materialize: {purge_after_days: {skipped: 2, success: 30, failure: 30}}
python_logs: {python_log_level: INFO}
run_queue: {dequeue_interval_seconds: 1}
"""
"""Settings of a new Dagster home: no telemetry, no step events on the terminal, and old records of ticks are purged.

A queued run starts within 1 s instead of 5 s. For records of runs see `schedule`.
"""

DATABASES = {
    "run_storage": "history/runs.db",
    "event_log_storage": "history/runs/index.db",
    "schedule_storage": "schedules/schedules.db",
}
"""Name of a storage in dagster.yaml -> its database in the home, unless the settings put it elsewhere."""
SCRIPTS = Path(__file__).parents[1] / "bundled" / "dagster_home"
_BUSY_TIMEOUT_S = 30
_EARLY_REVISION = "5771160a95ad"
"""What Dagster stamps on a database with tables but no revision. Only a process that lost the race sees one, since
another process made the tables of the newest revision and stamped that, too."""


class _State(Enum):
    """What a database needs."""

    WHOLE = "nothing; or it is Dagster's to complete"
    MISSING = "to be made"
    TWO_REVISIONS = "one revision only"
    UNREADABLE = "to be moved aside, and made"


def prepare_home(home: Path) -> None:
    """Make or repair what a Dagster home lacks: settings, and the databases that the settings keep in it.

    Records are kept where they can be read; a damaged database is moved aside with a warning.

    Raises:
        PipelineError: the home cannot be written.
    """
    settings = home / "dagster.yaml"
    if not settings.exists():
        files.replace(settings, DAGSTER_YAML.encode())
    places = databases_in(home).values()
    if all(_state_of(path) is _State.WHOLE for path in places):
        return
    with one_home_repair(home):
        for path in places:
            try:
                _repair(path)
            except (OSError, sqlite3.Error) as error:
                reason = error if isinstance(error, OSError) else RuntimeError(str(error))
                raise files.write_error(path, reason) from error


def databases_in(home: Path) -> Mapping[str, Path]:
    """Return the databases of a home by the names of their storages, without those that its settings put elsewhere."""
    settings = parse_yaml((home / "dagster.yaml").read_text(encoding="utf-8")) or {}
    return {name: home / place for name, place in DATABASES.items() if not {"storage", name} & settings.keys()}


def _state_of(path: Path) -> _State:
    if not path.exists():
        return _State.MISSING
    try:
        with closing(sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S)) as database:
            revisions = database.execute("SELECT version_num FROM alembic_version").fetchall()
    except sqlite3.OperationalError:  # locked, not readable, or without tables, which Dagster makes
        return _State.WHOLE
    except sqlite3.DatabaseError:
        return _State.UNREADABLE
    return _State.TWO_REVISIONS if len(revisions) > 1 else _State.WHOLE


def _repair(path: Path) -> None:
    state = _state_of(path)
    if state is _State.TWO_REVISIONS:
        with closing(sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S)) as database, database:
            database.execute("DELETE FROM alembic_version WHERE version_num = ?", [_EARLY_REVISION])
        _log.warning(
            "`%s`: repaired: two processes of Dagster had made it at the same time; all records are kept", path
        )
        state = _State.UNREADABLE if _state_of(path) is not _State.WHOLE else _State.WHOLE
    if state is _State.UNREADABLE:
        aside = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
        os.replace(path, aside)
        for ending in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.replace(f"{path}{ending}", f"{aside}{ending}")
        _log.warning(
            "`%s`: damaged, so Dagster's records in it are lost; moved to `%s` and made again. The index is not "
            "affected; `index` reports it to Dagster again",
            path,
            aside.name,
        )
        state = _State.MISSING
    if state is _State.MISSING:
        make_database(path, empty_database(path.stem))


def make_database(path: Path, content: bytes) -> None:
    """Write a database unless there is one; another process of Dagster may make it at the same time."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = files.temporary_path(path.parent)
    try:
        temporary.write_bytes(content)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return
        except OSError:  # a file system without hard links
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@functools.cache
def empty_database(name: str, change: str = "") -> bytes:
    """Return the bytes of an empty database.

    Args:
        name: of its script: `runs`, `index` or `schedules`.
        change: SQL that is run on it.
    """
    with tempfile.TemporaryDirectory() as folder, closing(sqlite3.connect(Path(folder) / name)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.executescript((SCRIPTS / f"{name}.sql").read_text(encoding="utf-8") + change)
        return database.serialize()
