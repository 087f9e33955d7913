"""OpenAI's Batch API: files, batches of requests in them, and their results.

A batch is worked on at once, by the same rules and scripts as single requests, and is over after `batch_s` seconds.
`endings` says how the next batches end, the first one first; those after them are completed.
"""

from __future__ import annotations

import email
import email.policy
import itertools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from graphrag_pipeline_tests.model_server import shapes
from graphrag_pipeline_tests.model_server.wire import HttpRequest

MAX_REQUESTS, MAX_BYTES = 50_000, 200_000_000
_UNDER_WAY = ("validating", "in_progress")
Answer = tuple[int, Any]
"""Status and JSON body, or the bytes of a file."""


@dataclass(frozen=True)
class Ending:
    """How a batch ends: its status, the number of requests answered before that, and errors of a `failed` one."""

    status: str
    n_answered: int = 0
    errors: tuple[tuple[str, str], ...] = ()


@dataclass
class BatchApi:
    """The files and batches of one server.

    Args:
        answer: answers one request to a path: status and body.

    Attributes:
        batches: the batches, oldest first, in OpenAI's form.
        most_under_way: most batches that were under way at once.
        is_served: whether there is a Batch API at all.
        is_away: whether it answers with status 503 now.
    """

    answer: Callable[[str, dict[str, Any]], Answer]
    batch_s: float = 0.0
    endings: list[Ending] = field(default_factory=list)
    is_served: bool = True
    is_away: bool = False
    most_under_way: int = 0
    batches: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    _ready_at: dict[str, float] = field(default_factory=dict)
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    def route(self, request: HttpRequest) -> Answer | None:
        """Answer a request below /v1/files or /v1/batches; None for another path."""
        parts = request.path.removeprefix("/v1/").split("/")
        if parts[0] not in ("files", "batches") or not self.is_served:
            return None
        if self.is_away:
            return 503, shapes.error(503, "The server is overloaded", None, None)
        match request.method, parts:
            case "POST", ["files"]:
                return self._upload(request)
            case "GET", ["files", name, "content"] if name in self.files:
                return 200, self.files[name]
            case "POST", ["batches"]:
                return self._create(json.loads(request.body))
            case "GET", ["batches"]:
                return 200, self._list(request.query)
            case "GET", ["batches", name] if batch := self._find(name):
                return 200, self._advance(batch)
            case "POST", ["batches", name, "cancel"] if batch := self._find(name):
                self._end(batch, Ending("cancelled"))
                return 200, batch
        return 404, shapes.error(404, f"No such object: {request.path}", "not_found", None)

    def finish(self) -> None:
        """Let all batches be over at the next look, those to come, too."""
        self.batch_s = 0.0
        self._ready_at = dict.fromkeys(self._ready_at, 0.0)

    def _find(self, name: str) -> dict[str, Any] | None:
        return next((batch for batch in self.batches if batch["id"] == name), None)

    def _upload(self, request: HttpRequest) -> Answer:
        head = f"content-type: {request.headers['content-type']}\r\n\r\n".encode()
        parsed = email.message_from_bytes(head + request.body, policy=email.policy.HTTP)
        parts = {part.get_param("name", header="content-disposition"): part for part in parsed.iter_parts()}
        content, purpose = parts["file"].get_payload(decode=True), parts["purpose"].get_content().strip()
        if purpose != "batch":
            return 400, shapes.error(400, f"Invalid purpose {purpose!r}", "invalid_value", "purpose")
        if len(content) > MAX_BYTES:
            return 413, shapes.error(413, "File is too large", None, "file")
        return 200, self._describe_file(self._keep(content), "batch")

    def _keep(self, content: bytes) -> str:
        name = f"file-{next(self._numbers)}"
        self.files[name] = content
        return name

    def _describe_file(self, name: str, purpose: str) -> dict[str, Any]:
        return {"id": name, "object": "file", "bytes": len(self.files[name]), "created_at": int(time.time()),
                "filename": f"{name}.jsonl", "purpose": purpose, "status": "processed"}  # fmt: skip

    def _create(self, body: dict[str, Any]) -> Answer:
        if body.get("input_file_id") not in self.files or body.get("completion_window") != "24h":
            return 400, shapes.error(400, "Invalid batch", "invalid_value", "input_file_id")
        lines = self._lines(body["input_file_id"])
        batch = {
            "id": f"batch_{next(self._numbers)}",
            "object": "batch",
            "endpoint": body["endpoint"],
            "input_file_id": body["input_file_id"],
            "completion_window": "24h",
            "status": "validating",
            "created_at": int(time.time()),
            "metadata": body.get("metadata"),
            "request_counts": {"total": len(lines), "completed": 0, "failed": 0},
            "output_file_id": None,
            "error_file_id": None,
            "errors": None,
        }
        self.batches.append(batch)
        n_under_way = sum(one["status"] in _UNDER_WAY for one in self.batches)
        self.most_under_way = max(self.most_under_way, n_under_way)
        self._ready_at[batch["id"]] = time.monotonic() + self.batch_s
        return 200, batch

    def _list(self, query: str) -> dict[str, Any]:
        values = dict(part.partition("=")[::2] for part in query.split("&") if part)
        newest = self.batches[::-1]
        start = next((n + 1 for n, one in enumerate(newest) if one["id"] == values.get("after")), 0)
        limit = int(values.get("limit", 20))
        return {"object": "list", "data": newest[start : start + limit], "has_more": start + limit < len(newest)}

    def _lines(self, file_id: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.files[file_id].splitlines() if line.strip()]

    def _advance(self, batch: dict[str, Any]) -> dict[str, Any]:
        if batch["status"] in _UNDER_WAY:
            batch["status"] = "in_progress"
            if time.monotonic() >= self._ready_at[batch["id"]]:
                self._end(batch, self.endings.pop(0) if self.endings else None)
        return batch

    def _end(self, batch: dict[str, Any], ending: Ending | None) -> None:
        lines = self._lines(batch["input_file_id"])
        problem = self._validate(batch["endpoint"], lines)
        if problem or (ending and ending.status == "failed"):
            errors = ending.errors if ending and ending.errors else ((problem or "invalid", problem or "it failed"),)
            data = [{"code": code, "message": message, "line": 1, "param": None} for code, message in errors]
            batch.update(status="failed", errors={"object": "list", "data": data})
            return
        n_answered = len(lines) if ending is None else ending.n_answered
        output, failed = [], []
        for number, line in enumerate(lines):
            result: dict[str, Any] = {"id": f"batch_req_{number}", "custom_id": line["custom_id"], "error": None}
            if number >= n_answered:
                code = f"batch_{ending.status if ending else ''}"
                error = {"code": code, "message": "This request was not executed."}
                failed.append({**result, "response": None, "error": error})
                continue
            status, body = self.answer(line["url"], line["body"])
            result["response"] = {"status_code": status, "request_id": f"req_{number}", "body": body}
            (output if status == 200 else failed).append(result)
        batch["request_counts"] = {"total": len(lines), "completed": len(output), "failed": len(failed)}
        batch["output_file_id"] = self._keep(_render(output)) if output else None
        batch["error_file_id"] = self._keep(_render(failed)) if failed else None
        batch["status"] = ending.status if ending else "completed"

    def _validate(self, endpoint: str, lines: list[dict[str, Any]]) -> str:
        ids = [line.get("custom_id") for line in lines]
        if len(lines) > MAX_REQUESTS:
            return "too many requests"
        if len(set(ids)) < len(ids):
            return "duplicate custom_id"
        n_inputs = sum(len(line["body"].get("input", ())) for line in lines)
        if n_inputs > MAX_REQUESTS:
            return "too many embedding inputs"
        models = {line["body"].get("model") for line in lines}
        is_whole = all(line.get("url") == endpoint and line.get("method") == "POST" for line in lines)
        return "" if is_whole and len(models) == 1 else "url, method or model differ"


def _render(lines: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in reversed(lines))  # results are in no fixed order
