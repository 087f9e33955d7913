"""Checks of an embedding model: vectors, batches, the longest text, prefixes and speed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.inspection.doctor.endpoint_check import accept_other_name, check_endpoint, explain_failure
from graphrag_pipeline.inspection.doctor.findings import Examination, Finding, Speed, say_rate
from graphrag_pipeline.models.endpoints.probe import EndpointProbe
from graphrag_pipeline.models.pieces import piece_limit
from graphrag_pipeline.settings.models import EmbeddingModelSettings
from graphrag_pipeline.settings.presets import is_loopback
from graphrag_pipeline.text.tokens import count_tokens

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
            batch, speed = _check_batch(settings, probe)
            findings += [batch, _check_longest(settings, probe), *_check_prefixes(settings)]
        except PipelineError as error:
            findings.append(Finding("vectors", "failed", explain_failure(settings, error, findings)))
    if is_loopback(settings.base_url) and settings.prompt_price is None:
        findings.append(Finding("price", "note", "a local model costs nothing", {"prompt_price": 0}))
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


def _check_batch(settings: EmbeddingModelSettings, probe: EndpointProbe) -> tuple[Finding, Speed]:
    """Find the largest batch that is taken, from that of the settings downwards, and measure its speed."""
    size = settings.batch_size
    while True:
        texts = [f"{number} {text_of(30)}" for number in range(size)]
        try:
            _, seconds, usage = probe.embed(texts)
        except PipelineError:
            if size == 1:
                raise
            size //= 2
            continue
        speed = Speed(usage.prompt_tokens / seconds if seconds > 0 else float("inf"))
        text = f"{size} texts in one request, {say_rate(speed.read_per_s)} tokens a second"
        if size < settings.batch_size:
            return Finding("batch", "note", f"at most {text}", {"batch_size": size}), speed
        return Finding("batch", "ok", text), speed


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
        is_cut = _is_cut(n_tokens, probe)
    except PipelineError as error:
        return f"longer texts are refused ({error})"
    return "the model reads only the start of longer texts, and says nothing" if is_cut else ""


def _is_cut(n_tokens: int, probe: EndpointProbe) -> bool:
    """Whether two texts of a length that differ at their ends have one vector."""
    body = text_of(n_tokens - max(map(count_tokens, _ENDS)) - 1)
    first, second = (np.asarray(vector) for vector in probe.embed([f"{body} {end}" for end in _ENDS])[0])
    return bool(np.linalg.norm(first - second) < SAME)


def _check_prefixes(settings: EmbeddingModelSettings) -> Iterator[Finding]:
    for name, query, passage in PREFIXES:
        if name.search(settings.model) and not (settings.query_prefix or settings.passage_prefix):
            text = f"models such as {settings.model} want {query!r} in front of a question and {passage!r} of a text"
            yield Finding("prefixes", "note", text, {"query_prefix": query, "passage_prefix": passage})


def text_of(n_tokens: int) -> str:
    """Return a text of about that many tokens: each word is one."""
    return " ".join(_WORDS[(number * 7 + number // 10) % 10] for number in range(n_tokens))
