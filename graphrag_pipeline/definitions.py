"""Dagster Definitions of one root, for `dagster dev` and `workspace.yaml`.

Set GRAPHRAG_ROOT, or start in a root or in the folder above `data`; see `pipeline.root.find_root`.
"""

from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.runs.errors import show_failures_in_words
from graphrag_pipeline.pipeline.root import Root, find_root

show_failures_in_words()
defs = build_definitions(Root(find_root()))
