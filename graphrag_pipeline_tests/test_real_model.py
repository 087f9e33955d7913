"""Behaviour with whatever model is at hand: the index ends, failures are rows, nothing is paid twice.

The test server stands in, in `make test-all`. `make test-real-model REAL_MODEL_URL=... REAL_MODEL=...` asks a real
endpoint, too; its key, if any, is in the variable that REAL_MODEL_KEY_ENV names. REAL_MODEL_PARAMETERS holds further
parameters as JSON, such as {"max_tokens": 300} for a model that is slow, and REAL_MODEL_DOCUMENTS the number of
documents, 1 to 3.
Nothing here judges how well a model writes. A stage of which it gave no usable reply is an expected failure (xfailed)
with the reasons; the test server must give all of them.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.models.prompts import default_prompts
from graphrag_pipeline.pipeline.root import Root, init_root
from graphrag_pipeline.settings.presets import ANY_LOCAL, is_loopback, settings_for_model
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline_tests.model_server import running_model_server
from graphrag_pipeline_tests.support.command_line import environment
from graphrag_pipeline_tests.support.models.recording_proxy import RecordingProxy, recording_proxy

pytestmark = [pytest.mark.timeout(7200)]

URL, MODEL = os.environ.get("REAL_MODEL_URL", ""), os.environ.get("REAL_MODEL", "")
KEY_ENV = os.environ.get("REAL_MODEL_KEY_ENV", "OPENAI_API_KEY")
PARAMETERS = json.loads(os.environ.get("REAL_MODEL_PARAMETERS") or "{}")
N_DOCUMENTS = int(os.environ.get("REAL_MODEL_DOCUMENTS") or 3)
N_BEFORE_KILL = 2
METHODS = ("local", "global", "drift", "basic")
_OPT_IN = pytest.mark.skipif(not URL, reason="REAL_MODEL_URL is not set (make test-real-model)")
LEAST_WORDS = 4  # of a text of a prompt that must not be published
MOST_WORDS_OF_NAME = 8  # of a name that ends with a full stop; a longer one is a sentence
TEXTS = {
    "harbour.txt": "Mayor Lund met Piet Maas in Brantwick. Piet Maas works for Nordwerk and sold the old ferry.",
    "office.txt": "Nordwerk opened an office in Brantwick in 1987. Mayor Lund spoke at the opening.",
    "bridge.txt": "The Osterwald Bridge connects Brantwick with Hallum. Greta Holm designed the bridge for Nordwerk.",
}
DOCUMENTS = dict(islice(TEXTS.items(), N_DOCUMENTS))


@dataclass
class Trial:
    """A model endpoint behind a recording proxy, the root that was indexed with it, and answers by method."""

    name: str
    model: str
    proxy: RecordingProxy
    root: Path
    seconds: float
    outcome: subprocess.CompletedProcess[str]
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)

    def ask(self, method: str) -> dict[str, Any]:
        """Return the answer of a method, asked once."""
        if method not in self.answers:
            n_before, started = len(self.proxy.exchanges), time.monotonic()
            asked = self.run("query", "Who met Mayor Lund?", "--method", method, "--json")
            assert asked.returncode == 0, asked.stderr
            self.answers[method] = json.loads(asked.stdout)
            n_calls, seconds = len(self.proxy.exchanges) - n_before, time.monotonic() - started
            print(f"\n{self.name}: {method} in {seconds:.0f} s, {n_calls} calls")
            print("  " + " ".join(self.answers[method]["answer"].split())[:400])
        return self.answers[method]

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a command on the root."""
        return command("--root", self.root, *arguments)


def command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command for as long as a slow model needs."""
    program = [sys.executable, "-m", "graphrag_pipeline", *map(str, arguments)]
    return subprocess.run(program, env=environment(), capture_output=True, encoding="utf-8", check=False)


def make_root(path: Path, proxy: RecordingProxy, model: str, is_local: bool) -> Path:
    """Make a root with a few short documents; a small model may fail at any share of them."""
    preset = ANY_LOCAL if is_local else None
    values = settings_for_model(model, None, proxy.base_url, KEY_ENV, preset=preset).model_dump(mode="json")
    values["publishing"] |= {"max_failed_share": 1.0}
    values["storage"] |= {"n_buckets": 2}
    values["reports"] |= {"min_report_size": 2}
    values["drift_search"] |= {"breadth": 2, "depth": 1}
    values["chat_model"]["parameters"] |= PARAMETERS if model == MODEL else {}
    init_root(path, Settings.model_validate(values))
    for name, text in DOCUMENTS.items():
        (path / "input" / name).write_text(f"{text}\n", encoding="utf-8")
    return path


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("test server", marks=pytest.mark.thorough),
        pytest.param("real", marks=[pytest.mark.real_model, _OPT_IN]),
    ],
)
def trial(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    """Index the documents once; tests read the root and ask further questions."""
    folder = tmp_path_factory.mktemp("trial")

    def index(proxy: RecordingProxy, model: str, is_local: bool) -> Trial:
        root = make_root(folder / "root", proxy, model, is_local)
        started = time.monotonic()
        outcome = command("--root", root, "index")
        return Trial(request.param, model, proxy, root, time.monotonic() - started, outcome)

    if request.param == "real":
        assert MODEL, "set REAL_MODEL to the name of the model"
        with recording_proxy(URL) as proxy:
            yield index(proxy, MODEL, is_loopback(URL))
    else:
        with running_model_server(n_slots=1) as server, recording_proxy(server.base_url) as proxy:
            yield index(proxy, "test-chat", True)


def query(trial: Trial, statement: str) -> list[dict[str, Any]]:
    """Return the rows of a statement."""
    found = trial.run("sql", statement, "--json")
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def test_the_index_ends_and_is_published(trial: Trial) -> None:
    assert trial.outcome.returncode == 0, trial.outcome.stderr
    assert "published snapshot" in trial.outcome.stdout
    prompt_tokens, reply_tokens = trial.proxy.tokens()
    print(f"\n{trial.name}: indexed in {trial.seconds:.0f} s, {len(trial.proxy.answered)} replies, "
          f"{len(trial.proxy.exchanges) - len(trial.proxy.answered)} requests without one, "
          f"{prompt_tokens:,} + {reply_tokens:,} tokens; {trial.outcome.stdout.splitlines()[0]}")  # fmt: skip


def test_each_failure_is_a_row_with_its_reason(trial: Trial) -> None:
    failures = query(trial, "select stage, record, reason from failures")
    assert all(row["stage"] and row["record"] and row["reason"] for row in failures)
    print(f"\n{trial.name}: {len(failures)} failures")
    for row in failures:
        print(f"  {row['stage']}: {row['reason'][:150]}")
    shown = json.loads(trial.run("status", "--json").stdout)["failures"]
    assert sorted(row["record"] for row in shown) == sorted(row["record"] for row in failures)


@pytest.mark.parametrize("stage", ["extracted_graph", "summarized_descriptions", "community_reports"])
def test_something_of_each_stage_is_the_models(trial: Trial, stage: str) -> None:
    came, requested = count_replies(Root(trial.root), stage)
    if not requested:
        pytest.skip(f"{stage}: nothing was requested of the model")
    reasons = Counter(row["reason"][:200] for row in query(trial, "select * from failures") if row["stage"] == stage)
    print(f"\n{trial.name}: {stage}: {came} of {requested} records by the model")
    if not came and trial.name == "real":
        pytest.xfail(f"{stage}: the model did none of {requested} records: {dict(reasons)}")
    assert came and came + reasons.total() >= requested


def count_replies(root: Root, stage: str) -> tuple[int, int]:
    """Return the records of a stage that a usable reply of the model made, and those that were requested."""
    if stage == "extracted_graph":
        units = root.snapshots.open().table("text_units")
        heads = (root.path / "heads" / "entity_mentions").glob("*.json")
        mentions = [row for head in heads for row in root.tables.read("entity_mentions", head.stem).to_pylist()]
        return len({row["text_unit_id"] for row in mentions if row["request_key"]}), units.num_rows
    if stage == "summarized_descriptions":
        rows = [row for row in root.tables.read("descriptions").to_pylist() if row["n_descriptions"] > 1]
    else:
        rows = [row for row in root.tables.read("community_reports").to_pylist() if not row["is_verbatim"]]
    return sum(not row["is_fallback"] for row in rows), len(rows)


def test_records_hold_no_marks_of_the_format_and_reports_say_a_finding_once(trial: Trial) -> None:
    for table in ("entities", "relationships"):
        found = [row["description"] for row in query(trial, f"select description from {table}")]
        assert not [text for text in found if "<|" in text or text.count('"') == 1]
    titles = [row["title"] for row in query(trial, "select title from entities")]
    assert not [title for title in titles if title.endswith(".") and len(title.split()) > MOST_WORDS_OF_NAME]
    reports = Root(trial.root).snapshots.open().table("community_reports").to_pylist()
    for report in reports:
        findings = [(finding["summary"], finding["explanation"]) for finding in report["findings"]]
        assert len(findings) == len(set(findings))


def examples_of_prompts() -> set[str]:
    """Return the quoted texts of `LEAST_WORDS` words or more in the bundled prompts, and names of examples, folded."""
    names = re.findall(r'\("entity"<\|>(\w+ \w[^<]*)<', default_prompts()["extract_graph.txt"])
    assert len(names) > 1
    quoted = (found for text in default_prompts().values() for found in re.findall(r'"([^"{}]+)"', text))
    found = {fold(text) for text in quoted if len(text.split()) >= LEAST_WORDS} | {fold(name) for name in names}
    assert len(found) > 10
    return found


def test_no_example_of_a_prompt_is_published(trial: Trial) -> None:
    published = [
        (table, fold(str(value)))
        for table, columns in {
            "entities": "title, description",
            "relationships": "description",
            "community_reports": "title, summary, full_content",
        }.items()
        for row in query(trial, f"select {columns} from {table}")
        for value in row.values()
    ]
    assert published
    examples = examples_of_prompts()
    found = [(table, example) for table, value in published for example in examples if example in value]
    assert found == []


@pytest.mark.parametrize("method", METHODS)
def test_no_example_of_a_prompt_is_in_an_answer(trial: Trial, method: str) -> None:
    answer = trial.ask(method)
    shown = answer["answer"]
    unread = answer["answering"]["unread"] or {"reasons": []}
    for reason in (answer["answering"]["failure"], *unread["reasons"]):  # it may quote the reply that was refused
        shown = shown.replace(reason, "") if reason else shown
    assert [example for example in examples_of_prompts() if example in fold(shown)] == []


def fold(text: str) -> str:
    """Return a text without case, line breaks and citations' brackets."""
    return " ".join(re.sub(r"\[[^\]]*\]", " ", text).casefold().split()).rstrip(".")


def test_nothing_is_asked_twice(trial: Trial) -> None:
    assert trial.proxy.repeated() == []
    n_before = len(trial.proxy.exchanges)
    failed = query(trial, "select count(*) as n from failures")[0]["n"]
    again = trial.run("index")
    assert again.returncode == 0, again.stderr
    if not failed:  # a failed record is requested once more, in other words
        assert len(trial.proxy.exchanges) == n_before
    assert trial.proxy.repeated() == []


@pytest.mark.parametrize("method", METHODS)
def test_an_answer_owns_up_to_its_sources(trial: Trial, method: str) -> None:
    answer = trial.ask(method)
    assert answer["answer"].strip()
    assert all(1 <= int(n) <= len(answer["citations"]) for n in re.findall(r"\[(\d+)\]", answer["answer"]))
    assert answer["answering"]["engine"] == "model" or answer["answering"]["failure"], "it says why the model is silent"


def test_a_question_that_is_asked_again_costs_nothing(trial: Trial) -> None:
    trial.ask("local")
    n_before = len(trial.proxy.exchanges)
    again = json.loads(trial.run("query", "Who met Mayor Lund?", "--method", "local", "--json").stdout)
    assert again["answer"] == trial.ask("local")["answer"] or trial.ask("local")["answering"]["failure"]
    if not trial.ask("local")["answering"]["failure"]:
        assert len(trial.proxy.exchanges) == n_before
    assert trial.proxy.repeated() == []


def test_a_killed_index_goes_on_without_paying_again(trial: Trial, tmp_path: Path) -> None:
    is_local = trial.name != "real" or is_loopback(URL)
    assert trial.proxy.repeated() == []
    n_before = len(trial.proxy.exchanges)
    other = make_root(tmp_path / "root", trial.proxy, trial.model, is_local)
    started = time.monotonic()
    for name, text in DOCUMENTS.items():  # other texts, so that no reply of the first index fits
        (other / "input" / name).write_text(f"In the spring, so people say: {text}\n", encoding="utf-8")
    program = [sys.executable, "-m", "graphrag_pipeline", "--root", str(other), "index"]
    process = subprocess.Popen(program, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and len(trial.proxy.exchanges) < n_before + N_BEFORE_KILL:
        time.sleep(0.02)
    assert process.poll() is None, "the run ended before it was killed"
    process.send_signal(signal.SIGKILL)
    process.wait()
    n_killed = len(trial.proxy.exchanges)
    resumed = command("--root", other, "index")
    assert resumed.returncode == 0, resumed.stderr
    n_resumed, seconds = len(trial.proxy.exchanges) - n_killed, time.monotonic() - started
    print(f"\n{trial.name}: killed after {n_killed - n_before} requests, resumed with {n_resumed} in {seconds:.0f} s; "
          f"{len(trial.proxy.exchanges)} requests in all, {trial.proxy.tokens()} tokens in and out")  # fmt: skip
    n_at_once = Root(other).settings.chat_model.max_concurrency
    assert len(trial.proxy.repeated()) <= n_at_once  # those that were under way when it was killed
