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
CAPS = ("max_tokens", "max_completion_tokens")
"""Names of the parameter with the most tokens of a reply: the usual one, and that of OpenAI's newer models."""


class ModelParameters:
    """The parameters that each request to a model carries.

    Args:
        model_name: model and host, for the log.
        parameters: name -> value at the start.

    Attributes:
        current: name -> value of the parameters in use.
        cap_name: parameter with the most tokens of a reply.
    """

    def __init__(self, model_name: str, parameters: Mapping[str, Any]) -> None:
        self.current = dict(parameters)
        self.cap_name = CAPS[1] if CAPS[1] in parameters else CAPS[0]
        self._model_name = model_name
        self._left_out: set[str] = set()

    def with_cap(self, cap: int | None) -> dict[str, Any]:
        """Return the parameters of a request whose reply has at most `cap` tokens, if the model accepts a cap."""
        if cap is None or self.cap_name in self._left_out:
            return dict(self.current)
        return {**self.current, self.cap_name: cap}

    def adapt(self, problem: Problem) -> bool:
        """Leave out the parameter that a problem names as unsupported, with one warning in the log.

        Returns:
            Whether the request may succeed now: a parameter was left out, by this call or after the request was sent.
        """
        name = problem.unsupported_parameter
        if name not in self.current and name not in CAPS:
            return name in self._left_out
        if name in self._left_out:
            return True
        value = self.current.pop(name, None)
        self._left_out.add(name)
        if name == CAPS[0] and CAPS[1] in problem.message:
            self.cap_name = CAPS[1]
            self.current |= {} if value is None else {CAPS[1]: value}
        _LOG.warning(
            "%s does not accept the parameter %r; requests go without it from now on (%s)",
            self._model_name,
            name,
            problem.message,
        )
        return True
