"""Calls of the embedding model, as they are reported and as a model server logged them; averaged vectors compared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from graphrag_pipeline.defs.assets.definitions import BODIES
from graphrag_pipeline.defs.assets.stage_run import StageRun
from graphrag_pipeline.indexing.aggregation_report import choose_comparisons
from graphrag_pipeline.inspection.embedding_figures import read_embedding_figures, render_embedding_figures
from graphrag_pipeline.inspection.estimates import estimate_index
from graphrag_pipeline.pipeline.detected_input import detect_input
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.pipeline.staleness import find_stale
from graphrag_pipeline_tests.model_server import ModelServer, running_model_server
from graphrag_pipeline_tests.support.corpora.paged_document import make_manual
from graphrag_pipeline_tests.support.models.model_clients import embedder
from graphrag_pipeline_tests.support.roots import CAROL, build_tables, make_root

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


def make(path: Path, url: str, n_compared: int = 0, limit: int = 450, n_buckets: int = 1) -> Root:
    rows = [row for seed in range(3) for row in make_manual(f"manual {seed}", seed=seed)]
    options = {"url": url, "n_compared": n_compared, "limit": limit, "n_buckets": n_buckets}
    files = {**CAROL, "chunks.jsonl": "\n".join(map(json.dumps, rows))}
    root = make_root(path, files, SETTINGS.format(**options))
    build_tables(root, DOCUMENT_STAGES)
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


def test_reported_calls_are_those_that_the_server_logged(tmp_path: Path, server: ModelServer) -> None:
    root = make(tmp_path, server.base_url)
    server.reset()
    run = embed(root)
    made = logged(server)
    figures = read_embedding_figures(root)
    shown = figures["aggregation"]
    assert made == (run.details["embedding inputs"], run.details["embedding requests"])
    assert made == (shown["inputs_after"], shown["requests_after"])

    documents = root.tables.read_head(root.tables.need("documents", "000")).to_pylist()
    units = root.tables.read_head(root.tables.need("text_units", "000")).to_pylist()
    whole = {document["id"] for document in documents if document["chunks"] is None}
    texts = [unit["text"] for unit in units if unit["document_id"] in whole]
    texts += [d["text"][c["start"] : c["end"]] for d in documents for c in d["chunks"] or ()]
    server.reset()
    embedder(server.base_url, tmp_path / "before", batch_max_tokens=450).embed(texts)
    assert logged(server) == (shown["inputs_before"], shown["requests_before"])
    assert shown["text_units_saved_percent"] > 70 and shown["inputs_saved_percent"] > 50
    assert figures["averaged_vectors"] is None


def test_averaged_vectors_are_compared_by_the_configured_model(tmp_path: Path, server: ModelServer) -> None:
    root = make(tmp_path, server.base_url, n_compared=3)
    stale = find_stale(root, detect_input(root))
    (estimate,) = (found for found in estimate_index(root, stale) if found.stage == "text_unit_embeddings")
    server.reset()
    run = embed(root)
    n_inputs, n_requests = logged(server)
    assert (estimate.n_calls, n_requests) == (run.details["embedding requests"] + 1, run.account.n_calls)
    assert n_requests == estimate.n_calls and n_inputs > run.details["embedding inputs"]
    assert root.models.spending.total()[1] == pytest.approx(run.account.cost) and run.account.cost > 0

    averaged = read_embedding_figures(root)["averaged_vectors"]
    assert averaged["n_compared"] == run.details["averaged vectors compared"] == 3
    assert averaged["mean_cosine"] == run.details["cosine of averaged vectors to the whole text's, mean"]
    assert averaged["least_cosine"] == round(min(cosines_of(root, server, tmp_path)), 4)
    lines = render_embedding_figures(read_embedding_figures(root), has_model=True)
    assert lines[-1].endswith("(3 texts cut on purpose)")


def test_the_estimate_counts_the_requests_of_every_bucket(tmp_path: Path, server: ModelServer) -> None:
    root = make(tmp_path, server.base_url, n_compared=2, n_buckets=3)
    stale = find_stale(root, detect_input(root))
    (estimate,) = (found for found in estimate_index(root, stale) if found.stage == "text_unit_embeddings")
    server.reset()
    build_tables(root, ("text_unit_embeddings",))
    assert logged(server)[1] == estimate.n_calls >= 3


def cosines_of(root: Root, server: ModelServer, path: Path) -> list[float]:
    """Compute the cosines again, from vectors that another client asks for."""
    units = root.tables.read_head(root.tables.need("text_units", "000"))["text"].to_pylist()
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
    assert logged(server) == (run.details["embedding inputs"], run.details["embedding requests"])
    assert "averaged vectors compared" not in run.details


def test_an_index_in_one_run_equals_the_rerun_of_its_sample(tmp_path: Path, server: ModelServer) -> None:
    root = make(tmp_path, server.base_url, n_compared=3)
    first = embed(root).details
    server.reset()
    assert embed(root).details == first
    assert not server.calls
