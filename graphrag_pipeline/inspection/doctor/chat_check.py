"""Checks of a chat model: a reply, a stream, structured replies, speed, and requests at once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from pydantic import BaseModel, Field

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.inspection.doctor.endpoint_check import accept_other_name, check_endpoint, explain_failure
from graphrag_pipeline.inspection.doctor.findings import Examination, Finding, Speed, say_rate
from graphrag_pipeline.models.endpoints.endpoint import RejectedError
from graphrag_pipeline.models.endpoints.probe import EndpointProbe, ProbedReply
from graphrag_pipeline.models.endpoints.reply_forms import AUTO, FORMS, UNLIMITED, possible_forms, shape_request
from graphrag_pipeline.models.endpoints.windows import READ
from graphrag_pipeline.models.ports import ChatRequest, Message
from graphrag_pipeline.models.prices import KnownForms
from graphrag_pipeline.models.reply_json import json_schema_format, parse_reply
from graphrag_pipeline.settings.models import ChatModelSettings
from graphrag_pipeline.settings.presets import is_loopback

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
    section: str, settings: ChatModelSettings, probe: EndpointProbe, known_forms: KnownForms
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


def _check_structure(settings: ChatModelSettings, probe: EndpointProbe, known_forms: KnownForms) -> Finding:
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
        known_forms.write(settings.base_url, settings.model, found).result()
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


def _local_settings(settings: ChatModelSettings) -> Iterator[Finding]:
    """Yield what suits a server on this machine and is not set."""
    if settings.prompt_price is None and settings.completion_price is None:
        yield Finding("price", "note", "a local model costs nothing", {"prompt_price": 0, "completion_price": 0})
    if "temperature" not in settings.parameters:
        text = "without a temperature, a small model answers differently each time"
        yield Finding("temperature", "note", text, {"parameters": {**settings.parameters, "temperature": 0}})
