"""Forms of structured outputs: the ways to ask an endpoint for JSON, and which of them a model accepts.

| form | what a request carries |
|---|---|
| `json_schema` | `response_format` with the schema and the limits of the request |
| `json_schema_unlimited` | the same without limits, for endpoints that do not know `maxItems` and the like |
| `json_object` | `response_format` json_object, and the schema in words |
| `tool` | one tool that must be called, with the schema as its parameters |
| `plain` | the schema in words |

They are tried in this order. A form that an endpoint refuses is left for all clients of the model, and the one that it
takes is kept for later commands (`models/cache.py`). A kept form that is refused is forgotten, and all are tried
again. A form that the settings name is the only one. The first request in a form is its trial: the others wait for the
result, so that an endpoint refuses a form once and not once for each request under way.

Keep out: sending, and reading a reply (`replies.py`, `models/reply_json.py`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from graphrag_pipeline.models.endpoints.limits import FirstRequest
from graphrag_pipeline.models.endpoints.replies import add_to_last
from graphrag_pipeline.models.ports import ChatRequest, Message
from graphrag_pipeline.models.reply_json import bound_schema, describe_schema

FORMS = ("json_schema", "json_schema_unlimited", "json_object", "tool", "plain")
AUTO = "auto"
UNLIMITED = FORMS[1]
"""The form that a request with limits is repeated in; a request without limits has no use for it."""

TRIAL_S = 1.0
"""Longest wait for the result of a trial."""


class ReplyForms:
    """The form that a model is asked in now.

    Args:
        pinned: a form of the settings, or `auto`.
        kept: the form that an earlier command found; None if it is not known.
        keep: receives the form that is found; None says that `kept` does not hold any more.
    """

    def __init__(
        self, pinned: str = AUTO, kept: str | None = None, keep: Callable[[str | None], object] | None = None
    ) -> None:
        self._forms = possible_forms(pinned)
        self._kept = self._of_before = kept if kept in self._forms[1:] else None
        self._keep = keep
        self.current = self._kept or self._forms[0]
        self._taken = {(pinned, True), (pinned, False)} if len(self._forms) == 1 else set()
        self._trial = FirstRequest(TRIAL_S)

    @asynccontextmanager
    async def turn(self, has_limits: bool) -> AsyncIterator[str]:
        """Yield the form to ask in, after the trial that is under way; an error in the body means that it is not taken.

        Args:
            has_limits: whether the request has limits, which may be refused in a form that is taken without.
        """
        async with self._trial.turn(lambda: (self.current, has_limits) in self._taken):
            form = self.current
            yield form
            self._taken.add((form, has_limits))
            if form == self.current and form not in (self._kept, self._forms[0]):
                self._change_kept(form)  # others were refused before it

    def leave(self, refused: str, may_be_limits: bool) -> bool:
        """Go on to the next form after a refusal; return whether the request may be sent again.

        Args:
            refused: the form of the refused request; another request may have left it in the meantime.
            may_be_limits: whether the limits of the request may be what was refused, so that it may do without them.
        """
        if self.current != refused:
            return True
        if refused == self._of_before:
            self._of_before = None
            self._change_kept(None)
            self.current = self._forms[0]
            return True
        following = self._forms[self._forms.index(refused) + 1 :]
        if not may_be_limits:
            following = tuple(form for form in following if form != UNLIMITED)
        if not following:
            return False
        self.current = following[0]
        return True

    def _change_kept(self, form: str | None) -> None:
        self._kept = form
        if self._keep is not None:
            self._keep(form)


def possible_forms(pinned: str) -> tuple[str, ...]:
    """Return the forms that may be tried, in order: all, or the form that the settings name.

    A pinned schema may be sent without limits, too.
    """
    if pinned == AUTO:
        return FORMS
    return FORMS[:2] if pinned == FORMS[0] else (pinned,)


def shape_request(
    form: str, messages: Sequence[Message], request: ChatRequest[Any]
) -> tuple[Sequence[Message], dict[str, Any]]:
    """Return the messages and the other fields of the body of a request that asks for JSON in a form."""
    wanted = request.response_format or {}
    if form == "plain":
        return add_to_last(messages, describe_schema(wanted)), {}
    if form == "json_object":
        return add_to_last(messages, describe_schema(wanted)), {"response_format": {"type": "json_object"}}
    if form == "tool":
        return messages, _call_of(bound_schema(wanted, request.limits))
    limits = request.limits if form == "json_schema" else {}
    return messages, {"response_format": bound_schema(wanted, limits)}


def _call_of(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a request whose reply is the call of one tool."""
    schema = wanted.get("json_schema", {})
    name = schema.get("name", "reply")
    function = {"name": name, "description": "Write the reply.", "parameters": schema.get("schema", {"type": "object"})}
    choice = {"type": "function", "function": {"name": name}}
    return {"tools": [{"type": "function", "function": function}], "tool_choice": choice}
