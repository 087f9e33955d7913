"""The most texts that an endpoint takes in one request: learnt with few refusals, kept, and never from a bad text."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphrag_pipeline.demo_model.vectors import embed
from graphrag_pipeline.identity import text_hash
from graphrag_pipeline.models.cache import ResponseCache, known_batches
from graphrag_pipeline.models.database import SharedDatabase
from graphrag_pipeline.models.endpoints import endpoint
from graphrag_pipeline.models.endpoints.batches import BatchLimit, send_batches
from graphrag_pipeline.models.endpoints.endpoint import RejectedError
from graphrag_pipeline.models.endpoints.openai_embedder import OpenAIEmbedder
from graphrag_pipeline.models.endpoints.problems import Problem
from graphrag_pipeline.models.endpoints.reranker import Reranker
from graphrag_pipeline.models.ports import CallFailedError
from graphrag_pipeline.models.spending import Spending
from graphrag_pipeline.settings.models import BudgetSettings, EmbeddingModelSettings, RerankModelSettings
from graphrag_pipeline_tests.model_server import Fault, ModelServer, ReceivedRequest, Reply, running_model_server
from graphrag_pipeline_tests.support.models.model_clients import QUICK, embedder, in_loop, open_cache

TEXTS = [f"text {number} about Scrooge" for number in range(100)]
VAGUE = "The request is not valid."


_databases: dict[Path, SharedDatabase] = {}


def open_anew(folder: Path) -> SharedDatabase:
    """Open the store as a new process does, after the one before ended, which commits what it wrote."""
    if folder in _databases:
        _databases[folder].flush()
    _databases[folder] = open_cache(folder)
    return _databases[folder]


def learning_embedder(base_url: str, folder: Path) -> OpenAIEmbedder:
    database = open_anew(folder)
    settings = EmbeddingModelSettings(model="test-embedding", base_url=base_url, batch_size=64, **QUICK)
    spending = Spending(database, BudgetSettings())
    return OpenAIEmbedder("embeddings", settings, ResponseCache(database), spending, known_batches(database))


def n_refused(server: ModelServer) -> int:
    return sum(call.status not in (None, 200) for call in server.calls)


def taking(most: int, status: str = "400", message: str = VAGUE) -> Callable[[ReceivedRequest], Fault | None]:
    """Return a script that refuses more texts in one request."""
    return lambda request: Fault(status, message=message) if len(request.inputs) > most else None


@pytest.mark.parametrize("most", [1, 3, 10, 32, 63])
def test_a_size_is_learnt_by_a_handful_of_refusals_and_the_next_command_has_none(most: int, tmp_path: Path) -> None:
    with running_model_server(taking(most), dimensions=8) as server:
        vectors = learning_embedder(server.base_url, tmp_path).embed(TEXTS)
        assert n_refused(server) <= 7 and np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(100))
        n_first = len(server.calls)
        server.reset()
        again = learning_embedder(server.base_url, tmp_path).embed([f"again {text}" for text in TEXTS])
        assert n_refused(server) == 0 and len(again) == 100
        assert len(server.calls) <= 2 * -(-100 // most), "batches are at least half as large as the endpoint takes"
    assert n_first <= 2 * -(-100 // most) + 10


def test_a_size_that_the_refusal_names_is_used_at_once(tmp_path: Path) -> None:
    with running_model_server(max_batch_items=10, dimensions=8) as server:
        learning_embedder(server.base_url, tmp_path).embed(TEXTS)
        assert [call.n_inputs for call in server.calls[:2]] == [64, 10]
        assert n_refused(server) == 1


@pytest.mark.parametrize(
    ("status", "message"),
    [("500", "batch size 64 is not supported"), ("422", "only one input is supported"), ("500", "too many inputs")],
)
def test_a_refusal_of_several_texts_is_not_tried_again_whatever_its_status(
    status: str, message: str, tmp_path: Path
) -> None:
    with running_model_server(taking(1, status, message), dimensions=8) as server:
        model = learning_embedder(server.base_url, tmp_path)
        assert len(model.embed(TEXTS[:5])) == 5
        assert n_refused(server) <= 2 and model.stats.n_retries == 0


def test_a_text_that_is_refused_alone_says_nothing_about_the_size(tmp_path: Path) -> None:
    def refuse_poison(request: ReceivedRequest) -> Fault | None:
        return Fault("400", message=VAGUE) if any("poison" in str(text) for text in request.inputs) else None

    texts = [*TEXTS[:50], "poison", *TEXTS[50:]]
    with running_model_server(refuse_poison, dimensions=8) as server:
        _, failures = learning_embedder(server.base_url, tmp_path).try_embed(texts)
        assert [failure.record for failure in failures] == [text_hash("poison")]
        server.reset()
        learning_embedder(server.base_url, tmp_path).embed([f"again {text}" for text in TEXTS])
        assert max(call.n_inputs for call in server.calls) == 64


NAN = Reply(vectors=[[float("nan")] * 8])
NAN_500 = Fault("500", message="failed to encode response: json: unsupported value: NaN")
BAD_TEXTS = [
    NAN_500, Fault("500"), Fault("413", message="Payload too large"), Fault("403", message="Your input was flagged"),
    NAN, Reply(vectors=[[0.0] * 8]),
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD_TEXTS)
def test_one_bad_text_fails_alone_in_whatever_way_the_endpoint_fails_at_it(bad: Fault | Reply, tmp_path: Path) -> None:
    def answer(request: ReceivedRequest) -> Fault | Reply | None:
        if "poison" not in request.inputs:
            return None
        if isinstance(bad, Fault):
            return bad
        others = [[1.0] * 8] * (len(request.inputs) - 1)
        return Reply(vectors=[*others, *(bad.vectors or [])])

    with running_model_server(answer, dimensions=8) as server:
        model = embedder(server.base_url, tmp_path, max_attempts=2)
        _, failures = model.try_embed([*TEXTS[:5], "poison", *TEXTS[5:9]])
        assert [failure.record for failure in failures] == [text_hash("poison")]
        assert len(model.read_stored({text_hash(text): text for text in TEXTS[:9]})) == 9


@pytest.mark.parametrize("n", [1, 64])
def test_a_text_that_the_server_always_fails_at_is_found_within_three_seconds(
    n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the waits of a real run: the sizes of a divided batch do not wait, and a text alone is not tried often."""
    waits: list[float] = []

    async def note(seconds: float, *_: object) -> None:
        waits.append(seconds)

    monkeypatch.setattr(endpoint, "FIRST_BACKOFF_S", 0.5)
    monkeypatch.setattr(endpoint, "_sleep", note)
    texts = [*TEXTS[: n // 2], "poison", *TEXTS[n // 2 : n - 1]]
    with running_model_server(lambda request: NAN_500 if "poison" in request.inputs else None) as server:
        vectors, failures = embedder(server.base_url, tmp_path, batch_size=64).try_embed(texts)
    assert [failure.record for failure in failures] == [text_hash("poison")] and "NaN" in failures[0].reason
    assert np.count_nonzero(np.linalg.norm(vectors, axis=1)) == n - 1
    assert sum(waits) < 3


def test_a_chance_failure_of_a_part_does_not_make_batches_smaller(tmp_path: Path) -> None:
    """The batch holds a bad text, so each part gets one attempt; one of the other parts fails once."""
    n_failed = itertools.count()

    def answer(request: ReceivedRequest) -> Fault | None:
        is_chance = TEXTS[0] in request.inputs and len(request.inputs) == 30 and next(n_failed) == 0
        return NAN_500 if "poison" in request.inputs or is_chance else None

    with running_model_server(answer, dimensions=8) as server:
        model = learning_embedder(server.base_url, tmp_path)
        model.embed([f"before {text}" for text in TEXTS[:64]])
        _, failures = model.try_embed([*TEXTS[:60], "poison"])
        assert len(failures) == 1
        server.reset()
        model.embed([f"again {text}" for text in TEXTS])
        assert max(call.n_inputs for call in server.calls) == 64


def test_a_server_that_fails_at_all_texts_is_not_asked_for_each(tmp_path: Path) -> None:
    with running_model_server(lambda request: Fault("500")) as server:
        _, failures = embedder(server.base_url, tmp_path, max_attempts=2, dimensions=8).try_embed(TEXTS)
        assert len(failures) == 100 and server.count() <= 60


def reply_with(change: Callable[[list[dict[str, Any]]], object]) -> Callable[[ReceivedRequest], Fault]:
    """Return a script that sends changed rows of vectors."""

    def answer(request: ReceivedRequest) -> Fault:
        rows = [{"index": n, "embedding": embed(str(text), 8).tolist()} for n, text in enumerate(request.inputs)]
        return Fault("error-event", raw={"data": change(rows)})

    return answer


@pytest.mark.parametrize(
    "change", [lambda rows: [{**row, "index": 0} for row in rows],
               lambda rows: [{**row, "index": None} for row in rows],
               lambda rows: [{"embedding": row["embedding"]} for row in rows], lambda rows: rows[::-1],
               lambda rows: rows[:3]],
    ids=["all 0", "all null", "none", "another order", "at most three"])  # fmt: skip
def test_vectors_are_paired_in_order_without_numbers_and_a_short_reply_is_sent_in_parts(
    change: Callable[[list[dict[str, Any]]], object], tmp_path: Path
) -> None:
    with running_model_server(reply_with(change), dimensions=8) as server:
        vectors = learning_embedder(server.base_url, tmp_path).embed(TEXTS[:10])
        assert vectors == pytest.approx(np.array([embed(text, 8) for text in TEXTS[:10]]), abs=1e-6)
        assert server.count() <= 12


@pytest.mark.parametrize(
    ("status", "message"),
    [("400", "encoding_format is not supported"), ("422", "only float encodings, no base64"), ("400", VAGUE),
     ("500", "Internal Server Error"), ("400", "unknown variant `base64`, expected `float`")])  # fmt: skip
def test_an_endpoint_without_base64_gets_requests_without_it(status: str, message: str, tmp_path: Path) -> None:
    refusal = Fault(status, message=message)
    with running_model_server(lambda request: refusal if "encoding_format" in request.body else None) as server:
        model = embedder(server.base_url, tmp_path)
        assert len(model.embed(["one"])) == 1 and len(model.embed(TEXTS[:4])) == 4
        assert [call.status for call in server.calls] == [int(status), 200, 200]


@pytest.mark.parametrize("message", ["Model does not support matryoshka representation", "dimensions: invalid", None])
def test_vectors_are_cut_where_the_endpoint_refuses_or_ignores_dimensions(
    message: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(request: ReceivedRequest) -> Fault | Reply:
        if message and "dimensions" in request.body:
            return Fault("400", message=message)
        return Reply(vectors=[embed(str(text), 32) for text in request.inputs])

    with running_model_server(answer) as server:
        vectors = embedder(server.base_url, tmp_path, dimensions=16).embed(TEXTS[:4])
        assert vectors.shape == (4, 16) and np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(4))
    assert "gives vectors of 32 numbers" in caplog.text


def test_a_smaller_size_than_the_kept_one_is_learnt_anew(tmp_path: Path) -> None:
    with running_model_server(taking(32), dimensions=8) as server:
        learning_embedder(server.base_url, tmp_path).embed(TEXTS)
        server.push((lambda request: len(request.inputs) > 4, Fault("400", message=VAGUE)))
        server.reset()
        learning_embedder(server.base_url, tmp_path).embed([f"again {text}" for text in TEXTS])
        assert n_refused(server) <= 12, "each request under way may be refused"
        server.reset()
        learning_embedder(server.base_url, tmp_path).embed([f"once more {text}" for text in TEXTS])
        assert n_refused(server) == 0


@pytest.mark.parametrize(
    ("status", "message"), [("413", "batch size 50 > maximum allowed batch size 32"), ("400", VAGUE)]
)
def test_a_reranker_learns_the_size_and_cuts_no_text_for_it(status: str, message: str, tmp_path: Path) -> None:
    def make() -> Reranker:
        database = open_anew(tmp_path)
        settings = RerankModelSettings(model="test-rerank", base_url=server.base_url, **QUICK)
        return Reranker(
            settings, ResponseCache(database), Spending(database, BudgetSettings()), known_batches(database)
        )

    texts = [f"{text} {'fog ' * 300}" for text in TEXTS[:50]]
    with running_model_server(taking(32, status, message)) as server:
        found = make().rerank("Who is Scrooge?", texts)
        assert None not in found.scores and found.n_cut == 0 and 1 <= n_refused(server) <= 3
        server.reset()
        assert None not in make().rerank("Where is Scrooge?", texts).scores
        assert n_refused(server) == 0


def test_the_first_refused_size_is_warned_of_with_its_reason_and_a_later_one_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running_model_server(max_batch_items=10, dimensions=8) as server:
        model = learning_embedder(server.base_url, tmp_path)
        model.embed(TEXTS)
        server.push((lambda request: len(request.inputs) > 4, Fault("400", message=VAGUE)))
        model.embed([f"again {text}" for text in TEXTS])
    [warning] = [record.getMessage() for record in caplog.records if record.name.endswith("endpoints.batches")]
    assert warning.startswith("test-embedding at 127.0.0.1 refuses 64 texts in one request (")
    assert "array too long" in warning and "`batch_size: 10`" in warning


def test_an_endpoint_that_fails_half_way_teaches_no_size() -> None:
    limit = BatchLimit("model", 4)

    async def send(items: Sequence[int], _n_attempts: int) -> list[int]:
        if len(items) > 2:
            raise RejectedError(Problem("no", 400), "key")
        if 3 in items:
            raise CallFailedError("no answer", "key")
        return list(items)

    outcomes = in_loop(send_batches(list(range(4)), limit, send))
    assert [outcome for outcome in outcomes if isinstance(outcome, int)] == [0, 1]
    assert limit.n_texts == 4
