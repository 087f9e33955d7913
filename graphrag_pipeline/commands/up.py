"""`up`: from a folder of documents to an open page with answers, kept up to date until Ctrl-C."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_pipeline.commands.terminal import check_port, echo, echo_error
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.text.counted import counted

if TYPE_CHECKING:
    from graphrag_pipeline.pipeline.root import Root

_PORTS = range(8000, 8020)
_LOOK_S = 1.0
_LOOK_SHARE = 10
"""Pause between two looks at a large folder, in times of what a look took."""
_DRAIN_S = 3
_HOST = "127.0.0.1"

Seen = Mapping[str, str]
"""Path -> what tells whether the file changed."""


def up(
    folder: Annotated[Path, typer.Argument(help="Folder of documents, or a root.")],
    root: Annotated[
        Path | None, typer.Option("--root", help="The root; default: beside the folder, as FOLDER_index.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port of the page; default: 8000, or the next that is free.")
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
) -> None:
    """Index a folder of documents, open a page to ask questions, and follow changes of the folder until Ctrl-C."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from graphrag_pipeline.pipeline.live_status import keeping_up

    project = _root_of(folder, root)
    if port:
        check_port(_HOST, port, "choose another with --port")
    address = f"http://{_HOST}:{port or _free_port()}"
    echo(f"documents: {os.path.normpath(project.shown_input)}")
    echo(f"root: {project.path}")
    try:
        with keeping_up(project.path), _serving(project.path, address) as server:
            echo(f"page: {address}  (answers once the first index is there)")
            seen = _look(project.path)
            _index(project.path, "")
            echo(f"ask: {address}  (stop with Ctrl-C)")
            if browser and sys.stdout.isatty():
                import webbrowser

                webbrowser.open(address)
            _follow(project.path, server, seen)
    except KeyboardInterrupt:
        echo("stopped; what was indexed is kept")


def _root_of(folder: Path, root: Path | None) -> Root:
    """Return the root of a folder of documents, made if it is not there.

    Raises:
        PipelineError: there is no such folder, or what is at the place of the root is something else.
    """
    from graphrag_pipeline.pipeline.root import Root, init_root
    from graphrag_pipeline.settings.input import InputSettings
    from graphrag_pipeline.settings.settings import SETTINGS_FILE, Settings

    folder = folder.expanduser().resolve()
    if not folder.is_dir():
        raise PipelineError(f"`{folder}`: no such folder; name the folder that holds your documents")
    if root is None and (folder / SETTINGS_FILE).is_file():
        return Root(folder)
    path = (root or folder.with_name(f"{folder.name}_index")).expanduser().resolve()
    if (path / SETTINGS_FILE).is_file():
        found = Root(path)
        if not isinstance(found.input_folder, Path) or found.input_folder.resolve() != folder:
            raise PipelineError(f"`{path}` is the root of `{found.shown_input}`; name another place with --root DIR")
        return found
    if path.is_dir() and any(path.iterdir()):
        raise PipelineError(f"`{path}` is no root and not empty; name another place with --root DIR")
    init_root(path, Settings(input=InputSettings(folder=os.path.relpath(folder, path))))
    return Root(path)


def _free_port() -> int:
    for port in _PORTS:
        try:
            check_port(_HOST, port)
        except PipelineError:
            continue
        return port
    raise PipelineError(f"ports {_PORTS[0]} to {_PORTS[-1]} are in use; choose another with --port")


@contextmanager
def _serving(root: Path, address: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the server in a process of its own, so that indexing does not slow down answers."""
    port = address.rpartition(":")[2]
    command = [sys.executable, "-m", "graphrag_pipeline", "--root", str(root), "serve", "--port", port]
    with (root / "cache" / "serve.log").open("wb") as log:
        server = subprocess.Popen([*command, "--drain", str(_DRAIN_S)], stdout=log, stderr=log)
        try:
            yield server
        finally:
            server.terminate()
            try:
                server.wait(_DRAIN_S + 5)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _follow(root: Path, server: subprocess.Popen[bytes], indexed: Seen) -> None:
    """Index again after each change of the folder, the settings or the prompts, once it rests.

    Args:
        indexed: what there was when the last index run began.
    """
    last = known = indexed  # known: the last look at a folder that could be listed
    while server.poll() is None:
        started = time.monotonic()
        seen = _look(root)
        pause = max(_LOOK_S, _LOOK_SHARE * (time.monotonic() - started))
        if seen == last != indexed:
            n_changed = len({path for path, _ in seen.items() ^ known.items()})
            _index(root, "settings changed" if "" in seen else f"{counted(n_changed, 'files')} changed")
            indexed, known = seen, known if "" in seen else seen
        last = seen
        time.sleep(pause)
    log = (root / "cache" / "serve.log").read_text(encoding="utf-8", errors="replace")
    raise PipelineError(f"the server stopped: {log.strip()[-500:] or 'see cache/serve.log'}")


def _look(root: Path) -> Seen:
    """Return the files that an index is made of; an empty mapping while the folder cannot be listed."""
    from graphrag_pipeline.inputs.files import state_of
    from graphrag_pipeline.pipeline.root import PROMPTS_FOLDER, Root
    from graphrag_pipeline.settings.settings import OVERRIDES_FILE, SETTINGS_FILE

    own = [root / SETTINGS_FILE, root / OVERRIDES_FILE, *sorted((root / PROMPTS_FOLDER).glob("*"))]
    states = {str(path): str(path.stat().st_mtime_ns) for path in own if path.exists()}
    try:
        listed = Root(root).list_input() or ()
    except PipelineError as error:  # also of settings that are half written
        return states | {"": str(error)}
    return states | {f"input/{file.path}": f"{file.problem} {state_of(file)}" for file in listed}


def _index(root: Path, why: str) -> None:
    """Index what is stale, and say so on the terminal and on the page; an error is shown, and the page stays.

    Args:
        why: what changed; "" for the first run.
    """
    from graphrag_pipeline.defs.automation.sensors import why_not_unattended
    from graphrag_pipeline.defs.index_runs.index_run import run_index
    from graphrag_pipeline.models.accounting import CallStats
    from graphrag_pipeline.pipeline.live_status import LiveProgress, LiveStatus, write_live_status
    from graphrag_pipeline.pipeline.root import Root
    from graphrag_pipeline.pipeline.stage_code import asks_any_model
    from graphrag_pipeline.workers import WorkerPool, choose_number

    started, account = time.monotonic(), CallStats()
    try:
        project = Root(root)
        is_first = project.snapshots.current() is None
        if not is_first and asks_any_model(project.settings) and (obstacle := why_not_unattended(project)):
            raise PipelineError(f"not indexed, since it may cost much: {obstacle}")
        with LiveProgress(root, why, account) as progress:
            report = run_index(project.counted_in(account), progress, workers=WorkerPool(choose_number()))
    except PipelineError as error:
        echo_error(error)
        write_live_status(root, LiveStatus("failed", str(error)))
        return
    for path, problem in report.problems:
        echo(f"not read: {path}: {problem}", err=True)
    paid = f", {account.cost:.4f} USD" if account.n_calls else ""
    shown = f"candidate {report.waiting} waits for review" if report.waiting else f"snapshot {report.snapshot}"
    done = f"{counted(report.n_documents, 'documents')}, {shown}"
    took = f"{time.monotonic() - started:.1f} s{paid}" if report.ran else "nothing to index"
    echo(f"{time.strftime('%H:%M:%S')} {why or 'indexed'}: {done}, {took}")
    state = f"candidate {report.waiting} waits for review" if report.waiting else "up to date"
    write_live_status(root, LiveStatus("watching", f"{counted(report.n_documents, 'documents')}, {state}{paid}"))
