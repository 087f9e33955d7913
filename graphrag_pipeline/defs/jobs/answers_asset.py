"""The asset `answers`: a history of questions and answers, with the cost of each answer.

Query jobs and the batch job record one materialization per answer; the UI plots its numbers (tokens, cost, seconds,
citations) over time. It is an external asset, downstream of `index_snapshot` in lineage only. No job materializes it,
so it never makes a part of the index stale. Keep out: answering.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from graphrag_pipeline.defs.assets.ledger import report_costs
from graphrag_pipeline.defs.assets.pages.metadata import COST, as_markdown, round_figures
from graphrag_pipeline.defs.assets.published import link_snapshot
from graphrag_pipeline.defs.runs.naming import asset_key, group_of
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import SNAPSHOT
from graphrag_pipeline.query.token_budget import EMBEDDED, QueryUsage
from graphrag_pipeline.text.safe_output import neutralize_markdown

ANSWERS = "answers"
_MAX_SHOWN = 50_000
"""Characters of an answer in an event: the UI shows no more at once, and every event is a row of the database."""
_COUNTS = ("rated", "kept", "pruned")
"""Counts of community reports, if the method rates them; separate numbers, which the UI plots."""


@dataclass(frozen=True)
class KeptAnswer:
    """An answer as the history shows it.

    Attributes:
        markdown: the answer with its sources.
        usage: of models, and of the embedded engine if it wrote the answer.
        seconds: from question to answer.
        selection: how the context was chosen, as `SearchResult.selection`.
        options: the options of the method that answered, with its defaults; `strategy` is one of local search.
    """

    question: str
    markdown: str
    method: str
    snapshot: str
    usage: QueryUsage
    seconds: float
    n_citations: int
    selection: Mapping[str, Any]
    options: Mapping[str, Any]


def build_answers_asset(root: Root) -> dg.AssetSpec:
    """Build the asset of lineage."""
    return dg.AssetSpec(
        asset_key(root, ANSWERS),
        deps=[asset_key(root, SNAPSHOT.name)],
        group_name=group_of(root, "answers"),
        description="What query jobs and the batch job answered, one materialization each, with its account.",
        kinds={"markdown"},
    )


def count_tokens(usage: QueryUsage) -> dict[str, int]:
    """Return the tokens that models were sent and sent back; of the embedded engine, those of context and answer."""
    sent, embedded = usage.of_models, usage.by_model.get(EMBEDDED)
    shown = {"tokens sent to models and received": sent.input_tokens + sent.output_tokens}
    if embedded:
        shown["tokens of context and answer without a model"] = embedded.input_tokens + embedded.output_tokens
    return shown


def keep_answer(context: dg.OpExecutionContext, root: Root, answer: KeptAnswer, filters: Sequence[str] = ()) -> None:
    """Record an answer in the history."""
    total = answer.usage.of_models
    metadata: dict[str, Any] = {
        "question": answer.question,
        "answer": as_markdown(answer.markdown[:_MAX_SHOWN]),
        "method": answer.method,
        "strategy": answer.options.get("strategy") or f"{answer.method} search has none",
        "snapshot": answer.snapshot,
        **link_snapshot(context.instance, root, answer.snapshot, "run that published the snapshot"),
        "asset of the snapshot": dg.MetadataValue.asset(asset_key(root, SNAPSHOT.name)),
        **count_tokens(answer.usage),
        "model calls": total.calls,
        **({"model calls without a price": total.unpriced} if total.unpriced else {COST: round(total.cost, 6)}),
        "seconds to answer": round(answer.seconds, 3),
        "citations in the answer": answer.n_citations,
        "options of the method": dg.MetadataValue.json(dict(answer.options)),
        "selection": dg.MetadataValue.json(round_figures(answer.selection)),
    }
    metadata |= {name: answer.selection[name] for name in _COUNTS if name in answer.selection}
    if line := answer.usage.to_line():
        metadata["models"] = line
    if filters:
        metadata["filters"] = " and ".join(filters)
    shown = neutralize_markdown(answer.question[:200])
    context.log_event(dg.AssetMaterialization(asset_key(root, ANSWERS), description=shown, metadata=metadata))
    report_costs(context.instance, root)
