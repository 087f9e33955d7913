"""An embedding model behind a real HTTP endpoint: pieces, batches, the store, and faults of the endpoint."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import text_hash
from graphrag_pipeline.models.endpoints.replies import read_vectors
from graphrag_pipeline.models.ports import ReplyFormatError
from graphrag_pipeline_tests.model_server import Fault, ModelServer, ReceivedRequest, Reply, running_model_server
from graphrag_pipeline_tests.support.models.model_clients import embedder


def words(n_tokens: int) -> str:
    return "word" + " word" * (n_tokens - 1)


def inputs(server: ModelServer) -> list[list[str]]:
    return [call.body["input"] for call in server.calls if call.body is not None]


def test_vectors_come_in_order_with_length_one_and_are_kept(tmp_path: Path) -> None:
    texts = ["Scrooge", "Marley", "Scrooge", "  ", ""]
    with running_model_server(dimensions=32) as server:
        model = embedder(server.base_url, tmp_path)
        vectors = model.embed(texts)
        again = embedder(server.base_url, tmp_path)
        assert again.embed(texts).tolist() == vectors.tolist()
        assert again.dimensions == 32
    assert (vectors.shape, vectors.dtype) == ((5, 32), np.float32)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1, 0, 0], abs=1e-6)
    assert vectors[0].tolist() == vectors[2].tolist() != vectors[1].tolist()
    assert [sorted(texts) for texts in inputs(server)] == [["Marley", "Scrooge"]]


def test_each_piece_gets_its_prefix_and_questions_are_stored_apart(tmp_path: Path) -> None:
    prefixes = {"query_prefix": "query: ", "passage_prefix": "passage: "}
    with running_model_server(dimensions=16) as server:
        model = embedder(server.base_url, tmp_path, batch_max_tokens=450, **prefixes)
        text = model.embed(["Marley"])[0]
        question = model.for_questions.embed(["Marley"])[0]
        model.embed([words(900)])
        assert inputs(server)[:2] == [["passage: Marley"], ["query: Marley"]]
        assert [len(piece.split()) <= 450 for piece in inputs(server)[2]] == [True] * 3
        assert {piece[:13] for piece in inputs(server)[2]} <= {"passage: word", "passage:  wor"}
        server.reset()
        again = embedder(server.base_url, tmp_path, batch_max_tokens=450, **prefixes)
        assert again.embed(["Marley"])[0].tolist() == text.tolist()
        assert again.for_questions.embed(["Marley"])[0].tolist() == question.tolist()
        assert inputs(server) == []
    assert text.tolist() != question.tolist()


@pytest.mark.parametrize(("n_tokens", "n_pieces"), [(402, 1), (450, 1), (600, 2), (1200, 3)])
def test_a_long_text_is_sent_in_near_equal_pieces_and_averaged(tmp_path: Path, n_tokens: int, n_pieces: int) -> None:
    with running_model_server(dimensions=16) as server:
        model = embedder(server.base_url, tmp_path, batch_max_tokens=450)
        vector = model.embed([words(n_tokens)])[0]
        [pieces] = inputs(server)
        singles = model.embed(pieces)
    assert len(pieces) == n_pieces
    assert "".join(pieces) == words(n_tokens)
    assert {len(piece.split()) for piece in pieces} == {n_tokens // n_pieces}
    mean = singles.mean(axis=0)
    assert vector == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)


def test_equal_pieces_of_one_call_are_sent_once(tmp_path: Path) -> None:
    first, second = words(16), " " + words(16)
    with running_model_server(dimensions=32) as server:
        model = embedder(server.base_url, tmp_path, batch_max_tokens=16)
        cut, whole, twice = model.embed([first + second, first, second + second])
        assert inputs(server) == [[first, second, second]], "a text sends as many pieces as its length asks for"
        one, other = embedder(server.base_url, tmp_path / "apart", batch_max_tokens=16).embed([first, second])
    mean = np.average([one, other], axis=0, weights=[16, 16])
    assert whole.tolist() == one.tolist()
    assert cut == pytest.approx(mean / np.linalg.norm(mean), abs=1e-6)
    assert twice == pytest.approx(other, abs=1e-6)


def test_a_failed_piece_fails_every_text_that_has_it(tmp_path: Path) -> None:
    poison = " ".join(["poison"] * 16)

    def answer(request: ReceivedRequest) -> Fault | None:
        return Fault("400", message="this text is not allowed") if "poison" in request.prompt else None

    with running_model_server(answer) as server:
        model = embedder(server.base_url, tmp_path, batch_max_tokens=16)
        vectors, failures = model.try_embed([poison + " " + words(15), poison, "Scrooge"])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([0, 0, 1])
    assert len(failures) == 2


def test_batches_keep_both_limits_and_are_never_empty(tmp_path: Path) -> None:
    texts = [f"{number} {words(90)}" for number in range(50)]
    with running_model_server() as server:
        embedder(server.base_url, tmp_path, batch_size=8).embed(texts)
        by_items = [len(batch) for batch in inputs(server)]
        server.reset()
        embedder(server.base_url, tmp_path / "b", batch_size=40, batch_max_tokens_per_request=1000).embed(texts)
        by_tokens = [len(batch) for batch in inputs(server)]
        server.reset()
        assert embedder(server.base_url, tmp_path).embed([]).shape[0] == 0
    assert sum(by_items) == sum(by_tokens) == 50
    assert max(by_items) == 8
    assert 1 <= max(by_tokens) <= 10
    assert min(by_items + by_tokens) >= 1


def test_a_text_that_the_endpoint_finds_too_long_is_halved_alone(tmp_path: Path) -> None:
    texts = ["short", words(100), "also short"]
    with running_model_server(max_input_tokens=70, dimensions=8) as server:  # a quarter of 499 bytes: 125 by its count
        model = embedder(server.base_url, tmp_path, refused_texts="halve")
        vectors = model.embed(texts)
        halves = [batch for batch in inputs(server) if len(batch) == 2 and "".join(batch) == texts[1]]
        expected = model.embed(halves[0]).mean(axis=0)
    assert len(halves) == 1
    assert vectors[1] == pytest.approx(expected / np.linalg.norm(expected), abs=1e-5)
    assert np.linalg.norm(vectors[0]) == pytest.approx(1)


@pytest.mark.parametrize("dialect", ["openai", "llama.cpp"])
def test_a_text_that_the_endpoint_refuses_fails_and_names_the_settings(tmp_path: Path, dialect: str) -> None:
    with running_model_server(dialect=dialect, max_input_tokens=70, dimensions=8) as server:
        vectors, failures = embedder(server.base_url, tmp_path).try_embed(["short", words(100), "also short"])
        assert not [batch for batch in inputs(server) if "".join(batch) == words(100) and len(batch) > 1]
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 0, 1])
    [reason] = [failure.reason for failure in failures]
    assert "refuses a text of 100 tokens" in reason and "`embedding_model.batch_max_tokens` = 8000 allows" in reason


def test_servers_with_unequal_windows_never_share_a_fingerprint_of_unequal_vectors(tmp_path: Path) -> None:
    """A text of 100 tokens is whole at one server and halves at the other: a vector of halves has its own name."""
    texts, made = ["short", words(100)], {}
    for name, limit in (("wide", None), ("narrow", 70)):
        with running_model_server(max_input_tokens=limit, dimensions=8) as server:
            for refused in ("fail", "halve"):
                model = embedder(server.base_url, tmp_path / name / refused, refused_texts=refused)
                vectors, _ = model.try_embed(texts)
                made[name, refused] = model.fingerprint, vectors
    assert made["wide", "fail"][0] == made["narrow", "fail"][0]
    assert not made["narrow", "fail"][1][1].any(), "no vector, rather than another one"
    assert len({fingerprint for fingerprint, _ in made.values()}) == 3, "with halves, each server has its own"


def test_a_text_that_was_never_halved_keeps_its_vector_when_halving_is_set(tmp_path: Path) -> None:
    with running_model_server(max_input_tokens=70, dimensions=8) as server:
        embedder(server.base_url, tmp_path).try_embed(["short", words(100)])
        server.reset()
        embedder(server.base_url, tmp_path, refused_texts="halve").embed(["short", words(100)])
        assert all("short" not in batch for batch in inputs(server))


def test_a_question_is_halved_and_its_vector_is_not_kept_for_texts(tmp_path: Path) -> None:
    with running_model_server(max_input_tokens=70, dimensions=8) as server:
        model = embedder(server.base_url, tmp_path)
        assert np.linalg.norm(model.for_questions.embed([words(100)])[0]) == pytest.approx(1)
        assert len(model.try_embed([words(100)])[1]) == 1


@pytest.mark.parametrize("dialect", ["openai", "llama.cpp", "ollama", "tei"])
def test_any_words_and_status_of_too_long_halve_the_text_without_a_retry(tmp_path: Path, dialect: str) -> None:
    texts = ["short", words(600), "also short"]
    with running_model_server(dialect=dialect, max_input_tokens=512, dimensions=8) as server:
        model = embedder(server.base_url, tmp_path, refused_texts="halve")
        vectors = model.embed(texts)
        assert model.embed(texts).tolist() == vectors.tolist()
        assert [call.status == 200 for call in server.calls].count(False) == 2, "the batch and the text"
        n_tokens = sum(call.prompt_tokens for call in server.calls)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(3))
    assert (server.count(), model.stats.n_retries) == (5, 0)
    assert n_tokens < 1.2 * 600 * 5 / 4


@pytest.mark.parametrize(
    ("fault", "words_of_error"),
    [
        (
            Fault("501", message="This server does not support embeddings. Start it with `--embeddings`"),
            "Start it with",
        ),
        (Fault("404"), "does not exist"),
        (Fault("500", message="this model does not support embeddings"), "does not support"),
    ],
    ids=["501", "404", "unsupported"],
)
def test_a_server_without_embeddings_is_asked_once(tmp_path: Path, fault: Fault, words_of_error: str) -> None:
    with (
        running_model_server(lambda request: fault) as server,
        pytest.raises(PipelineError, match=words_of_error) as caught,
    ):
        embedder(server.base_url, tmp_path, batch_size=2, max_concurrency=1).embed([f"text {n}" for n in range(8)])
    assert server.count() == 1
    assert "`model`" in str(caught.value) or "base_url" in str(caught.value)


def test_a_failed_text_is_reported_and_the_others_are_kept(tmp_path: Path) -> None:
    def answer(request: ReceivedRequest) -> Fault | None:
        return Fault("400", message="this text is not allowed") if "poison" in request.prompt else None

    with running_model_server(answer) as server:
        model = embedder(server.base_url, tmp_path)
        vectors, failures = model.try_embed(["one", "poison", "two"])
        assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 0, 1])
        assert [failure.reason for failure in failures] == ["400: this text is not allowed"]
        server.reset()
        with pytest.raises(PipelineError, match="1 of 3 texts have no vector"):
            model.embed(["one", "poison", "two"])
        assert inputs(server) == [["poison"]]


def test_an_endpoint_that_sends_numbers_instead_of_base64_is_understood(tmp_path: Path) -> None:
    def answer(request: ReceivedRequest) -> Fault | None:
        if "encoding_format" in request.body:
            return Fault("400", message="Unrecognized request argument supplied: 'encoding_format'")
        return None

    with running_model_server(dimensions=16) as server:
        expected = embedder(server.base_url, tmp_path).embed(["one"])
    with running_model_server(answer, dimensions=16) as server:
        assert embedder(server.base_url, tmp_path / "b").embed(["one"]) == pytest.approx(expected, abs=1e-6)


def test_one_answer_of_the_wrong_length_is_requested_again(tmp_path: Path) -> None:
    with running_model_server(dimensions=16) as server:
        model = embedder(server.base_url, tmp_path)
        model.embed(["first"])
        server.push(("second", [Fault("wrong-dimension"), Reply(vectors=[[1.0] * 16])]))
        assert model.embed(["second"])[0] == pytest.approx([0.25] * 16)


def test_a_model_with_other_dimensions_than_the_stored_vectors_is_an_error(tmp_path: Path) -> None:
    with running_model_server(dimensions=16) as server:
        embedder(server.base_url, tmp_path).embed(["first"])
    with running_model_server(dimensions=24) as server:
        model = embedder(server.base_url, tmp_path)
        assert model.dimensions == 16
        with pytest.raises(PipelineError, match="gives vectors of 24 numbers where 16 are expected"):
            model.embed(["second"])


def test_a_vector_of_another_length_than_the_index_has_is_neither_stored_nor_taken(tmp_path: Path) -> None:
    with running_model_server(dimensions=24) as server:
        model = embedder(server.base_url, tmp_path).expecting(16)
        with pytest.raises(PipelineError, match="gives vectors of 24 numbers where 16 are expected"):
            model.embed(["first"])
        assert not model.read_stored({text_hash("first"): "first"})
        embedder(server.base_url, tmp_path).embed(["first"])  # stored by a reader that did not know the length
    with running_model_server(dimensions=16) as server:
        model = embedder(server.base_url, tmp_path).expecting(16)
        assert model.embed(["first"]).shape == (1, 16) and server.count() == 1
        assert model.embed(["first"]).shape == (1, 16) and server.count() == 1, "the wrong vector is replaced"


@pytest.mark.parametrize("value", ["bm90IGE=", "?", [], [math.inf], ["x"], None, [[1.0]], [1e300]])
def test_an_invalid_vector_is_not_an_answer(value: object) -> None:
    with pytest.raises(ReplyFormatError):
        read_vectors({"data": [{"index": 0, "embedding": value}]}, 1)


def test_the_fingerprint_covers_all_that_decides_a_vector(tmp_path: Path) -> None:
    base = embedder("http://127.0.0.1:1/v1", tmp_path)
    assert embedder("http://127.0.0.1:2/v1", tmp_path, batch_size=3).fingerprint == base.fingerprint
    different: list[dict[str, Any]] = [
        {"model": "other"}, {"dimensions": 8}, {"batch_max_tokens": 450}, {"parameters": {"a": 1}},
        {"tokenizer": "cl100k_base"}, {"token_margin": 0.12},
    ]  # fmt: skip
    for changed in different:
        assert embedder("http://127.0.0.1:1/v1", tmp_path, **changed).fingerprint != base.fingerprint


def test_faults_on_the_way_do_not_change_the_vectors(tmp_path: Path) -> None:
    texts = [f"text {number} {words(number * 12)}" for number in range(1, 60)]
    with running_model_server(dimensions=16) as server:
        expected = embedder(server.base_url, tmp_path, batch_max_tokens=450, batch_size=4).embed(texts)
    faults = {"429": 0.1, "500": 0.1, "drop": 0.1, "garbage": 0.1, "html": 0.05}
    with running_model_server(dimensions=16, faults=faults) as server:
        found = embedder(server.base_url, tmp_path / "b", batch_max_tokens=450, batch_size=4, max_attempts=12).embed(
            texts
        )
    assert found.tobytes() == expected.tobytes()
