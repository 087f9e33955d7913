"""Qdrant as a vector store beyond the contract: settings, names and errors. The client runs in this process."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pytest

from graphrag_pipeline.errors import PipelineError, SettingsError
from graphrag_pipeline.storage.vectors.qdrant import KEY_NAME, QdrantStore
from graphrag_pipeline.storage.vectors.stores import VectorRecord


class _Refusing(BaseHTTPRequestHandler):
    """Answers as Qdrant does to a wrong key, and repeats it."""

    def do_GET(self) -> None:
        text = f"Invalid API key {self.headers['api-key']}".encode()
        self.send_response(403)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def refusing() -> Iterator[str]:
    """The URL of a server that refuses every request."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Refusing) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
def test_no_message_shows_a_password_or_a_key(refusing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_NAME, "k3y-of-qdrant")
    with pytest.raises(SettingsError, match=rf"https://\*\*\*@h holds a password; set {KEY_NAME}") as password:
        QdrantStore("https://ann:s3cret@h")
    with pytest.raises(PipelineError, match=rf"403 .*Invalid API key \*\*\*.*check .*{KEY_NAME}") as key:
        QdrantStore(refusing).count("any")
    with pytest.raises(PipelineError, match=r"http://127\.0\.0\.1:1: .*refused.*check that the server runs"):
        QdrantStore("http://127.0.0.1:1").ids("any")
    assert not any(secret in f"{password.value} {key.value}" for secret in ("s3cret", "k3y-of-qdrant"))


def test_roots_with_a_prefix_each_share_no_collection() -> None:
    here, there = (QdrantStore(":memory:", prefix) for prefix in ("here", "there"))
    for store in (here, there):
        store.create("books", 2, True)
        store.upsert("books", [VectorRecord("a", "words", np.ones(2, np.float32))])
    there.drop("books")
    assert (here.count("books"), there.count("books")) == (1, 0)


def test_a_collection_without_full_text_answers_no_words() -> None:
    store = QdrantStore(":memory:", "without full text")
    store.create("books", 2, False)
    store.upsert("books", [VectorRecord("a", "words", np.ones(2, np.float32))])
    assert store.search_text("books", "words", 3) == [] and store.search("books", np.ones(2, np.float32), 3) != []
