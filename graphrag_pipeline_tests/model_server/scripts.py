"""Scripted replies that replace those of the demo model. The first rule that answers wins."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from graphrag_pipeline_tests.model_server.faults import Fault
from graphrag_pipeline_tests.model_server.records import ReceivedRequest
from graphrag_pipeline_tests.model_server.shapes import Reply

Answer: TypeAlias = (
    "str | dict[str, Any] | Reply | Fault | Callable[[ReceivedRequest], Answer] | Sequence[Answer] | None"
)
"""A text, an object sent as JSON text, a reply, a fault, a function of the request; a list or tuple gives one answer
per attempt at the same request, the last one for all later ones; None leaves it to the next rule, at last to the model.
"""
Predicate: TypeAlias = "str | Callable[[ReceivedRequest], bool]"
"""Which requests a rule is for: a kind, or a text that the prompt contains, or a function."""
Rule: TypeAlias = tuple[Predicate, Answer]
Script: TypeAlias = "Callable[[ReceivedRequest], Answer] | Sequence[Rule]"


class Scripts:
    """Rules in order of priority; those pushed later come first."""

    def __init__(self, script: Script | None = None) -> None:
        rules = () if script is None else [(_always, script)] if callable(script) else script
        self._rules: tuple[Rule, ...] = tuple(rules)

    def push(self, *rules: Rule) -> None:
        self._rules = (*rules, *self._rules)

    def answer(self, request: ReceivedRequest) -> Reply | Fault | None:
        """Return the answer of the first rule that has one."""
        for predicate, answer in self._rules:
            if _applies(predicate, request):
                resolved = _resolve(answer, request)
                if resolved is not None:
                    return resolved
        return None


def _always(request: ReceivedRequest) -> bool:
    return True


def _applies(predicate: Predicate, request: ReceivedRequest) -> bool:
    if callable(predicate):
        return predicate(request)
    return predicate == request.kind or predicate in request.prompt


def _resolve(answer: Answer, request: ReceivedRequest) -> Reply | Fault | None:
    if answer is None or isinstance(answer, Reply | Fault):
        return answer
    if isinstance(answer, str):
        return Reply(answer)
    if isinstance(answer, dict):
        return Reply(json.dumps(answer, ensure_ascii=False))
    if callable(answer):
        return _resolve(answer(request), request)
    return _resolve(answer[min(request.attempt, len(answer)) - 1], request)
