"""Records of an extraction reply that are about the passage: names that it holds, descriptions that are no example's.

A relationship needs both ends, a claim its subject. Keep out: which forms of a name a passage holds
(`passage_names.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from graphrag_pipeline.engines.model.extraction.copied_clauses import cut_copied_clauses
from graphrag_pipeline.engines.model.extraction.passage_names import PassageNames
from graphrag_pipeline.engines.model.extraction.reply_fields import (
    ExtractedClaim,
    ExtractedEntity,
    ExtractedRelationship,
)
from graphrag_pipeline.engines.model.extraction.reply_records import ExtractionReply
from graphrag_pipeline.models.ports import ReplyFormatError
from graphrag_pipeline.models.prompt_echoes import PromptEchoes
from graphrag_pipeline.text.sentences import split_sentences

R = TypeVar("R", ExtractedEntity, ExtractedRelationship)

ABSENT_NAME = "entity not named in the text"
ABSENT_END = "relationship of a name not in the text"
ABSENT_SUBJECT = "claim about a name not in the text"
ABSENT_OBJECT = "object of a claim not in the text"
ECHO = "text of the prompt"
MAX_LISTED = 5
"""Names that the reason of a failure lists."""
MOST_SHARED = 0.5
"""A sentence that differs from one of the example in its names is kept if the passage holds more of the words that it
shares with the example."""
OWN_SHARE = 0.8
"""A description that repeats the prompt is kept if the passage holds this share of its words: an example may be taken
from it."""


class RecordFilter:
    """Keeps the records that are about a passage.

    Args:
        text: of the passage.
        echoes: of the prompt; a name of its examples must be in the passage with all its words.
    """

    def __init__(self, text: str, echoes: PromptEchoes) -> None:
        self._text = text
        self._passage = PassageNames(text)
        self._echoes = echoes
        self._held: dict[str, bool] = {}

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
        """Return whether the passage holds a name; most names are those of several records."""
        if name not in self._held:
            self._held[name] = self._passage.hold(name, is_exact=self._echoes.names(name))
        return self._held[name]

    def _describe(self, record: R, problems: Counter[str]) -> R:
        """Return a record without a description that repeats the prompt, or that is about a name of its example.

        Of a description that tells the example of other names, the other sentences and clauses stay.
        """
        text = cut_copied_clauses(record.description, self._echoes.example_values, self._passage)
        text = self._drop_swapped(text)
        is_echo = self._echoes.holds(text, self._text) and self._passage.share_of(text) < OWN_SHARE
        is_echo = is_echo or self._echoes.is_copied(text, self._text)
        is_echo = is_echo or self._echoes.finds_name(text, self._text)
        if not is_echo and text == record.description:
            return record
        problems[ECHO] += 1
        return replace(record, description="" if is_echo else text)

    def _drop_swapped(self, text: str) -> str:
        """Return a text without the sentences that are an example's with other names, in words the passage lacks."""
        kept = [text[start:end] for start, end in split_sentences(text) if not self._is_swapped(text[start:end])]
        return text if "".join(kept) == text else "".join(kept).strip()

    def _is_swapped(self, sentence: str) -> bool:
        shared = self._echoes.shared_with_example(sentence)
        return bool(shared) and self._passage.share_of_words(shared) <= MOST_SHARED

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
    raise ReplyFormatError(
        f"none of the {reply.n_records} records is about the passage, which does not name {_list_some(names)}. Record "
        "what the passage names. A passage that names nothing gets <|COMPLETE|> alone"
    )


def _list_some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return ", ".join(repr(name[:60]) for name in names[:MAX_LISTED]) + more
