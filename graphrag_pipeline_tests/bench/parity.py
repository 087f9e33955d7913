"""Comparison with Microsoft GraphRAG 3.3.0 itself: its environment, its scripts, and what counts as equal.

Microsoft GraphRAG is installed from the registry into an environment of its own in the bench's folder, or is given by
`--peer-python` (or `GRAPHRAG_PEER_PYTHON`): the Python of an environment that has it. Scripts named `peer_*.py` run
there as processes, with JSON in and out. They are the only files that import `graphrag`, and they import nothing of
ours. What each part compares is in `parity_*.py`; a part is a function in `PARTS`.

`--questions 10` compares 10 questions instead of 100, in about a minute once the environment is there.

`--record` writes the peer's outputs to `graphrag_pipeline_tests/data/parity/`. The tests compare with these files.

A comparison has one value of ours and one of the peer's per question. Each difference needs a reason, or the bench
fails.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_pipeline_tests.bench.measuring import CommandFailedError, Figure
from graphrag_pipeline_tests.support.paths import TEST_DATA

if TYPE_CHECKING:
    from graphrag_pipeline_tests.bench.benches import Workspace

PEER = "graphrag==3.3.0"
PEER_PYTHON = "GRAPHRAG_PEER_PYTHON"
RECORDINGS = TEST_DATA / "parity"
N_QUESTIONS = 100
"""Questions of each part."""
_SCRIPTS = Path(__file__).parent
MAX_SHOWN = 5
"""Differences without a reason that an error message shows."""


@dataclass(frozen=True)
class Difference:
    """A question whose outputs differ, with the reason; "" if none is known."""

    question: str
    ours: Any
    theirs: Any
    reason: str


@dataclass(frozen=True)
class Comparison:
    """One output compared over questions.

    Attributes:
        what: the output.
        n: number of questions.
    """

    what: str
    n: int
    differences: tuple[Difference, ...]

    @property
    def n_equal(self) -> int:
        return self.n - len(self.differences)

    @property
    def unexplained(self) -> list[Difference]:
        return [difference for difference in self.differences if not difference.reason]


@dataclass(frozen=True)
class Peer:
    """Microsoft GraphRAG in its environment.

    Attributes:
        python: the interpreter of the environment.
        folder: for the files of requests and replies.
        is_recording: whether outputs go to `RECORDINGS`.
    """

    python: Path
    folder: Path
    is_recording: bool = False

    def run(self, script: str, request: dict[str, Any]) -> Any:
        """Run a script of this folder, such as "peer_local.py", and return its reply.

        The script gets two paths: of the request, and of the reply that it writes, both JSON.

        Raises:
            CommandFailedError: it failed; the message holds the end of what it printed.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        asked, replied = self.folder / f"{script}.request.json", self.folder / f"{script}.reply.json"
        asked.write_text(json.dumps(request), encoding="utf-8")
        _run_or_fail([str(self.python), str(_SCRIPTS / script), str(asked), str(replied)])
        return json.loads(replied.read_text(encoding="utf-8"))

    def run_recorded(self, script: str, request: dict[str, Any], name: str) -> Any:
        """Run a script and record its reply."""
        reply = self.run(script, request)
        self.record(name, reply)
        return reply

    def record(self, name: str, outputs: Any) -> None:
        """Write outputs of the peer to `RECORDINGS` if this bench records."""
        if self.is_recording:
            write_recording(name, outputs)


def _run_or_fail(command: Sequence[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    environment["PYTHONHASHSEED"] = "0"
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise CommandFailedError(f"{' '.join(command)} exited with {done.returncode}:\n{done.stdout[-2000:]}")


def make_peer(folder: Path, python: Path | None = None, is_recording: bool = False) -> Peer:
    """Return the peer: with a given Python, else with one whose environment is made in `folder` at first use.

    Raises:
        CommandFailedError: the environment cannot be made, or the given one has another version of graphrag.
    """
    if python is None:
        python = folder / "environment" / "bin" / "python"
        if not python.exists():
            _run_or_fail([sys.executable, "-m", "venv", str(folder / "environment")])
            _run_or_fail([str(python), "-m", "pip", "install", "--quiet", PEER])
    name, version = PEER.split("==")
    check = f"import importlib.metadata as m; v = m.version({name!r}); assert v == {version!r}, v"
    _run_or_fail([str(python), "-c", check])
    return Peer(python, folder / "exchange", is_recording)


# ----------------------------------------------------------------------------------------------------------- recordings


def write_recording(name: str, value: Any) -> None:
    """Write the peer's outputs to `RECORDINGS`: the same bytes for the same outputs."""
    RECORDINGS.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    (RECORDINGS / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def read_recording(name: str) -> Any:
    """Return the peer's outputs as `python -m graphrag_pipeline_tests.bench parity --record` wrote them."""
    return json.loads(gzip.decompress((RECORDINGS / f"{name}.json.gz").read_bytes()))


# ---------------------------------------------------------------------------------------------------------- comparisons


def compare(
    what: str,
    questions: Sequence[str],
    ours: Sequence[Any],
    theirs: Sequence[Any],
    reason_of: Callable[[int], str] = lambda _: "",
) -> Comparison:
    """Compare one output for each question.

    Args:
        reason_of: returns why the outputs of a question, by its position, differ; "" if no reason is known.
    """
    differences = tuple(
        Difference(question, our, their, reason_of(place))
        for place, (question, our, their) in enumerate(zip(questions, ours, theirs, strict=True))
        if our != their
    )
    return Comparison(what, len(questions), differences)


def figures_of_comparisons(comparisons: Sequence[Comparison]) -> list[Figure]:
    """Return the share of equal questions of each comparison, and the number of questions for each reason."""
    figures = []
    for comparison in comparisons:
        figures.append(Figure(f"{comparison.what}: equal of {comparison.n}", comparison.n_equal, "questions"))
        for reason, n in Counter(difference.reason for difference in comparison.differences).most_common():
            if reason:
                figures.append(Figure(f"{comparison.what}: differ because {reason}", n, "questions"))
        n_unexplained = len(comparison.unexplained)
        figures.append(Figure(f"{comparison.what}: differ without a reason", n_unexplained, "questions", limit=0))
    return figures


def describe_unexplained(comparisons: Sequence[Comparison]) -> str:
    """Return the first differences without a reason, one a line; "" if every difference has one."""
    found = [(c.what, d) for c in comparisons for d in c.unexplained][:MAX_SHOWN]
    return "\n".join(f"{what}, {d.question!r}:\n  ours   {d.ours}\n  theirs {d.theirs}" for what, d in found)


# ---------------------------------------------------------------------------------------------------------------- bench

Part = Callable[[Peer, Path, int], list[Comparison]]
"""Peer, an empty folder and the number of questions -> comparisons."""


def parts() -> dict[str, Part]:
    """Return the parts by name."""
    from graphrag_pipeline_tests.bench import parity_batches, parity_global, parity_local

    modules = {"local": parity_local, "global": parity_global, "batches": parity_batches}
    return {name: module.compare_with_peer for name, module in modules.items()}


def run(workspace: Workspace) -> list[Figure]:
    """Compare every part, print differences without a reason, and return the figures."""
    peer = make_peer(workspace.kept_folder("peer"), workspace.peer_python, workspace.is_recording)
    found: list[Comparison] = []
    for part in parts().values():
        with tempfile.TemporaryDirectory() as temporary:
            found += part(peer, Path(temporary), workspace.n_questions)
    if unexplained := describe_unexplained(found):
        print(unexplained, file=sys.stderr)
    return figures_of_comparisons(found)
