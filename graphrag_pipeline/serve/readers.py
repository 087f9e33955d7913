"""The reader behind a request: what the server needs to know of him, and the reader of a server without access rules.

Keep out: keys and rules, which are in `access/`.
"""

from __future__ import annotations

from typing import Protocol

from graphrag_pipeline.errors import PipelineError


class Reader(Protocol):
    """A principal as the server sees him."""

    @property
    def name(self) -> str:
        """Name for the log."""
        ...

    def filters_of(self, root: str) -> tuple[str, ...]:
        """Return the filters that choose his view of a root; none if he reads all of it.

        Raises:
            PipelineError: he may not read this root.
        """
        ...


class Authenticator(Protocol):
    """Rules that name the reader behind a request."""

    def authenticate(self, authorization: str | None) -> Reader:
        """Return the reader whose key or token the header holds.

        Raises:
            PipelineError: it holds none that is valid.
        """
        ...


class ReaderOfAll:
    """The reader of a server on loopback without access rules."""

    name = "local"

    def filters_of(self, root: str) -> tuple[str, ...]:
        """Return no filters."""
        return ()


class _Nobody:
    """The reader of a request without a key, on a path that needs none."""

    name = ""

    def filters_of(self, root: str) -> tuple[str, ...]:
        """Refuse every root."""
        raise PipelineError("no key was given")


NOBODY: Reader = _Nobody()


class OpenAccess:
    """Access without rules: every request has the reader of all."""

    def authenticate(self, authorization: str | None) -> Reader:
        """Return the reader of all."""
        return ReaderOfAll()
