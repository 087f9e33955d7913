"""Log of the model calls and costs of commands, with the estimate of each index run: `cache/costs.jsonl`.

It is a log, not a table: it has times, and no result depends on it. Keep out: making estimates.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.models.accounting import CallStats, paid_run
from graphrag_pipeline.pipeline.root import Root

if TYPE_CHECKING:  # every command logs its costs, but few estimate any
    from graphrag_pipeline.inspection.stage_estimates import StageEstimate

_FILE = "costs.jsonl"
_INDEX = "index"
_BUDGET_NOTE = "`costs` without --estimates lists all paid runs, also those of Dagster's UI, of Python and killed ones"


def append_costs(
    root: Root,
    estimates: Iterable[StageEstimate],
    actual: Mapping[str, CallStats],
    problems: Mapping[str, Mapping[str, int]] | None = None,
) -> None:
    """Add a run of `index` to the log if it called a model or was expected to.

    Args:
        problems: stage -> reason -> number of parts of replies that were left out or repaired.
    """
    estimated = {estimate.stage: asdict(estimate) for estimate in estimates}
    paid = {stage: stats.as_metadata() for stage, stats in actual.items() if stats.n_calls or stats.n_cached}
    if not estimated and not paid:
        return
    stages: dict[str, dict[str, Any]] = {
        stage: {"estimated": estimated.get(stage), "actual": paid.get(stage)} for stage in (estimated | paid)
    }
    for stage, counts in (problems or {}).items():
        if counts and stage in stages:
            stages[stage]["problems"] = dict(sorted(counts.items()))
    _append(root, _INDEX, stages)


@contextmanager
def costs_logged(root: Root, command: str, about: str, report: Callable[[str], object]) -> Iterator[Root]:
    """Give the root whose model calls are counted; add them to the log if not all replies were stored.

    Args:
        about: subject of the calls, such as a stage.
        report: called with a message if the log cannot be written; that is not an error, since the replies are kept.
    """
    account = CallStats()
    try:
        with paid_run(command, about):
            yield root.counted_in(account)
    finally:
        if account.n_calls:
            try:
                _append(root, command, {about: {"estimated": None, "actual": account.as_metadata()}})
            except PipelineError as error:
                spent = _render_account(account.as_metadata())
                report(f"{command}: {spent}; not in `graphrag-pipeline costs`: {error}")


def _append(root: Root, command: str, stages: Mapping[str, Any]) -> None:
    ended = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = json.dumps({"command": command, "ended": ended, "stages": stages}, sort_keys=True).encode() + b"\n"
    path = root.cache_folder / _FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "ab+", buffering=0) as file:  # one write at the end, so concurrent commands lose no line
            file.write(line if _ends_a_line(file.fileno()) else b"\n" + line)
    except OSError as error:
        raise files.write_error(path, error) from error


def _ends_a_line(descriptor: int) -> bool:
    """Whether a file is empty or its last line is complete; a power cut may leave a partial line."""
    size = os.fstat(descriptor).st_size
    return not size or os.pread(descriptor, 1, size - 1) == b"\n"


def read_costs(root: Root) -> list[dict[str, Any]]:
    """Return all logged commands, oldest first, without a partial line that a power cut left."""
    path = root.cache_folder / _FILE
    runs = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            runs.append({"command": _INDEX, **json.loads(line)})
        except ValueError:
            continue
    return runs


def render_estimates(estimates: Sequence[StageEstimate]) -> list[str]:
    """Render estimates as lines of a table with a total."""
    if not estimates:
        return ["no model calls: no stage that uses a model is stale"]
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
    if total is None:
        lines.append("the cost is not known where a model has no price: set its `prompt_price` and `completion_price`")
    return lines + _render_range(estimates)


def _render_range(estimates: Sequence[StageEstimate]) -> list[str]:
    """Render how the calls may differ from the estimates, if they are not all counted."""
    least, most = (sum(ends) for ends in zip(*(estimate.call_range for estimate in estimates), strict=True))
    in_all = f"in all, {least:,} to {most:,} calls{_price_range(estimates)} are"
    scaled = "~ is an estimate from the present index or from rules on a sample of this corpus"
    is_scaled = any(estimate.is_scaled for estimate in estimates)
    n_retried = sum(estimate.n_retried for estimate in estimates)
    if n_retried and least < most:
        retried = f"{n_retried:,} records whose replies could not be used are asked once more each"
        return [scaled] * is_scaled + [f"{retried}, and further only if that reply can be used: {in_all} possible"]
    return [f"{scaled}; {in_all} likely: a model may find less or more than rules"] if is_scaled else []


def _price_range(estimates: Sequence[StageEstimate]) -> str:
    """Return the range of the cost if all prices are known."""
    costs = [estimate.cost for estimate in estimates]
    if None in costs or not any(costs):
        return ""
    least, most = (
        sum((each.cost or 0.0) * each.call_range[end] / max(1, each.n_calls) for each in estimates) for end in (0, 1)
    )
    return f" for {least:.4f} to {most + sum(each.most_cost or 0.0 for each in estimates):.4f} USD"


def _money(cost: float | None) -> str:
    return "not known" if cost is None else f"{cost:.4f}"


def _paid(actual: Mapping[str, Any]) -> str:
    """Return the cost of calls, with a note if some calls have no known price."""
    cost, n_unpriced = actual.get("cost_usd", 0.0), actual.get("unpriced_calls", 0)
    if not n_unpriced:
        return _money(cost)
    return f"{_money(cost)} or more" if cost else "not known"


def render_costs(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Render calls, tokens and cost: of each `index` by stage, estimated -> actual, and of each other command."""
    lines = []
    for run in runs:
        if run["command"] == _INDEX:
            lines.append(run["ended"])
            lines += [f"  {stage:26} {_compare(figures)}" for stage, figures in run["stages"].items()]
            lines += [f"  {line}" for line in render_problems(run)]
        else:
            accounts = (f"{about}: {_render_account(figures['actual'])}" for about, figures in run["stages"].items())
            lines += [f"{run['ended']} {run['command']} {line}" for line in accounts]
    return [*lines, _BUDGET_NOTE] if lines else ["no model calls yet"]


def list_last_problems(root: Root) -> list[str]:
    """Return what the last index run in the log left out of the replies of models, one line a stage."""
    runs = [run for run in read_costs(root) if run["command"] == _INDEX]
    return render_problems(runs[-1]) if runs else []


def render_problems(run: Mapping[str, Any]) -> list[str]:
    """Render what an index run left out of the replies of models, or repaired; one line a stage."""
    counted = {stage: figures.get("problems") for stage, figures in run["stages"].items()}
    return [
        f"replies of {stage}: {', '.join(f'{n:,} x {reason}' for reason, n in counts.items())}"
        for stage, counts in counted.items()
        if counts
    ]


def _compare(figures: Mapping[str, Any]) -> str:
    estimated, actual = figures["estimated"] or {}, figures["actual"] or {}
    calls = f"{estimated.get('n_calls', 0):,} -> {actual.get('calls', 0):,}"
    tokens = f"{_tokens(estimated):,} -> {_tokens(actual):,}"
    return f"calls {calls}, tokens {tokens}, USD {_money(estimated.get('cost', 0.0))} -> {_paid(actual)}"


def _render_account(actual: Mapping[str, Any]) -> str:
    return f"calls {actual['calls']:,}, tokens {_tokens(actual):,}, USD {_paid(actual)}"


def _tokens(figures: Mapping[str, Any]) -> int:
    return figures.get("prompt_tokens", 0) + figures.get("completion_tokens", 0)
