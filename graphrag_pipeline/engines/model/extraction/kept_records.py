"""Records of an extraction reply that are about the passage: names that it holds, descriptions that are no example's.

A relationship needs both ends, a claim its subject.

Clauses of an example that a small model writes into sentences of its own.

The example says "Ines Calvo opened the Brill Observatory in 1962 and was its first head", and the reply about another
passage "Mayor Lund met Piet Maas and was her first head". The sentence is true but for that clause. So the clause is
cut, and the rest of the sentence stays.

A clause is copied if it holds a run of words of an example value, some of them no small words, and the passage holds
none of the latter in any form. Pronouns are equal to each other. Names and numbers end a run, since they are what a
copy changes. Scripts without spaces are not judged.

How long a run must be depends on where the example is from. Those of the bundled prompts are about no corpus: four
words are enough. An example of a tuned prompt is from the corpus, whose other texts may well be described in the same
words. Of 1,888 descriptions by a large model, the first rule cut none, and 4 % if its examples were 25 descriptions of
another passage of the same book. The second rule cut 0.03 % of them.

Keep out: which forms of a name a passage holds
(`passage_names.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TypeVar

from graphrag_pipeline.engines.model.extraction.passage_names import PassageNames
from graphrag_pipeline.engines.model.extraction.reply_fields import (
    ExtractedClaim,
    ExtractedEntity,
    ExtractedRelationship,
)
from graphrag_pipeline.engines.model.extraction.reply_records import ExtractionReply
from graphrag_pipeline.models.ports import ReplyFormatError
from graphrag_pipeline.models.prompt_echoes import PromptEchoes
from graphrag_pipeline.models.prompts import default_prompts
from graphrag_pipeline.text.languages import SMALL_WORDS, UNSPACED
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.sentence_forms import fold
from graphrag_pipeline.text.sentences import split_sentences

BUNDLED_RUN = 4, 2
"""Words of a run of a bundled example, and how many of them must not be small."""
OWN_RUN = 7, 3
"""The same for examples of a user's prompt file."""
EXTRACTION_PROMPTS = ("extract_graph", "extract_claims")
_WORD = late_re(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_UNSPACED = late_re(f"[{UNSPACED}]")
_JOINT = late_re(r"\s*[,;:]\s+|\s+(?=(?:and|but|or|und|oder|aber|et|ou|mais|y|pero|e|ma|maar|en)\s)")
"""Where a clause begins: behind a comma, or in front of a conjunction."""
_CONJUNCTION = late_re(r"\A(?:and|but|or|und|oder|aber|et|ou|mais|y|pero|e|ma|maar|en)\s+")
_END = late_re(r"[.!?\u2026]*\s*\Z")
_PRONOUNS = frozenset(["he", "she", "it", "they", "him", "her", "them", "his", "its", "their", "hers", "theirs"])
_PRONOUN = "it"
_SMALL = frozenset().union(*SMALL_WORDS.values()) | _PRONOUNS

Run = tuple[str, ...]


@dataclass(frozen=True)
class _Runs:
    """Runs of words of examples.

    Attributes:
        by_length: number of words -> the runs that long.
        content: all their words that are not small.
    """

    by_length: dict[int, frozenset[Run]]
    content: frozenset[str]


def cut_copied_clauses(text: str, examples: frozenset[str], passage: PassageNames) -> str:
    """Return a text without the clauses that are copied from example values, unless the passage says the same.

    A sentence that begins with a copied clause keeps its subject if only names are in front of the copy, and a clause
    with a conjunction follows. Otherwise the whole sentence is left out.
    """
    runs = _all_runs(examples)
    if not runs.by_length:
        return text
    sentences = [text[start:end] for start, end in split_sentences(text)]
    kept = [_cut(sentence, runs, passage) for sentence in sentences]
    return text if kept == sentences else "".join(kept).strip()


def _cut(sentence: str, runs: _Runs, passage: PassageNames) -> str:
    copied = sorted(_find_copies(sentence, runs, passage))
    if not copied:
        return sentence
    starts = [0, *(joint.end() for joint in _JOINT.finditer(sentence))]
    ends = [*starts[1:], len(sentence)]
    clauses = [sentence[start:end] for start, end in zip(starts, ends, strict=True)]
    is_copied = [any(start < to and at < end for at, to in copied) for start, end in zip(starts, ends, strict=True)]
    own = [clause for clause, is_copy in zip(clauses, is_copied, strict=True) if not is_copy]
    if not own:
        return ""
    if is_copied[0]:
        subject = sentence[: copied[0][0]]
        following = _CONJUNCTION.sub("", own[0])
        if following == own[0] or not _is_only_names(subject):
            return ""
        own = [subject, following, *own[1:]]
    end = _END.search(sentence)
    return re.sub(r"[\s,;:]+\Z", "", _END.sub("", "".join(own))) + (end.group() if end else "")


def _find_copies(sentence: str, runs: _Runs, passage: PassageNames) -> Iterator[tuple[int, int]]:
    """Yield start and end of each run that is copied, in characters."""
    if sentence.isascii() and runs.content.isdisjoint(_WORD.findall(sentence.lower())):
        return
    for segment in _segments(sentence):
        for length, known in runs.by_length.items():
            for first in range(len(segment) - length + 1):
                part = segment[first : first + length]
                run = tuple([word for word, _, _ in part])
                if run in known and not passage.share_of_words(_content_of(run)):
                    yield part[0][1], part[-1][2]


def _segments(text: str) -> Iterator[list[tuple[str, int, int]]]:
    """Yield the words between names and numbers, folded, with their places."""
    segment: list[tuple[str, int, int]] = []
    for match in _WORD.finditer(text):
        if match.group()[0].islower() and not _UNSPACED.match(match.group()):
            word = fold(match.group())
            segment.append((_PRONOUN if word in _PRONOUNS else word, *match.span()))
        else:
            yield segment
            segment = []
    yield segment


@cache
def _bundled_examples() -> frozenset[str]:
    texts = default_prompts()
    return frozenset().union(*(PromptEchoes(texts[f"{name}.txt"]).example_values for name in EXTRACTION_PROMPTS))


@lru_cache(64)
def _all_runs(examples: frozenset[str]) -> _Runs:
    bundled = _bundled_examples()
    runs = _runs_of(examples & bundled, *BUNDLED_RUN) | _runs_of(examples - bundled, *OWN_RUN)
    lengths = {len(run) for run in runs}
    by_length = {length: frozenset(run for run in runs if len(run) == length) for length in sorted(lengths)}
    return _Runs(by_length, frozenset().union(*map(_content_of, runs)))


def _runs_of(examples: frozenset[str], n_words: int, min_content: int) -> frozenset[Run]:
    """Return the runs of `n_words` words of the examples' sentences, with at least `min_content` words not small."""
    found: set[Run] = set()
    for value in examples:
        for start, end in split_sentences(value):
            for segment in _segments(value[start:end]):
                words = [word for word, _, _ in segment]
                found |= {tuple(words[at : at + n_words]) for at in range(len(words) - n_words + 1)}
    return frozenset(run for run in found if len(_content_of(run)) >= min_content)


def _content_of(run: Run) -> frozenset[str]:
    return frozenset(word for word in run if word not in _SMALL)


def _is_only_names(text: str) -> bool:
    """Whether a text has words, and all but small ones are names."""
    words = [match.group() for match in _WORD.finditer(text)]
    return bool(words) and all(not word[0].islower() or word in _SMALL for word in words)


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
