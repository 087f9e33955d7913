"""Problems of one attempt at a request, as data: whether to retry, to give up, or to stop the run.

This is the only module that knows the exceptions of the SDK. It never keeps an exception, because the request in it
holds the key.

Keep out: retries and error messages (`endpoint.py`).
"""

from __future__ import annotations

import base64
import functools
import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.models.endpoints.limits import retry_after_s
from graphrag_pipeline.models.endpoints.windows import read_refusal
from graphrag_pipeline.models.ports import PaidReplyError, ReplyFormatError

if TYPE_CHECKING:
    import openai

MAX_MESSAGE = 300
_MAX_READ = 20_000
"""Characters of an endpoint's text in which a key is looked for; `MAX_MESSAGE` of them are shown."""
LEAST_KEY = 8
NO_KEY = "none"
"""What is sent to a server that needs no key."""

_RETRIED = frozenset({408, 409, 425, 429})
_FATAL = frozenset({401, 402, 403, 404})
_REFUSED = frozenset({400, 413, 422, 500, 501})
"""Statuses by which servers refuse a request for good; 500 only with words that say so."""
_OVERLOAD = frozenset({429, 503, 529})
_REFUSALS = {
    "length": r"context.(?:length|size|window)|n_ctx|too long|too large to process|input is too large"
    r"|too many (?:input )?tokens|maximum (?:context|sequence|input|allowed|number of tokens)"
    r"|(?:input|prompt|sequence) length|max(?:imum)?_(?:seq|context|model_len)"
    r"|exceeds? (?:the (?:available |model'?s )?(?:context|maximum|limit|model|max)|max|\d+ tokens)"
    r"|(?:longer|larger|more tokens) than (?:the )?(?:max|context|model|allowed|batch|\d)"
    r"|exceeds? the (?:context|maximum|limit|model|max)"
    r"|token limit|max_new_tokens. must be|must have less than|physical batch size|exceed_context_size",
    "number": r"batch.?size|(?:number|count) of (?:inputs|texts|documents|items)"
    r"|too many (?:inputs|texts|documents|items|strings)|array too long|should have at most \d+ items?"
    r"|(?:one|single|\d+) (?:inputs?|texts?|documents?|strings?) "
    r"(?:is|are|at a time|per request|in one request|only)|(?:only|at most|maximum of|up to) (?:one|a single|\d+) "
    r"(?:inputs?|texts?|documents?|items?|strings?)",
    "tokens": r"token|too large to process",
    "service": r"(?:does|do|is|are) not (?:support|implement)\w* (?:\w+ )?"
    r"(?:embeddings?|chat|completions?|this endpoint|generat)"
    r"|(?:embeddings?|chat|completions?)(?: endpoint)? (?:is|are) not (?:supported|implemented|enabled|available)"
    r"|start it with|pooling type 'none'",
    "format": r"response_?format|json_object|structured output|guided|grammar|schema\b|support (?:tool|function)"
    r"|tools? (?:param|choice|call)|tool_choice",
    "schema type": r"json_schema|response_?format\W{0,3}type|\btype must be|should be '(?:text|json_object)'",
    "schema part": r"json_schema\.|(?:min|max)(?:Items|Length|imum)|\benum\b|propert|keyword|grammar|repetition"
    r"|invalid schema|in context",
    "parameter": r"unsupported|n[o']t (?:a )?(?:support|permit|allow|accept|recogni[sz]|valid|available|implement)"
    r"|unrecogni[sz]ed|unknown|unexpected|extra (?:inputs|fields|field|parameter)|deprecated|invalid|cannot|forbidden"
    r"|only|must be|removed|no longer|reject|incompatible|out of range|too (?:large|high|small|low)|不支持|无效|不允许",
    "filter": r"moderat|content.{0,3}(?:filter|polic|management|safety|inspection|check|violat)|flagged|safety"
    r"|harmful|inappropriate|sensitive|unsafe|usage polic|prohibited.content|敏感|违规|违禁|安全",
    "account": r"\baccount|organi[sz]ation|api.?key|\bregion|country|suspended|banned|permission|access denied|billing",
    "stream": r"stream",
}
"""What the words of a refusal may be about -> how servers say so. A new wording is added here and nowhere else."""
_ALIASES = {"encoding_format": "base64", "dimensions": "matryoshka"}
"""Other words by which servers name a parameter."""
_STATUSES = {
    r"rate.?limit|too.many|overload|throttl|quota|billing": 429,
    r"context|invalid.request|bad.request|filter|polic|moderat|safety|unprocessable": 400,
    r"auth|api.?key": 401,
    r"permission|forbidden": 403,
    r"not.found": 404,
}
"""Names of an error in a stream or in a body of status 200 -> the status that a response with it has."""
_WORDS = ("message", "detail", "errorMessage", "error_message", "msg", "error", "errors", "reason", "title")
"""Fields of an error body that hold its words, the usual ones first."""
_PATTERNS = {subject: re.compile(words, re.IGNORECASE) for subject, words in _REFUSALS.items()}
_NO_CONNECTION = re.compile(r"(?:Client)?Connect(?:or|Error|Timeout)")  # names of aiohttp's and httpx's exceptions


@dataclass(frozen=True)
class Problem:
    """One failed attempt.

    Attributes:
        message: error of the endpoint or the connection, one line, without the key.
        status: HTTP status; None without a complete response.
        code, param: fields of an OpenAI error body, else empty.
        retry_after_s: seconds that the endpoint asks to wait.
        may_be_paid: whether the endpoint may have done, and charged, the work.
        is_unreachable: whether no connection was made.
        is_timeout: whether no complete response arrived in time.
        window: tokens of the model's window, if the endpoint names it.
        n_prompt: tokens of the prompt as the endpoint counted, if it names them.
        is_page: whether the answer is a page of HTML with status 200, so that no model answers at this address.
        is_paid_in_vain: whether the reply was whole and without use, so that an equal request is, too.
    """

    message: str
    status: int | None = None
    code: str = ""
    param: str = ""
    retry_after_s: float | None = None
    may_be_paid: bool = False
    is_unreachable: bool = False
    is_timeout: bool = False
    window: int | None = None
    n_prompt: int | None = None
    is_paid_in_vain: bool = False
    is_page: bool = False

    @property
    def kind(self) -> str:
        """The kind of failure in one word: the HTTP status if there is one."""
        if self.status is not None:
            return str(self.status)
        return "connection" if self.is_unreachable else "timeout" if self.is_timeout else "no_answer"

    @property
    def is_worth_retrying(self) -> bool:
        is_temporary = self.status is None or self.status in _RETRIED or self.status >= 500
        return is_temporary and not (self.is_too_long or self.is_about_format or self.is_too_many)

    @property
    def is_overload(self) -> bool:
        return self.status in _OVERLOAD

    @property
    def is_fatal(self) -> bool:
        """Whether no request to this model can succeed."""
        return (self.status in _FATAL and not self.is_filtered) or self.is_out_of_credit or self.is_not_served

    @property
    def is_filtered(self) -> bool:
        """Whether a check of the content refuses this request with status 403, by which others refuse all access."""
        words = f"{self.code} {self.message}"
        is_said = _PATTERNS["filter"].search(words) and not _PATTERNS["account"].search(words)
        return self.status == 403 and bool(is_said)

    @property
    def is_out_of_credit(self) -> bool:
        """Whether the endpoint wants to be paid first."""
        return self.status == 402 or self.code == "insufficient_quota"

    @functools.cached_property
    def subjects(self) -> frozenset[str]:
        """What a refusal is about (`_REFUSALS`); nothing for a status that does not refuse a request for good."""
        if self.status not in _REFUSED:
            return frozenset()
        return frozenset(subject for subject, words in _PATTERNS.items() if words.search(self.message))

    @property
    def is_not_served(self) -> bool:
        """Whether the server has no such endpoint: for example, it was started without embeddings."""
        return (self.status in (405, 501) or "service" in self.subjects) and not self.is_about_format

    @property
    def is_too_many(self) -> bool:
        """Whether the endpoint finds that a request has too many texts, if it has several."""
        return "number" in self.subjects and "tokens" not in self.subjects

    @property
    def is_too_long(self) -> bool:
        """Whether the endpoint finds a prompt or a text too long. llama.cpp and Ollama say so with status 500."""
        is_coded = self.status in _REFUSED and self.code == "context_length_exceeded"
        return self.status == 413 or is_coded or "length" in self.subjects

    @property
    def is_about_format(self) -> bool:
        """Whether the endpoint does not support the form of structured outputs that the request asks for."""
        is_named = self.status in _REFUSED and self.param.startswith(("response_format", "tool"))
        return is_named or "format" in self.subjects

    @property
    def is_about_schema_type(self) -> bool:
        """Whether the endpoint refuses any JSON schema, not only a part of the one that it got."""
        is_named = self.param.endswith(".type") or "schema type" in self.subjects
        return self.is_about_format and is_named and "schema part" not in self.subjects

    @property
    def is_about_stream(self) -> bool:
        """Whether the endpoint refuses to stream."""
        return "stream" in self.subjects

    @property
    def is_of_unknown_cause(self) -> bool:
        """Whether the endpoint refuses a request, or fails at it, in words that name no cause known here."""
        return self.status in _REFUSED and self.status != 413 and not self.subjects - {"parameter"}

    def find_refused(self, sent: Collection[str]) -> str:
        """Return which of the sent parameters the endpoint does not accept, in whatever words; "" for another problem.

        It is the field `param` of the error, or the first one that the words name.
        """
        if self.status not in _REFUSED or self.is_too_long:
            return ""
        if self.param in sent:
            return self.param
        if not _PATTERNS["parameter"].search(f"{self.code} {self.message}"):
            return ""
        places = {name: found.start() for name in sent if (found := _named(name).search(self.message))}
        return min(places, key=places.__getitem__, default="")

    def __str__(self) -> str:
        """What a message says of the problem; to a reader of a server, only its kind (`causes_in_log`)."""
        if not _is_for_reader.get():
            return f"{self.status}: {self.message}" if self.status else self.message
        if self.status:
            return f"the model's endpoint answered with status {self.status}"
        if self.is_timeout:
            return "the model's endpoint did not answer in time"
        return "the model's endpoint was not reached" if self.is_unreachable else "the model's answer was not whole"


_is_for_reader: ContextVar[bool] = ContextVar("is_for_reader", default=False)
_log = logging.getLogger(__name__)


@contextmanager
def causes_in_log() -> Iterator[None]:
    """Write the words of endpoints and connections to the log alone, in this context and the calls that it starts.

    A server works for its readers in it, since they get the messages.
    """
    token = _is_for_reader.set(True)
    try:
        yield
    finally:
        _is_for_reader.reset(token)


def secrets_of(client: openai.AsyncOpenAI) -> tuple[str, ...]:
    """Return the key of a client, and the words of its additional headers, which may hold other keys."""
    words = (word for value in client._custom_headers.values() for word in str(value).split())
    return (client.api_key, *(word for word in words if len(word) >= LEAST_KEY))


def describe_problem(error: Exception, secrets: Sequence[str], timeout_s: float) -> Problem:
    """Return the problem behind an exception of an attempt, and log it if a reader gets its message.

    Args:
        error: one of `attempt_errors`; a ValueError or RecursionError means a body that is not JSON.
        secrets: what is removed from every message (`secrets_of`).
    """
    problem = _read_problem(error, secrets, timeout_s)
    if _is_for_reader.get():
        _log.warning("a call to a model failed (%s): %s", problem.kind, problem.message)
    return problem


def _read_problem(error: Exception, secrets: Sequence[str], timeout_s: float) -> Problem:
    import openai

    if broken := _broken_connection(error):
        return _describe_connection(broken, secrets)
    if isinstance(error, TimeoutError | openai.APITimeoutError):
        return Problem(f"no whole answer within {timeout_s:g} s", may_be_paid=True, is_timeout=True)
    if isinstance(error, openai.APIStatusError):
        retry_s = retry_after_s(error.response.headers)
        return _describe_error(error.body, error.status_code, secrets, error.message, retry_s)
    if isinstance(error, openai.APIConnectionError):
        return _describe_connection(error.__cause__ or error, secrets)
    if isinstance(error, openai.APIError) and error.body is not None:  # an event of a stream
        return _describe_error(error.body, _status_of(error.body), secrets, error.message)
    if isinstance(error, _transport_errors()):
        said = str(error).partition(": <")[
            0
        ]  # without the exception in it, which names a status that the server did not send
        return Problem(_clean(f"connection lost ({type(error).__name__}: {said})", secrets), may_be_paid=True)
    if isinstance(error, ReplyFormatError):
        is_whole = isinstance(error, PaidReplyError)
        return Problem(_clean(str(error), secrets), may_be_paid=True, is_paid_in_vain=is_whole)
    return Problem(_clean(f"the answer is not JSON ({type(error).__name__})", secrets), may_be_paid=True)


def _broken_connection(error: BaseException | None) -> BaseException | None:
    """Return the connection error of aiohttp, which the SDK reports as a time-out; None for other errors."""
    import aiohttp

    while error is not None:
        if isinstance(error, aiohttp.ClientConnectionError) and not isinstance(error, aiohttp.ServerTimeoutError):
            return error
        error = error.__cause__
    return None


def _describe_connection(cause: BaseException, secrets: Sequence[str]) -> Problem:
    kind = type(cause).__name__
    is_unreachable = bool(_NO_CONNECTION.match(kind))
    text = _clean(f"{'cannot connect' if is_unreachable else 'connection lost'} ({kind}: {cause})", secrets)
    return Problem(text, may_be_paid=not is_unreachable, is_unreachable=is_unreachable)


def attempt_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions of an attempt that `describe_problem` understands."""
    import openai

    return (openai.APIError, TimeoutError, ValueError, RecursionError, ReplyFormatError, *_transport_errors())


def _transport_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions of a lost stream in versions of the SDK that pass on errors of httpx."""
    try:
        from httpx import TransportError  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return ()
    return (TransportError,)


def read_error(answer: object, secrets: Sequence[str]) -> Problem | None:
    """Return the problem that a body of status 200 holds in the place of an answer; None for an answer."""
    if not isinstance(answer, Mapping):
        return None
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], Mapping) else {}
    error = answer.get("error") or first.get("error")
    return _describe_error(error, _status_of(error), secrets) if error and not answer.get("data") else None


def read_status_error(status: int, body: object, secrets: Sequence[str]) -> Problem:
    """Return the problem of a response in a batch whose status is not 200."""
    return _describe_error(body.get("error") if isinstance(body, Mapping) else body, status, secrets)


def _describe_error(
    error: object, status: int, secrets: Sequence[str], said: str = "", retry_s: float | None = None
) -> Problem:
    """Return the problem of an error body.

    Args:
        said: text for an error without words.
    """
    body: Mapping[str, Any] = error if isinstance(error, Mapping) else {}
    text = _words_of(error) or said
    names = [str(name) for name in (body.get("code"), body.get("type")) if name and not str(name).isdigit()]
    window, n_prompt = read_refusal(body, text)
    return Problem(
        _clean(text, secrets),
        status,
        _clean(names[0] if names else "", secrets),
        _clean(str(body.get("param") or ""), secrets),
        retry_s,
        window=window,
        n_prompt=n_prompt,
    )


def _status_of(error: object) -> int:
    """Return the status that a response with this error has: its own code, else by its names, else by its words."""
    body: Mapping[str, Any] = error if isinstance(error, Mapping) else {}
    names = [str(body.get(name) or "") for name in ("code", "status", "status_code", "type")]
    numbers = [int(name) for name in names if name.isdigit() and 400 <= int(name) < 600]
    if numbers:
        return numbers[0]
    found = (code for words, code in _STATUSES.items() if re.search(words, " ".join(names), re.IGNORECASE))
    words = _words_of(error)
    refused = any(_PATTERNS[subject].search(words) for subject in ("length", "filter"))
    return next(found, 400 if refused else 500)


def _words_of(error: object) -> str:
    """Return the words of an error body of any shape: a text, a field that holds one, a list of such, or all of it."""
    if isinstance(error, str):
        return re.sub(r"<[^<>]{0,500}>", " ", error[:_MAX_READ]).strip()
    if isinstance(error, list):
        return "; ".join(filter(None, map(_words_of, error)))
    if not isinstance(error, Mapping) or not error:
        return ""
    words = next((said for name in _WORDS if (said := _words_of(error.get(name)))), "")
    place = ".".join(map(str, error["loc"])) if isinstance(error.get("loc"), list) else ""
    more = error.get("metadata")  # of a router: what the model's own server said
    raw = _words_of(more.get("raw") or more.get("reasons")) if isinstance(more, Mapping) else ""
    return ": ".join(filter(None, (place, words, raw))) or str(dict(error))


def _clean(text: str, secrets: Sequence[str]) -> str:
    """Return one line without the secrets and their first and last 12 characters, in whatever form they are written.

    One of less than `LEAST_KEY` characters may be a part of a word, so it is removed as a word of its own only.
    """
    text = text[:_MAX_READ]
    for key in secrets:
        if key and key != NO_KEY:
            text = _mask_word(text, key) if len(key) < LEAST_KEY else _forms_of(key).sub("***", text)
    return " ".join(text.split())[:MAX_MESSAGE]


@functools.lru_cache(maxsize=64)
def _named(parameter: str) -> re.Pattern[str]:
    """Return a pattern of the name of a parameter; one of at most 4 letters is also a word, so it must be marked."""
    name = re.escape(parameter).replace("_", r"[_\s-]?").removesuffix("s") + "s" * parameter.endswith("s")
    if parameter.endswith("s"):
        name += "?"
    if parameter in _ALIASES:
        name += "|" + _ALIASES[parameter]
    if len(parameter) > 4:
        return re.compile(rf"(?<![a-z0-9])(?:{name})(?![a-z0-9])", re.IGNORECASE)
    kind = r"(?:param|arg|field|option|key|supplied)\w*"
    marked = rf"['\"`.(]{name}\b|\b{name}(?:['\"`=:)]|\s{kind})|{kind}\W{{1,3}}{name}\b"
    return re.compile(marked, re.IGNORECASE)


@functools.lru_cache(maxsize=16)
def _forms_of(key: str) -> re.Pattern[str]:
    """Return a pattern of a key, its beginning and its end: plain, in base64 and in hexadecimal digits.

    Case and marks or blanks between letters do not matter. In base64 a key looks different at each place modulo 3 of
    the encoded text, as behind "Bearer " or "user:"; characters that depend on its neighbours are left out.
    """
    parts = [key, *((key[:12], key[-12:]) if len(key) >= 16 else ())]
    forms = [re.escape(part) for part in parts]
    for part in parts:
        raw = part.encode()
        found = [part, raw.hex()]
        for n_before in range(3):
            encoded = base64.b64encode(bytes(n_before) + raw).decode().rstrip("=")
            n_unsure = (n_before + len(raw)) % 3 != 0
            found.append(encoded[-(-8 * n_before // 6) : len(encoded) - n_unsure])
        letters = ([re.escape(letter) for letter in form if letter.isalnum()] for form in found)
        forms += [r"[\W_]*".join(one) for one in letters if len(one) >= LEAST_KEY]
    return re.compile("|".join(forms), re.IGNORECASE)


def _mask_word(text: str, key: str) -> str:
    return re.sub(rf"(?<![\w.-]){re.escape(key)}(?![\w-])", "***", text)
