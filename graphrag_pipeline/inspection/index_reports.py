"""Reports for users of past runs: what the ledger has of each, and which names were merged."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.indexing.graph.merge import merge_graph
from graphrag_pipeline.indexing.graph.overrides import read_overrides
from graphrag_pipeline.indexing.graph.resolution import Merge
from graphrag_pipeline.indexing.graph.semantic_resolution import (
    choose_verdict_pairs,
    merge_by_verdict,
    merge_similar,
    propose_similar,
    show_entities,
    verdict_request,
)
from graphrag_pipeline.indexing.graph.titles import NamePolicy
from graphrag_pipeline.models.endpoints.clients import CACHE_FILE
from graphrag_pipeline.models.spending import RUNNING, Spending
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.settings.settings import OVERRIDES_FILE

MENTIONS = ("entity_mentions", "relationship_mentions", "claim_mentions")


@dataclass(frozen=True)
class MergeReport:
    """Rows of `entity_merges`, compared with those of the present graph.

    Attributes:
        merges: all merges.
        added, removed: merges that the present graph lacks, and merges that it would lose.
        unasked: (title, title, cosine) of pairs without a stored verdict, which the model would get.
    """

    merges: list[dict[str, Any]]
    added: list[dict[str, Any]]
    removed: list[dict[str, Any]]
    unasked: list[tuple[str, str, float]]


def list_merges(root: Root) -> MergeReport:
    """Return the merges of the present graph.

    Raises:
        PipelineError: the root has no graph yet, or an imported index.
    """
    _refuse_import(root)
    return MergeReport(root.tables.read("entity_merges").to_pylist(), [], [], [])


def _refuse_import(root: Root) -> None:
    if root.is_imported:
        raise PipelineError(
            f"`{root.path}` holds an imported index, which does not record merges of names; run `merges` in a root "
            "whose index was made from documents"
        )


def preview_merges(root: Root) -> MergeReport:
    """Return the merges that the present settings, prompts and overrides would give.

    No chat model is called and no table is written. Vectors that are not stored yet are requested from the embedding
    model.

    Raises:
        PipelineError: a bucket has no mentions yet, or the root has an imported index.
    """
    _refuse_import(root)
    overrides = read_overrides(root.read_file(OVERRIDES_FILE))
    entities, relationships, claims, text_units = (_scan(root, table) for table in (*MENTIONS, "text_units"))
    merge = partial(merge_graph, entities, relationships, claims, root.settings.graph, text_units=text_units)
    policy = NamePolicy(overrides, rules=root.settings.resolution.applied_rules)
    tables = merge(policy=policy)
    unasked: list[tuple[str, str, float]] = []
    if root.settings.resolution.is_semantic:
        proposals, unasked = _propose_from_store(root, tables["entities"], tables["relationships"])
        tables = merge(policy=replace(policy, proposals=proposals)) if proposals else tables
    wanted = tables["entity_merges"].to_pylist()
    head = root.tables.head("entity_merges")
    present = root.tables.read_head(head).to_pylist() if head else []
    return MergeReport(
        wanted, [row for row in wanted if row not in present], [row for row in present if row not in wanted], unasked
    )


def _scan(root: Root, table: str) -> Any:
    from graphrag_pipeline.pipeline.stages import owner_of

    return root.tables.dataset([root.tables.need(table, key) for key in owner_of(table).partitions(root.settings)])


def _propose_from_store(
    root: Root, entities: pa.Table, relationships: pa.Table
) -> tuple[list[Merge], list[tuple[str, str, float]]]:
    """Return merges by vectors and stored verdicts, and the pairs without a verdict."""
    settings = root.settings.resolution
    pairs = propose_similar(entities, relationships, root.embedder, settings)
    merges = merge_similar(entities, pairs, settings)
    if not settings.uses_model:
        return merges, []
    shown, prompt = show_entities(entities), root.prompt("resolve_entities")
    sent = choose_verdict_pairs(pairs, settings)
    replies = root.models.chat_model("resolution").recall([verdict_request(shown, pair, prompt) for pair in sent])
    titles, unasked = shown["title"], []
    for pair, reply in zip(sent, replies, strict=True):
        if reply is None:
            unasked.append((titles[pair.row], titles[pair.into], pair.similarity))
        elif reply.value.same:
            merges.append(merge_by_verdict(titles, pair, reply))
    return merges, unasked


def render_report(report: MergeReport) -> list[str]:
    """Render one line per merge; + marks a new one, - one that would be removed."""
    marks = [("+", row) for row in report.added] + [("-", row) for row in report.removed]
    marks += [(" ", row) for row in report.merges if row not in report.added]
    lines = [
        f"{mark} {row['name']} -> {row['title']}  ({row['rule']}, {row['score']:.2f}: {row['evidence']})"
        for mark, row in marks
    ]
    lines += [f"? {a} / {b}  (cosine {cosine:.2f}: the model would decide)" for a, b, cosine in report.unasked]
    return lines or ["no merges"]


KILLED, UNKNOWN = "killed", "not known"
GROUPS = ("day", "model", "stage", "command")
_SECONDS = "%Y-%m-%dT%H:%M:%SZ"
_RUN_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MAX_ABOUT = 36  # characters
_COUNTS = ("n_calls", "n_unpriced", "prompt_tokens", "completion_tokens", "cost")


@dataclass(frozen=True)
class PaidCalls:
    """Calls of a run, a day, a model, a stage or a command.

    Attributes:
        name: of the group; of a run: its id.
        begun, ended: ISO 8601 in UTC; "" for a group, and for a run without an end.
        status: of a run: running, done, failed, interrupted, killed, or "not known" on another machine; "" for a group.
        n_unpriced: calls of models without a known price, which `cost` (US dollars) lacks.
    """

    name: str
    command: str
    about: str
    begun: str
    ended: str
    status: str
    n_calls: int
    n_unpriced: int
    prompt_tokens: int
    completion_tokens: int
    cost: float


@dataclass(frozen=True)
class LedgerReport:
    """The ledger of a root.

    Attributes:
        runs: oldest first.
        group: one of `GROUPS`, or "".
        groups: sums by `group`.
        total: sum of all runs.
        spent_tokens, spent_cost: of the budget; what it allows is `max_tokens` and `max_cost`, None without a limit.
        unpriced: models without a known price, whose calls no cost counts.
    """

    runs: tuple[PaidCalls, ...]
    group: str
    groups: tuple[PaidCalls, ...]
    total: PaidCalls
    spent_tokens: int
    spent_cost: float
    max_tokens: int | None
    max_cost: float | None
    unpriced: tuple[str, ...] = ()


def report_ledger(root: Root, group: str = "") -> LedgerReport:
    """Return the paid runs of a root and their sums.

    Args:
        group: one of `GROUPS`; "": no sums but the total.
    """
    budget = root.settings.budget
    is_begun = bool(root.settings.storage.cache_url) or (root.cache_folder / CACHE_FILE).exists()
    rows = root.models.spending.read_ledger() if is_begun else []  # a root without models needs no database
    tokens, cost = root.models.spending.total() if is_begun else (0, 0.0)
    return LedgerReport(
        runs=tuple(_run(name, own) for name, own in _grouped(rows, lambda row: row["run"])),
        group=group,
        groups=tuple(_sum(name, own) for name, own in sorted(_grouped(rows, lambda row: row[group]))) if group else (),
        total=_sum("total", rows),
        spent_tokens=tokens,
        spent_cost=cost,
        max_tokens=budget.max_tokens,
        max_cost=budget.max_cost,
        unpriced=_name_unpriced(rows),
    )


def find_unpriced(root: Root) -> tuple[str, ...]:
    """Return the models without a known price that the last paid run called."""
    rows = root.models.spending.read_ledger()
    return _name_unpriced(row for row in rows if row["run"] == rows[-1]["run"])


def _name_unpriced(rows: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(sorted({str(row["model"]) for row in rows if row["n_unpriced"]}))


def _grouped(
    rows: Iterable[Mapping[str, Any]], key: Callable[[Mapping[str, Any]], str]
) -> list[tuple[str, list[Mapping[str, Any]]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return list(found.items())


def _run(name: str, rows: Sequence[Mapping[str, Any]]) -> PaidCalls:
    first = rows[0]
    ended = max((row["ended"] or 0.0 for row in rows), default=0.0)
    return _sum(
        name,
        rows,
        command=first["command"],
        about=first["about"],
        begun=_time(min(row["begun"] for row in rows)),
        ended=_time(ended) if ended else "",
        status=_status(first),
    )


def _sum(name: str, rows: Iterable[Mapping[str, Any]], **facts: str) -> PaidCalls:
    listed = list(rows)
    counts = {count: sum(row[count] for row in listed) for count in _COUNTS}
    texts = ("command", "about", "begun", "ended", "status")
    values: list[Any] = [*(facts.get(text, "") for text in texts), *counts.values()]
    return PaidCalls(name, *values)


def _time(seconds: float) -> str:
    return time.strftime(_SECONDS, time.gmtime(seconds))


def _status(row: Mapping[str, Any]) -> str:
    """Return the status of a run; one that began and did not end was killed, if its process is gone."""
    if row["status"] != RUNNING:
        return str(row["status"])
    if row["host"] != socket.gethostname():
        return UNKNOWN
    try:
        os.kill(row["process"], 0)
    except ProcessLookupError:
        return KILLED
    except PermissionError:
        pass
    return RUNNING


# ----------------------------------------------------------------------------------------------------------- rendering


def render_ledger(report: LedgerReport) -> list[str]:
    """Render the runs, or the sums if a group is given, with a header, totals, what is spent and the ceiling."""
    spent = describe_budget(report.spent_tokens, report.spent_cost, report.max_tokens, report.max_cost)
    if not report.runs:
        return ["no model calls yet", spent]
    shown = report.groups if report.group else report.runs
    labels = [[one.name or "(none)"] if report.group else [one.begun, say_command(one), one.status] for one in shown]
    header = [report.group] if report.group else ["begun", "command", "status"]
    widths = [max(map(len, column)) for column in zip(header, *labels, strict=True)]
    is_run = not report.group
    lines = [_line(header, widths, ("calls", "prompt tokens", "reply tokens", "USD")) + "  run" * is_run]
    for label, one in zip(labels, shown, strict=True):
        lines.append(_line(label, widths, _figures(one)) + (f"  {name_run(one)}" if is_run else ""))
    lines.append(_line(["total", *[""] * (len(header) - 1)], widths, _figures(report.total)))
    if report.unpriced:
        lines.append(
            f"no price is set for {', '.join(report.unpriced)}, so the cost of its calls is not known; set "
            "`prompt_price` and `completion_price`"
        )
    return [*lines, spent]


def name_run(run: PaidCalls) -> str:
    """Return the id of a run: that of Dagster if it is one of Dagster's, else that of the ledger."""
    found = _RUN_ID.search(run.about)
    return found[0] if found else run.name


def say_command(run: PaidCalls) -> str:
    """Return the command and what it was about, without the id of the run."""
    about = _RUN_ID.sub("", run.about).strip()
    shown = about if len(about) <= _MAX_ABOUT else f"{about[: _MAX_ABOUT - 1]}\u2026"
    return f"{run.command} {shown}".strip() if shown != run.command else run.command


def _line(label: Sequence[str], widths: Sequence[int], figures: Sequence[str]) -> str:
    words = "  ".join(f"{word:{width}}" for word, width in zip(label, widths, strict=True))
    calls, prompt, reply, cost = figures
    return f"{words}  {calls:>7}  {prompt:>13}  {reply:>12}  {cost:>14}"


def _figures(one: PaidCalls) -> tuple[str, str, str, str]:
    cost = f"{one.cost:.4f}" + (" or more" if one.n_unpriced else "")
    shown = "not known" if one.n_unpriced and not one.cost else cost
    return f"{one.n_calls:,}", f"{one.prompt_tokens:,}", f"{one.completion_tokens:,}", shown


def describe_budget(tokens: int, cost: float, max_tokens: int | None, max_cost: float | None) -> str:
    """Return a line on what is spent, the ceiling and what is left."""
    of_tokens = f"{tokens:,} tokens" + (
        "" if max_tokens is None else f" of {max_tokens:,} ({max(0, max_tokens - tokens):,} left)"
    )
    left = "" if max_cost is None else f" of {max_cost:g} ({max(0.0, max_cost - cost):.4f} left)"
    of_cost = f"{cost:.4f} USD{left}"
    ceiling = "; no ceiling is set (`budget`)" if max_tokens is None and max_cost is None else ""
    return f"spent: {of_tokens}, {of_cost}{ceiling}"


def describe_spending(spending: Spending) -> str:
    """Return a line on what is spent of the budget of a root, and what is left."""
    return describe_budget(*spending.total(), spending.budget.max_tokens, spending.budget.max_cost)
