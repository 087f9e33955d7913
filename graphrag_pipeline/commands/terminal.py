"""Options that commands share, printed output, wrapped lines, and completion of names in a shell."""

from __future__ import annotations

import json
import logging
import math
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.text.safe_output import escape_controls, escape_json_controls, escape_line

if TYPE_CHECKING:
    from graphrag_pipeline.pipeline.root import Root
    from graphrag_pipeline.storage.snapshots import Snapshot

MAX_WIDTH = 120
"""Columns of running text in a wider terminal."""
MIN_WIDTH = 40


def text_width() -> int:
    """Return the columns of running text; 0 if output does not go to a terminal: then lines are not wrapped."""
    if not sys.stdout.isatty():
        return 0
    return max(MIN_WIDTH, min(MAX_WIDTH, shutil.get_terminal_size().columns))


def cells(text: str) -> int:
    """Return the columns that a text takes; Chinese and Japanese characters take two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def wrap(text: str, width: int, indent: str = "") -> Iterator[str]:
    """Yield the lines of a text; each line of the text begins a new one.

    Args:
        width: maximum of cells in a line with its indent; 0 does not wrap.
    """
    for line in text.splitlines() or [""]:
        for part in _wrap_line(line, width - len(indent)) if width else [line]:
            yield f"{indent}{part}".rstrip()


def _wrap_line(line: str, width: int) -> Iterator[str]:
    if cells(line) <= width:
        yield line
        return
    begun = ""
    for word in line.split():
        joined = f"{begun} {word}" if begun else word
        if cells(joined) <= width:
            begun = joined
            continue
        if begun:
            yield begun
        *whole, begun = _chop(word, width)
        yield from whole
    yield begun


def _chop(word: str, width: int) -> list[str]:
    """Return the pieces of a word that is too long for a line."""
    if cells(word) <= width:
        return [word]
    from rich.cells import chop_cells

    return chop_cells(word, width)


def prefer_own_root(context: typer.Context, root: Path | None) -> Path | None:
    """Return `--root` of the command itself, else the `--root` given before the command."""
    return root or context.find_root().params.get("root")


RootOption = Annotated[
    Path | None,
    typer.Option(
        "--root",
        callback=prefer_own_root,
        help="Root directory; default: $GRAPHRAG_ROOT, the current directory or ./data.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]

Complete = Callable[[typer.Context, str], list[str]]
N_NAMES = 50
"""Most names of records that are offered."""


def complete_choice(*choices: str) -> Complete:
    """Return a completion among fixed words."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        return [choice for choice in choices if choice.startswith(incomplete)]

    return complete


def complete_name(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names of records that begin like this in any case; their kind is the argument before."""
    return _of_root(ctx, lambda root: list_record_names(root, str(ctx.params.get("kind", "")), incomplete))


def complete_snapshot(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the ids of the snapshots of the root that begin like this, newest first."""
    return _of_root(ctx, lambda root: [name for name in reversed(root.snapshots.ids()) if name.startswith(incomplete)])


def complete_tuned_set(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names of the tuned sets of prompts that begin like this."""
    from graphrag_pipeline.pipeline.tuned_sets import list_sets

    return _of_root(ctx, lambda root: [one.name for one in list_sets(root.path) if one.name.startswith(incomplete)])


def list_record_names(root: Root, kind: str, start: str) -> list[str]:
    """Return names of the published snapshot that begin with a text in any case, as the shell can insert them."""
    from graphrag_pipeline.query.index_reader import SnapshotReader
    from graphrag_pipeline.reading.lookup import list_names

    snapshot = root.snapshots.open(None)
    try:
        names = list_names(SnapshotReader(snapshot), kind, start, N_NAMES)
    finally:
        snapshot.close()
    # A shell offers only what begins as the user wrote it.
    kept = [name for name in names if name.startswith(start)] or [start + name[len(start) :] for name in names]
    is_bash = os.environ.get("_GRAPHRAG_PIPELINE_COMPLETE") == "complete_bash"
    return [name.replace(" ", "\\ ") if is_bash else name for name in kept]  # bash inserts a word as it is


def _of_root(context: typer.Context, read: Callable[[Root], list[str]]) -> list[str]:
    """Return what is read from the root that the command would use; nothing on an error."""
    from graphrag_pipeline.pipeline.root import Root, find_root

    try:
        return read(Root(find_root(context.params.get("root") or context.find_root().params.get("root"))))
    except (PipelineError, OSError):
        return []


SnapshotOption = Annotated[
    str | None,
    typer.Option(
        help="Snapshot id or its first digits; default: the published snapshot.", autocompletion=complete_snapshot
    ),
]
PagerOption = Annotated[
    bool, typer.Option("--pager/--no-pager", help="Whether a long page is shown by $PAGER in a terminal.")
]


@dataclass(frozen=True)
class Line:
    """A line of text with one of `STYLES`."""

    text: str
    style: str = ""

    def __str__(self) -> str:
        return self.text


STYLES: dict[str, dict[str, Any]] = {
    "heading": {"bold": True},
    "faint": {"dim": True},
    "added": {"fg": "green"},
    "removed": {"fg": "red"},
    "warning": {"fg": "yellow"},
    "error": {"fg": "red", "bold": True},
}
"""Looks of lines in a terminal; no meaning is in a colour alone."""

# Groups of commands in `--help`, in the order of work.
DAILY_GROUP = "Daily"
ADVANCED_GROUP = "Advanced"


def open_root(root: Path | None) -> Root:
    """Open the named root, or find one.

    Raises:
        PipelineError: the root has no readable settings.
    """
    from graphrag_pipeline.pipeline.root import Root, find_root

    opened = Root(find_root(root))
    opened.settings  # noqa: B018 - so that every command reports a missing root the same way
    return opened


def open_snapshot(root: Root, start: str | None) -> Snapshot:
    """Open the published snapshot, or the one whose id begins like this, with the stage tables that it came from.

    Raises:
        PipelineError: no snapshot has such an id, or its files cannot be read.
    """
    from graphrag_pipeline.storage.snapshot_store import find_snapshot

    if start:
        root.follow()
    snapshot = root.open_snapshot(find_snapshot(root.snapshots, start) if start else None)
    root.fetch_stages(snapshot.id)
    return snapshot


def command_with_root(root: Path | None) -> str:
    """Return how a command of this root begins, for hints that a user copies."""
    return f"graphrag-pipeline --root {shlex.quote(str(root))}" if root else "graphrag-pipeline"


def check_port(host: str, port: int, remedy: str = "choose others with --host and --port") -> None:
    """Report a port in use at once; servers report it late, or without the way out.

    Raises:
        PipelineError: this process cannot listen there.
    """
    import socket

    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        raise PipelineError(f"cannot listen on {host}, port {port} ({error.strerror or error}); {remedy}") from None


def echo(text: object = "", err: bool = False, nl: bool = True, style: str = "") -> None:
    """Print text as `typer.echo`; control characters of documents and models are escaped, so no terminal obeys them.

    All commands print by this function. A message on standard error is one line: a name or a reason with a line feed
    looks like no other message.

    Args:
        style: one of `STYLES`; it counts only in a terminal that may have colours.
    """
    typer.echo(_style(escape_line(str(text)) if err else str(text), style, err), err=err, nl=nl)


def echo_error(error: Exception) -> None:
    """Print an error; its further lines are indented, so that none looks like a message."""
    first, *further = str(error).split("\n")
    echo(f"error: {first}", err=True, style="error")
    for line in further:
        echo(f"  {line}", err=True, style="error")


class _EscapedFormatter(logging.Formatter):
    """Escapes control characters as `echo` does: names from a shared store or a document are in messages."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return escape_line(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        return escape_controls(super().format(record))  # a traceback has lines


def escape_log() -> None:
    """Escape the messages of the log that Python prints, since this program has no handler of its own for them."""
    if logging.lastResort:
        logging.lastResort.setFormatter(_EscapedFormatter())


def has_colours(err: bool = False) -> bool:
    """Return whether output goes to a terminal that may have colours (https://no-color.org)."""
    stream = sys.stderr if err else sys.stdout
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def can_ask() -> bool:
    """Return whether a user at a terminal can answer a question."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def echo_lines(lines: Iterable[Line | str]) -> None:
    """Print lines with their styles; a line feed inside of one is escaped."""
    for line in lines:
        echo(escape_line(str(line)), style=line.style if isinstance(line, Line) else "")


def diff_lines(differences: Mapping[str, str]) -> Iterator[Line]:
    """Yield unified diffs, each under the name of what differs; unchanged parts are not shown."""
    for name, text in differences.items():
        yield Line(f"difference of {name}:", "heading")
        for line in text.splitlines():
            yield Line(f"  {line}", _DIFF_STYLES.get(line[:1], "") if line[:3] not in ("---", "+++") else "faint")


_DIFF_STYLES = {"+": "added", "-": "removed", "@": "faint"}
"""First character of a line of a unified diff -> its style."""


def page_lines(lines: Iterable[Line | str]) -> None:
    """Print lines; in a terminal that is too low for them, by `$PAGER` (default: less, if it is installed)."""
    listed = list(lines)
    pager = shlex.split(os.environ.get("PAGER") or "less")
    is_long = sum(map(_height, listed)) >= shutil.get_terminal_size().lines
    if not (is_long and sys.stdout.isatty() and sys.stdin.isatty() and shutil.which(pager[0])):
        echo_lines(listed)
        return
    environment = {"LESS": "-FRX", **os.environ}  # less shows colours, and leaves what was read on the screen
    text = "".join(
        f"{_style(escape_line(str(line)), line.style if isinstance(line, Line) else '')}\n" for line in listed
    )
    with suppress(KeyboardInterrupt):
        subprocess.run(pager, input=text.encode(sys.stdout.encoding, "backslashreplace"), env=environment, check=False)


def _style(text: str, style: str, err: bool = False) -> str:
    """Return text that a terminal shows as it is, in the style if the terminal may have colours."""
    shown = escape_controls(text)
    return typer.style(shown, **STYLES[style]) if style and has_colours(err) else shown


def _height(line: Line | str) -> int:
    """Return the number of rows of a terminal that a line takes."""
    return max(1, math.ceil(len(str(line)) / shutil.get_terminal_size().columns))


def print_json(values: Any) -> None:
    """Print JSON that every reader accepts: no NaN, no control character, only ASCII if the terminal is not UTF-8."""
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(_without_nan(values), indent=1, ensure_ascii=not is_utf8, allow_nan=False, default=str)
    echo(escape_json_controls(text))


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
