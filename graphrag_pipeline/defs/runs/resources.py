"""The Dagster resource of every asset, op and sensor: the root to work on."""

import dagster as dg
from pydantic import Field

from graphrag_pipeline.pipeline.root import Root, find_root


class IndexRoot(dg.ConfigurableResource):
    """One project root.

    The root is opened at each use, so that settings and prompts are always those on disk.

    Attributes:
        path: the folder that holds settings.yaml.
        key_prefix: beginning of the keys of its assets.
    """

    path: str
    key_prefix: list[str] = Field(default=[])

    @classmethod
    def of(cls, root: Root) -> "IndexRoot":
        return cls(path=str(root.path), key_prefix=list(root.key_prefix))

    def open(self) -> Root:
        return Root(find_root(self.path), self.key_prefix)
