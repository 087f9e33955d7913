"""The estimate of one stage: model calls, tokens and cost. That of extraction is counted for some text units.

The steps run with a model that answers from stored replies only, and the missing replies are counted. No request is
sent and no file is written. Keep out: the stages of a run together (`estimates.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import pyarrow as pa

from graphrag_pipeline.indexing.ports import CallingExtractor
from graphrag_pipeline.models.endpoints.replies import MAX_ASKED
from graphrag_pipeline.models.pool import StoredReplies
from graphrag_pipeline.models.prices import find_price
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.text.tokens import count_tokens_each

REPLY_TOKENS = {"extracted_graph": 500, "graph": 40, "summarized_descriptions": 120, "community_reports": 800}
_MIN_REPLIES = 20  # minimum number of stored replies for using their mean


@dataclass(frozen=True)
class StageEstimate:
    """Estimated model calls of one stage.

    Attributes:
        n_calls, n_cached: calls to send, and calls answered from stored replies.
        cost: US dollars; None if the price of the model is not known.
        is_scaled: whether the number of calls is scaled rather than counted.
        least_calls, most_calls: range of a number of calls that is scaled, or that grows if the replies to retried
            records can be used; None if the calls are counted.
        n_retried: records whose replies could not be used before; each is asked once more.
        most_cost: cost of `most_calls`, if it is not in proportion to `cost`.
    """

    stage: str
    n_calls: int = 0
    n_cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    is_scaled: bool = False
    least_calls: int | None = None
    most_calls: int | None = None
    n_retried: int = 0
    most_cost: float | None = None

    @property
    def call_range(self) -> tuple[int, int]:
        """Least and most calls; equal if they are counted."""
        least, most = self.least_calls, self.most_calls
        return self.n_calls if least is None else least, self.n_calls if most is None else most


def with_price(settings: Settings, estimate: StageEstimate, section: str | None) -> StageEstimate:
    """Return an estimate with its cost by the model of a section; by the embedding model for None."""
    model = settings.chat_model_for(section) if section else settings.embedding_model
    price = find_price(model.model, model.base_url, model.prompt_price, model.completion_price)
    cost = price.cost(estimate.prompt_tokens, estimate.completion_tokens) if price else None
    return replace(estimate, cost=cost)


def estimate_extraction(root: Root, units: pa.Table) -> StageEstimate:
    """Return the calls, tokens and cost of extracting some text units with the prompts and settings of a root.

    Args:
        units: needs `id`, `text` and `n_tokens`.
    """
    return with_price(root.settings, count_extraction(root, units), "extraction")


def count_extraction(root: Root, units: pa.Table) -> StageEstimate:
    """Return the estimate of `estimate_extraction` without its cost."""
    extractor, chat = cast(CallingExtractor, root.extractor()), root.models.chat_model("extraction")
    model = StoredReplies(chat)
    model.run_works(extractor.works(units, model))
    tokens_of = dict(zip(units["id"].to_pylist(), units["n_tokens"].to_pylist(), strict=True))
    reply_tokens = guess_reply_tokens(root, "extracted_graph")
    n_calls = n_following = n_retried = prompt_tokens = 0
    frame = sum(count_tokens_each([message["content"] for message in extractor.frame()]))
    n_turns = root.settings.extraction.max_gleanings + 1
    for request, n_asked in zip(model.missing, chat.count_asked(model.missing), strict=True):
        if n_asked >= MAX_ASKED:
            continue
        n_replies = sum(message["role"] == "assistant" for message in request.messages)
        n_left = n_turns - n_replies
        n_claims = n_turns * (root.settings.extraction.has_claims and len(request.messages) <= 2)
        opening = frame + tokens_of[request.record]
        if n_asked:
            n_calls, n_retried, n_following = n_calls + 1, n_retried + 1, n_following + n_left - 1 + n_claims
            prompt_tokens += opening + n_replies * reply_tokens
            continue
        n_calls += n_left + n_claims
        prompt_tokens += sum(opening + (n_replies + turn) * reply_tokens for turn in range(n_left))
        prompt_tokens += n_claims * (frame + root.settings.text_units.size // 2)
    known = StageEstimate("extracted_graph", n_calls, model.n_cached, prompt_tokens, n_calls * reply_tokens)
    return _with_following(replace(known, n_retried=n_retried), n_following)


def _with_following(estimate: StageEstimate, n_following: int) -> StageEstimate:
    """Return an estimate with the calls that follow if the replies to retried records can be used."""
    if not n_following:
        return estimate
    return replace(estimate, least_calls=estimate.n_calls, most_calls=estimate.n_calls + n_following)


def guess_reply_tokens(root: Root, stage: str) -> int:
    """Return the tokens of one reply: the mean of the stored ones, else `REPLY_TOKENS`."""
    section = STAGES[stage].engine
    model = root.settings.chat_model_for(section).model
    n_replies, mean = root.models.cache.mean_completion(section, model)
    return round(mean) if n_replies >= _MIN_REPLIES else REPLY_TOKENS[stage]
