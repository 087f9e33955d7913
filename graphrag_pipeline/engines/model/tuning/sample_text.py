"""The text of a sample in a prompt: numbered passages, each cut at a sentence end, in as many tokens as there is room.

Keep out: the choice of text units (`sampling.py`), and what is asked about them (`requests.py`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from graphrag_pipeline.engines.model.tuning.sampling import SampledUnit
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.endpoints.windows import count_prompt
from graphrag_pipeline.models.ports import ChatRequest
from graphrag_pipeline.text.sentences import split_sentences
from graphrag_pipeline.text.tokens import count_tokens, token_boundaries

LEAST_SAMPLE = 80
"""Tokens of a sample below which nothing can be said of a corpus."""
LEAST_PASSAGE = 40
"""Tokens of a passage; rather than shorter passages, fewer are shown."""

T = TypeVar("T")


@dataclass(frozen=True)
class SampleRequest(Generic[T]):
    """A request about a sample, which can be made with less of it.

    Attributes:
        ask: text of the sample -> request.
        max_tokens: of the sample.
    """

    ask: Callable[[str], ChatRequest[T]]
    units: Sequence[SampledUnit]
    max_tokens: int
    encoding: str

    @property
    def request(self) -> ChatRequest[T]:
        """The request with the whole sample."""
        return self.ask(show_sample(self.units, self.max_tokens, self.encoding))

    def shorten(self, n_tokens: int) -> ChatRequest[T] | None:
        """Return the request with at least so many tokens less; None if too little of the sample would be left."""
        wanted = count_prompt(self.request.messages) - n_tokens
        return self._within(wanted)

    def _within(self, n_prompt: int) -> ChatRequest[T] | None:
        """Return the request with a prompt of at most so many tokens; None if too little of the sample is left."""
        left = min(self.max_tokens, n_prompt - count_prompt(self.ask("").messages))
        while left >= LEAST_SAMPLE:
            request = self.ask(show_sample(self.units, left, self.encoding))
            excess = count_prompt(request.messages) - n_prompt
            if excess <= 0:
                return request
            left -= excess
        return None

    def fit(self, room: int | None) -> ChatRequest[T]:
        """Return the request with as much of the sample as the room for a prompt allows.

        Args:
            room: most tokens of a prompt; None if it is not known.

        Raises:
            PipelineError: there is no room for a sample.
        """
        if room is None or count_prompt(self.request.messages) <= room:
            return self.request
        request = self._within(room)
        if request is None:
            frame = count_prompt(self.ask("").messages)
            raise PipelineError(
                f"the window of the model of `tune` has room for a prompt of {room:,} tokens: {frame:,} for the "
                f"instructions leave less than {LEAST_SAMPLE} for the sample of the corpus. Set another model in "
                "`tuning.model`, with its context_window"
            )
        return request


def show_sample(units: Sequence[SampledUnit], max_tokens: int, encoding: str) -> str:
    """Return the text units as numbered passages, each cut at a sentence end to an equal share of the tokens.

    If the shares would be smaller than `LEAST_PASSAGE`, the first text units are shown only.
    """
    shown = units[: max(1, max_tokens // LEAST_PASSAGE)]
    share = max(1, max_tokens // max(1, len(shown)))
    cut = [_cut(" ".join(unit.text.split()), share, encoding) for unit in shown]
    return "\n\n".join(f"Passage {number}: {text}" for number, text in enumerate(cut, 1))


def _cut(text: str, max_tokens: int, encoding: str) -> str:
    """Return the first whole sentences of a text, or the start of a first sentence that is too long."""
    if count_tokens(text, encoding) <= max_tokens:
        return text
    kept, n_tokens = 0, 0
    for start, end in split_sentences(text):
        n_tokens += count_tokens(text[start:end], encoding)
        if n_tokens > max_tokens:
            break
        kept = end
    if not kept:
        n_before, offsets = token_boundaries(text, encoding)
        kept = offsets[bisect_right(n_before, max_tokens) - 1]
    return text[:kept].strip()
