"""Entity resolution by meaning: merges of entities that no rule on their names finds.

These are the last two rules of `resolution.py`. `embedding` merges two entities of one type if the cosine of their
names and descriptions is at least `min_similarity`. `verdict` requests a decision of a chat model on pairs that are
less similar. Neither rule merges entities with different types or numbers, or with a relationship between them. Both
are off by default, because a wrong merge is worse than a missed one. A merge is a row of `entity_merges`. A setting or
a `keep_apart` of the user undoes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from pydantic import BaseModel

from graphrag_pipeline.identity import entity_text
from graphrag_pipeline.indexing.graph.resolution import Merge, numbers_of, types_agree
from graphrag_pipeline.models.pool import Progress, Work, run_all
from graphrag_pipeline.models.ports import ChatModel, ChatReply, ChatRequest, Embedder, Failure
from graphrag_pipeline.models.prompts import Prompt, open_conversation
from graphrag_pipeline.models.reply_json import json_schema_format, parse_reply
from graphrag_pipeline.settings.settings import ResolutionSettings

_MAX_DESCRIPTION = 1_500  # characters of an entity's descriptions that are compared and shown to the model
_BLOCK = 1_024  # entities whose similarities to all others are in memory at once
_SCORE_DIGITS = 4
MAX_REASON, SHOWN_REASON = 600, 200
"""Characters of a verdict's reason: the most that a reply has room for beside its other parts, and those shown."""


# The docstring is the description of the schema that is sent; request keys cover it.


class Verdict(BaseModel):
    """What the model is asked for about a pair."""

    same: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Two similar entities.

    Attributes:
        row, into: rows of the table of entities; `into` has more mentions.
        similarity: cosine of names and descriptions.
    """

    row: int
    into: int
    similarity: float


def propose_similar(
    entities: pa.Table, relationships: pa.Table, embedder: Embedder, settings: ResolutionSettings
) -> list[Pair]:
    """Return pairs of similar entities, most similar first.

    Args:
        entities: needs `title`, `type`, `descriptions` and `n_mentions`.
        relationships: needs `source` and `target`; the two ends of a relationship are never a pair.
        settings: `least_similarity` is the lowest cosine of titles with descriptions; None gives no pairs.
    """
    if settings.least_similarity is None:
        return []
    titles, types = entities["title"].to_pylist(), entities["type"].to_pylist()
    n_mentions = entities["n_mentions"].to_pylist()
    texts = [entity_text(title, text) for title, text in zip(titles, _describe_each(entities), strict=True)]
    vectors = embedder.embed(texts)
    related = set(zip(relationships["source"].to_pylist(), relationships["target"].to_pylist(), strict=True))
    pairs = []
    for a, b, similarity in _near(vectors, settings.least_similarity):
        if not types_agree(types[a], types[b]) or numbers_of(titles[a]) != numbers_of(titles[b]):
            continue
        if (titles[a], titles[b]) in related or (titles[b], titles[a]) in related:
            continue
        row, into = sorted((a, b), key=lambda i: (n_mentions[i], titles[i]))
        pairs.append(Pair(row, into, similarity))
    return sorted(pairs, key=lambda pair: (-pair.similarity, titles[pair.row], titles[pair.into]))


def _near(vectors: np.ndarray, min_similarity: float) -> Iterator[tuple[int, int, float]]:
    """Yield (a, b, cosine) for rows a < b with a cosine of at least `min_similarity`.

    Args:
        vectors: (n, dimensions) unit vectors.
    """
    # A block of rows times all later rows gives (_BLOCK, n - start) cosines. Above the diagonal each pair occurs once.
    for start in range(0, len(vectors), _BLOCK):
        cosines = vectors[start : start + _BLOCK] @ vectors[start:].T
        rows, columns = np.nonzero(np.triu(cosines, 1) >= min_similarity)
        for a, b in zip(rows.tolist(), columns.tolist(), strict=True):
            yield start + a, start + b, round(float(cosines[a, b]), _SCORE_DIGITS)


def _describe_each(entities: pa.Table) -> list[str]:
    return [" ".join(sorted(texts or []))[:_MAX_DESCRIPTION] for texts in entities["descriptions"].to_pylist()]


def merge_similar(entities: pa.Table, pairs: Sequence[Pair], settings: ResolutionSettings) -> list[Merge]:
    """Return the merges of the `embedding` rule: pairs with a similarity of at least `min_similarity`."""
    titles = entities["title"].to_pylist()
    return [
        Merge(
            titles[pair.row],
            titles[pair.into],
            "embedding",
            f"cosine {pair.similarity:.2f} of names and descriptions",
            min(pair.similarity, 1.0),
        )
        for pair in pairs
        if settings.merged_similarity is not None and pair.similarity >= settings.merged_similarity
    ]


def choose_verdict_pairs(pairs: Sequence[Pair], settings: ResolutionSettings) -> list[Pair]:
    """Return the pairs of the `verdict` rule, most similar first."""
    if not settings.uses_model:
        return []
    least = settings.merged_similarity if settings.merged_similarity is not None else 2.0
    chosen = [pair for pair in pairs if settings.min_asked_similarity <= pair.similarity < least]
    return chosen[: settings.max_asked]


def show_entities(entities: pa.Table) -> dict[str, list[str]]:
    """Return the columns of entities that prompts show."""
    return {
        "title": entities["title"].to_pylist(),
        "type": entities["type"].to_pylist(),
        "text": _describe_each(entities),
    }


def verdict_request(entities: Mapping[str, list[str]], pair: Pair, prompt: Prompt) -> ChatRequest[Verdict]:
    """Build the request whether two entities of `show_entities` are the same; it does not depend on their order."""
    shown = sorted((entities["title"][i], entities["type"][i], entities["text"][i]) for i in (pair.row, pair.into))
    values = {
        f"{name}_{which}": value
        for which, parts in zip("ab", shown, strict=True)
        for name, value in zip(("name", "type", "description"), parts, strict=True)
    }
    return ChatRequest(
        " / ".join(title for title, _, _ in shown),
        open_conversation(prompt, "auto", **values),
        partial(parse_reply, model=Verdict),
        json_schema_format(Verdict, "verdict"),
        limits={"reason": {"maxLength": MAX_REASON}},
    )


def request_verdicts(
    entities: pa.Table, pairs: Sequence[Pair], prompt: Prompt, model: ChatModel, progress: Progress | None = None
) -> tuple[list[Merge], list[Failure]]:
    """Return the merges of the `verdict` rule, and the failures; a failed pair is not merged."""
    shown = show_entities(entities)
    requests = [verdict_request(shown, pair, prompt) for pair in pairs]
    works = [Work(request.record, partial(model.complete, request)) for request in requests]
    results = run_all(model.stage, works, model.max_concurrency, progress)
    merges, failures = [], []
    for pair, result in zip(pairs, results, strict=True):
        if isinstance(result, Failure):
            failures.append(result)
        elif result.value.same:
            merges.append(merge_by_verdict(shown["title"], pair, result))
    return merges, failures


def merge_by_verdict(titles: Sequence[str], pair: Pair, reply: ChatReply[Verdict]) -> Merge:
    """Return the merge of a pair that the model calls the same entity."""
    reason = " ".join(reply.value.reason.split())[:SHOWN_REASON]
    return Merge(titles[pair.row], titles[pair.into], "verdict", f"the model: {reason}", min(pair.similarity, 1.0))


def propose_by_meaning(
    entities: pa.Table,
    relationships: pa.Table,
    embedder: Embedder,
    settings: ResolutionSettings,
    prompt: Prompt,
    model: ChatModel | None,
    progress: Progress | None = None,
) -> tuple[list[Merge], list[Failure]]:
    """Return merges that vectors suggest and, if a model is given, its verdicts on pairs that are less similar."""
    pairs = propose_similar(entities, relationships, embedder, settings)
    merges = merge_similar(entities, pairs, settings)
    failures: list[Failure] = []
    if model:
        judged, failures = request_verdicts(entities, choose_verdict_pairs(pairs, settings), prompt, model, progress)
        merges += judged
    return merges, failures
