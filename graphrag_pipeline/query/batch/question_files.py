"""Question files: plain text with one question a line, CSV, or JSON lines; the latter two have options per question.

CSV has a header with `question` and any of `id`, `method`, `strategy`, `filters` and `options`. JSON lines are objects
with the same keys, or strings. `filters` is a list (in CSV, one condition or a JSON list). `options` is an object (in
CSV, as JSON). A line that cannot be read becomes a question with a problem, which is reported in its place. Keep out:
search.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.nearest import suggest
from graphrag_pipeline.query.question import valid_unicode

FIELDS = ("id", "question", "method", "strategy", "filters", "options")
SEARCH_ARGUMENTS = ("question", "method", "strategy", "context_only", "filters", "on_context", "on_token")
"""Arguments of a search that an option cannot set."""
_MAX_FIELD_CHARS = 100_000_000


@dataclass(frozen=True)
class BatchQuestion:
    """A question with its method, filters and options.

    Attributes:
        id: copied to the answer; "" if the file has none.
        filters: a search reads only documents that pass all of them.
        options: replace settings of the method.
        problem: why the line of the file is not a valid question; "" if it is valid.
    """

    question: str
    method: str = "auto"
    strategy: str | None = None
    filters: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    problem: str = ""

    @property
    def key(self) -> str:
        """Hash of the question with its id, method, filters and options, whatever index answers it."""
        how = [self.id, self.method, self.strategy, list(self.filters), dict(self.options)]
        return stable_hash(valid_unicode(self.question), json.dumps(how, sort_keys=True, default=str))


def read_question_file(path: Path, default: BatchQuestion) -> list[BatchQuestion]:
    """Return the questions of a file, in order, without empty lines.

    Args:
        default: its method is used for lines without one; its filters are added to those of each line.

    Raises:
        PipelineError: the file cannot be read, has no questions, or its header has no `question`.
    """
    read = _READERS.get(path.suffix.lower(), _read_lines)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            questions = [_read_question(values, default, f"line {line}") for line, values in read(path, file)]
    except OSError as error:
        raise PipelineError(f"{path}: cannot be read ({error.strerror}); choose a file of questions") from None
    except UnicodeDecodeError:
        raise PipelineError(f"{path}: is not UTF-8; save it as UTF-8") from None
    if not questions:
        raise PipelineError(f"{path}: has no questions; write one a line")
    return questions


Lines = Iterator[tuple[int, object]]
"""(line number from 1, value): a mapping, a question as str, or a ValueError with the problem."""


def _read_lines(_: Path, file: Iterable[str]) -> Lines:
    return ((line, text.strip()) for line, text in enumerate(file, start=1) if text.strip())


def _read_json_lines(path: Path, file: Iterable[str]) -> Lines:
    for line, text in _read_lines(path, file):
        try:
            values = json.loads(str(text))
        except (ValueError, RecursionError):
            values = ValueError(f"is not JSON: {str(text)[:80]!r}")
        yield line, values


def _read_csv(path: Path, file: Iterable[str]) -> Lines:
    csv.field_size_limit(_MAX_FIELD_CHARS)
    reader = csv.DictReader(file)
    try:
        header = [(name or "").strip() for name in reader.fieldnames or ()]
        if "question" not in header:
            raise PipelineError(f"{path}: its header has no column `question`: {', '.join(header)[:200]!r}")
        reader.fieldnames = header
        for row in reader:
            if any(row.values()):
                yield reader.line_num, _read_cells(row)
    except csv.Error as error:
        raise PipelineError(f"{path}: line {reader.line_num} is not CSV ({error})") from None


def _read_cells(row: dict[Any, Any]) -> object:
    """Return a row of CSV as an object of JSON lines, without empty cells; lists and objects are parsed as JSON."""
    if None in row:
        return ValueError("has more cells than the header; quote a cell that has commas")
    values = {name: cell.strip() for name, cell in row.items() if cell and cell.strip()}
    for name, opening in (("filters", "["), ("options", "{")):
        text = values.get(name, "")
        if text.startswith(opening):
            try:
                values[name] = json.loads(text)
            except ValueError:
                return ValueError(f"its {name} are not JSON: {text[:80]!r}")
    return values


_READERS: dict[str, Callable[[Path, Iterable[str]], Lines]] = {
    ".csv": _read_csv,
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
}


def _read_question(values: object, default: BatchQuestion, place: str) -> BatchQuestion:
    if isinstance(values, str):
        return replace(default, question=values)
    if not isinstance(values, Mapping):
        problem = str(values) if isinstance(values, ValueError) else "is neither an object nor a string"
        return replace(default, question="", problem=f"{place}: {problem}")
    question = replace(default, question=str(values.get("question") or ""), id=str(values.get("id", "")))
    if problem := _find_problem(values):
        return replace(question, problem=f"{place}: {problem}")
    filters = values.get("filters") or ()
    return replace(
        question,
        method=values.get("method") or default.method,
        strategy=values.get("strategy") or default.strategy,
        filters=(*default.filters, *([filters] if isinstance(filters, str) else filters)),
        options=values.get("options") or {},
    )


def _find_problem(values: Mapping[str, Any]) -> str:
    """Return the problem with the values of one question; "" for none."""
    for name in values:
        if name not in FIELDS:
            return f"unknown key {name!r}{suggest(name, FIELDS)}"
    for name in ("question", "method", "strategy"):
        if not isinstance(values.get(name) or "", str):
            return f"its {name} is not text: {values[name]!r}"
    filters, options = values.get("filters") or (), values.get("options") or {}
    if not isinstance(filters, str | list | tuple) or not all(isinstance(text, str) for text in filters):
        return f"its filters are not a list of texts: {filters!r}"
    if not isinstance(options, Mapping):
        return f"its options are not an object: {options!r}"
    own = next((name for name in options if name in SEARCH_ARGUMENTS), None)
    return f"{own!r} is not an option; write it as a key of the question" if own else ""
