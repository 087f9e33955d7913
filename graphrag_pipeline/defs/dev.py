"""`dagster dev` on a root, and a watch of settings and prompts beside it: `python -m graphrag_pipeline.defs.dev`.

Dagster reads code versions only when it loads definitions. So without the watch, an edited prompt would show as fresh
until a click on *Reload definitions*. When a file changes, the UI loads its definitions again and shows what became
stale; nothing runs. Until the first change the watch imports nothing heavy. Keep out: documents, which the sensor
watches (`automation/`), and the command that people type (`commands/serving.py`).
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import runpy
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import stable_hash

LOCATION = "graphrag_pipeline.definitions"
"""The module with the definitions, and the name that the UI gives it."""
_SETTINGS, _PROMPTS = "settings.yaml", "prompts"
_LOOK_S = 1.0
_RELOAD_S = 120
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Addresses that a server listens on, and where this machine finds it."""
_MUTATION = """mutation($name: String!) { reloadRepositoryLocation(repositoryLocationName: $name) {
    ... on WorkspaceLocationEntry { locationOrLoadError { ... on PythonError { message } } }
    ... on Error { message } } }"""

Signature = dict[str, tuple[int, int]]
"""Path of a file below the root -> time of its last change in nanoseconds, and its bytes."""


class DefinitionsWatch:
    """Looks at the files that definitions are made from, and has them loaded again once they are different.

    After the first change, a file that was only touched, or a comment, changes nothing. Settings that cannot be used
    keep the definitions that are loaded, until they are corrected.

    Args:
        path: the root.
        reload: loads the definitions again.
        say: shows one line to the user.
    """

    def __init__(self, path: Path, reload: Callable[[], None], say: Callable[[str], None]) -> None:
        self._path, self._reload, self._say = path, reload, say
        self._seen = self._handled = list_files(path)
        self._loaded = ""

    def look(self) -> None:
        """Reload if the files differ from the last reload and are the same as at the look before this one.

        Raises:
            OSError: the UI does not answer; the next look tries again.
        """
        present = list_files(self._path)
        if present != self._seen:  # an editor may still write
            self._seen = present
            return
        if present == self._handled:
            return
        changed = sorted(name for name, _ in present.items() ^ self._handled.items())
        try:
            version = version_of_definitions(self._path)
            if version != self._loaded:
                self._say(f"{' and '.join(dict.fromkeys(changed))} changed: loading the definitions again")
                self._reload()
                self._loaded = version
        except PipelineError as error:
            self._say(f"{error}. The UI keeps the definitions from before, and runs of assets stop.")
        self._handled = present


def list_files(path: Path) -> Signature:
    """Return the files of a root that definitions are made from."""
    found = {}
    for file in (path / _SETTINGS, *sorted((path / _PROMPTS).rglob("*.txt"))):
        try:
            state = file.stat()
        except OSError:  # removed just now
            continue
        found[file.relative_to(path).as_posix()] = (state.st_mtime_ns, state.st_size)
    return found


def version_of_definitions(path: Path) -> str:
    """Return one version of everything that the definitions of a root depend on.

    Raises:
        PipelineError: the settings cannot be used.
    """
    from graphrag_pipeline.defs.runs.loaded_code import code_version_of_all
    from graphrag_pipeline.pipeline.root import Root

    root = Root(path)
    if problem := root.tables.find_layout_problem(root.settings.storage.n_buckets):
        raise PipelineError(problem)
    return stable_hash(root.settings.model_dump_json(), code_version_of_all(root))


def reload_definitions(host: str, port: str, location: str) -> None:
    """Let the UI load the definitions of a code location again, as its button does.

    Raises:
        PipelineError: they cannot be loaded.
        OSError: the UI does not answer.
    """
    known = _ANY.get(host, host)
    address = f"http://{f'[{known}]' if ':' in known else known}:{port}/graphql"
    body = json.dumps({"query": _MUTATION, "variables": {"name": location}}).encode()
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request, timeout=_RELOAD_S) as reply:
        answer = json.loads(reply.read())
    for message in _messages(answer):
        raise PipelineError(f"the definitions cannot be loaded: {' '.join(message.split())}")


def _messages(answer: object) -> Iterator[str]:
    """Yield the messages of errors in a reply, at any depth."""
    if isinstance(answer, dict):
        if isinstance(answer.get("message"), str):
            yield answer["message"]
        answer = list(answer.values())
    for part in answer if isinstance(answer, list) else ():
        yield from _messages(part)


def report_known_state(path: Path) -> int:
    """Report the checks of the state under the present settings and prompts; returns how many changed.

    The input folder is not read: each bucket counts as it was observed last.
    """
    from graphrag_pipeline.defs.assets.sources import known_versions
    from graphrag_pipeline.defs.assets.state_checks import report_found
    from graphrag_pipeline.defs.runs.instance import open_instance
    from graphrag_pipeline.inspection.index_state import find_state
    from graphrag_pipeline.pipeline.root import Root

    root = Root(path)
    with open_instance(root) as instance:
        return report_found(instance, root, find_state(root, known_versions(instance, root)))


def _watch(path: Path, host: str, port: str) -> None:
    """Watch a root until the process ends."""

    def reload() -> None:
        reload_definitions(host, port, LOCATION)
        report_known_state(path)

    watch = DefinitionsWatch(path, reload, logging.getLogger("dagster.graphrag_pipeline").warning)
    while True:
        time.sleep(_LOOK_S)
        with suppress(OSError):  # the UI is starting or ending
            watch.look()


def main() -> None:
    """Run `dagster dev` on the root that GRAPHRAG_ROOT names, until Ctrl-C."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", required=True)
    parser.add_argument("--reload", action="store_true")
    chosen = parser.parse_args()
    if chosen.reload:
        arguments = (Path(os.environ["GRAPHRAG_ROOT"]), chosen.host, chosen.port)
        threading.Thread(target=_watch, args=arguments, daemon=True).start()
    sys.argv = ["dagster", "dev", "-m", LOCATION, "-h", chosen.host, "-p", chosen.port]
    runpy.run_module("dagster", run_name="__main__")


if __name__ == "__main__":
    main()
