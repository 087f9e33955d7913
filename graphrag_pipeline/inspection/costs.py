"""What commands cost in calls of models, beside what a run was estimated to: JSON lines in `cache/costs.jsonl`.

It is a log, not a table: it has times, and nothing is computed from it. Keep out: how an estimate is made.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.inspection.estimates import StageEstimate
from graphrag_pipeline.models.accounting import CallStats, booked_by_process
from graphrag_pipeline.pipeline.root import Root

_FILE = "costs.jsonl"
_INDEX = "index"
_WHAT_IS_SPENT = (
    "the budget's `spent so far` is more: calls without an answer count there as paid, and so does what has no line "
    "here (a command that was killed, runs from Dagster's UI, questions from Python)"
)


def append_costs(root: Root, estimates: Iterable[StageEstimate], actual: Mapping[str, CallStats]) -> None:
    """Add a run of `index`, if it asked a model or was to ask one."""
    estimated = {estimate.stage: asdict(estimate) for estimate in estimates}
    paid = {stage: stats.as_metadata() for stage, stats in actual.items() if stats.n_calls or stats.n_cached}
    if not estimated and not paid:
        return
    stages = {stage: {"estimated": estimated.get(stage), "actual": paid.get(stage)} for stage in (estimated | paid)}
    _append(root, _INDEX, stages)


@contextmanager
def costs_logged(root: Root, command: str, about: str, say: Callable[[str], object]) -> Iterator[None]:
    """Add what a command asks models meanwhile, from any thread, if it asks for more than is stored.

    Args:
        about: what it asks for, such as a stage.
        say: told if the log cannot be written, which is no error: what was asked for is there.
    """
    with booked_by_process() as account:
        try:
            yield
        finally:
            if account.n_calls:
                try:
                    _append(root, command, {about: {"estimated": None, "actual": account.as_metadata()}})
                except PipelineError as error:
                    spent = _render_account(account.as_metadata())
                    say(f"{command}: {spent}; not in `graphrag-pipeline costs`: {error}")


def _append(root: Root, command: str, stages: Mapping[str, Any]) -> None:
    ended = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = json.dumps({"command": command, "ended": ended, "stages": stages}, sort_keys=True).encode() + b"\n"
    path = root.cache_folder / _FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "ab+", buffering=0) as file:  # one write at the end: commands side by side lose no line
            file.write(line if _ends_a_line(file.fileno()) else b"\n" + line)
    except OSError as error:
        raise files.write_error(path, error) from error


def _ends_a_line(descriptor: int) -> bool:
    """Whether a file is empty or its last line is whole; after a power cut it may not be."""
    size = os.fstat(descriptor).st_size
    return not size or os.pread(descriptor, 1, size - 1) == b"\n"


def read_costs(root: Root) -> list[dict[str, Any]]:
    """All commands that asked a model, the first one first; a line cut short by a power cut is left out."""
    path = root.cache_folder / _FILE
    runs = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            runs.append({"command": _INDEX, **json.loads(line)})
        except ValueError:
            continue
    return runs


def render_estimates(estimates: Sequence[StageEstimate]) -> list[str]:
    """A table in lines; the last one is the total."""
    if not estimates:
        return ["no calls of models: nothing that asks one is stale"]
    lines = [f"{'stage':26}{'calls':>9}{'cached':>9}{'prompt tokens':>15}{'reply tokens':>14}{'USD':>10}"]
    for estimate in estimates:
        mark = "~" if estimate.is_scaled else " "
        lines.append(
            f"{estimate.stage:26}{mark + format(estimate.n_calls, ','):>9}{estimate.n_cached:>9,}"
            f"{estimate.prompt_tokens:>15,}{estimate.completion_tokens:>14,}{_money(estimate.cost):>10}"
        )
    costs = [estimate.cost for estimate in estimates]
    total = None if None in costs else sum(cost or 0.0 for cost in costs)
    lines.append(
        f"{'total':26}{sum(e.n_calls for e in estimates):>9,}{sum(e.n_cached for e in estimates):>9,}"
        f"{sum(e.prompt_tokens for e in estimates):>15,}{sum(e.completion_tokens for e in estimates):>14,}"
        f"{_money(total):>10}"
    )
    if any(estimate.is_scaled for estimate in estimates):
        lines.append(
            "~ a guess from the number of text units; dense texts, or a model that finds much, need several times it"
        )
    return lines


def _money(cost: float | None) -> str:
    return "?" if cost is None else f"{cost:.4f}"


def _paid(actual: Mapping[str, Any]) -> str:
    """What calls cost; a ? for those whose price is not known."""
    cost, n_unpriced = actual.get("cost_usd", 0.0), actual.get("unpriced_calls", 0)
    if not n_unpriced:
        return _money(cost)
    return f"{_money(cost)} + ?" if cost else "?"


def render_costs(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Calls, tokens and money in lines: of every `index` by stage, estimated -> actual, and of every other command."""
    lines = []
    for run in runs:
        if run["command"] == _INDEX:
            lines.append(run["ended"])
            lines += [f"  {stage:26} {_compare(figures)}" for stage, figures in run["stages"].items()]
        else:
            told = (f"{about}: {_render_account(figures['actual'])}" for about, figures in run["stages"].items())
            lines += [f"{run['ended']} {run['command']} {line}" for line in told]
    return [*lines, _WHAT_IS_SPENT] if lines else ["nothing asked a model yet"]


def _compare(figures: Mapping[str, Any]) -> str:
    estimated, actual = figures["estimated"] or {}, figures["actual"] or {}
    calls = f"{estimated.get('n_calls', 0):,} -> {actual.get('calls', 0):,}"
    tokens = f"{_tokens(estimated):,} -> {_tokens(actual):,}"
    return f"calls {calls}, tokens {tokens}, USD {_money(estimated.get('cost', 0.0))} -> {_paid(actual)}"


def _render_account(actual: Mapping[str, Any]) -> str:
    return f"calls {actual['calls']:,}, tokens {_tokens(actual):,}, USD {_paid(actual)}"


def _tokens(figures: Mapping[str, Any]) -> int:
    return figures.get("prompt_tokens", 0) + figures.get("completion_tokens", 0)
