"""Room for the extraction prompt, a text unit and the reply in the window of the chat model, with figures.

A prompt that does not fit is refused by the endpoint for every text unit of full length, so this is checked before
prompts are paid for or put in force. Keep out: making a prompt shorter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from graphrag_pipeline.indexing.ports import CallingExtractor
from graphrag_pipeline.models.endpoints.probe import find_model, list_models
from graphrag_pipeline.models.endpoints.problems import Problem
from graphrag_pipeline.models.endpoints.windows import MARGIN, READ, count_prompt, prompt_room
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.settings.presets import is_loopback
from graphrag_pipeline.settings.settings import REPLY_SHARE

SECTION = "extraction"
_LEAST_UNIT = 100  # tokens; no smaller text unit is proposed


@dataclass(frozen=True)
class ExtractionRoom:
    """What the window of the extraction model leaves for prompts, in tokens.

    Attributes:
        window: of prompt and reply together.
        n_reply: most of a reply.
        n_unit: most of a text unit (`text_units.size`).
    """

    model: str
    window: int
    n_reply: int
    n_unit: int

    @property
    def n_room(self) -> int:
        """Most tokens of a prompt with its text unit, as this package counts."""
        return prompt_room(self.window, self.n_reply)

    def fits(self, n_prompt: int) -> bool:
        """Whether a prompt of so many tokens without its text unit fits."""
        return n_prompt + self.n_unit <= self.n_room

    def explain(self, n_prompt: int) -> str:
        """Return a sentence with the figures."""
        return (
            f"the extraction prompt of {n_prompt:,} tokens and a text unit of up to {self.n_unit:,} take "
            f"{n_prompt + self.n_unit:,}, and the window of {self.model} ({self.window:,} tokens) has room for "
            f"{self.n_room:,} beside a reply of {self.n_reply:,} (a model may count {MARGIN - 1:.0%} more tokens)"
        )

    def advise(self, n_prompt: int) -> str:
        """Return what to do about a prompt that does not fit."""
        n_unit = self.n_room - n_prompt
        smaller = f"set text_units.size to {n_unit:,} or less, or " if n_unit >= _LEAST_UNIT else ""
        return f"{smaller}use a model with a larger window"


def find_extraction_room(root: Root) -> ExtractionRoom | None:
    """Return the room for extraction prompts; None if rules extract or the window is not known."""
    window = find_window(root, SECTION) if root.settings.extraction.uses_model else None
    if window is None:
        return None
    settings = root.settings
    n_reply = min(settings.reply_tokens_for(SECTION), window // REPLY_SHARE)
    return ExtractionRoom(settings.chat_model_for(SECTION).model, window, n_reply, settings.text_units.size)


def explain_excess(root: Root) -> str:
    """Return why the extraction prompt of a root does not fit, and what to do; "" if it fits or nothing is known."""
    room = find_extraction_room(root)
    if room is None:
        return ""
    n_prompt = count_extraction_prompt(root)
    return "" if room.fits(n_prompt) else f"{room.explain(n_prompt)}; {room.advise(n_prompt)}"


def note_unknown(root: Root) -> str:
    """Return a sentence if the window of the extraction model is not known; "" otherwise."""
    if not root.settings.extraction.uses_model or find_window(root, SECTION) is not None:
        return ""
    model = root.settings.chat_model_for(SECTION).model
    return (
        f"the window of {model} is not known, so nothing was checked: set chat_model.context_window, and a prompt that "
        "does not fit is refused here"
    )


def find_window(root: Root, section: str) -> int | None:
    """Return the window of a section's chat model; None if it is not known.

    It is set, learnt from a refusal, or listed by the endpoint: one on this machine is asked if the window is not set.
    """
    settings = root.settings.chat_model_for(section)
    if settings.context_window != READ:
        known = root.models.chat_model(section).window
        if known is not None or not is_loopback(settings.base_url):
            return known
    listed = list_models(settings)
    if isinstance(listed, Problem):
        return None
    model = find_model(settings.model, listed)
    return model.window if model else None


def count_extraction_prompt(root: Root) -> int:
    """Return the tokens of the extraction prompt without a text unit."""
    return count_prompt(cast(CallingExtractor, root.extractor()).frame())
