"""A forgotten document is in no file of the root; `forget` is refused until it is deleted from the input."""

from __future__ import annotations

import io
import math
import os
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.inputs.source_records import document_id_of
from graphrag_pipeline.inspection.stage_trial import find_tried_stage, try_stage
from graphrag_pipeline.pipeline.forgetting import forget_document, render_forgotten
from graphrag_pipeline.pipeline.retention import prune
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.tuned_sets import write_set
from graphrag_pipeline.storage.snapshot_store import roll_back
from graphrag_pipeline_tests.model_server import ModelServer, running_model_server
from graphrag_pipeline_tests.support.models.model_roots import KEY, KEY_VARIABLE, TEXT, make_model_root
from graphrag_pipeline_tests.support.roots import (
    build_tables,
    built_root,
    contract_bytes,
    make_root,
    put,
    recluster,
    table_bytes,
)
from graphrag_pipeline_tests.support.thoroughness import repetitions, usually
from graphrag_pipeline_tests.support.tuned_sets import EMPTY_SET
from graphrag_pipeline_tests.support.two_snapshots import EVERYTHING, _indexed_twice, files_of, first_of, root

__all__ = ["_indexed_twice", "root"]

SECRET = "xanadupol"


def texts_on_disk(root: Root) -> Iterator[tuple[Path, str]]:
    """Yield (file, content in lower case) of every file that the product made in a root."""
    for folder in ("tables", "heads", "snapshots", "cache"):
        for path in (root.path / folder).rglob("*"):
            if path.is_file():
                yield path, _text_of(path).lower()


def _text_of(path: Path) -> str:
    if path.suffix == ".parquet":
        return str(pq.read_table(path).to_pylist())
    if path.suffix == ".arrow":
        return str(pa.ipc.open_file(io.BytesIO(path.read_bytes())).read_all().to_pylist())
    return path.read_bytes().decode("latin-1")


def files_that_say(root: Root, word: str) -> list[Path]:
    return [path for path, text in texts_on_disk(root) if word in text]


def test_no_file_holds_a_forgotten_document_and_the_index_is_untouched(root: Root) -> None:
    first, contents = first_of(root), (contract_bytes(root), table_bytes(root))
    assert files_that_say(root, "fezziwig")
    forgotten = forget_document(root, "three.md")
    assert files_that_say(root, "fezziwig") == []
    assert forgotten.documents == ("three.md",)
    assert forgotten.swept.snapshots == (first,)
    assert render_forgotten(forgotten)[0] == "forgot three.md"
    assert (contract_bytes(root), table_bytes(root)) == contents
    assert build_tables(root, EVERYTHING) == []
    with pytest.raises(PipelineError, match="no snapshot and no file of the index holds a document"):
        forget_document(root, "three.md")


def test_a_document_that_a_tuned_set_was_written_from_is_refused_until_the_set_is_deleted(root: Root) -> None:
    tuned = replace(EMPTY_SET, sample=(("unit", document_id_of("three.md")),))
    folder = write_set(root.path, tuned, {"extract_graph": "Fezziwig {input_text}"})
    with pytest.raises(PipelineError, match="is in the sample of the tuned set `empty`"):
        forget_document(root, "three.md")
    assert files_that_say(root, "fezziwig")
    shutil.rmtree(folder)
    forget_document(root, "three.md")
    assert files_that_say(root, "fezziwig") == []


def test_deleted_rows_are_rewritten_out_of_vectors_that_stay(tmp_path: Path) -> None:
    # Enough text units that the next folder of vectors is made from the last one by difference.
    names = [f"{first}{last}" for first in ("Bram", "Quill", "Ostr", "Wimble") for last in ("ton", "ford", "ander")]
    documents = {f"{name}.txt": f"They say that {name} met Scrooge in London." for name in names}
    root = built_root(tmp_path, {**documents, "secret.txt": "They say that Zaphodine met Scrooge."}, stages=EVERYTHING)
    (root.path / "input" / "secret.txt").unlink()
    build_tables(root, EVERYTHING)
    published = root.snapshots.current()
    forgotten = forget_document(root, "secret.txt")
    assert any(name.startswith("default-text_unit-text") for name in forgotten.rewritten)
    assert files_that_say(root, "zaphodine") == []
    assert root.snapshots.current() == published
    [(found, _)] = root.snapshots.open().vectors("default-text_unit-text").search_text("Quillford", 1)
    assert found in root.snapshots.open().table("text_units")["id"].to_pylist()


def test_a_record_of_a_file_is_forgotten_by_its_id(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    line = '{{"id": "{0}", "title": "t", "text": "They say that {1} slept."}}\n'
    put(root.path, "rows.jsonl", line.format("a", "Scrooge") + line.format("b", "Zaphodine"))
    build_tables(root, EVERYTHING)
    put(root.path, "rows.jsonl", line.format("a", "Scrooge"))
    build_tables(root, EVERYTHING)
    with pytest.raises(PipelineError, match="is still in"):
        forget_document(root, "rows.jsonl")
    assert forget_document(root, document_id_of("rows.jsonl", "b")).documents == ("rows.jsonl (b)",)
    assert files_that_say(root, "zaphodine") == []


def test_a_document_in_the_input_folder_is_refused_and_nothing_is_removed(root: Root) -> None:
    before = files_of(root)
    with pytest.raises(PipelineError, match=r"is still in .*input; remove it there"):
        forget_document(root, "one.txt")
    put(root.path, "three.md", "It came back.")
    with pytest.raises(PipelineError, match="is still in"):
        forget_document(root, "three.md")
    assert files_of(root) == before


def test_a_document_in_the_index_is_refused(root: Root) -> None:
    (root.path / "input" / "one.txt").unlink()
    with pytest.raises(PipelineError, match=r"is still in the index; run `graphrag-pipeline index`"):
        forget_document(root, "one.txt")


def test_a_document_in_a_pinned_snapshot_is_refused(root: Root) -> None:
    roll_back(root.snapshots, first_of(root))
    with pytest.raises(PipelineError, match="which is pinned; run `graphrag-pipeline snapshots unpin`"):
        forget_document(root, "three.md")


def test_a_document_in_an_open_snapshot_is_refused(root: Root) -> None:
    reader = root.snapshots.open(first_of(root))
    with pytest.raises(PipelineError, match="is open in another process"):
        forget_document(root, "three.md")
    assert reader.missing_parts() == []


def test_a_name_that_is_not_known_removes_nothing(root: Root) -> None:
    before = files_of(root)
    with pytest.raises(PipelineError, match=r"'thre\.md': no snapshot .* Nothing was removed"):
        forget_document(root, "thre.md")
    assert files_of(root) == before


# ---------------------------------------------------------------------------------------------------- replies of models


@pytest.fixture
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)


def stored_replies(root: Root) -> dict[str, str]:
    """Return the stage of every reply in the cache, by request key."""
    with sqlite3.connect(root.cache_folder / "responses.sqlite") as connection:
        return dict(connection.execute("SELECT request_key, stage FROM responses"))


def but_reports(replies: dict[str, str]) -> set[str]:
    """Return keys of replies that do not depend on communities, which continue the published ones."""
    return {key for key, stage in replies.items() if stage != "reports"}


def make_folding_root(path: Path, server: ModelServer) -> Root:
    """A root with model calls for conversations and partial summaries, which leave no row."""
    return make_model_root(
        path,
        server.base_url,
        n_articles=repetitions(3, thorough=6),
        extraction={"has_claims": True, "max_gleanings": 2},
        descriptions={"max_input_tokens": 100, "max_words": 10},
    )


@pytest.mark.usefixtures("_key")
def test_its_replies_are_deleted_and_no_other_is_paid_again(tmp_path: Path) -> None:
    with running_model_server() as server:
        never, root = (make_folding_root(tmp_path / name, server) for name in ("never", "root"))
        build_tables(never, EVERYTHING)
        articles = [path.read_text(encoding="utf-8") for path in sorted((root.path / "input").iterdir())]
        put(root.path, "secret.txt", "\n\n".join([TEXT, *articles]))
        build_tables(root, EVERYTHING)
        (root.path / "input" / "secret.txt").unlink()
        build_tables(root, EVERYTHING)
        before = stored_replies(root)

        forgotten = forget_document(root, "secret.txt")

        assert but_reports(stored_replies(root)) == but_reports(stored_replies(never))
        assert forgotten.n_replies == len(before) - len(stored_replies(root)) > 0
        assert forgotten.n_vectors
        recluster(root)
        assert stored_replies(root).keys() >= stored_replies(never).keys()
        n_calls, contents = server.count(), table_bytes(root)
        for folder in ("tables", "heads", "snapshots"):
            os.rename(root.path / folder, tmp_path / folder)
        build_tables(root, EVERYTHING)
        assert server.count() == n_calls
        assert table_bytes(root) == contents


@pytest.mark.usefixtures("_key")
@pytest.mark.parametrize("is_pruned", usually([False, True], True), ids=["tried", "tried and pruned"])
def test_replies_without_a_reference_are_deleted_too(tmp_path: Path, is_pruned: bool) -> None:
    """`try` and earlier prompts leave replies without a row; `prune` removes the rows of others."""
    with running_model_server() as server:
        root = make_model_root(tmp_path / "root", server.base_url, n_articles=2)
        put(root.path, "secret.txt", f"{SECRET.title()} Holdings sacked Ada Lovelace of {SECRET.title()} Holdings.\n")
        build_tables(root, EVERYTHING)
        assert files_that_say(root, SECRET)
        prompt = root.path / "prompts" / "extract_graph.txt"
        text = prompt.read_text(encoding="utf-8")
        prompt.write_text("Be brief.\n" + text, encoding="utf-8")
        try_stage(Root(root.path), find_tried_stage("extraction"), 20)
        prompt.write_text(text, encoding="utf-8")
        (root.path / "input" / "secret.txt").unlink()
        build_tables(root, EVERYTHING)
        if is_pruned:
            prune(root, 1, math.inf)
            before = stored_replies(root)
            with pytest.raises(PipelineError, match=r"Nothing was removed.* with --pruned"):
                forget_document(root, "secret.txt")
            assert stored_replies(root) == before
            forget_document(root, "secret.txt", is_pruned=True)
        else:
            forget_document(root, "secret.txt")
        with sqlite3.connect(root.cache_folder / "responses.sqlite") as connection:
            texts = [text for (text,) in connection.execute("SELECT text FROM responses")]
        assert texts and not any(SECRET in text.lower() for text in texts)
        assert not files_that_say(root, SECRET)
        n_calls = server.count()
        recluster(root)
        assert all(call.kind == "report" or call.kind == "embedding" for call in server.calls[n_calls:])
