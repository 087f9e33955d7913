"""A stage tried on a sample: what it made of some records, and what prompts, model and settings on disk make of them.

The records are those of the stage tables as they are, chosen the same way each time (`spread`). Nothing of the index is
written; replies go to the store, so that a backfill with the same prompts does not pay for them again. Keep out: what a
record of one stage is (`trial_samples.py`), and how it is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.inspection.estimates import StageEstimate, estimate_index
from graphrag_pipeline.inspection.trial_samples import SAMPLERS, Result, Sample
from graphrag_pipeline.models.accounting import CallStats, booked_to
from graphrag_pipeline.models.pool import run_all
from graphrag_pipeline.models.ports import ChatModel, ChatReply, ChatRequest, Failure
from graphrag_pipeline.models.prices import find_price
from graphrag_pipeline.pipeline.code_changes import CodeChange, find_code_changes
from graphrag_pipeline.pipeline.detected_input import INPUT
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stage_code import uses_chat_model
from graphrag_pipeline.pipeline.stages import STAGES, Stage, all_upstream_of
from graphrag_pipeline.pipeline.staleness import StalePartition, find_stale_versions

EMBEDDED = "the embedded engine"

T = TypeVar("T")


@dataclass(frozen=True)
class TriedRecord:
    """One record of the sample.

    Attributes:
        id, name: of the text unit, of the described entity or relationship, or of the community.
        old: what the stage tables hold, "" if they hold nothing.
        new: what is made of it now, "" if that failed.
        added, removed: what is found now and was not, and the other way round, for a stage that finds things.
        failure: why there is no new text; "" if there is.
    """

    id: str
    name: str
    old: str
    new: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    failure: str = ""

    @property
    def is_changed(self) -> bool:
        return self.old != self.new


@dataclass(frozen=True)
class Trial:
    """A stage tried.

    Attributes:
        made_by: the model's name, or the embedded engine.
        changes: of prompts, model, settings and code since the index was made.
        stale_above: stages above it that have to run and why; the sample is of what they made before. Whether the input
            folder changed is not looked at.
        n_records: of the index, that the stage asks about.
        sample: what the sample took now; None where no model is asked.
        backfill: what all records take, scaled from the sample, its replies included.
        estimate: what `estimates.py` says a backfill would still ask for, with the sample's replies stored.
    """

    stage: str
    made_by: str
    changes: tuple[CodeChange, ...]
    stale_above: tuple[str, ...]
    n_records: int
    records: tuple[TriedRecord, ...]
    sample: StageEstimate | None = None
    backfill: StageEstimate | None = None
    estimate: StageEstimate | None = None


class MeteredModel:
    """A chat model that counts the replies given, stored ones too; implements `ports.ChatModel`."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.stage, self.fingerprint, self.max_concurrency = model.stage, model.fingerprint, model.max_concurrency
        self.n_replies = self.prompt_tokens = self.completion_tokens = 0

    async def complete(self, request: ChatRequest[T]) -> ChatReply[T]:
        """See `ports.ChatModel.complete`."""
        reply = await self._model.complete(request)
        self._count(reply)
        return reply

    def recall(self, requests: Sequence[ChatRequest[T]]) -> list[ChatReply[T] | None]:
        """See `ports.ChatModel.recall`."""
        replies = self._model.recall(requests)
        for reply in replies:
            if reply is not None:
                self._count(reply)
        return replies

    def _count(self, reply: ChatReply[T]) -> None:
        self.n_replies += 1
        self.prompt_tokens += reply.prompt_tokens
        self.completion_tokens += reply.completion_tokens


def spread(ids: Sequence[str], n: int) -> list[str]:
    """At most `n` of some ids, evenly spread over them in their order; the same ones each time."""
    ordered = sorted(ids)
    if n >= len(ordered):
        return ordered
    return [ordered[(2 * i + 1) * len(ordered) // (2 * n)] for i in range(n)]


def find_tried_stage(name: str) -> Stage:
    """A stage that can be tried, by its name or by its section of the settings.

    Raises:
        PipelineError: there is none of that name; the message lists those there are.
    """
    for stage_name in SAMPLERS:
        if name in (stage_name, STAGES[stage_name].engine):
            return STAGES[stage_name]
    known = ", ".join(f"{stage} (or {STAGES[stage].engine})" for stage in SAMPLERS)
    raise PipelineError(f"{name}: no stage to try; try {known}; for merges see `graphrag-pipeline merges --dry-run`")


def try_stage(root: Root, stage: Stage, n_sample: int) -> Trial:
    """Make a sample of a stage's records anew, beside what the stage tables hold.

    Raises:
        PipelineError: what the stage reads or makes was never made, there is no record to try, the model cannot be
            asked, or the budget is spent.
    """
    sample = SAMPLERS[stage.name](root, lambda ids: spread(ids, n_sample))
    if not sample.records:
        raise PipelineError(f"{stage.name}: nothing to try: the index has no {sample.asked_about}")
    changes, above = _find_changes(root, stage), _find_stale_above(root, stage)
    if not uses_chat_model(stage, root.settings):
        return Trial(stage.name, EMBEDDED, changes, above, sample.n_records, _compare(sample, sample.make_by_rule()))
    model, account = MeteredModel(root.models.chat_model(stage.engine)), CallStats()
    with booked_to(account):
        results = run_all(stage.name, sample.works(model), model.max_concurrency)
    made = [result if isinstance(result, Failure) else sample.read(result) for result in results]
    return Trial(
        stage.name,
        root.settings.chat_model_for(stage.engine).model,
        changes,
        above,
        sample.n_records,
        _compare(sample, made),
        _paid(stage, account),
        _scale(root, stage, model, sample),
        _estimate(root, stage, changes),
    )


def _find_changes(root: Root, stage: Stage) -> tuple[CodeChange, ...]:
    code = root.code_of(stage)
    found = (find_code_changes(root, stage, partition, code) for partition in stage.partitions(root.settings))
    return tuple(next((changes for changes in found if changes), ()))


def _find_stale_above(root: Root, stage: Stage) -> tuple[str, ...]:
    manifest = STAGES["corpus_manifest"]
    heads = {partition: root.tables.head(manifest.name, partition) for partition in manifest.partitions(root.settings)}
    as_indexed = {partition: head.inputs.get(INPUT, "") if head else "" for partition, head in heads.items()}
    names = {other.name for other in all_upstream_of(stage)}
    stale = [item for item in find_stale_versions(root, as_indexed) if item.stage in names]
    return tuple(dict.fromkeys(f"{item.stage}: {'; '.join(item.reasons)}" for item in stale))


def _compare(sample: Sample, made: Sequence[Result | Failure]) -> tuple[TriedRecord, ...]:
    return tuple(
        TriedRecord(record.id, record.name, record.old.text, "", failure=new.reason)
        if isinstance(new, Failure)
        else TriedRecord(
            record.id,
            record.name,
            record.old.text,
            new.text,
            tuple(sorted(new.found - record.old.found)),
            tuple(sorted(record.old.found - new.found)),
        )
        for record, new in zip(sample.records, made, strict=True)
    )


def _paid(stage: Stage, account: CallStats) -> StageEstimate:
    cost = None if account.n_unpriced else account.cost
    tokens = account.prompt_tokens, account.completion_tokens
    return StageEstimate(stage.name, account.n_calls, account.n_cached, *tokens, cost)


def _scale(root: Root, stage: Stage, model: MeteredModel, sample: Sample) -> StageEstimate:
    """What all records take if they are like those of the sample."""
    share = sample.n_records / len(sample.records)
    counts = (model.n_replies, model.prompt_tokens, model.completion_tokens)
    n_calls, prompt_tokens, completion_tokens = (round(count * share) for count in counts)
    asked = root.settings.chat_model_for(stage.engine)
    price = find_price(asked.model, asked.base_url, asked.prompt_price, asked.completion_price)
    cost = price.cost(prompt_tokens, completion_tokens) if price else None
    return StageEstimate(stage.name, n_calls, 0, prompt_tokens, completion_tokens, cost, is_scaled=True)


def _estimate(root: Root, stage: Stage, changes: tuple[CodeChange, ...]) -> StageEstimate:
    stale = [StalePartition(stage.name, partition, (), changes) for partition in stage.partitions(root.settings)]
    [estimate] = estimate_index(root, stale)
    return estimate
