"""All settings of a root: one small frozen model per section (here and in the other modules of this folder).

Add an option to its section, with a default and a description. `init` writes both to settings.yaml,
`GRAPHRAG__SECTION__KEY` overrides the value, and the code version of the stages that use the section follows it (see
`pipeline/stages.py`). `file.py` reads and writes the file. Keep out: secrets (environment variables only), run
configuration, and anything that does not change a result or a limit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from graphrag_pipeline.settings.indexing import (
    CommunitiesSettings,
    DescriptionsSettings,
    EmbeddingsSettings,
    ExtractionSettings,
    GraphSettings,
    ReportsSettings,
    ResolutionSettings,
    TextUnitsSettings,
)
from graphrag_pipeline.settings.input import InputSettings
from graphrag_pipeline.settings.models import (
    BudgetSettings,
    ChatModelSettings,
    EmbeddingModelSettings,
    RerankModelSettings,
)
from graphrag_pipeline.settings.search import (
    AutoSearchSettings,
    AutoSection,
    BasicSearchSettings,
    BasicSection,
    DriftSearchSettings,
    DriftSection,
    GlobalSearchSettings,
    GlobalSection,
    LazySearchSettings,
    LazySection,
    LocalSearchSettings,
    LocalSection,
    MethodSection,
    SearchSection,
)
from graphrag_pipeline.settings.section import (
    EngineOf,
    NotificationsSettings,
    QualitySettings,
    ScheduleSettings,
    Section,
    TuningSettings,
    for_model,
    limit,
    model_overrides,
)
from graphrag_pipeline.settings.urls import has_password

SETTINGS_FILE = "settings.yaml"
OVERRIDES_FILE = "entity_overrides.csv"
"""File in the root with entities that a person merged or kept apart."""
REPLY_TOKENS_PER_WORD = 2.0
"""Tokens of a reply for each word that a prompt asks for: English takes 1.3, citations and other languages more."""
REPLY_SHARE = 4
"""A reply takes at most one in so many tokens of a window."""
REPLY_TOKENS: Mapping[str, int] = {
    "extraction": 4000,
    "resolution": 300,
    "descriptions": 1000,
    "reports": 3000,
    "rating": 300,
    "answers": 1600,
    "evaluation": 3000,
    "tuning": 2000,
}
"""Section -> most tokens of one reply; a longer one is cut off, and what is whole of it is used.

`max_reply_tokens` of the model, or its parameter `max_tokens`, replaces it. The words that prompts ask for are at most
half as many.
"""
LEAST_WORDS = 10


class StorageSettings(Section):
    """Storage of the index, the reply cache and the shared store."""

    n_buckets: int = Field(
        8,
        ge=1,
        le=96,
        description="Number of buckets (partitions) that documents are spread over. Fixed once a root has an "
        "index; more than 32 is slow.",
    )
    cache_folder: str = limit(
        default="cache",
        min_length=1,
        description="Folder of stored replies, vectors, costs and converted files, relative to the root. Roots with "
        "one input folder may share it, so that none pays again.",
    )
    ignore_environment: bool = limit(
        default=False,
        description="Whether GRAPHRAG__SECTION__KEY variables change nothing here, as in the view of a principal.",
    )
    cache_url: str | None = limit(
        default=None,
        description="SQLAlchemy URL of the reply cache, such as postgresql+psycopg://...; null: SQLite in "
        "cache_folder.",
    )
    url: str | None = limit(
        default=None,
        description="fsspec URL of a shared store, such as s3://bucket/index, for several machines; null: this "
        "root only.",
    )
    lease_s: float = limit(
        "Shared store: seconds after which the lease of a crashed writer expires.", default=60.0, gt=0
    )
    allow_offline: bool = limit(
        "Shared store: whether questions are answered from the local copy while the store is not reachable.",
        default=False,
    )

    sql_max_s: float = limit("Seconds after which a statement of `sql` is stopped.", default=60.0, gt=0)
    sql_max_memory_mb: int = limit(
        "Memory that a statement of `sql` may take, and maximum size of its result, in MB.", default=2048, ge=16
    )

    def cache_place(self, root: Path) -> Path:
        """Return `cache_folder` as a path."""
        return root / self.cache_folder

    @field_validator("url")
    @classmethod
    def _is_store(cls, url: str | None) -> str | None:
        if url is not None and has_password(url):
            raise ValueError("URL with a password; set the password in the environment, such as FSSPEC_SFTP_PASSWORD")
        if url is not None and "://" not in url:
            raise ValueError(
                f"{url!r} is not a URL; write a folder as file:///srv/index, a bucket as s3://bucket/index"
            )
        if url is not None and re.match(r"(file|local)://[^/]", url):
            raise ValueError(f"{url!r} is not an absolute path; write it as file:///srv/index")
        return url


class VectorStoreSettings(Section):
    """Store of the vectors of a snapshot."""

    kind: str = Field(
        "lancedb",
        min_length=1,
        description="lancedb (folders in the root), pgvector, qdrant, azure_search, or a kind that a module registers.",
    )
    module: str = limit("Python module that registers another kind when it is imported; empty: none.", default="")
    options: dict[str, Any] = Field(default_factory=dict, description="Options for another kind, such as {url: ...}.")


class PublishingSettings(Section):
    """Conditions that a candidate must meet to be published."""

    max_failed_share: float = Field(
        0.02, ge=0, le=1, description="Maximum share of a stage's records without a usable reply from the model."
    )
    tolerated_failures: int = Field(
        2,
        ge=0,
        description="Number of a stage's records that may fail whatever their share, so that 1 of 3 does not stop "
        "publishing; it never allows all to fail.",
    )
    allow_mixed_prompts: bool = Field(
        False,
        description="Whether buckets of one stage may come from different prompts, models or settings, as during "
        "a backfill.",
    )
    max_removed_share: float = limit(
        "Maximum share of the published documents that a publication may lose. One that would lose more, and at least "
        "5, waits for `index --allow-removal`.",
        default=0.2,
        ge=0,
        le=1,
    )
    review: bool = Field(
        False,
        description="Whether a new candidate waits until `review publish`, or a user of Dagster's UI, publishes it.",
    )
    golden_questions: str = Field(
        "", description="File in the root with golden questions that are evaluated before publishing; empty: none."
    )
    max_recall_drop: float = Field(
        0.02,
        ge=0,
        le=1,
        description="Maximum drop of recall below the published snapshot; a larger drop stops publishing.",
    )
    max_f1_drop: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Maximum drop of token F1 of local search's answers to golden questions with reference answers; "
        "null: token F1 is not measured before publishing.",
    )
    max_passage_drop: float | None = Field(
        0.02,
        ge=0,
        le=1,
        description="Maximum drop of the share of golden questions whose reference answer is in the first three "
        "passages of local search's extractive answer; null: not measured before publishing.",
    )


class RatingSettings(Section):
    """Rating of community reports and text units against the question (global and lazy search)."""

    engine: Annotated[str, EngineOf("rater")] = Field(
        "embedded", description="embedded: by words and vectors; model: by a chat model, 0 to 5."
    )
    model: dict[str, Any] = model_overrides()
    rated_text: Literal["full_content", "summary"] = for_model("full_content", "text of a report that it reads.")
    num_repeats: int = for_model(1, "ratings per report; the most frequent rating counts.", ge=1, le=9)


class AnswersSettings(Section):
    """Writing of the answer from the context."""

    engine: Annotated[str, EngineOf("answerer")] = Field(
        "embedded", description="embedded: quotes the passages that answer best; model: written by a chat model."
    )
    model: dict[str, Any] = model_overrides()
    response_type: str = for_model("multiple paragraphs", "form of the answer, such as a list of 3 to 7 points.")
    max_words: int = for_model(800, "maximum words of an answer, and of the points from one batch of reports.", ge=20)
    max_map_tokens: int | None = for_model(
        None,
        "maximum tokens of the points from one batch of reports or text units; null: no limit, as Microsoft GraphRAG "
        "sets none, but max_reply_tokens for a question with a token budget. A known window and a budget of the root "
        "limit the points in any case.",
        ge=16,
    )
    language: str = for_model(
        "auto", "language of the answer: auto (the language of the question) or a name, such as German."
    )
    cited_points_only: bool = for_model(
        True,
        "whether global and lazy search drop points that cite no record that was shown; false keeps them, as Microsoft "
        "GraphRAG does.",
    )


class EvaluationSettings(Section):
    """`evaluate` with a chat model: questions generated from the corpus, answers compared in pairs."""

    model: dict[str, Any] = model_overrides()
    max_context_tokens: int = Field(8000, ge=200, description="Maximum tokens of the corpus in one call.")


SEARCH_SETTINGS: Mapping[str, type[SearchSection]] = {
    "local": LocalSearchSettings,
    "global": GlobalSearchSettings,
    "basic": BasicSearchSettings,
    "drift": DriftSearchSettings,
    "lazy": LazySearchSettings,
    "auto": AutoSearchSettings,
}
"""Method -> its options for one question: those of its section, and more."""


class Settings(Section):
    """All settings of a root; the sections follow the data from input to answer."""

    input: InputSettings = InputSettings()
    storage: StorageSettings = StorageSettings()
    text_units: TextUnitsSettings = TextUnitsSettings()
    extraction: ExtractionSettings = ExtractionSettings()
    graph: GraphSettings = GraphSettings()
    resolution: ResolutionSettings = ResolutionSettings()
    descriptions: DescriptionsSettings = DescriptionsSettings()
    communities: CommunitiesSettings = CommunitiesSettings()
    reports: ReportsSettings = ReportsSettings()
    embeddings: EmbeddingsSettings = EmbeddingsSettings()
    vector_store: VectorStoreSettings = VectorStoreSettings()
    publishing: PublishingSettings = PublishingSettings()
    quality: QualitySettings = QualitySettings()
    schedule: ScheduleSettings = ScheduleSettings()
    notifications: NotificationsSettings = NotificationsSettings()
    local_search: LocalSection = LocalSection()
    global_search: GlobalSection = GlobalSection()
    basic_search: BasicSection = BasicSection()
    drift_search: DriftSection = DriftSection()
    lazy_search: LazySection = LazySection()
    auto_search: AutoSection = AutoSection()
    rating: RatingSettings = RatingSettings()
    answers: AnswersSettings = AnswersSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    tuning: TuningSettings = TuningSettings()
    chat_model: ChatModelSettings = ChatModelSettings()
    embedding_model: EmbeddingModelSettings = EmbeddingModelSettings()
    rerank_model: RerankModelSettings = RerankModelSettings()
    budget: BudgetSettings = BudgetSettings()

    @model_validator(mode="after")
    def _questions_have_their_options(self) -> Settings:
        for method in SEARCH_SETTINGS:
            try:
                self.search(method)
            except ValidationError as error:
                problem = error.errors()[0]
                option = ".".join((f"{method}_search.for_questions", *map(str, problem["loc"])))
                raise ValueError(f"{option}: {problem['msg']}") from None
        return self

    @model_validator(mode="after")
    def _models_are_named(self) -> Settings:
        for section in type(self).model_fields:
            values = getattr(self, section)
            if hasattr(values, "model") and hasattr(values, "engine"):
                named, option = self.chat_model_for(section).model, "chat_model.model"
            else:
                named, option = self.embedding_model.model, "embedding_model.model"
            if getattr(values, "engine", None) == "model" and not named:
                raise ValueError(f"{section}.engine is model, but {option} is empty: set it")
            if getattr(values, "rerank", False) and not self.rerank_model.model:
                raise ValueError(f"{section}.rerank is true, but rerank_model.model is empty: set it")
            if getattr(values, "model_keywords", False) and not self.chat_model_for("answers").model:
                raise ValueError(f"{section}.model_keywords is true, but chat_model.model is empty: set it")
        return self

    def search(self, method: str, **changed: Any) -> Any:
        """Return the options of one question to a method: its section, with `for_questions` and changes over it.

        Raises:
            ValidationError: an option does not validate.
        """
        section: MethodSection = getattr(self, f"{method}_search")
        own = section.model_dump(exclude={"for_questions"})
        return SEARCH_SETTINGS[method].model_validate({**own, **section.for_questions, **changed})

    def own_reply_tokens(self, section: str) -> int:
        """Return the most tokens of a reply to a section, without its model's parameters and window."""
        return self.chat_model_for(section).max_reply_tokens or REPLY_TOKENS[section]

    def reply_tokens_for(self, section: str) -> int:
        """Return the most tokens of a reply to a section, in a window that is set."""
        model = self.chat_model_for(section)
        cap = model.reply_cap or self.own_reply_tokens(section)
        return cap if not isinstance(model.context_window, int) else min(cap, model.context_window // REPLY_SHARE)

    def words_for(self, section: str) -> int:
        """Return the most words that the prompts of a section ask for: no more than fit into its replies."""
        words: int = getattr(self, section).max_words
        return max(LEAST_WORDS, min(words, int(self.reply_tokens_for(section) / REPLY_TOKENS_PER_WORD)))

    def model_for(self, section: str) -> ChatModelSettings | EmbeddingModelSettings:
        """Return the model of a section: that of embeddings for "embeddings", else its chat model."""
        return self.embedding_model if section == "embeddings" else self.chat_model_for(section)

    def chat_model_for(self, section: str) -> ChatModelSettings:
        """Return the chat model of a section: `chat_model`, overridden by the section's own options.

        A section with an address of its own has only its own headers and further endpoints.
        """
        own = getattr(self, section).model
        shared = self.chat_model.model_dump(exclude={"headers", "endpoints"} if "base_url" in own else None)
        try:
            return ChatModelSettings.model_validate(shared | own)
        except ValidationError as error:
            problem = error.errors()[0]
            option = ".".join((section, "model", *map(str, problem["loc"])))
            raise ValueError(f"{option}: {problem['msg']}") from None
