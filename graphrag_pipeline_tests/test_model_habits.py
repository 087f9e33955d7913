"""An index and questions under each habit of a small or slow endpoint, over real HTTP, and what is promised of it.

In every case the run ends, each failure is a row with a reason that names the cause, nothing of a prompt is published
or answered, no request is sent twice, and a question gets an answer.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.prompts import default_prompts
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline_tests.model_server import Call, Fault, ReceivedRequest, running_model_server
from graphrag_pipeline_tests.model_server.scripts import Script
from graphrag_pipeline_tests.model_server.server import ModelServer
from graphrag_pipeline_tests.support.models.model_roots import KEY, KEY_VARIABLE, make_model_root
from graphrag_pipeline_tests.support.roots import build_tables, put
from graphrag_pipeline_tests.support.thoroughness import usually

DOCUMENTS = {
    "harbour.txt": "Mayor Lund met Piet Maas in Brantwick. Piet Maas works for Nordwerk and sold the old ferry to "
    "Brantwick. Mayor Lund thanked Nordwerk.",
    "office.txt": "Nordwerk opened an office in Brantwick in 1987. Mayor Lund spoke at the opening and praised "
    "Nordwerk. Piet Maas runs the office of Nordwerk.",
}
QUESTION = "Who met Mayor Lund?"
NAMES = {"MAYOR LUND", "PIET MAAS", "BRANTWICK", "NORDWERK"}


@dataclass
class Trial:
    """What came of an index and two questions, one of them streamed, one by another method."""

    root: Root
    server: ModelServer
    n_index_calls: int
    failures: list[dict[str, Any]]
    answers: dict[str, Any] = field(default_factory=dict)

    @property
    def reasons(self) -> dict[str, str]:
        """One reason of each stage that has failures."""
        return {row["stage"]: row["reason"] for row in self.failures}

    def rows(self, table: str) -> list[dict[str, Any]]:
        return self.root.snapshots.open().table(table).to_pylist()

    def count(self, *kinds: str) -> int:
        return sum(self.server.count(kind) for kind in kinds)


@contextmanager
def indexed(path: Path, script: Script | None, server: Mapping[str, Any], is_failing: bool) -> Iterator[Trial]:
    """Index two documents by a model with a habit, and ask questions."""
    with running_model_server(script, **server) as running:
        options = {"timeout_s": 20}
        root = make_model_root(
            path,
            running.base_url,
            0,
            publishing={"max_failed_share": 1.0},
            chat_model=options,
            embedding_model={**options, "refused_texts": "halve"},
            reports={"min_report_size": 2},
        )
        for name, text in DOCUMENTS.items():
            put(root.path, name, text)
        if is_failing:
            run_index(root)
        else:  # the same stages, without the time that Dagster takes
            build_tables(root, tuple(ALL_STAGES))
        trial = Trial(root, running, len(running.calls), [])
        trial.failures = trial.rows("failures")
        with GraphIndex.open(path) as index:
            pieces: list[str] = []
            trial.answers["streamed"] = index.search(QUESTION, "local", on_token=pieces.append)
            trial.answers["global"] = index.search(QUESTION, "global")
            assert "".join(pieces).endswith(trial.answers["streamed"].answer)
        yield trial


def everywhere(fault: str) -> dict[str, Any]:
    return {"faults": {fault: 1.0}}


def but_extraction(fault: str) -> Callable[[ReceivedRequest], Fault | None]:
    """Return a script by which extraction alone has no habit, so that there is something to describe and report."""
    return lambda request: None if request.kind in ("extraction", "gleaning", "embedding") else Fault(fault)


def is_whole(trial: Trial) -> None:
    assert not trial.failures and {row["title"] for row in trial.rows("entities")} == NAMES
    assert trial.answers["streamed"].answering["engine"] == "model"


def waits_in_the_queue(trial: Trial) -> None:
    is_whole(trial)
    assert trial.server.log.most_in_flight <= 4, "it began low, and did not grow by the queue"


def is_cut_and_says_so(trial: Trial) -> None:
    assert not trial.failures and {row["title"] for row in trial.rows("entities")} == NAMES
    for row in trial.rows("entities"):
        sentences = [sentence.strip(" .") for sentence in row["description"].split(". ")]
        assert len(sentences) == len(set(sentences)), "a loop is said once"
    assert "cut off" in trial.answers["streamed"].answer
    assert trial.count("gleaning") == 0, "a loop is not asked what it missed"


def keeps_what_is_whole(trial: Trial) -> None:
    assert {row["title"] for row in trial.rows("entities")} <= NAMES and trial.rows("entities")
    assert all("cut off" in row["reason"] for row in trial.failures)
    assert "cut off" in trial.answers["streamed"].answer


def publishes_no_copy(trial: Trial) -> None:
    assert set(trial.reasons) == {"summarized_descriptions", "community_reports"}
    assert all("prompt" in reason for reason in trial.reasons.values())
    assert {row["title"] for row in trial.rows("entities")} == NAMES
    assert "repeats the prompt" in trial.answers["streamed"].answering["failure"]


def publishes_no_passage(trial: Trial) -> None:
    assert set(trial.reasons) <= {"summarized_descriptions", "community_reports"}
    assert {row["title"] for row in trial.rows("entities")} == NAMES
    assert trial.answers["streamed"].citations and trial.answers["global"].citations, "the embedded engine cites"


def fits_the_window(trial: Trial) -> None:
    is_whole(trial)
    refused = [call for call in trial.server.calls if call.status == 400]
    assert len(refused) <= 4, "the window is learnt from the first refusals"


def halves_long_texts(trial: Trial) -> None:
    is_whole(trial)
    assert {call.status for call in trial.server.calls if call.kind == "embedding"} == {200, 500}
    assert trial.root.snapshots.open().n_rows("text_units") == 2


def sends_one_text_at_a_time(trial: Trial) -> None:
    is_whole(trial)
    assert len(refused_batches(trial)) <= 4, "the size is learnt once for the whole index"
    trial.server.reset()
    put(trial.root.path, "ferry.txt", "The ferry Alma was built by Nordwerk. Mayor Lund sold it to Piet Maas.")
    build_tables(Root(trial.root.path), tuple(ALL_STAGES))
    assert trial.count("embedding") > 0 and not refused_batches(trial), "the next index knows it"


def refused_batches(trial: Trial) -> list[Call]:
    return [call for call in trial.server.calls if call.kind == "embedding" and call.status == 400]


def counts_without_usage(trial: Trial) -> None:
    is_whole(trial)
    assert trial.answers["streamed"].usage.to_dict()["by_model"]["test-chat"]["input_tokens"] > 0


def reads_open_citations(trial: Trial) -> None:
    is_whole(trial)
    assert not [result.answer for result in trial.answers.values() if "[Data" in result.answer]
    assert trial.answers["streamed"].citations and not trial.answers["streamed"].answering["invented_citations"]


@dataclass(frozen=True)
class Habit:
    """A habit of an endpoint: options of the test server, a script, what is promised, and whether stages fail."""

    name: str
    promise: Callable[[Trial], None]
    server: Mapping[str, Any] = field(default_factory=dict)
    script: Script | None = None
    is_failing: bool = False


HABITS = [
    Habit("one slot", waits_in_the_queue, {"n_slots": 1, "latency_s": 0.1}),
    Habit("tokens a second", is_whole, {"n_slots": 1, "tokens_per_s": 1500.0}),
    Habit("endless list", is_cut_and_says_so, everywhere("endless-list")),
    Habit("echoed placeholder", publishes_no_copy, script=but_extraction("echoed-placeholder"), is_failing=True),
    Habit("echoed passage", publishes_no_passage, script=but_extraction("echoed-passage"), is_failing=True),
    Habit("missing brackets", reads_open_citations, everywhere("missing-brackets")),
    Habit("cut JSON", keeps_what_is_whole, everywhere("truncated")),
    Habit("400 with n_ctx", fits_the_window, {"dialect": "llama.cpp", "max_context_tokens": 1500}),
    Habit("500 too large", halves_long_texts, {"dialect": "llama.cpp", "max_input_tokens": 30}),
    Habit("one text in a request", sends_one_text_at_a_time, {"max_batch_items": 1}),
    Habit("null role delta", is_whole, everywhere("null-delta")),
    Habit("no usage", counts_without_usage, everywhere("no-usage")),
]


USUAL_HABITS = [habit for habit in HABITS if habit.name in ("echoed passage", "cut JSON", "400 with n_ctx")]


@pytest.mark.parametrize("habit", usually(HABITS, *USUAL_HABITS), ids=[habit.name for habit in HABITS])
def test_an_index_and_its_answers_keep_the_promises_under_a_habit(
    habit: Habit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with indexed(tmp_path / "root", habit.script, habit.server, habit.is_failing) as trial:
        assert all(row["stage"] and row["record"] and row["reason"] for row in trial.failures)
        assert_nothing_copied(trial)
        sent = Counter(json.dumps(call.body, sort_keys=True) for call in trial.server.calls if call.status == 200)
        assert not [body for body, n in sent.items() if n > 1], "nothing is paid twice"
        assert all(result.answer.strip() for result in trial.answers.values())
        habit.promise(trial)


def assert_nothing_copied(trial: Trial) -> None:
    """Search literally, without the product's own check, for sentences of the prompts and headings of their data."""
    published = [row[name] for row in trial.rows("community_reports") for name in ("title", "summary", "full_content")]
    published += [row[name] for row in trial.rows("entities") for name in ("title", "description")]
    published += [row["description"] for row in trial.rows("relationships")]
    published += [result.answer for result in trial.answers.values()]
    assert published
    copied = [*instructions(), "-----", "id,title", "id,source,target", "id|", "entities,relationships"]
    assert not [(part, text) for text in published for part in copied if part in " ".join(text.split())]


def instructions() -> list[str]:
    """Return the sentences of all prompts between their placeholders; short ones may also be written by chance."""
    parts = re.split(r"\{\w+\}|\n[- ]*|(?<=[.:?!;]) ", "\n".join(default_prompts().values()))
    return [part for part in parts if len(part.split()) >= 5]


@pytest.mark.parametrize("habit", usually(["echoed-placeholder", "echoed-passage"], "echoed-passage"))
def test_extraction_that_only_copies_stops_with_the_cause(
    habit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with running_model_server(faults={habit: 1.0}) as server:
        root = make_model_root(tmp_path / "root", server.base_url, 0, publishing={"max_failed_share": 1.0})
        for name, text in DOCUMENTS.items():
            put(root.path, name, text)
        with pytest.raises(
            PipelineError, match=r"all yield nothing .*(records is about the passage|no record could be read)"
        ):
            run_index(root)
        assert server.count("report") == 0
