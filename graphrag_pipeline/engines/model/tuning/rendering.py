"""Text of tuned sets and comparisons for a terminal.

Keep out: figures (`extraction_figures.py`).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from graphrag_pipeline.engines.model.tuning.comparison import PromptComparison, Side
from graphrag_pipeline.pipeline.tuned_sets import TunedSet
from graphrag_pipeline.text.counted import counted

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
