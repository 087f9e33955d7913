"""The title of a Markdown text.

It is the first of these that the text has:

- `title:` of a block of metadata at its beginning ("front matter"),
- its first heading of level 1: `# Title`, `Title` above a line of `=`, or `<h1>`,
- a heading of another level, if the text begins with it.

A later `## Installing` names a part of the text. What a fence encloses is code, also `# a comment`. Keep out: names of
files, which stand for a text without a title (`documents.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

_MAX_CHARACTERS = 500
"""Of a heading in the text; what goes on longer is a paragraph."""

_FENCED = re.compile(r"^ {0,3}(`{3,}(?=[^`\n]*$)|~{3,}).*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--(?:(?!<!--).)*?-->|^ {0,3}<!--.*\Z", re.MULTILINE | re.DOTALL)
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?P<fields>.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE | re.DOTALL)
_FRONT_TITLE = re.compile(
    r"^title:[ \t]*(?:'(?P<single>(?:[^'\n]|'')*)'|\"(?P<double>(?:[^\"\\\n]|\\.)*)\""
    r"|(?P<plain>(?!null\b|~)[^\s>|'\"#](?:[^#\n]|(?<=\S)#)*))",
    re.MULTILINE | re.IGNORECASE,
)
_HEADING = re.compile(rf"^ {{0,3}}(?P<level>#{{1,6}})[ \t]+(?P<title>\S.{{0,{_MAX_CHARACTERS}}})$", re.MULTILINE)
_UNDERLINED = re.compile(
    rf"^ {{0,3}}(?![=\s<>#])(?P<title>.{{1,{_MAX_CHARACTERS}}})\n {{0,3}}={{2,}}[ \t]*$", re.MULTILINE
)
_HTML = re.compile(
    rf"^ {{0,6}}(?:<[a-z][^<>\n]*>[ \t]*){{0,3}}<h1\b[^<>]*>"
    rf"(?P<title>(?:(?!<h1\b).){{0,{2 * _MAX_CHARACTERS}}}?)</h1\s*>",
    re.IGNORECASE | re.DOTALL | re.MULTILINE,
)
_CLOSING = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
_ADDRESS = r"(?:\((?:[^()\n]|\([^()\n]*\))*\)|\[[^\[\]]*\])"
_IMAGE = re.compile(rf"!\[(?P<text>[^\[\]]*)\]{_ADDRESS}")
_LINK = re.compile(rf"\[(?P<text>[^\[\]]*)\]{_ADDRESS}")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_EMPHASIS = re.compile(r"(?P<sign>\*{1,3}|`+)(?=\S)(?P<text>.+?)(?<=\S)(?P=sign)")


def read_title(text: str) -> str:
    """Return the title of a Markdown text in plain words on one line; "" without one."""
    front = _FRONT_MATTER.match(text)
    if front and (title := _front_title(front["fields"])):
        return title
    body = _COMMENT.sub("", _FENCED.sub("`", text[front.end() :] if front else text))
    first = _HEADING.search(body)
    named = sorted(_first_titles(body))
    if first and not body[: first.start()].strip():
        named.insert(0, (first.start(), _plain(first["title"])))
    return next((title for _, title in named if title), "")


def _front_title(fields: str) -> str:
    """Return the title of a block of metadata; "" without one, or of a form of several lines."""
    found = _FRONT_TITLE.search(fields)
    if found is None:
        return ""
    if found["double"] is not None:
        title = re.sub(r"\\(.)", r"\1", found["double"])
    else:
        title = found["plain"] or found["single"].replace("''", "'")
    return " ".join(title.split())


def _first_titles(body: str) -> Iterator[tuple[int, str]]:
    """Yield the place and the words of the first heading of level 1 in each form that has words."""
    for pattern in (_HEADING, _UNDERLINED, _HTML):
        for found in pattern.finditer(body):
            is_first_level = pattern is not _HEADING or found["level"] == "#"
            if is_first_level and (title := _plain(found["title"])):
                yield found.start(), title
                break


def _plain(heading: str) -> str:
    """Return a heading without images, addresses of links, tags, emphasis and the signs that close it."""
    text = _TAG.sub("", _LINK.sub(r"\g<text>", _IMAGE.sub("", _CLOSING.sub("", heading))))
    return " ".join(unescape(_EMPHASIS.sub(r"\g<text>", text)).split())
