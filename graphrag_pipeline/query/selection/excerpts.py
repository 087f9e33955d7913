"""Excerpts: the sentences around the mention of an entity none of whose text units fits the budget whole.

An excerpt is one span of a text unit: the sentence that mentions the entity, and its neighbours up to a limit of
tokens. Of a sentence that is longer, it is the words around the mention. A mention is a place with one of the entity's
names as whole words, in any case; of several sentences, the one with most words of the question is taken. Without such
a place it is the shortest run of up to three sentences with all content words of a name, since a model may have made
the name ("Scrooge's nephew (Fred)" is found by "Scrooge had a nephew" and by "Fred"). An entity without either stays
unheard, and the result says so.

Texts are read only for the entities asked for. Keep out: which entities need an excerpt (`coverage.py`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from graphrag_pipeline.query.context import ROW_OVERHEAD
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import content_words
from graphrag_pipeline.query.selection.candidates import Excerpt, Pick
from graphrag_pipeline.query.selection.local_text_units import TextUnitPool
from graphrag_pipeline.query.understanding.entity_matching import Match
from graphrag_pipeline.text.extractive import words_of
from graphrag_pipeline.text.sentences import split_sentences
from graphrag_pipeline.text.tokens import count_tokens

EXCERPT_OVERHEAD = ROW_OVERHEAD + 4
"""Tokens of an excerpt besides its text: those of a row, and the mark."""
MAX_READ = 3
"""Text units of an entity, those with most of its relationships, in which a mention is looked for."""
MAX_MENTIONS = 20
"""Mentions in a text unit that are compared with the question."""
MAX_SENTENCES = 3
"""Neighbouring sentences in which all words of a name must stand to count as a mention."""
_FIRST_UNSPACED = "\u2e80"
"""Letters from here on (Chinese, Japanese) are written without spaces between words."""
_WORD = re.compile(r"[\u2e80-\uffff]|[^\s\u2e80-\uffff]+")
"""A word with its punctuation; of scripts without spaces, one letter."""

Span = tuple[int, int]
"""Character offsets in the text of a text unit."""


@dataclass(frozen=True)
class _Mention:
    """A place in a text unit that mentions an entity: a position of the candidates, its text, and the offsets."""

    text_unit: int
    text: str
    span: Span


@dataclass(frozen=True)
class _Cut:
    """A span of a text unit, cut for entities that it mentions."""

    entities: tuple[int, ...]
    mention: _Mention
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.mention.text[self.start : self.end]


class ExcerptFinder:
    """Excerpts for the matched entities of one question; what it read is kept for the next call.

    Args:
        pool: the candidates; their text units are those of `matches`, in the same order.
    """

    def __init__(self, index: IndexReader, question: str, matches: Sequence[Match], pool: TextUnitPool) -> None:
        self._index = index
        self._words = content_words(question)
        self._entity_rows = [match.row for match in matches]
        self._pool = pool
        self._mentions: dict[int, list[_Mention]] = {}
        self._texts: dict[int, str] = {}
        self._spans: dict[tuple[_Mention, int], Span] = {}
        self._names: list[tuple[str, ...]] | None = None

    def find(self, entities: Sequence[int], max_tokens: int) -> list[Pick]:
        """Return excerpts that mention some entities, in the order of the entities.

        An excerpt may mention several of them. Excerpts of one text unit do not overlap. Entities that no text mentions
        have no excerpt.

        Args:
            max_tokens: of an excerpt for one entity.
        """
        self._read(entities)
        cuts: list[_Cut] = []
        for entity in entities:
            if any(self._is_named(entity, cut.text) for cut in cuts):
                continue
            if mentions := self._mentions_of(entity):
                taken = {cut.mention.text_unit for cut in cuts}
                mention = next((m for m in mentions if m.text_unit not in taken), mentions[0])
                cuts.append(_Cut((entity,), mention, *self._cut(mention, max_tokens)))
        return [self._pick(cut) for cut in _join(cuts)]

    def _pick(self, cut: _Cut) -> Pick:
        text = cut.mention.text
        if (cut.start, cut.end) == _strip(text, 0, len(text)):
            return Pick(cut.mention.text_unit, cut.entities[0])
        named = {entity for entity in range(len(self._entity_rows)) if self._is_named(entity, cut.text)}
        excerpt = Excerpt(cut.start, cut.end, count_tokens(cut.text), tuple(sorted(named.union(cut.entities))))
        return Pick(cut.mention.text_unit, cut.entities[0], excerpt)

    def _is_named(self, entity: int, text: str) -> bool:
        return is_named(text, self._names_of(entity))

    def _names_of(self, entity: int) -> tuple[str, ...]:
        if self._names is None:
            found = self._index.snapshot.take("entities", self._entity_rows, ["title", "names"])
            self._names = [tuple(dict.fromkeys((row["title"], *(row["names"] or ())))) for row in found]
        return self._names[entity]

    def _mentions_of(self, entity: int) -> list[_Mention]:
        """Return the best mention in each of the entity's first text units that has one; those by name first."""
        if entity not in self._mentions:
            texts = [(unit, self._texts[unit]) for unit in self._first_units(entity)]
            by_name = [m for unit, text in texts for m in self._best(unit, text, self._named_spans(entity, text))]
            by_words = [] if by_name else [m for unit, text in texts for m in self._of_words(entity, unit, text)]
            self._mentions[entity] = by_name or by_words
        return self._mentions[entity]

    def _first_units(self, entity: int) -> list[int]:
        candidates = self._pool.candidates
        units, counts = candidates.text_units[entity], candidates.n_of_entity[entity]
        first: list[int] = units[np.lexsort((units, -counts))][:MAX_READ].tolist()
        return first

    def _read(self, entities: Sequence[int]) -> None:
        """Read the texts in which mentions of some entities are looked for, at once."""
        wanted = {unit for entity in entities if entity not in self._mentions for unit in self._first_units(entity)}
        units = sorted(wanted - set(self._texts))
        if units:
            found = self._index.snapshot.take("text_units", self._pool.rows[units], ["text"])
            self._texts.update(zip(units, (record["text"] for record in found), strict=True))

    def _named_spans(self, entity: int, text: str) -> list[Span]:
        return find_mentions(text, self._names_of(entity))[:MAX_MENTIONS]

    def _best(self, unit: int, text: str, spans: Sequence[Span]) -> Iterator[_Mention]:
        """Yield the mention whose sentence has most words of the question, the first of equal ones, if there is any."""
        if len(spans) > 1:
            sentences = split_sentences(text)
            around = [text[slice(*sentences[_at(sentences, start)])] for start, _ in spans]
            shared = [len(self._words & content_words(sentence)) for sentence in around]
            yield _Mention(unit, text, spans[int(np.argmax(shared))])
        elif spans:
            yield _Mention(unit, text, spans[0])

    def _of_words(self, entity: int, unit: int, text: str) -> Iterator[_Mention]:
        """Yield the shortest run of sentences that has all words of one of the entity's names, if there is one."""
        wanted = [words for name in self._names_of(entity) for words in _words_of_names(name)]
        if span := find_words(text, wanted):
            yield _Mention(unit, text, span)

    def _cut(self, mention: _Mention, max_tokens: int) -> Span:
        if (mention, max_tokens) not in self._spans:
            self._spans[mention, max_tokens] = cut_excerpt(mention.text, mention.span, max_tokens)
        return self._spans[mention, max_tokens]


def _join(cuts: Sequence[_Cut]) -> list[_Cut]:
    """Return cuts of which overlapping ones are joined, in the order of their first entities."""
    joined: list[_Cut] = []
    for cut in sorted(cuts, key=lambda cut: (cut.mention.text_unit, cut.start, cut.entities)):
        last = joined[-1] if joined else None
        if last and last.mention.text_unit == cut.mention.text_unit and cut.start <= last.end:
            entities = tuple(sorted(last.entities + cut.entities))
            joined[-1] = _Cut(entities, last.mention, last.start, max(last.end, cut.end))
        else:
            joined.append(cut)
    return sorted(joined, key=lambda cut: cut.entities)


def find_mentions(text: str, names: Sequence[str]) -> list[Span]:
    """Return the places of names in a text, in reading order: whole words in any case; longer names first."""
    written = {" ".join(name.split()) for name in names if name.strip()}
    folded = _fold(text)
    found = [span for name in written for span in _places(folded, name.lower())] if len(folded) == len(text) else []
    if not found and written:  # more white space between words, or letters whose case changes the length
        pattern = "|".join(_pattern_of(name) for name in sorted(written, key=lambda name: (-len(name), name)))
        found = [place.span() for place in re.finditer(pattern, text, re.IGNORECASE)]
    kept: list[Span] = []
    for start, end in sorted(found, key=lambda span: (span[0], -span[1])):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end))
    return kept


def find_words(text: str, wanted: Sequence[frozenset[str]]) -> Span | None:
    """Return the first of the shortest runs of sentences that has all words of one of some names.

    Args:
        wanted: the content words of each name.
    """
    sentences = split_sentences(text)
    held = [content_words(_without_accents(text[slice(*span)])) for span in sentences]
    for n_sentences in range(1, MAX_SENTENCES + 1):
        for first in range(len(sentences) - n_sentences + 1):
            together = frozenset().union(*held[first : first + n_sentences])
            if any(words <= together for words in wanted):
                return _strip(text, sentences[first][0], sentences[first + n_sentences - 1][1])
    return None


def is_named(text: str, names: Sequence[str]) -> bool:
    """Return whether a text has one of the names as whole words, in any case; white space is as in the name."""
    folded = _fold(text)
    return any(True for name in names for _ in _places(folded, " ".join(name.lower().split())))


def _fold(text: str) -> str:
    return text.lower().replace("\n", " ").replace("\t", " ").replace("\r", " ")


def _places(folded: str, name: str) -> Iterator[Span]:
    start = folded.find(name) if name else -1
    while start >= 0:
        end = start + len(name)
        if not (_joins(folded[start - 1 : start], name[0]) or _joins(name[-1], folded[end : end + 1])):
            yield start, end
        start = folded.find(name, start + 1)


def _joins(left: str, right: str) -> bool:
    """Return whether two adjacent characters belong to one word."""
    return bool(left and right) and _is_spaced(left) and _is_spaced(right)


def _pattern_of(name: str) -> str:
    """Return a pattern for a name as whole words; white space in the text may differ."""
    before, after = (r"(?<![^\W_])" if _is_spaced(name[0]) else "", r"(?![^\W_])" if _is_spaced(name[-1]) else "")
    return before + r"\s+".join(map(re.escape, name.split())) + after


def _is_spaced(letter: str) -> bool:
    return letter.isalnum() and letter < _FIRST_UNSPACED


def cut_excerpt(text: str, mention: Span, max_tokens: int) -> Span:
    """Return a span of whole sentences around a mention, or of words if its sentence alone has too many tokens.

    It has at most `max_tokens` tokens, unless the mention itself has more. It has no outer white space.
    """
    sentences = split_sentences(text)
    first, last = _at(sentences, mention[0]), _at(sentences, max(mention[1] - 1, mention[0]))
    return _grow(text, sentences, first, last, max_tokens) or _grow_words(
        text, sentences, first, last, mention, max_tokens
    )


def _grow(text: str, pieces: Sequence[Span], first: int, last: int, max_tokens: int) -> Span | None:
    """Return pieces `first` to `last` with as many neighbours as fit, those behind and before in turn, else None."""
    span = _strip(text, pieces[first][0], pieces[last][1])
    if count_tokens(text[slice(*span)]) > max_tokens:
        return None
    is_behind, blocked = True, 0
    while blocked < 2:
        wider = (first, last + 1) if is_behind else (first - 1, last)
        grown = None
        if wider[0] >= 0 and wider[1] < len(pieces):
            grown = _strip(text, pieces[wider[0]][0], pieces[wider[1]][1])
        if grown is not None and count_tokens(text[slice(*grown)]) <= max_tokens:
            (first, last), span, blocked = wider, grown, 0
        else:
            blocked += 1
        is_behind = not is_behind
    return span


def _grow_words(text: str, sentences: Sequence[Span], first: int, last: int, mention: Span, max_tokens: int) -> Span:
    start, end = sentences[first][0], sentences[last][1]
    words = [(start + word.start(), start + word.end()) for word in _WORD.finditer(text[start:end])]
    held = [place for place, (a, b) in enumerate(words) if b > mention[0] and a < mention[1]]
    if not held:
        return mention
    return _grow(text, words, held[0], held[-1], max_tokens) or (words[held[0]][0], words[held[-1]][1])


def _without_accents(text: str) -> str:
    return "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))


def _at(spans: Sequence[Span], offset: int) -> int:
    """Return the position of the span that holds an offset, the last that starts before it."""
    return max(0, int(np.searchsorted([start for start, _ in spans], offset, side="right")) - 1)


def _strip(text: str, start: int, end: int) -> Span:
    """Return a span without outer white space."""
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())


def _words_of_names(name: str) -> Iterator[frozenset[str]]:
    """Yield the words of a name and, of "Scrooge's nephew (Fred)", those outside and inside the brackets."""
    plain = _without_accents(name)
    for part in dict.fromkeys((plain, *re.split(r"[()]", plain))):
        if words := content_words(part) or frozenset(words_of(part)):
            yield words
