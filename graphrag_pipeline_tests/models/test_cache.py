"""Paid replies are found again by any process, until they are forgotten."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.cache import ResponseCache, StoredReply
from graphrag_pipeline.models.database import SharedDatabase
from graphrag_pipeline_tests.support.models.model_clients import open_cache

_WRITE_MANY = """
import sys
from pathlib import Path
from graphrag_pipeline.models.cache import ResponseCache, StoredReply
from graphrag_pipeline.models.database import SharedDatabase
database = SharedDatabase(Path(sys.argv[1]))
cache = ResponseCache(database)
name = sys.argv[2]
for i in range(400):
    cache.write(f"{name}{i}", StoredReply("m", "s", f"by {name}", "stop", i, 1, 0.1, None)).result()
    cache.write(f"both{i}", StoredReply("m", "s", f"by {name}", "stop", i, 1, 0.1, None))
database.close()
"""


def stored(text: str, cost: float | None = None) -> StoredReply:
    return StoredReply("test-chat", "extraction", text, "stop", 10, 2, 0.5, cost)


@pytest.fixture
def cache(tmp_path: Path) -> ResponseCache:
    return ResponseCache(open_cache(tmp_path))


def test_a_reply_is_found_again_with_all_it_took(cache: ResponseCache, tmp_path: Path) -> None:
    cache.write("key", stored("Scrooge", cost=0.25)).result()
    assert cache.read(["key", "other"]) == {"key": stored("Scrooge", cost=0.25)}
    assert ResponseCache(open_cache(tmp_path)).read(["key"]) == {"key": stored("Scrooge", cost=0.25)}


def test_more_keys_than_a_statement_takes_are_read_and_forgotten(cache: ResponseCache) -> None:
    keys = [f"{i}" for i in range(2500)]
    for done in [cache.write(key, stored(key)) for key in keys]:
        done.result()
    assert {key: reply.text for key, reply in cache.read(keys).items()} == {key: key for key in keys}
    assert cache.forget(keys[:2000]) == 2000
    assert set(cache.read(keys)) == set(keys[2000:])
    assert cache.forget(keys[:2000]) == 0


def test_vectors_are_kept_by_model_and_text(cache: ResponseCache) -> None:
    vectors = {f"t{i}": np.arange(i, i + 4, dtype=np.float32) for i in range(1000)}
    cache.write_vectors("model a", vectors).result()
    cache.write_vectors("model a", {"t0": np.zeros(4, dtype=np.float32)}).result()
    found = cache.read_vectors("model a", [*vectors, "unknown"])
    assert found.keys() == vectors.keys()
    assert all(np.array_equal(found[key], vectors[key]) for key in vectors)
    assert cache.read_vectors("model b", vectors) == {}
    any_vector = cache.read_any_vector("model a")
    assert any_vector is not None and len(any_vector) == 4
    assert cache.read_any_vector("model b") is None


def test_two_processes_write_to_one_cache(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "responses.sqlite"
    writers = [subprocess.Popen([sys.executable, "-c", _WRITE_MANY, str(path), name]) for name in "ab"]
    assert [writer.wait(120) for writer in writers] == [0, 0]
    found = ResponseCache(SharedDatabase(path)).read([f"{name}{i}" for name in ("a", "b", "both") for i in range(400)])
    assert len(found) == 1200
    assert {found[f"a{i}"].text for i in range(400)} == {"by a"}
    assert {found[f"both{i}"].text for i in range(400)} <= {"by a", "by b"}


def test_a_change_that_fails_alone_does_not_take_others_with_it(cache: ResponseCache) -> None:
    good = [cache.write(f"{i}", stored("good")) for i in range(50)]
    bad = cache.write("bad", stored(None))  # type: ignore[arg-type]
    good += [cache.write(f"{i}", stored("good")) for i in range(50, 100)]
    for done in good:
        done.result()
    with pytest.raises(PipelineError, match=r"responses\.sqlite"):
        bad.result()
    assert len(cache.read([f"{i}" for i in range(100)])) == 100


def test_a_damaged_file_names_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "responses.sqlite"
    path.write_bytes(b"not a database at all" * 1000)
    with pytest.raises(PipelineError, match=r"responses\.sqlite: the response cache is damaged .* move it") as caught:
        SharedDatabase(path)
    assert caught.value.__cause__ is None


def test_a_file_damaged_in_the_middle_is_an_error_not_an_answer(tmp_path: Path) -> None:
    database = open_cache(tmp_path)
    cache = ResponseCache(database)
    for done in [cache.write(f"{i}", stored("x" * 2000)) for i in range(200)]:
        done.result()
    database.close()
    path = tmp_path / "cache" / "responses.sqlite"
    content = bytearray(path.read_bytes())
    content[4096:-4096] = b"\xff" * (len(content) - 8192)
    path.write_bytes(content)
    with pytest.raises(PipelineError, match="damaged"):
        ResponseCache(SharedDatabase(path)).read([f"{i}" for i in range(200)])


@pytest.mark.parametrize(
    "url",
    [
        "nonsense",
        "mongo://host/x",
        "postgresql+nothing://user:secret@127.0.0.1:1/x",
        "postgresql://user:secret@127.0.0.1:port/x",
    ],
)
def test_a_bad_url_is_explained_without_its_password(url: str) -> None:
    with pytest.raises(PipelineError, match="postgresql") as caught:
        SharedDatabase(url)
    assert "secret" not in str(caught.value)
