"""The work and the price of the next run, before it starts: requests, tokens and US dollars of each stage."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.identity import WHOLE, bucket_of, text_hash
from graphrag_pipeline.indexing.aggregation_report import choose_sample, count_calls_together, count_embedding_calls
from graphrag_pipeline.indexing.embeddings import embedded_texts, embedded_unit_texts
from graphrag_pipeline.indexing.failures import count_requested
from graphrag_pipeline.indexing.ports import CallingDescriber, CallingReporter, iterate_subjects
from graphrag_pipeline.indexing.reports.community_reports import Report, report_communities
from graphrag_pipeline.indexing.reports.contexts import CommunityContext
from graphrag_pipeline.indexing.reports.evidence import EarlierReports
from graphrag_pipeline.indexing.text_units import split_documents, with_context
from graphrag_pipeline.inputs.documents import build_documents
from graphrag_pipeline.inspection.corpus_sample import HIGH, LOW, MAX_CHARACTERS, CorpusSample, measure_sample
from graphrag_pipeline.inspection.costs import StageEstimate, count_extraction, guess_reply_tokens, with_price
from graphrag_pipeline.models.endpoints.openai_client import OpenAIChatModel
from graphrag_pipeline.models.endpoints.replies import MAX_ASKED
from graphrag_pipeline.models.pool import StoredReplies
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stage_code import uses_chat_model
from graphrag_pipeline.pipeline.stages import STAGES, upstream_of
from graphrag_pipeline.pipeline.staleness import StalePartition
from graphrag_pipeline.publishing.contract_tables import with_descriptions, with_full_content
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.tables import VECTOR_TABLES
from graphrag_pipeline.text.tokens import count_tokens_each

if TYPE_CHECKING:
    from graphrag_pipeline.models.endpoints.openai_embedder import OpenAIEmbedder


@dataclass(frozen=True)
class CallsToEmbed:
    """Requests to send, texts whose vectors are stored, and tokens to send."""

    n_calls: int
    n_cached: int
    n_tokens: int


def count_calls_to_embed(
    stage: str, vector_table: str, rows: pa.Table, embedder: OpenAIEmbedder, settings: Settings
) -> CallsToEmbed:
    """Count the calls that embed the rows of a stage in an index run, with the samples that compare averaged vectors.

    An index run sends the samples of all buckets behind the text units, in the same call.

    Args:
        rows: of the contract table of `vector_table`; text units need `document_id`, since each bucket has a sample.
    """
    limits = settings.embedding_model
    text_of = {text_hash(text): text for text in embedded_texts(vector_table, rows)}
    missing = _not_stored(text_of, embedder)
    if stage == "text_unit_embeddings":
        sample = {text_hash(text): text for text in _sample(rows, settings)}
        calls = count_calls_together([*missing, *_not_stored(sample, embedder)], limits)
    else:
        calls = count_embedding_calls(missing, limits)
    return CallsToEmbed(calls.n_requests, len(text_of) - len(missing), calls.n_tokens)


def _sample(rows: pa.Table, settings: Settings) -> Iterator[str]:
    """Yield the texts of each bucket that are embedded to compare averaged vectors with those of whole texts."""
    buckets = [bucket_of(document_id, settings.storage.n_buckets) for document_id in rows["document_id"].to_pylist()]
    for bucket in sorted(set(buckets)):
        units = rows.filter(pa.array([other == bucket for other in buckets]))
        yield from choose_sample(embedded_unit_texts(units), settings)


def _not_stored(text_of: Mapping[str, str], embedder: OpenAIEmbedder) -> list[str]:
    stored = embedder.read_stored(text_of)
    return [text for key, text in text_of.items() if key not in stored and text.strip()]


_MENTIONS = ("entity_mentions", "relationship_mentions")


class ChangedUnits:
    """Text units after a run, and those among them that are new to the graph.

    Args:
        stale: partitions that the run would compute: stage -> partition -> reason.
    """

    def __init__(self, root: Root, stale: Mapping[str, Mapping[str, StalePartition]]) -> None:
        self._root = root
        self._stale = stale
        self._n_rows: dict[str, int] = {}
        self._n_new: int | None = None

    def read(self, stage: str) -> pa.Table:
        """Return the text units, with their context, of the buckets that are stale for a stage."""
        buckets = self._stale[stage]
        return pa.concat_tables([with_context(self._units(bucket), self._documents(bucket)) for bucket in buckets])

    def count_all(self) -> int:
        """Return the number of text units of the whole corpus."""
        return sum(self._count(bucket) for bucket in STAGES["text_units"].partitions(self._root.settings))

    def count_new(self) -> int:
        """Return the number of text units new to a stale graph, all if not known; 0 if the graph is fresh."""
        if self._n_new is None:
            graph = self._stale.get("graph", {}).get(WHOLE)
            head = self._root.tables.head("entities")
            if graph is None:
                self._n_new = 0
            elif head is None or graph.changes:
                self._n_new = self.count_all()
            else:
                buckets = STAGES["extracted_graph"].partitions(self._root.settings)
                self._n_new = sum(self._count_new(bucket, head.inputs) for bucket in buckets) or self.count_all()
        return self._n_new

    def sample_documents(self, n_characters: int) -> pa.Table:
        """Return the documents of the first buckets that together have so many characters: a fair sample."""
        parts: list[pa.Table] = []
        for bucket in STAGES["documents"].partitions(self._root.settings):
            parts.append(self._documents(bucket))
            n_characters -= sum(map(len, parts[-1]["text"].to_pylist()))
            if n_characters <= 0:
                break
        return pa.concat_tables(parts)

    def mentions_per_unit(self) -> float:
        """Return mentions of entities and relationships per text unit of extracted buckets; 0 without any."""
        n_mentions = n_units = 0
        for bucket in STAGES["text_units"].partitions(self._root.settings):
            heads = [self._root.tables.head(table, bucket) for table in (*_MENTIONS, "text_units")]
            if all(heads):
                *mentions, units = [head.n_rows for head in heads if head]
                n_mentions, n_units = n_mentions + sum(mentions), n_units + units
        return n_mentions / n_units if n_units else 0.0

    def _count_new(self, bucket: str, seen: Mapping[str, str | None]) -> int:
        """Return the number of text units of a bucket that are new to a graph made from these mention versions."""
        extraction = self._stale.get("extracted_graph", {}).get(bucket)
        heads = {f"{table}/{bucket}": self._root.tables.head(table, bucket) for table in _MENTIONS}
        is_seen = all(head and seen.get(name) == head.data_version for name, head in heads.items())
        if not is_seen or (extraction and extraction.changes):
            return self._count(bucket)
        return self._count_uncovered(bucket) if extraction else 0

    def _count_uncovered(self, bucket: str) -> int:
        """Count text units without mentions, and removed ones with mentions; all if both counts are 0."""
        units, mentions = self._units(bucket)["id"], self._root.tables.read("entity_mentions", bucket)["text_unit_id"]
        covered = pc.unique(mentions)
        n_uncovered = pc.sum(pc.invert(pc.is_in(units, covered))).as_py() or 0
        n_gone = pc.sum(pc.invert(pc.is_in(covered, units))).as_py() or 0
        return n_uncovered + n_gone or len(units)

    def _count(self, bucket: str) -> int:
        if bucket not in self._n_rows:
            head = self._root.tables.head("text_units", bucket)
            self._n_rows[bucket] = head.n_rows if head and self._is_split(bucket) else self._units(bucket).num_rows
        return self._n_rows[bucket]

    def _units(self, bucket: str) -> pa.Table:
        if self._is_split(bucket):
            return self._root.tables.read("text_units", bucket)
        units = split_documents(self._documents(bucket), self._root.settings.text_units)
        self._n_rows[bucket] = units.num_rows
        return units

    def _documents(self, bucket: str) -> pa.Table:
        if bucket not in self._stale.get("documents", {}) and self._root.tables.head("documents", bucket):
            return self._root.tables.read("documents", bucket)
        return build_documents(list(self._root.read_input({bucket})))

    def _is_split(self, bucket: str) -> bool:
        return not any(bucket in self._stale.get(name, {}) for name in ("documents", "text_units"))


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
        self._n_written: dict[str, int] = {}  # changed texts, by the stage that embeds them
        self._sampled: set[str] = set()  # stages whose records are scaled from a sample of the corpus

    def run(self) -> list[StageEstimate]:
        chats: dict[str, Callable[[], StageEstimate]] = {
            "extracted_graph": self._extraction,
            "graph": lambda: self._scaled("graph"),
            "summarized_descriptions": self._summaries,
            "community_reports": self._reports,
        }
        estimates = [
            self._priced(estimate())
            for stage, estimate in chats.items()
            if stage in self._stale and uses_chat_model(STAGES[stage], self._settings)
        ]
        if self._settings.embeddings.engine == "model":
            names = [stage for _, stage in VECTOR_TABLES.values() if stage in self._stale]
            estimates += [self._priced(self._embedding(stage)) for stage in names]
        return sorted(estimates, key=lambda estimate: list(STAGES).index(estimate.stage))

    def _priced(self, estimate: StageEstimate) -> StageEstimate:
        return with_price(self._settings, estimate, STAGES[estimate.stage].model_section)

    def _reply_tokens(self, stage: str) -> int:
        return guess_reply_tokens(self._root, stage)

    # --------------------------------------------------------------------------------------------------- chat models

    def _extraction(self) -> StageEstimate:
        return count_extraction(self._root, self._units.read("extracted_graph"))

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
        # Count the subjects whose description may change, by kind.
        rows = self._root.tables.read("descriptions") if self._is_made("descriptions") else None
        keys = rows.filter(pc.invert(rows["is_fallback"]))["description_key"].to_pylist() if rows else []
        known, is_changed = set(keys), self._is_changed("summarized_descriptions")
        written = Counter(
            subject.kind
            for subject in subjects
            if subject.description_key not in known or (is_changed and len(subject.descriptions) > 1)
        )
        self._n_written |= {f"{kind}_embeddings": written[kind] for kind in ("entity", "relationship")}
        return self._counted(name, model, chat)

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
        asked = [request for request, n_asked in counts if n_asked < MAX_ASKED]
        texts = [message["content"] for request in asked for message in request.messages]
        prompt_tokens = sum(count_tokens_each(texts, self._settings.text_units.encoding))
        return StageEstimate(stage, len(asked), model.n_cached, prompt_tokens, len(asked) * self._reply_tokens(stage))

    def _scaled(self, stage: str) -> StageEstimate:
        n_calls = self._guess(stage)
        prompt_tokens = n_calls * PROMPT_TOKENS[stage]
        estimate = StageEstimate(stage, n_calls, 0, prompt_tokens, n_calls * self._reply_tokens(stage), is_scaled=True)
        return self._with_range(estimate)

    def _with_range(self, estimate: StageEstimate) -> StageEstimate:
        """Return an estimate with its range: at most its calls if they are scaled from the present index.

        A changed graph may have more communities than the present one, though.
        """
        n_calls = estimate.n_calls
        if estimate.stage not in self._sampled | {"community_reports", "report_embeddings"}:
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
            n_calls = -(-n_texts // self._settings.embedding_model.batch_size)
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
