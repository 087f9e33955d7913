"""Requests of tuning and the parsers of their replies: corpus, entity types, rating scale, examples.

A value that stands in the prompt itself is refused, because a weak model repeats the format that it was shown. So is a
value that would break a prompt file. Pure: nothing is sent. Keep out: the order of the requests (`tuner.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import BaseModel

from graphrag_pipeline.engines.model.extraction.reply_fields import read_type
from graphrag_pipeline.engines.model.tuning.examples import DraftedExample, read_draft
from graphrag_pipeline.engines.model.tuning.sample_names import SampleNames
from graphrag_pipeline.engines.model.tuning.sampling import Passage
from graphrag_pipeline.models.ports import ChatRequest, Message, ReplyFormatError
from graphrag_pipeline.models.prompts import Prompt, instruct_language
from graphrag_pipeline.models.reply_json import clean_text, json_schema_format, list_limit, read_json
from graphrag_pipeline.query.model_requests import as_data

MIN_TYPES = 2
MAX_TYPES = 12
"""Most entity types of a tuned prompt; small models mix up more."""
MAX_VALUE = 400  # characters
MAX_COPIED = 5
"""Words in a row that a value must not copy from its prompt."""
MAX_TYPE_WORDS = 3
MAX_TYPE_LENGTH = 40  # characters
_CATCH_ALL = frozenset(
    {"OTHER", "OTHERS", "UNKNOWN", "MISC", "MISCELLANEOUS", "ENTITY", "TYPE", "NONE", "THING", "NAME"}
) | {"PASSAGE", "TEXT", "DOCUMENT"}
_MARKS = re.compile(r"<\||\|>|##|</?\s*(?:text|data|passage)\b", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"<[^<>]*>|\[[^\[\]]*\]|\{[^{}]*\}")
_WORD = re.compile(r"\w+")


# The docstrings of these models are descriptions in the schema that is sent; request keys cover them.


class CorpusReply(BaseModel):
    """The schema that the model is asked for."""

    domain: str
    language: str
    persona: str


class TypesReply(BaseModel):
    """The schema that the model is asked for."""

    entity_types: list[str]


class RatingScaleReply(BaseModel):
    """The schema that the model is asked for."""

    criterion: str
    low: str
    high: str


class ExampleEntity(BaseModel):
    """One entity of the schema that the model is asked for."""

    name: str
    type: str
    description: str


class ExampleRelationship(BaseModel):
    """One relationship of the schema that the model is asked for."""

    source: str
    target: str
    description: str
    strength: int


class ExampleReply(BaseModel):
    """The schema that the model is asked for."""

    entities: list[ExampleEntity]
    relationships: list[ExampleRelationship]


CORPUS_FORMAT = json_schema_format(CorpusReply, "corpus")
TYPES_FORMAT = json_schema_format(TypesReply, "entity_types")
RATING_FORMAT = json_schema_format(RatingScaleReply, "rating_scale")
EXAMPLE_FORMAT = json_schema_format(ExampleReply, "example")
LIMITS = {name: {"maxLength": 2 * MAX_VALUE} for name in ("domain", "language", "persona", "criterion", "low", "high")}
"""Twice the longest usable value, so that one which is too long is seen to be so, and is not cut to a part."""
EXAMPLE_LIMITS: dict[str, dict[str, Any]] = {
    **{name: {"maxItems": 50} for name in ("entities", "relationships")},
    **{name: {"maxLength": 300} for name in ("name", "source", "target", "type")},
    "description": {"maxLength": 1000},
    "strength": {"enum": list(range(1, 11))},
}


@dataclass(frozen=True)
class Description:
    """What the collection is about, its main language (English name), and the expert who reads it."""

    domain: str
    language: str
    persona: str


@dataclass(frozen=True)
class RatingScale:
    """The scale of report ratings: what counts, and what is rated 0 and 10."""

    criterion: str
    low: str
    high: str


@dataclass(frozen=True)
class ReadTypes:
    """Entity types of a reply, and reason -> number of those that were left out."""

    types: tuple[str, ...]
    refused: Mapping[str, int]


@dataclass(frozen=True)
class ReadExample:
    """Records of a reply, and reason -> number of those that could not be read."""

    draft: DraftedExample
    refused: Mapping[str, int]


def ask_corpus(prompt: Prompt, sample: str) -> ChatRequest[Description]:
    """Return the request for domain, language and persona."""
    messages = _open(prompt, "Describe the collection.", context_data=as_data(sample))
    return ChatRequest("corpus", messages, partial(read_description, prompt=prompt), CORPUS_FORMAT, limits=LIMITS)


def ask_types(
    prompt: Prompt, description: Description, sample: str, *, max_types: int, names: SampleNames
) -> ChatRequest[ReadTypes]:
    """Return the request for entity types.

    Args:
        names: of the sample; they are not types, nor are words that name no kind there.
    """
    values = {"domain": description.domain, "persona": description.persona, "max_types": str(max_types)}
    messages = _open(prompt, "Choose the entity types.", context_data=as_data(sample), **values)
    limits = {"entity_types": list_limit(2 * max_types, MAX_TYPE_LENGTH)}  # some will not be usable
    parse = partial(read_types, max_types=max_types, names=names)
    return ChatRequest("entity types", messages, parse, TYPES_FORMAT, limits=limits)


def ask_rating(prompt: Prompt, description: Description, sample: str) -> ChatRequest[RatingScale]:
    """Return the request for the rating scale of reports."""
    values = {"domain": description.domain, "persona": description.persona}
    messages = _open(prompt, "Define the scale.", context_data=as_data(sample), **values)
    return ChatRequest("rating scale", messages, partial(read_rating, prompt=prompt), RATING_FORMAT, limits=LIMITS)


def ask_example(
    prompt: Prompt, persona: str, language: str, entity_types: Sequence[str], passage: Passage
) -> ChatRequest[ReadExample]:
    """Return the request for the entities and relationships of a passage.

    Args:
        language: of the setting `extraction.language`: auto or a name.
    """
    values = {"persona": persona, "entity_types": ", ".join(entity_types), "language": instruct_language(language)}
    messages = _open(prompt, "Make the example.", input_text=as_data(passage.text), **values)
    record = f"example from text unit {passage.text_unit_id}"
    return ChatRequest(record, messages, read_example, EXAMPLE_FORMAT, limits=EXAMPLE_LIMITS)


def _open(prompt: Prompt, task: str, **values: str) -> list[Message]:
    return [{"role": "system", "content": prompt.render(**values)}, {"role": "user", "content": task}]


# -------------------------------------------------------------------------------------------------------------- replies


def read_description(reply: str, prompt: Prompt) -> Description:
    """Read domain, language and persona; a persona that cannot be used is empty.

    Raises:
        ReplyFormatError: domain or language is missing, stands in the prompt, or cannot stand in a prompt file.
    """
    values = _read_texts(reply, ("domain", "language"), prompt)
    try:
        persona = _end_sentence(_read_texts(reply, ("persona",), prompt)["persona"])
    except ReplyFormatError:
        persona = ""
    domain = values["domain"].rstrip(" .")
    language = " ".join(_WORD.findall(values["language"])[:3])
    if not language or any(map(str.isdigit, language)):
        raise ReplyFormatError(f"language: {values['language']!r} is not the name of a language")
    return Description(domain, language, persona)


def read_rating(reply: str, prompt: Prompt) -> RatingScale:
    """Read the rating scale.

    Raises:
        ReplyFormatError: a part is missing, stands in the prompt, or both ends are equal.
    """
    values = _read_texts(reply, ("criterion", "low", "high"), prompt)
    if values["low"].casefold() == values["high"].casefold():
        raise ReplyFormatError("low and high describe the same group")
    return RatingScale(*(values[name].rstrip(" .") for name in ("criterion", "low", "high")))


def read_types(reply: str, max_types: int, names: SampleNames | None = None) -> ReadTypes:
    """Read the entity types, in upper case, each once.

    Raises:
        ReplyFormatError: fewer than `MIN_TYPES` types can be used.
    """
    listed = _object(reply, ("entity_types",)).get("entity_types")
    refused: Counter[str] = Counter()
    found: dict[str, None] = {}
    for item in listed if isinstance(listed, list) else []:
        name = " ".join(_WORD.findall(read_type(item, refused))) if isinstance(item, str) else ""
        reason = _refuse_type(item, name, found, max_types)
        if reason is None and names and names.hold(name):
            reason = "type that is a name in the texts"
        if reason:
            refused[reason] += 1
        else:
            found[name] = None
    if len(found) < MIN_TYPES:
        reasons = ", ".join(f"{n} x {reason}" for reason, n in refused.items())
        raise ReplyFormatError(f"fewer than {MIN_TYPES} usable entity types{f' ({reasons})' if reasons else ''}")
    return ReadTypes(tuple(found), dict(refused))


def _refuse_type(item: object, name: str, found: Collection[str], max_types: int) -> str | None:
    if not name or not any(map(str.isalpha, name)) or _PLACEHOLDER.fullmatch(str(item).strip()):
        return "type without a name"
    if name in _CATCH_ALL:
        return "type that catches all"
    if len(name.split()) > MAX_TYPE_WORDS or len(name) > MAX_TYPE_LENGTH:
        return "type too long"
    if name in found:
        return "type repeated"
    return "type beyond the most" if len(found) == max_types else None


def read_example(reply: str) -> ReadExample:
    """Read the entities and relationships of an example.

    Raises:
        ReplyFormatError: the reply has no entity.
    """
    refused: Counter[str] = Counter()
    draft = read_draft(_object(reply, ("entities",)), refused)
    if not draft.entities:
        raise ReplyFormatError(f"no entity; the reply starts {reply[:80]!r}")
    return ReadExample(draft, dict(refused))


def _object(reply: str, names: Sequence[str]) -> dict[str, Any]:
    """Return the first JSON object of a reply that has one of these keys; empty without one."""
    objects = (value for value in read_json(reply) if isinstance(value, dict))
    return next((value for value in objects if any(name in value for name in names)), {})


def _read_texts(reply: str, names: Sequence[str], prompt: Prompt) -> dict[str, str]:
    values = _object(reply, names)
    texts = {}
    for name in names:
        value = values.get(name)
        text = " ".join(clean_text(value).split()) if isinstance(value, str) else ""
        if not any(map(str.isalpha, text)):
            raise ReplyFormatError(f"{name}: no text; the reply starts {reply[:80]!r}")
        if _PLACEHOLDER.fullmatch(text) or stands_in(text, prompt):
            raise ReplyFormatError(f"{name}: {text[:80]!r} is the text of the instructions, not a value")
        if len(text) > MAX_VALUE or _MARKS.search(text):
            raise ReplyFormatError(f"{name}: longer than {MAX_VALUE} characters, or with marks of a prompt")
        texts[name] = text
    return texts


def stands_in(value: str, prompt: Prompt) -> bool:
    """Whether a value repeats a prompt file, or copies a run of `MAX_COPIED` of its words, in any punctuation."""
    if prompt.echoes.holds(value):
        return True
    words = [word.casefold() for word in _WORD.findall(value)]
    given = f" {' '.join(_WORD.findall(prompt.text.casefold()))} "
    n_run = min(len(words), MAX_COPIED)
    runs = (words[start : start + n_run] for start in range(len(words) - n_run + 1))
    return len(words) > 2 and any(f" {' '.join(run)} " in given for run in runs)


def _end_sentence(text: str) -> str:
    return text if text[-1] in ".!?\u3002" else f"{text}."
