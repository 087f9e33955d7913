"""Requests to chat models about an index: a prompt that holds the data, then the user's question as its own turn.

Text from documents is data: it is placed between the prompt's <data> marks, which it cannot close.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

from graphrag_pipeline.models.ports import ChatReply, ChatRequest, Failure, Message
from graphrag_pipeline.models.prompt_echoes import PromptEchoes
from graphrag_pipeline.models.prompts import AUTO, Prompt, instruct_language
from graphrag_pipeline.models.reply_json import clean_text
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.token_budget import reply_tokens
from graphrag_pipeline.text.late_patterns import late_re

T = TypeVar("T")

MAX_QUESTION_CHARS = 500
"""Most characters of a question that a model writes."""

_CLOSING = late_re(r"<\s*/(?=\s*(?:data|question))", re.IGNORECASE)
_ANSWER_LANGUAGE = "Write in the language of the user's question; leave names as the data writes them."


def open_question(prompt: Prompt, language: str, question: str, **values: str) -> list[Message]:
    """Return the turns of a request about data: the prompt as the system's turn, the question as the user's.

    If the prompt has no `{language}` (Microsoft GraphRAG's have none), a named language is added as a line.
    """
    is_auto = language.strip().lower() == AUTO
    instruction = _ANSWER_LANGUAGE if is_auto else instruct_language(language)
    system = prompt.render(language=instruction, question=question, **values)
    if not is_auto and "language" not in prompt.placeholders:
        system = f"{system}\n\n{instruction}"
    return [{"role": "system", "content": system}, {"role": "user", "content": question}]


def as_data(text: str) -> str:
    """Return a text that cannot end the part of a prompt that holds it."""
    return _CLOSING.sub(r"<\\/", text).strip()


def mark_question(question: str) -> str:
    """Return the user's turn for a question that a model wrote from documents: it is marked, since it is data too."""
    return f"<question>\n{as_data(question)}\n</question>"


def read_questions(listed: Sequence[object], echoes: PromptEchoes | None = None) -> tuple[str, ...]:
    """Return the texts of a list that can be used as questions, each once, on one line; none repeats the prompt."""
    echoes = echoes or PromptEchoes()
    texts = [" ".join(clean_text(item).split()) for item in listed if isinstance(item, str)]
    fit = (text for text in texts if re.search(r"\w", text) and len(text) <= MAX_QUESTION_CHARS)
    return tuple(dict.fromkeys(text for text in fit if not echoes.holds(text)))


def request_all(
    index: IndexReader,
    section: str,
    requests: Sequence[ChatRequest[T]],
    reserve: int = 0,
) -> list[ChatReply[T] | Failure]:
    """Send requests to the chat model of a section, all at once; results in order, counted in the section.

    A request that the token budget of the question does not admit becomes a Failure, and so does one whose reply cannot
    be used and whose repeat the budget does not admit.

    Args:
        reserve: tokens of that budget that stay for later calls.

    Raises:
        PipelineError: no request can be answered, or the budget of the root is spent.
    """
    from graphrag_pipeline.models.pool import complete_all

    budget = index.calls.budget
    sent, model = budget.gated(requests, reply_tokens(index.settings, section), reserve), index.chat_model(section)
    replies = complete_all(model, sent, scope=index.calls.scope) if sent else []
    budget.settle(sent, [reply.text for reply in replies if isinstance(reply, ChatReply)])
    return replies + [budget.refuse(section, request) for request in requests[len(sent) :]]
