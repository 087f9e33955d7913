"""Helpers that replace or query models: scripted replies, clients, and roots that use the test model server.

A request that failed is repeated after a millisecond, not after half a second.
"""

from graphrag_pipeline.models.endpoints import endpoint

endpoint.FIRST_BACKOFF_S = 0.001
