"""A principal: the one behind a request, and what that one may read. Keep out: how he is recognised (`rules.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from graphrag_pipeline.errors import PipelineError

ANONYMOUS = "anonymous"


class NotAuthenticatedError(PipelineError):
    """The request has no valid key or token; the message never says which part of it was wrong."""


class NotPermittedError(PipelineError):
    """The principal may not read a root; it is answered like a root that does not exist."""


@dataclass(frozen=True)
class Principal:
    """A principal.

    Attributes:
        name: as in access.yaml.
        roots: served root -> filters that his documents pass; no filters: the whole root.
        subject: the claim `sub` of his token; "" with a key.
    """

    name: str
    roots: Mapping[str, tuple[str, ...]]
    subject: str = ""

    def filters_of(self, root: str) -> tuple[str, ...]:
        """Return the filters that choose his view of a root; none if he reads all of it.

        Raises:
            NotPermittedError: he may not read this root.
        """
        if root not in self.roots:
            raise NotPermittedError(f"`{self.name}` may not read root `{root}`; `access.yaml` lists the roots")
        return self.roots[root]
