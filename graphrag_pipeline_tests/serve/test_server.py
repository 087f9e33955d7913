"""The server itself: health, roots, paths, hosts, metrics, limits."""

from __future__ import annotations

import re
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from graphrag_pipeline.pipeline.live_status import LiveStatus, keeping_up, write_live_status
from graphrag_pipeline.serve.limits import ServerLimits
from graphrag_pipeline_tests.support.command_line import Call, environment, program, started
from graphrag_pipeline_tests.support.roots import make_root
from graphrag_pipeline_tests.support.serving import RunningServer, running_server


def test_health_readiness_and_roots(server: RunningServer) -> None:
    assert server.client.get("/health").json() == {"status": "ok"}
    assert server.client.get("/ready").json() == {"status": "ok"}
    [root] = server.client.get("/roots").json()["roots"]
    assert root == {"name": "carol", "snapshot": server.served.root("carol").snapshot, "is_ready": True}


def test_nothing_keeps_a_root_up_to_date_without_up(served_root: Path, server: RunningServer) -> None:
    nothing = {"state": "", "message": "", "n_done": 0, "n_total": 0}
    write_live_status(served_root, LiveStatus("indexing", "left by a process that was killed"))
    assert server.client.get("/live").json() == nothing
    with keeping_up(served_root):
        write_live_status(served_root, LiveStatus("indexing", "3 files changed", 2, 15))
        told = {"state": "indexing", "message": "3 files changed", "n_done": 2, "n_total": 15}
        assert server.client.get("/live?root=carol").json() == told
    assert server.client.get("/live?root=other").json() == server.client.get("/live").json() == nothing


def test_unknown_paths_methods_and_parameters(server: RunningServer) -> None:
    for method, path, status in (
        ("GET", "/nothing", 404),
        ("GET", "/search", 405),
        ("DELETE", "/roots", 405),
        ("GET", "/roots?colour=red", 400),
        ("GET", "/roots?%ff=1", 400),
        ("GET", "/roots?%zz=1", 400),
        ("GET", "/entities?search=50%", 400),
        ("GET", "/entities?limit=1_0", 400),
        ("GET", "/entities?limit=%D9%A3", 400),
        ("GET", "/entities?limit=%203", 400),
        ("GET", "/entities?limit=3.0", 400),
        ("GET", "/entities/%D9%A1", 404),
        ("GET", "/relationships/%D9%A1", 404),
        ("GET", f"/roots?{'a' * 9000}=1", 414),
    ):
        answer = server.client.request(method, path)
        assert (answer.status_code, answer.json()["error"]["status"]) == (status, status), path


def test_head_is_answered_like_get_without_a_body(server: RunningServer) -> None:
    for path in ("/health", "/entities?limit=1", "/"):
        answer = server.client.head(path)
        assert (answer.status_code, answer.content) == (200, b""), path
    assert server.client.head("/search").status_code == 405


def test_a_repeated_key_of_a_body_is_refused(server: RunningServer) -> None:
    for body in (
        '{"question": "Who is Belle?", "question": "Who is Tim?"}',
        '{"question": "Who is Belle?", "options": {"top_k_entities": 1, "top_k_entities": 2}}',
        '{"question": "Who is Belle?", "history": [{"role": "user", "role": "user", "content": "x"}]}',
    ):
        answer = server.client.post("/search", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 400 and "twice" in answer.json()["error"]["message"], body
    said = '{"model": "carol:basic", "messages": [{"role": "user", "content": "Who?"}], "model": "carol:local"}'
    answer = server.client.post("/v1/chat/completions", content=said, headers={"content-type": "application/json"})
    assert answer.status_code == 400 and "twice" in answer.json()["error"]["message"]


def test_numbers_of_a_body_are_numbers(server: RunningServer) -> None:
    for n in ("3", "1_0", "\u0663", 2.5, True):
        assert server.client.post("/follow-ups", json={"n": n}).status_code == 400, n


def test_another_host_is_refused(server: RunningServer) -> None:
    assert server.client.get("/roots", headers={"host": "evil.example"}).status_code == 421
    assert server.client.get("/roots", headers={"host": f"localhost:{server.port}"}).status_code == 200


def test_metrics_count_requests_and_hold_no_text(server: RunningServer) -> None:
    server.client.post("/search", json={"question": "Who is Fezziwig?", "context_only": True})
    text = server.client.get("/metrics").raise_for_status().text
    assert 'graphrag_http_requests_total{method="POST",route="/search",status="200"}' in text
    assert "Fezziwig" not in text and 'graphrag_leases{root="carol"}' in text


def test_a_root_without_an_index_is_not_ready(served_root: Path, tmp_path: Path) -> None:
    empty = make_root(tmp_path / "empty")
    with running_server({"carol": served_root, "empty": empty.path}) as server:
        assert server.client.get("/ready").status_code == 503
        answer = server.client.post("/search?root=empty", json={"question": "Who?"})
        assert answer.status_code == 503 and int(answer.headers["retry-after"]) > 0
        assert server.client.post("/search", json={"question": "Who?"}).status_code == 400  # which of two roots?
        assert server.client.post("/search?root=none", json={"question": "Who?"}).status_code == 404
        answer = server.client.post("/search?root=carol", json={"question": "Who is Belle?", "context_only": True})
        assert answer.json()["root"] == "carol"


def test_the_openapi_document_describes_every_route(server: RunningServer) -> None:
    document = server.client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert {"/search", "/search/stream", "/explain", "/roots"} <= set(document["paths"])


def test_requests_that_take_turns_get_the_same_answers(server: RunningServer, served_root: Path) -> None:
    asked = [f"Who is {name}?" for name in ("Belle", "Fred", "Jacob Marley", "Tiny Tim", "Scrooge", "Mr. Fezziwig")]
    bodies = [{"question": question, "context_only": True} for question in asked]
    expected = [server.client.post("/search?root=carol", json=body).json()["context"] for body in bodies]
    limits = ServerLimits(max_running=4, takes_turns=True)
    with running_server({"carol": served_root}, limits=limits) as other, ThreadPoolExecutor(6) as clients:
        sent = [clients.submit(httpx.post, f"{other.url}/search", json=body, timeout=60) for body in bodies]
        assert [one.result().json()["context"] for one in sent] == expected


def test_a_full_queue_answers_429(served_root: Path) -> None:
    limits = ServerLimits(max_running=1, max_waiting=1)
    body = {"question": "Who is Belle?", "method": "drift"}
    with running_server({"carol": served_root}, limits=limits) as server, ThreadPoolExecutor(12) as clients:
        sent = [clients.submit(httpx.post, f"{server.url}/search", json=body, timeout=60) for _ in range(12)]
        answers = [one.result() for one in sent]
        assert {answer.status_code for answer in answers} == {200, 429}
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert int(refused.headers["retry-after"]) >= 1 and refused.json()["error"]["code"] == "busy"
        assert httpx.post(f"{server.url}/search", json=body).status_code == 200  # places are given back


def test_time_is_limited(served_root: Path) -> None:
    with running_server({"carol": served_root}, limits=ServerLimits(timeout_s=0.0001)) as server:
        answer = server.client.post("/search", json={"question": "Who is Belle?"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (504, "timeout")
        assert httpx.get(f"{server.url}/health").status_code == 200


def test_an_address_of_other_machines_needs_access_rules(call: Call, served_root: Path) -> None:
    outcome = call("--root", served_root, "serve", "--host", "0.0.0.0")
    assert outcome.status == 1 and "access rules" in outcome.err


def requests_under_way(metrics: str) -> int:
    """The number of requests that the server computes or has in its queue, of its metrics in Prometheus' format."""
    values = re.findall(r"^graphrag_requests_(?:running|waiting) (\S+)$", metrics, re.MULTILINE)
    assert len(values) == 2
    return round(sum(map(float, values)))


def test_a_stopped_server_ends_the_requests_under_way(served_root: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = program("--root", served_root, "serve", "--port", str(port))
    with started(command, env=environment(), stderr=subprocess.PIPE) as process:
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 60
        while True:
            try:
                if httpx.get(f"{url}/ready").status_code == 200:
                    break
            except httpx.TransportError:
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.1)
        with ThreadPoolExecutor(4) as clients:
            body = {"question": "Who is Bob Cratchit?", "method": "drift"}
            sent = [clients.submit(httpx.post, f"{url}/search", json=body, timeout=60) for _ in range(4)]
            arrived = 0  # a connection that no process has accepted yet is reset by the kernel: all must have arrived
            while arrived < len(sent):
                arrived = sum(one.done() for one in sent)
                arrived += requests_under_way(httpx.get(f"{url}/metrics").text)
            process.terminate()
            statuses = [one.result().status_code for one in sent]
        assert process.wait(60) == 0
        assert statuses == [200] * len(sent)
