"""An index whose answers come from a test model server, and replies spelled out for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.query.graph_index import GraphIndex
from graphrag_pipeline_tests.model_server import ModelServer


def open_with_model(index: GraphIndex, folder: Path, server: ModelServer, **sections: dict[str, Any]) -> GraphIndex:
    """The same snapshot, asked with `answers.engine: model` unless `sections` say otherwise."""
    settings = {
        "chat_model": {"model": "test-chat", "base_url": server.base_url, "backoff_s": 0.001, "max_attempts": 2},
        "answers": {"engine": "model"},
        **sections,
    }
    (folder / "settings.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    root = Root(folder)
    return GraphIndex(index.snapshot, root.settings, index.embedder, root)
