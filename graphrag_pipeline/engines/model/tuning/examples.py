"""Examples of extraction that a model wrote, checked against their passage: what the passage does not hold is dropped.

An entity stays if its name occurs in the passage, its type is in the list, and its description says what the passage
says. A relationship stays if both ends stay and its description says what the passage says. An example stays with at
least two entities and one relationship. Keep out: the request (`requests.py`), the prompt file (`composition.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from graphrag_pipeline.engines.model.extraction.passage_names import PassageNames
from graphrag_pipeline.engines.model.extraction.reply_fields import (
    ExtractedEntity,
    ExtractedRelationship,
    read_entity,
    read_relationship,
)
from graphrag_pipeline.engines.model.tuning.sampling import Passage
from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.text.extractive import words_of

MIN_SUPPORT = 0.5
"""Least share of the words of a description that the passage must have."""
MIN_STRENGTH, USUAL_STRENGTH = 1.0, 5.0
"""Least strength that the prompt allows, and that of a relationship with a smaller one, such as the prompt's own 0."""
MIN_ENTITIES, MIN_RELATIONSHIPS = 2, 1
_STEM = 4  # first letters of a word that stand for its forms
_MIN_INFLECTED = 4
_WITHOUT_SPACES = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_MARKS = re.compile(r"<\||\|>|##|</?\s*(?:text|data|passage|input_text|document)\b", re.IGNORECASE)


@dataclass(frozen=True)
class DraftedExample:
    """What a model wrote about a passage, before it is checked."""

    entities: tuple[ExtractedEntity, ...]
    relationships: tuple[ExtractedRelationship, ...]


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


def read_draft(values: Mapping[str, object], problems: Counter[str]) -> DraftedExample:
    """Return the entities and relationships of a reply in JSON; what cannot be read is counted in `problems`."""
    entities = [
        read_entity(_text(item, "name"), _text(item, "type"), _text(item, "description"), problems)
        for item in _items(values, "entities")
    ]
    relationships = [
        read_relationship(
            _text(item, "source"),
            _text(item, "target"),
            _text(item, "description"),
            _text(item, "strength"),
            problems,
        )
        for item in _items(values, "relationships")
    ]
    return DraftedExample(tuple(filter(None, entities)), tuple(filter(None, relationships)))


def _items(values: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    listed = values.get(name)
    return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []


def _text(item: Mapping[str, object], name: str) -> str:
    value = item.get(name)
    return "" if value is None else str(value)


def check_example(
    draft: DraftedExample, passage: Passage, entity_types: Collection[str], refused: Counter[str]
) -> Example | None:
    """Return what holds of a draft, None if too little; each dropped record is counted in `refused` by its reason."""
    entities: dict[str, ExtractedEntity] = {}
    for entity in draft.entities:
        reason = _refuse_entity(entity, passage.text, entity_types)
        if reason is None and normalize_title(entity.name) in entities:
            reason = "entity repeated"
        if reason:
            refused[reason] += 1
        else:
            entities[normalize_title(entity.name)] = replace(entity, name=find_written(entity.name, passage.text))
    pairs: dict[frozenset[str], ExtractedRelationship] = {}
    for relationship in draft.relationships:
        ends = frozenset(map(normalize_title, (relationship.source, relationship.target)))
        reason = _refuse_relationship(relationship, ends, passage.text, entities)
        if reason is None and ends in pairs:
            reason = "relationship repeated"
        if reason:
            refused[reason] += 1
        else:
            source, target = (entities[normalize_title(end)].name for end in (relationship.source, relationship.target))
            strength = relationship.strength if relationship.strength >= MIN_STRENGTH else USUAL_STRENGTH
            pairs[ends] = replace(relationship, source=source, target=target, strength=strength)
    if len(entities) < MIN_ENTITIES or len(pairs) < MIN_RELATIONSHIPS:
        refused["example with fewer than 2 entities or without a relationship"] += 1
        return None
    coverage = _measure_coverage(passage.names, [entity.name for entity in entities.values()])
    return Example(passage, tuple(entities.values()), tuple(pairs.values()), coverage)


def _refuse_entity(entity: ExtractedEntity, passage: str, entity_types: Collection[str]) -> str | None:
    if not PassageNames(passage).hold(entity.name, is_exact=True):
        return "entity not in its passage"
    if entity.type not in entity_types:
        return "entity of a type outside the list"
    return _refuse_description(entity.description, passage, "entity")


def _refuse_relationship(
    relationship: ExtractedRelationship, ends: frozenset[str], passage: str, entities: Collection[str]
) -> str | None:
    if len(ends) < 2 or not ends <= set(entities):
        return "relationship without two entities of the example"
    return _refuse_description(relationship.description, passage, "relationship")


def _refuse_description(description: str, passage: str, kind: str) -> str | None:
    if not description or _MARKS.search(description):
        return f"{kind} without a usable description"
    if measure_support(description, passage) < MIN_SUPPORT:
        return f"{kind} described by what its passage does not say"
    return None


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


def occurs(name: str, text: str) -> bool:
    """Whether a text holds a name, in any case, quotes and white space, at the borders of words.

    A name of `_MIN_INFLECTED` letters may have an ending of at most two more ("Berlins"). Scripts without spaces have
    no borders of words.
    """
    wanted = normalize_title(name)
    if not wanted or _WITHOUT_SPACES.search(wanted):
        return bool(wanted) and wanted in normalize_title(text)
    ending = r"\w{0,2}" if len(wanted) >= _MIN_INFLECTED else ""
    return re.search(rf"(?<!\w){re.escape(wanted)}{ending}(?!\w)", normalize_title(text)) is not None


def find_written(name: str, text: str) -> str:
    """Return a name as the text writes it, such as in another case; the name itself if the text does not hold it."""
    found = re.search(r"\s+".join(map(re.escape, name.split())), text, re.IGNORECASE)
    return found.group(0) if found else name


def measure_support(description: str, passage: str) -> float:
    """Return the share of the distinct words of a description, by their first letters, that the passage has."""
    said, given = ({word[:_STEM] for word in words_of(text)} for text in (description, passage))
    return len(said & given) / len(said) if said else 0.0


def _measure_coverage(names: Collection[str], found: Sequence[str]) -> float:
    """Return the share of names that are found, as a whole or as a part of a longer name."""
    titles = [normalize_title(name) for name in found]
    hits = sum(any(occurs(name, title) or occurs(title, name) for title in titles) for name in names)
    return round(hits / len(names), 4) if names else 1.0
