"""LiteLLM's proxy, a gateway that many teams run, between the product and the test model server."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from graphrag_pipeline_tests.support.dagster.live_dagster import wait_until

PROGRAM = "LITELLM"
"""Variable with the path of the program `litellm`, from an environment of its own: it pins other versions than ours."""
_STARTS_IN_S = 120


@contextmanager
def litellm_proxy(base_url: str, key: str, folder: Path) -> Iterator[str]:
    """Run a proxy of the models `test-chat` and `test-embedding` of a server, behind a key; yields its base URL."""
    program = os.environ.get(PROGRAM) or pytest.skip(
        f"{PROGRAM} does not name LiteLLM's program: pip install 'litellm[proxy]' into an environment of its own"
    )
    server = {"api_base": base_url, "api_key": "unused"}
    names = ("test-chat", "test-embedding")
    values = {
        "model_list": [{"model_name": name, "litellm_params": {"model": f"openai/{name}", **server}} for name in names],
        "files_settings": [{"custom_llm_provider": "openai", **server}],
        "litellm_settings": {"telemetry": False},
        "general_settings": {"master_key": key},
    }
    config = folder / "litellm.yaml"
    config.write_text(json.dumps(values), encoding="utf-8")  # JSON is YAML
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    # Its batches go to the server of these variables, whatever the configuration says.
    own = {"OPENAI_API_BASE": server["api_base"], "OPENAI_API_KEY": "unused", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    command = [program, "--config", config, "--host", "127.0.0.1", "--port", str(port)]
    with (folder / "litellm.log").open("wb") as log:
        proxy = subprocess.Popen(command, env=os.environ | own, stdout=log, stderr=log)
    try:
        address = f"http://127.0.0.1:{port}"
        wait_until(lambda: proxy.poll() is not None or _is_up(address), _STARTS_IN_S)
        assert proxy.poll() is None, (folder / "litellm.log").read_text(encoding="utf-8")[-2000:]
        yield f"{address}/v1"
    finally:
        proxy.terminate()
        proxy.wait(30)


def _is_up(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/health/liveliness", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
