r"""Escapes that a model writes for plain characters, such as `&amp;` or `\u00e9`, turned back into characters.

A name in a reply must match the name in the text. An escape that the prompt holds is part of the text and stays. Keep
out: the escapes of JSON itself, which its parser reads.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from functools import partial

from graphrag_pipeline.models.endpoints.thoughts import begins_as_json
from graphrag_pipeline.text.late_patterns import late_re

_ESCAPE = late_re(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,30});|(?:(?<!\\)\\{1,2}u[0-9a-f]{4})+", re.IGNORECASE)
_UNFINISHED = late_re(
    r"(?:&(?:amp;){0,3}[#\w]{0,32}|(?:\\{1,2}u[0-9a-f]{4}){0,8}\\{1,2}(?:u[0-9a-f]{0,4})?)\Z", re.IGNORECASE
)
_LONGEST = 80
_ROUNDS = 3  # `&amp;#39;` takes two


def unescape(text: str, prompt: str) -> str:
    """Return a reply with characters for the escapes that its prompt does not hold; its JSON stays valid."""
    if "&" not in text and "\\" not in text:
        return text
    read = partial(_read, prompt=prompt, is_json=begins_as_json(text))
    for _ in range(_ROUNDS):
        before, text = text, _ESCAPE.sub(read, text)
        if text == before:
            break
    return text


def _read(match: re.Match[str], prompt: str, is_json: bool) -> str:
    written = match[0]
    if written.startswith("&"):
        character = html.unescape(written)
    else:
        if is_json and not written.startswith("\\\\"):
            return written
        written = written.replace("\\\\", "\\")
        character = json.loads(f'"{written}"').encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if written in prompt or character == match[0]:
        return match[0]
    return json.dumps(character, ensure_ascii=False)[1:-1] if is_json else character


class UnescapedPieces:
    """Passes on the pieces of a stream without escapes.

    Args:
        pass_on: receives text.
        prompt: what the reply is about.
    """

    def __init__(self, pass_on: Callable[[str], None], prompt: str) -> None:
        self._pass_on, self._prompt = pass_on, prompt
        self._held = ""

    def add(self, piece: str) -> None:
        text = self._held + piece
        unfinished = _UNFINISHED.search(text, max(0, len(text) - _LONGEST))
        end = unfinished.start() if unfinished else len(text)
        self._held = text[end:]
        if end:
            self._pass_on(unescape(text[:end], self._prompt))

    def finish(self) -> None:
        """Pass on what is held back."""
        held, self._held = self._held, ""
        if held:
            self._pass_on(unescape(held, self._prompt))
