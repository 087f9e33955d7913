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
from dataclasses import replace
from functools import cached_property
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.indexing.failures import count_requested
from graphrag_pipeline.indexing.ports import CallingDescriber, CallingReporter, Subject, iterate_subjects
from graphrag_pipeline.indexing.reports.community_reports import Report, report_communities
from graphrag_pipeline.indexing.reports.contexts import CommunityContext
from graphrag_pipeline.indexing.reports.evidence import EarlierReports
from graphrag_pipeline.inspection.changed_units import ChangedUnits
from graphrag_pipeline.inspection.corpus_sample import HIGH, LOW, MAX_CHARACTERS, CorpusSample, measure_sample
from graphrag_pipeline.inspection.embedding_estimates import count_calls_to_embed
from graphrag_pipeline.inspection.retries import Retries
from graphrag_pipeline.inspection.stage_estimates import StageEstimate, count_extraction, guess_reply_tokens, with_price
from graphrag_pipeline.models.endpoints.openai_client import OpenAIChatModel
from graphrag_pipeline.models.endpoints.replies import MAX_ASKED
from graphrag_pipeline.models.pool import StoredReplies
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stage_code import uses_chat_model
from graphrag_pipeline.pipeline.stages import STAGES, upstream_of
from graphrag_pipeline.pipeline.staleness import StalePartition
from graphrag_pipeline.publishing.contract_tables import with_descriptions, with_full_content
from graphrag_pipeline.tables import VECTOR_TABLES
from graphrag_pipeline.text.tokens import count_tokens_each

VERDICTS_PER_UNIT = 0.5
"""Pairs of names per text unit that resolution asks about, as measured on A Christmas Carol."""
PROMPT_TOKENS = {"graph": 500, "summarized_descriptions": 400, "community_reports": 1500, "entity_embeddings": 60,
                 "relationship_embeddings": 40, "report_embeddings": 100}  # fmt: skip
_REPORTED = ("communities", "entities", "relationships", "covariates", "descriptions")
_EMBEDDED = {"entity_embeddings": "entities", "relationship_embeddings": "relationships"}


def estimate_index(root: Root, stale: Iterable[StalePartition]) -> list[StageEstimate]:
    """Return one estimate per stale stage that uses a model, in running order.

    Args:
        stale: from `staleness.find_stale`, for the present input folder.
    """
    items: dict[str, dict[str, StalePartition]] = {}
    for item in stale:
        items.setdefault(item.stage, {})[item.partition] = item
    return _Estimator(root, items).run()


class _Estimator:
    def __init__(self, root: Root, stale: Mapping[str, Mapping[str, StalePartition]]) -> None:
        self._root = root
        self._stale = stale
        self._settings = root.settings
        self._units = ChangedUnits(root, stale)
        self._retries = Retries(root, stale)
        self._n_written: dict[str, int] = {}  # changed texts, by the stage that embeds them
        self._sampled: set[str] = set()  # stages whose records are scaled from a sample of the corpus

    def run(self) -> list[StageEstimate]:
        chats: dict[str, Callable[[], StageEstimate]] = {
            "extracted_graph": self._extraction,
            "graph": self._verdicts,
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
        decided = [self._decided(estimate) for estimate in estimates]
        return sorted(decided, key=lambda estimate: list(STAGES).index(estimate.stage))

    def _decided(self, estimate: StageEstimate) -> StageEstimate:
        """Return an estimate; of a stage that runs only if the reply to a retried record can be used, as a range."""
        if not self._retries.decide(estimate.stage):
            return estimate
        none = replace(estimate, n_calls=0, prompt_tokens=0, completion_tokens=0, is_scaled=True)
        cost = None if estimate.cost is None else 0.0
        return replace(none, least_calls=0, most_calls=estimate.call_range[1], cost=cost, most_cost=estimate.cost)

    def _priced(self, estimate: StageEstimate, section: str | None) -> StageEstimate:
        return with_price(self._settings, estimate, section)

    def _reply_tokens(self, stage: str) -> int:
        return guess_reply_tokens(self._root, stage)

    # --------------------------------------------------------------------------------------------------- chat models

    def _extraction(self) -> StageEstimate:
        return count_extraction(self._root, self._units.read("extracted_graph"))

    def _verdicts(self) -> StageEstimate:
        n_retried = self._retries.count("graph")
        if not n_retried:
            return self._scaled("graph")
        n_tokens = n_retried * PROMPT_TOKENS["graph"], n_retried * self._reply_tokens("graph")
        return StageEstimate("graph", n_retried, 0, *n_tokens, n_retried=n_retried)

    def _summaries(self) -> StageEstimate:
        name = "summarized_descriptions"
        if "graph" in self._stale:
            return self._scaled(name)
        describer = cast(CallingDescriber, self._root.describer())
        chat = self._root.models.chat_model("descriptions")
        model = StoredReplies(chat)
        tables = self._root.tables.read("entities"), self._root.tables.read("relationships")
        subjects = list(iterate_subjects(*tables))
        model.run_works(describer.works(subjects, model))
        written = self._count_written(subjects)
        self._n_written |= {f"{kind}_embeddings": written[kind] for kind in ("entity", "relationship")}
        return self._counted(name, model, chat)

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
        reporter = cast(CallingReporter, self._root.reporter())
        chat = self._root.models.chat_model("reports")
        model = StoredReplies(chat)

        def count(contexts: Sequence[CommunityContext]) -> list[Report]:
            large = [context for context in contexts if context.n_entities >= reporter.least_size]
            model.run_works(reporter.works(large, model))
            return [Report(", ".join(c.central), c.text[:2000], (), 0.0, "") for c in contexts]

        report_communities(
            **{table: self._root.tables.read(table) for table in _REPORTED},
            settings=self._settings.reports,
            write=count,
            earlier=self._earlier_reports(),
        )
        estimate = self._counted(name, model, chat)
        self._n_written["report_embeddings"] = estimate.n_calls + self._is_changed(name) * estimate.n_cached
        return estimate

    def _earlier_reports(self) -> EarlierReports | None:
        """Return the present reports, unless the prompt, model, settings or code of their stage changed."""
        if self._is_changed("community_reports") or not self._is_made("community_reports"):
            return None
        rows = self._root.tables.read("community_reports")
        return EarlierReports(rows, self._root.tables.need("descriptions").code_version)

    def _counted(self, stage: str, model: StoredReplies, chat: OpenAIChatModel) -> StageEstimate:
        counts = zip(model.missing, chat.count_asked(model.missing), strict=True)
        asked = [(request, n_asked) for request, n_asked in counts if n_asked < MAX_ASKED]
        texts = [message["content"] for request, _ in asked for message in request.messages]
        prompt_tokens = sum(count_tokens_each(texts, self._settings.text_units.encoding))
        reply_tokens, n_retried = len(asked) * self._reply_tokens(stage), sum(n > 0 for _, n in asked)
        return StageEstimate(stage, len(asked), model.n_cached, prompt_tokens, reply_tokens, n_retried=n_retried)

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
        return measure_sample(self._units.sample_documents(MAX_CHARACTERS), self._root)

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
