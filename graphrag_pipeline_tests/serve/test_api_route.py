"""Keys with odd letters, and requests that schemathesis makes from the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pyarrow as pa
import pytest
import schemathesis
from fastapi.routing import APIRoute
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from graphrag_pipeline.serve.app import API_ROUTES
from graphrag_pipeline.settings.rendering import render_settings
from graphrag_pipeline_tests.support.corpora import small_index
from graphrag_pipeline_tests.support.serving import RunningServer, running_server

ODD = "/b c#d?e%2Ff%z\u00fc\u4e2d\"'+&=;."
_CHANGED = (("documents", "id"), ("text_units", "document_id"), ("documents", "path"), ("documents", "title"))


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server of an index whose documents have odd ids, paths and titles."""
    path = tmp_path_factory.mktemp("odd")
    (path / "settings.yaml").write_text(render_settings(), encoding="utf-8")
    tables = small_index.contract_tables()
    for name, column in _CHANGED:
        place = tables[name].schema.get_field_index(column)
        values = pa.array([f"part/{value}{ODD}" for value in tables[name][column].to_pylist()], pa.string())
        tables[name] = tables[name].set_column(place, tables[name].schema.field(column), values)
    small_index.SnapshotStore(path).point_at(small_index.freeze(path, tables).id)
    with running_server({"odd": path}) as server:
        yield server


@pytest.mark.parametrize("tail", ["", "/text", "/mentions"])
@pytest.mark.parametrize("key", ["id", "path", "title"])
def test_a_document_is_found_by_a_key_with_any_letter(odd: RunningServer, key: str, tail: str) -> None:
    documents = odd.client.get("/documents").json()["documents"]
    assert documents
    for one in documents:
        assert ODD in one[key]
        found = odd.client.get(f"/documents/{quote(one[key], safe='')}{tail}")
        assert found.status_code == 200, found.text
        if not tail:
            assert found.json()["document"]["id"] == one["id"]


@pytest.mark.parametrize(
    "path", ["/documents%2F0", "/%2Fdocuments/0", "/documents/0%2Ftext", "/static%2Fexplorer.js", "/documents/..%2F0"]
)
def test_an_encoded_slash_parts_nothing(odd: RunningServer, path: str) -> None:
    assert odd.client.get(path).status_code == 404


CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    unsupported_method,
]


@pytest.fixture(scope="module")
def document(server: RunningServer) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"{server.url}/openapi.json")


@pytest.mark.parametrize("route", API_ROUTES, ids=lambda route: route.unique_id)
def test_every_answer_is_as_described(document: schemathesis.BaseSchema, route: APIRoute) -> None:
    [method] = route.methods or ()
    operation = document[route.path][method]

    @given(case=operation.as_strategy())
    @settings(max_examples=8, phases=[Phase.generate], suppress_health_check=list(HealthCheck), deadline=None)
    def ask(case: schemathesis.Case) -> None:
        case.call_and_validate(checks=CHECKS)

    ask()
