"""Errors of the product.

`PipelineError` is the one a user sees: its message says what is wrong, where, and what to do. The command line prints
it without a traceback and exits with 1. Add a subclass only where a caller acts differently on it.
"""


class PipelineError(Exception):
    """What is wrong, where (file, document, partition, setting), and what to do."""


class SettingsError(PipelineError):
    """settings.yaml or a `GRAPHRAG__` variable does not validate."""


class NoSnapshotError(PipelineError):
    """The root has no published snapshot, or the published one is damaged."""


class InputChangedError(PipelineError):
    """An input file changed between detection and reading; running again is the cure."""


class StoreError(PipelineError):
    """The shared store cannot be reached, refuses, or lacks its package."""


class LeaseLostError(PipelineError):
    """Another process took the shared store over; nothing more may be written there."""
