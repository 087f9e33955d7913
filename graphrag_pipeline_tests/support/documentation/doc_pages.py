"""Blocks of the documentation's pages, read from Markdown: languages, marks and stories.

A page is README.md or a file of `docs/`. Its blocks run in order, in one empty folder: this is a story. A mark is an
HTML comment directly before a block, one of `MARKS`. Keep out: running blocks
(`doc_runner.py`) and what a story starts with (`doc_setups.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from graphrag_pipeline_tests.support.paths import REPOSITORY

DOCS = REPOSITORY / "docs"
RUN = ("bash", "console", "python", "sql")
"""Languages of blocks that do something."""
PARSED = ("yaml", "json", "jsonl", "csv", "toml")
"""Languages of blocks that must be well formed."""
SHOWN = ("text", "dockerfile", "crontab", "ini", "markdown")
"""Languages of blocks that are only read by people."""
MARKS = {
    "story": "NAME, ...: a new story starts here, with these setups of `doc_setups.py`",
    "skip": "REASON: the block never runs, and the test lists it",
    "live": "REASON: the block runs only in `make test-ui`",
    "background": "URL: the command is a server; the story waits for it, and stops it at its end",
    "write": "PATH: the block is written into that file",
    "apply": "or ROOT: the settings are merged into those of the root",
    "output": "a `text` block is what the block before printed",
    "replace": "WORD = VALUE: WORD stands for VALUE, such as a free port",
    "sequence": "NAME: a test of its own runs the block and looks closer",
    "prepare": "the lines of the comment itself run, unseen by readers",
}
"""Mark -> what follows it, and what it means."""
_FENCE = re.compile(r"^( *)(`{3,}|~{3,})([^\s`]*)[^\n]*\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--\s*([a-z]+)\b[ \t]*:?(.*?)-->", re.DOTALL)


@dataclass(frozen=True)
class Mark:
    """A mark before a block: its name and what follows it."""

    name: str
    value: str


@dataclass(frozen=True)
class PageBlock:
    """A fenced block, or the shell lines of a `prepare` mark, whose language is bash.

    Attributes:
        place: page and line, for messages.
        language: the word after the fence.
        text: the lines without their common indentation.
        marks: the marks above it.
    """

    place: str
    language: str
    text: str
    marks: tuple[Mark, ...] = ()

    def value(self, mark: str) -> str | None:
        """What follows the first mark of a name; None if the block has no such mark."""
        return next((m.value for m in self.marks if m.name == mark), None)

    def has(self, mark: str) -> bool:
        return self.value(mark) is not None

    @property
    def replacements(self) -> dict[str, str]:
        """Words of the block that stand for other words."""
        return dict(_split_replacement(mark.value) for mark in self.marks if mark.name == "replace")


@dataclass
class Story:
    """Blocks that run in order in one folder.

    Attributes:
        name: page and number, as in "guides/operations.md 2".
        setups: names of what exists at the start; see `doc_setups.py`.
        replacements: words that stand for other words in every block.
        blocks: in the order of the page.
    """

    name: str
    setups: tuple[str, ...] = ()
    replacements: dict[str, str] = field(default_factory=dict)
    blocks: list[PageBlock] = field(default_factory=list)

    @property
    def is_live(self) -> bool:
        """Whether some of its blocks run in the live test only."""
        return any(block.has("live") for block in self.blocks)


def pages() -> list[Path]:
    """README.md and every page of `docs/`, sorted."""
    written = (path for path in DOCS.rglob("*.md") if "_build" not in path.relative_to(DOCS).parts)
    return [REPOSITORY / "README.md", *sorted(written)]


def name_of(page: Path) -> str:
    """The page's path as messages show it."""
    return page.relative_to(DOCS if DOCS in page.parents else REPOSITORY).as_posix()


def read_stories(page: Path) -> list[Story]:
    """The stories of a page; a page without a `story` mark is one story.

    Raises:
        ValueError: a block has no language or an unknown one, or a mark is unknown; names page and line.
    """
    stories: list[Story] = []
    current = Story(f"{name_of(page)} 1")
    for item in _read_items(page):
        if isinstance(item, PageBlock):
            current.blocks.append(item)
        elif item.name == "story":
            if current.blocks:
                stories.append(current)
            setups = tuple(name.strip() for name in item.value.split(",") if name.strip())
            current = Story(f"{name_of(page)} {len(stories) + 1}", setups)
        else:
            current.replacements |= dict([_split_replacement(item.value)])
    return [*stories, current] if current.blocks else stories


def all_blocks() -> Iterator[PageBlock]:
    """Every block of every page."""
    for page in pages():
        for story in read_stories(page):
            yield from story.blocks


def find_sequence(name: str) -> list[str]:
    """Return the lines of the block marked `sequence: NAME`, on any page.

    Raises:
        LookupError: no page or more than one has it.
    """
    found = [block for block in all_blocks() if sequence_name(block) == name]
    if len(found) != 1:
        raise LookupError(f"sequence {name!r} is in {len(found)} blocks: {[block.place for block in found]}")
    return found[0].text.splitlines()


def sequence_name(block: PageBlock) -> str | None:
    """The name in a block's `sequence` mark, without the remark after the comma."""
    value = block.value("sequence")
    return None if value is None else value.partition(",")[0].strip()


def find_blocks(language: str, first_line: str = "") -> list[str]:
    """Texts of all blocks of a language whose first line begins so."""
    return [b.text for b in all_blocks() if b.language == language and b.text.startswith(first_line)]


def _read_items(page: Path) -> Iterator[PageBlock | Mark]:
    """Blocks with their marks, and the `story` and `replace` marks that hold for a story."""
    text = page.read_text(encoding="utf-8")
    position, after_story = 0, False
    for fence in _FENCE.finditer(text):
        waiting: list[Mark] = []
        for line, mark in _marks(text, position, fence.start(), page):
            if mark.name == "story" or (mark.name == "replace" and after_story):
                yield mark
                after_story = True
            elif mark.name == "prepare":
                yield PageBlock(f"{name_of(page)}:{line}", "bash", mark.value + "\n", (mark,))
            else:
                waiting.append(mark)
        position = fence.end()
        place = f"{name_of(page)}:{_line_of(text, fence.start())}"
        language = fence[3]
        if language.startswith("{"):  # a directive of MyST
            continue
        if language not in (*RUN, *PARSED, *SHOWN):
            raise ValueError(f"{place}: a block of language {language!r}; known are {(*RUN, *PARSED, *SHOWN)}")
        after_story = False
        indent = len(fence[1])
        lines = [line[indent:] if line[:indent].isspace() else line for line in fence[4].splitlines()]
        yield PageBlock(place, language, "\n".join(lines) + "\n", tuple(waiting))


def _marks(text: str, start: int, end: int, page: Path) -> Iterator[tuple[int, Mark]]:
    for comment in _COMMENT.finditer(text, start, end):
        name, value = comment[1], comment[2].strip()
        if name in MARKS:
            yield _line_of(text, comment.start()), Mark(name, value)
        elif not value or value.startswith("made by") or name in ("generated", "sample", "end"):
            continue
        else:
            place = f"{name_of(page)}:{_line_of(text, comment.start())}"
            raise ValueError(f"{place}: unknown mark {name!r}; known are {list(MARKS)}")


def _split_replacement(value: str) -> tuple[str, str]:
    word, _, replacement = value.partition(" = ")
    return word.strip(), replacement.strip()


def _line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
