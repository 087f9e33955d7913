"""All that this package takes from Dagster's private modules, with the reason. A public way is used where one exists.

- The executor (`InProcessExecutor`, `RetryMode`, configuration, arguments): the public `in_process_executor`
  has no place for the lock that a run holds while it works, by which a run whose process died is known.
- `SqliteEventLogStorage`, `SqliteRunStorage`, `SqliteScheduleStorage` and `InstanceRef`: Dagster's storages open a
  connection for every event, and the public ways to an instance take no other storage than that of its `dagster.yaml`.
- `AssetCheckEvaluationTargetMaterializationData`: without it, Dagster compares times of whole seconds. It shows a
  check as not evaluated that was reported within the second of its materialization.
- `SerializableErrorInfo`, `UnresolvedAssetJobDefinition`: types of values that public functions return.
- `BackfillDaemon`, `BulkActionsFilter`, `BulkActionStatus`, `DaemonIterator`, `create_daemons`, `daemon_commands`,
  `dev_commands`: no setting changes how often the daemon looks at backfills, and `dagster dev` has no option for
  another daemon (`defs/dev/`).

A new release may move them. The range of `dagster` in pyproject.toml is bounded, and tests run every name.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dagster._core.definitions.asset_checks.asset_check_evaluation import AssetCheckEvaluationTargetMaterializationData
from dagster._core.definitions.executor_definition import IN_PROC_CONFIG
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
from dagster._core.execution.context.system import PlanOrchestrationContext
from dagster._core.execution.plan.plan import ExecutionPlan
from dagster._core.execution.retries import RetryMode
from dagster._core.executor.in_process import InProcessExecutor
from dagster._utils.error import SerializableErrorInfo

if TYPE_CHECKING:
    from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus
    from dagster._core.instance.ref import InstanceRef
    from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
    from dagster._core.storage.runs.sqlite.sqlite_run_storage import SqliteRunStorage
    from dagster._core.storage.schedules.sqlite.sqlite_schedule_storage import SqliteScheduleStorage
    from dagster._daemon.daemon import BackfillDaemon, DaemonIterator

__all__ = [
    "DAEMON_MODULE",
    "IN_PROC_CONFIG",
    "NO_COMPUTE_LOGS",
    "AssetCheckEvaluationTargetMaterializationData",
    "BackfillDaemon",
    "BulkActionStatus",
    "BulkActionsFilter",
    "DaemonIterator",
    "ExecutionPlan",
    "InProcessExecutor",
    "InstanceRef",
    "PlanOrchestrationContext",
    "RetryMode",
    "SerializableErrorInfo",
    "SqliteEventLogStorage",
    "SqliteRunStorage",
    "SqliteScheduleStorage",
    "UnresolvedAssetJobDefinition",
    "create_daemons",
    "daemon_commands",
    "dev_commands",
]

NO_COMPUTE_LOGS = {"module": "dagster._core.storage.noop_compute_log_manager", "class": "NoOpComputeLogManager"}
"""As Dagster's documentation of dagster.yaml names it, under a private module."""

DAEMON_MODULE = "dagster._daemon"
"""The module that `dagster dev` starts as its daemon."""

_LATE = {
    "BackfillDaemon": "dagster._daemon.daemon",
    "BulkActionStatus": "dagster._core.execution.backfill",
    "BulkActionsFilter": "dagster._core.execution.backfill",
    "DaemonIterator": "dagster._daemon.daemon",
    "InstanceRef": "dagster._core.instance.ref",
    "SqliteEventLogStorage": "dagster._core.storage.event_log.sqlite.sqlite_event_log",
    "SqliteRunStorage": "dagster._core.storage.runs.sqlite.sqlite_run_storage",
    "SqliteScheduleStorage": "dagster._core.storage.schedules.sqlite.sqlite_schedule_storage",
}
"""Imported at first use: they bring Alembic or the daemon, which definitions do not need."""


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(name)
    return getattr(import_module(_LATE[name]), name)


def create_daemons(instance: Any) -> Any:
    """Return the daemons that an instance needs, as Dagster makes them."""
    return import_module("dagster._daemon.controller").create_daemons_from_instance(instance)


def daemon_commands() -> Any:
    """Return the module of Dagster's command for daemons."""
    return import_module("dagster._daemon.cli")


def dev_commands() -> Any:
    """Return the module of Dagster's command `dagster dev`."""
    return import_module("dagster._cli.dev")
