"""Contexts that are made shorter because they do not fit the window of a model.

The parts of a context are in rank order, so the last record of a part matters least. Keep out: the choice of a context
for a known limit (`search/`), and requests.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace

from graphrag_pipeline.query.rendering import PLAIN, ContextStyle, render_context
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.text.tokens import count_tokens

ROW_TOKENS = 4
"""Tokens of a row of a context besides its text."""
FILLED_SHARE = 0.9
"""Share of the room that a shorter context may fill: a model that counts more tokens keeps room for its reply."""


def shorten_context(context: Context, n_tokens: int, style: ContextStyle = PLAIN) -> Context | None:
    """Return the context without its last records, at least `n_tokens` tokens shorter; None if nothing would be left.

    The part with the most tokens loses its last record, until enough is gone. The first text unit goes last if it takes
    at most half of the room: without a passage, an answer has nothing to quote.

    Args:
        style: in which the context is shown, and counted.
    """
    most = int(FILLED_SHARE * (count_tokens(render_context(context, style)) - n_tokens))
    if most <= 0:
        return None
    is_passage_kept = any(unit.n_tokens <= most // 2 for unit in context.text_units[:1])
    order = _removal_order(context, int(is_passage_kept))
    counts = range(len(order))
    n = bisect_left(counts, -most, key=lambda n: -count_tokens(render_context(_without(context, order[:n]), style)))
    return _without(context, order[:n]) if n < len(order) else None


def _removal_order(context: Context, n_kept: int) -> list[str]:
    """Return for each record of a context the part that loses its last record then; the first text units go last."""
    sizes = {name: [record.n_tokens + ROW_TOKENS for record in records] for name, records in vars(context).items()}
    order = []
    while any(sizes.values()):
        left = [name for name in sizes if len(sizes[name]) > n_kept * (name == "text_units")] or ["text_units"]
        name = max(left, key=lambda name: (sum(sizes[name]), name))
        sizes[name].pop()
        order.append(name)
    return order


def _without(context: Context, removed: list[str]) -> Context:
    """Return a context whose parts lose their last record as often as they are named."""
    parts = {name: records[: len(records) - removed.count(name)] for name, records in vars(context).items()}
    return replace(context, **parts)


def split_context(context: Context) -> tuple[Context, ...]:
    """Return two contexts with half of the records of each part; none if the context has less than two records."""
    if count_records(context) < 2:
        return ()
    middles = {name: (len(records) + 1) // 2 for name, records in vars(context).items()}
    first = {name: records[: middles[name]] for name, records in vars(context).items()}
    second = {name: records[middles[name] :] for name, records in vars(context).items()}
    return tuple(half for half in (replace(context, **first), replace(context, **second)) if not half.is_empty)


def count_records(context: Context) -> int:
    """Return the number of records of all parts."""
    return sum(len(records) for records in vars(context).values())
