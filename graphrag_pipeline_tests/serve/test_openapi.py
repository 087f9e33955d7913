"""Requests that schemathesis makes from the OpenAPI document: no 5xx, and every answer is as described."""

from __future__ import annotations

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
from graphrag_pipeline_tests.support.serving import RunningServer

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
