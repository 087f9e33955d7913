"""Excerpts: the sentences around the mention of an entity none of whose text units fits the budget whole.

An excerpt is one span of a text unit: the sentence that mentions the entity, and its neighbours up to a limit of
tokens. Of a sentence that is longer, it is the words around the mention. A mention is, in this order:
    1. A place with one of the entity's names as whole words, in any case. Of several sentences, the one with most words
       of the question is taken.
    2. The shortest run of up to three sentences with all content words of a name in any form, since a model may have
       made the name ("Scrooge's nephew (Fred)" is found by "Scrooge had a nephew" and by "Fred").
    3. A sentence with at least half of the content words of a name: the one with the largest part of them, then the one
       with the rarest ("the Cratchit family" is found by "the two young Cratchits").
What whole text units of the same document show is not repeated: an entity whose mention lies in one of them is heard
there, and an excerpt begins behind what they show, unless its mention lies across the border.

Where hardly a text unit fits whole, excerpts are those that answer the question instead (`ExcerptFinder.answer`).

An entity without any mention stays unheard, and the result says so. Its text units are searched in the order of its
offer, more of them for names than for words, because words cost more to find.

Texts are read only for the entities asked for.

Places of text units in their documents, and the parts of a text unit that other texts show as well.

Neighbouring text units may overlap. Then a place of a document is in two text units, and reading both reads it twice.

Keep out: which entities need an excerpt (`coverage.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from graphrag_pipeline.query.context import ROW_OVERHEAD
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import content_words
from graphrag_pipeline.query.records import read_text_units
from graphrag_pipeline.query.selection.answer_passages import AnswerPassage, order_passages
from graphrag_pipeline.query.selection.local_text_units import TextUnitPool
from graphrag_pipeline.query.selection.mentions import (
    Span,
    WordedText,
    find_half,
    find_mentions,
    find_named,
    find_words,
    is_named,
    strip_span,
    words_of_name,
)
from graphrag_pipeline.query.selection.reranking import Excerpt, Pick
from graphrag_pipeline.query.understanding.entity_matching import Match
from graphrag_pipeline.text.extractive import is_near_repeat, words_of
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.sentences import split_sentences
from graphrag_pipeline.text.tokens import count_tokens

_COLUMNS = ("document_id", "start", "end")
_HEADER_COLUMNS = ("header_start", "header_end")
"""Not in a snapshot of release 0.1."""


@dataclass(frozen=True)
class _Place:
    """Character offsets in a document of a text unit and of the table header that it repeats, if any."""

    document_id: str
    start: int
    end: int
    header_start: int = 0
    header_end: int = 0

    def pieces(self) -> Iterator[tuple[int, Span]]:
        """Yield the parts of the text: where each begins in it, and its offsets in the document."""
        n_header = self.header_end - self.header_start
        if n_header:
            yield 0, (self.header_start, self.header_end)
        yield n_header, (self.start, self.end)


class DocumentPlaces:
    """Places of the text units of a pool; those that were read are kept.

    Args:
        rows: of text units; position i of the candidates is `rows[i]`.
    """

    def __init__(self, index: IndexReader, rows: np.ndarray) -> None:
        self._snapshot = index.snapshot
        self._rows = rows
        self._places: dict[int, _Place | None] = {}

    def read(self, units: Iterable[int]) -> None:
        """Read the places of some positions of the candidates, at once."""
        wanted = sorted({unit for unit in units if unit not in self._places})
        if wanted:
            known = self._snapshot.table("text_units").schema.names
            columns = [*_COLUMNS, *(name for name in _HEADER_COLUMNS if name in known)]
            found = zip(*self._snapshot.take_columns("text_units", self._rows[wanted], columns), strict=True)
            self._places.update(zip(wanted, (_place_of(*values) for values in found), strict=True))

    def shown_in(self, unit: int, shown: Sequence[tuple[int, Span | None]]) -> list[Span]:
        """Return the parts of the text of one text unit that others show, ascending and apart.

        A text unit whose place in its document is not known shows nothing and is shown by nothing.

        Args:
            shown: other text units, with the span of their text that is shown, None for the whole.
        """
        others = [(other, span) for other, span in shown if other != unit]
        if not others:
            return []
        self.read([unit, *(other for other, _ in others)])
        place = self._places[unit]
        if place is None:
            return []
        near = [
            (of, span) for other, span in others if (of := self._places[other]) and of.document_id == place.document_id
        ]
        spans = [part for of, span in near for part in _parts_of(of, span)]
        if not spans:
            return []
        found: list[Span] = []
        for first, (start, end) in place.pieces():
            found += [
                (first + max(a, start) - start, first + min(b, end) - start) for a, b in spans if a < end and b > start
            ]
        return _merge(found)


def _place_of(
    document_id: str, start: int | None, end: int | None, header_start: int | None = None, header_end: int | None = None
) -> _Place | None:
    return None if start is None or end is None else _Place(document_id, start, end, header_start or 0, header_end or 0)


def _parts_of(place: _Place, span: Span | None) -> Iterator[Span]:
    """Yield the offsets in the document of a span of a text unit's text; of all of it if that is None."""
    for first, (start, end) in place.pieces():
        if span is None:
            yield start, end
        elif span[0] < first + end - start and span[1] > first:
            yield max(start, start + span[0] - first), min(end, start + span[1] - first)


def _merge(spans: Iterable[Span]) -> list[Span]:
    """Return spans in order, those that touch or overlap as one."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


EXCERPT_OVERHEAD = ROW_OVERHEAD + 4
"""Tokens of an excerpt besides its text: those of a row, and the mark."""
READ_AT_ONCE = (3, 8, 21, 32)
"""Text units of an entity in which a name is looked for, most of its relationships first, until one has it."""
N_ANSWERING = 20
"""Most relevant text units among whose windows the answering excerpts are."""
MAX_WORDED = 6
"""Text units of an entity in which words of its names are looked for, if no text unit has a name."""
MAX_MENTIONS = 20
"""Mentions in a text unit that are compared with the question."""
_WORD = late_re(r"[\u2e80-\uffff]|[^\s\u2e80-\uffff]+")
"""A word with its punctuation; of scripts without spaces, one letter."""


@dataclass(frozen=True)
class _Mention:
    """A place in a text unit that mentions an entity: a position of the candidates, its text, and the offsets."""

    text_unit: int
    text: str
    span: Span


@dataclass(frozen=True)
class _Cut:
    """A span of a text unit, cut for entities that it mentions.

    Attributes:
        held: from the first to the last of the mentions for which entities need this cut.
    """

    entities: tuple[int, ...]
    mention: _Mention
    start: int
    end: int
    held: Span

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
        self._question = question
        self._words = content_words(question)
        self._entity_rows = [match.row for match in matches]
        self._pool = pool
        self._mentions: dict[int, list[_Mention]] = {}
        self._texts: dict[int, str] = {}
        self._worded_texts: dict[int, WordedText] = {}
        self._spans: dict[tuple[_Mention, Span, int], Span] = {}
        self._named: dict[str, list[int]] = {}
        self._places = DocumentPlaces(index, pool.rows)

    def hear(self, entities: Sequence[int], picks: Sequence[Pick]) -> list[Pick]:
        """Return picks of whole text units, each with those of some entities whose mention lies in it (`mentions`).

        Args:
            entities: none that a pick informs. A text unit of theirs may overlap a picked one.
        """
        if not entities:
            return list(picks)
        self._search(entities)
        heard: dict[int, list[int]] = {}
        of_entities = [mention.text_unit for entity in entities for mention in self._mentions[entity]]
        self._places.read([*(pick.text_unit for pick in picks), *of_entities])
        for entity in entities:
            places = (
                place
                for mention in self._mentions[entity]
                for place, pick in enumerate(picks)
                if _is_in(mention.span, self._places.shown_in(mention.text_unit, [(pick.text_unit, None)]))
            )
            if (place := next(places, None)) is not None:
                heard.setdefault(place, []).append(entity)
        return [replace(pick, mentions=tuple(heard.get(place, ()))) for place, pick in enumerate(picks)]

    def find(self, entities: Sequence[int], max_tokens: int, picks: Sequence[Pick] = ()) -> list[Pick]:
        """Return excerpts that mention some entities, in the order of the entities.

        An excerpt may mention several of them. Excerpts of one text unit do not overlap: they are joined if the whole
        fits, else they are cut at their border. Nor does an excerpt repeat what a picked text unit or an excerpt of
        another one shows. Entities that no text mentions have no excerpt.

        Args:
            max_tokens: of an excerpt, unless a mention itself has more, or mentions that overlap.
            picks: whole text units that are shown beside the excerpts.
        """
        self._search(entities)
        whole: list[tuple[int, Span | None]] = [(pick.text_unit, None) for pick in picks]
        cuts: list[_Cut] = []
        for entity in entities:
            if self._hold(entity, cuts):
                continue
            if mentions := self._mentions[entity]:
                taken = {cut.mention.text_unit for cut in cuts}
                mention = next((m for m in mentions if m.text_unit not in taken), mentions[0])
                if self._share(entity, mention, cuts):
                    continue
                shown = self._places.shown_in(mention.text_unit, [*whole, *map(_shown_by, cuts)])
                room = _room_around(mention.span, len(mention.text), shown)
                cuts.append(_Cut((entity,), mention, *self._cut(mention, room, max_tokens), mention.span))
        return [self._pick(cut) for cut in _part(cuts, max_tokens)]

    def answer(self, max_tokens: int) -> list[Pick]:
        """Return excerpts that answer the question, of the most relevant text units, in the order of relevance.

        The windows of `answer_passages.py` are taken best first, while they fit. Windows of a text unit that touch make
        one excerpt. One that overlaps or nearly repeats what another text unit shows is left out.

        Args:
            max_tokens: of all excerpts, with `EXCERPT_OVERHEAD` each.
        """
        relevance = self._pool.candidates.relevance
        if relevance is None:
            return []
        positions = np.argsort(-relevance, kind="stable")[:N_ANSWERING]
        units = read_text_units(self._index, self._pool.rows[positions], relevance[positions])
        taken: list[tuple[AnswerPassage, frozenset[str]]] = []
        spans: dict[str, list[Span]] = {unit.id: [] for unit in units}
        costs = dict.fromkeys(spans, 0)
        for passage in order_passages(self._index, self._question, units):
            unit, words = passage.unit, words_of(passage.text)
            others = [(other, known) for other, known in taken if other.unit.id != unit.id]
            if any(passage.overlaps(other) for other, _ in others) or is_near_repeat(
                words, [known for _, known in others]
            ):
                continue
            joined = _add_span(spans[unit.id], (passage.start, passage.end), unit.text)
            cost = sum(count_tokens(unit.text[start:end]) + EXCERPT_OVERHEAD for start, end in joined)
            if sum(costs.values()) - costs[unit.id] + cost > max_tokens:
                break
            spans[unit.id], costs[unit.id] = joined, cost
            taken.append((passage, words))
        return [
            self._excerpt_of(position, unit.text, span)
            for position, unit in zip(positions.tolist(), units, strict=True)
            for span in spans[unit.id]
        ]

    def _excerpt_of(self, position: int, text: str, span: Span) -> Pick:
        shown = text[slice(*span)]
        owner = int(self._pool.candidates.owners[position])
        return Pick(position, owner, Excerpt(*span, count_tokens(shown), tuple(sorted(find_named(shown, self._names)))))

    def _share(self, entity: int, mention: _Mention, cuts: list[_Cut]) -> bool:
        """Return whether a cut of an overlapping text unit shows a mention; that cut then is the entity's, too."""
        for place, cut in enumerate(cuts):
            if _is_in(mention.span, self._places.shown_in(mention.text_unit, [_shown_by(cut)])):
                cuts[place] = replace(cut, entities=(*cut.entities, entity), held=(cut.start, cut.end))
                return True
        return False

    def _hold(self, entity: int, cuts: list[_Cut]) -> bool:
        """Return whether a cut mentions an entity by name; that cut then holds the mention, too."""
        for place, cut in enumerate(cuts):
            if self._is_named(entity, cut.text):
                for start, end in find_mentions(cut.text, self._names[entity])[:1]:
                    found = (cut.start + start, cut.start + end)
                    cuts[place] = replace(cut, held=_span_of(cut.held, found))
                return True
        return False

    def _pick(self, cut: _Cut) -> Pick:
        text = cut.mention.text
        if (cut.start, cut.end) == strip_span(text, 0, len(text)):
            return Pick(cut.mention.text_unit, cut.entities[0])
        if cut.text not in self._named:
            self._named[cut.text] = find_named(cut.text, self._names)
        named = self._named[cut.text]
        excerpt = Excerpt(cut.start, cut.end, count_tokens(cut.text), tuple(sorted({*named, *cut.entities})))
        return Pick(cut.mention.text_unit, cut.entities[0], excerpt)

    def _is_named(self, entity: int, text: str) -> bool:
        return is_named(text, self._names[entity])

    @cached_property
    def _names(self) -> list[tuple[str, ...]]:
        """The names of each matched entity."""
        found = self._index.snapshot.take("entities", self._entity_rows, ["title", "names"])
        return [tuple(dict.fromkeys((row["title"], *(row["names"] or ())))) for row in found]

    def _search(self, entities: Sequence[int]) -> None:
        """Find the mentions of some entities: by name in as many text units as needed, else by the words of a name."""
        open_ = [entity for entity in entities if entity not in self._mentions]
        offered = {entity: self._offer(entity) for entity in open_}
        start = 0
        for n in READ_AT_ONCE:
            read = {entity: offered[entity][start : start + n] for entity in open_}
            self._read({unit for units in read.values() for unit in units})
            for entity, units in read.items():
                self._mentions[entity] = [m for unit in units for m in self._best(entity, unit)]
            open_ = [entity for entity in open_ if not self._mentions[entity] and len(offered[entity]) > start + n]
            start += n
        for entity, units in offered.items():
            if not self._mentions[entity]:
                self._mentions[entity] = self._of_words(entity, units[:MAX_WORDED])

    def _offer(self, entity: int) -> list[int]:
        """Return the text units of an entity that may be searched, most of its relationships first."""
        candidates = self._pool.candidates
        units, counts = candidates.text_units[entity], candidates.n_of_entity[entity]
        first: list[int] = units[np.argsort(-counts, kind="stable")][: sum(READ_AT_ONCE)].tolist()
        return first

    def _read(self, wanted: set[int]) -> None:
        """Read the texts of some positions of the candidates, at once."""
        units = sorted(wanted - set(self._texts))
        if units:
            found = self._index.snapshot.take("text_units", self._pool.rows[units], ["text"])
            self._texts.update(zip(units, (record["text"] for record in found), strict=True))

    def _best(self, entity: int, unit: int) -> Iterator[_Mention]:
        """Yield the mention by name whose sentence has most words of the question, the first of equal ones, if any."""
        text = self._texts[unit]
        spans = find_mentions(text, self._names[entity])[:MAX_MENTIONS]
        if len(spans) > 1:
            sentences = split_sentences(text)
            around = [text[slice(*sentences[_at(sentences, start)])] for start, _ in spans]
            shared = [len(self._words & content_words(sentence)) for sentence in around]
            yield _Mention(unit, text, spans[int(np.argmax(shared))])
        elif spans:
            yield _Mention(unit, text, spans[0])

    def _of_words(self, entity: int, units: Sequence[int]) -> list[_Mention]:
        """Return mentions by all words of a name, one in each text unit that has any, else the best by half of them."""
        wanted = [words for name in self._names[entity] for words in words_of_name(name)]
        texts = [self._worded(unit) for unit in units]
        found = [(unit, find_words(text, wanted)) for unit, text in zip(units, texts, strict=True)]
        if any(span for _, span in found):
            return [_Mention(unit, self._texts[unit], span) for unit, span in found if span]
        place, span = find_half(texts, wanted) or (0, None)
        return [_Mention(units[place], self._texts[units[place]], span)] if span else []

    def _worded(self, unit: int) -> WordedText:
        if unit not in self._worded_texts:
            self._worded_texts[unit] = WordedText.of(self._texts[unit])
        return self._worded_texts[unit]

    def _cut(self, mention: _Mention, room: Span, max_tokens: int) -> Span:
        """Return the span of an excerpt around a mention, within `room`."""
        key = mention, room, max_tokens
        if key not in self._spans:
            first, last = room
            span = mention.span[0] - first, mention.span[1] - first
            start, end = cut_excerpt(mention.text[first:last], span, max_tokens)
            self._spans[key] = first + start, first + end
        return self._spans[key]


def _add_span(spans: Sequence[Span], added: Span, text: str) -> list[Span]:
    """Return spans of a text in order with one more; those that overlap, or have only white space between, as one."""
    joined: list[Span] = []
    for start, end in sorted((*spans, added)):
        if joined and not text[joined[-1][1] : start].strip():
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((start, end))
    return joined


def _shown_by(cut: _Cut) -> tuple[int, Span]:
    return cut.mention.text_unit, (cut.start, cut.end)


def _is_in(span: Span, shown: Sequence[Span]) -> bool:
    return any(start <= span[0] and span[1] <= end for start, end in shown)


def _room_around(mention: Span, n: int, shown: Sequence[Span]) -> Span:
    """Return the span of a text of n characters between what is shown before a mention and behind it."""
    before = [min(end, mention[0]) for start, end in shown if start <= mention[0]]
    behind = [max(start, mention[1]) for start, end in shown if end >= mention[1]]
    return max(before, default=0), min(behind, default=n)


def _part(cuts: Sequence[_Cut], max_tokens: int) -> list[_Cut]:
    """Return cuts that do not overlap, in the order of their first entities; each mention is still in one."""
    parted: list[_Cut] = []
    for cut in sorted(cuts, key=lambda cut: (cut.mention.text_unit, cut.start, cut.entities)):
        last = parted[-1] if parted else None
        if last and last.mention.text_unit == cut.mention.text_unit and cut.start <= last.end:
            parted[-1:] = _join(last, cut, max_tokens) or _separate(last, cut)
        else:
            parted.append(cut)
    return sorted(parted, key=lambda cut: cut.entities)


def _join(first: _Cut, second: _Cut, max_tokens: int) -> list[_Cut]:
    """Return one cut for two that overlap: of both if it fits, else around the mentions; none if these do not fit."""
    text, held = first.mention.text, _span_of(first.held, second.held)
    entities = tuple(sorted(first.entities + second.entities))
    whole = first.start, max(first.end, second.end)
    if count_tokens(text[slice(*whole)]) <= max_tokens:
        return [_Cut(entities, first.mention, *whole, held)]
    start, end = cut_excerpt(text, held, max_tokens)
    span = strip_span(text, max(start, whole[0]), min(end, whole[1]))  # an excerpt before the first stays its own
    must_join = second.held[0] < first.held[1]
    if must_join or count_tokens(text[slice(*span)]) <= max_tokens:
        return [_Cut(entities, first.mention, *span, held)]
    return []


def _separate(first: _Cut, second: _Cut) -> list[_Cut]:
    """Return two cuts that overlap without what both have: it stays with the first, as far as the second allows."""
    border, text = min(first.end, second.held[0]), first.mention.text
    start, end = strip_span(text, first.start, border)
    before = replace(first, start=start, end=end)
    start, end = strip_span(text, border, max(first.end, second.end))
    return [before, replace(second, start=start, end=end)]


def _span_of(one: Span, other: Span) -> Span:
    """Return the span from the start of the first to the end of the last of two spans."""
    return min(one[0], other[0]), max(one[1], other[1])


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
    span = strip_span(text, pieces[first][0], pieces[last][1])
    if count_tokens(text[slice(*span)]) > max_tokens:
        return None
    is_behind, blocked = True, 0
    while blocked < 2:
        wider = (first, last + 1) if is_behind else (first - 1, last)
        grown = None
        if wider[0] >= 0 and wider[1] < len(pieces):
            grown = strip_span(text, pieces[wider[0]][0], pieces[wider[1]][1])
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


def _at(spans: Sequence[Span], offset: int) -> int:
    """Return the position of the span that holds an offset, the last that starts before it."""
    return max(0, int(np.searchsorted([start for start, _ in spans], offset, side="right")) - 1)
