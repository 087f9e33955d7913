"""Feedback of readers: kept outside the index, listed, and promoted to gold questions that gate publications."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from graphrag_pipeline.access.access_file import add_key
from graphrag_pipeline.access.rules import FollowedRules
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation import feedback as feedback_module
from graphrag_pipeline.evaluation.feedback import add_feedback, find_promoted, promote, read_feedback
from graphrag_pipeline.evaluation.questions import read_gold
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline_tests.support.command_line import Call
from graphrag_pipeline_tests.support.roots import contract_bytes, indexed_root
from graphrag_pipeline_tests.support.serving import running_server

THUMB = {"rating": "up", "question": "Who carried Tiny Tim?", "answer": "Bob.", "documents": ["two.txt"]}
WRONG = {"rating": "down", "question": "Who danced?", "answer": "Scrooge.", "correction": "Fezziwig danced."}


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return indexed_root(tmp_path / "root")


def give(root: Root, **values: object) -> str:
    plain = {"by": "ada", "answer": "", "correction": "", "snapshot": "s", "documents": ()}
    return add_feedback(root.path, **{**plain, **values}).id  # type: ignore[arg-type]


def test_the_server_keeps_feedback_and_changes_no_index(root: Root, call: Call) -> None:
    before = contract_bytes(root)
    with running_server({"carol": root.path}) as running:
        for body in (THUMB, WRONG):
            answer = running.client.post("/feedback", json=body)
            assert answer.status_code == 200 and len(answer.json()["id"]) == 12
        assert running.client.post("/feedback", json={**THUMB, "rating": "perhaps"}).status_code == 400
        assert running.client.get("/feedback").status_code == 405
    assert contract_bytes(Root(root.path)) == before
    first, second = read_feedback(root.path)
    assert (first.by, first.rating, first.documents, first.snapshot) == (
        "local",
        "up",
        ("two.txt",),
        root.snapshots.current(),
    )
    shown = call("--root", root.path, "feedback", "list").out
    assert f"{second.id}  {second.time}  local  down  'Who danced?' -> 'Fezziwig danced.'" in shown
    assert json.loads(call("--root", root.path, "feedback", "list", "--json").out)[0]["answer"] == "Bob."
    exported = call("--root", root.path, "feedback", "export").out.splitlines()
    assert [json.loads(line)["id"] for line in exported] == [first.id, second.id]


def test_only_a_principal_with_the_right_gives_feedback(root: Root) -> None:
    path = root.path / "access.yaml"
    key = add_key(path, "ada", ["carol"], is_whole=True)
    with running_server({"carol": root.path}, rules=FollowedRules(path)) as running:
        asked = {"headers": {"authorization": f"Bearer {key}"}, "json": THUMB}
        assert running.client.post("/feedback", json=THUMB).status_code == 401
        assert running.client.post("/feedback", **asked).status_code == 403
        path.write_text(path.read_text().replace("feedback: false", "feedback: true"))
        assert running.client.post("/feedback", **asked).status_code == 200
    assert [one.by for one in read_feedback(root.path)] == ["ada"]


def test_promote_says_that_answers_of_a_model_are_compared_only_if_wanted(root: Root, call: Call) -> None:
    path = root.path / "settings.yaml"
    path.write_text(path.read_text(encoding="utf-8") + "publishing: {max_passage_drop: null}\n", encoding="utf-8")
    corrected = give(root, rating="down", question="Who danced?", correction="Fezziwig danced.")
    outcome = call("--root", root.path, "feedback", "promote", corrected)
    assert outcome.status == 0 and "its answer only with publishing.max_f1_drop" in outcome.out


def test_feedback_becomes_a_gold_question(root: Root, call: Call) -> None:
    good = give(root, rating="up", question="Who carried Tiny Tim?", documents=["two.txt"])
    corrected = give(root, rating="down", question="Who danced?", correction="Fezziwig danced.")
    bare = give(root, rating="down", question="Where is the clerk?")
    outcome = call("--root", root.path, "feedback", "promote", good[:6])
    assert outcome.status == 0 and "set publishing.golden_questions: gold.jsonl" in outcome.out
    assert "its answer only with" not in outcome.out, "passages are compared"
    (root.path / "settings.yaml").write_text("storage: {n_buckets: 2}\npublishing: {golden_questions: gold.jsonl}\n")
    opened = Root(root.path)
    path = promote(opened, corrected)
    assert promote(opened, corrected) == path, "a second time changes nothing"
    with pytest.raises(PipelineError, match=r"says what is right: .*--answer or --evidence"):
        promote(opened, bare)
    promote(opened, bare, "In the tank.", ["one.txt"])
    found = [(one.question, one.evidence, one.answers) for one in read_gold(path)]
    assert found == [
        ("Who carried Tiny Tim?", ("two.txt",), ()),
        ("Who danced?", (), ("Fezziwig danced.",)),
        ("Where is the clerk?", ("one.txt",), ("In the tank.",)),
    ]
    with pytest.raises(PipelineError, match="not in the published snapshot"):
        promote(opened, bare, "In the tank.", ["three.txt"])
    with pytest.raises(PipelineError, match="0 match 'ffff'"):
        promote(opened, "ffff")


def test_the_list_marks_what_was_promoted(root: Root, call: Call) -> None:
    first = give(root, rating="down", question="Who danced?", correction="Fezziwig danced.")
    second = give(root, rating="down", question="Who sang?", correction="Topper sang.")
    promote(root, second)
    lines = call("--root", root.path, "feedback", "list").out.splitlines()
    assert [line.startswith(one) for line, one in zip(lines, (first, second), strict=True)] == [True, True]
    assert [line.endswith("  promoted to gold.jsonl") for line in lines] == [False, True]
    listed = json.loads(call("--root", root.path, "feedback", "list", "--json").out)
    assert [one["is_promoted"] for one in listed] == [False, True]


def test_a_correction_that_contradicts_a_gold_answer_replaces_it_only_on_request(root: Root, call: Call) -> None:
    rows = [
        {"question": "Who signed?", "answer": "Scrooge"},
        {"question": " who  DANCED? ", "answers": ["Scrooge", "Marley"], "evidence": ["three.md"], "kind": "local"},
    ]
    path = root.path / "gold.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    before = path.read_bytes()
    given = give(root, rating="down", question="Who danced?", correction="Fezziwig danced.")
    refused = call("--root", root.path, "feedback", "promote", given)
    assert refused.status == 1 and path.read_bytes() == before
    for part in (f"{path}, line 2: ", "'Scrooge' or 'Marley'", "'Fezziwig danced.'", "`--replace`"):
        assert part in refused.err
    promote(root, given, " scrooge", ["three.md"])  # an answer that the gold question accepts contradicts nothing
    path.write_bytes(before)
    for _ in range(2):
        assert call("--root", root.path, "feedback", "promote", given, "--replace").status == 0
        found = [(one.question, one.evidence, one.answers, one.kind) for one in read_gold(path)]
        assert found == [
            ("Who signed?", (), ("Scrooge",), ""),
            ("Who danced?", ("three.md",), ("Fezziwig danced.",), "local"),
        ]
    assert "promoted to gold.jsonl" in call("--root", root.path, "feedback", "list").out


def test_a_good_answer_and_a_correction_of_one_question_are_one_gold_question(root: Root) -> None:
    good = give(root, rating="up", question="Who carried Tiny Tim?", documents=["two.txt"])
    corrected = give(root, rating="down", question="who carried  tiny Tim?", correction="Bob Cratchit")
    path = promote(root, good)
    for _ in range(2):
        promote(root, corrected)
        found = [(one.question, one.evidence, one.answers) for one in read_gold(path)]
        assert found == [("Who carried Tiny Tim?", ("two.txt",), ("Bob Cratchit",))]
    assert find_promoted(root) == {good, corrected}


def test_concurrent_feedback_loses_no_line(root: Root) -> None:
    def write(number: int) -> None:
        for one in range(20):
            give(root, rating="up", question=f"{number} {one} \n and more", answer="x" * 5_000)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({one.id for one in read_feedback(root.path)}) == 80


def test_a_damaged_line_is_named_and_a_full_file_takes_no_more(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    give(root, rating="up", question="A?")
    monkeypatch.setattr(feedback_module, "MAX_BYTES", 10)
    with pytest.raises(PipelineError, match="takes no more"):
        give(root, rating="up", question="B?")
    with (root.path / "feedback.jsonl").open("a") as file:
        file.write('{"id": 1')
    with pytest.raises(PipelineError, match="line 2: damaged"):
        read_feedback(root.path)
