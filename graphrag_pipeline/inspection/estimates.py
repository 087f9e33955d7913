"""Estimates of the model calls, tokens and cost of a run, per stage, before it starts.

If the records are known (text units of the input folder; entities, relationships and communities that are up to date),
the estimate runs the same steps with a model that answers from stored replies only, and counts the missing replies. If
they depend on future replies, it is scaled: from the present index, which gives an upper estimate, else from what rules
find in a sample of this corpus (`corpus_sample.py`). It is then marked and has a range. The length of replies is always
a guess: the mean of the stored ones, else `REPLY_TOKENS`. No request is sent and no file is written.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.indexing.extraction.model import ExtractionPlan, build_graph_prompt
from graphrag_pipeline.indexing.failures import count_requested
from graphrag_pipeline.indexing.graph.model_descriptions import Subject, iterate_subjects
from graphrag_pipeline.indexing.model_stages import extraction_works, summary_works
from graphrag_pipeline.indexing.reports.community_reports import Report, report_communities
from graphrag_pipeline.indexing.reports.contexts import CommunityContext
from graphrag_pipeline.indexing.reports.evidence import EarlierReports
from graphrag_pipeline.indexing.reports.model import build_request
from graphrag_pipeline.inspection.changed_units import ChangedUnits
from graphrag_pipeline.inspection.corpus_sample import HIGH, LOW, MAX_CHARACTERS, CorpusSample, measure_sample
from graphrag_pipeline.inspection.embedding_estimates import count_calls_to_embed
from graphrag_pipeline.models.pool import Work
from graphrag_pipeline.models.prices import find_price
from graphrag_pipeline.models.stored_replies import StoredReplies
from graphrag_pipeline.pipeline.plans import plan_extraction, plan_reports, plan_summaries
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stage_code import uses_chat_model
from graphrag_pipeline.pipeline.stages import STAGES, upstream_of
from graphrag_pipeline.pipeline.staleness import StalePartition
from graphrag_pipeline.publishing.contract_tables import with_descriptions, with_full_content
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.tables import VECTOR_TABLES
from graphrag_pipeline.text.tokens import count_tokens_each

VERDICTS_PER_UNIT = 0.5
"""Pairs of names per text unit that resolution asks about, as measured on A Christmas Carol."""
PROMPT_TOKENS = {"graph": 500, "summarized_descriptions": 400, "community_reports": 1500, "entity_embeddings": 60,
                 "relationship_embeddings": 40, "report_embeddings": 100}  # fmt: skip
REPLY_TOKENS = {"extracted_graph": 500, "graph": 40, "summarized_descriptions": 120, "community_reports": 800}
_REPORTED = ("communities", "entities", "relationships", "covariates", "descriptions")
_EMBEDDED = {"entity_embeddings": "entities", "relationship_embeddings": "relationships"}
_MIN_REPLIES = 20  # minimum number of stored replies for using their mean


@dataclass(frozen=True)
class StageEstimate:
    """Estimated model calls of one stage.

    Attributes:
        n_calls, n_cached: calls to send, and calls answered from stored replies.
        cost: US dollars; None if the price of the model is not known.
        is_scaled: whether the number of calls is scaled rather than counted.
        least_calls, most_calls: range of a scaled number of calls; None if they are counted.
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


def estimate_index(root: Root, stale: Iterable[StalePartition]) -> list[StageEstimate]:
    """Return one estimate per stale stage that uses a model, in running order.

    Args:
        stale: from `staleness.find_stale`, for the present input folder.
    """
    items: dict[str, dict[str, StalePartition]] = {}
    for item in stale:
        items.setdefault(item.stage, {})[item.partition] = item
    return _Estimator(root, items).run()


def with_price(settings: Settings, estimate: StageEstimate, section: str | None) -> StageEstimate:
    """Return an estimate with its cost by the model of a section; by the embedding model for None."""
    model = settings.chat_model_for(section) if section else settings.embedding_model
    price = find_price(model.model, model.base_url, model.prompt_price, model.completion_price)
    cost = price.cost(estimate.prompt_tokens, estimate.completion_tokens) if price else None
    return replace(estimate, cost=cost)


def estimate_extraction(root: Root, units: pa.Table) -> StageEstimate:
    """Return the calls, tokens and cost of extracting some text units with the prompts and settings of a root.

    Args:
        units: needs `id`, `text` and `n_tokens`.
    """
    return with_price(root.settings, count_extraction(root, units), "extraction")


def count_extraction(root: Root, units: pa.Table) -> StageEstimate:
    """Return the estimate of `estimate_extraction` without its cost."""
    plan, model = plan_extraction(root), StoredReplies(root.models.chat_model("extraction"))
    model.run_works(extraction_works(units, plan, model))
    tokens_of = dict(zip(units["id"].to_pylist(), units["n_tokens"].to_pylist(), strict=True))
    reply_tokens = _guess_reply_tokens(root, "extracted_graph")
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
        prompt_tokens += opened * (plan.max_gleanings + 1) * (frame + root.settings.text_units.size // 2)
    return StageEstimate("extracted_graph", n_calls, model.n_cached, prompt_tokens, n_calls * reply_tokens)


def _guess_reply_tokens(root: Root, stage: str) -> int:
    section = STAGES[stage].engine
    model = root.settings.chat_model_for(section).model
    n_replies, mean = root.models.cache.mean_completion(section, model)
    return round(mean) if n_replies >= _MIN_REPLIES else REPLY_TOKENS[stage]


class _Estimator:
    def __init__(self, root: Root, stale: Mapping[str, Mapping[str, StalePartition]]) -> None:
        self._root = root
        self._stale = stale
        self._settings = root.settings
        self._units = ChangedUnits(root, stale)
        self._n_written: dict[str, int] = {}  # changed texts, by the stage that embeds them
        self._sampled: set[str] = set()  # stages whose records are scaled from a sample of the corpus

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
            if stage in self._stale and uses_chat_model(STAGES[stage], self._settings)
        ]
        if self._settings.embeddings.engine == "model":
            names = [stage for _, stage in VECTOR_TABLES.values() if stage in self._stale]
            estimates += [self._priced(self._embedding(stage), None) for stage in names]
        return sorted(estimates, key=lambda estimate: list(STAGES).index(estimate.stage))

    def _priced(self, estimate: StageEstimate, section: str | None) -> StageEstimate:
        return with_price(self._settings, estimate, section)

    def _reply_tokens(self, stage: str) -> int:
        return _guess_reply_tokens(self._root, stage)

    # --------------------------------------------------------------------------------------------------- chat models

    def _extraction(self) -> StageEstimate:
        return count_extraction(self._root, self._units.read("extracted_graph"))

    def _summaries(self) -> StageEstimate:
        name = "summarized_descriptions"
        if "graph" in self._stale:
            return self._scaled(name)
        plan, model = plan_summaries(self._root), StoredReplies(self._root.models.chat_model("descriptions"))
        tables = self._root.tables.read("entities"), self._root.tables.read("relationships")
        subjects = list(iterate_subjects(*tables))
        model.run_works(summary_works(subjects, plan, model))
        written = self._count_written(subjects)
        self._n_written |= {f"{kind}_embeddings": written[kind] for kind in ("entity", "relationship")}
        return self._counted(name, model)

    def _count_written(self, subjects: Iterable[Subject]) -> Counter[str]:
        """Count the subjects whose description may change, by kind."""
        rows = self._root.tables.read("descriptions") if self._is_made("descriptions") else None
        keys = rows.filter(pc.invert(rows["is_fallback"]))["description_key"].to_pylist() if rows else []
        known, is_changed = set(keys), self._is_changed("summarized_descriptions")
        return Counter(
            subject.kind
            for subject in subjects
            if subject.description_key not in known or (is_changed and len(subject.descriptions) > 1)
        )

    def _reports(self) -> StageEstimate:
        name = "community_reports"
        if {"graph", "summarized_descriptions", "communities"} & self._stale.keys():
            estimate = self._scaled(name)
            self._n_written["report_embeddings"] = estimate.n_calls
            return estimate
        plan, model = plan_reports(self._root), StoredReplies(self._root.models.chat_model("reports"))
        settings = self._settings.reports

        def count(contexts: Sequence[CommunityContext]) -> list[Report]:
            large = [c for c in contexts if c.n_entities >= settings.min_report_size]
            model.run_works([Work(c.community_id, partial(model.complete, build_request(c, plan))) for c in large])
            return [Report(", ".join(c.central), c.text[:2000], (), 0.0, "") for c in contexts]

        report_communities(
            **{table: self._root.tables.read(table) for table in _REPORTED},
            settings=settings,
            write=count,
            earlier=self._earlier_reports(),
        )
        estimate = self._counted(name, model)
        self._n_written["report_embeddings"] = estimate.n_calls + self._is_changed(name) * estimate.n_cached
        return estimate

    def _earlier_reports(self) -> EarlierReports | None:
        """Return the present reports, unless the prompt, model, settings or code of their stage changed."""
        if self._is_changed("community_reports") or not self._is_made("community_reports"):
            return None
        rows = self._root.tables.read("community_reports")
        return EarlierReports(rows, self._root.tables.need("descriptions").code_version)

    def _counted(self, stage: str, model: StoredReplies) -> StageEstimate:
        n_calls = len(model.missing)
        texts = [message["content"] for request in model.missing for message in request.messages]
        prompt_tokens = sum(count_tokens_each(texts, self._settings.text_units.encoding))
        return StageEstimate(stage, n_calls, model.n_cached, prompt_tokens, n_calls * self._reply_tokens(stage))

    def _scaled(self, stage: str) -> StageEstimate:
        n_calls = self._guess(stage)
        prompt_tokens = n_calls * PROMPT_TOKENS[stage]
        estimate = StageEstimate(stage, n_calls, 0, prompt_tokens, n_calls * self._reply_tokens(stage), is_scaled=True)
        return self._with_range(estimate)

    def _with_range(self, estimate: StageEstimate) -> StageEstimate:
        """Return an estimate with its range: at most its calls if they are scaled from the present index."""
        n_calls = estimate.n_calls
        if estimate.stage not in self._sampled:
            return replace(estimate, least_calls=0, most_calls=n_calls)
        return replace(estimate, least_calls=int(LOW * n_calls), most_calls=math.ceil(HIGH * n_calls))

    # ------------------------------------------------------------------------------------------------------- guesses

    def _guess(self, stage: str) -> int:
        """Return calls, or texts to embed, of a stale stage whose inputs do not exist yet; an upper estimate."""
        n_all, n_new = self._units.count_all(), self._units.count_new()
        if stage == "graph":
            return min(math.ceil(VERDICTS_PER_UNIT * n_new), self._settings.resolution.max_asked)
        n_rows = self._count_rows(stage)
        if not n_rows or (n_new >= n_all and not self._is_changed("graph")):
            n_sampled = self._sample.scale(stage, n_all)
            if n_sampled > n_rows:
                self._sampled.add(stage)
                n_rows = n_sampled
        if not self._is_made(STAGES[stage].tables[0]) or self._is_changed(stage) or n_new >= n_all:
            return n_rows
        touched = self._guess_touched(stage)
        return (n_rows if touched is None else min(touched, n_rows)) + math.ceil(n_rows * n_new / (n_all - n_new))

    @cached_property
    def _sample(self) -> CorpusSample:
        return measure_sample(self._units.sample_documents(MAX_CHARACTERS), self._settings)

    def _guess_touched(self, stage: str) -> int | None:
        """Return the number of present records that change; None if not known."""
        if stage == "report_embeddings":
            return self._n_written.get(stage) or self._guess("community_reports")
        names = ("entity_embeddings", "relationship_embeddings") if stage == "community_reports" else (stage,)
        is_known = self._n_written.keys() >= set(names) and "communities" not in self._stale
        if is_known:  # a changed description changes the reports around it
            return sum(self._n_written[name] for name in names)
        return math.ceil(self._units.mentions_per_unit() * self._units.count_new()) or None

    def _is_changed(self, stage: str) -> bool:
        """Whether a prompt, model, setting or the code of a stage changed since it ran."""
        return any(item.changes for item in self._stale.get(stage, {}).values())

    def _count_rows(self, stage: str) -> int:
        """Return the number of records that the stage sent to its model, or will send if that is known."""
        known = _EMBEDDED.get(stage)
        if known and "graph" not in self._stale:
            head = self._root.tables.head(known)
            return head.n_rows if head else 0
        table = STAGES[stage].tables[0]
        return count_requested(self._root.tables.read(table)) if self._is_made(table) else 0

    def _is_made(self, table: str) -> bool:
        return self._root.tables.head(table) is not None

    # ---------------------------------------------------------------------------------------------------- embeddings

    def _embedding(self, stage: str) -> StageEstimate:
        rows = self._rows_to_embed(stage)
        if rows is None:
            n_texts = self._guess(stage)
            n_calls = self._n_requests(n_texts)
            tokens = n_texts * PROMPT_TOKENS[stage]
            return self._with_range(StageEstimate(stage, n_calls, 0, tokens, is_scaled=True))
        vector_table = next(name for name, (_, owner) in VECTOR_TABLES.items() if owner == stage)
        found = count_calls_to_embed(stage, vector_table, rows, self._root.models.embedder, self._settings)
        return StageEstimate(stage, found.n_calls, found.n_cached, found.n_tokens)

    def _rows_to_embed(self, stage: str) -> pa.Table | None:
        """Return the rows that the stage embeds, with their texts; None if not known yet."""
        if stage == "text_unit_embeddings":
            return self._units.read(stage)
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
    """Return the tokens of the extraction prompt without the text."""
    return sum(count_tokens_each([message["content"] for message in build_graph_prompt("", plan)]))
