"""Errors of the product.

Users see `PipelineError`: its message says what is wrong, where, and what to do. The command line prints it without a
traceback and exits with 1. Add a subclass only if a caller acts differently on it.
"""

from __future__ import annotations


class PipelineError(Exception):
    """An error with an address: the problem, its place (file, document, partition, setting), and the remedy."""


class SettingsError(PipelineError):
    """settings.yaml or a `GRAPHRAG__` variable does not validate."""


class EncodingError(PipelineError):
    """A tokenizer cannot be loaded: its name is not known, or its ranks cannot be downloaded.

    Args:
        problem: the name and the reason.
        remedy: values that the setting may have.
        setting: that names the tokenizer.
    """

    def __init__(self, problem: str, remedy: str, setting: str = "text_units.encoding") -> None:
        super().__init__(f"{setting}: {problem}; set `{setting}` to {remedy}")
        self._problem, self._remedy = problem, remedy

    def of_setting(self, setting: str) -> EncodingError:
        """Return the error for another setting."""
        return EncodingError(self._problem, self._remedy, setting)


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
