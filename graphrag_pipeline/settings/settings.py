"""All tunables: one small frozen model per step (`step_settings.py`, `search_settings.py`, `model_settings.py`,
`schedule_settings.py`, and here). `settings_file.py` reads and writes them.

Add an option here, with a default and a description: `init` documents it in the file it writes,
`GRAPHRAG__SECTION__KEY` overrides it, and the code version of the stages that use its section follows it (see
`stages.py`). Keep out: secrets (environment variables only), anything that does not change a result or a resource
limit, run configuration.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from graphrag_pipeline.errors import SettingsError
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
from graphrag_pipeline.settings.models import BudgetSettings, ChatModelSettings, EmbeddingModelSettings
from graphrag_pipeline.settings.schedule import NotificationsSettings, ScheduleSettings
from graphrag_pipeline.settings.search import (
    AutoSearchSettings,
    BasicSearchSettings,
    DriftSearchSettings,
    GlobalSearchSettings,
    LazySearchSettings,
    LocalSearchSettings,
)
from graphrag_pipeline.settings.section import LANGUAGE, Engine, Section, for_model, limit, model_overrides

SETTINGS_FILE = "settings.yaml"
OVERRIDES_FILE = "entity_overrides.csv"
"""In the root: which entities a person merged or kept apart."""
PASSWORD_IN_URL = re.compile(r"(?<=://)([^/@:]*:)[^/@]*(?=@)")


class InputSettings(Section):
    """Where documents come from and how structured files are read."""

    folder: str = Field(
        "input",
        description="Folder with the documents, relative to the root, or an fsspec URL such as s3://bucket/docs; read "
        "recursively.",
    )
    exclude: tuple[str, ...] = Field((), description="Glob patterns of paths inside the folder to leave out.")
    id_column: str = Field(
        "id", description="Structured files: dotted path of a record's own id (else its row number)."
    )
    title_column: str = Field("title", description="Structured files: dotted path of a record's title.")
    text_column: str = Field("text", description="Structured files: dotted path of a record's text.")
    creation_date_column: str = Field(
        "creation_date", description="Structured files: dotted path of a record's date (ISO 8601), if it has one."
    )
    document_id_column: str = Field(
        "document_id",
        description="Chunk files (rows have this column, type_column and page_column): id of the row's document; "
        "rows of one id become one document. Empty: no file is one.",
    )
    type_column: str = Field("type", description="Chunk files: title, paragraph, table or list. Empty: not asked for.")
    page_column: str = Field("page", description="Chunk files: the page, a whole number. Empty: not asked for.")

    @field_validator("folder")
    @classmethod
    def _holds_no_password(cls, folder: str) -> str:
        if PASSWORD_IN_URL.search(folder):
            raise ValueError("a URL with a password; set that in the environment instead, such as FSSPEC_FTP_PASSWORD")
        return folder

    def place(self, root: Path) -> Path | str:
        """Where the documents are: a folder of this machine, or a URL as text."""
        protocol, is_url, rest = self.folder.partition("://")
        if is_url and protocol not in ("file", "local"):
            return self.folder
        return root / (rest if is_url else self.folder)


class StorageSettings(Section):
    """How the index is laid out on disk."""

    n_buckets: int = Field(
        8,
        ge=1,
        le=96,
        description="Partitions that documents are spread over. Fixed once a root has an index; over 32 costs time.",
    )
    cache_url: str | None = limit(
        default=None,
        description="SQLAlchemy URL of the replies' cache, such as postgresql+psycopg://...; null: SQLite in cache/.",
    )
    url: str | None = limit(
        default=None,
        description="fsspec URL of a store that machines share, such as s3://bucket/index; null: the index is here.",
    )
    lease_s: float = limit(
        "Shared store: seconds after which a writer that stopped without a word is taken over.", default=60.0, gt=0
    )
    allow_offline: bool = limit(
        "Shared store: questions are answered from what is here while the store cannot be reached.", default=False
    )

    @field_validator("url")
    @classmethod
    def _is_store(cls, url: str | None) -> str | None:
        if url is not None and PASSWORD_IN_URL.search(url):
            raise ValueError("a URL with a password; set that in the environment instead, such as FSSPEC_SFTP_PASSWORD")
        if url is not None and "://" not in url:
            raise ValueError(f"{url!r} is no URL; write a folder as file:///srv/index, a bucket as s3://bucket/index")
        if url is not None and re.match(r"(file|local)://[^/]", url):
            raise ValueError(f"{url!r} names no place of its own; write it from / on, as file:///srv/index")
        return url


class VectorStoreSettings(Section):
    """Where the vectors of a snapshot live."""

    kind: str = Field("lancedb", min_length=1, description="lancedb: in the root; or a kind that a module registers.")
    module: str = limit("Python module that registers another kind when it is imported.", default="")
    options: dict[str, Any] = Field(
        default_factory=dict, description="What another kind is opened with, such as {endpoint: ..., key_env: ...}."
    )


class PublishingSettings(Section):
    """What a candidate must satisfy to be published."""

    max_failed_share: float = Field(
        0.02, ge=0, le=1, description="Largest share of a stage's records without a usable reply of the model."
    )
    allow_mixed_prompts: bool = Field(
        False,
        description="Whether buckets of one stage may be made by different prompts, models or settings, as while a "
        "backfill is under way.",
    )
    golden_questions: str = Field(
        "", description="File of gold questions in the root, asked before publishing; empty: nothing is asked."
    )
    golden_k: int = Field(
        5, ge=1, description="Recall of their evidence is that of so many text units of local search."
    )
    max_recall_drop: float = Field(
        0.02, ge=0, le=1, description="Nothing is published whose recall is lower by more than this than the published."
    )


class RatingSettings(Section):
    """Global and lazy search: who rates community reports and text units against the question."""

    engine: Engine = Field("embedded", description="embedded: by words and vectors; model: by a chat model, 0 to 5.")
    model: dict[str, Any] = model_overrides()
    rated_text: Literal["full_content", "summary"] = for_model("full_content", "what of a report it reads.")
    num_repeats: int = for_model(1, "times a report is rated; the rating that comes most often counts.", ge=1, le=9)


class AnswersSettings(Section):
    """How an answer is written from the context."""

    engine: Engine = Field(
        "embedded", description="embedded: the sentences that answer best, quoted; model: written by a chat model."
    )
    max_sentences: int = Field(6, ge=1, description="embedded: most sentences in an answer.")
    model: dict[str, Any] = model_overrides()
    response_type: str = for_model("multiple paragraphs", "form of an answer, such as a list of 3 to 7 points.")
    max_words: int = for_model(800, "most words of an answer, and of the points made of one batch of reports.", ge=20)
    language: str = for_model("auto", "language to answer in: auto (the question's own) or a name, such as German.")


class EvaluationSettings(Section):
    """`evaluate` with a chat model: questions generated from the corpus, answers judged pair by pair."""

    model: dict[str, Any] = model_overrides()
    n_personas: int = Field(5, ge=1, le=50, description="Readers whose questions are generated.")
    n_tasks: int = Field(5, ge=1, le=50, description="Tasks of each reader.")
    max_context_tokens: int = Field(8000, ge=200, description="Most tokens of the corpus that a call is shown.")
    seed: int = Field(86, ge=0, description="Seed of what is shown, and of the order in which source text is mapped.")
    language: str = Field("auto", description=LANGUAGE)


class Settings(Section):
    """Everything a root can tune; the sections follow the data from input to answer."""

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
    schedule: ScheduleSettings = ScheduleSettings()
    notifications: NotificationsSettings = NotificationsSettings()
    local_search: LocalSearchSettings = LocalSearchSettings()
    global_search: GlobalSearchSettings = GlobalSearchSettings()
    basic_search: BasicSearchSettings = BasicSearchSettings()
    drift_search: DriftSearchSettings = DriftSearchSettings()
    lazy_search: LazySearchSettings = LazySearchSettings()
    auto_search: AutoSearchSettings = AutoSearchSettings()
    rating: RatingSettings = RatingSettings()
    answers: AnswersSettings = AnswersSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    chat_model: ChatModelSettings = ChatModelSettings()
    embedding_model: EmbeddingModelSettings = EmbeddingModelSettings()
    budget: BudgetSettings = BudgetSettings()

    @model_validator(mode="after")
    def _models_are_named(self) -> Settings:
        for section in type(self).model_fields:
            values = getattr(self, section)
            if hasattr(values, "model") and hasattr(values, "engine"):
                named, option = self.chat_model_for(section).model, "chat_model.model"
            else:
                named, option = self.embedding_model.model, "embedding_model.model"
            if getattr(values, "engine", None) == "model" and not named:
                raise ValueError(f"{section}.engine is model, but no model is named: set {option}")
        return self

    @property
    def use_spans(self) -> bool:
        """Whether a model sends spans, so that stages and queries send those above them."""
        return self.chat_model.use_spans or self.embedding_model.use_spans

    def chat_model_for(self, section: str) -> ChatModelSettings:
        """The chat model that a section asks: `chat_model`, with the section's own options over it."""
        try:
            return ChatModelSettings.model_validate(self.chat_model.model_dump() | getattr(self, section).model)
        except ValidationError as error:
            problem = error.errors()[0]
            option = ".".join((section, "model", *map(str, problem["loc"])))
            raise ValueError(f"{option}: {problem['msg']}") from None


def settings_for_model(
    chat_model: str, embedding_model: str | None, base_url: str | None = None, api_key_env: str | None = None
) -> Settings:
    """Settings in which a model does every stage that it can; resolution stays by rules until somebody sets it.

    Args:
        embedding_model: None leaves the bundled embeddings.
        base_url, api_key_env: of both models; OpenAI's where None.

    Raises:
        SettingsError: a value does not validate; a key in the place of a variable's name is not repeated.
    """
    place = {"base_url": base_url, "api_key_env": api_key_env}
    endpoint = {name: value for name, value in place.items() if value}
    values: dict[str, dict[str, Any]] = {"chat_model": {"model": chat_model, **endpoint}}
    for section, field in Settings.model_fields.items():
        if {"engine", "model"} <= type(field.default).model_fields.keys() and section != "resolution":
            values[section] = {"engine": "model"}
    if embedding_model:
        values["embedding_model"] = {"model": embedding_model, **endpoint}
        values["embeddings"] = {"engine": "model"}
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        problem = error.errors()[0]
        raise SettingsError(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}") from None
