"""Clients of OpenAI-compatible endpoints: requests, retries, limits, streaming, spans and response bodies."""
