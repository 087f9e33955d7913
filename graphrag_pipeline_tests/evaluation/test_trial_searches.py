"""A candidate is searched once by each method before it is published, without asking a model."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.regression_gate import try_searches
from graphrag_pipeline.filesystem.listed_folders import write_file_list
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.publishing.candidates import publish
from graphrag_pipeline_tests.support.corpora import small_index
from graphrag_pipeline_tests.support.damage import zero
from graphrag_pipeline_tests.support.roots import make_root

MODEL_SETTINGS = """
storage: {n_buckets: 1}
chat_model: {model: m, base_url: "http://127.0.0.1:9/v1"}
rerank_model: {model: m, base_url: "http://127.0.0.1:9/v1"}
embedding_model: {model: m, base_url: "http://127.0.0.1:9/v1"}
embeddings: {engine: model}
answers: {engine: model}
rating: {engine: model}
local_search: {rerank: true}
"""


@pytest.mark.parametrize("settings", ["", MODEL_SETTINGS])
def test_a_whole_candidate_is_published_and_no_model_is_asked(tmp_path: Path, settings: str) -> None:
    root = make_root(tmp_path, {}, settings)
    candidate = small_index.freeze(tmp_path)
    publish(root.snapshots, candidate.id, trial=partial(try_searches, root))
    assert root.snapshots.current() == candidate.id


def test_a_candidate_whose_full_text_index_was_built_wrong_is_not_published(tmp_path: Path) -> None:
    root = make_root(tmp_path, {})
    candidate = small_index.freeze(tmp_path)
    [folder] = (tmp_path / "snapshots" / "vectors" / "default-text_unit-text").iterdir()
    for path in folder.glob("*.lance/_indices/*/*"):
        zero(path)
    write_file_list(folder)  # the hashes are those of the wrong files
    with pytest.raises(PipelineError, match=r"not published, since a trial search by the method \w+ failed"):
        publish(root.snapshots, candidate.id, trial=partial(try_searches, root))
    assert root.snapshots.current() is None


def test_an_index_without_text_units_is_not_searched(tmp_path: Path) -> None:
    root = make_root(tmp_path, {})
    tables = {name: rows.slice(0, 0) for name, rows in small_index.contract_tables().items()}
    try_searches(Root(root.path), small_index.freeze(tmp_path, tables))
