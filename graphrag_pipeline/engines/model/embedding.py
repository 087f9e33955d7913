"""The embedder of the model engine: the client of `embedding_model`, with its cache of vectors."""

from __future__ import annotations

from graphrag_pipeline.models.endpoints.openai_embedder import OpenAIEmbedder
from graphrag_pipeline.pipeline.root import Root


def open_embedder(root: Root) -> OpenAIEmbedder:
    """Return the client of the embedding model that the settings of a root name."""
    return root.models.embedder
