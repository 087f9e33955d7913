"""The values that the steps of a search make: records, context, citations and answer, all frozen and picklable.

Keep out: how they are found, how they are written out (`rendering.py`), and the result (`search_result.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from graphrag_pipeline.citations import KIND_OF_RECORD, render_citation
from graphrag_pipeline.text.structure import Headings, read_structure


@dataclass(frozen=True)
class EntityRecord:
    """An entity matched to the question.

    Attributes:
        rank: number of its relationships.
        score: cosine similarity to the question.
        match: how it was found: "name" (the question contains its name) or "vector".
    """

    id: str
    human_readable_id: int
    title: str
    type: str
    description: str
    rank: int
    score: float
    match: str
    n_tokens: int


@dataclass(frozen=True)
class RelationshipRecord:
    """A relationship that touches a matched entity.

    Attributes:
        rank: combined degree of its two entities.
        score: number of matched entities at its ends (in the network: 2), or that its outside entity touches.
    """

    id: str
    human_readable_id: int
    source: str
    target: str
    description: str
    weight: float
    rank: int
    score: float
    is_in_network: bool
    n_tokens: int


@dataclass(frozen=True)
class ReportRecord:
    """A community report.

    Attributes:
        content: the whole report in markdown, or its summary if only that is read; its citations use human-readable
            ids.
        rank: the report's own rating, 0-10.
        score: local search: number of matched entities inside; global search: rating against the question, 0-5.
    """

    id: str
    human_readable_id: int
    community: int
    level: int
    title: str
    summary: str
    content: str
    size: int
    rank: float
    score: float
    n_tokens: int


@dataclass(frozen=True)
class ClaimRecord:
    """A claim about a matched entity; `score` is that entity's similarity."""

    id: str
    human_readable_id: int
    subject: str
    object: str
    type: str
    status: str
    start_date: str | None
    end_date: str | None
    description: str
    source_text: str
    text_unit_id: str
    score: float
    n_tokens: int


@dataclass(frozen=True)
class TextUnitRecord:
    """A text unit, or an excerpt of one: then `text`, `start`, `end` and `n_tokens` are those of the excerpt.

    Attributes:
        start: character offsets into the document; null where an import has none.
        header_start, header_end: offsets of the table header that `text` repeats before `start`; None if it has none.
        headings: above its first block that is not a title.
        first_page, last_page: of the whole text unit; None if not known.
        score: local search: the PageRank relevance, 0-1, if the strategy ranks by it; else the similarity of the entity
            that the text unit was taken for, 0 if only basic search found it. Basic search: the fused score.
        entities: titles of the matched entities that it mentions.
        is_excerpt: whether `text` is only a part of the text unit; `excerpt_start` and `excerpt_end` are then its
            character offsets in the text unit's text.
    """

    id: str
    human_readable_id: int
    document_id: str
    document_title: str
    text: str
    start: int | None
    end: int | None
    n_tokens: int
    score: float
    entities: tuple[str, ...] = ()
    document_path: str = ""
    is_excerpt: bool = False
    excerpt_start: int | None = None
    excerpt_end: int | None = None

    header_start: int | None = None
    header_end: int | None = None
    headings: Headings = ()
    first_page: int | None = None
    last_page: int | None = None
    document_date: str | None = None

    @property
    def n_header(self) -> int:
        """Number of characters of `text` that repeat a table header."""
        return 0 if self.header_start is None or self.header_end is None else self.header_end - self.header_start

    def headings_at(self, place: int) -> Headings:
        """Return the headings above the first block of `text` that ends behind a place and is not a title."""
        structure = read_structure(self.text)
        return self.above(structure.headings_at(place), structure.headings_at(0))

    def above(self, own: Headings, first: Headings) -> Headings:
        """Return the headings above a block: those in `text`, behind those above it that they do not replace.

        Args:
            own: headings in `text` above the block.
            first: headings in `text` above its first block that is not a title; `headings` ends with them.
        """
        before = self.headings[: len(self.headings) - len(first)]
        return (*(above for above in before if not own or above[0] < own[0][0]), *own)

    def place_of(self, start: int, end: int) -> tuple[int, int] | tuple[None, None]:
        """Return the offsets in the document of a span of `text`; None if the text unit has none.

        A span of the table header that the text unit repeats lies where the header is. A span that begins in the header
        and ends behind it begins with the text behind it.
        """
        if self.start is None:
            return None, None
        if self.header_start is not None and end <= self.n_header:
            return self.header_start + start, self.header_start + end
        return self.start + max(start - self.n_header, 0), self.start + end - self.n_header

    def cut(self, start: int, end: int, n_tokens: int) -> TextUnitRecord:
        """Return an excerpt: the characters from `start` to `end` of the text, with their offsets in the document."""
        first, last = self.place_of(start, end)
        has_header = self.header_start is not None and start < self.n_header < end
        return replace(
            self,
            text=self.text[start:end],
            start=first,
            end=last,
            n_tokens=n_tokens,
            is_excerpt=True,
            excerpt_start=start,
            excerpt_end=end,
            headings=self.headings_at(start),
            header_start=self.header_start + start if has_header and self.header_start is not None else None,
            header_end=self.header_end if has_header else None,
        )


@dataclass(frozen=True)
class Context:
    """Records chosen for a question, each table in rank order, within the token budget."""

    entities: tuple[EntityRecord, ...] = ()
    relationships: tuple[RelationshipRecord, ...] = ()
    reports: tuple[ReportRecord, ...] = ()
    claims: tuple[ClaimRecord, ...] = ()
    text_units: tuple[TextUnitRecord, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not any(vars(self).values())

    @property
    def excerpts(self) -> tuple[TextUnitRecord, ...]:
        """The text units of which only a part is read."""
        return tuple(unit for unit in self.text_units if unit.is_excerpt)

    @property
    def n_tokens(self) -> int:
        """The sum of the records' stored token counts."""
        return sum(record.n_tokens for records in vars(self).values() for record in records)

    @property
    def record_numbers(self) -> list[int]:
        """Human-readable ids of all records, table by table."""
        return [record.human_readable_id for records in vars(self).values() for record in records]


@dataclass(frozen=True)
class Citation:
    """The source of one statement of an answer; `[number]` marks it in the answer.

    Attributes:
        kind: of the record: entity, relationship, claim, report or text_unit.
        quote: verbatim text; `document.text[start:end] == quote` where offsets are known.
        start: character offsets into the document; null where an imported text unit is not found in its document.
        text_unit: its human-readable id.
        document_path: inside the input folder; "" where an import has none.
        first_page, last_page: of the text unit; None if not known.
        document_date: ISO 8601; None if the document has none.
    """

    number: int
    kind: str
    id: str
    human_readable_id: int
    text_unit_id: str
    document_id: str
    document_title: str
    quote: str
    start: int | None
    end: int | None
    text_unit: int = -1
    document_path: str = ""
    first_page: int | None = None
    last_page: int | None = None
    document_date: str | None = None

    @property
    def record(self) -> str:
        """The record as reports and prompts cite it, such as "[Data: Relationships (12)]"."""
        return render_citation([(KIND_OF_RECORD[self.kind], [str(self.human_readable_id)])])


def name_pages(first: int | None, last: int | None) -> str:
    """Return pages in words, such as "page 3" or "pages 3-4"; "" if they are not known."""
    if first is None or last is None:
        return ""
    return f"page {first}" if first == last else f"pages {first}-{last}"


def name_place(citation: Citation) -> str:
    """Return the document of a citation, its pages and its characters, in words."""
    characters = "" if citation.start is None else f"characters {citation.start:,}-{citation.end:,}"
    pages = name_pages(citation.first_page, citation.last_page)
    return ", ".join(filter(None, [citation.document_title, pages, characters]))


@dataclass(frozen=True)
class Unread:
    """The parts of what was to be read that gave no usable reply.

    Attributes:
        parts: what they are, such as "batches of reports".
        reasons: each once.
        missed: what could not be done with them.
    """

    parts: str
    n_failed: int
    n_parts: int
    reasons: tuple[str, ...]
    missed: str = "read"

    def describe(self) -> str:
        """Return a sentence such as "1 of 4 batches of reports could not be read (no answer in 6 attempts)"."""
        return f"{self.n_failed} of {self.n_parts} {self.parts} could not be {self.missed} ({'; '.join(self.reasons)})"


@dataclass(frozen=True)
class UncitedSentence:
    """A sentence of a model's answer that cites nothing.

    Attributes:
        citation: number of the citation that was found to support it; None if nothing that was read does.
    """

    text: str
    citation: int | None = None


@dataclass(frozen=True)
class Answer:
    """Text with `[n]` markers, and their citations in that order.

    Attributes:
        engine: "embedded" or "model", whichever wrote it.
        n_invented: number of removed citations: a model cited records that it was not shown.
        failure: why the model gave no answer; "" if it did, or if no model was used.
        text_units: text units that were read besides the context; they belong to the context of the result.
        unread: what could not be read; None if all could.
        uncited: sentences of a model's answer that cite nothing.
        n_left_out: number of records or points that the model was not shown, because they do not fit its window.
        n_copied: number of sentences that a model copied from the prompt; removed, unless they were streamed.
    """

    text: str
    citations: tuple[Citation, ...] = ()
    engine: str = "embedded"
    n_invented: int = 0
    failure: str = ""
    text_units: tuple[TextUnitRecord, ...] = ()
    unread: Unread | None = None
    uncited: tuple[UncitedSentence, ...] = ()
    n_left_out: int = 0
    n_copied: int = 0
