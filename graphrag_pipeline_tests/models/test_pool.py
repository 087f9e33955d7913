"""Many calls from sync code: order, failures as data, early and sudden ends, nothing paid for twice."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models import pool as pool_module
from graphrag_pipeline.models.accounting import Caller, CallStats
from graphrag_pipeline.models.event_loop import start_in_loop
from graphrag_pipeline.models.pool import EarlyCheck, Work, complete_all, run_all
from graphrag_pipeline.models.ports import CallFailedError, ChatReply, Failure
from graphrag_pipeline.models.spending import BudgetExceededError
from graphrag_pipeline.settings.models import BudgetSettings
from graphrag_pipeline_tests.model_server import Fault, ModelServer, ReceivedRequest, Reply, running_model_server
from graphrag_pipeline_tests.support.models.model_clients import ask, chat_model
from graphrag_pipeline_tests.support.thoroughness import repetitions

KEY = "sk-secret-4f1b9c7e2d8a6053"
SHOW_MIX = {"429": 0.1, "500": 0.05, "drop": 0.05, "hang": 0.02, "garbage": 0.05, "truncated": 0.05, "fenced": 0.1,
            "refused": 0.02, "empty": 0.02}  # fmt: skip


def answer(request: ReceivedRequest) -> Reply:
    """The same fact for a question and for its corrected repetition."""
    question = request.conversation.messages[0][1].partition("\n")[0]
    return Reply(f"fact about {question}", prompt_tokens=20, completion_tokens=5)


def texts(results: Sequence[ChatReply[str] | Failure]) -> list[str]:
    return [result.value if isinstance(result, ChatReply) else result.reason for result in results]


def questions(n: int) -> list[Any]:
    return [ask(f"question {number}") for number in range(n)]


@pytest.fixture(autouse=True)
def _a_key_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def test_results_come_in_order_and_a_second_run_sends_nothing(tmp_path: Path) -> None:
    progress: list[tuple[int, int]] = []
    with running_model_server(answer) as server:
        chat = chat_model(server.base_url, tmp_path)
        first = complete_all(chat, questions(40), lambda done, total: progress.append((done, total)))
        second = complete_all(chat_model(server.base_url, tmp_path), questions(45))
    assert texts(first) == [f"fact about question {number}" for number in range(40)]
    assert texts(second)[:40] == texts(first)
    assert server.count() == 45
    assert progress[-1] == (40, 40)
    assert progress == sorted(progress)


def test_an_account_counts_records_that_needed_a_call_and_shows_requests_under_way(tmp_path: Path) -> None:
    account, under_way = CallStats(), 0

    def look(done: int, total: int) -> None:
        nonlocal under_way
        under_way = max(under_way, len(account.starts()))

    with running_model_server(answer) as server:
        complete_all(chat_model(server.base_url, tmp_path), questions(4))
        server.push(("question 5", "gossip"))  # corrected by a second call for the same record
        server.push(("question 6", Reply("fact about question 6", latency_s=1.2)))
        chat = chat_model(server.base_url, tmp_path).for_caller(Caller((account,)))
        complete_all(chat, questions(7), look)
    assert (account.n_records, account.n_calls, account.n_cached) == (3, 4, 4)
    assert under_way == 1 and account.limit and not account.under_way


def test_works_that_need_no_call_are_done_first_and_stay_in_their_place() -> None:
    begun: list[int] = []

    async def begin(number: int) -> int:
        begun.append(number)
        return number

    works = [Work(str(number), lambda number=number: begin(number), number % 2 == 1) for number in range(6)]
    assert run_all("summaries", works, 1) == [0, 1, 2, 3, 4, 5]
    assert begun == [1, 3, 5, 0, 2, 4]


def test_failures_are_data_and_only_they_are_tried_again(tmp_path: Path) -> None:
    with running_model_server(answer) as server:
        server.push(("question 3", Fault("refused")), ("question 5", "gossip"))
        results = complete_all(chat_model(server.base_url, tmp_path), questions(10))
        failures = [result for result in results if isinstance(result, Failure)]
        assert [(failure.stage, failure.record) for failure in failures] == [
            ("extraction", "question 3"),
            ("extraction", "question 5"),
        ]
        assert [results.index(failure) for failure in failures] == [3, 5]
        assert "refused" in failures[0].reason and failures[1].reply == "gossip"
        server.reset()
        server.push(("question", answer))
        assert not any(
            isinstance(one, Failure) for one in complete_all(chat_model(server.base_url, tmp_path), questions(10))
        )
        assert server.count() == 2


def test_no_more_at_once_than_allowed(tmp_path: Path) -> None:
    with running_model_server(answer, latency_s=0.01, n_together=3) as server:
        complete_all(chat_model(server.base_url, tmp_path, max_concurrency=3), questions(30))
        assert server.log.most_in_flight == 3


def test_the_budget_ends_the_run_and_keeps_paid_replies(tmp_path: Path) -> None:
    with running_model_server(answer) as server:
        budget = BudgetSettings(max_tokens=2000)
        with pytest.raises(BudgetExceededError, match="run continues where it stopped"):
            complete_all(chat_model(server.base_url, tmp_path, budget, parameters={"max_tokens": 50}), questions(500))
        n_paid = server.count()
        assert 60 <= n_paid <= 80  # 25 tokens each; the last ones need room for 50
        unlimited = chat_model(server.base_url, tmp_path, parameters={"max_tokens": 50})
        assert sum(reply is not None for reply in unlimited.recall(questions(500))) == n_paid


def test_a_run_with_empty_first_replies_is_stopped(tmp_path: Path) -> None:
    def check(first: Sequence[ChatReply[str] | Failure]) -> None:
        seen.append(len(first))
        if all("fact about" in text for text in texts(first)):
            raise PipelineError("the first 5 replies say nothing")

    seen: list[int] = []
    with running_model_server(answer, latency_s=0.01) as server:
        chat = chat_model(server.base_url, tmp_path, max_concurrency=2)
        with pytest.raises(PipelineError, match="first 5 replies say nothing"):
            complete_all(chat, questions(300), early_check=EarlyCheck(5, check))
        assert server.count() <= 10
        with pytest.raises(PipelineError, match="say nothing"):
            complete_all(chat_model(server.base_url, tmp_path / "b"), questions(3), early_check=EarlyCheck(5, check))
    assert seen == [5, 3]


def test_a_conversation_of_several_calls_is_one_work() -> None:
    async def talk(number: int) -> int:
        await asyncio.sleep(0)
        if number == 2:
            raise CallFailedError("no reply", "key")
        return number

    results = run_all("gleaning", [Work(f"unit {n}", lambda n=n: talk(n)) for n in range(4)], 2)
    assert results == [0, 1, Failure("gleaning", "unit 2", "no reply", "", "key"), 3]
    assert run_all("gleaning", [], 2) == []


def test_a_programming_error_is_not_hidden() -> None:
    async def fail() -> None:
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        run_all("stage", [Work("a", fail)], 1)


def test_waiting_for_the_loop_from_within_is_refused() -> None:
    async def inner() -> None:
        pass

    async def outer() -> None:
        start_in_loop(inner())

    with pytest.raises(RuntimeError, match="await the coroutine"):
        start_in_loop(outer()).result()


def test_an_interrupt_lets_running_calls_finish_and_then_stops(tmp_path: Path) -> None:
    interrupted = threading.Event()

    def interrupt(done: int, total: int) -> None:
        if done and not interrupted.is_set():
            interrupted.set()
            raise KeyboardInterrupt

    with running_model_server(answer, latency_s=0.2) as server:
        chat = chat_model(server.base_url, tmp_path, max_concurrency=2)
        with pytest.raises(KeyboardInterrupt):
            complete_all(chat, questions(100), interrupt)
        assert all(call.status == 200 for call in server.calls)
        assert sum(reply is not None for reply in chat.recall(questions(100))) == server.count() < 100


def test_a_call_that_does_not_end_is_left_after_the_grace_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "GRACE_S", 0.1)

    async def fail() -> None:
        raise PipelineError("the end")

    async def hang() -> None:
        await asyncio.Event().wait()

    with pytest.raises(PipelineError, match="the end"):
        run_all("stage", [Work("a", hang), Work("b", fail)], 2)


@pytest.fixture
def slow_server() -> Iterator[ModelServer]:
    with running_model_server(answer, latency_s=0.05, keep_keys=False) as server:
        yield server


def start_run(server: ModelServer, folder: Path, n_questions: int = 40) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "graphrag_pipeline_tests.support.models.faulty_run",
        server.base_url,
        str(folder),
        str(n_questions),
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ))


def lines_until(run: subprocess.Popen[str], n: int) -> list[str]:
    assert run.stdout is not None
    return [run.stdout.readline().strip() for _ in range(n)]


def test_kill_9_in_the_middle_and_no_validated_reply_is_paid_twice(tmp_path: Path, slow_server: ModelServer) -> None:
    answered: set[str] = set()
    for n in (5, 6, 7)[: repetitions(2, thorough=3)]:
        run = start_run(slow_server, tmp_path)
        answered |= set(lines_until(run, n))
        run.kill()
        answered |= set((run.communicate()[0] or "").split("\n")) - {""}
        known = chat_model(slow_server.base_url, tmp_path).recall(questions(40))
        stored = {f"question {number}" for number, reply in enumerate(known) if reply is not None}
        assert answered <= stored
        slow_server.reset()
        last = start_run(slow_server, tmp_path / "elsewhere")  # another root shares nothing
        last.kill()
        last.communicate()
        slow_server.reset()
    run = start_run(slow_server, tmp_path)
    output, _ = run.communicate(timeout=120)
    assert output.endswith("done\n")
    assert slow_server.count() == 40 - len(stored)
    assert slow_server.log.repeated_keys() == []


@pytest.mark.thorough
def test_sigterm_ends_a_run_with_its_paid_work_kept(tmp_path: Path, slow_server: ModelServer) -> None:
    n_questions = 4000  # far from done when the signal comes, also on a loaded machine
    run = start_run(slow_server, tmp_path, n_questions)
    lines_until(run, 5)
    run.send_signal(signal.SIGTERM)
    output, _ = run.communicate(timeout=300)
    assert run.returncode == 128 + signal.SIGTERM
    assert "done" not in output
    known = chat_model(slow_server.base_url, tmp_path).recall(questions(n_questions))
    n_answered = sum(call.status == 200 for call in slow_server.calls)
    assert sum(reply is not None for reply in known) == n_answered < n_questions


@pytest.mark.thorough
def test_a_mix_of_all_faults_leaves_replies_or_failures_and_only_failures_are_retried(tmp_path: Path) -> None:
    with running_model_server(answer, faults=SHOW_MIX, hang_s=1.0) as server:
        chat = chat_model(server.base_url, tmp_path, timeout_s=0.5)
        results = complete_all(chat, questions(250))
        failures = [result for result in results if isinstance(result, Failure)]
        assert len(failures) <= 25
        for number, result in enumerate(results):
            if isinstance(result, ChatReply):
                assert f"fact about question {number}" in result.text
            else:
                assert result.record == f"question {number}"
        asked_again = {failure.record for failure in failures}
        server.reset()
        complete_all(chat_model(server.base_url, tmp_path, timeout_s=0.5), questions(250))
        bodies = [call.body for call in server.calls if call.body is not None]
        assert {body["messages"][0]["content"].partition("\n")[0] for body in bodies} == asked_again


def test_the_key_is_in_no_file_log_error_or_repr(tmp_path: Path, slow_server: ModelServer) -> None:
    finished = start_run(slow_server, tmp_path)
    output, log = finished.communicate(timeout=120)
    assert output.endswith("done\n")
    said = [output, log]
    for fault in ("401", "500", "400", "refused", "garbage", "drop"):
        message = f"Incorrect API key provided: {KEY}, you sent Bearer {KEY}"
        slow_server.push(("question", Fault(fault, message=message)))
        chat = chat_model(slow_server.base_url, tmp_path / fault, max_attempts=2)
        try:
            said.append(repr(complete_all(chat, questions(2))))
        except PipelineError as error:
            said += [str(error), repr(error), repr(error.__cause__), repr(vars(error))]
            assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)
        said += [repr(chat), repr(vars(chat))]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "responses.sqlite" for path in files)
    assert "HTTP" in log  # the SDK's own log was on
    for secret in (KEY, KEY[:12], KEY[-12:]):
        assert not any(secret in text for text in said)
        assert not any(secret.encode() in path.read_bytes() for path in files)
