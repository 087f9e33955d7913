"""LanceDB is imported without its REST client, which is loaded all the same when something asks for it."""

from __future__ import annotations

import subprocess
import sys

from graphrag_pipeline.storage.vectors import CLIENT

PROGRAM = f"""
import sys
import graphrag_pipeline.storage.vectors.lance
import lancedb
print("{CLIENT}.api" in sys.modules, lancedb.connect.__name__)
import {CLIENT} as client
print(client.TableApi.__name__, client.models.QueryTableRequest.__name__, hasattr(client, "nothing"))
"""


def test_the_rest_client_waits_until_it_is_used() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert ended.stdout.splitlines() == ["False connect", "TableApi QueryTableRequest False"], ended.stderr
