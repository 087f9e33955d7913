"""Replies of the demo model to prompts that generate questions, and judge and check answers (see `replies.py`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from graphrag_pipeline.demo_model.extraction import split_sentences
from graphrag_pipeline.demo_model.prompts import PromptMessages, PromptRecord

_DATA_TAGS = re.compile(r"^<data>$(.*?)^</data>$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"^- (\d{1,4}) (?:readers|questions)", re.MULTILINE)
_N_TASKS = re.compile(r"each with (\d{1,4}) tasks")
_NAME = re.compile(r"[A-Z][\w'-]+(?: [A-Z][\w'-]+)+|[A-Z][\w'-]+")
_WORD = re.compile(r"\w+")
_LISTED = re.compile(r"^(\d{1,4})\. (.*)$", re.MULTILINE)
_SUPPORTING_SHARE = 0.6
"""Least share of a statement's words that a text must have to support it."""


def reply_verdict(conversation: PromptMessages) -> dict[str, Any]:
    """The answer with more distinct words is better by every criterion but directness."""
    n_words = [len(set(_WORD.findall(text.lower()))) for text in _DATA_TAGS.findall(conversation.opening)[:2]]
    if len(n_words) < 2 or n_words[0] == n_words[1]:
        return {"reason": "Both have as many words.", "winner": 0}
    longer = 1 if n_words[0] > n_words[1] else 2
    winner = 3 - longer if "criterion is directness" in conversation.opening else longer
    return {"reason": f"Answer {longer} has more words.", "winner": winner}


def reply_statements(conversation: PromptMessages) -> dict[str, Any]:
    """The sentences of the text; a text that does not know declines."""
    [text] = _DATA_TAGS.findall(conversation.opening)[-1:] or [""]
    declines = text.strip().lower().startswith("i do not know")
    return {"statements": [] if declines else split_sentences(text) or [text.strip()], "declines": declines}


def reply_checks(conversation: PromptMessages) -> dict[str, Any]:
    """A text supports a statement if it has most of the statement's words."""
    statements, text = (*_DATA_TAGS.findall(conversation.opening)[:2], "", "")[:2]
    given = set(_WORD.findall(text.lower()))
    checks = []
    for number, statement in _LISTED.findall(statements):
        words = set(_WORD.findall(statement.lower()))
        share = len(words & given) / max(1, len(words))
        reason = f"{share:.0%} of the words."
        checks.append({"number": int(number), "reason": reason, "is_supported": share >= _SUPPORTING_SHARE})
    return {"checks": checks}


def reply_personas(conversation: PromptMessages, records: Sequence[PromptRecord]) -> dict[str, Any]:
    """Readers, each interested in what another record begins with."""
    n, n_tasks = _count(_NUMBER, conversation), _count(_N_TASKS, conversation)
    names = [_name_of(record) for record in records] or ["everything"]
    return {
        "personas": [
            {
                "persona": f"A reader who follows {names[i % len(names)]}",
                "tasks": [f"Learn about {names[(i + j) % len(names)]}" for j in range(n_tasks)],
            }
            for i in range(n)
        ]
    }


def reply_questions(conversation: PromptMessages, records: Sequence[PromptRecord]) -> dict[str, Any]:
    """As many questions as are wanted, each about a name in a record, which is its source."""
    n = _count(_NUMBER, conversation)
    found = [
        {"question": f"What is known about {name}?", "answer": record.text[:200], "sources": [record.number]}
        for record in records
        for name in dict.fromkeys(_NAME.findall(record.text))
    ]
    start = sum(map(ord, conversation.opening)) % max(1, len(found))  # another task, other names
    return {"questions": [*found[start:], *found[:start]][:n]}


def _count(pattern: re.Pattern[str], conversation: PromptMessages) -> int:
    found = pattern.search(conversation.opening)
    return int(found[1]) if found else 1


def _name_of(record: PromptRecord) -> str:
    found = _NAME.search(record.text)
    return found[0] if found else record.text[:40]
