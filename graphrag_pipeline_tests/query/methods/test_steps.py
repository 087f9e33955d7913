"""Global search by a model: what the one answer is written from."""

from __future__ import annotations

import json
import re
from pathlib import Path

from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline_tests.model_server import ReceivedRequest, running_model_server
from graphrag_pipeline_tests.support.models.model_index import open_with_model


def test_the_points_of_all_batches_and_nothing_else_are_the_context_of_the_answer(
    small: GraphIndex, tmp_path: Path
) -> None:
    requests: list[ReceivedRequest] = []

    def reply(request: ReceivedRequest) -> str:
        requests.append(request)
        if request.kind == "answer":
            return "All of it."
        number = read_number(request)
        scores = {"low": 10 + number, "high": 90 - number, "none": 0}
        points = ({"description": point_of(name, number), "score": score} for name, score in scores.items())
        return json.dumps({"points": list(points)})

    with running_model_server(reply) as server:
        options = {"selection": "static", "max_context_tokens": 100}  # several batches
        open_with_model(small, tmp_path, server, global_search=options).search("What happens?", method="global")
    *mapped, answer = requests
    numbers = sorted(map(read_number, mapped))
    assert len(numbers) > 1 and {request.kind for request in mapped} == {"map"} and answer.kind == "answer"
    given = answer.prompt.partition("<data>\n")[2].partition("</data>")[0]
    written = [line for line in given.splitlines() if line and not line.startswith(("----Analyst", "Importance Score"))]
    assert written == [*(point_of("high", n) for n in numbers), *(point_of("low", n) for n in reversed(numbers))]


def point_of(name: str, number: int) -> str:
    return f"Point {name} of report {number} [Data: Reports ({number})]."


def read_number(request: ReceivedRequest) -> int:
    """Return the number of the first report of a batch."""
    found = re.search(r"^\[(\d+)\]", request.prompt, re.MULTILINE)
    assert found, request.kind
    return int(found[1])
