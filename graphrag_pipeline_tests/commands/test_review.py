"""A candidate waits for a reviewer, who sees what changed, and publishes or rejects it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import dagster as dg
import pytest
import yaml

from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.inspection.review import review_candidate, to_markdown
from graphrag_pipeline.pipeline.open_work import find_unpublished_candidate
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, CANDIDATE, SNAPSHOT
from graphrag_pipeline_tests.model_server import ReceivedRequest, running_model_server
from graphrag_pipeline_tests.support.command_line import Call
from graphrag_pipeline_tests.support.damage import zero
from graphrag_pipeline_tests.support.roots import build_tables, built_once, indexed_root, make_root, put
from graphrag_pipeline_tests.support.serving import running_server

REVIEWED = "storage:\n  n_buckets: 2\npublishing:\n  review: true\n  golden_questions: gold.jsonl\n"
GOLD = [
    {"question": "Who carried Tiny Tim home?", "evidence": ["two.txt"]},
    {"question": "With whom did Fezziwig dance?", "evidence": ["three.md"]},
]
OTHERS = (
    "The fog came pouring in at every chink and keyhole.",
    "A very small fire burned in the cell beyond.",
    "The knocker on the door was large and plain.",
    "A disused bell hung in the room upstairs.",
    "The pudding and the goose were on the table.",
    "People shovelled snow away from the houses.",
    "They say that Topper sang.",
    "They say that Topper sang with the harp.",
    "The dance of the leaves began in the street.",
    "With whom did the fog play?",
)
"""More text units than recall looks at."""


@pytest.fixture
def root(tmp_path: Path) -> Root:
    """A published root in which further candidates wait for review."""
    root = indexed_root(tmp_path / "root")
    (root.path / "settings.yaml").write_text(REVIEWED)
    (root.path / "gold.jsonl").write_text("".join(json.dumps(question) + "\n" for question in GOLD))
    return Root(root.path)


class Waiting(NamedTuple):
    """A root in which the candidate of an edited document waits beside the published snapshot."""

    root: Root
    published: str
    candidate: str


@pytest.fixture
def waiting(root: Root, tmp_path: Path) -> Waiting:
    def edit(path: Path) -> None:
        shutil.copytree(root.path, path)
        put(path, "two.txt", "Martha carried Tiny Tim home. Bob Cratchit sang.")
        report = run_index(Root(path))
        assert report.waiting and report.snapshot == root.snapshots.current() != report.waiting

    edited = built_once(tmp_path / "edited", "a candidate that waits for review", edit)
    published, candidate = root.snapshots.current(), find_unpublished_candidate(edited)
    assert edited.snapshots.current() == published and candidate
    return Waiting(edited, str(published), candidate)


def test_a_candidate_waits_and_says_so_until_it_is_published(waiting: Waiting, call: Call) -> None:
    root, published, candidate = waiting
    status = call("--root", root.path, "status")
    assert f"candidate {candidate} is not published: waits for review" in status.out
    assert "everything is fresh" in status.out
    assert call("--root", root.path, "index").out.count("waits for review") == 1
    assert root.snapshots.current() == published
    assert "waiting" in call("--root", root.path, "snapshots", "list").out
    assert call("--root", root.path, "review", "publish").out == f"published snapshot {candidate}\n"
    assert root.snapshots.current() == candidate
    assert "not published" not in call("--root", root.path, "status").out
    assert json.loads(call("--root", root.path, "review", "show", "--json").out)["state"] == "published"


def test_a_reviewer_sees_changes_questions_and_quality(waiting: Waiting, call: Call) -> None:
    root, published, candidate = waiting
    found = json.loads(call("--root", root.path, "review", "show", "--json").out)
    assert (found["candidate"], found["published"], found["state"]) == (candidate, published, "waiting")
    assert found["problems"] == [] and found["cost"] == 0
    assert [(one["change"], one["path"]) for one in found["diff"]["documents"]] == [("edited", "two.txt")]
    assert found["n_questions"] == 2
    changed = {one["question"]: one for one in found["questions"]}
    first = changed["Who carried Tiny Tim home?"]
    assert "Bob Cratchit carried" in first["before"][0] and first["after"][0].startswith("two: Martha carried")
    assert "Bob Cratchit carried" in first["answer_before"] and first["answer_after"].startswith("Martha carried")
    assert any(figure["after"] is not None for figure in found["figures"])
    shown = call("--root", root.path, "review", "show").out
    assert "document edited: two.txt" in shown and "evidence after: two: Martha carried Tiny Tim home" in shown
    assert "answer after: Martha carried Tiny Tim home" in shown and "the first 400 characters" in shown
    assert "relationship added: " in shown and "MARTHA - TINY TIM" in shown
    assert "review publish" in shown


def test_each_figure_of_a_review_has_its_threshold_and_a_verdict_in_words(waiting: Waiting, call: Call) -> None:
    root = waiting.root
    setting = "quality:\n  thresholds: {min_largest_component: 1.0, max_singletons: null}\n"
    (root.path / "settings.yaml").write_text(REVIEWED + setting)
    found = json.loads(call("--root", root.path, "review", "show", "--json").out)["figures"]
    figures = {figure["meaning"]: figure for figure in found}
    split = figures["share of entities in the largest connected component"]
    assert (split["threshold"], split["verdict"]) == ("at least 1", "beyond") and split["advice"]
    whole = figures["share of text units that yield an entity"]
    assert (whole["threshold"], whole["verdict"], whole["advice"]) == ("at least 0.9", "within", "")
    assert figures["share of entities without a relationship"]["threshold"] == ""
    recall = figures["recall@5 of gold questions"]
    assert (recall["threshold"], recall["verdict"]) == ("at most 0.02 lower, `publishing.max_recall_drop`", "within")
    lines = call("--root", root.path, "review", "show").out.splitlines()
    assert any("connected component" in line and ", beyond its threshold (at least 1). " in line for line in lines)
    assert any("yield an entity" in line and line.endswith(", within its threshold (at least 0.9)") for line in lines)
    assert any("without a relationship" in line and line.endswith(", no threshold") for line in lines)


def test_the_answers_of_a_model_are_shown_without_asking_it_again(root: Root, call: Call) -> None:
    (root.path / "gold.jsonl").write_text(json.dumps({**GOLD[0], "answer": "Bob Cratchit"}) + "\n")
    put(root.path, "two.txt", "Martha carried Tiny Tim home. Bob Cratchit sang.")

    def reply(request: ReceivedRequest) -> str:
        name = "Martha" if "Martha carried" in request.prompt else "Bob"
        return f"It was {name}. {'They say that Topper sang. ' * 20}"

    with running_model_server(reply) as server:
        settings = yaml.safe_load(REVIEWED) | {"answers": {"engine": "model"}}
        settings["publishing"]["max_f1_drop"] = 1
        settings["chat_model"] = {"model": "test-chat", "base_url": server.base_url}
        (root.path / "settings.yaml").write_text(yaml.safe_dump(settings))
        assert run_index(Root(root.path)).waiting
        n_calls = server.count()
        [change] = json.loads(call("--root", root.path, "review", "show", "--json").out)["questions"]
        assert server.count() == n_calls == 2
    assert change["answer_before"].startswith("It was Bob. ")
    assert change["answer_after"].startswith("It was Martha. ") and len(change["answer_after"]) == 403


def test_the_server_shows_a_review_to_who_may_read_all(waiting: Waiting) -> None:
    root, published, candidate = waiting
    with running_server({"carol": root.path}) as running:
        answer = running.client.get(f"/snapshots/{candidate[:8]}/review").json()
        assert (answer["snapshot"], answer["review"]["state"]) == (published, "waiting")
        listed = {one["id"]: one["is_waiting"] for one in running.client.get("/snapshots").json()["snapshots"]}
        assert listed == {published: False, candidate: True}
        assert running.client.get("/snapshots/00000000/review").status_code == 404
        assert running.client.post(f"/snapshots/{candidate}/review").status_code == 405
    assert Root(root.path).snapshots.current() == published


def test_a_rejected_candidate_stays_listed_and_is_not_published_again(waiting: Waiting, call: Call) -> None:
    root, published, candidate = waiting
    outcome = call("--root", root.path, "review", "reject", "--reason", "Tim was\ncarried by Bob")
    assert outcome.out == f"rejected candidate {candidate}: Tim was\ncarried by Bob\n"
    report = run_index(Root(root.path))
    assert (report.snapshot, report.waiting) == (published, candidate)
    assert "rejected in review: Tim was carried by Bob" in call("--root", root.path, "status").out
    refused = call("--root", root.path, "review", "publish")
    assert refused.status == 1 and "was rejected in review: Tim was carried by Bob" in refused.err
    assert "rejected in review: Tim" in call("--root", root.path, "snapshots", "list").out
    put(root.path, "two.txt", "Bob Cratchit carried Tiny Tim home on his shoulder.")
    other = run_index(Root(root.path)).waiting
    assert other not in (candidate, None)
    assert call("--root", root.path, "review", "publish", candidate).status == 1
    assert call("--root", root.path, "review", "publish").status == 0
    assert root.snapshots.current() == other


def test_one_index_run_can_ask_for_review(tmp_path: Path, call: Call) -> None:
    root = make_root(tmp_path / "root")
    outcome = call("--root", root.path, "index", "--review")
    assert outcome.status == 0 and "published snapshot none" in outcome.out and "waits for review" in outcome.out
    assert root.snapshots.current() is None
    call("--root", root.path, "index")  # without the option the same candidate still waits
    assert root.snapshots.current() is None
    assert json.loads(call("--root", root.path, "review", "show", "--json").out)["diff"] is None
    call("--root", root.path, "review", "publish")
    assert root.snapshots.current()


def test_gold_questions_that_find_less_are_shown_and_the_candidate_waits_on(root: Root, call: Call) -> None:
    settings = REVIEWED.replace("review: true", "review: false")
    (root.path / "settings.yaml").write_text(settings)
    for number, text in enumerate(OTHERS):
        put(root.path, f"other_{number}.txt", text)
    build_tables(Root(root.path), ALL_STAGES)
    put(root.path, "three.md", "The retention period of backup volumes is ninety days.")
    report = run_index(Root(root.path), is_reviewed=True)
    assert "golden_questions: recall@5" in call("--root", root.path, "review", "show").out
    outcome = call("--root", root.path, "review", "publish")
    assert outcome.status == 1 and "recall@5" in outcome.err
    again = run_index(Root(root.path))
    assert again.waiting == report.waiting and "waits for review" in call("--root", root.path, "status").out


def test_a_damaged_candidate_is_not_published_by_a_reviewer(waiting: Waiting, call: Call) -> None:
    root, published, candidate = waiting
    zero(root.snapshots.folder / "tables" / "entities" / root.snapshots.manifest(candidate).tables["entities"]["file"])
    assert "damaged" in call("--root", root.path, "review", "show").out
    assert call("--root", root.path, "review", "publish").status == 1
    assert root.snapshots.current() == published


def test_materializing_the_snapshot_alone_in_dagster_approves_it_and_a_sensor_does_not(waiting: Waiting) -> None:
    root, published, candidate = waiting
    key = dg.AssetKey(SNAPSHOT.name)
    with open_instance(root) as instance:
        definitions = build_definitions(Root(root.path))
        job = definitions.resolve_implicit_global_asset_job_def()
        for tags, expected in (({"dagster/sensor_name": "some"}, published), ({}, candidate)):
            result = job.execute_in_process(instance=instance, asset_selection=[key], tags=tags)
            assert result.success and root.snapshots.current() == expected
        observed = instance.fetch_observations(dg.AssetKey(CANDIDATE.name), limit=5).records
        last, *before = [event.asset_observation.metadata for event in observed]
        assert last["published"].value == candidate
        pages = [metadata["review"].value for metadata in before]
        assert pages and all(f"## Candidate {candidate}: waiting" in page for page in pages)


def test_a_rejected_candidate_is_not_published_by_materializing_the_snapshot(waiting: Waiting, call: Call) -> None:
    root, published, candidate = waiting
    call("--root", root.path, "review", "reject", "--reason", "wrong size")
    with open_instance(root) as instance:
        job = build_definitions(Root(root.path)).resolve_implicit_global_asset_job_def()
        chosen = [dg.AssetKey(SNAPSHOT.name)]
        with pytest.raises(PipelineError, match=f"rejected in review: wrong size; .*`.* review publish {candidate}`"):
            job.execute_in_process(instance=instance, asset_selection=chosen)
    assert root.snapshots.current() == published
    assert "rejected in review: wrong size" in call("--root", root.path, "snapshots", "list").out
    assert call("--root", root.path, "review", "publish", candidate).status == 0
    assert root.snapshots.current() == candidate


def test_markdown_of_a_review_has_no_link_and_no_html(root: Root) -> None:
    put(root.path, "<img src=x> [a](http:b).txt", "Scrooge saw <b>Marley</b> and ![x](y).")
    candidate = run_index(Root(root.path)).waiting
    page = to_markdown(review_candidate(Root(root.path), str(candidate)))
    assert "## Changes" in page and "img" in page
    assert "<img" not in page and "](http:" not in page and "<b>" not in page


def test_without_an_index_there_is_nothing_to_review(tmp_path: Path, call: Call) -> None:
    root = make_root(tmp_path / "root")
    outcome = call("--root", root.path, "review", "show")
    assert outcome.status == 1 and "no candidate yet" in outcome.err
    with pytest.raises(PipelineError):
        review_candidate(root, "0" * 16)
