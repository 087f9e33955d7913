"""An index answered by a test model server, and literal replies for it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline_tests.model_server import ModelServer, ReceivedRequest


def open_with_model(index: GraphIndex, folder: Path, server: ModelServer, **sections: dict[str, Any]) -> GraphIndex:
    """Open the same snapshot with `answers.engine: model` unless `sections` differ."""
    settings = {
        "chat_model": {"model": "test-chat", "base_url": server.base_url, "max_attempts": 2},
        "answers": {"engine": "model"},
        **sections,
    }
    (folder / "settings.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    root = Root(folder)
    root.models.known_forms.write(server.base_url, "test-chat", "thoughts", fact="none").result()
    return GraphIndex(index.snapshot, root.settings, index.embedder, root)


def benchmark(request: ReceivedRequest) -> Any:
    """Two readers with two tasks; questions that name task and number; the sources are the first passage shown."""
    if '"personas"' in request.prompt:
        return {"personas": [{"persona": p, "tasks": [f"{p}'s first", f"{p}'s second"]} for p in ("Ada", "Bob")]}
    found = re.search(r"The reader's task: (.*)\n", request.prompt)
    wanted = re.search(r"- (\d+) questions", request.prompt)
    if not found or not wanted:
        return None
    number = re.search(r"^\[(\d+)\]", request.prompt, re.MULTILINE)
    sources = [int(number[1]), 999] if number else []
    kind = "whole" if "collection as a whole" in request.prompt else "part"
    return {"questions": [{"question": f"{kind} {found[1]} {i}?", "answer": "So.", "sources": sources}
                          for i in range(int(wanted[1]))]}  # fmt: skip
