"""The Dagster resource of every asset, op and sensor: the root to work on."""

import dagster as dg

from graphrag_pipeline.pipeline.root import Root, find_root


class IndexRoot(dg.ConfigurableResource):
    """One project root.

    The root is opened at each use, so that settings and prompts are always those on disk.

    Attributes:
        path: the folder that holds settings.yaml.
    """

    path: str

    def open(self) -> Root:
        return Root(find_root(self.path))
