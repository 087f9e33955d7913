"""Single small requests that show what an endpoint can do, for `doctor`.

A probe goes through `Endpoint`, so it is booked, limited and free of keys like every call, but it is neither retried
after a failure nor stored. Keep out: what the answers mean (`inspection/doctor/`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.models.accounting import Caller
from graphrag_pipeline.models.endpoints.endpoint import Endpoint, fetch_model_list
from graphrag_pipeline.models.endpoints.places import ModelSettings, make_client
from graphrag_pipeline.models.endpoints.problems import Problem
from graphrag_pipeline.models.endpoints.replies import TokenUsage, estimate_tokens, read_completion, read_vectors
from graphrag_pipeline.models.endpoints.reranker import Scores, read_scores, rerank_body
from graphrag_pipeline.models.endpoints.windows import choose_listed, read_model_windows
from graphrag_pipeline.models.event_loop import start_in_loop
from graphrag_pipeline.models.ports import Message, ReplyFormatError, canonical_json
from graphrag_pipeline.models.spending import Spending

T = TypeVar("T")


@dataclass(frozen=True)
class ListedModel:
    """A model that an endpoint lists; `window` is None if the list does not tell."""

    name: str
    window: int | None = None

    def is_named(self, name: str) -> bool:
        """Whether the list gives the model this name; Ollama adds the tag `:latest`."""
        return self.name in (name, f"{name}:latest")


@dataclass(frozen=True)
class ProbedReply:
    """The reply to a probe.

    Attributes:
        body: JSON body of the response.
        seconds: until the whole reply; `first_s` until its first piece, of a stream only.
        n_pieces: pieces of a stream.
        has_usage: whether the endpoint gave the number of tokens.
    """

    body: Mapping[str, Any]
    seconds: float
    usage: TokenUsage
    has_usage: bool
    first_s: float | None = None
    n_pieces: int = 0

    @property
    def text(self) -> str:
        """Text of the reply, or the arguments of the tool that it calls; "" without any."""
        try:
            return read_completion(self.body).text
        except ReplyFormatError:
            return ""


def list_models(settings: ModelSettings) -> list[ListedModel] | Problem:
    """Return the models that an endpoint lists, or why it does not."""
    return start_in_loop(_list_models(settings)).result()


def find_model(name: str, listed: Sequence[ListedModel]) -> ListedModel | None:
    """Return the listed model that a name means; see `windows.choose_listed`."""
    by_name = {one.name: one for one in listed}
    found = choose_listed(name, by_name)
    return None if found is None else by_name[found]


async def _list_models(settings: ModelSettings) -> list[ListedModel] | Problem:
    body = await fetch_model_list(make_client(settings, settings.base_url))
    if isinstance(body, Problem):
        return body
    return [ListedModel(name, window) for name, window in read_model_windows(body).items()]


class EndpointProbe:
    """Sends probes to the model of some settings.

    Args:
        timeout_s: of one probe, if it is less than that of the settings.

    Attributes:
        settings: those of the probes.
    """

    def __init__(self, settings: ModelSettings, spending: Spending, caller: Caller, timeout_s: float) -> None:
        self.settings = self._settings = settings.model_copy(
            update={"max_attempts": 1, "timeout_s": min(timeout_s, settings.timeout_s), "max_concurrency": 8}
        )
        self._spending, self._caller = spending, caller

    def chat(
        self,
        prompt: str | Sequence[Message],
        max_tokens: int,
        more: Mapping[str, Any] | None = None,
        is_streamed: bool = False,
        n_at_once: int = 1,
    ) -> list[ProbedReply]:
        """Send a prompt, `n_at_once` times at the same time.

        Args:
            prompt: the user's turn, or a whole conversation.
            more: further fields of the body, such as `response_format`.

        Raises:
            PipelineError: a request fails.
        """
        settings = self._settings
        limit = {} if "max_completion_tokens" in settings.parameters else {"max_tokens": max_tokens}
        capped = settings.model_copy(update={"parameters": {**settings.parameters, **limit}})
        endpoint = Endpoint("model_checks", capped, self._spending)
        turns = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else [*prompt]
        body = {"messages": turns, **(more or {})}
        expected = TokenUsage(sum(estimate_tokens(turn["content"]) for turn in turns), max_tokens)

        async def send_one(number: int) -> ProbedReply:
            started = asyncio.get_running_loop().time()
            pieces: list[float] = []
            on_token = (lambda _: pieces.append(asyncio.get_running_loop().time())) if is_streamed else None
            key = stable_hash("doctor", canonical_json(body), str(number))
            sent = await endpoint.post("/chat/completions", body, key, expected, _read_body, self._caller, on_token)
            seconds = asyncio.get_running_loop().time() - started
            has_usage = isinstance(sent.value.get("usage"), Mapping)
            first = pieces[0] - started if pieces else None
            return ProbedReply(sent.value, seconds, sent.usage, has_usage, first, len(pieces))

        async def send_all() -> list[ProbedReply]:
            return list(await asyncio.gather(*(send_one(number) for number in range(n_at_once))))

        return start_in_loop(send_all()).result()

    def embed(self, texts: Sequence[str]) -> tuple[list[Any], float, TokenUsage]:
        """Return the vectors of texts in one request, its seconds and its usage.

        Raises:
            PipelineError: the request fails.
        """
        dimensions = getattr(self._settings, "dimensions", None)
        defaults = {"encoding_format": "base64", **({"dimensions": dimensions} if dimensions else {})}
        body = {"input": list(texts)}
        return self._send("/embeddings", body, texts, partial(read_vectors, n=len(texts)), defaults)

    def rerank(self, question: str, texts: Sequence[str]) -> tuple[Scores, float, TokenUsage]:
        """Return the scores of texts for a question in one request, its seconds and its usage.

        Raises:
            PipelineError: the request fails.
        """
        path = getattr(self._settings, "path", "/rerank")
        body = rerank_body(path, question, texts)
        read = partial(read_scores, n=len(texts))
        return self._send(path, body, [*texts, *[question] * len(texts)], read)

    def _send(
        self,
        path: str,
        body: Mapping[str, Any],
        texts: Sequence[str],
        read: Callable[[object], T],
        defaults: Mapping[str, Any] | None = None,
    ) -> tuple[T, float, TokenUsage]:
        """Send one request; `texts` are what the endpoint counts the tokens of."""
        endpoint = Endpoint("model_checks", self._settings, self._spending, defaults)
        expected = TokenUsage(sum(map(estimate_tokens, texts)))
        key = stable_hash("doctor", *texts)
        sent = start_in_loop(endpoint.post(path, body, key, expected, read, self._caller)).result()
        return sent.value, sent.seconds, sent.usage


def _read_body(body: object) -> Mapping[str, Any]:
    if not isinstance(body, Mapping):
        raise PipelineError(f"the endpoint sent no JSON object: {str(body)[:80]!r}")
    return body
