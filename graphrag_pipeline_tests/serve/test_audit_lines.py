"""The lines of the audit log about calls of agents' tools, and about compressed answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from graphrag_pipeline.access.access_file import AuditRules
from graphrag_pipeline.access.audit import AuditLog
from graphrag_pipeline.serve.gate import Audit
from graphrag_pipeline_tests.support.serving import RunningServer, running_server


def call_tool(server: RunningServer, tool: str, **arguments: Any) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    headers = {"accept": "application/json, text/event-stream"}
    assert server.client.post("/mcp", json=call, headers=headers).status_code == 200


def test_lines_name_tool_root_and_documents(served_root: Path, tmp_path: Path) -> None:
    audit = Audit(AuditLog(AuditRules(file="audit.jsonl"), tmp_path))
    with running_server({"carol": served_root, "other": served_root}, audit=audit) as server:
        call_tool(server, "entity", name="Scrooge", root="carol")
        call_tool(server, "entity", name="Nobody of that name", root="other")
        call_tool(server, "entity", name="Scrooge", root="hidden")
        call_tool(server, "roots")
        body = {"question": "Who is Tiny Tim?", "context_only": True}
        answer = server.client.post("/search?root=carol", json=body, headers={"accept-encoding": "gzip"})
        assert answer.headers["content-encoding"] == "gzip"
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    shown = [(line["route"], line.get("tool"), line.get("root")) for line in lines]
    assert shown == [
        ("/mcp", "entity", "carol"),
        ("/mcp", "entity", "other"),
        ("/mcp", "entity", None),
        ("/mcp", "roots", None),
        ("/search", None, "carol"),
    ]
    assert lines[-1]["documents"] and lines[-1]["snapshot"]
