"""Clients for OpenAI-compatible endpoints: requests, retries, limits, streaming and reply parsing."""
