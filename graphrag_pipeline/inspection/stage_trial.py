"""Trial of a stage on a sample: present results beside those of the prompts, model and settings on disk.

The records come from the present stage tables and are chosen the same way each time (`spread`). The index does not
change. Replies are stored, so a backfill with the same prompts does not pay for them again. Keep out: the records of
each stage (`trial_samples.py`), and rendering.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.inspection.estimates import estimate_index
from graphrag_pipeline.inspection.stage_estimates import StageEstimate
from graphrag_pipeline.inspection.trial_samples import SAMPLERS, Result, Sample
from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.models.pool import run_all
from graphrag_pipeline.models.ports import ChatModel, ChatReply, ChatRequest, Failure
from graphrag_pipeline.models.prices import find_price
from graphrag_pipeline.pipeline.code_changes import CodeChange, find_code_changes
from graphrag_pipeline.pipeline.detected_input import INPUT
from graphrag_pipeline.pipeline.prompt_texts import diff_prompts
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
        old: text in the stage tables; "" if none.
        new: text made now; "" if that failed.
        added, removed: names found only now, and names found only before, for extraction.
        failure: why there is no new text; "" if there is one.
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
    """Result of a trial.

    Attributes:
        made_by: the model's name, or the embedded engine.
        changes: of prompts, model, settings and code since the index was made.
        stale_above: stages above it that must run, and why; the sample reads their present results. Changes of the
            input folder are not checked.
        n_records: records of the index that the stage sends to its model.
        sample: model calls of the sample; None without a model.
        backfill: model calls of all records, scaled from the sample, including its replies.
        estimate: model calls that remain for a backfill (`estimates.py`), with the sample's replies stored.
        prompt_differences: prompt -> unified diff of the changed prompts whose old text is known.
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
    prompt_differences: Mapping[str, str] = field(default_factory=dict)


class TrialModel:
    """Chat model that counts replies, including stored ones; implements `ports.ChatModel`."""

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
    """Return at most `n` ids, evenly spread over the sorted ids; always the same ones."""
    ordered = sorted(ids)
    if n >= len(ordered):
        return ordered
    return [ordered[(2 * i + 1) * len(ordered) // (2 * n)] for i in range(n)]


def find_tried_stage(name: str) -> Stage:
    """Return a stage by its name or by its section of the settings.

    Raises:
        PipelineError: the stage does not exist or cannot be tried; the message lists the stages that can.
    """
    for stage_name in SAMPLERS:
        if name in (stage_name, STAGES[stage_name].engine):
            return STAGES[stage_name]
    known = ", ".join(f"{stage} (or {STAGES[stage].engine})" for stage in SAMPLERS)
    raise PipelineError(
        f"`{name}` is not a stage to try; use {known}; for merges use `graphrag-pipeline merges --dry-run`"
    )


def try_stage(root: Root, stage: Stage, n_sample: int) -> Trial:
    """Run a stage on a sample of its records and compare with the stage tables.

    Raises:
        PipelineError: the stage or a stage above it never ran, there is no record to try, the model is not available,
            or the budget is spent.
    """
    sample = SAMPLERS[stage.name](root, lambda ids: spread(ids, n_sample))
    if not sample.records:
        raise PipelineError(f"`{stage.name}` has nothing to try: the index has no {sample.asked_about}")
    changes, above = _find_changes(root, stage), _find_stale_above(root, stage)
    if not uses_chat_model(stage, root.settings):
        return Trial(stage.name, EMBEDDED, changes, above, sample.n_records, _compare(sample, sample.make()))
    account = CallStats()
    model = TrialModel(root.counted_in(account).models.chat_model(stage.engine))
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
        diff_prompts(root, changes),
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


def _scale(root: Root, stage: Stage, model: TrialModel, sample: Sample) -> StageEstimate:
    """Scale the calls of the sample to all records."""
    share = sample.n_records / len(sample.records)
    counts = (model.n_replies, model.prompt_tokens, model.completion_tokens)
    n_calls, prompt_tokens, completion_tokens = (round(count * share) for count in counts)
    model_settings = root.settings.chat_model_for(stage.engine)
    price = find_price(
        model_settings.model, model_settings.base_url, model_settings.prompt_price, model_settings.completion_price
    )
    cost = price.cost(prompt_tokens, completion_tokens) if price else None
    return StageEstimate(stage.name, n_calls, 0, prompt_tokens, completion_tokens, cost, is_scaled=True)


def _estimate(root: Root, stage: Stage, changes: tuple[CodeChange, ...]) -> StageEstimate:
    stale = [StalePartition(stage.name, partition, (), changes) for partition in stage.partitions(root.settings)]
    [estimate] = estimate_index(root, stale)
    return estimate
