"""Costs: paid by an index, expected for a stage, and the limits on both."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Any, cast

import pyarrow as pa

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.indexing.ports import CallingExtractor
from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.models.endpoints.replies import MAX_ASKED
from graphrag_pipeline.models.pool import StoredReplies
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES, Stage
from graphrag_pipeline.publishing.checks import find_mixed
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.storage.table_store import code_version_of
from graphrag_pipeline.text.tokens import count_tokens_each

REPLY_TOKENS = {"extracted_graph": 500, "graph": 40, "summarized_descriptions": 120, "community_reports": 800}
_MIN_REPLIES = 20  # minimum number of stored replies for using their mean


@dataclass(frozen=True)
class StageEstimate:
    """Estimated model calls of one stage.

    Attributes:
        n_calls, n_cached: calls to send, and calls answered from stored replies.
        cost: US dollars; None if the price of the model is not known.
        is_scaled: whether the number of calls is scaled rather than counted.
        least_calls, most_calls: range of a number of calls that is scaled; None if the calls are counted.
    """

    stage: str
    n_calls: int = 0
    n_cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    is_scaled: bool = False
    least_calls: int | None = None
    most_calls: int | None = None

    @property
    def call_range(self) -> tuple[int, int]:
        """Least and most calls; equal if they are counted."""
        least, most = self.least_calls, self.most_calls
        return self.n_calls if least is None else least, self.n_calls if most is None else most

    def at(self, end: int) -> tuple[int, float]:
        """Return the tokens and the US dollars of the least (0) or the most calls (1)."""
        share = self.call_range[end] / max(1, self.n_calls)
        return ceil(share * (self.prompt_tokens + self.completion_tokens)), share * (self.cost or 0.0)


def with_price(settings: Settings, estimate: StageEstimate, section: str) -> StageEstimate:
    """Return an estimate with its cost by the model of a section."""
    # SQLAlchemy is slow to import.
    from graphrag_pipeline.models.endpoints.batching import PRICE_SHARE, desk_for
    from graphrag_pipeline.models.spending import find_price

    model = settings.model_for(section)
    price = find_price(model.model, model.base_url, model.prompt_price, model.completion_price)
    share = PRICE_SHARE if desk_for(section) else 1.0
    cost = share * price.cost(estimate.prompt_tokens, estimate.completion_tokens) if price else None
    return replace(estimate, cost=cost)


def estimate_extraction(root: Root, units: pa.Table) -> StageEstimate:
    """Return the calls, tokens and cost of extracting some text units with the prompts and settings of a root.

    Args:
        units: needs `id`, `text`, `context` and `n_tokens`.
    """
    return with_price(root.settings, count_extraction(root, units), "extraction")


def count_extraction(root: Root, units: pa.Table) -> StageEstimate:
    """Return the estimate of `estimate_extraction` without its cost."""
    extractor, chat = cast(CallingExtractor, root.extractor()), root.models.chat_model("extraction")
    model = StoredReplies(chat)
    model.run_works(extractor.works(units, model))
    tokens_of = dict(zip(units["id"].to_pylist(), units["n_tokens"].to_pylist(), strict=True))
    reply_tokens = guess_reply_tokens(root, "extracted_graph")
    n_calls = prompt_tokens = 0
    frame = sum(count_tokens_each([message["content"] for message in extractor.frame()]))
    n_turns = root.settings.extraction.max_gleanings + 1
    for request, n_asked in zip(model.missing, chat.count_asked(model.missing), strict=True):
        if n_asked >= MAX_ASKED:
            continue
        n_replies = sum(message["role"] == "assistant" for message in request.messages)
        n_left = n_turns - n_replies
        n_claims = n_turns * (root.settings.extraction.has_claims and len(request.messages) <= 2)
        opening = frame + tokens_of[request.record]
        n_calls += n_left + n_claims
        prompt_tokens += sum(opening + (n_replies + turn) * reply_tokens for turn in range(n_left))
        prompt_tokens += n_claims * (frame + root.settings.text_units.size // 2)
    return StageEstimate("extracted_graph", n_calls, model.n_cached, prompt_tokens, n_calls * reply_tokens)


def guess_reply_tokens(root: Root, stage: str) -> int:
    """Return the tokens of one reply: the mean of the stored ones, else `REPLY_TOKENS`."""
    section = STAGES[stage].engine
    model = root.settings.chat_model_for(section).model
    n_replies, mean = root.models.cache.mean_completion(section, model)
    return round(mean) if n_replies >= _MIN_REPLIES else REPLY_TOKENS[stage]


class MixedPromptsError(PipelineError):
    """Buckets come from different prompts, models or settings; a retry fails again."""


def refuse_mixed_buckets(root: Root) -> None:
    """Refuse to pay for stages of the whole corpus while buckets come from different prompts, models or settings.

    Raises:
        MixedPromptsError: they do, and `publishing.allow_mixed_prompts` is off.
    """
    if root.settings.publishing.allow_mixed_prompts:
        return
    stages = [stage for stage in STAGES.values() if stage.is_partitioned]
    keys = [(table, key) for stage in stages for table in stage.tables for key in stage.partitions(root.settings)]
    heads = {f"{table}/{key}": head for table, key in keys if (head := root.tables.head(table, key))}
    versions = {name: {"code_version": head.code_version} for name, head in heads.items()}
    if mixed := find_mixed(versions, {head.code_version: head.code for head in heads.values()}):
        raise MixedPromptsError(f"{mixed[0]}. No call was made, because such an index is not published")


def explain_mixture(root: Root, stage: Stage, chosen: Iterable[str]) -> str:
    """Return a warning if other buckets come from other prompts, models or settings than some will now, else "".

    A run of some buckets is paid all the same: bucket after bucket is a way to bring all of them up to date.
    """
    others = [key for key in stage.partitions(root.settings) if key not in set(chosen)]
    now = code_version_of(root.code_of(stage))
    heads = {key: root.tables.head(table, key) for table in stage.tables for key in others}
    old = sorted(key for key, head in heads.items() if head and head.code_version != now)
    if not old or root.settings.publishing.allow_mixed_prompts:
        return ""
    return (
        f"{stage.name}: {len(old):,} other buckets ({' '.join(old)}) come from other prompts, models or settings. What "
        "this run pays for cannot be published before they are materialized, too; `reindex_stale` does all of them"
    )


def refuse_over_budget(root: Root, estimates: Iterable[StageEstimate]) -> None:
    """Refuse calls whose estimate is above what is left of the budget; of a range, its least counts.

    The limit that the error advises is enough for the most of the range.

    Raises:
        BudgetExceededError: they do not fit, and `budget.check_estimate` is on.
    """
    from graphrag_pipeline.models.spending import BudgetExceededError  # SQLAlchemy is slow to import

    spending = root.models.spending
    if not spending.has_ceiling:
        return
    made = list(estimates)
    (tokens, cost), (most_tokens, most_cost) = (
        (sum(estimate.at(end)[0] for estimate in made), sum(estimate.at(end)[1] for estimate in made)) for end in (0, 1)
    )
    if problem := spending.explain_excess(tokens, cost, most_tokens, most_cost):
        raise BudgetExceededError(problem)


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
    ended = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = json.dumps({"command": _INDEX, "ended": ended, "stages": stages}, sort_keys=True).encode() + b"\n"
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
    """Return all logged index runs, oldest first, without a partial line that a power cut left."""
    path = root.cache_folder / _FILE
    runs = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            runs.append({"command": _INDEX, **json.loads(line)})
        except ValueError:
            continue
    return [run for run in runs if run["command"] == _INDEX]  # older versions logged other commands, too


def describe_models(settings: Settings, estimates: Sequence[StageEstimate]) -> list[str]:
    """Return lines on the models of the estimates: prices and where they come from, batches, variables to set."""
    from graphrag_pipeline.models.endpoints.batching import desk_for
    from graphrag_pipeline.models.endpoints.places import find_unset
    from graphrag_pipeline.models.spending import describe_price

    sections = {estimate.stage: STAGES[estimate.stage].model_section for estimate in estimates}
    models = [settings.model_for(section) for section in sections.values()]
    said = [
        f"{m.model} costs {describe_price(m.model, m.base_url, m.prompt_price, m.completion_price)}" for m in models
    ]
    if batched := [stage for stage, section in sections.items() if desk_for(section)]:
        said.append(f"in batches, at half price: {', '.join(batched)}")
    unset = dict.fromkeys(variable for model in models for variable in find_unset(model))
    return [*dict.fromkeys(said), *(f"set the environment variable {variable} before the run" for variable in unset)]


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
    least_cost, most_cost = (sum(estimate.at(end)[1] for estimate in estimates) for end in (0, 1))
    is_priced = most_cost and all(estimate.cost is not None for estimate in estimates)
    price = f" for {least_cost:.4f} to {most_cost:.4f} USD" if is_priced else ""
    if not any(estimate.is_scaled for estimate in estimates):
        return []
    calls = f"about {most:,}" if least == most else f"{least:,} to {most:,}"
    return [
        "~ is an estimate from the present index or from rules on a sample of this corpus; in all, "
        f"{calls} calls{price} are likely: a model may find less or more than rules"
    ]


def _money(cost: float | None) -> str:
    return "not known" if cost is None else f"{cost:.4f}"


def _paid(actual: Mapping[str, Any]) -> str:
    """Return the cost of calls, with a note if some calls have no known price."""
    cost, n_unpriced = actual.get("cost_usd", 0.0), actual.get("unpriced_calls", 0)
    if not n_unpriced:
        return _money(cost)
    return f"{_money(cost)} or more" if cost else "not known"


def render_costs(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Render calls, tokens and cost of each `index` by stage, estimated -> actual."""
    lines = []
    for run in runs:
        lines.append(run["ended"])
        lines += [f"  {stage:26} {_compare(figures)}" for stage, figures in run["stages"].items()]
        lines += [f"  {line}" for line in render_problems(run)]
    return [*lines, _BUDGET_NOTE] if lines else ["no index run with model calls yet"]


def list_last_problems(root: Root) -> list[str]:
    """Return what the last index run in the log left out of the replies of models, one line a stage."""
    runs = read_costs(root)
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


def _tokens(figures: Mapping[str, Any]) -> int:
    return figures.get("prompt_tokens", 0) + figures.get("completion_tokens", 0)
