"""Findings of a check of a model, its speed, and the options to set."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

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
