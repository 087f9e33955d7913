"""Records of an extraction reply that are about the passage: names that it holds in some form, descriptions of its own.

A small model names entities that the passage does not mention, often those of its prompt's example. A name is in a
passage if at least half of its words are, in any order, case and inflection, or if it is an acronym of words there or
the other way round. All words of a name of the prompt's example must be there as they are written. In scripts without
spaces, half of the characters must be there in a row. A name in a script that the passage does not use, such as a
translated one, cannot be judged and stays. A relationship needs both ends, a claim its subject.

A sentence of a description is left out if it repeats the prompt (`models/prompt_echoes.py`), unless the passage has
most of its words, or if it has a name of the example that the passage does not have.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

from rapidfuzz.distance.Prefix import similarity

from graphrag_pipeline.engines.model.extraction.reply_records import (
    ExtractedClaim,
    ExtractedEntity,
    ExtractedRelationship,
    ExtractionReply,
)
from graphrag_pipeline.models.ports import ReplyFormatError
from graphrag_pipeline.models.prompt_echoes import PromptEchoes
from graphrag_pipeline.text.languages import SMALL_WORDS, is_unspaced
from graphrag_pipeline.text.name_words import HONORIFICS, LEGAL_SUFFIXES
from graphrag_pipeline.text.sentence_forms import find_words
from graphrag_pipeline.text.sentences import split_sentences

R = TypeVar("R", ExtractedEntity, ExtractedRelationship)

ABSENT_NAME = "entity not named in the text"
ABSENT_END = "relationship of a name not in the text"
ABSENT_SUBJECT = "claim about a name not in the text"
ABSENT_OBJECT = "object of a claim not in the text"
ECHO = "text of the prompt"
MAX_LISTED = 5
"""Names that the reason of a failure lists."""
OWN_SHARE = 0.8
"""A description that repeats the prompt is kept if the passage holds this share of its words: an example may be taken
from it."""
MOST_ENDING, LEAST_STEM = 3, 5
"""Letters in which the forms of a word may differ at the end if they share so many at the start; Tarn is not Tarnby."""

_OPTIONAL = frozenset().union(*SMALL_WORDS.values(), (word.casefold() for word in HONORIFICS | LEGAL_SUFFIXES))
"""Words of a name that a passage may lack: articles, honorifics, legal forms."""


class PassageNames:
    """The forms of names that a passage holds.

    Args:
        text: of the passage, as the model read it.
    """

    def __init__(self, text: str) -> None:
        written = _words_of(text)
        self._words = list(map(_fold, written))
        self._initials = "".join(_fold(word[0]) for word in written if word[0].isupper())

    def hold(self, name: str, is_exact: bool = False) -> bool:
        """Return whether the passage holds a name, or only one with all its words as they are if `is_exact`."""
        is_acronym, name = name.isupper(), _fold(name)
        script = _script_of(name)
        if script and script not in self._scripts:
            return not is_exact
        every = _words_of(name)
        if any(map(is_unspaced, name)) or not every:
            return self._hold_characters("".join(every), is_exact)
        words = [word for word in every if word not in _OPTIONAL and (len(word) > 1 or word.isdigit())] or every
        if is_exact:
            return set(words) <= set(self._words)
        if is_acronym and len(name) > 1 and "".join(every) in self._initials:
            return True
        initials = "".join(word[0] for word in every)
        return 2 * sum(map(self._hold_word, words)) >= len(words) or (len(words) > 1 and initials in self._words)

    def share_of(self, text: str) -> float:
        """Return the share of the longer words of a text that the passage holds; 0 if it has none."""
        words = [word for word in _words_of(_fold(text)) if len(word) > MOST_ENDING or is_unspaced(word[0])]
        return sum(map(self._hold_word, words)) / max(len(words), 1)

    def _hold_word(self, word: str) -> bool:
        return any(_are_forms(word, other) for other in self._words_by_start.get(word[:MOST_ENDING], ()))

    def _hold_characters(self, name: str, is_exact: bool) -> bool:
        joined = "".join(self._words)
        least = len(name) if is_exact else max(2, (len(name) + 1) // 2)
        return any(name[start : start + least] in joined for start in range(max(len(name) - least, 0) + 1))

    @cached_property
    def _words_by_start(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for word in self._words:
            found.setdefault(word[:MOST_ENDING], set()).add(word)
        return found

    @cached_property
    def _scripts(self) -> set[str]:
        return {_script_of(word) for word in set(self._words)}


def _words_of(text: str) -> list[str]:
    """Return the words of a text, without the apostrophes in them; single characters in scripts without spaces."""
    return [part for word in find_words(text) for part in word.replace("\u2019", "'").split("'") if part]


def _fold(text: str) -> str:
    """Return a text without case and marks."""
    bare = unicodedata.normalize("NFKD", text).casefold()
    return "".join(letter for letter in bare if not unicodedata.combining(letter))


def _are_forms(word: str, other: str) -> bool:
    """Return whether two words are forms of one: they share a start and differ in their endings."""
    shared = similarity(word, other)
    n_left = max(len(word), len(other)) - shared
    return n_left <= MOST_ENDING if shared >= LEAST_STEM else n_left <= (shared >= MOST_ENDING)


def _script_of(text: str) -> str:
    """Return the script of the first letter, such as LATIN; "" without letters."""
    letter = next(filter(str.isalpha, text), "")
    return unicodedata.name(letter, "").partition(" ")[0].partition("-")[0] if letter else ""


class RecordFilter:
    """Keeps the records that are about a passage.

    Args:
        text: of the passage.
        echoes: of the prompt.
    """

    def __init__(self, text: str, echoes: PromptEchoes) -> None:
        self._text = text
        self._passage = PassageNames(text)
        self._echoes = echoes
        self._absent = [name for name in echoes.example_names if not self._passage.hold(name, is_exact=True)]

    def keep(self, reply: ExtractionReply) -> ExtractionReply:
        """Return a reply without other records; `problems` counts them."""
        problems = Counter(reply.problems)
        relationships = [pair for pair in reply.relationships if self._holds(pair.source) and self._holds(pair.target)]
        entities = [entity for entity in reply.entities if self._holds(entity.name)]
        claims = [claim for claim in reply.claims if self._holds(claim.subject)]
        problems[ABSENT_NAME] += len(reply.entities) - len(entities)
        problems[ABSENT_END] += len(reply.relationships) - len(relationships)
        problems[ABSENT_SUBJECT] += len(reply.claims) - len(claims)
        return replace(
            reply,
            entities=tuple(self._describe(entity, problems) for entity in entities),
            relationships=tuple(self._describe(pair, problems) for pair in relationships),
            claims=tuple(self._keep_object(claim, problems) for claim in claims),
            problems=dict(sorted((+problems).items())),
        )

    def _holds(self, name: str) -> bool:
        return name.casefold() not in map(str.casefold, self._absent) and self._passage.hold(name)

    def _describe(self, record: R, problems: Counter[str]) -> R:
        """Return a record without the sentences of its description that are about the example."""
        sentences = [record.description[start:end] for start, end in split_sentences(record.description)]
        own = list(filter(self._is_own, sentences))
        if len(own) == len(sentences):
            return record
        problems[ECHO] += 1
        return replace(record, description="".join(own).strip())

    def _is_own(self, sentence: str) -> bool:
        if any(" " in name and name in sentence for name in self._absent):
            return False
        return not self._echoes.holds(sentence, self._text) or self._passage.share_of(sentence) >= OWN_SHARE

    def _keep_object(self, claim: ExtractedClaim, problems: Counter[str]) -> ExtractedClaim:
        if claim.object == "NONE" or self._holds(claim.object):
            return claim
        problems[ABSENT_OBJECT] += 1
        return replace(claim, object="NONE")


def refuse_foreign(kept: ExtractionReply, reply: ExtractionReply) -> ExtractionReply:
    """Return `kept`, the records of `reply` that are about the text unit.

    Claims need none: most texts have no claim, and the records of the graph must not be lost for it.

    Raises:
        ReplyFormatError: no entity or relationship of the reply is left; the message is also sent to the model.
    """
    ends = (end for pair in reply.relationships for end in (pair.source, pair.target))
    names = list(dict.fromkeys([*(entity.name for entity in reply.entities), *ends]))
    if kept.n_records or not names:
        return kept
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    listed = ", ".join(repr(name[:60]) for name in names[:MAX_LISTED]) + more
    raise ReplyFormatError(
        f"none of the {reply.n_records} records is about the passage, which does not name {listed}. Record "
        "what the passage names. A passage that names nothing gets <|COMPLETE|> alone"
    )
