"""Regular expressions that are compiled when they are first used.

Compiling a long pattern takes milliseconds, and the package has hundreds of them. A question or a document needs some.
So a command starts sooner if its modules only write their patterns down. Keep out: the patterns themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import regex


class LatePattern:
    """Stands for a compiled pattern and has all its methods and attributes.

    Args:
        compile_now: `re.compile` or `regex.compile`.
        written: what it is called with.
    """

    def __init__(self, compile_now: Callable[..., Any], *written: Any, **named: Any) -> None:
        self._compile_now = partial(compile_now, *written, **named)

    @cached_property
    def _compiled(self) -> Any:
        return self._compile_now()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._compiled, name)
        setattr(self, name, value)  # the next call finds it without this function
        return value


if TYPE_CHECKING:
    late_re = re.compile
    late_regex = regex.compile
else:
    late_re = partial(LatePattern, re.compile)
    """`re.compile`, but later."""
    late_regex = partial(LatePattern, regex.compile)
    """`regex.compile`, but later."""
