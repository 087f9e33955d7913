"""Calls of the embedding model, as they are reported and as a model server logged them; averaged vectors compared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from graphrag_pipeline.cli import app
from graphrag_pipeline.defs.assets.definitions import BODIES
from graphrag_pipeline.defs.assets.stage_run import StageRun
from graphrag_pipeline.defs.runs.call_pool import call_ahead
from graphrag_pipeline.defs.runs.session import IndexSession
from graphrag_pipeline.identity import text_hash
from graphrag_pipeline.indexing.aggregation_report import choose_comparisons
from graphrag_pipeline.indexing.embeddings import embedded_unit_texts
from graphrag_pipeline.inspection.estimates import estimate_index
from graphrag_pipeline.inspection.index_state import read_embedding_figures, render_embedding_figures
from graphrag_pipeline.models.pieces import piece_limit, pieces_to_send
from graphrag_pipeline.pipeline.detected_input import detect_input
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, STAGES
from graphrag_pipeline.pipeline.staleness import find_stale
from graphrag_pipeline.settings.rendering import render_settings
from graphrag_pipeline_tests.model_server import ModelServer, running_model_server
from graphrag_pipeline_tests.support.corpora.paged_document import make_manual
from graphrag_pipeline_tests.support.models.model_clients import embedder
from graphrag_pipeline_tests.support.roots import CAROL, build_tables, built_root
from graphrag_pipeline_tests.support.thoroughness import repetitions, usually

SETTINGS = """storage:
  n_buckets: {n_buckets}
embeddings:
  engine: model
  n_compared: {n_compared}
embedding_model:
  model: test-embedding
  base_url: {url}
  batch_max_tokens: {limit}
  prompt_price: 1.0
"""
DOCUMENT_STAGES = ("corpus_manifest", "documents", "text_units")


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with running_model_server(dimensions=16) as server:
        yield server


def make(path: Path, url: str, n_compared: int = 0, limit: int = 450, n_buckets: int = 1, n_copies: int = 1) -> Root:
    seeds = [(seed, copy) for seed in range(3) for copy in range(n_copies)]
    rows = [row for seed, copy in seeds for row in make_manual(f"manual {seed} {copy}", seed=seed)]
    options = {"url": url, "n_compared": n_compared, "limit": limit, "n_buckets": n_buckets}
    files = {**CAROL, "chunks.jsonl": "\n".join(map(json.dumps, rows))}
    root = built_root(path, files, SETTINGS.format(**options), stages=DOCUMENT_STAGES)
    return root


def embed(root: Root) -> StageRun:
    run = StageRun(root, ALL_STAGES["text_unit_embeddings"], "000")
    run.pin_inputs()
    BODIES["text_unit_embeddings"](run)
    return run


def logged(server: ModelServer) -> tuple[int, int]:
    """Inputs and requests that the server received."""
    inputs = [call.body["input"] for call in server.calls if call.body is not None]
    return sum(map(len, inputs)), len(inputs)


def sent_texts(server: ModelServer) -> list[str]:
    return [text for call in server.calls if call.body is not None for text in call.body["input"]]


def test_reported_calls_are_those_that_the_server_logged(tmp_path: Path, server: ModelServer) -> None:
    root = make(tmp_path, server.base_url)
    server.reset()
    run = embed(root)
    made = logged(server)
    figures = read_embedding_figures(root)
    shown = figures["aggregation"]
    assert made == (run.details["distinct embedding inputs of this bucket"], run.account.n_calls)
    assert made == (shown["inputs_after"], shown["requests_after"])

    documents = root.tables.read_head(root.tables.need("documents", "000")).to_pylist()
    units = root.tables.read_head(root.tables.need("text_units", "000"))
    whole = {document["id"] for document in documents if document["chunks"] is None}
    of_units = zip(units["document_id"].to_pylist(), embedded_unit_texts(units), strict=True)
    texts = [text for document, text in of_units if document in whole]
    texts += [d["text"][c["start"] : c["end"]] for d in documents for c in d["chunks"] or ()]
    server.reset()
    embedder(server.base_url, tmp_path / "before", batch_max_tokens=450).embed(texts)
    assert logged(server) == (shown["inputs_before"], shown["requests_before"])
    assert shown["text_units_saved_percent"] > 70 and shown["inputs_saved_percent"] > 50
    assert figures["averaged_vectors"] is None


def test_a_text_unit_has_one_vector_however_often_it_was_split(tmp_path: Path, server: ModelServer) -> None:
    root = make(tmp_path, server.base_url)
    server.reset()
    embed(root)
    texts = set(embedded_unit_texts(root.tables.read("text_units", "000")))
    rows = root.tables.read("text_unit_embeddings", "000")
    assert sorted(rows["text_hash"].to_pylist()) == sorted(map(text_hash, texts))
    assert len(texts) < logged(server)[0] / 2, "most were split"
    assert {len(vector) for vector in rows["vector"].to_pylist()} == {16}


def test_averaged_vectors_are_compared_by_the_configured_model(tmp_path: Path, server: ModelServer) -> None:
    root = make(tmp_path, server.base_url, n_compared=3)
    stale = find_stale(root, detect_input(root))
    (estimate,) = (found for found in estimate_index(root, stale) if found.stage == "text_unit_embeddings")
    server.reset()
    run = embed(root)
    n_inputs, n_requests = logged(server)
    assert n_requests == estimate.n_calls == run.account.n_calls
    averaged = read_embedding_figures(root)["averaged_vectors"]
    assert n_inputs == run.details["distinct embedding inputs of this bucket"] + averaged["inputs"]
    assert averaged["inputs"] == run.details["further embedding inputs to compare them"]
    assert (n_inputs, n_requests) == (averaged["inputs_with_text_units"], averaged["requests_with_text_units"])
    assert n_inputs == len(set(sent_texts(server))), "the first piece of a cut text is paid once"
    assert root.models.spending.total()[1] == pytest.approx(run.account.cost) and run.account.cost > 0

    assert averaged["n_compared"] == run.details["averaged vectors compared"] == 3
    assert averaged["mean_cosine"] == run.details["cosine of averaged vectors to the whole text's, mean"]
    assert averaged["least_cosine"] == round(min(cosines_of(root, server, tmp_path)), 4)
    lines = render_embedding_figures(read_embedding_figures(root), has_model=True)
    assert lines[-1].endswith(f"with the text units {n_inputs} inputs in {n_requests} requests")


@pytest.mark.parametrize("n_compared", usually([0, 2], 2))
def test_calls_of_an_index_run_over_buckets_with_copies_are_those_reported(
    tmp_path: Path, server: ModelServer, n_compared: int
) -> None:
    root = make(tmp_path, server.base_url, n_compared=n_compared, n_buckets=4, n_copies=repetitions(2, thorough=3))
    (estimate,) = (
        found for found in estimate_index(root, find_stale(root, detect_input(root)))
        if found.stage == "text_unit_embeddings"
    )  # fmt: skip
    server.reset()
    buckets = STAGES["text_unit_embeddings"].partitions(root.settings)
    call_ahead(root, buckets, IndexSession())
    inputs, sent = sent_texts(server), logged(server)
    build_tables(root, ("text_unit_embeddings",))
    assert logged(server) == sent, "all calls are in the pool"
    assert sent[1] == estimate.n_calls
    assert len(set(inputs)) == len(inputs)
    figures = read_embedding_figures(root)
    shown, more = figures["aggregation"], figures["averaged_vectors"] or {"inputs": 0, "requests": 0}
    assert sent == (shown["inputs_after"] + more["inputs"], shown["requests_after"] + more["requests"])
    assert bool(more["inputs"]) == bool(n_compared)

    tables = [[root.tables.read(table, bucket) for bucket in buckets] for table in ("documents", "text_units")]
    assert sum(map(bool, (part.num_rows for part in tables[0]))) > 1
    documents, units = pa.concat_tables(tables[0]).to_pylist(), pa.concat_tables(tables[1])
    texts = {d["text"][c["start"] : c["end"]] for d in documents for c in d["chunks"] or ()}
    whole = {document["id"] for document in documents if document["chunks"] is None}
    of_units = zip(units["document_id"].to_pylist(), embedded_unit_texts(units), strict=True)
    texts |= {text for document, text in of_units if document in whole}
    pieces = [piece for text in texts for piece in pieces_to_send(text, piece_limit(root.settings.embedding_model))]
    assert shown["inputs_before"] == len(pieces)


def cosines_of(root: Root, server: ModelServer, path: Path) -> list[float]:
    """Compute the cosines again, from vectors that another client asks for."""
    units = embedded_unit_texts(root.tables.read_head(root.tables.need("text_units", "000")))
    model = embedder(server.base_url, path / "again")
    cosines = []
    for one in choose_comparisons(units, root.settings.embedding_model, 3):
        vectors = model.embed([one.whole, *(part.text for part in one.parts)])
        mean = np.average(vectors[1:], axis=0, weights=[part.n_tokens for part in one.parts])
        cosines.append(float(vectors[0] @ mean) / float(np.linalg.norm(mean)))
    return cosines


def test_nothing_is_paid_for_a_comparison_where_no_text_is_cut(tmp_path: Path, server: ModelServer) -> None:
    root = make(tmp_path, server.base_url, n_compared=3, limit=8000)
    server.reset()
    run = embed(root)
    assert logged(server) == (run.details["distinct embedding inputs of this bucket"], run.account.n_calls)
    assert "averaged vectors compared" not in run.details


def test_an_index_in_one_run_equals_the_rerun_of_its_sample(tmp_path: Path, server: ModelServer) -> None:
    root = make(tmp_path, server.base_url, n_compared=3)
    first = embed(root).details
    server.reset()
    assert embed(root).details == first
    assert not server.calls


def test_without_the_tokenizer_status_says_that_calls_are_not_counted(
    tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make(tmp_path, server.base_url)
    embed(root)
    model = root.settings.embedding_model.model_copy(update={"tokenizer": "p50k_base"})
    (root.path / "settings.yaml").write_text(
        render_settings(root.settings.model_copy(update={"embedding_model": model})), encoding="utf-8"
    )

    def refuse(name: str) -> None:
        raise OSError(f"no network for {name}")

    monkeypatch.setattr("tiktoken.get_encoding", refuse)
    shown = CliRunner().invoke(app, ["--root", str(root.path), "status"])
    assert shown.exit_code == 0, shown.output
    [line] = [line for line in shown.output.splitlines() if line.startswith("calls are not counted")]
    assert "embedding_model.tokenizer: tiktoken cannot load" in line and "text_units.encoding" not in shown.output
    values = json.loads(CliRunner().invoke(app, ["--root", str(root.path), "status", "--json"]).stdout)
    assert values["uncounted"] == line and values["stale"]


def test_a_saving_below_zero_is_called_more() -> None:
    aggregation = {
        "documents": 2, "chunks": 5, "text_units": 7, "text_units_saved_percent": -40.0, "inputs_before": 5,
        "inputs_after": 4, "inputs_saved_percent": 20.0, "requests_before": 1, "requests_after": 1,
    }  # fmt: skip
    lines = render_embedding_figures({"aggregation": aggregation, "averaged_vectors": None}, has_model=True)
    assert not any("refused" in line for line in lines)
    halving = render_embedding_figures({"aggregation": aggregation, "averaged_vectors": None}, True, is_halving=True)
    assert next(line for line in halving if line not in lines).startswith("calls for halves of refused texts")
    assert lines[0].endswith("are 7 text units (40 % more)")
    assert lines[1].endswith("4 in 1 after (20 % fewer inputs)")
