"""Contexts that are made shorter because they do not fit the window of a model.

The parts of a context are in rank order, so the last record of a part matters least. Keep out: the choice of a context
for a known limit (`search/`), and requests.
"""

from __future__ import annotations

from dataclasses import replace

from graphrag_pipeline.query.results import Context

ROW_TOKENS = 4
"""Tokens of a row of a context besides its text."""


def shorten_context(context: Context, n_tokens: int) -> Context | None:
    """Return the context without its last records, at least `n_tokens` tokens shorter; None if nothing would be left.

    The part with the most tokens loses its last record, until enough is gone.
    """
    parts = {name: list(records) for name, records in vars(context).items()}
    sizes = {name: sum(record.n_tokens + ROW_TOKENS for record in records) for name, records in parts.items()}
    left = n_tokens
    while left > 0 and any(parts.values()):
        name = max((name for name in parts if parts[name]), key=lambda name: (sizes[name], name))
        size = parts[name].pop().n_tokens + ROW_TOKENS
        sizes[name] -= size
        left -= size
    shorter = replace(context, **{name: tuple(records) for name, records in parts.items()})
    return None if shorter.is_empty else shorter


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
