"""Models that routes share: query strings, bodies, and the beginning of an answer.

Keep out: models of one route, which are beside it.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from graphrag_pipeline.serve.limits import MAX_TEXT_CHARS, Filters

MAX_LISTED = 1_000
"""Most records of one answer."""
MAX_OFFSET = 2**53
_NUMBER = re.compile(r"-?[0-9]{1,4000}", re.ASCII)


def _read_digits(text: Any) -> Any:
    """Refuse what Python reads as a number and no other program does, such as `1_0`.

    Raises:
        ValueError: the text of a query string is not a number in ASCII digits.
    """
    if isinstance(text, str) and not _NUMBER.fullmatch(text):
        raise ValueError(f"{text[:80]!r} is not a whole number in the digits 0 to 9")
    return text


Whole = Annotated[int, BeforeValidator(_read_digits)]
"""A whole number of a query string."""
Small = Annotated[Whole, Field(ge=0, le=MAX_OFFSET)]
SearchText = Annotated[str, StringConstraints(max_length=MAX_TEXT_CHARS)]


class ServerQuery(BaseModel):
    """A request about the server, without parameters."""

    model_config = ConfigDict(extra="forbid")


class NamedRootQuery(ServerQuery):
    """A request about one root."""

    root: str = Field("", max_length=200, description="Name of the root; needed only if several are served.")


class RootQuery(NamedRootQuery):
    """A request about a snapshot of one root."""

    snapshot: str = Field(
        "", max_length=64, description="Id of an earlier snapshot, or its beginning; default: the published one."
    )


class FilteredQuery(RootQuery):
    """A request for records."""

    filter: Filters = Field(
        default_factory=list,
        description="Read only records of documents that pass all filters, such as `year>=2024`; repeatable.",
    )


class PagedQuery(FilteredQuery):
    """A request for a part of a list."""

    limit: Whole = Field(50, ge=1, le=MAX_LISTED, description="Most records.")
    offset: Whole = Field(0, ge=0, le=MAX_OFFSET, description="Records to skip.")


class StrictBody(BaseModel):
    """A JSON object of a request; a number in quotes is no number, and unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Answered(BaseModel):
    """An answer from one snapshot."""

    root: str = Field(description="Name of the root.")
    snapshot: str = Field(description="Id of the snapshot that the answer comes from.")
