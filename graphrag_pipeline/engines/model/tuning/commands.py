"""Command `tune`: writes prompts for the corpus, compares them with the present ones, adopts them and takes them back.

Text of tuned sets and comparisons for a terminal.

Keep out: sampling, requests and checks (`tuning/`).
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.commands.terminal import (
    ADVANCED_GROUP,
    JsonOption,
    RootOption,
    command_with_root,
    complete_tuned_set,
    echo,
    open_root,
    print_json,
)
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.accounting import paid_run
from graphrag_pipeline.settings.search_names import SampleMethod
from graphrag_pipeline.text.counted import counted

if TYPE_CHECKING:
    from graphrag_pipeline.engines.model.tuning.adoption import Effect
    from graphrag_pipeline.engines.model.tuning.comparison import PromptComparison, Side
    from graphrag_pipeline.inspection.costs import StageEstimate
    from graphrag_pipeline.pipeline.root import Root
    from graphrag_pipeline.pipeline.tuned_sets import TunedSet

_MAX_UNITS_SHOWN = 20
_WIDTH = 120
"""Columns of output that does not go to a terminal."""


def render_set(tuned: TunedSet) -> Iterator[str]:
    """Render what the model wrote and what was refused."""
    languages = ", ".join(f"{n} {language or 'not detected'}" for language, n in tuned.languages.items())
    sample = counted(len(tuned.sample), "text units")
    yield f"{tuned.name}: {sample} ({tuned.options['sample']}, seed {tuned.options['seed']})"
    yield f"  domain        {tuned.domain}"
    yield f"  language      {tuned.language or 'none'} (detected in text units: {languages})"
    yield f"  persona       {tuned.persona}"
    yield f"  entity types  {', '.join(tuned.entity_types)}"
    if tuned.rating:
        ends = "from 0 ({low}) to 10 ({high})".format(**tuned.rating)
        yield f"  rating        {tuned.rating['criterion']}, {ends}"
    for number, example in enumerate(tuned.examples, 1):
        counts = f"{counted(len(example.entities), 'entities')}, {counted(len(example.relationships), 'relationships')}"
        covered = f"{example.coverage:.0%} of the names that rules find"
        yield f"  example {number}     {counts}, {covered}: {example.passage[:60]} ..."
    for reason, n in tuned.refused.items():
        yield f"  refused       {n} x {reason}"
    for remark in tuned.remarks:
        yield f"  note          {remark}"


_LABELS = {
    "entities": ("entities a text unit", "{:.2f}"),
    "relationships": ("relationships a text unit", "{:.2f}"),
    "outside_share": ("share of types outside the list", "{:.1%}"),
    "repeated_share": ("share of repeated records", "{:.1%}"),
    "absent_share": ("share of names not in the text", "{:.1%}"),
    "isolated_share": ("share of entities without relationship", "{:.1%}"),
    "agreement": ("agreement with the embedded engine (F1)", "{:.3f}"),
}


def render_comparison(found: PromptComparison) -> Iterator[str]:
    """Render a comparison as a table, then the names that only one side found."""
    old, new = found.old, found.new
    yield f"{len(found.units):,} of {found.n_units:,} text units, none of them seen by the model for the set"
    yield f"{'':42}{'present':>12}{new.name[-14:]:>16}   difference [95 % interval]"
    differences = {difference.figure: difference.difference for difference in found.differences}
    for figure, (label, form) in _LABELS.items():
        means = (side.figures.means[figure].mean for side in (old, new))
        shown = ("-" if mean is None else form.format(mean) for mean in means)
        yield "{:42}{:>12}{:>16}   {}".format(label, *shown, differences[figure].render(3, "+"))
    rows = (
        ("distinct entities", *(f"{side.figures.n_distinct:,}" for side in (old, new))),
        ("text units without a usable reply", *(f"{side.figures.n_failed:,}" for side in (old, new))),
        ("calls paid for the sample", *(f"{side.sample.n_calls:,}" for side in (old, new))),
        ("tokens of a text unit", *(_tokens_each(side, found.n_units) for side in (old, new))),
        ("USD for all text units", *(_money(side.backfill.cost) for side in (old, new))),
    )
    yield from (f"{label:42}{first:>12}{second:>16}" for label, first, second in rows)
    yield f"The embedded engine finds {found.embedded:.2f} names a text unit."
    yield from _render_units(found)
    yield "The index did not change; the replies are stored, so indexing does not pay for them again."


def _tokens_each(side: Side, n_units: int) -> str:
    return f"{(side.backfill.prompt_tokens + side.backfill.completion_tokens) / n_units:,.0f}"


def _money(cost: float | None) -> str:
    return "not known" if cost is None else f"{cost:.4f}"


def _render_units(found: PromptComparison) -> Iterator[str]:
    width = max(shutil.get_terminal_size((_WIDTH, 0)).columns, 60)
    for unit in found.units[:_MAX_UNITS_SHOWN]:
        yield f"text unit {unit.id[:12]}: {counted(unit.n_both, 'names')} in both"
        for sign, names, failure in (("-", unit.only_old, unit.old_failure), ("+", unit.only_new, unit.new_failure)):
            if failure:
                yield f"  {sign} failed: {failure}"[:width]
            elif names:
                yield f"  {sign} {', '.join(names)}"[:width]


tuning = typer.Typer(
    help="Write prompts for the corpus, compare, adopt and take them back.", invoke_without_command=True
)
_Name = Annotated[
    str, typer.Argument(help="Name of a tuned set; `tune list` shows them.", autocompletion=complete_tuned_set)
]
_YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Send the calls without asking.")]
_DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only show what it would cost.")]


def add_tuning_commands(app: typer.Typer) -> None:
    """Mount the commands of this module."""
    app.add_typer(tuning, name="tune", rich_help_panel=ADVANCED_GROUP)


@tuning.callback()
def tune(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Option(help="Name of the tuned set; default: a hash of all that decides it.")
    ] = None,
    sample: Annotated[SampleMethod | None, typer.Option(help="Choice of text units; default: random.")] = None,
    size: Annotated[int | None, typer.Option(min=1, help="Text units in the sample; default: 15.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Random seed of the sample; default: 86.")] = None,
    domain: Annotated[str | None, typer.Option(help="Subject of the corpus; default: written by the model.")] = None,
    language: Annotated[
        str | None,
        typer.Option(help="Language of the corpus; adopting then sets it for all stages. Default: named by the model."),
    ] = None,
    persona: Annotated[str | None, typer.Option(help="Expert who reads; default: written by the model.")] = None,
    types: Annotated[
        str | None, typer.Option(help="Entity types, comma-separated; default: written by the model.")
    ] = None,
    examples: Annotated[
        int | None, typer.Option(min=0, max=10, help="Examples in the extraction prompt; default: 3.")
    ] = None,
    yes: _YesOption = False,
    dry_run: _DryRunOption = False,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a tuned set: domain, persona, entity types, rating scale and checked examples by the chat model.

    The prompts go into a new folder, `prompts/tuned/NAME`. Nothing else changes until `tune adopt NAME`.
    """
    if context.invoked_subcommand:
        return
    from graphrag_pipeline.engines.model.tuning.sampling import Corpus
    from graphrag_pipeline.engines.model.tuning.tuner import (
        Given,
        estimate_tuning,
        find_written,
        plan_tuning,
        write_tuned_set,
    )
    from graphrag_pipeline.settings.section import TuningSample

    project = open_root(root)
    project.pull()
    options = {"sample": sample, "size": size, "seed": seed, "n_examples": examples}
    settings = TuningSample(**{k: v for k, v in options.items() if v is not None})
    given = Given(domain, language, persona, tuple(filter(None, (t.strip() for t in (types or "").split(",")))))
    tuned_by = plan_tuning(project, Corpus(project), settings, given, name)
    found = find_written(project, tuned_by)
    estimate = None
    if found is None:
        estimate = estimate_tuning(project, tuned_by)
        if not _agree_to([estimate], yes, dry_run, as_json):
            return
        with paid_run("tune", tuned_by.name):
            found = write_tuned_set(project, tuned_by)
    if as_json:
        print_json({**asdict(found), "folder": str(_folder(project, found.name)), "estimate": _plain(estimate)})
        return
    for line in render_set(found):
        echo(line)
    echo(f"{'wrote' if estimate else 'exists already:'} {_folder(project, found.name)}")
    command = command_with_root(root)
    echo(f"Compare it: {command} tune try {found.name}; use it: {command} tune adopt {found.name}")


@tuning.command("list")
def list_all(root: RootOption = None, as_json: JsonOption = False) -> None:
    """List the tuned sets of the root."""
    from graphrag_pipeline.pipeline.tuned_sets import list_sets

    project = open_root(root)
    found, adopted = list(list_sets(project.path)), project.settings.tuning.adopted
    if as_json:
        print_json([{**asdict(tuned), "is_adopted": tuned.name == adopted} for tuned in found])
        return
    for tuned in found:
        mark = "  adopted" if tuned.name == adopted else ""
        made_of = f"{counted(len(tuned.sample), 'text units')}, {counted(len(tuned.examples), 'examples')}"
        echo(f"{tuned.name}  {made_of}: {tuned.domain}{mark}")
    if not found:
        echo(f"no tuned sets; run `{command_with_root(root)} tune` to write one")


@tuning.command("show")
def show(name: _Name, root: RootOption = None, as_json: JsonOption = False) -> None:
    """Show what the model wrote for a tuned set, and what was refused."""
    from graphrag_pipeline.pipeline.tuned_sets import need_set

    project = open_root(root)
    tuned = need_set(project.path, name)
    excess = _explain_excess(project, tuned)
    if as_json:
        print_json({**asdict(tuned), "does_not_fit": excess})
        return
    for line in render_set(tuned):
        echo(line)
    if excess:
        echo(f"  does not fit  {excess}")


@tuning.command("try")
def try_set(
    name: _Name,
    sample: Annotated[int, typer.Option(min=1, help="Text units, none of which the model saw for the set.")] = 10,
    yes: _YesOption = False,
    dry_run: _DryRunOption = False,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Extract the same text units with the present prompts and with a tuned set, and compare the figures."""
    from graphrag_pipeline.engines.model.tuning.comparison import choose_compared, compare_sets, estimate_comparison
    from graphrag_pipeline.engines.model.tuning.sampling import Corpus
    from graphrag_pipeline.pipeline.tuned_sets import need_set

    project = open_root(root)
    project.pull()
    tuned, corpus = need_set(project.path, name), Corpus(project)
    units = choose_compared(project, corpus, tuned, sample)
    if units.num_rows < sample:
        found_units = f"{units.num_rows:,} of the {sample:,} text units asked for"
        echo(f"warning: compares {found_units}: the model saw the texts of all others for `{name}`", err=True)
    if excess := _explain_excess(project, tuned):
        echo(f"warning: the set `{name}` does not fit, and `tune adopt` refuses it: {excess}", err=True)
    estimates = estimate_comparison(project, tuned, units)
    if not _agree_to(estimates, yes, dry_run, as_json):
        return
    with paid_run("tune try", name):
        found = compare_sets(project, corpus, tuned, units)
    if as_json:
        print_json({**asdict(found), "estimates": [asdict(estimate) for estimate in estimates],
                    "does_not_fit": excess})  # fmt: skip
        return
    for line in render_comparison(found):
        echo(line)


@tuning.command("adopt")
def adopt_set(
    name: _Name,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change and become stale.")] = False,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put a tuned set in force, and show what becomes stale and what indexing would cost."""
    from graphrag_pipeline.engines.model.tuning.adoption import (
        adopt,
        list_unused,
        options_of,
        preview,
        refuse_too_long,
        root_with,
    )
    from graphrag_pipeline.inspection.extraction_room import note_unknown
    from graphrag_pipeline.pipeline.tuned_sets import need_set

    project = open_root(root)
    project.pull()
    tuned = need_set(project.path, name)
    refuse_too_long(root_with(project, tuned), name)
    effect = preview(project, root_with(project, tuned))
    options = [f"{section}.{key}: {value}" for (section, key), value in options_of(tuned).items()]
    options += filter(None, [*list_unused(project.settings), note_unknown(project)])
    if not dry_run:
        adopt(project, tuned)
    _report_change(f"adopted {name}", options, effect, dry_run, as_json)
    if not as_json and not dry_run:
        command = command_with_root(root)
        echo(f"`{command} index` runs these stages; `{command} tune revert` takes the set back")


@tuning.command("revert")
def revert_set(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change and become stale.")] = False,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take the adopted set back: the former prompts and settings are in force again."""
    from graphrag_pipeline.engines.model.tuning.adoption import preview, revert, reverted_settings, root_without

    project = open_root(root)
    project.pull()
    name, _, kept = reverted_settings(project)
    effect = preview(project, root_without(project))
    if not dry_run:
        revert(project)
    _report_change(f"{'taken' if dry_run else 'took'} back {name}", kept, effect, dry_run, as_json)


# -------------------------------------------------------------------------------------------------------------- asking


def _agree_to(estimates: Sequence[StageEstimate], yes: bool, dry_run: bool, as_json: bool) -> bool:
    """Show what calls would cost, and ask whether to send them; without a terminal, `--yes` is the answer.

    Raises:
        PipelineError: there are calls to send, and neither a terminal nor `--yes`.
    """
    from graphrag_pipeline.inspection.costs import render_estimates

    if as_json and dry_run:
        print_json({"estimates": [asdict(estimate) for estimate in estimates]})
        return False
    for line in render_estimates(estimates):
        echo(line, err=not dry_run)
    if dry_run:
        return False
    if yes or not any(estimate.n_calls for estimate in estimates):
        return True
    if not sys.stdin.isatty():
        raise PipelineError("nothing was sent: pass --yes to send these calls, or --dry-run to see their cost only")
    return typer.confirm("Send these calls?", err=True)


def _explain_excess(root: Root, tuned: TunedSet) -> str:
    from graphrag_pipeline.engines.model.tuning.adoption import root_with
    from graphrag_pipeline.inspection.extraction_room import explain_excess

    return explain_excess(root_with(root, tuned))


def _folder(root: Root, name: str) -> Any:
    from graphrag_pipeline.pipeline.tuned_sets import folder_of

    return folder_of(root.path, name)


def _plain(estimate: StageEstimate | None) -> dict[str, Any] | None:
    return asdict(estimate) if estimate else None


def _report_change(what: str, lines: Sequence[str], effect: Effect, dry_run: bool, as_json: bool) -> None:
    from graphrag_pipeline.inspection.costs import render_estimates

    stale = [{"stage": stage, "why": why, "partitions": keys} for (stage, why), keys in effect.stale.items()]
    if as_json:
        estimates = [asdict(estimate) for estimate in effect.estimates]
        print_json({"change": what, "is_done": not dry_run, "options": list(lines), "stale": stale,
                    "n_stale_before": effect.n_stale_before, "n_becoming_fresh": effect.n_becoming_fresh,
                    "estimates": estimates})  # fmt: skip
        return
    echo(f"would have {what}" if dry_run else what)
    for line in lines:
        echo(f"  {line}")
    for item in stale:
        keys = "" if item["partitions"] == ["all"] else f" {' '.join(item['partitions'])}"
        echo(f"stale {item['stage']}{keys}: {item['why']}")
    if not stale:
        echo("nothing becomes stale")
    if effect.n_stale_before and effect.n_becoming_fresh is not None:
        echo(f"partitions stale before: {effect.n_stale_before}; of these become fresh: {effect.n_becoming_fresh}")
    if effect.estimates:
        echo("model calls of the next `graphrag-pipeline index`, estimated:")
        for line in render_estimates(effect.estimates):
            echo(line)
