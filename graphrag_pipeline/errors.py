"""Errors of the product.

Users see `PipelineError`: its message says what is wrong, where, and what to do. The command line prints it without a
traceback and exits with 1. Add a subclass only if a caller acts differently on it.
"""


class PipelineError(Exception):
    """An error with an address: the problem, its place (file, document, partition, setting), and the remedy."""


class SettingsError(PipelineError):
    """settings.yaml or a `GRAPHRAG__` variable does not validate."""


class PromptError(PipelineError):
    """A prompt file lacks a placeholder, or has an unknown one."""


class NoSnapshotError(PipelineError):
    """The root has no published snapshot, or the published one is damaged."""


class DamagedFileError(PipelineError):
    """An immutable file of the root has another content than its hash names; `index` makes it again."""


class InputChangedError(PipelineError):
    """An input file changed between detection and reading; run `index` again."""


class StoreError(PipelineError):
    """The shared store is not reachable, refuses access, or its package is not installed."""


class LeaseLostError(PipelineError):
    """Another process took over the lease of the shared store; this process may no longer write there."""


class NewerFormatError(PipelineError):
    """A newer release wrote a file of the root or the store; nothing is read from it, and nothing is removed."""
