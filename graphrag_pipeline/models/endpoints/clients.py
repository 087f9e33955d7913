"""Model clients of a root: one chat model per section of the settings and one embedder, over one cache and budget.

All code of a process with equal settings shares these clients. Stages and queries therefore share one concurrency limit
and one connection pool, and an identical request is sent once.

Keep out: which step uses which model.
"""

from __future__ import annotations

import copy
import functools
from pathlib import Path
from typing import Self

from graphrag_pipeline.models.accounting import Caller
from graphrag_pipeline.models.cache import ResponseCache, known_batches, known_forms
from graphrag_pipeline.models.database import SharedDatabase
from graphrag_pipeline.models.endpoints.chat_sender import LearnedModel
from graphrag_pipeline.models.endpoints.openai_client import OpenAIChatModel
from graphrag_pipeline.models.endpoints.openai_embedder import OpenAIEmbedder
from graphrag_pipeline.models.endpoints.reranker import Reranker
from graphrag_pipeline.models.spending import Spending
from graphrag_pipeline.settings.models import ChatModelSettings
from graphrag_pipeline.settings.settings import Settings

CACHE_FILE = "responses.sqlite"


class ModelClients:
    """The clients of one root.

    Args:
        location: SQLite file or database URL of the stored replies and the spending.

    Attributes:
        database: holds all of the following.
        cache: validated replies and vectors.
        known_forms: the form of structured outputs that each model accepts.
        known_batches: the most texts that each model takes in one request.
        spending: the budget and rate limits of the root.
    """

    def __init__(self, settings: Settings, location: Path | str) -> None:
        self._settings = settings
        self._chat_models: dict[str, OpenAIChatModel] = {}
        self._embedders: list[OpenAIEmbedder] = []
        self._rerankers: list[Reranker] = []
        self._learned: dict[tuple[str, ...], LearnedModel] = {}
        self._caller = Caller()
        self.database, self.cache = _open_cache(location)
        database = self.database
        self.known_forms = known_forms(database)
        self.known_batches = known_batches(database)
        self.spending = Spending(database, settings.budget)

    def chat_model(self, section: str) -> OpenAIChatModel:
        """Return the chat model of a section of the settings."""
        if section not in self._chat_models:
            settings = self._settings.chat_model_for(section)
            self._chat_models[section] = OpenAIChatModel(
                section,
                settings,
                self.cache,
                self.spending,
                self._settings.reply_tokens_for(section),
                self._learned_of(settings),
            )
        return self._chat_models[section].for_caller(self._caller)

    def _learned_of(self, settings: ChatModelSettings) -> LearnedModel:
        """Return what is known about a model; sections with the same model and address share it."""
        place = (settings.base_url, settings.model, settings.structured_output, str(settings.context_window))
        if place not in self._learned:
            self._learned[place] = LearnedModel.of_settings(settings, self.known_forms)
        return self._learned[place]

    @property
    def embedder(self) -> OpenAIEmbedder:
        """The embedding model."""
        if not self._embedders:
            settings = self._settings.embedding_model
            self._embedders.append(
                OpenAIEmbedder("embeddings", settings, self.cache, self.spending, self.known_batches)
            )
        return self._embedders[0].for_caller(self._caller)

    @property
    def reranker(self) -> Reranker:
        """The reranking model."""
        if not self._rerankers:
            self._rerankers.append(Reranker(self._settings.rerank_model, self.cache, self.spending, self.known_batches))
        return self._rerankers[0].for_caller(self._caller)

    def for_caller(self, caller: Caller) -> Self:
        """Return these clients for a caller whose accounts count their calls, too."""
        clients = copy.copy(self)
        clients._caller = self._caller.joined_by(caller)
        return clients


def open_clients(settings: Settings, root: Path) -> ModelClients:
    """Return the clients of a root; equal settings and location share them."""
    return _open_clients(
        settings.model_dump_json(), settings.storage.cache_url or settings.storage.cache_place(root) / CACHE_FILE
    )


@functools.cache
def _open_clients(settings: str, location: Path | str) -> ModelClients:
    return ModelClients(Settings.model_validate_json(settings), location)


@functools.cache
def _open_cache(location: Path | str) -> tuple[SharedDatabase, ResponseCache]:
    database = SharedDatabase(location)
    return database, ResponseCache(database)
