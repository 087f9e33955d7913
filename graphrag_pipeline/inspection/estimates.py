"""What a run would ask its models: calls, tokens and money per stage, before anything is spent.

Where the records are known (text units of the input folder; entities, relationships and communities that are up to
date) the estimate walks the same steps with a model that answers from the store alone and counts what is missing. What
depends on replies not had yet is scaled from the index there is, else from `PER_UNIT`, and marked so. How long replies
will be is always a guess: the mean of those stored, else `REPLY_TOKENS`. Nothing is sent or written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from graphrag_pipeline.identity import text_hash
from graphrag_pipeline.indexing.community_reports import Report, report_communities
from graphrag_pipeline.indexing.contract_tables import with_descriptions, with_full_content
from graphrag_pipeline.indexing.documents import build_documents
from graphrag_pipeline.indexing.embeddings import embedded_texts
from graphrag_pipeline.indexing.failures import count_asked
from graphrag_pipeline.indexing.model_descriptions import iterate_subjects
from graphrag_pipeline.indexing.model_extraction import ExtractionPlan, build_graph_prompt
from graphrag_pipeline.indexing.model_reports import build_request
from graphrag_pipeline.indexing.model_stages import extraction_works, summary_works
from graphrag_pipeline.indexing.report_contexts import CommunityContext
from graphrag_pipeline.indexing.text_units import split_documents
from graphrag_pipeline.models.pool import Work
from graphrag_pipeline.models.prices import find_price
from graphrag_pipeline.models.stored_replies import StoredReplies
from graphrag_pipeline.plans import plan_extraction, plan_reports, plan_summaries
from graphrag_pipeline.root import Root
from graphrag_pipeline.settings import Settings
from graphrag_pipeline.stages import STAGES, asks_model, upstream_of
from graphrag_pipeline.staleness import StalePartition
from graphrag_pipeline.tables import VECTOR_TABLES
from graphrag_pipeline.tokens import count_tokens_each

PER_UNIT = {"graph": 0.5, "summarized_descriptions": 3.1, "community_reports": 0.6, "entity_embeddings": 9.0,
            "relationship_embeddings": 5.0, "report_embeddings": 6.0}  # fmt: skip
"""Calls (or texts to embed) per text unit, as measured on A Christmas Carol with units of 1,200 tokens."""
PROMPT_TOKENS = {"graph": 500, "summarized_descriptions": 400, "community_reports": 1500, "entity_embeddings": 60,
                 "relationship_embeddings": 40, "report_embeddings": 100}  # fmt: skip
REPLY_TOKENS = {"extracted_graph": 500, "graph": 40, "summarized_descriptions": 120, "community_reports": 800}
_REPORTED = ("communities", "entities", "relationships", "covariates", "descriptions")
_MIN_REPLIES = 20  # stored ones that their mean is believed from


@dataclass(frozen=True)
class StageEstimate:
    """What one stage would ask.

    Attributes:
        n_calls, n_cached: calls to be sent, and those answered from the store.
        cost: US dollars; None where the model has no known price.
        is_scaled: whether the number of calls is scaled rather than counted.
    """

    stage: str
    n_calls: int = 0
    n_cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    is_scaled: bool = False


def estimate_index(root: Root, stale: Iterable[StalePartition]) -> list[StageEstimate]:
    """One estimate per stale stage that asks a model, in running order.

    Args:
        stale: as `staleness.find_stale` gives it for the input folder as it is now.
    """
    partitions: dict[str, list[str]] = {}
    for item in stale:
        partitions.setdefault(item.stage, []).append(item.partition)
    return _Estimator(root, partitions).run()


def asks_any_model(settings: Settings) -> bool:
    """Whether any stage of the index is set to ask a model."""
    return settings.embeddings.engine == "model" or any(asks_model(stage, settings) for stage in STAGES.values())


class _Estimator:
    def __init__(self, root: Root, stale: Mapping[str, Sequence[str]]) -> None:
        self._root = root
        self._stale = stale
        self._settings = root.settings
        self._n_written: dict[str, int] = {}  # texts that change, by the stage that embeds them
        self._n_new_units: int | None = None

    def run(self) -> list[StageEstimate]:
        chats: dict[str, Callable[[], StageEstimate]] = {
            "extracted_graph": self._extraction,
            "graph": partial(self._scaled, "graph"),
            "summarized_descriptions": self._summaries,
            "community_reports": self._reports,
        }
        estimates = [
            self._priced(estimate(), STAGES[stage].engine)
            for stage, estimate in chats.items()
            if stage in self._stale and asks_model(STAGES[stage], self._settings)
        ]
        if self._settings.embeddings.engine == "model":
            names = [stage for _, stage in VECTOR_TABLES.values() if stage in self._stale]
            estimates += [self._priced(self._embedding(stage), None) for stage in names]
        return sorted(estimates, key=lambda estimate: list(STAGES).index(estimate.stage))

    def _priced(self, estimate: StageEstimate, section: str | None) -> StageEstimate:
        model = self._settings.chat_model_for(section) if section else self._settings.embedding_model
        price = find_price(model.model, model.base_url, model.prompt_price, model.completion_price)
        cost = price.cost(estimate.prompt_tokens, estimate.completion_tokens) if price else None
        return replace(estimate, cost=cost)

    def _reply_tokens(self, stage: str) -> int:
        section = STAGES[stage].engine
        model = self._settings.chat_model_for(section).model
        n_replies, mean = self._root.models.cache.mean_completion(section, model)
        return round(mean) if n_replies >= _MIN_REPLIES else REPLY_TOKENS[stage]

    # ------------------------------------------------------------------------------------------------- text units

    def _text_units(self, stage: str) -> pa.Table:
        """Text units of the buckets that are stale for a stage, as they will be."""
        return pa.concat_tables(
            [self._root.tables.read("text_units", bucket) if self._is_split(bucket) else self._split(bucket)
             for bucket in self._stale[stage]]
        )  # fmt: skip

    def _is_split(self, bucket: str) -> bool:
        return not any(bucket in self._stale.get(name, ()) for name in ("documents", "text_units"))

    def _split(self, bucket: str) -> pa.Table:
        return split_documents(build_documents(list(self._root.read_input({bucket}))), self._settings.text_units)

    # --------------------------------------------------------------------------------------------------- chat models

    def _extraction(self) -> StageEstimate:
        units, plan = self._text_units("extracted_graph"), plan_extraction(self._root)
        model = StoredReplies(self._root.models.chat_model("extraction"))
        model.ask_all(extraction_works(units, plan, model))
        tokens_of = dict(zip(units["id"].to_pylist(), units["n_tokens"].to_pylist(), strict=True))
        reply_tokens = self._reply_tokens("extracted_graph")
        n_calls = prompt_tokens = 0
        frame = _frame_tokens(plan)
        for request in model.missing:
            n_replies = sum(message["role"] == "assistant" for message in request.messages)
            n_left = plan.max_gleanings + 1 - n_replies
            n_calls += n_left
            opening = frame + tokens_of[request.record]
            prompt_tokens += sum(opening + (n_replies + turn) * reply_tokens for turn in range(n_left))
        if plan.claims:
            opened = sum(1 for request in model.missing if len(request.messages) <= 2)
            n_calls += opened * (plan.max_gleanings + 1)
            prompt_tokens += opened * (plan.max_gleanings + 1) * (frame + self._settings.text_units.size // 2)
        self._n_new_units = len({request.record for request in model.missing})
        return StageEstimate("extracted_graph", n_calls, model.n_cached, prompt_tokens, n_calls * reply_tokens)

    def _summaries(self) -> StageEstimate:
        name = "summarized_descriptions"
        if "graph" in self._stale or not self._is_made("descriptions"):
            return self._scaled(name)
        plan, model = plan_summaries(self._root), StoredReplies(self._root.models.chat_model("descriptions"))
        tables = self._root.tables.read("entities"), self._root.tables.read("relationships")
        model.ask_all(summary_works(iterate_subjects(*tables), plan, model))
        return self._counted(name, model)

    def _reports(self) -> StageEstimate:
        name = "community_reports"
        if {"graph", "summarized_descriptions", "communities"} & self._stale.keys():
            # A changed description changes the reports around it, at most all of them.
            around = min(self._n_written.get("entity_embeddings", 0), self._count_rows(name))
            return self._times(name, max(self._scaled(name).n_calls, around))
        plan, model = plan_reports(self._root), StoredReplies(self._root.models.chat_model("reports"))
        settings = self._settings.reports

        def count(contexts: Sequence[CommunityContext]) -> list[Report]:
            asked = [c for c in contexts if c.n_entities >= settings.min_report_size]
            model.ask_all([Work(c.community_id, partial(model.complete, build_request(c, plan))) for c in asked])
            return [Report(", ".join(c.central), c.text[:2000], (), 0.0, "") for c in contexts]

        report_communities(
            **{table: self._root.tables.read(table) for table in _REPORTED},
            settings=settings,
            embedder=self._root.static_embedder,
            write=count,
        )
        return self._counted(name, model)

    def _counted(self, stage: str, model: StoredReplies) -> StageEstimate:
        n_calls = len(model.missing)
        self._n_written["report_embeddings" if stage == "community_reports" else "entity_embeddings"] = n_calls
        texts = [message["content"] for request in model.missing for message in request.messages]
        prompt_tokens = sum(count_tokens_each(texts, self._settings.text_units.encoding))
        return StageEstimate(stage, n_calls, model.n_cached, prompt_tokens, n_calls * self._reply_tokens(stage))

    def _scaled(self, stage: str) -> StageEstimate:
        return self._times(stage, round(self._per_unit(stage) * self._n_changed_units()))

    def _times(self, stage: str, n_calls: int) -> StageEstimate:
        prompt_tokens = n_calls * PROMPT_TOKENS[stage]
        return StageEstimate(stage, n_calls, 0, prompt_tokens, n_calls * self._reply_tokens(stage), is_scaled=True)

    def _n_changed_units(self) -> int:
        """Text units that are asked about anew; all that are stale where the embedded engine extracts."""
        if self._n_new_units is None:
            is_stale = "extracted_graph" in self._stale
            self._n_new_units = self._text_units("extracted_graph").num_rows if is_stale else 0
        return self._n_new_units

    def _per_unit(self, stage: str) -> float:
        """Calls per text unit in the index there is, else as measured elsewhere."""
        partitions = STAGES["text_units"].partitions(self._settings)
        heads = [self._root.tables.head("text_units", bucket) for bucket in partitions]
        n_units = sum(head.n_rows for head in heads if head)
        if stage == "graph" or not n_units or not self._is_made(STAGES[stage].tables[0]):
            return PER_UNIT[stage]
        return self._count_rows(stage) / n_units

    def _count_rows(self, stage: str) -> int:
        """Records of the index there is that the stage asked about."""
        table = STAGES[stage].tables[0]
        if not self._is_made(table):
            return 0
        rows = self._root.tables.read(table)
        return count_asked(rows)

    def _is_made(self, table: str) -> bool:
        return self._root.tables.head(table) is not None

    # ---------------------------------------------------------------------------------------------------- embeddings

    def _embedding(self, stage: str) -> StageEstimate:
        rows = self._rows_to_embed(stage)
        if rows is None:
            n_texts = max(round(self._per_unit(stage) * self._n_changed_units()), self._n_written.get(stage, 0))
            n_calls = self._n_requests(n_texts)
            return StageEstimate(stage, n_calls, 0, n_texts * PROMPT_TOKENS[stage], is_scaled=True)
        vector_table = next(name for name, (_, owner) in VECTOR_TABLES.items() if owner == stage)
        text_of = {text_hash(text): text for text in embedded_texts(vector_table, rows)}
        embedder = self._root.models.embedder
        stored = self._root.models.cache.read_vectors(embedder.fingerprint, text_of)
        missing = [text for key, text in text_of.items() if key not in stored and text.strip()]
        tokens = sum(count_tokens_each(missing, self._settings.text_units.encoding))
        return StageEstimate(stage, self._n_requests(len(missing)), len(text_of) - len(missing), tokens)

    def _rows_to_embed(self, stage: str) -> pa.Table | None:
        """What the stage embeds, with its texts; None while that is not known."""
        if stage == "text_unit_embeddings":
            return self._text_units(stage)
        if any(above.name in self._stale for above in upstream_of(STAGES[stage])):
            return None
        read = self._root.tables.read
        if stage == "report_embeddings":
            return with_full_content(read("community_reports"))
        return with_descriptions(
            read("entities" if stage == "entity_embeddings" else "relationships"), read("descriptions")
        )

    def _n_requests(self, n_texts: int) -> int:
        return -(-n_texts // self._settings.embedding_model.batch_size)


def _frame_tokens(plan: ExtractionPlan) -> int:
    """Tokens of the extraction prompt around the text."""
    return sum(count_tokens_each([message["content"] for message in build_graph_prompt("", plan)]))
