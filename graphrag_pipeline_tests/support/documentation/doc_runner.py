"""Runs the blocks of a documentation page: commands, Python, SQL, settings, and the output that a page shows.

Commands of ours run in this process, which saves the second that a process takes to start; everything else runs in
bash. Keep out: reading pages (`doc_pages.py`), what a story starts with (`doc_setups.py`).
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import csv
import inspect
import io
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import yaml

from graphrag_pipeline import cli
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline_tests.support.command_line import TIMEOUT_S, environment
from graphrag_pipeline_tests.support.dagster.live_dagster import wait_until
from graphrag_pipeline_tests.support.documentation.doc_pages import PageBlock, Story

_SHELL_SIGNS = re.compile(r"[|&;<>$`(){}*~]")
_HERE_DOCUMENT = re.compile(r"<<-?\s*['\"]?(\w+)")
_OUTPUT_LIMIT = 4_000
_MODELS = {"chat_model": {"model": "any"}, "embedding_model": {"model": "any"}}
"""Models that a page names elsewhere, so that a shown section with `engine: model` is valid alone."""
_START_S = 180
_STOP_S = 20


class CommandEnd(NamedTuple):
    """How a command ended."""

    status: int
    output: str


class DocRunner:
    """Runs one story in a folder.

    Args:
        folder: an empty folder, or one with what the story's setups made; tools are put into `tools` beside it.
        variables: environment variables over the test's environment.
        values: what `{name}` in a replacement stands for.
        is_live: whether blocks marked `live` run, too.
    """

    def __init__(
        self, folder: Path, variables: Mapping[str, str], values: Mapping[str, str], is_live: bool = False
    ) -> None:
        self.folder = folder
        self.is_live = is_live
        self.skipped: list[str] = []
        self._place = folder
        self._values = {**values, "port": str(_free_port()), "other_port": str(_free_port())}
        self._tools = folder.parent / "tools"
        programs = _make_programs(self._tools)
        self._variables = environment(HOME=str(self._tools), **variables)
        self._variables["PATH"] = os.pathsep.join([str(programs), self._variables["PATH"]])
        self._namespace: dict[str, Any] = {"__name__": "__main__"}
        self._printed = ""
        self._background: list[subprocess.Popen[bytes]] = []

    def run(self, story: Story) -> None:
        """Run all blocks in their order.

        Raises:
            AssertionError: a block did not do what the page says; names page and line.
        """
        try:
            for block in story.blocks:
                words = story.replacements | block.replacements
                try:
                    self._name_snapshots()
                    self._run_block(block, _replace(block.text, words, self._values), words)
                except Exception as error:
                    raise AssertionError(f"{block.place}: {type(error).__name__}: {error}") from error
        finally:
            self._stop()

    def _run_block(self, block: PageBlock, text: str, words: Mapping[str, str]) -> None:
        if block.has("skip") or (block.has("live") and not self.is_live):
            self.skipped.append(f"{block.place}: {block.value('skip') or block.value('live')}")
            return
        if block.has("sequence"):
            return  # a test of its own
        if (target := block.value("write")) is not None:
            _check_form(block, text)
            path = self._place / target
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif (address := block.value("background")) is not None:
            self._start(text, _replace(address, words, self._values).format(**self._values))
        elif block.language == "bash":
            self._printed = "".join(self._run_command(block, command).output for command in split_commands(text))
        elif block.language == "console":
            self._run_console(block, text)
        elif block.language == "python":
            self._run_python(block, text)
        elif block.language == "sql":
            self._printed = self._run_command(block, f"graphrag-pipeline sql {shlex.quote(text.strip())}").output
        elif block.has("output"):
            assert_output(text, self._printed)
        else:
            _check_form(block, text)
            if block.has("apply"):
                self._apply(block, text)

    def _name_snapshots(self) -> None:
        """`{current}` and `{previous}`: the two newest snapshots of the story's first root."""
        roots = sorted(self.folder.glob("*/settings.yaml"))
        with self._entered():
            ids = Root(roots[0].parent).snapshots.ids() if roots else []
        self._values |= dict(zip(("current", "previous"), ids[::-1], strict=False))

    # -------------------------------------------------------------------------------------------------------- commands

    def _run_console(self, block: PageBlock, text: str) -> None:
        """Run the lines after `$ ` and compare what each prints with the lines below it."""
        command, shown = "", ""
        for line in [*text.splitlines(), "$ "]:
            if line.startswith("$ ") or line == "$":
                if command:
                    outcome = self._run_command(block, command)
                    assert_output(shown, outcome.output)
                command, shown = line[2:], ""
            elif command.endswith("\\") or (line.startswith("> ") and not shown):
                command += "\n" + line.removeprefix("> ")
            else:
                shown += line + "\n"

    def _run_command(self, block: PageBlock, command: str) -> CommandEnd:
        """Run a command; it must end as its comment says.

        Raises:
            AssertionError: it ends otherwise.
        """
        words = [] if self.is_live else _plain_words(command)
        outcome = self._run_ours(words[1:]) if words[:1] == ["graphrag-pipeline"] else self._run_shell(command)
        _, _, comment = command.partition("#")
        expected = int("exit status 1" in comment and " if " not in comment)
        if outcome.status != expected:
            raise AssertionError(f"exit status {outcome.status} of\n  {command}\n{outcome.output[-_OUTPUT_LIMIT:]}")
        return outcome

    def _run_ours(self, arguments: list[str]) -> CommandEnd:
        with self._entered(), contextlib.redirect_stdout(io.StringIO()) as output:
            before = sys.argv, signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
            sys.argv = ["graphrag-pipeline", *arguments]
            try:
                with contextlib.redirect_stderr(output):
                    cli.main()
            except SystemExit as end:
                status = int(end.code or 0)
            finally:
                sys.argv = before[0]
                signal.signal(signal.SIGTERM, before[1])
                signal.signal(signal.SIGINT, before[2])
        return CommandEnd(status, output.getvalue())

    def _run_shell(self, command: str) -> CommandEnd:
        """Run in bash; exported variables and the current folder last."""
        state = self._tools / "state"
        script = f"{command}\nstatus=$?\n{{ pwd; env -0; }} > {shlex.quote(str(state))}\nexit $status\n"
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", script],
            cwd=self._place,
            env=self._variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=TIMEOUT_S * (4 if self.is_live else 1),
            check=False,
        )
        if state.exists():
            place, _, variables = state.read_text(encoding="utf-8").partition("\n")
            self._place = Path(place)
            self._variables = dict(pair.split("=", 1) for pair in variables.split("\0") if "=" in pair)
            state.unlink()
            if "VIRTUAL_ENV" in self._variables:  # an installed package, not this repository
                self._variables.pop("PYTHONPATH", None)
        return CommandEnd(done.returncode, done.stdout)

    @contextlib.contextmanager
    def _entered(self) -> Iterator[None]:
        """This process in the story's folder and environment."""
        before = dict(os.environ)
        os.environ.clear()
        os.environ.update(self._variables)
        try:
            with contextlib.chdir(self._place):
                yield
        finally:
            os.environ.clear()
            os.environ.update(before)

    def _start(self, text: str, address: str) -> None:
        """Start a server and wait until it accepts connections at its address; `dev` gets a free port."""
        [command] = split_commands(text)
        command = command.partition("#")[0].strip()
        if not address:
            address = f"http://127.0.0.1:{self._values['port']}"
            command += f" --port {self._values['port']}"
        with (self._tools / "background.log").open("ab") as log:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=self._place,
                env=self._variables,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._background.append(process)
        wait_until(lambda: process.poll() is not None or _accepts(address), _START_S)
        if process.poll() is not None:
            raise AssertionError((self._tools / "background.log").read_text(encoding="utf-8")[-_OUTPUT_LIMIT:])

    def _stop(self) -> None:
        index = self._namespace.get("index")
        if isinstance(index, GraphIndex):
            index.close()
        for process in self._background:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_S)
            with contextlib.suppress(ProcessLookupError):  # what has not stopped by then never does
                os.killpg(process.pid, signal.SIGKILL)

    # ---------------------------------------------------------------------------------------------------------- Python

    def _run_python(self, block: PageBlock, text: str) -> None:
        """Run Python in the story's namespace; `index` is opened where a block uses it and none made it."""
        code = compile(text, block.place, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        root = self.folder / "my_root"
        with self._entered(), contextlib.redirect_stdout(io.StringIO()) as output:
            if "index" in code.co_names and "index" not in self._namespace and (root / "snapshots").is_dir():
                self._namespace["index"] = GraphIndex.open(root)
            result = eval(code, self._namespace)
            if inspect.iscoroutine(result):
                asyncio.run(result)
        self._printed = output.getvalue()

    # -------------------------------------------------------------------------------------------------------- settings

    def _apply(self, block: PageBlock, text: str) -> None:
        """Merge the shown settings into those of the root."""
        path = self._place / (block.value("apply") or "my_root") / "settings.yaml"
        values = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        for section, options in yaml.safe_load(text).items():
            values[section] = {**(values.get(section) or {}), **options}
        path.write_text(yaml.safe_dump(values), encoding="utf-8")


def split_commands(text: str) -> list[str]:
    """The commands of a shell text; continued lines, loops and here-documents stay together.

    Raises:
        ValueError: the last command is not complete.
    """
    commands, lines, end = [], list[str](), ""
    for line in text.splitlines():
        if not lines and (not line.strip() or line.lstrip().startswith("#")):
            continue
        lines.append(line)
        if end:
            end = "" if line.strip() == end else end
        elif here := _HERE_DOCUMENT.search(line):
            end = here[1]
        if not end and not line.endswith("\\") and _is_complete("\n".join(lines)):
            commands.append("\n".join(lines))
            lines = []
    if lines:
        raise ValueError(f"an incomplete command: {lines[0]}")
    return commands


def assert_output(shown: str, printed: str) -> None:
    """Fail unless `printed` is what the page shows; `...` stands for any text."""
    if not shown.strip():
        return
    pattern = ".*".join(re.escape(part) for part in _without_trailing_blanks(shown).split("..."))
    if not re.fullmatch(pattern, _without_trailing_blanks(printed), re.DOTALL):
        raise AssertionError(f"shown:\n{shown}\nprinted:\n{printed[-_OUTPUT_LIMIT:]}")


def _without_trailing_blanks(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def _check_form(block: PageBlock, text: str) -> None:
    """Fail unless a block of data is well formed, and settings are settings."""
    if block.language == "yaml":
        values = yaml.safe_load(text)
        if text.startswith("# settings.yaml"):
            Settings.model_validate({**_MODELS, **values})
    elif block.language == "json":
        json.loads(text)
    elif block.language == "jsonl":
        for line in filter(str.strip, text.splitlines()):
            json.loads(line)
    elif block.language == "csv":
        widths = {len(row) for row in csv.reader(io.StringIO(text)) if row}
        assert len(widths) == 1, f"rows of {sorted(widths)} columns"
    elif block.language == "toml":
        tomllib.loads(text)
    elif block.language == "python":
        ast.parse(text)


def _replace(text: str, words: Mapping[str, str], values: Mapping[str, str]) -> str:
    for word, replacement in words.items():
        text = text.replace(word, replacement.format(**values) if "{" in replacement else replacement)
    return text


def _plain_words(command: str) -> list[str]:
    """The words of a command that needs no shell; empty for one that does."""
    try:
        lexer = shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        quoted = re.sub(r"'[^']*'|\"[^\"$`]*\"|#.*", "", command)
        return [] if _SHELL_SIGNS.search(quoted) else list(lexer)
    except ValueError:
        return []


def _is_complete(command: str) -> bool:
    return subprocess.run(["bash", "-n", "-c", command], capture_output=True, check=False).returncode == 0


def _make_programs(folder: Path) -> Path:
    """Make a folder for PATH with `graphrag-pipeline`, `python` and Dagster's programs of this interpreter."""
    programs = folder / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    for name in ("graphrag-pipeline", "python"):
        module = " -m graphrag_pipeline" if name == "graphrag-pipeline" else ""
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{module} "$@"\n', encoding="utf-8")
        (programs / name).chmod(0o755)
    for program in Path(sys.executable).parent.glob("dagster*"):
        (programs / program.name).symlink_to(program)
    return programs


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _accepts(address: str) -> bool:
    """Whether something listens at the host and port of an address."""
    parts = urlsplit(address)
    try:
        socket.create_connection((parts.hostname or "", parts.port or 80), timeout=1).close()
    except OSError:
        return False
    return True
