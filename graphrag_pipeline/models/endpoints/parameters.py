"""Parameters of the requests to one model, adapted to what the model accepts.

A model that rejects a parameter names it in its error. The parameter is then left out of all further requests.

Keep out: the request body, and retries (`endpoint.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from graphrag_pipeline.models.endpoints.problems import Problem

_LOG = logging.getLogger(__name__)


class ModelParameters:
    """The parameters that each request to a model carries.

    Args:
        model_name: model and host, for the log.
        parameters: name -> value at the start.

    Attributes:
        current: name -> value of the parameters in use.
    """

    def __init__(self, model_name: str, parameters: Mapping[str, Any]) -> None:
        self.current = dict(parameters)
        self._model_name = model_name
        self._left_out: set[str] = set()

    def adapt(self, problem: Problem) -> bool:
        """Leave out the parameter that a problem names as unsupported, with one warning in the log.

        Returns:
            Whether the request may succeed now: a parameter was left out, by this call or after the request was sent.
        """
        name = problem.unsupported_parameter
        if name not in self.current:
            return name in self._left_out
        value = self.current.pop(name)
        self._left_out.add(name)
        if name == "max_tokens" and "max_completion_tokens" in problem.message:
            self.current["max_completion_tokens"] = value
        _LOG.warning(
            "%s does not accept the parameter %r; requests go without it from now on (%s)",
            self._model_name,
            name,
            problem.message,
        )
        return True
