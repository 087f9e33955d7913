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

_FENCED = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?P<fields>.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE | re.DOTALL)
_FRONT_TITLE = re.compile(r"^title:[ \t]*(?P<title>[^\s>|].*?)[ \t]*$", re.MULTILINE | re.IGNORECASE)
_HEADING = re.compile(r"^ {0,3}(?P<level>#{1,6})[ \t]+(?P<title>.+?)(?:[ \t]+#+)?[ \t]*$", re.MULTILINE)
_UNDERLINED = re.compile(r"^ {0,3}(?![=\s])(?P<title>.+?)[ \t]*\n {0,3}={2,}[ \t]*$", re.MULTILINE)
_HTML = re.compile(r"<h1\b[^>]*>(?P<title>.*?)</h1\s*>", re.IGNORECASE | re.DOTALL)
_IMAGE = re.compile(r"!\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])")
_LINK = re.compile(r"\[(?P<text>[^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_EMPHASIS = re.compile(r"(?P<sign>\*{1,3}|`+)(?=\S)(?P<text>.+?)(?<=\S)(?P=sign)")


def read_title(text: str) -> str:
    """Return the title of a Markdown text in plain words on one line; "" without one."""
    front = _FRONT_MATTER.match(text)
    found = _FRONT_TITLE.search(front["fields"]) if front else None
    if found and (title := " ".join(found["title"].strip("\"'").split())):
        return title
    body = _COMMENT.sub("", _FENCED.sub("`", text[front.end() :] if front else text))
    first = _HEADING.search(body)
    named = sorted(_first_titles(body))
    if first and not body[: first.start()].strip():
        named.insert(0, (first.start(), _plain(first["title"])))
    return next((title for _, title in named if title), "")


def _first_titles(body: str) -> Iterator[tuple[int, str]]:
    """Yield the place and the words of the first heading of level 1 in each form that has words."""
    for pattern in (_HEADING, _UNDERLINED, _HTML):
        for found in pattern.finditer(body):
            is_first_level = pattern is not _HEADING or found["level"] == "#"
            if is_first_level and (title := _plain(found["title"])):
                yield found.start(), title
                break


def _plain(heading: str) -> str:
    """Return a heading without images, addresses of links, tags and emphasis."""
    text = _TAG.sub("", _LINK.sub(r"\g<text>", _IMAGE.sub("", heading)))
    return " ".join(unescape(_EMPHASIS.sub(r"\g<text>", text)).split())
