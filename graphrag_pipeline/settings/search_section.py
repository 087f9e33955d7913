"""Parts that the settings of several search methods share.

A method has two classes. Its section holds what settings.yaml has; a subclass of it, `...SearchSettings`, adds the
options that belong to one question, such as its conversation. `for_questions` of the section sets these for all
questions. Keep out: options of one method (`search.py`, `local_search.py`).
"""

from __future__ import annotations

from datetime import date
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class SearchSection(BaseModel):
    """A section of a search method: frozen; an unknown option is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class MethodSection(SearchSection):
    """A section of a search method whose questions have further options."""

    for_questions: dict[str, Any] = Field(
        {}, description="Options of a question that hold for all questions, such as {now: 2025-01-31}."
    )


class QuestionOptions(BaseModel):
    """Options that a question has with each method."""

    now: date | None = Field(
        None, description='Day (ISO 8601) on which "the last week" ends; null: date of the newest document.'
    )


def token_budget() -> Any:
    """Define the limit on model tokens of one question (`query/token_budget.py`)."""
    description = "With a model: maximum tokens of prompts and replies for one question; null: no limit."
    return Field(None, ge=1, description=description)


def rerank() -> Any:
    """Define whether a reranking model orders text units (`query/selection/reranking.py`)."""
    return Field(False, description="Whether rerank_model orders the text units before they are packed.")
