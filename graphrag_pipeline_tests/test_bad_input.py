"""Bad input end to end: a correct index, or one line that names the file and the remedy; good work is kept."""

from __future__ import annotations

import codecs
import io
import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphrag_pipeline.defs.index_runs.index_run import run_index
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline_tests.support.command_line import (
    ONE_BUCKET,
    TIMEOUT_S,
    WITHOUT_ROOT_RIGHTS,
    Call,
    environment,
    mount_namespace,
    run,
)
from graphrag_pipeline_tests.support.dagster.killed_runs import index_at_once
from graphrag_pipeline_tests.support.paths import TEST_DATA
from graphrag_pipeline_tests.support.roots import (
    CAROL,
    build_tables,
    contract_bytes,
    indexed_root,
    make_root,
    put,
    table_bytes,
)
from graphrag_pipeline_tests.support.thoroughness import repetitions

WAY_OUT = "free disk space or fix the permissions, then run again. Finished work is kept."


@pytest.fixture(autouse=True)
def _own_dagster_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root that was indexed once; copy it before changing it."""
    root = indexed_root(tmp_path_factory.mktemp("indexed") / "root", settings=ONE_BUCKET)
    return root.path


@pytest.fixture
def root(indexed: Path, tmp_path: Path) -> Root:
    shutil.copytree(indexed, tmp_path / "root")
    return Root(tmp_path / "root")


def assert_one_line(text: str) -> None:
    assert text.count("\n") == 1 and text.endswith("\n") and "Traceback" not in text, text


def assert_equals_undisturbed(root: Root, folder: Path) -> None:
    """Assert that every table equals that of an undisturbed index."""
    undisturbed = make_root(folder / "undisturbed", {}, ONE_BUCKET)
    shutil.copytree(root.input_folder, undisturbed.input_folder, dirs_exist_ok=True)
    build_tables(undisturbed)
    assert table_bytes(root) == table_bytes(undisturbed)


# ------------------------------------------------------------------------------------------------------------ documents

SENTENCE = "They say that Scrooge met Bob Cratchit in the café. "
NAMES = ["with space.txt", "it's \"quoted\".txt", "new\nline.txt", "emoji 👩\u200d👧.txt", "x') OR ('1'='1.txt",
         "-rf.txt", "a..%2f..%2fb.txt", "a" * 240 + ".txt", "back\\slash.txt"]  # fmt: skip


def _parquet(rows: list[dict[str, object]]) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), buffer)
    return buffer.getvalue()


GOOD: dict[str, bytes] = {
    **{name: text.encode() for name, text in CAROL.items()},
    **{f"names/{name}": f"They say that Belle saw comet {number}.".encode() for number, name in enumerate(NAMES)},
    "twin_1.txt": SENTENCE.encode(),  # the same text twice
    "twin_2.txt": SENTENCE.encode(),
    "folder/one.txt": b"Fred met Scrooge's nephew.",  # the base name of another
    "utf16.txt": codecs.BOM_UTF16_LE + SENTENCE.encode("utf-16-le"),
    "utf8_bom.txt": codecs.BOM_UTF8 + SENTENCE.encode(),
    "stray_nul.txt": SENTENCE.encode() + b" Belle\x00",
    "latin1.txt": SENTENCE.encode("latin-1"),
    "crlf.md": SENTENCE.replace(". ", ".\r\n").encode(),
    "one_line.txt": SENTENCE.encode() * repetitions(1_300, thorough=3_000),  # 70 or 160 kB without a line break
}
BAD: dict[str, tuple[bytes, str]] = {
    "empty.txt": (b"", "empty"),
    "blank.md": (b" \n\t\n", "empty"),
    "nul.txt": (b"Scrooge\x00Marley\x00\x00", "binary file (NUL byte at offset 7); remove or exclude it"),
    "image.txt": (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256)), "binary file"),
    "film.mp4": (b"\x00\x01", "unsupported file type .mp4"),
    "Makefile": (b"all:", "unsupported file type"),
    "broken.json": (b"{", "not valid JSON"),
    "header.csv": (b"id,text\n", "empty"),
    "cut.parquet": (_parquet([{"id": "1", "text": SENTENCE}])[:-6], "not a readable Parquet file"),
}
if find_spec("markitdown"):  # the documents extra
    BAD["password.pdf"] = ((TEST_DATA / "password.pdf").read_bytes(), "has a password; save a copy without one")
ROWS: dict[str, tuple[bytes, int, list[str]]] = {
    "rows.csv": (f"id,text\n1,{SENTENCE}\n\n2,\n1,{SENTENCE}\n".encode(), 1,
                 ["row 2 (line 4): empty", "row 3 (line 5): id '1' is already"]),
    "rows.jsonl": (
        f'{{"id": 1, "text": "{SENTENCE}"}}\n\nnot json\n{{"id": 1, "text": "x"}}\n{{"id": 2}}\n'.encode(),
        1,
        ["line 3: not valid JSON", "line 4: id '1' is already", "line 5: empty"],
    ),
    "rows.json": (json.dumps([{"id": 1, "text": SENTENCE}, 7, {"id": 2, "text": {"a": 1}}]).encode(), 1,
                  ["row 2: expected a JSON object", "row 3: 'text' holds no text"]),
    "rows.parquet": (_parquet([{"id": 1, "text": SENTENCE}, {"id": 1, "text": "x"}, {"id": 2, "text": None}]), 1,
                     ["row 2: id '1' is already", "row 3: empty"]),
}  # fmt: skip
"""Structured files: content, readable rows, and how the problems of the others start."""


def _write_everything(folder: Path) -> dict[str, str]:
    """Good and bad documents together; returns how the problem of each bad path starts."""
    contents = GOOD | {name: data for name, (data, *_) in (BAD | ROWS).items()}
    for name, data in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    problems = {name: problem for name, (_, problem) in BAD.items()}
    os.mkfifo(folder / "pipe.txt")
    (folder / "closed.txt").write_text(SENTENCE)
    (folder / "closed.txt").chmod(0)
    (folder / "closed").mkdir()
    (folder / "closed").chmod(0)
    links = {"loop.txt": "loop.txt", "nowhere.txt": "gone.txt", "up": "..", "out.txt": "../settings.yaml"}
    for name, target in links.items():
        (folder / name).symlink_to(target)
    return problems | {
        "pipe.txt": "not a regular file (a pipe, socket or device); remove or exclude it",
        "closed.txt": "cannot be read (Permission denied); fix its permissions",
        "closed/": "this folder cannot be listed (Permission denied); fix its permissions",
        "loop.txt": "symbolic link loop; remove it",
        "nowhere.txt": "symbolic link to nothing; remove it or restore its target",
        "up": "symbolic link out of the input folder",
        "out.txt": "symbolic link out of the input folder",
    }


def test_bad_documents_stop_no_other_and_are_listed_with_their_reasons(tmp_path: Path, call: Call) -> None:
    root = make_root(tmp_path / "root", {}, ONE_BUCKET)
    expected = _write_everything(root.input_folder)
    odd = {"document_id": "Odd rows", "type": "footer", "page": "iv", "text": SENTENCE}
    (root.input_folder / "chunks.jsonl").write_text(json.dumps(odd))
    problems_of_rows = [(name, problem) for name, (_, _, problems) in ROWS.items() for problem in problems]
    try:
        result = run("index", "--root", root.path, prefix=WITHOUT_ROOT_RIGHTS)
        status = run("status", "--json", "--root", root.path, prefix=WITHOUT_ROOT_RIGHTS)
    finally:
        (root.input_folder / "closed").chmod(0o755)
    assert result.returncode == 0, result.stderr
    n_good = 1 + len(GOOD) + sum(n_rows for _, n_rows, _ in ROWS.values())
    assert result.stdout.startswith(f"{n_good} documents: ")
    assert "Traceback" not in result.stderr
    assert result.stderr.count("not read: ") == len(expected) + len(problems_of_rows)
    note = "document 'Odd rows': line 1: type 'footer' is not known, read as a paragraph; "
    note += "line 1: page 'iv' is no whole number, read as unknown"
    assert f"\nnote: chunks.jsonl: {note}\n" in result.stderr

    snapshot = root.snapshots.open()
    titles = snapshot.table("documents")["title"].to_pylist()
    expected_titles = [*map(_title, GOOD), *["rows 1"] * len(ROWS), "Odd rows"]
    assert sorted(titles) == sorted(expected_titles) and len(titles) == n_good
    statement = "SELECT path, problem FROM stage_corpus_manifest WHERE problem IS NOT NULL"
    listed = json.loads(call("sql", statement, "--json", "--root", root.path).out)
    assert len(listed) == len(expected) + len(problems_of_rows)
    for path, problem in [*expected.items(), *problems_of_rows]:
        assert any(row["path"] == path and row["problem"].startswith(problem) for row in listed), (path, problem)
    problems, notes = (json.loads(status.stdout)[name] for name in ("problems", "notes"))
    guessed = "encoding guessed as cp1252; if letters are wrong, set `input.encoding`, or save the file as UTF-8"
    assert notes == [{"path": "chunks.jsonl", "note": note}, {"path": "latin1.txt", "note": guessed}]
    assert json.loads(status.stdout)["documents"] == n_good
    assert problems == sorted(listed, key=lambda row: (row["path"], row["problem"]))
    with GraphIndex.open(root.path) as index:
        assert "Cratchit" in index.search("Who met Scrooge in the café?").answer
        cited = index.search("Who saw comet 1?", method="basic", top_k=30, context_only=True).context.text_units
    assert {_title(f"names/{name}") for name in NAMES} <= {unit.document_title for unit in cited}


def _title(name: str) -> str:
    """A file is titled by its name, in which a backslash is doubled and a line feed written out, or by its heading."""
    return "The Ball" if name == "three.md" else Path(name).stem.replace("\\", "\\\\").replace("\n", "\\u000a")


def test_an_empty_folder_is_an_error_that_names_it(tmp_path: Path, call: Call) -> None:
    result = call("index", "--root", make_root(tmp_path / "root", {}).path)
    assert result.status == 1 and result.out == ""
    assert_one_line(result.err)
    assert f"{tmp_path / 'root' / 'input'}: no readable documents; put txt, md," in result.err


def test_a_folder_of_bad_documents_alone_lists_them(tmp_path: Path) -> None:
    root = make_root(tmp_path / "root", {f"{number:02d}.txt": "" for number in range(30)})
    with pytest.raises(PipelineError, match=r"no readable documents") as refused:
        run_index(root)
    lines = str(refused.value).splitlines()
    assert lines[1] == "  00.txt: empty" and lines[-1] == "  and 10 more"


def test_a_folder_that_lost_its_documents_does_not_unpublish_the_index(root: Root) -> None:
    published = root.snapshots.current()
    for file in root.input_folder.iterdir():
        file.unlink()
    with pytest.raises(PipelineError, match=r"no readable documents; .*; the published index stays unchanged"):
        run_index(root)
    assert root.snapshots.current() == published


# ------------------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"text_units: [", ["not valid YAML"]),
        (b"\tsize: 1", ["not valid YAML"]),
        (b"- a\n", ["must hold sections"]),
        (b"\xff\xfe\x00", ["UTF-8"]),
        (b"text_units:\n  sise: 600\n", ["unknown key 'text_units.sise'", "did you mean 'size'"]),
        (b"text_unit:\n  size: 600\n", ["unknown section 'text_unit'", "did you mean 'text_units'"]),
        (b"text_units:\n  size: many\n", ["text_units.size", "many"]),
        (b"text_units: 600\n", ["text_units", "600"]),
        (b"storage:\n  n_buckets: 2\n", ["storage.n_buckets is 2", "built with 1"]),
    ],
)
def test_broken_settings_are_an_error_that_names_the_file_and_the_key(
    root: Root, content: bytes, words: list[str]
) -> None:
    (root.path / "settings.yaml").write_bytes(content)
    with pytest.raises(PipelineError) as refused:
        run_index(root)
    assert "settings.yaml" in str(refused.value) or "storage.n_buckets" in str(refused.value)
    assert all(word in str(refused.value) for word in words), refused.value


def test_broken_settings_are_one_line_of_the_command(root: Root, call: Call) -> None:
    (root.path / "settings.yaml").write_text("text_units:\n  sise: 600\n")
    result = call("index", "--root", root.path)
    assert (result.status, result.out) == (1, "")
    assert_one_line(result.err)
    assert "did you mean 'size'?" in result.err


# ----------------------------------------------------------------------------------------------------------------- disk


def test_a_read_only_root_answers_with_a_warning(root: Root) -> None:
    put(root.path, "two.txt", CAROL["two.txt"] + " They say that Marley pitied Tiny Tim.")
    published = root.snapshots.current()
    folders = [folder for folder, _, _ in os.walk(root.path)]
    files = [file for file in root.path.rglob("*") if file.is_file()]
    for path in [*files, *map(Path, folders)]:
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        refused = run("index", "--root", root.path, prefix=WITHOUT_ROOT_RIGHTS)
        output = run("status", "--root", root.path, prefix=WITHOUT_ROOT_RIGHTS)
        answered = run("query", "Who is Bob Cratchit?", "--root", root.path, prefix=WITHOUT_ROOT_RIGHTS)
        served = run("dev", "--root", root.path, "--port", "1", prefix=WITHOUT_ROOT_RIGHTS)
    finally:
        for path in [*map(Path, folders), *files]:
            path.chmod(path.stat().st_mode | 0o700)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert_one_line(refused.stderr)
    assert str(root.path) in refused.stderr and f"cannot be written (Permission denied); {WAY_OUT}" in refused.stderr
    assert output.returncode == 0 and "stale corpus_manifest" in output.stdout
    assert answered.returncode == 0 and "[1]" in answered.stdout
    assert served.returncode == 1
    assert root.snapshots.current() == published


FULL_DISK = """
set -eu
mount -t tmpfs -o size=80k none "$1"
cp -R "$2"/input "$2"/settings.yaml "$1"
DAGSTER_HOME="$HOME" "$3" -m graphrag_pipeline index --root "$1" >"$2"/out.1 2>"$2"/err.1 && exit 91
mount -o remount,size=300k "$1"
"$3" -m graphrag_pipeline index --root "$1" >"$2"/out.2 2>"$2"/err.2 && exit 92
cp -R "$1" "$2"/left
"""
"""A disk that is full for the store, then for Dagster's records; what it has is then copied to one with space."""


def test_a_full_disk_is_named_and_once_there_is_space_the_index_is_the_same(
    tmp_path: Path, indexed: Path, call: Call
) -> None:
    namespace = mount_namespace()
    if not namespace:
        pytest.skip("no mount namespace on this machine: unshare --mount is refused")
    root, mount = make_root(tmp_path / "root", settings=ONE_BUCKET), tmp_path / "mount"
    mount.mkdir()
    script = [*namespace, "bash", "-c", FULL_DISK, "full_disk", mount, root.path, sys.executable]
    result = subprocess.run(
        list(map(str, script)),
        env=environment(HOME=str(tmp_path / "home")),
        capture_output=True,
        text=True,
        timeout=2 * TIMEOUT_S,
        check=False,
    )
    errors = {number: (root.path / f"err.{number}").read_text() for number in (1, 2)}
    assert result.returncode == 0, (result, errors)
    assert_one_line(errors[1])
    assert f"`{mount}/" in errors[1] and f"cannot be written (No space left on device); {WAY_OUT}" in errors[1]
    assert "Traceback" not in errors[2], "Dagster may add lines"
    last = errors[2].splitlines()[-1]
    assert last.startswith(f"error: `{mount}/dagster/") and "cannot be written (No space left on device); " in last
    assert WAY_OUT in last
    repaired = call("index", "--root", root.path / "left")
    assert (repaired.status, repaired.err) == (0, "")
    assert table_bytes(Root(root.path / "left")) == table_bytes(Root(indexed))


# ------------------------------------------------------------------------------------------------- stops and neighbours

STOPPED_INDEX = """
import os, signal, sys
from graphrag_pipeline import cli

sent, moment = getattr(signal, sys.argv.pop(1)), sys.argv.pop(1)
real_replace = os.replace

def signalling_replace(source, target):
    real_replace(source, target)
    if moment in str(target):
        os.kill(os.getpid(), sent)

os.replace = signalling_replace
cli.main()
"""


@pytest.mark.parametrize(
    ("sent", "moment"),
    [pytest.param("SIGINT", "tables/text_units", marks=pytest.mark.thorough), ("SIGTERM", "snapshots/vectors")],
)
def test_a_stopped_index_keeps_the_snapshot_and_the_next_one_finishes(
    root: Root, tmp_path: Path, sent: str, moment: str
) -> None:
    published, contents = root.snapshots.current(), contract_bytes(root)
    put(root.path, "two.txt", CAROL["two.txt"] + " They say that Marley pitied Tiny Tim.")
    program = [sys.executable, "-c", STOPPED_INDEX, sent, moment, "index", "--root", str(root.path)]
    stopped = subprocess.run(program, env=environment(), capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert (stopped.returncode, stopped.stdout) == (130, ""), stopped.stderr
    assert_one_line(stopped.stderr)
    assert stopped.stderr.startswith("interrupted: finished work is kept; run `graphrag-pipeline index` again")
    assert root.snapshots.current() == published and contract_bytes(root) == contents
    with GraphIndex.open(root.path) as index:
        assert "Cratchit" in index.search("Who is Bob Cratchit?").answer
    with open_instance(root) as instance:
        assert {run.status.value for run in instance.get_runs()} <= {"SUCCESS", "CANCELED", "FAILURE"}, (
            "no process runs on"
        )
    run_index(root)
    assert root.snapshots.current() != published
    assert_equals_undisturbed(root, tmp_path)


def test_two_indexes_at_once_do_the_work_once(root: Root, tmp_path: Path) -> None:
    put(root.path, "four.txt", "They say that Scrooge saw the fog in London.")
    both = index_at_once(root.path, root.path)
    assert [each.status for each in both] == [0, 0], both
    assert sorted("nothing changed" in each.out for each in both) == [False, True]
    assert all(not each.err or each.err.endswith("another `index` is running; waiting for it\n") for each in both)
    assert_equals_undisturbed(root, tmp_path)


def test_a_damaged_pointer_is_published_again(root: Root, call: Call) -> None:
    published = root.snapshots.current()
    (root.path / "snapshots" / "current.json").write_text('{"snap')
    refused = call("query", "Who is Scrooge?", "--root", root.path)
    assert refused.status == 1 and "damaged; run `graphrag-pipeline index`" in refused.err
    assert run_index(root).ran == [], "the pointer is made again from its copy"
    assert root.snapshots.current() == published


def test_the_permissions_of_a_root_follow_the_umask(indexed: Path) -> None:
    umask = os.umask(0)
    os.umask(umask)
    files = [path for path in indexed.rglob("*") if path.is_file() and "dagster" not in path.parts]
    assert [path for path in files if path.stat().st_mode & 0o444 & ~umask != 0o444 & ~umask] == []


def test_many_tiny_files_are_indexed(tmp_path: Path) -> None:
    n_files = repetitions(40, thorough=10_000)
    root = make_root(tmp_path / "root", {}, ONE_BUCKET)
    for number in range(n_files):
        (root.input_folder / f"{number:05d}.txt").write_text(f"{number} times they said that Scrooge met Marley.")
    build_tables(root, ALL_STAGES)
    snapshot = root.snapshots.open()
    assert snapshot.n_rows("documents") == snapshot.n_rows("text_units") == n_files
    titles = snapshot.table("entities")["title"].to_pylist()
    assert {"SCROOGE", "MARLEY"} <= set(titles) and len(titles) < 10
    assert build_tables(root, ALL_STAGES) == []
