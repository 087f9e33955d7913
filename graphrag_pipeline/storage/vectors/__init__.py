"""Vector tables: immutable LanceDB folders, the contract of a vector store, and the registry of stores."""

from graphrag_pipeline.storage.vectors.unused_client import defer_rest_client

defer_rest_client()
