"""Questions to chat models about an index: a prompt that holds the data, then the user's question as its own turn.

Text from documents is data: it stands between the prompt's <data> marks, which it cannot close.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from graphrag_pipeline.models.ports import ChatReply, ChatRequest, Failure, Message
from graphrag_pipeline.models.prompts import AUTO, Prompt, instruct_language
from graphrag_pipeline.query.model_accounts import booked

if TYPE_CHECKING:
    from graphrag_pipeline.query.graph_index import GraphIndex

T = TypeVar("T")

_CLOSING = re.compile(r"<\s*/(?=\s*data)", re.IGNORECASE)
_ANSWER_LANGUAGE = "Write in the language of the user's question; leave names as the data writes them."


def open_question(prompt: Prompt, language: str, question: str, **values: str) -> list[Message]:
    """The turns that ask about data: the prompt as the system's, the question as the user's.

    A prompt without `{language}` (Microsoft GraphRAG's) gets a named language as a line of its own.
    """
    is_auto = language.strip().lower() == AUTO
    told = _ANSWER_LANGUAGE if is_auto else instruct_language(language)
    system = prompt.render(language=told, question=question, **values)
    if not is_auto and "language" not in prompt.placeholders:
        system = f"{system}\n\n{told}"
    return [{"role": "system", "content": system}, {"role": "user", "content": question}]


def as_data(text: str) -> str:
    """Text that cannot end the part of a prompt that holds it."""
    return _CLOSING.sub(r"<\\/", text).strip()


def ask_all(index: GraphIndex, section: str, requests: Sequence[ChatRequest[T]]) -> list[ChatReply[T] | Failure]:
    """Ask the chat model of a section, all at once, results in order; booked to the section.

    Raises:
        PipelineError: no request can be answered, or the budget is spent.
    """
    from graphrag_pipeline.models.pool import complete_all

    chat = index.chat_model(section)
    with booked(section):
        return complete_all(chat, requests)
