"""Command `status`: what is stale and why, what running it would cost, and which snapshot is published."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.commands.snapshots import render_pin
from graphrag_pipeline.commands.terminal import (
    JsonOption,
    Line,
    RootOption,
    diff_lines,
    echo_lines,
    open_root,
    print_json,
)
from graphrag_pipeline.errors import EncodingError
from graphrag_pipeline.text.counted import counted

if TYPE_CHECKING:
    from graphrag_pipeline.pipeline.root import Root
    from graphrag_pipeline.pipeline.staleness import StalePartition

_MAX_FAILURES_SHOWN = 20
"""Lines on failed records, one for each stage and reason."""
_VARYING = re.compile(r"""(?<!\w)'[^']*'(?!\w)|"[^"]*"|`[^`]*`|[\w-]*\d[\w,.-]*""")
"""Parts in which one reason differs from record to record: quoted texts, numbers and ids."""
_FIGURES = ("aggregation", "averaged_vectors")
"""Keys of `read_embedding_figures`."""


def status(
    root: RootOption = None,
    has_estimate: Annotated[
        bool,
        typer.Option(
            "--estimate/--no-estimate", help="Whether to estimate model calls, and to count those that chunks save."
        ),
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Show what is stale and why, what running it would cost, and which snapshot is published."""
    project = open_root(root)
    project.pull()
    values = _read_state(project, has_estimate)
    if as_json:
        print_json(values)
        return
    echo_lines(_render_state(project, values))


def _read_state(project: Root, has_estimate: bool) -> dict[str, Any]:
    """Return everything that `status` shows, by the keys of `--json`."""
    from dataclasses import asdict

    from graphrag_pipeline.inspection.costs import list_last_problems
    from graphrag_pipeline.pipeline.detected_input import detect_input, list_notes, list_problems
    from graphrag_pipeline.pipeline.open_work import (
        find_unpublished_candidate,
        list_failures,
        list_unread_prompts,
        list_unused_overrides,
        measure_lag,
    )
    from graphrag_pipeline.pipeline.prompt_texts import diff_prompts, find_prompt_problem
    from graphrag_pipeline.pipeline.stage_code import asks_any_model
    from graphrag_pipeline.pipeline.staleness import find_stale

    manifests = detect_input(project)
    is_imported = project.is_imported  # then the index does not use the input folder
    layout_problem = project.tables.find_layout_problem(project.settings.storage.n_buckets)
    prompt_problem = find_prompt_problem(project)
    stale = [] if is_imported or layout_problem else find_stale(project, manifests)
    is_estimated = has_estimate and bool(stale) and not prompt_problem and asks_any_model(project.settings)
    problems = [{"path": path, "problem": problem} for path, problem in list_problems(manifests)]
    return {
        "root": str(project.path),
        "snapshot": project.snapshots.current(),
        "pinned": project.snapshots.pinned(),
        "waiting": find_unpublished_candidate(project),
        "is_imported": is_imported,
        "layout_problem": layout_problem,
        "prompt_problem": prompt_problem,
        "documents": sum(rows.num_rows for rows in manifests.values()) - len(problems),
        "problems": problems,
        "notes": [{"path": path, "note": note} for path, note in list_notes(manifests)],
        "failures": list_failures(project),
        "reports": measure_lag(project).to_dict(),
        "replies": list_last_problems(project),
        "unused_overrides": [] if is_imported else list_unused_overrides(project),
        "unread_prompts": list_unread_prompts(project),
        "stale": [asdict(item) for item in stale],
        "prompt_differences": diff_prompts(project, _changes_of(stale)),
        **_read_counts(project, stale if is_estimated else [], has_estimate and not is_imported),
    }


def _read_counts(project: Root, stale: Sequence[StalePartition], has_figures: bool) -> dict[str, Any]:
    """Return estimated calls and figures on embedding calls; `uncounted` says why they are missing, "" if they are not.

    Counting needs the tokenizers of the settings, which may have to be downloaded. All else in `status` needs none.
    """
    from dataclasses import asdict

    from graphrag_pipeline.inspection.embedding_figures import read_embedding_figures
    from graphrag_pipeline.inspection.estimates import estimate_index

    counts: dict[str, Any] = {"estimates": [], "uncounted": ""}
    try:
        counts["estimates"] = [asdict(estimate) for estimate in (estimate_index(project, stale) if stale else [])]
        return counts | (read_embedding_figures(project) if has_figures else {})
    except EncodingError as error:
        return counts | {"uncounted": f"calls are not counted: {error}"}


def _changes_of(stale: Iterable[StalePartition]) -> list[Any]:
    return [change for item in stale for change in item.changes]


def _render_state(project: Root, values: Mapping[str, Any]) -> Iterator[Line | str]:
    """Yield the lines of `status`."""
    from graphrag_pipeline.inspection.embedding_figures import render_embedding_figures

    yield from _render_facts(values)
    yield from _render_open_work(values)
    yield from _render_stale(values)
    yield from [Line(values["uncounted"], "warning")] if values["uncounted"] else []
    figures = {key: values[key] for key in _FIGURES if key in values}
    settings = project.settings
    has_model, is_halving = settings.embeddings.engine == "model", settings.embedding_model.refused_texts == "halve"
    yield from render_embedding_figures(figures, has_model, is_halving) if figures else []


def _render_facts(values: Mapping[str, Any]) -> Iterator[Line | str]:
    origin = " (imported; it does not contain the documents of the input folder)" if values["is_imported"] else ""
    yield Line(f"root {values['root']}", "heading")
    yield f"snapshot {values['snapshot'] or 'none published'}{origin}"
    yield from render_pin(values["pinned"], values["waiting"])
    yield from (Line(values[name], "error") for name in ("layout_problem", "prompt_problem") if values[name])
    yield f"{counted(values['documents'], 'documents')}, {len(values['problems'])} not readable"
    for problem in values["problems"]:
        yield Line(f"  {problem['path']}: {problem['problem']}", "warning")
    for note in values["notes"]:
        yield Line(f"note: {note['path']}: {note['note']}", "warning")


def _render_open_work(values: Mapping[str, Any]) -> Iterator[Line | str]:
    yield from (Line(line, "warning") for line in _render_failures(values["failures"]))
    yield from render_lag(values["reports"])
    yield from (Line(line, "warning") for line in [*values["unused_overrides"], *values["unread_prompts"]])
    yield from (f"last run, left out or repaired in {line}" for line in values["replies"])


def _render_failures(failures: list[dict[str, str]]) -> list[str]:
    """Return one line per stage and reason, the most frequent first, and what comes next.

    `status --json` and the table `failures` of `sql` have every failure. Reasons that differ only in numbers, ids or
    quoted texts are one reason.
    """
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for failure in failures:
        groups.setdefault((failure["stage"], _VARYING.sub("…", failure["reason"])), []).append(failure)
    shown = sorted(groups.values(), key=len, reverse=True)[:_MAX_FAILURES_SHOWN]
    lines = [_render_group(group) for group in shown]
    n_more = len(failures) - sum(map(len, shown))
    lines += [f"and {counted(n_more, 'more failures')}: see `status --json`"] if n_more else []
    return [*lines, "the next `index` asks for these records again"] if lines else []


def _render_group(failures: Sequence[Mapping[str, str]]) -> str:
    """Return how many records of a stage failed for one reason, with the first of them."""
    first = failures[0]
    is_shown = "the reply starts" in first["reason"] or not first["reply"]
    reply = "" if is_shown else f"; the reply starts {first['reply'][:80]!r}"
    record = f"{first['place']} ({first['record'][:8]})" if first["place"] else first["record"]
    records = f"{counted(len(failures), 'records')}, such as {record}" if len(failures) > 1 else record
    return f"failed {first['stage']}: {records}: {first['reason']}{reply}"


def render_lag(reports: dict[str, Any]) -> list[str]:
    """Return a line on deferred reports; none without them."""
    if not reports["n_waiting"]:
        return []
    return [
        f"deferred {reports['n_waiting']:,} of {reports['n_reports']:,} reports: at most "
        f"{reports['largest_new_share']:.1%} of the evidence of a community is new (`reports.rewrite_share`; 0 defers "
        "none)"
    ]


def _render_stale(values: Mapping[str, Any]) -> Iterator[Line | str]:
    """Yield one line per stage and reason, the differences of prompts, and the estimate."""
    from graphrag_pipeline.inspection.costs import render_estimates
    from graphrag_pipeline.inspection.stage_estimates import StageEstimate

    if not values["stale"] and not values["is_imported"] and not values["layout_problem"]:
        yield Line("everything is fresh", "added")
    groups: dict[tuple[str, str], list[str]] = {}
    for item in values["stale"]:
        groups.setdefault((item["stage"], "; ".join(item["reasons"])), []).append(item["partition"])
    for (stage, why), keys in groups.items():
        yield Line(f"stale {stage}{'' if keys == ['all'] else ' ' + ' '.join(keys)}: {why}", "warning")
    yield from diff_lines(values["prompt_differences"])
    if values["estimates"]:
        yield "model calls of `graphrag-pipeline index`, estimated:"
        yield from render_estimates([StageEstimate(**estimate) for estimate in values["estimates"]])
