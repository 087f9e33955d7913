"""Suggested questions without a model: what the context of the conversation leaves open.

In this order: relationships from an entity that the latest question names to one that no question has named, strongest
first; the entities of the context that no question has named, those with the most relationships first; the
reports of the context. Each asks about records of the index, so it can be answered from it.
Keep out: choosing the context.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import is_latin
from graphrag_pipeline.query.results import Context, EntityRecord
from graphrag_pipeline.query.search.leads import Lead, LeadFinder
from graphrag_pipeline.query.suggestions.suggested import OpenRecord, SuggestedQuestion

PERSON = "PERSON"
MOST_OF_A_KIND = 3
"""Questions about relationships before one about an entity or report comes, so that suggestions differ."""


def find_open_ends(index: IndexReader, asked: Sequence[str], context: Context) -> list[SuggestedQuestion]:
    """Return the questions that a context leaves open, best first.

    Args:
        asked: the questions of the conversation, the latest last; none: what the index is about.
        context: what the latest question reads.
    """
    named = _named(index, asked)
    leads = list(_ask_about_pairs(index, asked, context, named)) if asked else []
    others = [*_take_turns(_ask_about_entities(index, asked, context, named), _ask_about_reports(asked, context))]
    return [*leads[:MOST_OF_A_KIND], *others[:1], *leads[MOST_OF_A_KIND:], *others[1:]]


def _ask_about_pairs(
    index: IndexReader, asked: Sequence[str], context: Context, named: set[int]
) -> Iterator[SuggestedQuestion]:
    """Yield a question for each relationship from an entity of the latest question to one that was not named."""
    finder = LeadFinder(index, asked[-1])
    latest = _named(index, asked[-1:])
    for lead in sorted(finder.of_relationships(context, least_score=0), key=lambda lead: (-lead.weight, -lead.score)):
        if latest.intersection(lead.entities) and not named.issuperset(lead.entities):
            yield SuggestedQuestion(finder.ask(lead), _records(index, lead))


def _named(index: IndexReader, asked: Sequence[str]) -> set[int]:
    """Return the rows of the entities that questions name."""
    return {row for question in asked for row in index.names.find(question)}


def _records(index: IndexReader, lead: Lead) -> tuple[OpenRecord, ...]:
    found = index.snapshot.take("entities", list(lead.entities), ["human_readable_id", "title"])
    return tuple(OpenRecord("entity", one["human_readable_id"], one["title"]) for one in found)


def _ask_about_entities(
    index: IndexReader, asked: Sequence[str], context: Context, named: set[int]
) -> Iterator[SuggestedQuestion]:
    """Yield a question for each entity of the context that no question names."""
    entities = sorted(context.entities, key=lambda entity: -entity.rank)
    rows = index.snapshot.rows_of("entities", [entity.id for entity in entities]).tolist()
    finder = LeadFinder(index, asked[-1] if asked else "")
    for row, entity in zip(rows, entities, strict=True):
        if row not in named and finder.has_names(Lead(0, (row,))):
            [name] = finder.names_of([row])
            about = (OpenRecord("entity", entity.human_readable_id, entity.title),)
            yield SuggestedQuestion(_ask_about(name, entity, asked), about)


def _ask_about(name: str, entity: EntityRecord, asked: Sequence[str]) -> str:
    if not is_latin(asked[-1] if asked else name):
        return name
    return f"Who is {name}?" if entity.type.upper() == PERSON else f"What is said of {name}?"


def _ask_about_reports(asked: Sequence[str], context: Context) -> Iterator[SuggestedQuestion]:
    for report in context.reports:
        if is_latin(asked[-1] if asked else report.title):
            about = (OpenRecord("report", report.human_readable_id, report.title),)
            yield SuggestedQuestion(f"What are the main points about {report.title}?", about)


def _take_turns(*sources: Iterator[SuggestedQuestion]) -> Iterator[SuggestedQuestion]:
    """Yield from each source in turn until all are spent."""
    waiting = list(sources)
    while waiting:
        for source in list(waiting):
            found = next(source, None)
            if found is None:
                waiting.remove(source)
            else:
                yield found
