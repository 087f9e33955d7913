"""All that this package takes from Dagster's private modules, with the reason. A public way is used where one exists.

A new release may move them. The range of `dagster` in pyproject.toml is bounded, and tests run every name.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dagster._core.definitions.asset_checks.asset_check_evaluation import (
        AssetCheckEvaluationTargetMaterializationData,
    )
    from dagster._core.instance.ref import InstanceRef
    from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage

__all__ = ["NO_COMPUTE_LOGS", "AssetCheckEvaluationTargetMaterializationData", "InstanceRef", "SqliteEventLogStorage"]

# The output of the steps of a command stays its own; Dagster's documentation of dagster.yaml names this module.
NO_COMPUTE_LOGS = {"module": "dagster._core.storage.noop_compute_log_manager", "class": "NoOpComputeLogManager"}

_MODULES = {
    # Without it, Dagster compares whole seconds and shows a check of the materialization's second as not evaluated.
    "AssetCheckEvaluationTargetMaterializationData": "dagster._core.definitions.asset_checks.asset_check_evaluation",
    # The public ways to an instance take no other parts than those of its dagster.yaml.
    "InstanceRef": "dagster._core.instance.ref",
    # As it is, it doubles the time of a small index (`sqlite_storage.py`).
    "SqliteEventLogStorage": "dagster._core.storage.event_log.sqlite.sqlite_event_log",
}
"""Imported at first use: they bring Alembic, which definitions do not need."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(name)
    return getattr(import_module(_MODULES[name]), name)
