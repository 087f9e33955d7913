"""Golden questions and trial searches before publication."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from graphrag_pipeline.defs.assets.definitions import BODIES
from graphrag_pipeline.defs.assets.stage_run import StageRun
from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.engines.embedded import answers as extractive
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.questions import read_gold
from graphrag_pipeline.evaluation.regression_gate import measure_golden, try_searches
from graphrag_pipeline.filesystem.listed_folders import write_file_list
from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.pipeline.forgetting import forget_document
from graphrag_pipeline.pipeline.retention import prune
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, CANDIDATE, SNAPSHOT, STAGES
from graphrag_pipeline.publishing.candidates import publish
from graphrag_pipeline.storage.snapshot_store import list_snapshots
from graphrag_pipeline_tests.support.corpora import small_index
from graphrag_pipeline_tests.support.damage import zero
from graphrag_pipeline_tests.support.roots import CAROL, build_tables, built_once, make_root, put, table_bytes

EVERYTHING = tuple(ALL_STAGES)
GOLD = [
    {"question": "Who carried Tiny Tim home?", "evidence": ["two.txt"]},
    {"question": "With whom did Fezziwig dance?", "evidence": ["three.md"]},
]


def set_gate(path: Path, **options: object) -> Root:
    settings = {"storage": {"n_buckets": 2}, "publishing": {"golden_questions": "gold.jsonl", **options}}
    (path / "settings.yaml").write_text(json.dumps(settings), encoding="utf-8")
    return Root(path)


def record(title: str, text: str = "They say that Topper sang.") -> str:
    return json.dumps({"id": title, "title": title, "text": text}) + "\n"


OTHERS = "".join(
    record(title, text)
    for title, text in (
        ("fog", "The fog came pouring in at every chink and keyhole."),
        ("fire", "A very small fire burned in the cell beyond."),
        ("door", "The knocker on the door was large and plain."),
        ("bell", "A disused bell hung in the room upstairs."),
        ("goose", "The pudding and the goose were on the table."),
        ("street", "People shovelled snow away from the houses."),
    )
)
"""More text units than recall looks at."""


def lose_third(path: Path) -> None:
    """Replace a document by one about something else."""
    (path / "input" / "three.md").write_text("The retention period of backup volumes is ninety days.\n")


@pytest.fixture(scope="module")
def _published_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def make(path: Path) -> None:
        make_root(path, {**CAROL, "rows.jsonl": record("kept") + record("dropped"), "others.jsonl": OTHERS})
        (path / "gold.jsonl").write_text("\n".join(map(json.dumps, GOLD)), encoding="utf-8")
        build_tables(set_gate(path), EVERYTHING)

    return built_once(tmp_path_factory.mktemp("gate") / "root", "a root with a gate", make).path


@pytest.fixture
def root(_published_once: Path, tmp_path: Path) -> Root:
    shutil.copytree(_published_once, tmp_path / "root")
    return Root(tmp_path / "root")


def test_a_candidate_that_finds_less_is_not_published_until_allowed(root: Root) -> None:
    first = root.snapshots.current()
    assert first is not None, "the first snapshot has nothing to be compared with"

    lose_third(root.path)
    with pytest.raises(PipelineError) as refused:
        build_tables(root, EVERYTHING)
    message = str(refused.value)
    assert "recall@5 of gold.jsonl is 0.500, but 1.000 in the published snapshot" in message
    assert "1.000" in message and "'With whom did Fezziwig dance?'" in message and "max_recall_drop` = 0.02" in message
    assert root.snapshots.current() == first and len(root.snapshots.ids()) == 2

    with pytest.raises(PipelineError, match=r"recall@5 of gold.jsonl is 0\.500"):
        build_tables(root, EVERYTHING)  # it waits as long as nothing changes

    kept = sorted({path.parent.name for path in (root.path / "evaluations").glob("*/*.json")})
    assert kept == sorted(root.snapshots.ids()), "figures are kept beside each snapshot"

    root = set_gate(root.path, max_recall_drop=0.5)
    build_tables(root, EVERYTHING)
    assert root.snapshots.current() not in (None, first)
    assert not any(facts.refusal for facts in list_snapshots(root.snapshots)), "it is not refused any more"

    prune(root, 1, before=2**40)
    assert [path.name for path in (root.path / "evaluations").iterdir()] == [root.snapshots.current()]


def test_a_candidate_whose_answers_are_worse_is_not_published(root: Root) -> None:
    gold = [{**GOLD[1], "answer": "Mrs. Fezziwig"}, {"question": "Which quasar is near?", "answer": "unanswerable"}]
    (root.path / "gold.jsonl").write_text("\n".join(map(json.dumps, gold)), encoding="utf-8")
    root = set_gate(root.path, max_recall_drop=1, max_passage_drop=1, max_f1_drop=0.01)
    first = root.snapshots.current()
    lose_third(root.path)
    with pytest.raises(
        PipelineError, match=r"token F1 of gold\.jsonl is 0\.\d+, but 0\.\d+ in the published"
    ) as refused:
        build_tables(root, EVERYTHING)
    assert "it answers worse for 'With whom did Fezziwig dance?'" in str(refused.value)
    assert "or raise `publishing.max_f1_drop`" in str(refused.value) and root.snapshots.current() == first

    root = set_gate(root.path, max_recall_drop=1, max_passage_drop=1)
    ran = StageRun(root, SNAPSHOT, WHOLE)
    BODIES[SNAPSHOT.name](ran)
    assert root.snapshots.current() != first and "golden token F1" not in ran.details


def test_a_candidate_that_shows_the_answer_later_is_not_published(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    gold = [{"question": "Who carried Tiny Tim home?", "answer": "Bob Cratchit"}]
    (root.path / "gold.jsonl").write_text("\n".join(map(json.dumps, gold)), encoding="utf-8")
    first = root.snapshots.current()
    assert first
    [shown] = measure_golden(root, first, read_gold(root.path / "gold.jsonl"))
    assert (shown.name, shown.mean) == ("answers in three passages", 1)

    ranked = extractive.rank_passages
    monkeypatch.setattr(extractive, "rank_passages", lambda *given: replace(ranked(*given), passages=()))
    (root.path / "input" / "four.txt").write_text("Topper sang.", encoding="utf-8")
    with pytest.raises(PipelineError) as refused:
        build_tables(root, EVERYTHING)
    message = str(refused.value)
    assert "answers in three passages of gold.jsonl is 0.000, but 1.000 in the published snapshot" in message
    assert "it shows the answer later for 'Who carried Tiny Tim home?'" in message
    assert message.endswith("or raise `publishing.max_passage_drop`") and root.snapshots.current() == first


def test_answers_are_shown_and_a_deleted_documents_answer_does_not_count(root: Root) -> None:
    gold = [{**row, "answer": "Bob Cratchit"} for row in GOLD]
    (root.path / "gold.jsonl").write_text("\n".join(map(json.dumps, gold)), encoding="utf-8")
    root = set_gate(root.path, max_f1_drop=0)
    (root.path / "input" / "three.md").unlink()
    ran = StageRun(root, SNAPSHOT, WHOLE)
    build_tables(root, (*STAGES, CANDIDATE.name))
    BODIES[SNAPSHOT.name](ran)
    now, before = (ran.details[f"golden token F1{when}"] for when in ("", " before"))
    assert now == before > 0, "the deleted document was not the answer"
    assert ran.details["golden questions skipped"] == 1
    assert ran.details["golden recall@5 interval"] == "1.000 [0.025, 1.000]"


def test_a_missing_gold_file_publishes_nothing(tmp_path: Path) -> None:
    make_root(tmp_path, {"one.txt": "Marley was dead. Scrooge signed."})
    root = set_gate(tmp_path)
    with pytest.raises(PipelineError, match=r"gold.jsonl: no such file"):
        build_tables(root, EVERYTHING)
    assert root.snapshots.current() is None


def test_deleted_evidence_does_not_count_and_can_be_forgotten(root: Root) -> None:
    first = root.snapshots.current()
    (root.path / "input" / "three.md").unlink()
    ran = StageRun(root, SNAPSHOT, WHOLE)
    build_tables(root, (*STAGES, CANDIDATE.name))
    BODIES[SNAPSHOT.name](ran)
    assert root.snapshots.current() not in (None, first)
    assert ran.details["golden recall@5"] == ran.details["golden recall@5 before"] == 1
    [left_out] = ran.details["golden evidence left out"]
    assert left_out.endswith("gold.jsonl, line 2: three.md") and ran.details["golden questions skipped"] == 1
    assert forget_document(root, "three.md").swept.snapshots == (first,)

    (root.path / "input" / "two.txt").unlink()
    build_tables(root, EVERYTHING)  # no evidence is left, and no question
    BODIES[SNAPSHOT.name](StageRun(root, SNAPSHOT, WHOLE))
    assert root.snapshots.open().n_rows("documents") == 3 + 6


def test_a_record_whose_file_is_damaged_counts_as_last_read_and_one_that_was_deleted_does_not_count(
    root: Root,
) -> None:
    (root.path / "gold.jsonl").write_text(json.dumps({"question": "Who sang?", "evidence": ["dropped"]}))
    (root.path / "input" / "rows.jsonl").write_bytes(b"\x00\x80\x81")
    build_tables(root, EVERYTHING)
    first = root.snapshots.current()
    assert first is not None and "dropped" in root.snapshots.open(first).table("documents")["title"].to_pylist()
    put(root.path, "rows.jsonl", record("kept") + '{"id": "bad"}\n')
    build_tables(root, EVERYTHING)
    assert root.snapshots.current() != first


def test_a_gold_file_that_cannot_be_read_stops_an_index_before_anything_is_made(root: Root) -> None:
    (root.path / "gold.jsonl").write_text("{", encoding="utf-8")
    put(root.path, "new.txt", "Scrooge met Marley.")
    before = table_bytes(root)
    with pytest.raises(PipelineError, match=r"gold\.jsonl, line 1"):
        run_index(Root(root.path))
    assert table_bytes(root) == before


MODEL_SETTINGS = """
storage: {n_buckets: 1}
chat_model: {model: m, base_url: "http://127.0.0.1:9/v1"}
rerank_model: {model: m, base_url: "http://127.0.0.1:9/v1"}
embedding_model: {model: m, base_url: "http://127.0.0.1:9/v1"}
embeddings: {engine: model}
answers: {engine: model}
rating: {engine: model}
local_search: {rerank: true}
"""


@pytest.mark.parametrize("settings", ["", MODEL_SETTINGS])
def test_a_whole_candidate_is_published_and_no_model_is_asked(tmp_path: Path, settings: str) -> None:
    root = make_root(tmp_path, {}, settings)
    candidate = small_index.freeze(tmp_path)
    publish(root.snapshots, candidate.id, trial=partial(try_searches, root))
    assert root.snapshots.current() == candidate.id


def test_a_candidate_whose_full_text_index_was_built_wrong_is_not_published(tmp_path: Path) -> None:
    root = make_root(tmp_path, {})
    candidate = small_index.freeze(tmp_path)
    [folder] = (tmp_path / "snapshots" / "vectors" / "default-text_unit-text").iterdir()
    for path in folder.glob("*.lance/_indices/*/*"):
        zero(path)
    write_file_list(folder)  # the hashes are those of the wrong files
    with pytest.raises(PipelineError, match=r"not published, since a trial search by the method \w+ failed"):
        publish(root.snapshots, candidate.id, trial=partial(try_searches, root))
    assert root.snapshots.current() is None


def test_an_index_without_text_units_is_not_searched(tmp_path: Path) -> None:
    root = make_root(tmp_path, {})
    tables = {name: rows.slice(0, 0) for name, rows in small_index.contract_tables().items()}
    try_searches(Root(root.path), small_index.freeze(tmp_path, tables))
