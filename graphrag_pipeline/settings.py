"""All tunables: one small frozen model per step. `settings_file.py` reads and writes them.

Add an option here, with a default and a description: `init` documents it in the file it writes,
`GRAPHRAG__SECTION__KEY` overrides it, and the code version of the stages that use its section follows it (see
`stages.py`). Keep out: secrets (environment variables only), anything that does not change a result or a resource
limit, run configuration.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic.fields import FieldInfo

from graphrag_pipeline.errors import SettingsError
from graphrag_pipeline.model_settings import BudgetSettings, ChatModelSettings, EmbeddingModelSettings
from graphrag_pipeline.schedule_settings import NotificationsSettings, ScheduleSettings
from graphrag_pipeline.search_settings import (
    AutoSearchSettings,
    BasicSearchSettings,
    DriftSearchSettings,
    GlobalSearchSettings,
    LazySearchSettings,
    LocalSearchSettings,
)

SETTINGS_FILE = "settings.yaml"
OVERRIDES_FILE = "entity_overrides.csv"
"""In the root: which entities a person merged or kept apart."""
PASSWORD_IN_URL = re.compile(r"(?<=://)([^/@:]*:)[^/@]*(?=@)")

Engine = Literal["embedded", "model"]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def result_options(self) -> dict[str, Any]:
        """Options that change a result: all but limits and those of an engine that is not set."""
        engine = getattr(self, "engine", None)
        values = self.model_dump(mode="json")
        return {name: values[name] for name, field in type(self).model_fields.items() if _counts(field, engine)}


def _counts(field: FieldInfo, engine: str | None) -> bool:
    marks = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    return marks.get("engine") in (None, engine) and not marks.get("is_limit")


def _limit(description: str, **constraints: Any) -> Any:
    """An option that bounds what a stage uses, or says whom it asks, not what it makes."""
    return Field(description=description, json_schema_extra={"is_limit": True}, **constraints)


def _for_model(default: Any, description: str, **constraints: Any) -> Any:
    """An option that counts only where `engine: model` is set."""
    marks: dict[str, Any] = {"engine": "model"}
    return Field(default, description=f"model: {description}", json_schema_extra=marks, **constraints)


def _model_overrides() -> Any:
    return _limit(
        default_factory=dict,
        description="model: options over those of chat_model, such as {model: gpt-4o-mini}.",
    )


_LANGUAGE = "language to write in: auto (the text's own) or a name, such as German."


class InputSettings(_Section):
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


class StorageSettings(_Section):
    """How the index is laid out on disk."""

    n_buckets: int = Field(
        8,
        ge=1,
        le=96,
        description="Partitions that documents are spread over. Fixed once a root has an index; over 32 costs time.",
    )
    cache_url: str | None = _limit(
        default=None,
        description="SQLAlchemy URL of the replies' cache, such as postgresql+psycopg://...; null: SQLite in cache/.",
    )
    url: str | None = _limit(
        default=None,
        description="fsspec URL of a store that machines share, such as s3://bucket/index; null: the index is here.",
    )
    lease_s: float = _limit(
        "Shared store: seconds after which a writer that stopped without a word is taken over.", default=60.0, gt=0
    )
    allow_offline: bool = _limit(
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


class TextUnitsSettings(_Section):
    """How documents are split into text units."""

    size: int = Field(1200, ge=16, description="Most tokens in a text unit.")
    overlap: int = Field(100, ge=0, description="Most tokens repeated from the end of the previous text unit.")
    min_fill: float = Field(
        0.6, gt=0, le=1, description="A text unit ends at a sentence between this share of size and size itself."
    )
    encoding: str = Field("o200k_base", description="tiktoken encoding that counts tokens (o200k_base is bundled).")
    aggregation_target: int = Field(
        1200, ge=16, description="Chunk files: tokens that chunks are combined to, in order, along their bounds."
    )
    aggregation_max: int = Field(1500, ge=16, description="Chunk files: most tokens of combined chunks.")
    aggregation_max_pages: int = Field(3, ge=1, description="Chunk files: most pages that combined chunks span.")

    @model_validator(mode="after")
    def _target_fits(self) -> TextUnitsSettings:
        if self.aggregation_target > self.aggregation_max:
            raise ValueError(
                f"aggregation_target ({self.aggregation_target}) must not exceed aggregation_max "
                f"({self.aggregation_max})"
            )
        return self

    @model_validator(mode="after")
    def _overlap_fits(self) -> TextUnitsSettings:
        if self.overlap >= self.size * self.min_fill:
            raise ValueError(
                f"overlap ({self.overlap}) must be smaller than size x min_fill ({self.size * self.min_fill:g}): "
                "text units could not advance; lower overlap or raise size"
            )
        return self


class ExtractionSettings(_Section):
    """How entities, relationships and claims are found in text units."""

    engine: Engine = Field("embedded", description="embedded: names by rule, no model, no key; model: a chat model.")
    max_entities_per_sentence: int = Field(
        8,
        ge=2,
        description="embedded: a sentence naming more entities (a list) relates only those next to each other.",
        json_schema_extra={"engine": "embedded"},
    )
    model: dict[str, Any] = _model_overrides()
    entity_types: tuple[str, ...] = _for_model(
        ("ORGANIZATION", "PERSON", "GEO", "EVENT"), "types to look for; others are kept and counted.", min_length=1
    )
    max_gleanings: int = _for_model(1, "most follow-up calls per text unit for what was missed.", ge=0)
    has_claims: bool = _for_model(False, "whether claims are extracted too, in calls of their own.")
    claim_description: str = _for_model(
        "Any claims or facts that could be relevant to information discovery.", "what counts as a claim."
    )
    language: str = _for_model("auto", _LANGUAGE)


class GraphSettings(_Section):
    """How mentions are merged into one graph."""

    weight: Literal["strength", "n_mentions"] = Field(
        "strength", description="Relationship weight: sum of the mentions' strengths, or their number."
    )
    max_memory: str = Field("2GB", description="Memory DuckDB may use for the merge before it spills to disk.")


class ResolutionSettings(_Section):
    """Which entities are one although their names differ, beside the rules on names, which always hold."""

    engine: Engine = Field(
        "embedded", description="embedded: rules, and vectors if min_similarity is set; model: also a chat model."
    )
    min_similarity: float | None = Field(
        None, gt=0, le=1, description="Cosine of names and descriptions from which two of one type are one; null: none."
    )
    model: dict[str, Any] = _model_overrides()
    min_asked_similarity: float = _for_model(0.8, "cosine from which it is asked whether two are one.", gt=0, le=1)
    max_asked: int = _for_model(1000, "most pairs asked about, the nearest first.", ge=0)

    @property
    def least_similarity(self) -> float | None:
        """The least cosine at which two entities are looked at; None where vectors have no say."""
        asked = self.min_asked_similarity if self.engine == "model" else None
        return min((least for least in (self.min_similarity, asked) if least is not None), default=None)

    @property
    def is_semantic(self) -> bool:
        """Whether vectors have a say."""
        return self.least_similarity is not None


class DescriptionsSettings(_Section):
    """How the descriptions of one entity or relationship become one."""

    engine: Engine = Field(
        "embedded", description="embedded: the most telling sentences, verbatim; model: a summary by a chat model."
    )
    max_sentences: int = Field(5, ge=1, description="embedded: most sentences in a description.")
    model: dict[str, Any] = _model_overrides()
    max_input_tokens: int = _for_model(4000, "most tokens of descriptions in one call; more are folded.", ge=100)
    max_words: int = _for_model(500, "most words of a summary.", ge=10)
    language: str = _for_model("auto", _LANGUAGE)


class CommunitiesSettings(_Section):
    """Hierarchical Leiden clustering of the graph."""

    max_cluster_size: int = Field(10, ge=2, description="A community with more entities is split one level down.")
    resolution: float = Field(1.0, gt=0, description="Higher gives more, smaller communities.")
    seed: int = Field(3735928559, ge=0, description="Seed of the clustering.")


class ReportsSettings(_Section):
    """Community reports."""

    engine: Engine = Field("embedded", description="embedded: an extractive report; model: by a chat model.")
    max_input_tokens: int = Field(8000, ge=200, description="Most tokens of context behind a report.")
    min_report_size: int = Field(
        3, ge=1, description="Communities with fewer entities get a report without a model call."
    )
    max_findings: int = Field(8, ge=1, le=10, description="embedded: most findings in a report.")
    model: dict[str, Any] = _model_overrides()
    max_words: int = _for_model(1500, "most words of a report.", ge=50)
    rewrite_share: float = _for_model(
        0.05,
        "a report is written again once more than this share of what is known of its community is new to it.",
        ge=0,
        lt=1,
    )
    language: str = _for_model("auto", _LANGUAGE)


class EmbeddingsSettings(_Section):
    """Vectors of text units, entities, relationships and reports."""

    engine: Engine = Field(
        "embedded", description="embedded: bundled static vectors, 256 dimensions; model: see embedding_model."
    )


class VectorStoreSettings(_Section):
    """Where the vectors of a snapshot live."""

    kind: str = Field("lancedb", min_length=1, description="lancedb: in the root; or a kind that a module registers.")
    module: str = _limit("Python module that registers another kind when it is imported.", default="")
    options: dict[str, Any] = Field(
        default_factory=dict, description="What another kind is opened with, such as {endpoint: ..., key_env: ...}."
    )


class PublishingSettings(_Section):
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


class RatingSettings(_Section):
    """Global and lazy search: who rates community reports and text units against the question."""

    engine: Engine = Field("embedded", description="embedded: by words and vectors; model: by a chat model, 0 to 5.")
    model: dict[str, Any] = _model_overrides()
    rated_text: Literal["full_content", "summary"] = _for_model("full_content", "what of a report it reads.")
    num_repeats: int = _for_model(1, "times a report is rated; the rating that comes most often counts.", ge=1, le=9)


class AnswersSettings(_Section):
    """How an answer is written from the context."""

    engine: Engine = Field(
        "embedded", description="embedded: the sentences that answer best, quoted; model: written by a chat model."
    )
    max_sentences: int = Field(6, ge=1, description="embedded: most sentences in an answer.")
    model: dict[str, Any] = _model_overrides()
    response_type: str = _for_model("multiple paragraphs", "form of an answer, such as a list of 3 to 7 points.")
    max_words: int = _for_model(800, "most words of an answer, and of the points made of one batch of reports.", ge=20)
    language: str = _for_model("auto", "language to answer in: auto (the question's own) or a name, such as German.")


class EvaluationSettings(_Section):
    """`evaluate` with a chat model: questions generated from the corpus, answers judged pair by pair."""

    model: dict[str, Any] = _model_overrides()
    n_personas: int = Field(5, ge=1, le=50, description="Readers whose questions are generated.")
    n_tasks: int = Field(5, ge=1, le=50, description="Tasks of each reader.")
    max_context_tokens: int = Field(8000, ge=200, description="Most tokens of the corpus that a call is shown.")
    seed: int = Field(86, ge=0, description="Seed of what is shown, and of the order in which source text is mapped.")
    language: str = Field("auto", description=_LANGUAGE)


class Settings(_Section):
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
