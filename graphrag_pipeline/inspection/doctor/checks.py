"""Checks of the configured models, each by small requests, and what they find.

Keep out: which checks a root needs (`diagnosis.py`).
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

import numpy as np
from pydantic import BaseModel, Field

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.cache import KnownFacts
from graphrag_pipeline.models.endpoints.endpoint import RejectedError
from graphrag_pipeline.models.endpoints.places import ModelSettings, unset_hint
from graphrag_pipeline.models.endpoints.probe import EndpointProbe, ListedModel, ProbedReply, find_model, list_models
from graphrag_pipeline.models.endpoints.problems import Problem
from graphrag_pipeline.models.endpoints.reply_forms import AUTO, FORMS, UNLIMITED, possible_forms, shape_request
from graphrag_pipeline.models.endpoints.windows import READ
from graphrag_pipeline.models.pieces import piece_limit
from graphrag_pipeline.models.ports import ChatRequest, Message
from graphrag_pipeline.models.reply_json import json_schema_format, parse_reply
from graphrag_pipeline.models.spending import describe_price, find_price
from graphrag_pipeline.nearest import nearest_name
from graphrag_pipeline.settings.models import ChatModelSettings, EmbeddingModelSettings, RerankModelSettings
from graphrag_pipeline.settings.presets import is_loopback
from graphrag_pipeline.text.tokens import count_tokens

Status = Literal["ok", "note", "failed"]


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes:
        check: what was looked at, in one or two words.
        text: what was found and, if something is wrong, what to do.
        setting: options of the model's section to set: option -> value.
    """

    check: str
    status: Status
    text: str
    setting: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Speed:
    """Measured speed of a model.

    Attributes:
        read_per_s, written_per_s: tokens of a prompt and of a reply per second, for one request; inf if too fast to
            measure.
        n_parallel: requests that the server works on at once, as far as measured.
        latency_s: seconds of a request apart from its tokens.
    """

    read_per_s: float
    written_per_s: float = float("inf")
    n_parallel: float = 1.0
    latency_s: float = 0.0

    def seconds(self, prompt_tokens: int, completion_tokens: int = 0, n_calls: int = 1) -> float:
        """Return how long that many tokens take in that many requests."""
        tokens_s = prompt_tokens / self.read_per_s + completion_tokens / self.written_per_s
        return (n_calls * self.latency_s + tokens_s) / self.n_parallel


def say_rate(per_second: float) -> str:
    """Return tokens per second in words; a server may be too fast to measure."""
    return f"{per_second:,.0f}" if math.isfinite(per_second) else "more than can be measured"


@dataclass(frozen=True)
class Examination:
    """All findings about one model.

    Attributes:
        section: the section of the settings that names the model.
        title: the model and its host.
        speed: None if it could not be measured.
    """

    section: str
    title: str
    findings: tuple[Finding, ...]
    speed: Speed | None = None

    @property
    def has_failed(self) -> bool:
        """Whether a check failed, so that an index would fail, too."""
        return any(finding.status == "failed" for finding in self.findings)

    @property
    def settings(self) -> dict[str, Any]:
        """Options of the section to set."""
        return {option: value for finding in self.findings for option, value in finding.setting.items()}


MOST_NAMED = 5
_VECTORS = re.compile(r"embed|(^|[/_-])(bge|gte|e5)[_-](?!.*rerank)|minilm")
_RANKS = re.compile(r"rerank")
"""Signs in a name that a model makes vectors, or orders texts."""
USUAL_PATH = "/v1"
REFUSED = "the connection is refused"
SAME_MODEL = 0.99
"""Least cosine of the vectors that two endpoints of one model make of a text; rounding leaves at least 0.999."""


def check_endpoint(settings: ModelSettings) -> tuple[list[Finding], ListedModel | None]:
    """Return what the server says of itself, and the model as it lists it; a failed finding ends the examination."""
    found = list_models(settings)
    if isinstance(found, Problem):
        return [_explain(settings, found)], None
    answers = Finding("endpoint", "ok", f"{settings.base_url} answers and lists {len(found)} models")
    if not found:
        return [Finding("endpoint", "note", f"{settings.base_url} answers and lists no models")], None
    model = find_model(settings.model, found)
    is_served = model is not None and model.is_named(settings.model)
    return [answers, _served(model) if model and is_served else _name_model(settings, found)], model


def check_further(section: str, probes: Sequence[EndpointProbe]) -> Iterator[Examination]:
    """Yield an examination of each endpoint of a model except the first one: its list of models, and one request.

    Args:
        probes: of all endpoints, the first one first. Vectors of the others must be those of the first one.
    """
    for number, probe in enumerate(probes[1:]):
        settings = probe.settings
        findings, listed = check_endpoint(settings)
        if findings[0].status != "failed":
            try:
                answered = _check_request(probes[0], probe)
                findings = [*accept_other_name(settings, findings, listed), answered]
            except PipelineError as error:
                findings.append(Finding("request", "failed", explain_failure(settings, error, findings)))
        plain = tuple(replace(finding, setting={}) for finding in findings)  # the options of lists are not set
        yield Examination(f"{section}.endpoints[{number}]", f"{settings.model} at {settings.base_url}", plain)


def _check_request(first: EndpointProbe, probe: EndpointProbe) -> Finding:
    """Send one request to an endpoint; compare its vector with that of the first endpoint, if that gives one."""
    if isinstance(probe.settings, ChatModelSettings):
        return _check_reply(probe)
    if isinstance(probe.settings, RerankModelSettings):
        return _check_order(probe)
    [vector], seconds, _ = probe.embed([text_of(8)])
    try:
        [usual], *_ = first.embed([text_of(8)])
    except PipelineError as error:
        return Finding("vectors", "note", f"not compared, since the first endpoint failed ({error})")
    if len(vector) != len(usual):
        text = f"vectors have {len(vector)} numbers, and those of the first endpoint {len(usual)}: serve one model"
        return Finding("vectors", "failed", text)
    likeness = float(np.dot(vector, usual) / (np.linalg.norm(vector) * np.linalg.norm(usual)))
    if likeness < SAME_MODEL:
        text = f"the vector of one text has a cosine of {likeness:.2f} with that of the first endpoint: serve one model"
        return Finding("vectors", "failed", text)
    return Finding("vectors", "ok", f"as those of the first endpoint, after {seconds:.1f} s")


def _explain(settings: ModelSettings, problem: Problem) -> Finding:
    if problem.is_unreachable or problem.is_timeout:
        reason = REFUSED if "Connect call failed" in problem.message else problem
        return Finding("endpoint", "failed", f"no server at {settings.base_url}: {reason}. Start it or set base_url")
    if problem.status in (401, 403):
        variable = f"{settings.api_key_env}{unset_hint(settings.api_key_env)}"
        return Finding("endpoint", "failed", f"the key is refused ({problem}); set the environment variable {variable}")
    text = f"{settings.base_url} does not list its models ({problem})"
    if problem.status in (404, 405) and (other := _find_usual_address(settings)):
        return Finding("endpoint", "note", f"{text}, but {other} does", {"base_url": other})
    return Finding("endpoint", "note", text)


def _find_usual_address(settings: ModelSettings) -> str | None:
    """Return the address of the same server that ends in `/v1`, if it lists models."""
    parts = urlsplit(settings.base_url)
    other = urlunsplit((parts.scheme, parts.netloc, USUAL_PATH, "", ""))
    if other == settings.base_url.rstrip("/"):
        return None
    found = list_models(settings.model_copy(update={"base_url": other}))
    return None if isinstance(found, Problem) or not found else other


def explain_failure(settings: ModelSettings, error: PipelineError, findings: Sequence[Finding]) -> str:
    """Return what is wrong if requests fail, and what to set, by what the list of models said before."""
    said = str(error).partition(". Check the key")[0].partition("; replies so far")[0]
    if "base_url" in said:  # no model answers there at all
        return said
    if re.search(r": 40[13]:", said):
        return f"{said}. Set the environment variable {settings.api_key_env}{unset_hint(settings.api_key_env)} to a key"
    if any(finding.check == "model" and finding.status == "note" for finding in findings):
        return f"{said}. Set `model` to one that the server lists"
    if findings and findings[0].status == "note" and "404" in said:
        return f"{said}. Nothing answers at this path: set base_url, which usually ends in {USUAL_PATH}"
    return said


def accept_other_name(settings: ModelSettings, findings: Sequence[Finding], model: ListedModel | None) -> list[Finding]:
    """Return the findings after a reply: a server whose only model has another name has then taken the one set."""
    if model is None or model.is_named(settings.model):
        return list(findings)
    text = f"the server lists {model.name} only and answers {settings.model!r} too: it takes any name"
    accepted = Finding("model", "ok", f"{text}{_window_text(model)}")
    return [accepted if finding.check == "model" else finding for finding in findings]


def _served(model: ListedModel) -> Finding:
    return Finding("model", "ok", f"{model.name} is served{_window_text(model)}")


def _window_text(model: ListedModel) -> str:
    return f", window {model.window:,} tokens" if model.window else ""


def _of_kind(settings: ModelSettings, names: list[str]) -> list[str]:
    """Return the names that say no other kind of model than the one of the settings; all if none is left."""
    is_other = {"chat": (_VECTORS, _RANKS), "embed": (_RANKS,), "rerank": (_VECTORS,)}[_kind_of(settings)]
    return [name for name in names if not any(kind.search(name.casefold()) for kind in is_other)] or names


def _kind_of(settings: ModelSettings) -> str:
    if isinstance(settings, ChatModelSettings):
        return "chat"
    return "embed" if isinstance(settings, EmbeddingModelSettings) else "rerank"


def _name_model(settings: ModelSettings, listed: list[ListedModel]) -> Finding:
    names = _of_kind(settings, [one.name for one in listed])
    near = nearest_name(settings.model, names)
    others = near or ", ".join(names[:MOST_NAMED])
    setting = {"model": near} if near else {}
    return Finding("model", "note", f"{settings.model!r} is not in the list of models; it names {others}", setting)


LONGEST_PROMPT, LONGEST_REPLY = 8000, 1500
"""Tokens of a large call of an index: a report over its context."""
N_WRITTEN = 64  # tokens of the reply that shows the speed
N_SHORTEST, N_LONG = 3, 2  # measurements of the shortest request and of longer ones; the fastest one counts
WITHOUT_JSON = (
    "reports, ratings and the answers of global and DRIFT search need JSON: leave `reports`, `rating` and `answers` to "
    "the embedded engine, or use another model; extraction, claims and descriptions need none"
)
MOST_AT_ONCE = 4
MEASURABLE_S = 0.3  # of requests at once: below it, a server is too fast to tell whether they wait for each other
SHARED = 1.3  # times one request's speed: from here on a server works on requests side by side
_RATE = (
    'Rate from 0 to 5 how well the text answers the question. Write JSON with the keys "reason", a few words, and '
    '"rating".\nText: Paris is the capital of France.\nQuestion: Which city is the capital of France?'
)
"""Worded like the requests of an index: the prompt names the keys, whatever the form."""
_SHORT = "Reply with one word: yes."
_COUNT = "Count from one to twenty in English words, separated by commas."
_LINES = "\n".join(f"Line {n}: station {n * 37 % 101} counted {n * 53 % 97} boats." for n in range(1, 41))
_LONG = f"{_LINES}\nWrite one sentence about each of the first ten lines."


class _Rating(BaseModel):
    """The shape of the structured reply that is asked for."""

    reason: str
    rating: int = Field(ge=0, le=5)


def examine_chat_model(
    section: str, settings: ChatModelSettings, probe: EndpointProbe, known_forms: KnownFacts
) -> Examination:
    """Check a chat model with about ten small requests; the first failure ends the examination.

    Args:
        known_forms: gets the form of structured outputs that the endpoint takes now.
    """
    title = f"{settings.model} at {settings.base_url}"
    findings, listed = check_endpoint(settings)
    speed: Speed | None = None
    if findings[0].status != "failed":
        try:
            reply = _check_reply(probe)
            findings = [*accept_other_name(settings, findings, listed), reply]
            findings += [_check_stream(probe), _check_structure(settings, probe, known_forms)]
            speed = _measure(settings, probe)
            findings += _judge_speed(settings, speed)
        except PipelineError as error:
            findings.append(Finding("reply", "failed", explain_failure(settings, error, findings)))
    if all(finding.status != "failed" for finding in findings):
        findings += _check_window(settings, listed.window if listed else None)
    if is_loopback(settings.base_url):
        findings += _local_settings(settings)
    findings.append(_check_price(settings))
    return Examination(section, title, tuple(findings), speed)


def _check_window(settings: ChatModelSettings, window: int | None) -> Iterator[Finding]:
    """Yield what to set as the window, if the settings and the server leave it open or disagree."""
    known = settings.context_window
    if window is None and not isinstance(known, int):
        text = (
            f"the server does not tell that of {settings.model!r}: set context_window to the number that you started "
            "the server with"
        )
        yield Finding("window", "note", text, {"context_window": None} if known == READ else {})
    elif window and isinstance(known, int) and known > window:
        text = f"context_window is {known:,}, and the server says {window:,}"
        yield Finding("window", "note", text, {"context_window": window})
    elif window and known is None:
        yield Finding("window", "note", "prompts can be made to fit from the start", {"context_window": window})


def _check_reply(probe: EndpointProbe) -> Finding:
    [reply] = probe.chat(_SHORT, 16)
    if not reply.text.strip():
        return Finding("reply", "note", f"an empty reply after {reply.seconds:.1f} s")
    if not reply.has_usage:
        return Finding("reply", "note", f"after {reply.seconds:.1f} s; without token counts, which are then estimated")
    return Finding("reply", "ok", f"after {reply.seconds:.1f} s, with token counts")


def _check_stream(probe: EndpointProbe) -> Finding:
    try:
        [reply] = probe.chat(_COUNT, N_WRITTEN, is_streamed=True)
    except PipelineError as error:
        return Finding("stream", "note", f"refused ({error}); use `query --no-stream`")
    if reply.n_pieces < 2:
        return Finding("stream", "note", "the reply arrives in one piece, so `--stream` shows nothing earlier")
    return Finding("stream", "ok", f"first words after {reply.first_s or 0:.1f} s")


def _check_structure(settings: ChatModelSettings, probe: EndpointProbe, known_forms: KnownFacts) -> Finding:
    """Find the form of structured outputs that the endpoint takes and whose reply fits; the first one, as in a run."""
    messages: list[Message] = [{"role": "user", "content": _RATE}]
    parse, schema = partial(parse_reply, model=_Rating), json_schema_format(_Rating)
    request = ChatRequest("doctor", messages, parse, schema, limits={"reason": {"maxLength": 80}})
    problems: list[str] = []
    taken: list[str] = []
    refuses_schemas = False
    for form in possible_forms(settings.structured_output):
        if form == UNLIMITED and (taken or refuses_schemas):
            continue
        turns, more = shape_request(form, messages, request)
        try:
            [reply] = probe.chat(turns, N_WRITTEN, more)
        except PipelineError as error:
            refuses_schemas = isinstance(error, RejectedError) and error.problem.is_about_schema_type
            problems.append(f"{form} is refused ({error})")
            continue
        taken.append(form)
        try:
            request.parse(reply.text)
        except PipelineError as error:
            problems.append(f"{form} is taken, but the reply does not fit ({error})")
            continue
        break
    if settings.structured_output in (AUTO, FORMS[0]):
        found = next((form for form in taken if form != FORMS[0] and form == taken[0]), None)
        known_forms.write(settings.base_url, settings.model, fact=found).result()
    return _judge_structure(problems, taken)


def _judge_structure(problems: Sequence[str], taken: Sequence[str]) -> Finding:
    """Return what is said of the forms.

    Args:
        problems: of the forms that were tried, in order.
        taken: forms that were not refused; the reply in the last one may fit.
    """
    misfits = [problem for problem in problems if "does not fit" in problem]
    if len(taken) == len(misfits):
        return Finding("JSON", "note", "; ".join([*problems, WITHOUT_JSON]))
    setting = {"structured_output": taken[-1]} if misfits else {}
    return Finding("JSON", "note" if problems else "ok", "; ".join([*problems, f"{taken[-1]} works"]), setting)


def _measure(settings: ChatModelSettings, probe: EndpointProbe) -> Speed:
    """Measure latency by the shortest request, reading by a long prompt, and writing by a reply; see `_unseen`.

    A busy machine delays single requests, so the fastest of several counts. A reply to a short prompt is written for at
    least half of its time, so the speed of writing is finite if that time can be measured.
    """
    shortest = _fastest(probe, _SHORT, 1, N_SHORTEST)
    read = _fastest(probe, _LONG, 1, N_LONG)
    written = _fastest(probe, _COUNT, N_WRITTEN, N_LONG)
    n_more = read.usage.prompt_tokens - shortest.usage.prompt_tokens
    read_per_s = _per_second(n_more, read.seconds - shortest.seconds)
    latency_s = max(0.0, shortest.seconds - shortest.usage.prompt_tokens / read_per_s)
    writing_s = written.seconds - latency_s - written.usage.prompt_tokens / read_per_s
    if written.seconds > MEASURABLE_S:
        writing_s = max(writing_s, written.seconds / 2)
    written_per_s = _per_second(written.usage.completion_tokens, writing_s)
    return Speed(read_per_s, written_per_s, _measure_at_once(settings, probe), latency_s)


def _fastest(probe: EndpointProbe, prompt: str, max_tokens: int, n: int) -> ProbedReply:
    """Return the fastest of `n` replies to a prompt, which differs each time."""
    return min((probe.chat(_unseen(prompt), max_tokens)[0] for _ in range(n)), key=lambda reply: reply.seconds)


def _unseen(prompt: str) -> str:
    """Return a prompt that no server has in its cache: it begins with the time."""
    return f"Note {time.time_ns()}. {prompt}"


def _measure_at_once(settings: ChatModelSettings, probe: EndpointProbe) -> float:
    """Return how many requests run side by side; a server elsewhere is not loaded for it and counts as unlimited."""
    n = settings.max_concurrency
    if n == 1 or not is_loopback(settings.base_url):
        return float(n)
    n = min(n, MOST_AT_ONCE)
    [alone] = probe.chat(_unseen(_COUNT), N_WRITTEN)
    together = max(reply.seconds for reply in probe.chat(_unseen(_COUNT), N_WRITTEN, n_at_once=n))
    return float(n) if together < MEASURABLE_S else max(1.0, min(float(n), n * alone.seconds / together))


def _per_second(n_tokens: int, seconds: float) -> float:
    return n_tokens / seconds if seconds > 0 and n_tokens > 0 else float("inf")


def _judge_speed(settings: ChatModelSettings, speed: Speed) -> Iterator[Finding]:
    read, written = say_rate(speed.read_per_s), say_rate(speed.written_per_s)
    yield Finding(
        "speed",
        "ok",
        f"reads {read} and writes {written} tokens a second, after {speed.latency_s:.2f} s for each request",
    )
    n = settings.max_concurrency
    if n > 1 and is_loopback(settings.base_url):
        if speed.n_parallel < SHARED:
            text = "the server works on one request at a time; more would wait in its queue"
            yield Finding("requests at once", "note", text, {"max_concurrency": 1})
        else:
            yield Finding("requests at once", "ok", f"{speed.n_parallel:.1f} times the speed of one")
    longest = replace(speed, n_parallel=1.0).seconds(LONGEST_PROMPT, LONGEST_REPLY)
    if 2 * longest > settings.timeout_s:
        text = f"a large report takes about {longest:,.0f} s, and timeout_s is {settings.timeout_s:g}"
        yield Finding("time-out", "note", text, {"timeout_s": float(-(-2 * longest // 60) * 60)})


def _check_price(settings: ChatModelSettings | EmbeddingModelSettings | RerankModelSettings) -> Finding:
    prices = settings.prompt_price, settings.completion_price
    said = f"costs {describe_price(settings.model, settings.base_url, *prices)}"
    price = find_price(settings.model, settings.base_url, *prices)
    if price is None:
        return Finding("price", "note", f"{said}, so its cost is not counted; set prompt_price and completion_price")
    if prices == (None, None) and is_loopback(settings.base_url) and not price.is_free:
        return Finding("price", "note", f"{said}; if the server on this machine charges nothing, set both prices to 0")
    return Finding("price", "ok", said)


def _local_settings(settings: ChatModelSettings) -> Iterator[Finding]:
    """Yield what suits a server on this machine and is not set."""
    if "temperature" not in settings.parameters:
        text = "without a temperature, a small model answers differently each time"
        yield Finding("temperature", "note", text, {"parameters": {**settings.parameters, "temperature": 0}})


SHORTEST = 32  # tokens of a text; a model that refuses it is not searched for a shorter one
NEAR = 1.1  # times a length that is read: a length that is not, and near enough
SAME = 1e-5  # distance of vectors below which the differing ends of two texts were not read
_WORDS = ("harbour", "winter", "copper", "ledger", "orchard", "signal", "meadow", "granite", "lantern", "voyage")
_ENDS = ("apples pears plums", "iron tin zinc")
PREFIXES = (
    (re.compile(r"(?:^|[^a-z0-9])e5(?:[^a-z0-9]|$)", re.IGNORECASE), "query: ", "passage: "),
    (re.compile(r"nomic-embed", re.IGNORECASE), "search_query: ", "search_document: "),
)
"""Models that want a word in front of each text, by their names: of a question, of another text."""


def examine_embedding_model(
    section: str, settings: EmbeddingModelSettings, probe: EndpointProbe, published: int | None = None
) -> Examination:
    """Check an embedding model with a few requests; the first failure ends the examination.

    Args:
        published: length of the vectors of the published index, if this model made them.
    """
    findings, listed = check_endpoint(settings)
    speed: Speed | None = None
    if findings[0].status != "failed":
        try:
            vectors = _check_vectors(settings, probe, published)
            findings = [*accept_other_name(settings, findings, listed), vectors]
            batch, speed = _check_batch(settings.batch_size, partial(_embed_batch, probe))
            findings += [batch, _check_longest(settings, probe), *_check_prefixes(settings)]
        except PipelineError as error:
            findings.append(Finding("vectors", "failed", explain_failure(settings, error, findings)))
    findings.append(_check_price(settings))
    return Examination(section, f"{settings.model} at {settings.base_url}", tuple(findings), speed)


def _check_vectors(settings: EmbeddingModelSettings, probe: EndpointProbe, published: int | None) -> Finding:
    [vector], seconds, _ = probe.embed([text_of(8)])
    if settings.dimensions not in (None, len(vector)):
        text = f"vectors have {len(vector)} numbers, and dimensions is {settings.dimensions}"
        return Finding("vectors", "note", text, {"dimensions": None})
    if published not in (None, len(vector)):
        text = (
            f"vectors have {len(vector)} numbers, and those of the published index {published}: another model has the "
            "same name, so questions fail; serve the model that made the index, or set `dimensions` and run `index`"
        )
        return Finding("vectors", "failed", text)
    return Finding("vectors", "ok", f"{len(vector)} numbers, after {seconds:.1f} s")


def _check_batch(most: int, measure: Callable[[int], float]) -> tuple[Finding, Speed]:
    """Find the largest batch that is taken, from that of the settings downwards, and its speed.

    Args:
        measure: sends a batch of that many texts, and returns the tokens that are read a second.
    """
    size = most
    while True:
        try:
            speed = Speed(measure(size))
        except PipelineError:
            if size == 1:
                raise
            size //= 2
            continue
        text = f"{size} texts in one request, {say_rate(speed.read_per_s)} tokens a second"
        if size < most:
            return Finding("batch", "note", f"at most {text}", {"batch_size": size}), speed
        return Finding("batch", "ok", text), speed


def _embed_batch(probe: EndpointProbe, size: int) -> float:
    _, seconds, usage = probe.embed([f"{number} {text_of(30)}" for number in range(size)])
    return _per_second(usage.prompt_tokens, seconds)


def _check_longest(settings: EmbeddingModelSettings, probe: EndpointProbe) -> Finding:
    """Find the longest text that is read to its end: `batch_max_tokens`, or less, to within a tenth."""
    longest = piece_limit(settings).max_tokens
    problem = _why_not_read(longest, probe)
    if not problem:
        return Finding("longest text", "ok", f"{longest:,} tokens are read to the end")
    read, unread = SHORTEST, longest
    if longest <= SHORTEST or _why_not_read(SHORTEST, probe):
        return Finding("longest text", "note", f"not found: {problem}")
    while unread > NEAR * read:
        middle = (read + unread) // 2
        why = _why_not_read(middle, probe)
        read, unread, problem = (read, middle, why) if why else (middle, unread, problem)
    setting = {"batch_max_tokens": max(int(read * (1 + settings.token_margin)), 16)}
    return Finding("longest text", "note", f"{read:,} tokens are read to the end; {problem}", setting)


def _why_not_read(n_tokens: int, probe: EndpointProbe) -> str:
    """Return why a text of a length is not read to its end; "" if it is."""
    try:
        # Whether two texts of a length that differ at their ends have one vector.
        body = text_of(n_tokens - max(map(count_tokens, _ENDS)) - 1)
        first, second = (np.asarray(vector) for vector in probe.embed([f"{body} {end}" for end in _ENDS])[0])
        is_cut = bool(np.linalg.norm(first - second) < SAME)
    except PipelineError as error:
        return f"longer texts are refused ({error})"
    return "the model reads only the start of longer texts, and says nothing" if is_cut else ""


def _check_prefixes(settings: EmbeddingModelSettings) -> Iterator[Finding]:
    for name, query, passage in PREFIXES:
        if name.search(settings.model) and not (settings.query_prefix or settings.passage_prefix):
            text = f"models such as {settings.model} want {query!r} in front of a question and {passage!r} of a text"
            yield Finding("prefixes", "note", text, {"query_prefix": query, "passage_prefix": passage})


def text_of(n_tokens: int) -> str:
    """Return a text of about that many tokens: each word is one."""
    return " ".join(_WORDS[(number * 7 + number // 10) % 10] for number in range(n_tokens))


UNIT_TOKENS = 200
"""Tokens of a text in the batch whose speed is measured."""
SLOW_S = 10.0
"""Seconds of reranking that a user notices at each question."""
_QUESTION = "Which city is the capital of France?"
_ANSWER = "Paris is the capital of France and its largest city."
_OTHERS = (
    "Knead the dough for ten minutes and let it rise under a cloth.",
    "The engine needs new oil every ten thousand kilometres.",
    "Whales breathe air and come to the surface for it.",
)


def examine_rerank_model(section: str, settings: RerankModelSettings, probe: EndpointProbe) -> Examination:
    """Check a reranking model with a few requests; the first failure ends the examination."""
    findings, listed = check_endpoint(settings)
    speed: Speed | None = None
    if findings[0].status != "failed":
        try:
            order = _check_order(probe)
            findings = [*accept_other_name(settings, findings, listed), order]
            most = min(settings.batch_size, settings.n_candidates)
            batch, speed = _check_batch(most, partial(_rerank_batch, probe))
            findings += [batch, _judge_rerank_speed(settings, speed)]
        except PipelineError as error:
            said = explain_failure(settings, error, findings)
            text = f"{said} (the path is {settings.path}: `path` may be /rerank, /v1/rerank or /score)"
            findings.append(Finding("scores", "failed", text))
    findings.append(_check_price(settings))
    return Examination(section, f"{settings.model} at {settings.base_url}{settings.path}", tuple(findings), speed)


def _check_order(probe: EndpointProbe) -> Finding:
    """Check that the one text that answers a question comes first, in both orders of the texts."""
    for texts in ((_ANSWER, *_OTHERS), (*_OTHERS, _ANSWER)):
        scores, seconds, _ = probe.rerank(_QUESTION, texts)
        if len(scores) < len(texts):
            return Finding("scores", "note", f"only {len(scores)} of {len(texts)} texts got a score")
        best = texts[max(scores, key=scores.__getitem__)]
        if best != _ANSWER:
            text = f"{best!r} comes before the text that answers {_QUESTION!r}: is this a reranking model?"
            return Finding("order", "note", text)
    return Finding("order", "ok", f"the text that answers comes first, after {seconds:.1f} s")


def _rerank_batch(probe: EndpointProbe, size: int) -> float:
    scores, seconds, _ = probe.rerank(_QUESTION, [f"{number} {text_of(UNIT_TOKENS)}" for number in range(size)])
    if len(scores) < size:
        raise PipelineError(f"of {size} texts, {len(scores)} get a score")
    return _per_second(size * UNIT_TOKENS, seconds)


def _judge_rerank_speed(settings: RerankModelSettings, speed: Speed) -> Finding:
    seconds = speed.seconds(settings.n_candidates * UNIT_TOKENS)
    text = f"the {settings.n_candidates} candidates of a question take about {seconds:,.1f} s"
    if seconds < SLOW_S:
        return Finding("speed", "ok", text)
    fewer = max(1, int(settings.n_candidates * SLOW_S / seconds))
    return Finding("speed", "note", f"{text}; fewer are faster", {"n_candidates": fewer})
