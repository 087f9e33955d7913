"""Parts that the settings of several search methods share.

Keep out: options of one method (`search.py`, `local_search.py`).
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class SearchSection(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def token_budget() -> Any:
    """Define the limit on model tokens of one question (`query/token_budget.py`)."""
    description = "With a model: maximum tokens of prompts and replies for one question; null: no limit."
    return Field(None, ge=1, description=description)


def rerank() -> Any:
    """Define whether a reranking model orders text units (`query/selection/reranking.py`)."""
    return Field(False, description="Whether rerank_model orders the text units before they are packed.")


def now() -> Any:
    """Define the day on which "the last two weeks" in a question ends (`query/understanding/time_scope.py`)."""
    return Field(None, description='Day (ISO 8601) on which "the last week" ends; null: date of the newest document.')
