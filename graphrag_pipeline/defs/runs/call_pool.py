"""One pool of model calls over many buckets, before the buckets are materialised one by one.

Bucket by bucket, each bucket would wait for its slowest call while most of the allowed concurrency is idle. Here the
text units of all buckets of an index run, or of a run from the UI, are sent together. Extraction results go to the
session, from which each bucket's stage takes them. A stage without pooled results, as in a run of one bucket from the
UI, calls the model itself. Vectors go through the vector cache.
"""

from collections.abc import Iterable
from typing import Any, cast

from graphrag_pipeline.defs.runs.session import IndexSession
from graphrag_pipeline.indexing.aggregation_report import choose_sample
from graphrag_pipeline.indexing.embeddings import embedded_unit_texts
from graphrag_pipeline.indexing.ports import CallingExtractor
from graphrag_pipeline.indexing.text_units import with_context
from graphrag_pipeline.models.accounting import Caller, CallStats
from graphrag_pipeline.models.endpoints.spans import parent_span
from graphrag_pipeline.models.pool import Work
from graphrag_pipeline.pipeline.progress import PoolProgress
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stage_code import uses_chat_model
from graphrag_pipeline.pipeline.stages import STAGES, Stage
from graphrag_pipeline.pipeline.staleness import why_stale

EXTRACTION, EMBEDDING = STAGES["extracted_graph"], STAGES["text_unit_embeddings"]


def pooled_stages(root: Root) -> list[str]:
    """Return the bucket stages that call a model under the root's settings."""
    settings = root.settings
    stages = [EXTRACTION] if uses_chat_model(EXTRACTION, settings) else []
    if settings.embeddings.engine == "model":
        stages.append(EMBEDDING)
    return [stage.name for stage in stages]


def call_ahead(root: Root, buckets: Iterable[str], session: IndexSession) -> None:
    """Make all model calls that the stale ones among some buckets need; their text units must be up to date.

    Raises:
        PipelineError: no call can be made, the budget is spent, or the first text units all yield nothing.
    """
    buckets = list(buckets)
    if EXTRACTION.name in pooled_stages(root):
        _extract_from_units(root, _stale(root, EXTRACTION, buckets), session)
    if EMBEDDING.name in pooled_stages(root):
        _embed_units(root, _stale(root, EMBEDDING, buckets), session)


def call_stage_ahead(root: Root, stage: Stage, buckets: Iterable[str], session: IndexSession) -> None:
    """Make all model calls that a stage needs for some buckets, stale or not; their text units must be up to date.

    Raises:
        PipelineError: as `call_ahead`.
    """
    if stage.name in pooled_stages(root):
        (_extract_from_units if stage is EXTRACTION else _embed_units)(root, list(buckets), session)


def _stale(root: Root, stage: Stage, buckets: list[str]) -> list[str]:
    code = root.code_of(stage)
    return [bucket for bucket in buckets if why_stale(root, stage, bucket, code)]


def _extract_from_units(root: Root, buckets: list[str], session: IndexSession) -> None:
    together = CallStats()
    extractor = cast(CallingExtractor, root.extractor())
    model = root.counted_in(together).models.chat_model(EXTRACTION.engine)
    works: list[tuple[str, Work[Any]]] = []
    for bucket in buckets:
        account = session.pooled.account(bucket, EXTRACTION.name)
        units = with_context(root.tables.read("text_units", bucket), root.tables.read("documents", bucket))
        works += [(bucket, work) for work in extractor.works(units, model.for_caller(Caller((account,))))]
    progress = _progress(EXTRACTION, together, session)
    try:
        with parent_span(f"stage {EXTRACTION.name}"):
            results = extractor.send([work for _, work in works], model, progress)
    finally:
        session.costs.book(EXTRACTION.name, together)
    for (bucket, work), result in zip(works, results, strict=True):
        session.pooled.add(bucket, work.record, result)


def _embed_units(root: Root, buckets: list[str], session: IndexSession) -> None:
    """Embed all buckets' text units in full batches; the calls are booked to the first bucket that needs one.

    The samples that compare averaged vectors with those of whole texts are sent with them: equal pieces are sent once.
    """
    texts = {bucket: embedded_unit_texts(root.tables.read("text_units", bucket)) for bucket in buckets}
    needing = [bucket for bucket in buckets if texts[bucket]]
    if not needing:
        return
    account = session.pooled.account(needing[0], EMBEDDING.name)
    try:
        embedder, progress = root.counted_in(account).embedder, _progress(EMBEDDING, account, session)
        samples = [text for bucket in needing for text in choose_sample(texts[bucket], root.settings)]
        embedder.try_embed([*(text for bucket in needing for text in texts[bucket]), *samples], progress)
    finally:
        session.costs.book(EMBEDDING.name, account)


def _progress(stage: Stage, account: CallStats, session: IndexSession) -> PoolProgress:
    return PoolProgress(account, lambda line: session.observer.progress(f"{stage.name}: {line}"))
