"""Words of a private dialect, which no text for people may hold: docstrings, comments, messages, help and pages."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from graphrag_pipeline_tests.support.paths import REPOSITORY

DIALECT = re.compile(
    r"\b(told|mended|mends?|mending|somebody|nobody|anew|whoever|wherever|meanwhile|thereby"
    r"|at the next look|gone on from|there is none|so that nobody)\b",
    re.IGNORECASE,
)
FENCED = re.compile(r"^```.*?^```|^~~~.*?^~~~", re.DOTALL | re.MULTILINE)
QUOTED_DATA = {
    "graphrag_pipeline/engines/embedded/names/predicates.py",
    "graphrag_pipeline/text/sentence_forms.py",
}
"""Files that hold words of documents: word lists of the rules, and the sample's answers."""

SOURCES = sorted(
    path
    for path in (REPOSITORY / "graphrag_pipeline").rglob("*.py")
    if "bundled" not in path.parts and str(path.relative_to(REPOSITORY)) not in QUOTED_DATA
)
PAGES = [
    REPOSITORY / "README.md",
    *(
        path
        for path in sorted((REPOSITORY / "docs").rglob("*.md"))
        if str(path.relative_to(REPOSITORY)) not in QUOTED_DATA
    ),
]


def texts_of(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of the comments and strings of a Python file."""
    source = io.StringIO(path.read_text(encoding="utf-8"))
    for token in tokenize.generate_tokens(source.readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            yield token.start[0], token.string


def test_comments_and_strings_speak_plain_english() -> None:
    lines = ((path, line, text) for path in SOURCES for line, text in texts_of(path))
    found = [f"{path}:{line}: {match[0]}" for path, line, text in lines for match in DIALECT.finditer(text)]
    assert SOURCES and found == []


def test_pages_speak_plain_english() -> None:
    texts = {path: FENCED.sub("", path.read_text(encoding="utf-8")) for path in PAGES}
    found = [f"{path}: {match[0]}" for path, text in texts.items() for match in DIALECT.finditer(text)]
    assert PAGES and found == []
