"""The line of the audit log about one request, collected while it passes the gate.

Keep out: the file (`access/audit.py`).
"""

from __future__ import annotations

import logging
import re
import time
from dataclasses import dataclass, field

from starlette.types import Message, Receive, Scope

from graphrag_pipeline.access.audit import AnswerTrace, AuditLog
from graphrag_pipeline.errors import PipelineError

_log = logging.getLogger(__name__)
_MAX_TEXT_BYTES = 100_000
_KEY = re.compile(r"\d{1,15}|[0-9a-f]{16,128}")
"""A number or an id of a record; any other key is a text of the request."""


@dataclass
class RequestWatch:
    """What is seen of one request and its answer.

    Attributes:
        has_texts: whether the body of the request is kept.
        is_written: whether the log has its line.
    """

    scope: Scope
    has_texts: bool
    trace: AnswerTrace = field(default_factory=AnswerTrace)
    text: bytes = b""
    is_written: bool = False

    def see_request(self, receive: Receive) -> Receive:
        """Return `receive` that keeps the beginning of the body, if texts are wanted."""
        if not self.has_texts:
            return receive

        async def seen() -> Message:
            message = await receive()
            self.text += message.get("body", b"")[: _MAX_TEXT_BYTES - len(self.text)]
            return message

        return seen

    def see_answer(self, message: Message) -> bool:
        """Keep a piece of the answer, for the names in it; return whether it is the last."""
        if message["type"] != "http.response.body":
            return False
        self.trace.add(message.get("body", b""))
        return not message.get("more_body", False)


class Audit:
    """The audit log as the gate uses it."""

    def __init__(self, log: AuditLog) -> None:
        self._log = log

    def watch(self, scope: Scope) -> RequestWatch:
        """Return the watch of a request that begins."""
        return RequestWatch(scope, self._log.has_texts)

    def write(self, watch: RequestWatch, status: int, seconds: float) -> None:
        """Write the line about a request, unless it is written; a failure is an error in the server's own log."""
        if watch.is_written:
            return
        watch.is_written = True
        scope = watch.scope
        watch.trace.finish()
        state = scope.get("state", {})
        reader, route = state.get("reader"), state.get("route")
        target = f"{scope['path']}?{scope['query_string'].decode('latin-1')}" if self._log.has_texts else ""
        entry = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "principal": getattr(reader, "name", ""),
            "subject": getattr(reader, "subject", ""),
            "client": (scope.get("client") or ("",))[0],
            "method": scope["method"],
            "route": route or ("/mcp" if scope["path"] == "/mcp" else "other"),
            "tool": state.get("tool", ""),
            "status": status,
            "root": watch.trace.root or state.get("root", ""),
            "snapshot": watch.trace.snapshot,
            "documents": watch.trace.documents or _asked_document(route, scope, status),
            "seconds": round(seconds, 3),
            "target": target.rstrip("?"),
            "request": watch.text.decode("utf-8", "replace"),
        }
        try:
            self._log.write(entry)
        except PipelineError as error:
            _log.error("the audit log misses a request: %s", error)


def _asked_document(route: str | None, scope: Scope, status: int) -> list[str]:
    """Return the key of the document that the path names, for answers that do not name it, such as its mentions."""
    key: str = scope.get("path_params", {}).get("key", "")
    is_read = status == 200 and (route or "").startswith("/documents/{key}")
    return [key] if is_read and _KEY.fullmatch(key) else []
