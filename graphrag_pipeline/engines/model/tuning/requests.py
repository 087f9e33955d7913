"""Requests of tuning and the parsers of their replies: corpus, entity types, rating scale, examples.

A value that repeats the prompt is refused, because a weak model repeats the format that it was shown. So is a value
that would break a prompt file. An example is checked against its passage: what the passage does not hold is dropped,
and the example stays with at least two entities and one relationship. Pure: nothing is sent. Keep out: the order of the
requests, and prompt files (`tuner.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pydantic import BaseModel

from graphrag_pipeline.engines.model.extraction.kept_records import PassageNames
from graphrag_pipeline.engines.model.extraction.reply_records import (
    ExtractedEntity,
    ExtractedRelationship,
    ExtractionReply,
    read_record,
    read_type,
)
from graphrag_pipeline.engines.model.tuning.sampling import MARKS, Passage
from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.models.ports import ChatRequest, Message, ReplyFormatError
from graphrag_pipeline.models.prompts import Prompt, instruct_language
from graphrag_pipeline.models.reply_json import clean_text, json_schema_format, list_limit, read_json
from graphrag_pipeline.query.model_requests import as_data

MIN_TYPES = 2
MAX_TYPES = 12
"""Most entity types of a tuned prompt; small models mix up more."""
MAX_VALUE = 400  # characters
MAX_TYPE_WORDS, MAX_TYPE_LENGTH = 3, 40
CATCH_ALL = {"OTHER", "OTHERS", "UNKNOWN", "MISC", "MISCELLANEOUS", "ENTITY", "TYPE", "NONE", "THING", "NAME"}
"""Types that say nothing, and words of the prompt in their place."""
MIN_SUPPORT = 0.5
"""Least share of the longer words of a description that the passage must have."""
MIN_STRENGTH, USUAL_STRENGTH = 1.0, 5.0
"""Least strength that the prompt allows, and that of a relationship with a smaller one, such as the prompt's own 0."""
MIN_ENTITIES = 2
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
class Example:
    """A checked example.

    Attributes:
        coverage: share of the embedded engine's names in the passage that the example has; 1 without such names.
    """

    passage: Passage
    entities: tuple[ExtractedEntity, ...]
    relationships: tuple[ExtractedRelationship, ...]
    coverage: float


def ask_corpus(prompt: Prompt, sample: str) -> ChatRequest[Description]:
    """Return the request for domain, language and persona."""
    messages = _open(prompt, "Describe the collection.", context_data=as_data(sample))
    return ChatRequest("corpus", messages, partial(read_description, prompt=prompt), CORPUS_FORMAT, limits=LIMITS)


def ask_types(
    prompt: Prompt, description: Description, sample: str, *, max_types: int, names: Collection[str]
) -> ChatRequest[ReadTypes]:
    """Return the request for entity types.

    Args:
        names: titles of entities in the sample; they are not types.
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
) -> ChatRequest[ExtractionReply]:
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
        ReplyFormatError: domain or language is missing, repeats the prompt, or cannot stand in a prompt file.
    """
    values = _read_texts(reply, ("domain", "language"), prompt)
    try:
        persona = _read_texts(reply, ("persona",), prompt)["persona"]
        persona = persona if persona[-1] in ".!?\u3002" else f"{persona}."
    except ReplyFormatError:
        persona = ""
    language = " ".join(_WORD.findall(values["language"])[:3])
    if not language or any(map(str.isdigit, language)):
        raise ReplyFormatError(f"language: {values['language']!r} is not the name of a language")
    return Description(values["domain"].rstrip(" ."), language, persona)


def read_rating(reply: str, prompt: Prompt) -> RatingScale:
    """Read the rating scale.

    Raises:
        ReplyFormatError: a part is missing, repeats the prompt, or both ends are equal.
    """
    values = _read_texts(reply, ("criterion", "low", "high"), prompt)
    if values["low"].casefold() == values["high"].casefold():
        raise ReplyFormatError("low and high describe the same group")
    return RatingScale(*(value.rstrip(" .") for value in values.values()))


def read_types(reply: str, max_types: int, names: Collection[str] = ()) -> ReadTypes:
    """Read the entity types, in upper case, each once.

    Args:
        names: titles of entities in the sample, which are no types.

    Raises:
        ReplyFormatError: fewer than `MIN_TYPES` types can be used.
    """
    listed = _object(reply, "entity_types").get("entity_types")
    refused: Counter[str] = Counter()
    found: dict[str, None] = {}
    for item in listed if isinstance(listed, list) else []:
        name = " ".join(_WORD.findall(read_type(item, refused))) if isinstance(item, str) else ""
        if not any(map(str.isalpha, name)) or _PLACEHOLDER.fullmatch(str(item).strip()):
            refused["type without a name"] += 1
        elif len(name.split()) > MAX_TYPE_WORDS or len(name) > MAX_TYPE_LENGTH:
            refused["type too long"] += 1
        elif name in CATCH_ALL:
            refused["type that catches all"] += 1
        elif normalize_title(name) in names:
            refused["type that is a name in the texts"] += 1
        elif name in found or len(found) == max_types:
            refused["type repeated" if name in found else "type beyond the most"] += 1
        else:
            found[name] = None
    refused = +refused
    if len(found) < MIN_TYPES:
        reasons = ", ".join(f"{n} x {reason}" for reason, n in refused.items())
        raise ReplyFormatError(f"fewer than {MIN_TYPES} usable entity types{f' ({reasons})' if reasons else ''}")
    return ReadTypes(tuple(found), dict(refused))


def read_example(reply: str) -> ExtractionReply:
    """Read the entities and relationships of an example.

    Raises:
        ReplyFormatError: the reply has no entity.
    """
    values, problems = _object(reply, "entities"), Counter[str]()
    read: dict[str, list[Any]] = {}
    for kind, model in (("entities", ExampleEntity), ("relationships", ExampleRelationship)):
        listed = values.get(kind)
        rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
        fields = ([str(row.get(name) or "") for name in model.model_fields] for row in rows)
        name = "entity" if model is ExampleEntity else "relationship"
        read[kind] = list(filter(None, (read_record(name, some, problems) for some in fields)))
    if not read["entities"]:
        raise ReplyFormatError(f"no entity; the reply starts {reply[:80]!r}")
    return ExtractionReply(tuple(read["entities"]), tuple(read["relationships"]), (), True, False, dict(+problems))


def _object(reply: str, name: str) -> dict[str, Any]:
    """Return the first JSON object of a reply that has a key; empty without one."""
    return next((value for value in read_json(reply) if isinstance(value, dict) and name in value), {})


def _read_texts(reply: str, names: Sequence[str], prompt: Prompt) -> dict[str, str]:
    values = _object(reply, names[0])
    texts = {}
    for name in names:
        value = values.get(name)
        text = " ".join(clean_text(value).split()) if isinstance(value, str) else ""
        if not any(map(str.isalpha, text)):
            raise ReplyFormatError(f"{name}: no text; the reply starts {reply[:80]!r}")
        if _PLACEHOLDER.fullmatch(text) or prompt.echoes.holds(text):
            raise ReplyFormatError(f"{name}: {text[:80]!r} is the text of the instructions, not a value")
        if len(text) > MAX_VALUE or MARKS.search(text):
            raise ReplyFormatError(f"{name}: longer than {MAX_VALUE} characters, or with marks of a prompt")
        texts[name] = text
    return texts


# ------------------------------------------------------------------------------------------------------------- examples


def check_example(
    draft: ExtractionReply, passage: Passage, entity_types: Collection[str], refused: Counter[str]
) -> Example | None:
    """Return what holds of a draft, None if too little; each dropped record is counted in `refused` by its reason.

    An entity stays if the passage has all words of its name and its type is in the list, a relationship if both ends
    stay. Of either, the passage must have most of the words of the description.
    """
    names = PassageNames(passage.text)
    entities: dict[str, ExtractedEntity] = {}
    for entity in draft.entities:
        key = normalize_title(entity.name)
        if not names.hold(entity.name, is_exact=True):
            refused["entity not in its passage"] += 1
        elif entity.type not in entity_types:
            refused["entity of a type outside the list"] += 1
        elif reason := _refuse_description(entity, names) or ("entity repeated" if key in entities else ""):
            refused[reason] += 1
        else:
            entities[key] = replace(entity, name=_as_written(entity.name, passage.text))
    pairs: dict[frozenset[str], ExtractedRelationship] = {}
    for pair in draft.relationships:
        source, target = (entities.get(normalize_title(end)) for end in (pair.source, pair.target))
        if source is None or target is None or source is target:
            refused["relationship without two entities of the example"] += 1
            continue
        ends = frozenset((source.name, target.name))
        if reason := _refuse_description(pair, names) or ("relationship repeated" if ends in pairs else ""):
            refused[reason] += 1
        else:
            strength = pair.strength if pair.strength >= MIN_STRENGTH else USUAL_STRENGTH
            pairs[ends] = replace(pair, source=source.name, target=target.name, strength=strength)
    if len(entities) < MIN_ENTITIES or not pairs:
        refused["example with fewer than 2 entities or without a relationship"] += 1
        return None
    found = PassageNames("\n".join(entity.name for entity in entities.values()))
    coverage = sum(map(found.hold, passage.names)) / len(passage.names) if passage.names else 1.0
    return Example(passage, tuple(entities.values()), tuple(pairs.values()), round(coverage, 4))


def _refuse_description(record: ExtractedEntity | ExtractedRelationship, passage: PassageNames) -> str:
    """Return why a record cannot be used for its description; "" if it can."""
    kind = "entity" if isinstance(record, ExtractedEntity) else "relationship"
    if not record.description or MARKS.search(record.description):
        return f"{kind} without a usable description"
    is_said = passage.share_of(record.description) >= MIN_SUPPORT
    return "" if is_said else f"{kind} described by what its passage does not say"


def _as_written(name: str, text: str) -> str:
    """Return a name as the text writes it, such as in another case; the name itself if the text does not hold it."""
    found = re.search(r"\s+".join(map(re.escape, name.split())), text, re.IGNORECASE)
    return found.group(0) if found else name


def choose_examples(
    examples: Sequence[Example], n: int, fit: Callable[[Sequence[Example]], bool] = lambda _: True
) -> list[Example]:
    """Return the `n` examples with the highest coverage, then most relationships, in the order of their passages.

    Args:
        fit: whether a prompt with some examples is short enough; an example that makes it too long is passed over.
    """
    order = sorted(range(len(examples)), key=lambda i: (-examples[i].coverage, -len(examples[i].relationships), i))
    chosen: list[int] = []
    for place in order:
        with_it = sorted([*chosen, place])
        if len(chosen) < n and fit([examples[i] for i in with_it]):
            chosen = with_it
    return [examples[i] for i in chosen]
