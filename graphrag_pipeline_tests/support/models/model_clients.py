"""Clients of a test model server as a stage makes them, with short delays."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from graphrag_pipeline.models.cache import ResponseCache, known_forms
from graphrag_pipeline.models.database import SharedDatabase
from graphrag_pipeline.models.endpoints.chat_sender import LearnedModel
from graphrag_pipeline.models.endpoints.openai_client import OpenAIChatModel
from graphrag_pipeline.models.endpoints.openai_embedder import OpenAIEmbedder
from graphrag_pipeline.models.event_loop import start_in_loop
from graphrag_pipeline.models.ports import ChatReply, ChatRequest, ReplyFormatError
from graphrag_pipeline.models.spending import Spending
from graphrag_pipeline.settings.models import BudgetSettings, ChatModelSettings, EmbeddingModelSettings

T = TypeVar("T")

QUICK: dict[str, Any] = {"timeout_s": 5.0}


def open_cache(folder: Path) -> SharedDatabase:
    return SharedDatabase(folder / "cache" / "responses.sqlite")


def chat_model(
    base_url: str,
    folder: Path,
    budget: BudgetSettings | None = None,
    max_reply_tokens: int | None = None,
    is_known: bool = True,
    **settings: Any,
) -> OpenAIChatModel:
    """A chat model; unless `is_known` is False, an earlier command has seen that it writes no thoughts."""
    database = open_cache(folder)
    chosen = ChatModelSettings(**{"model": "test-chat", "base_url": base_url, **QUICK, **settings})
    learned = LearnedModel.of_settings(chosen, known_forms(database))
    learned.note_beginning(is_unmarked=False, is_free=is_known)
    return OpenAIChatModel(
        "extraction",
        chosen,
        ResponseCache(database),
        Spending(database, budget or BudgetSettings()),
        max_reply_tokens,
        learned,
    )


def embedder(base_url: str, folder: Path, **settings: Any) -> OpenAIEmbedder:
    database = open_cache(folder)
    chosen = EmbeddingModelSettings(**{"model": "test-embedding", "base_url": base_url, **QUICK, **settings})
    return OpenAIEmbedder("embeddings", chosen, ResponseCache(database), Spending(database, BudgetSettings()))


def ask(question: str, **fields: Any) -> ChatRequest[str]:
    """A request whose reply must hold the word "fact"."""
    return ChatRequest(question, [{"role": "user", "content": question}], read_fact, **fields)


def read_fact(text: str) -> str:
    if "fact" not in text:
        raise ReplyFormatError(f"there is no fact in {text[:20]!r}")
    return text.strip()


def complete(chat: OpenAIChatModel, request: ChatRequest[T]) -> ChatReply[T]:
    return in_loop(chat.complete(request))


def in_loop(work: Coroutine[Any, Any, T]) -> T:
    return start_in_loop(asyncio.wait_for(work, 60)).result()
