"""Checks of a reranking model: an answer, a sensible order, batches, the longest text and the time of a question."""

from __future__ import annotations

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.inspection.doctor.embedding_check import text_of
from graphrag_pipeline.inspection.doctor.endpoint_check import accept_other_name, check_endpoint, explain_failure
from graphrag_pipeline.inspection.doctor.findings import Examination, Finding, Speed, say_rate
from graphrag_pipeline.models.endpoints.probe import EndpointProbe
from graphrag_pipeline.models.endpoints.reranker import MAX_DOCUMENT_TOKENS, MIN_DOCUMENT_TOKENS
from graphrag_pipeline.settings.models import RerankModelSettings
from graphrag_pipeline.settings.presets import is_loopback

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
            batch, speed = _check_batch(settings, probe)
            findings += [batch, _check_longest(probe), _judge_speed(settings, speed)]
        except PipelineError as error:
            said = explain_failure(settings, error, findings)
            text = f"{said} (the path is {settings.path}: `path` may be /rerank, /v1/rerank or /score)"
            findings.append(Finding("scores", "failed", text))
    if is_loopback(settings.base_url) and settings.prompt_price is None:
        findings.append(Finding("price", "note", "a local model costs nothing", {"prompt_price": 0}))
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


def _check_batch(settings: RerankModelSettings, probe: EndpointProbe) -> tuple[Finding, Speed]:
    """Find the largest batch that is taken, from that of the settings downwards, and measure its speed."""
    most = size = min(settings.batch_size, settings.n_candidates)
    while True:
        texts = [f"{number} {text_of(UNIT_TOKENS)}" for number in range(size)]
        try:
            scores, seconds, _ = probe.rerank(_QUESTION, texts)
            problem = "" if len(scores) == size else f"of {size} texts, {len(scores)} get a score"
        except PipelineError as error:
            problem = str(error)
        if not problem:
            break
        if size == 1:
            raise PipelineError(problem)
        size //= 2
    speed = Speed(size * UNIT_TOKENS / seconds if seconds > 0 else float("inf"))
    text = f"{size} texts in one request, {say_rate(speed.read_per_s)} tokens a second"
    if size < most:
        return Finding("batch", "note", f"at most {text}", {"batch_size": size}), speed
    return Finding("batch", "ok", text), speed


def _check_longest(probe: EndpointProbe) -> Finding:
    longest = MAX_DOCUMENT_TOKENS
    problem = ""
    while longest >= MIN_DOCUMENT_TOKENS:
        try:
            probe.rerank(_QUESTION, [text_of(longest)])
            break
        except PipelineError as error:
            longest, problem = longest // 2, str(error)
    if not problem:
        return Finding("longest text", "ok", f"{longest:,} tokens are taken")
    if longest < MIN_DOCUMENT_TOKENS:
        return Finding("longest text", "note", f"not found: {problem}")
    return Finding(
        "longest text", "note", f"{longest:,} tokens; longer ones are cut in half after a refusal ({problem})"
    )


def _judge_speed(settings: RerankModelSettings, speed: Speed) -> Finding:
    seconds = speed.seconds(settings.n_candidates * UNIT_TOKENS)
    text = f"the {settings.n_candidates} candidates of a question take about {seconds:,.1f} s"
    if seconds < SLOW_S:
        return Finding("speed", "ok", text)
    fewer = max(1, int(settings.n_candidates * SLOW_S / seconds))
    return Finding("speed", "note", f"{text}; fewer are faster", {"n_candidates": fewer})
