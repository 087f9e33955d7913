"""Replies of the demo model to the prompts of `tune` (see `replies.py`): rules on the passages that it is shown."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from graphrag_pipeline.demo_model.extraction import find_pairs, find_titles, split_sentences
from graphrag_pipeline.demo_model.prompts import PromptMessages, number_of, read_entity_types

_DATA_TAGS = re.compile(r"^<data>$(.*?)^</data>$", re.MULTILINE | re.DOTALL)
_PASSAGE = re.compile(r"^Passage \d+: ", re.MULTILINE)
_NOUN = re.compile(r"\b[a-zà-öø-ÿ]{5,}\b")
_LANGUAGE_WORDS = {
    "German": {"der", "die", "und", "das", "ist", "nicht"},
    "French": {"le", "la", "les", "et", "des", "est"},
    "English": {"the", "and", "of", "to", "was", "in"},
}
_TYPES = ("PERSON", "ORGANIZATION", "PLACE", "EVENT")
_MAX_SUBJECTS = 3


def describe_corpus(conversation: PromptMessages) -> dict[str, Any]:
    """Domain and persona from the commonest names, the language from the commonest function words."""
    text = _data_of(conversation)
    subjects = ", ".join(_commonest_names(text)) or "nothing that is named"
    words = Counter(re.findall(r"\w+", text.lower()))
    language = max(_LANGUAGE_WORDS, key=lambda name: (sum(words[word] for word in _LANGUAGE_WORDS[name]), name))
    return {
        "domain": f"records on {subjects}",
        "language": language if words else "English",
        "persona": f"You are an archivist who knows {subjects} and finds facts about them for readers.",
    }


def choose_entity_types(conversation: PromptMessages) -> dict[str, Any]:
    """Four usual types and the two commonest long words of the passages."""
    words = Counter(_NOUN.findall(_data_of(conversation)))
    ranked = sorted(words, key=lambda word: (-words[word], word))[:2]
    return {"entity_types": [*_TYPES, *(word.upper() for word in ranked)]}


def define_rating(conversation: PromptMessages) -> dict[str, Any]:
    """A scale around the commonest name."""
    [subject] = _commonest_names(_data_of(conversation))[:1] or ["the subject"]
    return {
        "criterion": f"how much the group changes what is known about {subject}",
        "low": f"names beside {subject} without a part in any event",
        "high": f"the group that decides what happens to {subject}",
    }


def make_example(conversation: PromptMessages) -> dict[str, Any]:
    """Names of the passage and pairs of neighbours, each described by its sentence."""
    sentences = split_sentences(_data_of(conversation))
    types = read_entity_types(conversation)
    entities: dict[str, dict[str, Any]] = {}
    for sentence in sentences:
        for title in find_titles(sentence):
            kind = types[number_of(title, len(types))]
            entities.setdefault(title, {"name": title, "type": kind, "description": sentence})
    pairs = {
        frozenset(pair): {"source": pair[0], "target": pair[1], "description": sentence, "strength": 5}
        for sentence in reversed(sentences)
        for pair in find_pairs(sentence)
    }
    return {"entities": list(entities.values()), "relationships": list(reversed(pairs.values()))}


def _data_of(conversation: PromptMessages) -> str:
    found = _DATA_TAGS.search(conversation.opening)
    return _PASSAGE.sub("", found[1]) if found else ""


def _commonest_names(text: str) -> list[str]:
    titles = Counter(title for sentence in split_sentences(text) for title in find_titles(sentence))
    return [title.title() for title in sorted(titles, key=lambda title: (-titles[title], title))[:_MAX_SUBJECTS]]
