"""The ledger counts each paid call once: of concurrent, failed and killed processes too, and agrees with the budget."""

from __future__ import annotations

import asyncio
import logging
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.inspection.costs import StageEstimate, refuse_over_budget
from graphrag_pipeline.inspection.index_reports import LedgerReport, find_unpriced, render_ledger, report_ledger
from graphrag_pipeline.models.accounting import paid_run
from graphrag_pipeline.models.database import SharedDatabase
from graphrag_pipeline.models.spending import (
    BudgetExceededError,
    LedgerEntry,
    Price,
    Spending,
    describe_price,
    find_price,
    round_up,
)
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.settings.models import BudgetSettings
from graphrag_pipeline_tests.support.command_line import environment
from graphrag_pipeline_tests.support.roots import make_root

PAY = """
import sys, time
from pathlib import Path
from graphrag_pipeline.models.accounting import paid_run
from graphrag_pipeline.models.spending import LedgerEntry
from graphrag_pipeline.pipeline.root import Root
spending = Root(Path(sys.argv[1])).models.spending
with paid_run(sys.argv[2]):
    for _ in range(20):
        spending.settle("", 15, 0.5, LedgerEntry("graph", "m", 10, 5, 0.5)).result()
    print("paid", flush=True)
    time.sleep(60 if sys.argv[2] == "killed" else 0)
"""


def start(root: Path, command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PAY, str(root), command], env=environment(), stdout=subprocess.PIPE, text=True
    )


def test_processes_at_once_and_a_killed_one_lose_no_call(tmp_path: Path) -> None:
    root = make_root(tmp_path / "root", {}).path
    processes = [start(root, command) for command in ("index", "query", "killed")]
    assert [process.stdout.readline() for process in processes if process.stdout] == ["paid\n"] * 3
    assert {run.command: run.status for run in read(root).runs}["killed"] == "running"
    processes[2].send_signal(signal.SIGKILL)
    for process in processes:
        with process:
            process.wait(60)
    report = read(root)
    found = {run.command: (run.status, run.n_calls, run.cost) for run in report.runs}
    assert found == {"index": ("done", 20, 10.0), "query": ("done", 20, 10.0), "killed": ("killed", 20, 10.0)}
    assert (report.total.n_calls, report.spent_tokens) == (60, 60 * 15)
    header, *lines, total, spent = render_ledger(report)
    columns = "begun command status calls prompt tokens reply tokens USD run"
    assert header.split() == columns.split()
    assert [line.split()[-1] for line in lines] == [run.name for run in report.runs]
    assert len(lines) == 3 and total.split() == ["total", "60", "600", "300", "30.0000"]
    assert spent == "spent: 900 tokens, 30.0000 USD; no ceiling is set (`budget`)"


def read(root: Path) -> LedgerReport:
    return report_ledger(Root(root))


@pytest.mark.parametrize(
    ("error", "status"), [(None, "done"), (ValueError(), "failed"), (KeyboardInterrupt(), "interrupted")]
)
def test_a_run_has_the_status_of_its_end(tmp_path: Path, error: BaseException | None, status: str) -> None:
    root = make_root(tmp_path / "root", {})
    try:
        with paid_run("query", "local"), paid_run("inner"):
            root.models.spending.settle("", 3, 0.0, LedgerEntry("answers", "m", 2, 1, None)).result()
            if error:
                raise error
    except (ValueError, KeyboardInterrupt):
        pass
    [run] = report_ledger(root).runs
    assert (run.command, run.about, run.status, run.n_unpriced) == ("query", "local", status, 1)
    assert run.begun and run.ended
    assert all(line.endswith("not known") for line in render_ledger(report_ledger(root, "model"))[1:3])
    assert "no price is set for m, so the cost of its calls is not known" in "\n".join(
        render_ledger(report_ledger(root))
    )
    assert find_unpriced(root) == ("m",)


def test_a_root_without_models_has_no_database(tmp_path: Path) -> None:
    root = make_root(tmp_path / "root", {})
    assert render_ledger(report_ledger(root))[0] == "no model calls yet"
    assert not (root.path / "cache" / "responses.sqlite").exists()


def test_a_call_whose_process_was_killed_counts_as_paid(tmp_path: Path) -> None:
    database = SharedDatabase(tmp_path / "cache" / "responses.sqlite")
    spending = Spending(database, BudgetSettings(max_tokens=100))
    asyncio.run(spending.reserve(70, 0.0, timeout_s=-1.0))  # expired at once: its process is gone
    with pytest.raises(BudgetExceededError):
        asyncio.run(spending.reserve(70, 0.0, timeout_s=60.0))
    [row] = spending.read_ledger()
    assert (row["command"], row["prompt_tokens"], row["n_calls"]) == ("killed calls", 70, 0)
    assert spending.total()[0] == 70
    database.close()


def test_a_run_of_dagster_is_listed_with_its_whole_id(tmp_path: Path) -> None:
    root, run_id = make_root(tmp_path / "root", {}), "0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f"
    for command, about, run in (("query", f"dagster {run_id}", run_id), ("query", "local", "")):
        with paid_run(command, about, run):
            root.models.spending.settle("", 3, 0.5, LedgerEntry("answers", "m", 2, 1, 0.5)).result()
    _, dagster, command, *_ = render_ledger(report_ledger(root))
    assert "query dagster " in dagster and dagster.endswith(f"  {run_id}")
    assert "query local " in command and command.endswith(f"  {report_ledger(root).runs[1].name}")


def test_the_advised_budget_is_enough_for_the_most_that_a_run_may_need(tmp_path: Path) -> None:
    root = make_root(tmp_path / "root", {}, "budget: {max_tokens: 100, max_cost: 0.01}\n")
    estimate = StageEstimate("extracted_graph", 10, 0, 1000, 500, 0.05, least_calls=5, most_calls=40)
    with pytest.raises(BudgetExceededError) as caught:
        refuse_over_budget(root, [estimate])
    assert "needs 750 to 6,000 tokens, and 100 are left and 0.0250 to 0.2000 US dollars" in str(caught.value)
    assert "Raise budget.max_tokens to 6,600 and budget.max_cost to 0.22 or more" in str(caught.value)
    raised = make_root(tmp_path / "raised", {}, "budget: {max_tokens: 6600, max_cost: 0.22}\n")
    refuse_over_budget(raised, [estimate])


@given(st.floats(1e-6, 1e9))
def test_a_rounded_limit_is_never_below_the_amount_and_at_most_a_tenth_above(value: float) -> None:
    assert value * (1 - 1e-9) <= round_up(value) <= value * 1.1 + 1e-9


@pytest.mark.parametrize("url", ["https://api.openai.com/v1", "https://mine.openai.azure.com", "http://127.0.0.1:1/v1"])
def test_a_known_model_has_its_price_at_its_provider_and_behind_an_unknown_address(url: str) -> None:
    price = find_price("gpt-4o-mini", url)
    assert price is not None
    assert price.cost(1_000_000, 1_000_000) == pytest.approx(0.15 + 0.60)
    embedding = find_price("text-embedding-3-small", url)
    assert embedding is not None
    assert embedding.cost(1_000_000, 0) == pytest.approx(0.02)


def test_settings_come_before_the_list() -> None:
    price = find_price("gpt-4o-mini", "https://api.openai.com/v1", 2.0, 4.0)
    assert price is not None
    assert price.cost(500_000, 250_000) == pytest.approx(2.0)
    free = find_price("llama3.2", "http://localhost:11434/v1", 0.0)
    assert free is not None
    assert free.cost(10, 10) == 0.0


def test_a_model_of_this_machine_costs_nothing_only_without_a_listed_price(caplog: pytest.LogCaptureFixture) -> None:
    url = "http://127.0.0.1:4000/v1"
    with caplog.at_level(logging.WARNING):
        assert find_price("my-own-model", url) == Price("my-own-model")
    assert not caplog.records
    assert describe_price("my-own-model", url) == "nothing (on this machine, in no price list)"
    assert describe_price("gpt-4o-mini", url) == "0.15 and 0.6 USD per million tokens in and out (price list)"
    assert describe_price("gpt-4o-mini", url, 0.0, 0.0) == "nothing (settings)"
    assert describe_price("my-own-model", "http://models.example/v1") == "not known"


def test_an_unknown_model_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert find_price("never-heard-of", "http://models.example/v1") is None
        assert find_price("never-heard-of", "http://models.example/v1") is None
    assert len([record for record in caplog.records if "never-heard-of" in record.message]) == 1
