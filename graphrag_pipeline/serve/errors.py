"""Errors of the server and answers in the form of their path.

Every error has a status, a code that programs can compare, and what to do. Paths of OpenAI's API have its form.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import to_json
from starlette.responses import Response

from graphrag_pipeline.access.principals import NotAuthenticatedError
from graphrag_pipeline.access.view_guard import ViewNotReadyError
from graphrag_pipeline.errors import NoSnapshotError, PipelineError
from graphrag_pipeline.models.spending import BudgetExceededError
from graphrag_pipeline.reading.lookup import RecordNameError
from graphrag_pipeline.settings.settings import Settings

_log = logging.getLogger(__name__)

_FOR_OPERATOR = re.compile(r"`graphrag-pipeline [a-z]|\b(?:in|of) (?:settings|access)\.yaml|\benvironment variable\b")
_CLAUSE = re.compile(r"(?:`[^`]*`|.)+?(?:(?<=[;:.]) +|\Z)", re.DOTALL)
"""A clause of a message, which ends outside of code; advice is a clause."""
_MAX_SHOWN = 300
"""Characters of a value that a message repeats."""


class ErrorFacts(BaseModel):
    """An error: HTTP status, a code for programs, the problem in words, and the remedy."""

    model_config = ConfigDict(extra="forbid")

    status: int
    code: str
    message: str
    what_to_do: str


class ErrorAnswer(BaseModel):
    """Any answer that is not a success."""

    model_config = ConfigDict(extra="forbid")

    error: ErrorFacts


class ApiError(PipelineError):
    """An error with its HTTP status, a code for programs, the remedy, and perhaps the seconds of `Retry-After`."""

    def __init__(
        self, status: int, code: str, message: str, what_to_do: str, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.what_to_do = what_to_do
        self.retry_after_s = retry_after_s

    @property
    def headers(self) -> dict[str, str]:
        """Headers that belong to the error."""
        found = {} if self.retry_after_s is None else {"retry-after": str(max(1, math.ceil(self.retry_after_s)))}
        return found | ({"www-authenticate": "Bearer"} if self.status == 401 else {})

    def to_answer(self) -> ErrorAnswer:
        """Return the body of the answer."""
        return ErrorAnswer(
            error=ErrorFacts(status=self.status, code=self.code, message=str(self), what_to_do=self.what_to_do)
        )


@contextmanager
def asking_models(settings: Settings) -> Iterator[None]:
    """Answer an error of a search whose request holds with a fixed text, where models are asked; the log has its cause.

    The cause names hosts, the words of the endpoint, or what is spent of the budget.

    Raises:
        ApiError: a model gave no answer.
    """
    try:
        yield
    except ApiError:
        raise
    except PipelineError as error:
        if "model" not in (settings.answers.engine, settings.embeddings.engine, settings.rating.engine):
            raise
        _log.error("a search failed: %s", error)
        what = "The budget for models is spent" if isinstance(error, BudgetExceededError) else "A model gave no answer"
        what_to_do = "Try again later; the operator sees the cause in the log."
        raise ApiError(502, "model_failed", f"{what}.", what_to_do) from None


class InvalidRequestError(ApiError):
    """A request that cannot be read or does not validate."""

    def __init__(self, message: str, what_to_do: str = "Change the request; /openapi.json describes it.") -> None:
        super().__init__(400, "invalid_request", message, what_to_do)


class NotFoundError(ApiError):
    """A root, snapshot or record that does not exist for this client."""

    def __init__(self, message: str, what_to_do: str) -> None:
        super().__init__(404, "not_found", message, what_to_do)


class NotReadyError(ApiError):
    """A root without an index that can be read now."""

    def __init__(self, message: str, retry_after_s: float = 5.0) -> None:
        super().__init__(503, "not_ready", message, "Try again after the seconds of Retry-After.", retry_after_s)


class BusyError(ApiError):
    """More requests than the server takes at once."""

    def __init__(self, message: str, retry_after_s: float = 1.0) -> None:
        super().__init__(429, "busy", message, "Try again after the seconds of Retry-After.", retry_after_s)


def error_of(error: Exception) -> ApiError:
    """Return the error that a client sees; a defect of the server shows nothing of its cause."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, ValidationError):
        return InvalidRequestError(describe_invalid(error.errors(include_url=False)))
    if isinstance(error, RequestValidationError):  # its places begin with the part of the request
        return InvalidRequestError(describe_invalid({**one, "loc": one["loc"][1:]} for one in error.errors()))
    if isinstance(error, NotAuthenticatedError):
        return ApiError(401, "not_authenticated", f"Not authenticated: {error}.", "Send `Authorization: Bearer KEY`.")
    if isinstance(error, ViewNotReadyError):
        return NotReadyError(str(error), error.retry_after_s)
    if isinstance(error, RecordNameError):
        return NotFoundError(for_reader(error), "Name a record by its number or id, as lists show it.")
    if isinstance(error, NoSnapshotError):
        return NotReadyError("The index cannot be read now.")
    if isinstance(error, PipelineError):
        return InvalidRequestError(for_reader(error))
    if isinstance(error, OverflowError):
        return InvalidRequestError("A number of the request is too large.")
    return ApiError(500, "internal", "The server failed.", "Report it to the operator, who has the log.")


def for_reader(error: Exception) -> str:
    """Return an error without its advice to the operator: commands, settings, and variables of the environment."""
    kept = [part.rstrip() for part in _CLAUSE.findall(str(error)) if not _FOR_OPERATOR.search(part)]
    return " ".join(kept).rstrip(" ;:,.") or "the server cannot answer this now"


def describe_invalid(problems: Iterable[Mapping[str, Any]]) -> str:
    """Return the problems of values that do not validate, each with its place."""
    return "; ".join(map(_describe, problems))[:2000]


def _describe(problem: Mapping[str, Any]) -> str:
    where = ".".join(map(str, problem["loc"])) or "the request"
    return f"`{where[:_MAX_SHOWN]}`: {problem['msg'][:_MAX_SHOWN]}"


API_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}


def write_json(value: Any) -> bytes:
    """Return a value as JSON; numbers that JSON lacks become null."""
    return to_json(value, inf_nan_mode="null")


def answer_json(content: bytes, media_type: str = "application/json") -> Response:
    """Return an answer with the headers of the API; `content` is written already, since that takes time."""
    return Response(content, media_type=media_type, headers=API_HEADERS)


def answer_error(error: Exception, path: str = "") -> Response:
    """Return the answer to a request that failed, in the form of its path."""
    found = known_error(error)
    headers = {**API_HEADERS, **found.headers}
    return Response(write_error(found, path), found.status, headers=headers, media_type="application/json")


def known_error(error: Exception) -> ApiError:
    """Return the error that a client sees; the log has a defect of the server."""
    found = error_of(error)
    if found.status == 500:
        _log.error("a request failed", exc_info=error)
    return found


def write_error(error: ApiError, path: str) -> bytes:
    """Return an error as JSON, in OpenAI's form on its paths."""
    if not is_openai(path):
        return write_json(error.to_answer())
    kind = "invalid_request_error" if error.status < 500 else "server_error"
    message = f"{error} {error.what_to_do}"
    return write_json({"error": {"message": message, "type": kind, "param": None, "code": error.code}})


def is_openai(path: str) -> bool:
    """Return whether a path is one of the OpenAI-compatible routes."""
    return path.startswith("/v1/")
