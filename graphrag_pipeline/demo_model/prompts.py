"""Reading a prompt: the conversation, its input text, entity types, delimiters, numbered records and question.

The rules fit the format of the prompts of Microsoft GraphRAG and of this package, but not their words. The input text
is the text inside `<text>` or `<input_text>` tags. Without tags, it is the text after the first `Text:` below a `Real
Data` heading, or after the last `Text:` of a prompt with examples, or after the first `Text:` without examples, up to
`Output:` or a line of `#`. Otherwise it is the whole text of the user. Records are lines that start with a number and
`,`, `|`, a tab or `:`, or with a number in brackets, under a heading such as `Entities` or `-----Reports-----`.
"""

from __future__ import annotations

import itertools
import re
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

_TAGGED = re.compile(r"<(text|input_text|input|document)>\n?(.*)</\1>", re.DOTALL)
_REAL_DATA = re.compile(r"\n[^\w\n]*real data[^\w\n]*(?=\n)")
_TEXT_LABEL = re.compile(r"\n[^\w\n]*(?:input[ _])?text[^\w\n]*:[ \t]*\n?")
_TEXT_END = re.compile(r"\n(?:#{4,}[ \t]*(?=\n)|output:|the report should|return output)")
_TYPE_LABELS = ("entity_types", "entity types", "following types")
_FIELD_DELIMITER = re.compile(r"\([ \t]?[\"“]?entity[\"”]?([^\w\n\"]{1,8}?)(?=[<{\[]?\w|\")")
_CLAIM_DELIMITER = re.compile(r"\([ \t]?[<{\[]subject(?:_entity)?[>}\]](\W{1,8}?)(?=[<{\[]\w)")
_RECORD_DELIMITER = re.compile(r"\*\*(\S{1,8})\*\* as the (?:list|record) delimiter")
_END_MARK = re.compile(r"<\|\w{2,}\|>")
_HEADING = re.compile(
    r"^[^\w\n]*(entities|relationships|claims|covariates|reports|sources|text ?units|communities)[^\w\n]*$",
    re.IGNORECASE | re.MULTILINE,
)
_ROW = re.compile(r"^(?:[-*\[( \t\"]*(\d{1,9})[\])\"]*[ \t]*[,|\t:]|\[(\d{1,9})\])[ \t]*(.*)$", re.MULTILINE)
_QUESTION = re.compile(r"(?:-[ \t]*(?:user )?question[ \t]*-{1,9}|(?:question|query):)\s*(.+)", re.IGNORECASE)
_DEFAULT_TYPES = ("PERSON", "ORGANIZATION", "GEO", "EVENT")


@dataclass(frozen=True)
class PromptMessages:
    """The messages of a chat request as (role, text) pairs, and the JSON schema that the reply must meet, if any.

    `tool` names the tool that the request makes the model call.
    """

    messages: tuple[tuple[str, str], ...]
    schema: dict[str, Any] | None = None
    wants_json: bool = False
    tool: str | None = None

    @cached_property
    def opening(self) -> str:
        """All text before the first reply of the assistant, each message below a blank line."""
        roles = [role for role, _ in self.messages]
        end = roles.index("assistant") if "assistant" in roles else len(roles)
        return "".join(f"\n\n{text}" for _, text in self.messages[:end])

    @cached_property
    def _from_user(self) -> str:
        """The user's part of the opening, or all of it where the user says nothing."""
        roles = [role for role, _ in self.messages]
        end = roles.index("assistant") if "assistant" in roles else len(roles)
        return "".join(f"\n\n{text}" for role, text in self.messages[:end] if role == "user") or self.opening

    @cached_property
    def lowered(self) -> str:
        """The opening in lower case, for searching."""
        return _lower(self.opening)

    @property
    def last(self) -> str:
        return self.messages[-1][1] if self.messages else ""

    @property
    def n_replies(self) -> int:
        return sum(role == "assistant" for role, _ in self.messages)

    @cached_property
    def input_text(self) -> str:
        """The input text of the prompt."""
        prompt = self._from_user
        tagged = _TAGGED.search(prompt)
        if tagged is not None:
            return tagged[2].strip()
        lowered = _lower(prompt)
        start = max((match.end() for match in _REAL_DATA.finditer(lowered)), default=0)
        labels = [match.end() for match in _TEXT_LABEL.finditer(lowered, start)]
        if labels:
            start = labels[-1] if start == 0 and "example" in lowered else labels[0]  # a later one is in the text
        end = _TEXT_END.search(lowered, start) if start else None
        return prompt[start : end.start() if end else len(prompt)].strip()

    @cached_property
    def question(self) -> str:
        """The user's question: behind a label, else the last of several messages, else the last line with a `?`."""
        labelled = _QUESTION.findall(self.last)
        if labelled:
            return str(labelled[-1]).strip()
        if len(self.messages) > 1 or "\n" not in self.last:
            return self.last.strip()
        lines = [line.strip() for line in self.opening.splitlines() if "?" in line]
        return lines[-1] if lines else ""


@dataclass(frozen=True, slots=True)
class Marks:
    """The delimiters of an extraction prompt."""

    field: str
    record: str
    end: str


@dataclass(frozen=True, slots=True)
class PromptRecord:
    """One numbered row of a table in a prompt; `section` is its heading, capitalised ("Entities")."""

    section: str
    number: int
    text: str


def read_marks(conversation: PromptMessages) -> Marks:
    """Delimiters of a graph or claim extraction prompt; `<|>`, `##` and `<|COMPLETE|>` where it names none."""
    field = _FIELD_DELIMITER.search(conversation.lowered) or _CLAIM_DELIMITER.search(conversation.lowered)
    record = _RECORD_DELIMITER.search(conversation.lowered)
    end = _END_MARK.search(conversation.opening)
    return Marks(field[1] if field else "<|>", record[1] if record else "##", end[0] if end else "<|COMPLETE|>")


def read_entity_types(conversation: PromptMessages) -> list[str]:
    """The last list of entity types in the prompt, in upper case; four usual ones if it has none."""
    start = max(conversation.lowered.rfind(label) for label in _TYPE_LABELS)
    line = conversation.opening[start:].partition("\n")[0].partition(":")[2] if start >= 0 else ""
    types = [part.strip(" []\"'.").upper() for part in re.split(r"[,;|]", line)]
    return [name for name in types if name and "{" not in name] or list(_DEFAULT_TYPES)


def read_records(text: str, default_section: str = "Sources") -> list[PromptRecord]:
    """Numbered rows under their headings, in order.

    A row runs to the next row, heading or blank line; one that begins with a number in brackets has paragraphs of its
    own and runs on over blank lines.
    """
    marks: list[tuple[int, int, str, int | None, bool]] = [  # start, start of the row's text, heading, number, is block
        *((match.start(), match.end(), match[1].capitalize(), None, False) for match in _HEADING.finditer(text)),
        *(
            (match.start(), match.start(3), "", int(match[1] or match[2]), match[1] is None)
            for match in _ROW.finditer(text)
        ),
        (len(text), len(text), "", None, False),
    ]
    records: list[PromptRecord] = []
    section = default_section
    ordered = sorted(marks, key=lambda mark: mark[0])
    for (_, start, heading, number, is_block), (end, *_) in itertools.pairwise(ordered):
        if number is None:
            section = heading
        else:
            row = text[start:end] if is_block else text[start:end].partition("\n\n")[0]
            records.append(PromptRecord(section, number, row.strip()))
    return records


def _lower(text: str) -> str:
    """Lower case of the same length, so that places agree; the text itself where a script has none."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text


def number_of(text: str, n: int) -> int:
    """0..n-1, the same for the same text everywhere."""
    return zlib.crc32(text.encode("utf-8", "replace")) % n
