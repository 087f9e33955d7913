"""The forms of OpenAI's API that the server reads and writes; unknown fields of a request are ignored, as by others.

Keep out: what they mean for a search.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from graphrag_pipeline.serve.limits import Filters, MethodText, Options
from graphrag_pipeline.settings.search_names import SEARCH_METHODS

MAX_MESSAGES = 1_000


class _Sent(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class ContentPart(_Sent):
    """A part of a message; only text is read."""

    type: str
    text: str | None = None


class ChatMessage(_Sent):
    """A message of a conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | Annotated[list[ContentPart], Field(max_length=MAX_MESSAGES)] | None = None

    @property
    def text(self) -> str:
        """The text of all parts."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.text)
        return self.content or ""


class StreamOptions(_Sent):
    """Options of a stream."""

    include_usage: bool = False


class ChatBody(_Sent):
    """A conversation whose last message of the user is the question; earlier turns are its history.

    `strategy`, `filters`, `options` and `snapshot` are additions; a client sends them as `extra_body`.
    """

    model: str = Field(min_length=1, max_length=300, description="`root:method`; of one root, `method` is enough.")
    messages: list[ChatMessage] = Field(min_length=1, max_length=MAX_MESSAGES)
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: Literal[1] | None = 1
    strategy: MethodText | None = None
    filters: Filters = Field(default_factory=list)
    options: Options = Field(default_factory=dict)
    snapshot: str | None = Field(None, max_length=64)

    @property
    def root_name(self) -> str:
        """The root that the model names; "" if it names a method alone."""
        return split_model(self.model)[0]

    @property
    def method(self) -> str:
        """The search method that the model names."""
        return split_model(self.model)[1]


def split_model(name: str) -> tuple[str, str]:
    """Return root and method of a model's name; a root alone means the method `auto`."""
    root, colon, method = name.rpartition(":")
    if colon:
        return root, method
    return ("", name) if name in SEARCH_METHODS else (name, "auto")


class ModelFacts(BaseModel):
    """A root and a search method."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "graphrag_pipeline"


class ModelList(BaseModel):
    """All models that the reader may ask."""

    object: Literal["list"] = "list"
    data: list[ModelFacts]


class CitedUrl(BaseModel):
    """The source of one marker of the answer; `start_index` and `end_index` are the place of the marker.

    `url` returns the quoted text; `start` and `end` are its offsets in the document.
    """

    start_index: int
    end_index: int
    title: str
    url: str
    quote: str
    document_id: str
    start: int | None
    end: int | None
    record: str


class CitationAnnotation(BaseModel):
    """An annotation of OpenAI's form."""

    type: Literal["url_citation"] = "url_citation"
    url_citation: CitedUrl


class AnsweringMessage(BaseModel):
    """The message of the answer."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None
    annotations: list[CitationAnnotation]


class ChatChoice(BaseModel):
    """The only choice."""

    index: int = 0
    message: AnsweringMessage
    logprobs: None = None
    finish_reason: Literal["stop"] = "stop"


class ChatUsage(BaseModel):
    """Tokens of the models that answered; of the embedded engine, those that it read."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletion(BaseModel):
    """An answer; `system_fingerprint` and `snapshot` are the id of the snapshot that it comes from."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    system_fingerprint: str
    snapshot: str
    root: str
    choices: list[ChatChoice]
    usage: ChatUsage


class OpenAIErrorFacts(BaseModel):
    """An error in OpenAI's form."""

    message: str
    type: str
    param: None = None
    code: str


class OpenAIErrorAnswer(BaseModel):
    """Any answer of these routes that is not a success."""

    error: OpenAIErrorFacts
