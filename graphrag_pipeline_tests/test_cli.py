"""The commands, their output and their exit status, mostly through real processes."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.selection.strategies import STRATEGIES
from graphrag_pipeline_tests.support.command_line import (
    ONE_BUCKET,
    TIMEOUT_S,
    Call,
    Outcome,
    assert_one_line_error,
    environment,
    run,
    started,
)
from graphrag_pipeline_tests.support.dagster.live_dagster import wait_until
from graphrag_pipeline_tests.support.paths import MICROSOFT_INDEX
from graphrag_pipeline_tests.support.roots import make_root
from graphrag_pipeline_tests.support.thoroughness import usually

IMPORTED = MICROSOFT_INDEX
QUESTION = "Who is Bob Cratchit?"


@pytest.fixture(scope="module")
def first_index(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A root indexed by a command in a terminal, and the output in the terminal."""
    root = make_root(tmp_path_factory.mktemp("cli") / "root", settings=ONE_BUCKET).path
    program = [sys.executable, "-m", "graphrag_pipeline", "index", "--root", str(root)]
    ours, theirs = pty.openpty()
    variables = environment(TERM="xterm-256color", COLUMNS="100")
    with started(program, stdin=theirs, stdout=theirs, stderr=theirs, env=variables) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                data = os.read(ours, 65536)
            except OSError:  # the terminal closed with its last program
                break
            if not data:
                break
            shown += data
        assert process.wait(TIMEOUT_S) == 0, shown.decode()
    os.close(ours)
    return root, shown.decode()


@pytest.fixture(scope="module")
def indexed(first_index: tuple[Path, str]) -> Path:
    """An indexed root; read-only."""
    return first_index[0]


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with an imported index; read-only."""
    root = tmp_path_factory.mktemp("imported") / "root"
    result = run("import", IMPORTED, "--root", root)
    assert result.returncode == 0, result.stderr
    assert "repaired: 43 relationships" in result.stdout
    assert re.search(r"561 entities, .*\npublished snapshot [0-9a-f]{16}\n$", result.stdout)
    return root


# ---------------------------------------------------------------------------------------------------------------- roots


def test_a_project_from_nothing_to_an_answer(tmp_path: Path, first_index: tuple[Path, str], call: Call) -> None:
    made = call("init", tmp_path / "new")
    assert made.status == 0 and f"created {tmp_path / 'new' / 'settings.yaml'}\n" in made.out
    assert made.out.endswith(f"then run: graphrag-pipeline --root {tmp_path / 'new'} index\n")
    assert (tmp_path / "new" / "input").is_dir()
    again = call("index", "--root", first_index[0])
    assert again.status == 0 and again.err == ""
    assert re.fullmatch(r"3 documents: nothing changed\npublished snapshot [0-9a-f]{16}\n", again.out)
    answer = call("query", QUESTION, "--root", first_index[0])
    assert answer.status == 0 and "[1]" in answer.out and answer.err == ""


def test_init_keeps_existing_files(tmp_path: Path, call: Call) -> None:
    root = make_root(tmp_path / "root", settings=ONE_BUCKET + "# mine\n").path
    (root / ".gitignore").write_text("mine")
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    outcome = call("init", root)
    assert outcome.status == 0 and "made" not in outcome.out
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_init_takes_the_directory_once_as_argument_or_as_root(tmp_path: Path, call: Call) -> None:
    for number, words in enumerate((("--root", "{}", "init"), ("init", "--root", "{}"))):
        path = tmp_path / str(number)
        assert call(*(word.format(path) for word in words)).status == 0 and (path / "settings.yaml").is_file()
    for words in (("init",), ("--root", tmp_path / "a", "init", tmp_path / "b")):
        refused = call(*words)
        assert refused.status == 2 and "name one directory" in refused.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1"]


def test_init_of_a_path_that_is_not_a_folder_is_an_error(tmp_path: Path, call: Call) -> None:
    (tmp_path / "file").write_text("")
    assert_one_line_error(call("init", tmp_path / "file"), "is not a directory; pass a directory to `init`")
    assert_one_line_error(call("init", "/proc/nothing"), "cannot be written")


def test_the_root_is_named_before_or_after_the_command_or_found(
    indexed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_one_line_error(call("status"), "no root here", "init DIR", "--root DIR", "GRAPHRAG_ROOT")
    expected = call("--root", indexed, "status", "--json").out
    assert json.loads(expected)["root"] == str(indexed)
    assert call("status", "--json", "--root", indexed).out == expected
    assert call("--root", tmp_path, "status", "--root", indexed, "--json").out == expected, "the nearer one counts"
    monkeypatch.setenv("GRAPHRAG_ROOT", str(indexed))
    assert call("status", "--json").out == expected
    monkeypatch.delenv("GRAPHRAG_ROOT")
    shutil.copytree(indexed, tmp_path / "data")
    assert json.loads(call("status", "--json").out)["root"] == str(tmp_path / "data")
    monkeypatch.chdir(tmp_path / "data")
    assert json.loads(call("status", "--json").out)["root"] == str(tmp_path / "data")
    for words in (["status"], ["costs"], ["merges"], ["try", "reports"]):
        assert_one_line_error(call(*words, "--root", tmp_path), "settings.yaml` not found", "graphrag-pipeline init")


def test_another_number_of_buckets_is_reported_first(indexed: Path, tmp_path: Path, call: Call) -> None:
    root = shutil.copytree(indexed, tmp_path / "root")
    (root / "settings.yaml").write_text("storage: {n_buckets: 3}\n")
    problem = "storage.n_buckets is 3, but"
    assert_one_line_error(call("index", "--dry-run", "--root", root), problem, "set it back, or remove")
    output = call("status", "--root", root).out
    assert output.splitlines()[2].startswith(problem) and "stale" not in output and "fresh" not in output
    values = json.loads(call("status", "--json", "--root", root).out)
    assert values["layout_problem"].startswith(problem) and values["stale"] == []


@pytest.mark.parametrize("arguments", [["query", QUESTION], ["sql", "SELECT 1"]])
def test_before_any_index_the_next_step_is_shown(tmp_path: Path, call: Call, arguments: list[str]) -> None:
    root = make_root(tmp_path / "root").path
    assert_one_line_error(call(*arguments, "--root", root), "no published index", "graphrag-pipeline index")


def test_status_shows_stale_stages_and_unreadable_files(tmp_path: Path, indexed: Path, call: Call) -> None:
    fresh = call("status", "--root", indexed)
    assert fresh.status == 0 and fresh.out.endswith("3 documents, 0 not readable\neverything is fresh\n")
    root = tmp_path / "root"
    shutil.copytree(indexed, root)
    (root / "input" / "four.txt").write_text("They say that Scrooge slept.")
    (root / "input" / "five.txt").write_text("")
    output = call("status", "--root", root).out
    assert "4 documents, 1 not readable\n  five.txt: empty\n" in output
    assert "stale corpus_manifest 000: input folder changed\n" in output
    values = json.loads(call("status", "--root", root, "--json").out)
    assert values["problems"] == [{"path": "five.txt", "problem": "empty"}]
    reasons = {"reasons": ["input folder changed"], "changes": []}
    assert values["stale"][0] == {"stage": "corpus_manifest", "partition": "000", **reasons}
    assert (values["documents"], values["is_imported"], len(values["snapshot"])) == (4, False, 16)


# -------------------------------------------------------------------------------------------------------------- queries


@pytest.mark.parametrize("method", ["local", "global", "basic"])
def test_json_equals_the_result_of_the_library(indexed: Path, call: Call, method: str) -> None:
    printed = call("query", QUESTION, "--method", method, "--root", indexed, "--json")
    assert (printed.status, printed.err) == (0, "")
    with GraphIndex.open(indexed) as index:
        expected = index.search(QUESTION, method=method).to_dict()
    assert json.loads(printed.out) | {"seconds": 0} == json.loads(json.dumps(expected)) | {"seconds": 0}


def test_a_query_takes_a_strategy_options_and_context_only(indexed: Path, call: Call) -> None:
    arguments = ["query", QUESTION, "--strategy", "round_robin", "--option", "top_k_entities=1", "--context-only"]
    values = json.loads(call(*arguments, "--json", "--root", indexed).out)
    assert values["answer"] == "" and values["selection"]["strategy"] == "round_robin"
    assert len(values["context"]["entities"]) == 1
    assert "Bob Cratchit" in call(*arguments, "--root", indexed).out, "the context as a model reads it"


def test_a_global_query_says_how_reports_were_chosen(indexed: Path, call: Call) -> None:
    arguments = ["query", "What are the main themes?", "--method", "global", "--root", indexed]
    used = json.loads(call(*arguments, "--json").out)["selection"]["options_used"]
    n_kept = used["overview_roots"]["kept"]
    note = f"reports chosen by more than their ratings: overview roots ({n_kept} kept)\n"
    assert note in call(*arguments).err and n_kept > 0


def test_a_query_names_the_matched_entities_that_its_context_has_no_text_about(indexed: Path, call: Call) -> None:
    arguments = ["query", QUESTION, "--context-only", "--option", "max_context_tokens=100", "--root", indexed]
    unheard = json.loads(call(*arguments, "--json").out)["selection"]["unheard"]
    assert "BOB CRATCHIT" in unheard
    assert (
        f"The context has no text about {', '.join(unheard)}; see `local_search.max_context_tokens`"
        in call(*arguments).err
    )
    assert "no text about" not in call("query", QUESTION, "--context-only", "--root", indexed).err
    assert "`text_unit_share` and `excerpts`." in call(*arguments).err


@pytest.mark.parametrize(
    ("strategy", "options", "advice", "advised"),
    [
        (
            "depth_first",
            [],
            "for excerpts, set another strategy, or `packing: shared` with `excerpts: true`.",
            ["packing=shared", "excerpts=true"],
        ),
        ("round_robin", ["packing=strict"], "for excerpts, set `packing: shared`.", ["packing=shared"]),
    ],
)
def test_the_advice_for_unheard_entities_works_with_strict_packing(
    strategy: str, options: list[str], advice: str, advised: list[str], imported: Path, call: Call
) -> None:
    def ask(options: list[str], *flags: str) -> Outcome:
        given = [part for option in ("max_context_tokens=4000", *options) for part in ("--option", option)]
        return call(
            "query", "Who is Tim?", "--context-only", "--strategy", strategy, *given, *flags, "--root", imported
        )

    assert ask(options).err.rstrip().endswith(advice)
    assert json.loads(ask(advised, "--json").out)["selection"]["excerpts"] > 0


def test_explain_shows_the_picks_of_every_strategy(indexed: Path, call: Call) -> None:
    out = call("query", QUESTION, "--explain", "--strategy", "graph", "--root", indexed).out
    headings = [line.split(":")[0] for line in out.splitlines() if line.startswith("## ")]
    assert headings[0] == "## graph"
    assert sorted(headings) == sorted(f"## {strategy}" for strategy in STRATEGIES)
    values = json.loads(call("query", QUESTION, "--explain", "--json", "--root", indexed).out)
    assert values["picks"][0]["strategy"] == "balanced" and values["picks"][0]["place"] == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--method", "locall"], ["unknown search method 'locall'", "local, global, basic"]),
        (["--strategy", "first"], ["strategy", "round_robin"]),
        (["--option", "top_k=1"], ["unknown option 'top_k'", "top_k_entities"]),
        (["--option", "top_k_entities=some"], ["top_k_entities", "valid integer"]),
    ],
)
def test_an_unknown_query_option_is_named_with_the_known_ones(
    indexed: Path, call: Call, arguments: list[str], words: list[str]
) -> None:
    assert_one_line_error(call("query", QUESTION, *arguments, "--root", indexed), *words)


def test_an_empty_question_is_an_error(indexed: Path, call: Call) -> None:
    assert_one_line_error(call("query", "  ", "--root", indexed), "the question is empty")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["indx"],
        ["--nonsense"],
        ["query"],
        ["index", "--nonsense"],
        ["dev", "--port", "99999"],
        ["query", QUESTION, "--option", "top_k_entities"],
        ["query", QUESTION, "--option", "=1"],
        ["query", QUESTION, "--option", "method=local"],
        ["query", QUESTION, "--explain", "--method", "basic"],
    ],
)
def test_wrong_usage_is_status_2(indexed: Path, call: Call, arguments: list[str]) -> None:
    assert call("--root", indexed, *arguments).status == 2


def test_version_and_help(call: Call) -> None:
    assert re.fullmatch(r"graphrag-pipeline \d+\.\d+\.\d+\S*\n", call("--version").out)
    listed = call("--help")
    assert listed.status == 0
    for command in ("init", "index", "status", "query", "import", "sql", "dev"):
        assert command in listed.out and call(command, "-h").status == 0


# ------------------------------------------------------------------------------------------------------------------ sql


def test_sql_prints_rows_and_json(indexed: Path, call: Call) -> None:
    statement = "SELECT title, degree, NULL AS nothing FROM entities WHERE title = 'BOB CRATCHIT'"
    assert call("sql", statement, "--root", indexed).out.splitlines()[0].split() == ["title", "degree", "nothing"]
    rows = json.loads(call("sql", statement, "--root", indexed, "--json").out)
    assert [row["title"] for row in rows] == ["BOB CRATCHIT"] and rows[0]["nothing"] is None
    assert call("sql", "SELECT title FROM entities WHERE false", "--root", indexed).out == "title\nno rows\n"
    assert call("sql", "SELECT title FROM entities WHERE false", "--root", indexed, "--json").out == "[]\n"


def test_sql_sees_the_stage_tables(indexed: Path, call: Call) -> None:
    statement = "SELECT count(*) AS n FROM stage_documents"
    assert json.loads(call("sql", statement, "--root", indexed, "--json").out) == [{"n": 3}]


def test_sql_json_has_no_nan_and_keeps_columns_of_one_name(indexed: Path, call: Call) -> None:
    statement = "SELECT 'nan'::DOUBLE AS a, ['inf'::DOUBLE] AS a, DATE '2020-01-01' AS a_1"
    row = json.loads(call("sql", statement, "--root", indexed, "--json").out, parse_constant=pytest.fail)
    assert row == [{"a": None, "a_2": [None], "a_1": "2020-01-01"}]


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("CREATE TABLE x (a INT)", ["CREATE is not possible", "read-only", "SELECT"]),
        ("COPY entities TO '{folder}/out.csv'", ["COPY is not possible"]),
        ("EXPLAIN ANALYZE COPY entities TO '{folder}/out.csv'", ["disabled by configuration"]),
        ("ATTACH '{folder}/out.db'", ["ATTACH is not possible"]),
        ("SELECT * FROM read_text('{folder}/settings.yaml')", ["disabled by configuration"]),
        ("SELECT * FROM '{folder}/settings.yaml'", ["does not exist"]),
        ("SET enable_external_access = true", ["SET is not possible"]),
        ("INSTALL httpfs", ["is not possible"]),
        ("SELECT 1; SELECT 2", ["one SQL statement, found 2"]),
        ("", ["one SQL statement, found 0"]),
        ("SELEC 1", ["syntax error"]),
        ("SELECT * FROM entitys", ["Table with name entitys does not exist", "tables: ", "stage_documents"]),
        ("SELECT titel FROM entities", ["titel", "title"]),
    ],
)
def test_sql_only_reads_and_only_the_snapshot(
    indexed: Path, tmp_path: Path, call: Call, statement: str, words: list[str]
) -> None:
    shutil.copy(indexed / "settings.yaml", tmp_path)
    outcome = call("sql", statement.format(folder=tmp_path), "--root", indexed)
    assert outcome.status == 1 and outcome.out == "" and outcome.err.startswith("error: ")
    assert "Traceback" not in outcome.err and all(word in outcome.err for word in words), outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["settings.yaml"]


# ------------------------------------------------------------------------------------------------------------- imported


def test_an_imported_root_answers_and_is_shown_as_imported(imported: Path, call: Call) -> None:
    output = call("status", "--root", imported)
    assert output.status == 0 and "(imported;" in output.out and "stale" not in output.out
    values = json.loads(call("status", "--json", "--root", imported).out)
    assert values["is_imported"] is True and values["stale"] == []
    assert "[1]" in call("query", "Who is Scrooge?", "--root", imported).out


def test_an_imported_index_records_no_merges(imported: Path, call: Call) -> None:
    for words in (["merges"], ["merges", "--dry-run"]):
        assert_one_line_error(call(*words, "--root", imported), "holds an imported index", "does not record merges")


def test_index_does_not_replace_an_imported_index(imported: Path, tmp_path: Path, call: Call) -> None:
    root = tmp_path / "root"
    shutil.copytree(imported, root)
    (root / "input" / "one.txt").write_text("They say that Scrooge slept.")
    published = (root / "snapshots" / "current.json").read_bytes()
    assert_one_line_error(call("index", "--root", root), "holds an imported index", "another root")
    assert (root / "snapshots" / "current.json").read_bytes() == published


def test_an_import_needs_a_root_and_a_source(tmp_path: Path, indexed: Path, call: Call) -> None:
    assert_one_line_error(call("import", IMPORTED), "`import` needs `--root DIR`")
    assert_one_line_error(call("import", tmp_path, "--root", tmp_path / "root"), "have no GraphRAG index")
    assert_one_line_error(call("import", IMPORTED, "--root", indexed), "an index of its own documents")


# ------------------------------------------------------------------------------------------------------------ terminals


def test_a_terminal_sees_progress_and_then_the_result_alone(first_index: tuple[Path, str]) -> None:
    shown = first_index[1]
    frames = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).replace("\n", "\r").split("\r")
    assert any(re.search(r"━ +\d+/\d+ \d:\d\d:\d\d", frame) for frame in frames), "a bar with counts and time"
    assert any("index_snapshot" in frame for frame in frames)
    assert max(map(len, frames)) <= 100
    last = [frame for frame in frames if frame.strip()][-2:]
    assert last[0].startswith("3 documents: ") and last[1].startswith("published snapshot ")
    assert "\x1b[?25h" in shown, "the cursor is back"


@pytest.mark.thorough
def test_a_file_gets_plain_lines(indexed: Path) -> None:
    result = run("index", "--root", indexed, changes={"FORCE_COLOR": ""})
    assert "\x1b" not in result.stdout + result.stderr


@pytest.mark.parametrize("encoding", usually(["ascii", "latin-1"], "ascii"))
def test_a_terminal_without_utf8_gets_every_answer(indexed: Path, encoding: str) -> None:
    changes = {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0", "LC_ALL": "C"}
    statement = "SELECT '萧炎 – “É”' AS name"
    program = [sys.executable, "-m", "graphrag_pipeline", "sql", statement, "--root", str(indexed)]
    for more in ([], ["--json"]):
        shown = subprocess.run(
            [*program, *more], env=environment(**changes), capture_output=True, timeout=TIMEOUT_S, check=False
        )
        assert (shown.returncode, shown.stderr) == (0, b"")
        if more:
            assert json.loads(shown.stdout.decode("ascii")) == [{"name": "萧炎 – “É”"}]


def test_a_reader_that_stops_early_causes_no_error(indexed: Path) -> None:
    program = [sys.executable, "-m", "graphrag_pipeline", "sql", "--root", str(indexed)]
    statement = "SELECT repeat('x', 70) FROM range(100000)"
    with started([*program, statement], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().startswith(b"repeat")
        process.stdout.close()
        assert process.stderr.read() == b""


def test_undecodable_arguments_do_not_crash(indexed: Path) -> None:
    for arguments in (["status", "--root", b"/tmp/\xff"], ["sql", b"SELECT '\xff'", "--root", str(indexed)]):
        program = [sys.executable, "-m", "graphrag_pipeline", *arguments]
        result = subprocess.run(program, env=environment(), capture_output=True, timeout=TIMEOUT_S, check=False)
        assert b"Traceback" not in result.stderr


# ------------------------------------------------------------------------------------------------------------------ dev


def test_dev_on_a_port_in_use_is_an_error_at_once(indexed: Path, call: Call) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        assert_one_line_error(call("dev", "--root", indexed, "--port", port), f"port {port}", "--port")
    assert_one_line_error(call("dev", "--root", indexed, "--host", "no such host"), "--host")


def test_dev_serves_with_its_home_under_the_root_and_ends_with_ctrl_c(indexed: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    shutil.copytree(indexed, root)
    shutil.rmtree(root / "dagster")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    program = [sys.executable, "-m", "graphrag_pipeline", "dev", "--root", str(root), "--port", str(port)]
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen(
            program, env=environment(HOME=str(tmp_path)), stdout=log, stderr=log, start_new_session=True
        )
    try:
        info = _wait_for_server(f"http://127.0.0.1:{port}/server_info", process, tmp_path / "log")
        assert "dagster_webserver_version" in info
        wait_until(lambda: "BackfillDaemon" in (tmp_path / "log").read_text(), TIMEOUT_S)
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT_S) == 0
    finally:
        if process.poll() is None or _is_group(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(TIMEOUT_S)
    assert "enabled: false" in (root / "dagster" / "dagster.yaml").read_text()
    assert (root / "dagster" / "schedules").is_dir(), "the home that was used"
    assert not (tmp_path / ".dagster").exists() and not list(root.rglob("event.log")), "no telemetry"
    assert "Traceback" not in (tmp_path / "log").read_text() and "discouraged" not in (tmp_path / "log").read_text()


def _wait_for_server(url: str, process: subprocess.Popen[Any], log: Path) -> dict[str, Any]:
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=10) as reply:
                return json.loads(reply.read())
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"no server; its log: {log.read_text()[-2000:]}")


def _is_group(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
