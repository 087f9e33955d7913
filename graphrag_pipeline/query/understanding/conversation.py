"""Conversation before a question: the turns that are read, and their text.

Entity matching reads the question together with the user's recent ones, because "And what did he do then?" names no
entity. A model reads the turns before the context; their tokens are taken off the context's budget first. Strict
packing reads and writes them as Microsoft GraphRAG does (`read_strict_conversation`). Turns are (role, content), oldest
first. Keep out: entity matching.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.query.context import PART_OVERHEAD, row_costs
from graphrag_pipeline.query.question import MAX_QUESTION_CHARS, cut_gaps, valid_unicode
from graphrag_pipeline.settings.settings import LocalSearchSettings
from graphrag_pipeline.text.tokens import count_tokens, count_tokens_each

MAX_SHARE = 0.5
"""Largest share of the context's budget for the conversation; the rest is for evidence."""
ROLES = ("user", "assistant")
STRICT_HEADING = "-----Conversation History-----\n"

Turn = tuple[str, str]
"""Role, content."""


@dataclass(frozen=True)
class Conversation:
    """What is read of a conversation.

    Attributes:
        turns: that a model reads, oldest first.
        n_tokens: tokens of the budget that the text takes.
        earlier: questions of the user that matching reads, the latest first.
        text: the turns as a model reads them; "" without turns.
    """

    turns: tuple[Turn, ...] = ()
    n_tokens: int = 0
    earlier: tuple[str, ...] = ()
    text: str = ""

    def join(self, question: str) -> str:
        """Return the question followed by the user's earlier ones, the latest first, one a line."""
        return "\n".join([question, *self.earlier])[: max(len(question), MAX_QUESTION_CHARS)]


def read_history(settings: LocalSearchSettings) -> Conversation:
    """Return the conversation of the settings, cut to what local search reads."""
    history, max_turns = settings.conversation_history, settings.conversation_history_max_turns
    if settings.reads_user_turns_only:
        history = tuple((role, content) for role, content in history if role == "user")
    if settings.is_strict:
        return read_strict_conversation(history, max_turns, settings.max_context_tokens, settings.column_delimiter)
    return read_conversation(history, max_turns, settings.max_context_tokens)


def read_conversation(history: Sequence[Turn], max_turns: int, max_context_tokens: int) -> Conversation:
    """Return the latest turns of a conversation that fit `MAX_SHARE` of a budget.

    Args:
        max_turns: most questions of the user; each is read with its answer.
    """
    folded = [(role, " ".join(cut_gaps(valid_unicode(content)).split())) for role, content in history]
    starts = [place for place, (role, _) in enumerate(folded) if role == "user"]
    recent = folded[starts[-max_turns:][0] :] if starts and max_turns else []
    costs = row_costs(count_tokens_each([content for _, content in recent]))
    left = int(MAX_SHARE * max_context_tokens) - PART_OVERHEAD
    first = len(recent)
    while first and costs[first - 1] <= left:
        first -= 1
        left -= costs[first]
    kept = tuple(recent[first:])
    if not kept:
        return Conversation()
    text = "\n".join(["# Conversation", *(f"{role}: {content}" for role, content in kept)])
    earlier = tuple(content for role, content in reversed(kept) if role == "user")
    return Conversation(kept, sum(costs[first:]) + PART_OVERHEAD, earlier, text)


def read_strict_conversation(
    history: Sequence[Turn], max_turns: int, max_context_tokens: int, delimiter: str = "|"
) -> Conversation:
    """Return the turns of a conversation as Microsoft GraphRAG reads, counts and writes them.

    Matching reads the latest questions. The table for the model has the first ones, up to one that does not fit the
    whole budget. If the first does not fit, no row is written, and the heading is still counted.

    Args:
        max_turns: most questions of the user, for either.
    """
    rounds: list[list[Turn]] = []
    for role, content in ((role, cut_gaps(valid_unicode(content))) for role, content in history):
        if role == "user":
            rounds.append([(role, content)])
        elif rounds:
            rounds[-1].append((role, content))
    if not rounds or not max_turns:
        return Conversation()
    earlier = tuple(content for [(_, content), *_] in reversed(rounds[-max_turns:]))
    turns: list[Turn] = []
    table = STRICT_HEADING + "\n"
    for asked, *answers in rounds[:max_turns]:
        joined = [("assistant", "\n".join(content for _, content in answers))] if answers else []
        longer = _write_table([*turns, asked, *joined], delimiter)
        if count_tokens(longer) > max_context_tokens:
            break
        turns, table = [*turns, asked, *joined], longer
    return Conversation(tuple(turns), count_tokens(table), earlier, table if turns else "")


def _write_table(turns: Sequence[Turn], delimiter: str) -> str:
    written = io.StringIO()
    csv.writer(written, delimiter=delimiter, lineterminator="\n").writerows([("turn", "content"), *turns])
    return STRICT_HEADING + written.getvalue()


def read_history_file(path: Path) -> list[Turn]:
    """Return the turns of a file of JSON lines with `role` (user or assistant) and `content`, oldest first.

    Raises:
        PipelineError: the file cannot be read as UTF-8 text, or a line is not a turn.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise PipelineError(f"{path}: cannot be read as UTF-8 text ({error})") from None
    return [_read_turn(line, f"{path}, line {n}") for n, line in enumerate(lines, start=1) if line.strip()]


def _read_turn(line: str, place: str) -> Turn:
    try:
        turn = json.loads(line)
    except ValueError:
        turn = None
    if not isinstance(turn, dict) or turn.get("role") not in ROLES or not isinstance(turn.get("content"), str):
        raise PipelineError(f'{place}: is not a turn such as {{"role": "user", "content": "Who is Jacob Marley?"}}')
    return turn["role"], turn["content"]
