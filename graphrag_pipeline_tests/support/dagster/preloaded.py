"""Modules and data that an `index` loads, imported before a fork; none of them has started threads.

Only the fork server of `killed_runs.py` imports this, so a killed run takes one second instead of five.
"""

from __future__ import annotations

import importlib
import warnings

from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.text.tokens import count_tokens_each

# LanceDB restarts its threads in a fork; none of them runs when this process is forked.
warnings.filterwarnings("ignore", "lancedb fork support", RuntimeWarning)
for _name in (
    "duckdb",
    "lancedb",
    "openai",
    "s3fs",
    "graphrag_pipeline.defs.build",
    "graphrag_pipeline.defs.runs.sqlite_storage",
    "graphrag_pipeline.evaluation.regression_gate",
    "graphrag_pipeline.indexing.communities.detection",
    "graphrag_pipeline.engines.embedded.extraction",
    "graphrag_pipeline.indexing.communities.stable",
    "graphrag_pipeline.publishing.candidates",
):
    importlib.import_module(_name)
load_static_embeddings()
count_tokens_each(["warm"], Settings().text_units.encoding)
