"""The OpenAI SDK connected to the test model server."""

from __future__ import annotations

from typing import Any

import openai

from graphrag_pipeline_tests.model_server import ModelServer

KEY = "sk-test-0123456789"


def connect(server: ModelServer, key: str = KEY, **options: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.base_url, api_key=key, **{"max_retries": 0, **options})


def ask(client: openai.OpenAI, text: str = "Hello there", **options: Any) -> Any:
    return client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}], **options)
