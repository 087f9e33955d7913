"""The commands about snapshots and forgetting, in the order in which the operations guide shows them, and alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline_tests.support.command_line import Outcome, assert_one_line_error, in_terminal
from graphrag_pipeline_tests.support.documentation.doc_pages import find_sequence
from graphrag_pipeline_tests.support.roots import put
from graphrag_pipeline_tests.support.two_snapshots import _indexed_twice, first_of, root

__all__ = ["_indexed_twice", "root"]

Call = Callable[..., Outcome]


def shown_commands() -> list[list[str]]:
    """The words of each command of the guide's sequence, without comments."""
    return [line.partition("#")[0].split() for line in find_sequence("snapshots")]


@pytest.mark.thorough
def test_the_commands_of_the_guide_work_in_their_order(root: Root, call: Call) -> None:
    put(root.path, "three.md", "At the ball old Fezziwig danced with Mrs. Fezziwig.")
    assert call("--root", root.path, "index").status == 0
    old, _, new = root.snapshots.ids()
    named = {"OLD": old, "NEW": new, "my_root": str(root.path)}
    outcomes: dict[str, Outcome] = {}
    for program, *words in shown_commands():
        words = [named.get(word, word.replace("my_root", str(root.path))) for word in words]
        if program == "rm":
            Path(words[0]).unlink()
            continue
        outcome = call(*words)
        assert outcome.status == 0, (words, outcome)
        outcomes.setdefault(" ".join(words[2:4]), outcome)
    assert "published" in outcomes["snapshots list"].out
    assert "document edited: three.md" in outcomes["snapshots diff"].out
    assert outcomes["snapshots rollback"].out.startswith(f"published snapshot {old}\n")
    waits = f"snapshot {old} is pinned: run `graphrag-pipeline snapshots unpin` to publish newer ones\n"
    assert waits + f"candidate {new} is not published because of the pin\n" in outcomes["index"].out
    assert waits in outcomes["status"].out
    assert "forgot three.md" in outcomes["forget three.md"].out
    assert root.snapshots.open().n_rows("documents") == 2
    assert root.snapshots.pinned() is None


def test_the_json_of_the_list_marks_published_pinned_and_imported_snapshots(root: Root, call: Call) -> None:
    first, second = first_of(root), root.snapshots.current()
    call("snapshots", "rollback", first[:6], "--root", root.path)
    newest, oldest = json.loads(call("snapshots", "list", "--json", "--root", root.path).out)
    assert (newest["id"], newest["is_published"], newest["is_pinned"]) == (second, False, False)
    assert (oldest["id"], oldest["is_published"], oldest["is_pinned"]) == (first, True, True)
    assert oldest["created"] == "2001-09-09T01:46:40+00:00"
    assert oldest["rows"]["documents"] == 3
    assert not oldest["is_imported"]
    assert (newest["is_waiting"], newest["is_checked"], newest["refusal"]) == (True, True, "")
    waiting, line = call("snapshots", "list", "--root", root.path).out.splitlines()
    assert waiting.endswith(" waiting")
    assert line.startswith(f"{first}  2001-09-09T01:46:40+00:00  3 documents, ")
    assert line.endswith(" published pinned")
    shown = call("snapshots", "show", first, "--root", root.path).out
    assert "documents: 3 rows\n" in shown and "pinned: True\n" in shown


def test_index_succeeds_while_a_snapshot_is_pinned(root: Root, call: Call) -> None:
    first = first_of(root)
    call("snapshots", "rollback", first, "--root", root.path)
    put(root.path, "four.txt", "They say that Scrooge met Fezziwig.")
    outcome = call("index", "--root", root.path)
    assert outcome.status == 0
    assert outcome.out.startswith("3 documents: ")
    assert f"published snapshot {first}\n" in outcome.out
    values = json.loads(call("status", "--json", "--root", root.path).out)
    assert (values["snapshot"], values["pinned"], values["stale"]) == (first, first, [])
    assert f"candidate {values['waiting']} is not published because of the pin\n" in outcome.out


def test_an_emptied_input_folder_is_refused_unless_allowed(root: Root, call: Call) -> None:
    published = root.snapshots.current()
    for file in (root.path / "input").iterdir():
        file.unlink()
    assert_one_line_error(call("index", "--root", root.path), "no readable documents", "index --allow-empty")
    assert root.snapshots.current() == published
    assert call("index", "--allow-empty", "--root", root.path).status == 0
    assert root.snapshots.open().n_rows("documents") == 0
    assert call("forget", "one.txt", "--root", root.path).status == 0
    assert call("query", "Who is Scrooge?", "--root", root.path).status == 0


def test_prune_lists_first_and_then_removes(root: Root, call: Call) -> None:
    first = first_of(root)
    options = ("--keep", "1", "--grace-hours", "0", "--root", root.path)
    output = json.loads(call("snapshots", "prune", "--dry-run", "--json", *options).out)
    assert output["snapshots"] == [first]
    done = call("snapshots", "prune", *options).out
    assert f"removed snapshot {first}\n" in done
    assert all(f"removed {path}\n" in done for path in output["paths"])
    assert_one_line_error(call("snapshots", "show", first, "--root", root.path), "there is no such snapshot")


def test_the_start_of_an_id_is_enough_and_an_ambiguous_one_names_both(root: Root, call: Call) -> None:
    first, store = first_of(root), root.snapshots
    traced = json.loads(call("trace", "Sources:0", "--snapshot", first[:7], "--json", "--root", root.path).out)
    assert traced["snapshot"] == first and traced["nodes"]
    twin = first[:4] + "0123456789ab"
    shutil.copy(store.path_of(first), store.path_of(twin))
    for words in (("trace", "Sources:0", "--snapshot"), ("snapshots", "show"), ("query", "Who?", "--snapshot")):
        output = call("--root", root.path, *words, first[:4])
        assert_one_line_error(output, f"'{first[:4]}': 2 snapshots", first, twin, "snapshots list")


def test_the_json_of_an_index_names_the_stages_run_and_the_published_snapshot(root: Root, call: Call) -> None:
    put(root.path, "four.txt", "They say that Scrooge met Fezziwig.")
    put(root.path, "broken.json", "{")
    made = json.loads(call("index", "--json", "--root", root.path).out)
    assert made["snapshot"] == root.snapshots.current() and made["n_documents"] == 3
    assert ["graph", "all"] in made["ran"] and [path for path, _ in made["problems"]] == ["broken.json"]
    assert made["rows"]["text_units"] == 3 and (made["pinned"], made["waiting"]) == (None, None)
    assert json.loads(call("index", "--json", "--root", root.path).out)["ran"] == []


def test_forget_offers_the_nearest_names_and_removes_nothing_until_it_knows_which(root: Root, call: Call) -> None:
    snapshots = root.snapshots.ids()
    assert_one_line_error(call("--root", root.path, "forget", "thre.md"), "Nothing was removed. Perhaps", "'three.md'")
    words = ("--root", root.path, "forget", "thre.md")
    none = in_terminal(200, *words, typed="0\n")
    assert "1  three.md" in none and "Which do you mean?" in none and "Aborted" in none
    assert root.snapshots.ids() == snapshots
    none = in_terminal(200, *words, "--pruned", typed="0\nn\n")
    assert "Remove all replies that the present index does not need?" in none and "Aborted" in none
    assert root.snapshots.ids() == snapshots
    assert_one_line_error(call(*words, "--pruned"), "Nothing was removed", "--yes")
    assert call(*words, "--pruned", "--yes").status == 0 and root.snapshots.ids() == snapshots
    assert "forgot three.md" in in_terminal(200, *words, typed="1\n")
    assert root.snapshots.ids() != snapshots
