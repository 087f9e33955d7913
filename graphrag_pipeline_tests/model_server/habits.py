"""Habits of small and sloppy models, as changes of a reply: lists without end, echoes of the prompt, lost brackets.

Each was seen at a real model of 0.1 to 0.5 billion parameters. Pure functions; `faults.py` names them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from graphrag_pipeline.demo_model.extraction import split_sentences
from graphrag_pipeline.demo_model.prompts import PromptMessages
from graphrag_pipeline.demo_model.schemas import fit_schema

_EXAMPLE_RECORDS = re.compile(r"^EXAMPLE.*?$.*?(^\(.*?)(?=^<\||^#{3}|\Z)", re.IGNORECASE | re.MULTILINE | re.DOTALL)
_END_OF_RECORD = re.compile(r"\)(?=\s*(?:##|<\||\Z))")
_SCALE = re.compile(r"\d+ to (\d+)")
"""What a prompt shows in the place of a number."""
_DECODER = json.JSONDecoder()
_MARK = "\0"


def repeat_endlessly(text: str, n_characters: int) -> str:
    """Return at least `n_characters` of a reply that repeats its last list, record or sentence and never ends."""
    begin, part = _split_list(text) if text.startswith("{") else _split_text(text)
    pieces, length = [begin], len(begin)
    while length < n_characters:
        pieces.append(part.replace(_MARK, str(len(pieces))))
        length += len(pieces[-1])
    return "".join(pieces)


def _split_list(text: str) -> tuple[str, str]:
    """Return a JSON reply up to the end of its first list of values, and one more element of that list."""
    value = json.loads(text)
    found = next((items for items in _lists(value) if items), None)
    if found is None:
        return text.rstrip('"} \n'), " and so on"
    more = json.dumps(_number(found[-1]), ensure_ascii=False).replace(json.dumps(_MARK), _MARK)
    found.append(_MARK)
    begin = json.dumps(value, ensure_ascii=False).partition(f", {json.dumps(_MARK)}")[0]
    return begin, f", {more}"


def _lists(value: Any) -> Iterator[list[Any]]:
    if isinstance(value, list):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _lists(part)


def _number(item: Any) -> Any:
    """Return an element whose `number` counts on."""
    return item | {"number": _MARK} if isinstance(item, dict) and "number" in item else item


def _split_text(text: str) -> tuple[str, str]:
    records = text.partition("<|COMPLETE|>")[0].strip()
    if records.startswith("("):
        return records, "\n##\n" + records.split("##")[-1].strip()
    return text, " " + (split_sentences(text)[-1:] or [text or "And so on."])[0]


def echo_example(conversation: PromptMessages) -> str:
    """Return the example of the prompt as if it were the reply: its JSON, its records, or its first line."""
    template = _template(conversation)
    if template is not None:
        return json.dumps(template, ensure_ascii=False)
    records = _EXAMPLE_RECORDS.search(conversation.opening)
    return records[1].strip() + "\n<|COMPLETE|>" if records else conversation.opening.strip().splitlines()[0]


def echo_passage(conversation: PromptMessages) -> str:
    """Return the passage of the prompt instead of a reply; in each string of the JSON that is asked for."""
    passage = conversation.input_text
    if conversation.schema is not None:
        return json.dumps(fit_schema({}, conversation.schema, passage), ensure_ascii=False)
    template = _template(conversation)
    return passage if template is None else json.dumps(_with_text(template, passage), ensure_ascii=False)


def drop_brackets(text: str) -> str:
    """Return a reply without its closing brackets: of JSON, of records, of citations."""
    if text.startswith("{"):
        return text.rstrip("]} \n")
    return _END_OF_RECORD.sub("", text) if text.startswith("(") else text.replace(")]", ")")


def _template(conversation: PromptMessages) -> dict[str, Any] | None:
    """Return the JSON object that the prompt shows as the form of the reply; None without one."""
    prompt = conversation.opening
    names = set(conversation.schema.get("properties", ())) if conversation.schema else set()
    for match in re.finditer(r"\{", prompt):
        try:
            value, _ = _DECODER.raw_decode(prompt, match.start())
        except ValueError:
            continue
        if isinstance(value, dict) and value and not names - value.keys():
            return value
    return None


def _with_text(value: Any, text: str) -> Any:
    if isinstance(value, dict):
        return {name: _with_text(part, text) for name, part in value.items()}
    if isinstance(value, list):
        return [_with_text(part, text) for part in value]
    if not isinstance(value, str):
        return value
    scale = _SCALE.fullmatch(value)
    return int(scale[1]) if scale else text
