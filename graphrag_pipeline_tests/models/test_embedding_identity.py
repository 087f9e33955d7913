"""The fingerprint of vectors: what it holds, which snapshots it can search, and how a mismatch is explained."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
import yaml

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.embedding_identity import (
    earlier_fingerprint_of,
    earlier_fingerprints_of,
    fingerprint_of,
    identity_of,
    query_fingerprint_of,
)
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.settings.models import EmbeddingModelSettings
from graphrag_pipeline_tests.support.models.model_roots import ModelIndex


def test_limit_tokenizer_margin_and_averaging_are_in_the_identity() -> None:
    identity = identity_of(EmbeddingModelSettings(model="m", batch_max_tokens=450))
    assert identity["embedding_model.batch_max_tokens"] == 450
    assert identity["embedding_model.tokenizer"] == "o200k_base"
    assert identity["embedding_model.token_margin"] == 0.0
    assert identity["embedding_model.averaging"] == "by_tokens"


def test_a_tokenizer_counts_by_the_encoding_that_it_means() -> None:
    named = EmbeddingModelSettings(model="text-embedding-3-small", tokenizer="cl100k_base")
    own = EmbeddingModelSettings(model="text-embedding-3-small", tokenizer="model")
    assert fingerprint_of(named) == fingerprint_of(own)


def test_the_prefix_of_texts_is_in_the_identity_and_that_of_questions_is_not() -> None:
    plain = EmbeddingModelSettings(model="m")
    prefixed = EmbeddingModelSettings(model="m", passage_prefix="passage: ")
    asked = EmbeddingModelSettings(model="m", query_prefix="query: ")
    assert identity_of(prefixed)["embedding_model.passage_prefix"] == "passage: "
    assert len({fingerprint_of(plain), fingerprint_of(prefixed)}) == 2
    assert fingerprint_of(plain) == fingerprint_of(asked) == query_fingerprint_of(plain)
    assert query_fingerprint_of(asked) != fingerprint_of(asked)
    assert earlier_fingerprints_of(prefixed) == ()


def test_a_snapshot_of_release_0_1_can_be_searched(model_index: ModelIndex) -> None:
    root = model_index.root
    with contextlib.closing(root.snapshots.open()) as snapshot:
        earlier = earlier_fingerprint_of(root.settings.embedding_model)
        snapshot.manifest = replace(snapshot.manifest, embedding_fingerprint=earlier)
        assert GraphIndex(snapshot, root.settings, root.embedder, root).search("Who is Scrooge?", "basic").answer


def test_another_machine_with_another_margin_is_refused_and_told_the_difference(model_index: ModelIndex) -> None:
    path = model_index.root.path / "settings.yaml"
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    values["embedding_model"] |= {"token_margin": 0.2, "batch_max_tokens": 450}
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    other = Root(model_index.root.path)
    changes = r"embedding_model.batch_max_tokens 8000 -> 450, embedding_model.token_margin 0.0 -> 0.2; run `graphrag"
    with contextlib.closing(other.snapshots.open()) as snapshot, pytest.raises(PipelineError, match=changes):
        GraphIndex(snapshot, other.settings, other.embedder, other)
