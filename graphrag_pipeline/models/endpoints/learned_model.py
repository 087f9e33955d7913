"""What is known about a chat model: from the settings at first, then from its answers; for the process.

| known | from |
|---|---|
| the form in which JSON is asked for | refusals (`reply_forms.py`) |
| the window | the settings, the list of models, refusals, replies that end at it (`windows.py`) |
| whether it thinks before it writes | reasoning tokens in the usage, or nothing but thoughts in a reply that was cut |
| the longest reply | the usage |

Keep out: sending.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from graphrag_pipeline.models.endpoints.reply_forms import ReplyForms
from graphrag_pipeline.models.endpoints.windows import ModelWindow
from graphrag_pipeline.settings.models import ChatModelSettings

EXPECTED_COMPLETION = 1000
"""Tokens that rate limits expect of a reply until a longer one arrives."""
THINKING_TOKENS = 16_000
"""Tokens that a model which thinks may take for it, besides those of its reply."""


@dataclass
class LearnedModel:
    """State of one model at one address.

    Attributes:
        thinks: whether it thinks before it writes, so that a cap must leave room for that.
    """

    forms: ReplyForms = field(default_factory=ReplyForms)
    window: ModelWindow = field(default_factory=lambda: ModelWindow(None))
    longest_completion: int = EXPECTED_COMPLETION
    thinks: bool = False

    @classmethod
    def of_settings(cls, settings: ChatModelSettings) -> LearnedModel:
        """Return what the settings say."""
        return cls(ReplyForms(settings.structured_output), ModelWindow(settings.context_window))

    def with_thoughts(self, cap: int | None) -> int | None:
        """Return the cap of a reply with its thoughts."""
        return cap + THINKING_TOKENS if cap is not None and self.thinks else cap

    def note_thoughts(self, n_reasoning: int, is_only_thoughts: bool) -> bool:
        """Note a reply that shows thoughts; return whether it is the first one.

        Args:
            n_reasoning: tokens of thoughts that the usage reports.
            is_only_thoughts: whether the cap cut the reply before any text.
        """
        if self.thinks or not (is_only_thoughts or n_reasoning > 0):
            return False
        self.thinks = True
        return True
