"""What goes from op to op of a query job: the pinned question, and each step's value with what it has cost so far.

So the token budget of a question holds over all its ops, and its answer is told with the whole account. Keep out: the
ops (`query_ops.py`).
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dagster as dg

from graphrag_pipeline.defs.runs.resources import IndexRoot
from graphrag_pipeline.query.graph_index import GraphIndex
from graphrag_pipeline.query.token_budget import TokenBudget, limited
from graphrag_pipeline.query.understanding.time_scope import TimeScope
from graphrag_pipeline.query.usage import Account, QueryUsage, accounted


@dataclass(frozen=True)
class Query:
    """A question pinned to a snapshot, with the settings it is answered by and the most tokens it may spend.

    Attributes:
        question: what is searched for: `asked` without its time phrase, where `time` says so.
        filters: given with the question, and those of its time.
    """

    question: str
    method: str
    snapshot: str
    settings: Any
    budget: int | None
    filters: tuple[str, ...]
    asked: str
    time: TimeScope


@dataclass(frozen=True)
class Found:
    """What a step found, and what the question has cost by then.

    Attributes:
        spent: tokens off its budget.
        seconds: of the steps themselves.
    """

    value: Any
    spent: int
    usage: QueryUsage
    seconds: float


@dataclass(frozen=True)
class Step:
    """An index to ask, what its models are asked for meanwhile, and what the steps before cost."""

    index: GraphIndex
    account: Account
    budget: TokenBudget
    before: Found
    started: float

    def paid(self) -> dict[str, Any]:
        """What models were asked for in this op; empty where none was."""
        line = QueryUsage(self.account.by_model(self.index.settings)).to_line()
        return {"models": line} if line else {}

    def found(self, context: dg.OpExecutionContext, value: Any, told: dict[str, Any]) -> Found:
        """A value for the next op; what is told of it shows in the UI."""
        context.add_output_metadata(told | self.paid())
        return Found(value, self.budget.spent, self.usage(), self.seconds())

    def usage(self) -> QueryUsage:
        """What models were asked for by now, for this question."""
        return self.before.usage + QueryUsage(self.account.by_model(self.index.settings))

    def seconds(self) -> float:
        """Time of the question's steps by now."""
        return self.before.seconds + time.perf_counter() - self.started


_NOTHING = Found(None, 0, QueryUsage(), 0.0)


@contextmanager
def step(index_root: IndexRoot, query: Query, before: Found = _NOTHING) -> Iterator[Step]:
    """Open the pinned snapshot for one op; what the ops before it spent is off the budget."""
    started = time.perf_counter()
    index = GraphIndex.open(index_root.path, snapshot=query.snapshot).where(query.filters)
    with accounted() as account, limited(query.budget, before.spent) as budget:
        yield Step(index, account, budget, before, started)
