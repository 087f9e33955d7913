"""Errors as readers of the API see them."""

from __future__ import annotations

import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.query.index_reader import EMPTY_INDEX
from graphrag_pipeline.serve.errors import error_of, for_reader
from graphrag_pipeline_tests.support.serving import RunningServer


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("rerank is true, but rerank_model.model is empty: set it in settings.yaml",
         "rerank is true, but rerank_model.model is empty"),
        ("snapshot 'x': no such id; run `graphrag-pipeline snapshots list` to see all ids", "snapshot 'x': no such id"),
        ("403 Forbidden. Check the key in the environment variable MY_KEY, and the address.", "403 Forbidden"),
        (EMPTY_INDEX, "The index has no documents"),
        ("run `graphrag-pipeline index`", "the server cannot answer this now"),
        ("by id: ask without filters, or run `graphrag-pipeline index` with `entity_key: id` again", "by id"),
        ("no document is called `../settings.yaml`", "no document is called `../settings.yaml`"),
    ],
)  # fmt: skip
def test_advice_to_the_operator_is_left_out(written: str, read: str) -> None:
    assert for_reader(PipelineError(written)) == read
    assert str(error_of(PipelineError(written))) == read


def test_no_error_of_the_api_names_a_command(server: RunningServer) -> None:
    for path in ("/documents/zzzz", "/reports/zzzz", "/communities/zzzz", "/entities/!!!", "/snapshots/zzzz",
                 "/entities?filter=nothing=1", "/text-units/zzzz", "/v1/models/zzzz"):  # fmt: skip
        answer = server.client.get(path)
        assert 400 <= answer.status_code < 500 and "graphrag-pipeline" not in answer.text, path
    body = {"question": "Who is Tim?", "options": {"rerank": True}}
    answer = server.client.post("/search", json=body)
    assert answer.status_code == 400 and "settings.yaml" not in answer.text
