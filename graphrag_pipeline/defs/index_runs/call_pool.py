"""One pool of model calls over all stale buckets, before they are materialised one by one.

Bucket by bucket, every bucket would wait for its slowest call with most of the allowed concurrency unused. Here the
text units of all stale buckets are asked about together; each bucket's stage then takes its answers and its account
from here, and asks itself where there are none, as in a run from the UI. Vectors go through the store of vectors.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from graphrag_pipeline.defs.runs.resources import book
from graphrag_pipeline.indexing.extraction.model import UnitMentions
from graphrag_pipeline.indexing.model_stages import extract_text_units, extraction_works
from graphrag_pipeline.models.accounting import CallStats, booked_to
from graphrag_pipeline.models.endpoints.spans import parent_span
from graphrag_pipeline.models.pool import Work
from graphrag_pipeline.models.ports import Failure
from graphrag_pipeline.pipeline.plans import is_extraction_proven, plan_extraction
from graphrag_pipeline.pipeline.progress import PoolProgress
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES, Stage, asks_model
from graphrag_pipeline.pipeline.staleness import why_stale

T = TypeVar("T")
Say = Callable[[str], None]

EXTRACTION, EMBEDDING = STAGES["extracted_graph"], STAGES["text_unit_embeddings"]


@dataclass
class Answers:
    """What was asked for a bucket ahead of its turn.

    Attributes:
        mentions: by text unit.
        account: calls made for it, by stage.
    """

    mentions: dict[str, UnitMentions | Failure] = field(default_factory=dict)
    account: dict[str, CallStats] = field(default_factory=dict)


_answers: dict[tuple[str, str], Answers] = {}
"""(root, bucket) -> answers not taken yet."""


def pooled_stages(root: Root) -> list[str]:
    """Bucket stages that ask a model as the root is set."""
    settings = root.settings
    stages = [EXTRACTION] if asks_model(EXTRACTION, settings) else []
    if settings.embeddings.engine == "model":
        stages.append(EMBEDDING)
    return [stage.name for stage in stages]


def ask_ahead(root: Root, buckets: Iterable[str], say: Say) -> None:
    """Ask about all that the stale ones among some buckets need; their text units must be up to date.

    Raises:
        PipelineError: no call can be made, the budget is spent, or the first text units all yield nothing.
    """
    buckets = list(buckets)
    if EXTRACTION.name in pooled_stages(root):
        _ask_about_units(root, _stale(root, EXTRACTION, buckets), say)
    if EMBEDDING.name in pooled_stages(root):
        _embed_units(root, _stale(root, EMBEDDING, buckets), say)


def take_mentions(root: Root, bucket: str, unit_ids: Sequence[str]) -> list[UnitMentions | Failure] | None:
    """What was asked ahead about the text units of a bucket, in order, given out once; None if not all were."""
    answers = _answers.get((str(root.path), bucket), Answers())
    mentions, answers.mentions = answers.mentions, {}
    return [mentions[unit_id] for unit_id in unit_ids] if mentions.keys() >= set(unit_ids) else None


def take_account(root: Root, bucket: str, stage: str) -> CallStats | None:
    """The calls made ahead for a bucket's stage, given out once."""
    answers = _answers.get((str(root.path), bucket))
    return answers.account.pop(stage, None) if answers else None


def _stale(root: Root, stage: Stage, buckets: list[str]) -> list[str]:
    code = root.code_of(stage)
    return [bucket for bucket in buckets if why_stale(root, stage, bucket, code)]


def _open_account(root: Root, bucket: str, stage: Stage) -> CallStats:
    answers = _answers.setdefault((str(root.path), bucket), Answers())
    return answers.account.setdefault(stage.name, CallStats())


def _ask_about_units(root: Root, buckets: list[str], say: Say) -> None:
    plan, model = plan_extraction(root), root.models.chat_model(EXTRACTION.engine)
    works: list[tuple[str, Work[UnitMentions]]] = []
    for bucket in buckets:
        account = _open_account(root, bucket, EXTRACTION)
        units = extraction_works(root.tables.read("text_units", bucket), plan, model)
        works += [(bucket, replace(work, start=partial(_booked, account, work.start))) for work in units]
    together = CallStats()
    model_name = root.settings.chat_model_for(EXTRACTION.engine).model
    progress = PoolProgress(together, lambda line: say(f"{EXTRACTION.name}: {line}"))
    try:
        with booked_to(together), parent_span(root.settings.use_spans, f"stage {EXTRACTION.name}"):
            asked = [work for _, work in works]
            results = extract_text_units(asked, plan, model, model_name, progress, is_extraction_proven(root))
    finally:
        book(EXTRACTION.name, together)
    for (bucket, work), result in zip(works, results, strict=True):
        _answers[str(root.path), bucket].mentions[work.record] = result


async def _booked(account: CallStats, start: Callable[[], Awaitable[T]]) -> T:
    with booked_to(account):
        return await start()


def _embed_units(root: Root, buckets: list[str], say: Say) -> None:
    """Vectors of all buckets' text units in full batches; the calls are booked to the first bucket that needs one."""
    texts = {bucket: root.tables.read("text_units", bucket)["text"].to_pylist() for bucket in buckets}
    needing = [bucket for bucket in buckets if texts[bucket]]
    if not needing:
        return
    account = _open_account(root, needing[0], EMBEDDING)
    try:
        with booked_to(account):
            progress = PoolProgress(account, lambda line: say(f"{EMBEDDING.name}: {line}"))
            root.embedder.try_embed([text for bucket in needing for text in texts[bucket]], progress)
    finally:
        book(EMBEDDING.name, account)
