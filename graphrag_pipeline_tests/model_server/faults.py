"""Faults of a model endpoint by name, injected at a rate, chosen by hash, or by a script.

Names, for a rate (`{"429": 0.1, "hang": 0.02}`, `--faults 429=0.1,hang=0.02`) or a scripted `Fault(name)`:

| name | the client sees |
|---|---|
| `429` | rate limit without a `retry-after` header |
| `429-retry-after`, `429-retry-after-ms` | the same with that header: seconds (at least 1), or ms |
| `429-quota` | `insufficient_quota`: a retry does not help |
| `500`, `503`, any 4xx or 5xx | that status with an OpenAI error body (`401`: invalid key, `404`: no such model) |
| `too-long` | 400 `context_length_exceeded` |
| `unsupported-format` | 400: this endpoint does not support `response_format` |
| `501` | not implemented, as from a server without embeddings |
| `drop`, `drop-midway` | connection lost before the first byte; after half of the answer, streamed or not |
| `hang` | no answer until the client times out (at most `hang_s`), then a lost connection |
| `garbage`, `html` | 200 with broken JSON; 200 with a proxy's HTML page |
| `truncated` | the text cut in half, `finish_reason` `length` (chat) |
| `fenced`, `nonsense`, `empty` | the text inside a code fence; unrelated text; no text (chat) |
| `refused` | content null and a `refusal` (chat) |
| `endless-list` | the last list, record or sentence repeated until a limit cuts it (chat) |
| `echoed-placeholder` | the example of the prompt instead of a reply (chat) |
| `echoed-passage` | the passage of the prompt instead of a reply (chat) |
| `missing-brackets` | no closing bracket of JSON, records or citations (chat) |
| `null-delta` | a stream whose first delta has the role null, then a delta that is null (chat) |
| `error-event` | an event with an error in a stream, or a body of status 200 with it |
| `no-usage` | no `usage`, streamed or not |
| `wrong-dimension` | vectors one number short (embeddings) |
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphrag_pipeline.demo_model.prompts import PromptMessages
from graphrag_pipeline_tests.model_server.habits import drop_brackets, echo_example, echo_passage, repeat_endlessly
from graphrag_pipeline_tests.model_server.shapes import Reply

CHAT_ONLY = frozenset({"truncated", "fenced", "nonsense", "empty", "refused", "unsupported-format", "endless-list",
                       "echoed-placeholder", "echoed-passage", "missing-brackets", "null-delta"})  # fmt: skip
EMBEDDING_ONLY = frozenset({"wrong-dimension"})
ANYWHERE = frozenset({"429", "429-retry-after", "429-retry-after-ms", "429-quota", "500", "503", "too-long",
                      "drop", "drop-midway", "hang", "garbage", "html", "no-usage", "error-event"})  # fmt: skip
ENDLESS = 40_000
"""Characters of a reply without end, if no limit cuts it earlier."""
_ERRORS = {  # name -> status, message, code, param
    "401": (401, "Incorrect API key provided.", "invalid_api_key", None),
    "404": (404, "The model does not exist or you do not have access to it.", "model_not_found", "model"),
    "429": (429, "Rate limit reached. Please try again later.", "rate_limit_exceeded", None),
    "429-quota": (429, "You exceeded your current quota, please check your plan.", "insufficient_quota", None),
    "501": (501, "This server does not support this endpoint.", "not_supported_error", None),
    "too-long": (400, "This model's maximum context length is exceeded.", "context_length_exceeded", "messages"),
    "unsupported-format": (400, "'response_format' is not supported.", "unsupported_parameter", "response_format"),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault by name, for a script; message, code and param replace the usual ones of an error status.

    `more` holds other fields of the error; `raw` is a whole body in another shape, an object or a text.
    """

    name: str
    retry_after_s: float | None = None
    message: str | None = None
    code: str | None = None
    param: str | None = None
    more: Mapping[str, Any] | None = None
    raw: object = None

    def __post_init__(self) -> None:
        if self.name not in CHAT_ONLY | EMBEDDING_ONLY | ANYWHERE and not _is_status(self.name):
            known = ", ".join(sorted(CHAT_ONLY | EMBEDDING_ONLY | ANYWHERE))
            raise ValueError(f"model server: no fault is called {self.name!r}; known: {known}, or a status such as 502")


def error_body(fault: Fault) -> object:
    """Return the error of an `error-event`."""
    more = fault.more or {}
    return fault.raw or {"error": {"message": fault.message, "code": fault.code, "param": fault.param, **more}}


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    status: int
    headers: dict[str, str]
    message: str
    code: str | None
    param: str | None
    more: Mapping[str, Any] | None = None


def parse_fault_rates(text: str) -> dict[str, float]:
    """`429=0.1,500=0.05` as rates by name; ValueError names what cannot be read."""
    rates: dict[str, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, rate = part.partition("=")
        try:
            rates[name.strip()] = float(rate)
        except ValueError:
            raise ValueError(f"model server: {part!r} is not name=rate, such as 429=0.1") from None
    check_fault_rates(rates)
    return rates


def check_fault_rates(rates: Mapping[str, float]) -> None:
    """ValueError unless every name is known, every rate is within 0..1, and so is their sum for each endpoint."""
    for name, rate in rates.items():
        Fault(name)
        if not 0 <= rate <= 1:
            raise ValueError(f"model server: the rate of fault {name!r} is {rate}; it must be within 0..1")
    for others in (CHAT_ONLY, EMBEDDING_ONLY):
        if sum(rate for name, rate in rates.items() if name not in others) > 1 + 1e-9:
            raise ValueError(f"model server: the rates of faults add up to more than 1: {dict(rates)}")


def choose_fault(rates: Mapping[str, float], is_chat: bool, seed: int, key: str, attempt: int) -> Fault | None:
    """The fault of this attempt at this request: a function of the arguments, uniform over keys and attempts."""
    if not rates:
        return None
    digest = hashlib.blake2b(f"{seed}:{key}:{attempt}".encode(), digest_size=8).digest()
    left = int.from_bytes(digest, "big") / 2**64
    for name in sorted(rates):
        if name in (EMBEDDING_ONLY if is_chat else CHAT_ONLY):
            continue
        left -= rates[name]
        if left < 0:
            return Fault(name)
    return None


def error_answer(fault: Fault, retry_after_s: float) -> ErrorAnswer | None:
    """Status, headers and error of a fault that is an HTTP error; None for the others."""
    is_rate_limit = fault.name in ("429-retry-after", "429-retry-after-ms")
    name = "429" if is_rate_limit else fault.name
    if name not in _ERRORS and not _is_status(name):
        return None
    status, message, code, param = _ERRORS.get(name) or (int(name), f"The server answered {name}.", None, None)
    headers: dict[str, str] = {}
    wait_s = retry_after_s if fault.retry_after_s is None else fault.retry_after_s
    if fault.name.endswith("-ms"):
        headers["retry-after-ms"] = str(round(wait_s * 1000))
    elif is_rate_limit or fault.retry_after_s is not None:
        headers["retry-after"] = str(max(1, math.ceil(wait_s)))
    return ErrorAnswer(status, headers, fault.message or message, fault.code or code, fault.param or param, fault.more)


def spoil_reply(fault: Fault | None, reply: Reply, conversation: PromptMessages) -> Reply:
    """Return the reply to a conversation, changed by a chat fault; unchanged for other kinds of faults."""
    text = reply.text or ""
    match fault.name if fault else "":
        case "truncated":
            return dataclasses.replace(reply, text=text[: len(text) // 2], finish_reason="length")
        case "fenced":
            label = "json" if text.lstrip().startswith(("{", "[")) else ""
            return dataclasses.replace(reply, text=f"```{label}\n{text}\n```")
        case "nonsense":
            return dataclasses.replace(reply, text='As an assistant, I cannot see any data here. <|> (( {"a": [1, ##')
        case "empty":
            return dataclasses.replace(reply, text="")
        case "refused":
            return dataclasses.replace(reply, text=None, refusal="I'm sorry, but I can't help with that.")
        case "endless-list":
            return dataclasses.replace(reply, text=repeat_endlessly(text, ENDLESS), finish_reason="length")
        case "echoed-placeholder":
            return dataclasses.replace(reply, text=echo_example(conversation))
        case "echoed-passage":
            return dataclasses.replace(reply, text=echo_passage(conversation))
        case "missing-brackets":
            return dataclasses.replace(reply, text=drop_brackets(text))
    return reply


def _is_status(name: str) -> bool:
    return len(name) == 3 and name.isdecimal() and name[0] in "45"
