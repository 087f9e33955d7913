"""The model engine end to end: a real root, Dagster, Parquet and cache, and a model behind real HTTP."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import yaml

from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.index_runs.index_run import IndexReport, run_index
from graphrag_pipeline.defs.runs.instance import dagster_home, open_instance
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.inspection.costs import read_costs
from graphrag_pipeline.inspection.estimates import estimate_index
from graphrag_pipeline.models.ports import NOT_ASKED_AGAIN
from graphrag_pipeline.pipeline.detected_input import detect_input
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.pipeline.staleness import find_stale
from graphrag_pipeline.settings.file import set_options
from graphrag_pipeline.tables import MODEL_STAGES
from graphrag_pipeline_tests.bench.articles import iterate_articles
from graphrag_pipeline_tests.model_server import Fault, ReceivedRequest, running_model_server
from graphrag_pipeline_tests.model_server.server import ModelServer
from graphrag_pipeline_tests.support.command_line import Call
from graphrag_pipeline_tests.support.dagster.killed_runs import index_at_once, working_apart
from graphrag_pipeline_tests.support.models.hostile_replies import HOSTILE_REPLIES
from graphrag_pipeline_tests.support.models.model_roots import KEY, KEY_VARIABLE, TEXT, make_model_root
from graphrag_pipeline_tests.support.roots import build_tables, contract_bytes, put
from graphrag_pipeline_tests.support.thoroughness import repetitions, usually

FAULTS = {
    "429": 0.1, "500": 0.05, "drop": 0.05, "hang": 0.02, "garbage": 0.05, "truncated": 0.05, "fenced": 0.1,
    "refused": 0.02, "empty": 0.02,
}  # fmt: skip


def failures_of(root: Root) -> dict[str, list[dict]]:
    """The rows of every table of failures that has any, by stage."""
    found = {}
    for stage in MODEL_STAGES:
        heads = (root.path / "heads" / f"{stage}_failures").glob("*.json")
        tables = [root.tables.read(f"{stage}_failures", head.stem) for head in heads]
        rows = [row for table in tables for row in table.to_pylist()]
        if rows:
            found[stage] = rows
    return found


def set_option(root: Root, section: str, name: str, value: object) -> Root:
    """Write an option to the settings file; return the root newly opened."""
    path = root.path / "settings.yaml"
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    settings[section][name] = value
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return Root(root.path)


def units_of(root: Root) -> pa.Table:
    return root.snapshots.open().table("text_units")


def index(root: Root) -> IndexReport:
    return run_index(Root(root.path))


def build(root: Root) -> None:
    """Update and publish all tables without Dagster's records, for tests of what the tables hold."""
    build_tables(Root(root.path), ALL_STAGES)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)


@pytest.fixture
def call(call: Call, monkeypatch: pytest.MonkeyPatch) -> Call:
    """`main` in this process, with the key that its environment lacks."""
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    return call


def test_every_stage_uses_the_model_and_a_second_run_makes_no_call(tmp_path: Path) -> None:
    with running_model_server() as server:
        root = make_model_root(tmp_path / "root", server.base_url, 4)
        index(root)
        n_calls = server.count()
        assert {call.kind for call in server.calls} >= {"extraction", "gleaning", "summary", "report", "embedding"}
        snapshot = root.snapshots.open()
        assert snapshot.n_rows("failures") == 0
        mentions = pa.concat_tables(root.tables.read("entity_mentions", bucket) for bucket in ("000", "001"))
        assert mentions.num_rows and not mentions["request_key"].null_count
        assert not index(root).ran
        assert server.count() == n_calls


def test_a_rebuild_from_the_cache_makes_no_call_and_gives_the_same_bytes(tmp_path: Path) -> None:
    with running_model_server() as server:
        root = make_model_root(tmp_path / "root", server.base_url, 3)
        build(root)
        n_calls, before = server.count(), contract_bytes(root)
        for folder in ("tables", "heads", "snapshots"):
            os.rename(root.path / folder, tmp_path / folder)
        build(root)
        assert server.count() == n_calls
        assert contract_bytes(root) == before


def test_a_paid_summary_stays_when_short_descriptions_are_joined(tmp_path: Path) -> None:
    with running_model_server() as server:
        root = make_model_root(tmp_path / "root", server.base_url, 3, descriptions={"max_joined": 0})
        build(root)
        paid = root.tables.read("descriptions")
        server.reset()
        joining = set_option(root, "descriptions", "max_joined", 3)
        assert "summarized_descriptions" in {item.stage for item in find_stale(joining, detect_input(joining))}
        build(joining)
        assert (server.count(), joining.tables.read("descriptions").equals(paid)) == (0, True)
        put(root.path, "ada.txt", TEXT)
        put(root.path, "mary.txt", f"Mary Somerville taught Charles Babbage. {TEXT}")
        build(joining)
        rows = joining.tables.read("descriptions").to_pylist()
        assert any(row["n_descriptions"] > 1 and row["request_key"] is None for row in rows)
        build(set_option(root, "descriptions", "max_joined", 0))
        rows = root.tables.read("descriptions").to_pylist()
        assert all((row["request_key"] is None) == (row["n_descriptions"] < 2) for row in rows)


@pytest.mark.thorough
def test_embedded_and_model_stages_mix(tmp_path: Path) -> None:
    with running_model_server() as server:
        root = make_model_root(
            tmp_path / "root", server.base_url, extraction={"engine": "embedded"}, embeddings={"engine": "embedded"}
        )
        build(root)
        assert {call.kind for call in server.calls} <= {"summary", "report"}
        assert server.count("report")


def test_under_all_faults_the_index_is_published_and_the_next_run_retries_only_failures(tmp_path: Path) -> None:
    with running_model_server(faults=FAULTS, seed=3) as server:
        root = make_model_root(
            tmp_path / "root",
            server.base_url,
            publishing={"max_failed_share": 0.1},
            chat_model={"timeout_s": 0.5},
            embedding_model={"timeout_s": 0.5},
        )
        index(root)
        snapshot = root.snapshots.open()
        failed = {row["record"] for row in failures_of(root).get("extracted_graph", [])}
        in_graph = {unit["id"] for unit in units_of(root).to_pylist() if unit["entity_ids"]}
        assert in_graph | failed == set(units_of(root)["id"].to_pylist())
        assert snapshot.n_rows("failures") == sum(len(rows) for rows in failures_of(root).values())
    with running_model_server(port=server.port) as server:
        n_failures = sum(map(len, failures_of(root).values()))
        failed_units = {row["record"] for row in failures_of(root).get("extracted_graph", [])}
        index(root)
        extracted = [call for call in server.calls if call.kind == "extraction"]
        assert len(extracted) <= len(failed_units)
        if not n_failures:
            assert not server.calls
        assert not failures_of(root)


def test_a_refused_text_unit_is_a_failure_and_publishing_stops_above_the_allowed_share(
    tmp_path: Path, call: Call
) -> None:
    def refuse_some(request: ReceivedRequest) -> str | None:
        return "Sorry, I cannot help." if "Ada Lovelace" in request.prompt and request.kind == "extraction" else None

    with running_model_server(script=refuse_some) as server:
        root = make_model_root(tmp_path / "root", server.base_url, 4, publishing={"tolerated_failures": 0})
        put(root.path, "ada.txt", TEXT)
        with pytest.raises(PipelineError, match=r"over publishing\.max_failed_share = 0\.02"):
            index(root)
        assert root.snapshots.current() is None
        [row] = failures_of(root)["extracted_graph"]
        assert row["reply"].startswith("Sorry") and "no record could be read" in row["reason"]
        status = call("--root", root.path, "status").out
        assert "1 failures to try again" in status
        assert f"failed extracted_graph: ada.txt, characters 0 to {len(TEXT):,} ({row['record'][:8]}): " in status
        server.reset()
        settings = root.path / "settings.yaml"
        text = set_options(settings.read_text(encoding="utf-8"), {("publishing", "max_failed_share"): 0.2})
        settings.write_text(text, encoding="utf-8")
        index(root)
        assert root.snapshots.open().n_rows("failures") == 1
        checks = [call.kind for call in server.calls if call.kind != "extraction"]
        assert sorted(checks) == ["echo", "embedding"], "one tiny request to each model, before the paid calls"
        shown = call("--root", root.path, "index")
        assert "records without a usable reply: 1 of extracted_graph; `graphrag-pipeline status`" in shown.err
        status = call("--root", root.path, "status").out
        assert NOT_ASKED_AGAIN in status and "to try again" not in status and "everything is fresh" in status


def test_a_failed_summary_or_report_is_filled_by_the_embedded_engine_and_flagged(tmp_path: Path) -> None:
    def fail_writing(request: ReceivedRequest) -> str | None:
        return "{}" if request.kind == "report" else "..." if request.kind == "summary" else None

    with running_model_server(script=fail_writing) as server:
        root = make_model_root(tmp_path / "root", server.base_url, publishing={"max_failed_share": 1.0})
        index(root)
        reports, descriptions = root.tables.read("community_reports"), root.tables.read("descriptions")
        is_asked = pc.greater_equal(pc.list_value_length(root.tables.read("communities")["entity_ids"]), 5)
        asked = set(root.tables.read("communities").filter(is_asked)["id"].to_pylist())
        written = [row for row in reports.to_pylist() if row["community_id"] in asked]
        assert written and all(row["is_fallback"] and row["summary"] for row in written)
        several = [row for row in descriptions.to_pylist() if row["n_descriptions"] > 3]
        assert several and all(row["is_fallback"] and row["description"] for row in several)
    with running_model_server(port=server.port) as server:
        index(root)
        assert not any(root.tables.read("community_reports")["is_fallback"].to_pylist())
        assert not any(root.tables.read("descriptions")["is_fallback"].to_pylist())
        assert not server.count("extraction")


def test_a_run_whose_first_text_units_yield_nothing_stops_and_shows_prompt_model_and_reply(tmp_path: Path) -> None:
    with running_model_server(script=lambda request: "I would rather talk about the weather.") as server:
        root = make_model_root(tmp_path / "root", server.base_url, n_articles=40, chat_model={"max_concurrency": 4})
        with pytest.raises(PipelineError) as error:
            index(root)
        assert server.count() < 40
    for part in ("test-chat", "extract_graph.txt", "talk about the weather", "yield nothing"):
        assert part in str(error.value)


def test_a_spent_budget_stops_the_run_and_keeps_paid_replies(tmp_path: Path) -> None:
    with running_model_server() as server:
        budget = {"max_tokens": 60_000, "check_estimate": False}
        root = make_model_root(tmp_path / "root", server.base_url, budget=budget)
        with pytest.raises(PipelineError, match="budget"):
            index(root)
        n_calls = server.count("extraction") + server.count("gleaning")
        settings = root.path / "settings.yaml"
        text = settings.read_text(encoding="utf-8").replace("max_tokens: 60000", "max_tokens: null")
        settings.write_text(text, encoding="utf-8")
        server.reset()
        index(root)
        n_extracted = server.count("extraction") + server.count("gleaning")
        assert n_calls and n_calls + n_extracted == 2 * units_of(root).num_rows


def test_an_estimate_above_the_budget_stops_the_run_before_its_first_call(tmp_path: Path) -> None:
    with running_model_server() as server:
        root = make_model_root(tmp_path / "root", server.base_url, budget={"max_tokens": 30_000})
        with pytest.raises(PipelineError, match=r"No call was made\. Raise budget\.max_tokens to [\d,]+ or more"):
            index(root)
        job = build_definitions(Root(root.path)).resolve_job_def("graph_and_later")
        with open_instance(root) as instance:
            result = job.execute_in_process(instance=instance, raise_on_error=False)
        assert not result.success and not server.calls


@pytest.mark.thorough
def test_buckets_of_different_prompts_stop_a_run_of_later_stages_before_its_first_call(tmp_path: Path) -> None:
    with running_model_server() as server:
        root = make_model_root(tmp_path / "root", server.base_url, n_articles=3)
        index(root)
        with (root.path / "prompts" / "extract_graph.txt").open("a", encoding="utf-8") as prompt:
            prompt.write("\nWrite for engineers.")
        with open_instance(root) as instance:
            jobs = build_definitions(Root(root.path))
            assert (
                jobs.resolve_job_def("index_bucket").execute_in_process(instance=instance, partition_key="000").success
            )
            server.reset()
            result = jobs.resolve_job_def("graph_and_later").execute_in_process(instance=instance, raise_on_error=False)
        [failed] = [event for event in result.all_events if event.is_step_failure]
        assert failed.step_key == "graph" and not server.calls
        message = str(failed.step_failure_data.error)
        assert "materialize the other buckets" in message and "prompt extract_graph" in message


def test_a_dry_run_counts_the_calls_of_extraction_exactly_and_sends_nothing(tmp_path: Path, call: Call) -> None:
    with running_model_server() as server:
        root = make_model_root(tmp_path / "root", server.base_url, 4, chat_model={"prompt_price": 1.0})
        shown = call("--root", root.path, "index", "--dry-run", "--json")
        assert shown.status == 0, shown.err
        estimates = {row["stage"]: row for row in json.loads(shown.out)["estimates"]}
        assert not server.calls and not (root.path / "heads").exists()
        index(root)
        extraction = estimates["extracted_graph"]
        paid = read_costs(root)[-1]["stages"]["extracted_graph"]
        assert extraction["n_calls"] == paid["actual"]["calls"] == server.count("extraction") + server.count("gleaning")
        assert paid["estimated"]["n_calls"] == extraction["n_calls"]
        assert extraction["cost"] > 0 and paid["actual"]["cost_usd"] > 0
        again = estimate_index(Root(root.path), find_stale(root, detect_input(root)))
        assert again == []


@pytest.mark.thorough
def test_a_dry_run_after_a_changed_prompt_counts_its_own_calls_alone(tmp_path: Path) -> None:
    with running_model_server() as server:
        root = make_model_root(tmp_path / "root", server.base_url)
        index(root)
        server.reset()
        prompt = root.path / "prompts" / "summarize_descriptions.txt"
        prompt.write_text("Be brief.\n" + prompt.read_text(encoding="utf-8"), encoding="utf-8")
        root = Root(root.path)
        [summaries, *below] = estimate_index(root, find_stale(root, detect_input(root)))
        index(root)
        assert summaries.stage == "summarized_descriptions" and not summaries.is_scaled
        assert summaries.n_calls == server.count("summary")
        assert all(estimate.is_scaled for estimate in below)


def test_verdicts_of_the_model_merge_entities_and_a_dry_run_shows_them_first(tmp_path: Path, call: Call) -> None:
    def judge(request: ReceivedRequest) -> str | None:
        return '{"same": true, "reason": "One person."}' if "Entity A:" in request.prompt else None

    with running_model_server(script=judge) as server:
        root = make_model_root(tmp_path / "root", server.base_url, n_articles=3)
        build(root)
        n_entities = root.snapshots.open().n_rows("entities")
        settings = root.path / "settings.yaml"
        values = yaml.safe_load(settings.read_text(encoding="utf-8"))
        values["resolution"] |= {"engine": "model", "min_asked_similarity": 0.5, "max_asked": 5}
        settings.write_text(yaml.safe_dump(values), encoding="utf-8")
        before = server.count()
        shown = call("--root", root.path, "merges", "--dry-run", "--json")
        report = json.loads(shown.out)
        assert shown.status == 0 and len(report["unasked"]) == 5 and not report["added"]
        assert server.count() - before == 0 or all(call.kind == "embedding" for call in server.calls[before:])
        build(root)
        assert root.snapshots.open().n_rows("entities") < n_entities
        rules = [row["rule"] for row in json.loads(call("--root", root.path, "merges", "--json").out)["merges"]]
        assert "verdict" in rules
        values["resolution"]["engine"] = "embedded"
        settings.write_text(yaml.safe_dump(values), encoding="utf-8")
        assert "- " in call("--root", root.path, "merges", "--dry-run").out
        build(root)
        assert root.snapshots.open().n_rows("entities") == n_entities


def test_fifty_hostile_replies_change_nothing_but_their_own_text_units(tmp_path: Path) -> None:
    n_hostile = len(HOSTILE_REPLIES)
    names = [article.name for article in iterate_articles(2 * n_hostile)]
    hostile = {unit_title(name): reply for name, reply in zip(names[::2], HOSTILE_REPLIES, strict=True)}

    def spoil(request: ReceivedRequest) -> str | None:
        if request.kind not in ("extraction", "gleaning"):
            return None
        return next((reply for title, reply in hostile.items() if title in request.prompt), None)

    mentions = []
    for name, script in (("calm", None), ("spoilt", spoil)):
        with running_model_server(script) as server:
            root = make_model_root(tmp_path / name, server.base_url, 2 * n_hostile)
            for path in sorted((root.path / "input").iterdir()):
                path.write_text(f"{unit_title(path.name)}. {path.read_text(encoding='utf-8')}", encoding="utf-8")
            build_tables(root, ("corpus_manifest", "documents", "text_units", "extracted_graph"))
            mentions.append(mentions_by_unit(root))
    calm, spoilt = mentions
    untouched = [unit for unit, (title, _) in calm.items() if title not in hostile]
    assert len(untouched) >= n_hostile
    assert {unit: calm[unit] for unit in untouched} == {unit: spoilt[unit] for unit in untouched}


def unit_title(name: str) -> str:
    """Return a word that only the text of this file contains."""
    return "Dispatch" + "".join(chr(ord("a") + int(digit)) for digit in name if digit.isdigit()) + "x"


def mentions_by_unit(root: Root) -> dict[str, tuple[str, list[dict]]]:
    """Text unit -> the first word of its document, and its mentions without the keys of their requests."""
    found: dict[str, tuple[str, list[dict]]] = {}
    for bucket in ("000", "001"):
        for document in root.tables.read("documents", bucket).to_pylist():
            for unit in root.tables.read("text_units", bucket).to_pylist():
                if unit["document_id"] == document["id"]:
                    found[unit["id"]] = (document["text"].partition(".")[0], [])
        for table in ("entity_mentions", "relationship_mentions"):
            for row in root.tables.read(table, bucket).to_pylist():
                found[row["text_unit_id"]][1].append(row)
    return found


@pytest.mark.parametrize("fault", usually(["500", "404", "garbage"], "500"))
def test_an_embedding_model_that_never_answers_stops_the_run_soon(tmp_path: Path, fault: str) -> None:
    with running_model_server([("embedding", Fault(fault))]) as server:
        root = make_model_root(
            tmp_path / "root",
            server.base_url,
            n_articles=3,
            extraction={"engine": "embedded"},
            descriptions={"engine": "embedded"},
            reports={"engine": "embedded"},
            embedding_model={"max_attempts": 2},
        )
        with pytest.raises(PipelineError, match="test-embedding"):
            index(root)
        assert server.count() <= 20


@pytest.mark.thorough
def test_few_text_units_that_all_fail_stop_the_run(tmp_path: Path) -> None:
    with running_model_server(script=lambda request: "I am a teapot.") as server:
        root = make_model_root(tmp_path / "root", server.base_url, n_articles=3)
        with pytest.raises(PipelineError, match="teapot"):
            index(root)
        assert server.count("embedding") == 1, "the check of the model"


def test_a_budget_is_not_overrun_by_long_replies_and_a_stopped_run_has_its_costs(tmp_path: Path) -> None:
    with running_model_server() as server:
        budget = {"max_tokens": 30_000, "check_estimate": False}
        root = make_model_root(tmp_path / "root", server.base_url, budget=budget)
        with pytest.raises(PipelineError, match="budget"):
            index(root)
        stats = server.log.summary()
    assert 0 < stats["prompt_tokens"] + stats["completion_tokens"] <= 30_000
    stages = read_costs(root)[-1]["stages"]
    actual = [stages[name]["actual"]["prompt_tokens"] for name in ("model_checks", "extracted_graph")]
    assert min(actual) > 0 and sum(actual) == stats["prompt_tokens"]


def test_claims_reach_the_published_covariates(tmp_path: Path) -> None:
    with running_model_server() as server:
        root = make_model_root(tmp_path / "root", server.base_url, 2, extraction={"has_claims": True})
        build(root)
        assert server.count("claims")
        assert root.snapshots.open().n_rows("covariates")


def test_the_key_is_in_no_file_log_or_output(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_model_server(api_key=KEY, faults={"500": 0.1}) as server:
        root = make_model_root(tmp_path / "root", server.base_url, 3)
        [result] = index_at_once(root.path, environment={KEY_VARIABLE: KEY})
        assert result.status == 0, result.err
        monkeypatch.setenv(KEY_VARIABLE, KEY + "x")
        wrong = call("--root", root.path, "index")
        put(root.path, "ada.txt", TEXT)
        monkeypatch.setenv(KEY_VARIABLE, KEY + "-wrong")
        refused = call("--root", root.path, "index")
        assert refused.status == 1 and KEY_VARIABLE in refused.err
    assert KEY not in "".join([result.out, result.err, wrong.out, wrong.err, refused.out, refused.err])
    files = [path for path in root.path.rglob("*") if path.is_file()]
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


@pytest.mark.thorough
def test_calls_show_in_dagster_beside_the_bucket_that_needed_them(tmp_path: Path) -> None:
    from dagster import AssetKey, DagsterInstance

    with running_model_server() as server:
        root = make_model_root(tmp_path / "root", server.base_url)
        index(root)
        n_extraction = server.count("extraction") + server.count("gleaning")
    shown = []
    with DagsterInstance.from_config(str(dagster_home(root))) as instance:
        for result in instance.fetch_materializations(AssetKey("extracted_graph"), limit=10).records:
            shown.append({name: entry.value for name, entry in result.asset_materialization.metadata.items()})
    shown = [values for values in shown if "buckets of this run" not in values]  # Dagster's one result of all buckets
    assert len(shown) == root.settings.storage.n_buckets
    assert sum(values["model calls"] for values in shown) == n_extraction
    assert all(
        values["tokens sent to models"] > 0 and values["median seconds of a model call"] >= 0 for values in shown
    )


# ---------------------------------------------------------------------------------------------------- killed processes


def kill_after_calls(root: Root, server: ModelServer, n_calls: int) -> None:
    """Kill an `index` as soon as the server has had this many calls more; it may end before."""
    wanted = server.count() + n_calls
    with working_apart(root.path, {KEY_VARIABLE: KEY}) as process:
        while process.is_alive() and server.count() < wanted:
            time.sleep(0.005)


@pytest.mark.thorough
def test_killed_at_any_moment_the_next_run_gives_the_bytes_of_an_undisturbed_one(tmp_path: Path) -> None:
    with running_model_server(latency_s=0.02) as server:
        calm = make_model_root(tmp_path / "calm", server.base_url)
        index(calm)
        n_undisturbed = server.count()
        server.reset()
        root = make_model_root(tmp_path / "root", server.base_url, chat_model={"max_concurrency": 4})
        for n_calls in (1, 7, 3, 11, 2, 13, 5, 17, 4, 9)[: repetitions(5, thorough=10)]:
            kill_after_calls(root, server, n_calls)
        index(root)
        assert contract_bytes(root) == contract_bytes(calm)
        # A reply on its way when its process dies is lost; a stored reply is never requested again.
        assert server.count() <= n_undisturbed + 10 * 8


@pytest.mark.thorough
def test_two_processes_on_one_cache_keep_it_whole(tmp_path: Path) -> None:
    location = f"sqlite:///{tmp_path / 'shared.sqlite'}"
    with running_model_server() as server:
        roots = [
            make_model_root(tmp_path / name, server.base_url, storage={"n_buckets": 2, "cache_url": location})
            for name in ("one", "two")
        ]
        with (
            working_apart(roots[0].path, {KEY_VARIABLE: KEY}) as first,
            working_apart(roots[1].path, {KEY_VARIABLE: KEY}) as second,
        ):
            for process in (first, second):
                process.join(240)
                assert process.exitcode == 0
        assert contract_bytes(roots[0]) == contract_bytes(roots[1])
        server.reset()
        assert not index(roots[0]).ran and not server.calls


def test_init_writes_settings_that_suit_a_server(tmp_path: Path, call: Call) -> None:
    made = call("init", tmp_path / "a", "--engine", "mixed", "--preset", "ollama", "--chat-model", "m")
    assert made.status == 0 and "OLLAMA_CONTEXT_LENGTH" in made.err
    values = yaml.safe_load((tmp_path / "a" / "settings.yaml").read_text(encoding="utf-8"))
    assert values["answers"]["engine"] == "model"
    assert values["extraction"]["engine"] == values["rating"]["engine"] == "embedded"
    assert values["chat_model"]["base_url"] == "http://localhost:11434/v1"
    with running_model_server(dialect="llama.cpp", max_context_tokens=8192, models=("m",)) as server:
        local = ("--engine", "model", "--chat-model", "m", "--base-url", server.base_url)
        told = call("init", tmp_path / "d", *local)
        other = call("init", tmp_path / "e", *local[:3], "qwen", *local[4:])
    assert "a window of 8,192 tokens" in told.err and "lists only" not in told.err
    assert "a window of 8,192 tokens, so the server says; it lists only m\n" in other.err
    for name in ("d", "e"):
        values = yaml.safe_load((tmp_path / name / "settings.yaml").read_text(encoding="utf-8"))
        assert values["chat_model"]["context_window"] == 8192
    with running_model_server(dialect="llama.cpp", max_context_tokens=8192, models=("a", "b")) as server:
        unknown = call("init", tmp_path / "f", *local[:4], "--base-url", server.base_url)
    assert "does not tell the window of m; `doctor` says what to set" in unknown.err
    apart = ("--embedding-model", "e", "--embedding-base-url", "http://127.0.0.1:81/v1")
    assert call("init", tmp_path / "b", "--engine", "model", "--chat-model", "m", *apart).status == 0
    values = yaml.safe_load((tmp_path / "b" / "settings.yaml").read_text(encoding="utf-8"))
    assert values["embedding_model"]["base_url"] == "http://127.0.0.1:81/v1"
    for options, named in (
        (("--preset", "ollama"), "--engine"),
        (("--engine", "model", "--chat-model", "m", *apart[2:]), "--embedding-model"),
        (("--engine", "model", "--chat-model", "m", "--preset", "azure"), "--base-url"),
    ):
        refused = call("init", tmp_path / "c", *options)
        assert refused.status in (1, 2) and named in refused.err.replace("\n", " ")
        assert not (tmp_path / "c").exists()


def test_a_missing_setting_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    root = tmp_path / "root"
    result = call("init", root, "--engine", "model")
    assert result.status == 2 and "--chat-model" in result.err
    result = call("init", root, "--engine", "model", "--chat-model", "m", "--base-url", "http://127.0.0.1:1/v1")
    assert result.status == 0
    values = yaml.safe_load((root / "settings.yaml").read_text(encoding="utf-8"))
    assert values["extraction"]["engine"] == "model" and values["embeddings"]["engine"] == "embedded"
    assert (root / "prompts" / "extract_graph.txt").is_file()
    again = call("init", root, "--engine", "model", "--chat-model", "other")
    assert again.status == 1 and "not overwritten" in again.err
    monkeypatch.setenv("GRAPHRAG__CHAT_MODEL__MODEL", "''")
    environment_only = call("--root", root, "status")
    assert environment_only.status == 1 and "chat_model.model is empty" in environment_only.err
