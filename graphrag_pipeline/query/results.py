"""What a search returns: records, context, citations and the account, all frozen and picklable.

The JSON form (`SearchResult.to_dict`) is a contract with users: add keys, never rename one. Dagster's query jobs hand
these values from op to op. Keep out: how they are found.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from graphrag_pipeline.citations import KIND_OF_RECORD, render_citation
from graphrag_pipeline.query.answers.usage import QueryUsage

MAX_QUOTE_SHOWN = 160
"""Characters of a quote in a list of sources; the citation holds all of it."""


@dataclass(frozen=True)
class EntityRecord:
    """An entity matched to the question.

    Attributes:
        rank: number of its relationships.
        score: cosine similarity to the question.
        match: how it was found: "name" (the question says its name) or "vector".
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
        content: the whole report in markdown, or its summary where no more is read; citations in it speak of
            human-readable ids.
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
    """A text unit; `start` and `end` are character offsets into its document, null where an import has none.

    Attributes:
        score: local search: the walk's relevance, 0-1, where the strategy ranks by it, else the similarity of the
            entity it was taken for, 0 where only basic search found it; basic search: the fused score.
        entities: titles of the matched entities that it informs.
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
    def n_tokens(self) -> int:
        """Stored token counts of all records."""
        return sum(record.n_tokens for records in vars(self).values() for record in records)

    @property
    def record_numbers(self) -> list[int]:
        """Human-readable ids of all records, table by table."""
        return [record.human_readable_id for records in vars(self).values() for record in records]


@dataclass(frozen=True)
class Citation:
    """Where one statement of an answer comes from; `[number]` marks it in the answer.

    Attributes:
        kind: of the record: entity, relationship, claim, report or text_unit.
        quote: verbatim text; `document.text[start:end] == quote` wherever offsets are known.
        start: character offsets into the document; null where an imported text unit is not found in its document.
        text_unit: its human-readable id.
        document_path: inside the input folder; "" where an import has none.
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

    @property
    def record(self) -> str:
        """The record as reports and prompts cite it, such as "[Data: Relationships (12)]"."""
        return render_citation([(KIND_OF_RECORD[self.kind], [str(self.human_readable_id)])])


@dataclass(frozen=True)
class Answer:
    """Text with `[n]` markers and the citations they stand for, in that order.

    Attributes:
        engine: which wrote it: "embedded" or "model".
        n_invented: citations of a model that were of nothing it was shown, and were removed.
        failure: why the model that was asked gave no answer, empty if it did or none was.
        text_units: what it read that was not in the context; they belong to the context of the result.
    """

    text: str
    citations: tuple[Citation, ...] = ()
    engine: str = "embedded"
    n_invented: int = 0
    failure: str = ""
    text_units: tuple[TextUnitRecord, ...] = ()

    def to_markdown(self) -> str:
        """The text, and under it where each marker points."""
        return f"{self.text}\n\n{_list_sources(self.citations)}".strip()


def _list_sources(citations: Sequence[Citation]) -> str:
    return "\n".join(_source_line(citation) for citation in citations)


def _source_line(citation: Citation) -> str:
    place = "" if citation.start is None else f", characters {citation.start:,}-{citation.end:,}"
    kind = "source" if citation.kind == "text_unit" else citation.kind  # as `trace` takes it
    record = f"({kind} {citation.human_readable_id})"
    quote = " ".join(citation.quote.split())
    shown = quote if len(quote) <= MAX_QUOTE_SHOWN else f"{quote[:MAX_QUOTE_SHOWN].rsplit(' ', 1)[0]} ..."
    return f"[{citation.number}] {citation.document_title}{place} {record}: \u201c{shown}\u201d  "


@dataclass(frozen=True)
class SearchResult:
    """The answer to a question and everything needed to check it.

    Attributes:
        answer: markdown; "" where only the context was asked for.
        seconds: from question to answer, with the index open.
        snapshot: id of the index that answered.
        selection: how the context was chosen: the strategy, or the reports rated, kept and pruned.
        answering: who wrote the answer (`engine`), how many citations it invented, and why a model gave none.
        candidates: what local search could have chosen too, where that was asked for (`return_candidate_context`); the
            JSON form lists it behind the context, each record marked by `in_context`.
    """

    answer: str
    citations: tuple[Citation, ...]
    context: Context
    usage: QueryUsage
    seconds: float
    method: str
    question: str
    snapshot: str
    selection: dict[str, Any] = field(default_factory=dict)
    answering: dict[str, Any] = field(default_factory=dict)
    candidates: Context | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, dictionaries, strings and numbers."""
        return {
            "answer": self.answer,
            "citations": [{**asdict(citation), "record": citation.record} for citation in self.citations],
            "context": self._context_to_dict(),
            "usage": self.usage.to_dict(),
            "seconds": self.seconds,
            "method": self.method,
            "question": self.question,
            "snapshot": self.snapshot,
            "selection": self.selection,
            "answering": self.answering,
        }

    def _context_to_dict(self) -> dict[str, list[dict[str, Any]]]:
        chosen = {name: [_plain(record) for record in records] for name, records in vars(self.context).items()}
        if self.candidates is None:
            return chosen
        others = {name: [_plain(record) for record in records] for name, records in vars(self.candidates).items()}
        return {
            name: [{**r, "in_context": True} for r in chosen[name]] + [{**r, "in_context": False} for r in others[name]]
            for name in chosen
        }

    def to_markdown(self) -> str:
        """The answer with its sources; the context, as a model reads it, where only that was asked for."""
        if self.answer:
            return Answer(self.answer, self.citations).to_markdown()
        from graphrag_pipeline.query.context import SHOWN_COLUMNS, render_context

        filters = self.selection.get("filters", [])
        where = f" that passes {' and '.join(filters)}" if filters else ""
        shown = render_context(self.context, self.selection.get("shown_columns", SHOWN_COLUMNS))
        return shown or f"The context is empty: nothing in the index{where} matches the question."

    def sources_to_markdown(self) -> str:
        """Where each marker of the answer points, one line each."""
        return _list_sources(self.citations)

    def to_json(self, indent: int | None = 2) -> str:
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)


def _plain(record: Any) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(record).items()}
