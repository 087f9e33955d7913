"""Text of documents and models made safe for what shows it: terminals, and the markdown of Dagster's UI.

Apply these functions at the edge, where text leaves the product (`commands/terminal.py`,
`defs/assets/pages/metadata.py`), and to nothing that is stored or sent to a model. Keep out: files of exports
(`interchange/`).
"""

from __future__ import annotations

import re

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Control characters but tab and line feed, other ends of lines, and those that turn the direction of text around."""
_MARKDOWN = re.compile(r"\\|<|\](?=[(:])")
"""The end of the text of a link or image, or of the name of a definition; without either, brackets are only text."""
_BARE_LINK = re.compile(r"(?i)(https?|ftp|mailto|xmpp)(?=:)|www(?=\.)|(?<=[\w.+-])(?=@[\w-])")
"""Where an address may begin: also after a digit or an underscore, as in Dagster's markdown."""
_JOINER = "\u2060"
"""A character without width, at which no address continues."""


def escape_controls(text: str) -> str:
    r"""Return text in which control characters are visible (`\x1b`), so that a terminal obeys none of them."""
    return _CONTROLS.sub(lambda found: _escape(found[0]), text)


def escape_line(text: str) -> str:
    r"""Return text as of `escape_controls` in one line: a line feed in it (`\x0a`) begins no line of its own."""
    return escape_controls(text).replace("\n", _escape("\n"))


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def escape_json_controls(text: str) -> str:
    """Return JSON text that holds no control character but line feeds; its value does not change."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def neutralize_markdown(text: str) -> str:
    """Return markdown without images, links and HTML: they show as text, and nothing is fetched.

    Emphasis, lists, tables and headings stay.
    """
    escaped = _MARKDOWN.sub(lambda found: "&lt;" if found[0] == "<" else f"\\{found[0]}", text)
    return _BARE_LINK.sub(lambda found: found[0] + _JOINER, escaped)


def as_code_block(text: str, language: str = "") -> str:
    """Return markdown that shows text literally, in a block of code that the text itself cannot end."""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    fence = max(fence, "```", key=len)
    return f"{fence}{language}\n{text}\n{fence}"
