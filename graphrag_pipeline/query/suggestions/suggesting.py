"""Suggesting what to ask next: the context of the conversation, then the engine that `answers` names.

Suggested questions without a model: what the context of the conversation leaves open.

In this order: relationships from an entity that the latest question names to one that no question has named, strongest
first; the entities of the context that no question has named, those with the most relationships first; the
reports of the context. Each asks about records of the index, so it can be answered from it.

Suggested questions by the chat model of `answers`.

As in the question generation of Microsoft GraphRAG, the model reads the context of a local search of the latest
question with the conversation before it, and lists candidates for the next question.

Keep out: how either engine finds questions.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.ports import ChatRequest, Failure, ReplyFormatError
from graphrag_pipeline.models.prompt_echoes import PromptEchoes
from graphrag_pipeline.models.reply_json import read_json
from graphrag_pipeline.query import records
from graphrag_pipeline.query.index_reader import IndexReader, QuestionCalls
from graphrag_pipeline.query.model_requests import as_data, open_question, read_questions, request_all
from graphrag_pipeline.query.question import is_latin, read_question
from graphrag_pipeline.query.rendering import render_context
from graphrag_pipeline.query.results import Context, EntityRecord
from graphrag_pipeline.query.search.global_ import Lead, LeadFinder
from graphrag_pipeline.query.search.local import select_local_context
from graphrag_pipeline.query.suggestions.suggested import (
    MAX_QUESTIONS,
    OpenRecord,
    SuggestedQuestion,
    SuggestedQuestions,
    without_asked,
)
from graphrag_pipeline.query.token_budget import QueryUsage
from graphrag_pipeline.query.understanding.conversation import Turn
from graphrag_pipeline.text.document_names import DOCUMENT
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.name_words import PERSON

PROMPT = "follow_up_questions"
NOT_ASKED = "(nothing has been asked yet)"
_BULLET = late_re(r"^\s*(?:[-*\u2022]|\d{1,2}[.)])\s+(.*\S)\s*$")


def request_questions(
    index: IndexReader, asked: Sequence[str], context: Context, n: int
) -> list[SuggestedQuestion] | Failure:
    """Return the questions that the model lists; a Failure if it gives none.

    Args:
        asked: the questions of the conversation, the latest last.
        n: number of questions that the model is asked for.

    Raises:
        PipelineError: no call can be answered, or the budget of the root is spent.
    """
    prompt = index.prompt(PROMPT)
    messages = open_question(
        prompt,
        index.settings.answers.language,
        "\n".join(asked) or NOT_ASKED,
        context_data=as_data(render_context(context)),
        question_count=str(n),
    )
    request = ChatRequest("questions", messages, partial(read_listed, echoes=prompt.echoes))
    [reply] = request_all(index, "answers", [request])
    if isinstance(reply, Failure):
        return reply
    return [SuggestedQuestion(text, find_named(index, text)) for text in reply.value]


def find_named(index: IndexReader, question: str) -> tuple[OpenRecord, ...]:
    """Return the entities that a question names, in its order."""
    rows = list(dict.fromkeys(row for names in index.names.take_apart(question).names for row in names))
    found = index.snapshot.take("entities", rows, ["human_readable_id", "title"])
    return tuple(OpenRecord("entity", one["human_readable_id"], one["title"]) for one in found)


def read_listed(reply: str, echoes: PromptEchoes | None = None) -> tuple[str, ...]:
    """Return the questions of a reply: the items of a bulleted or numbered list, or of a JSON list.

    Raises:
        ReplyFormatError: the reply lists no question.
    """
    bullets = [found[1].strip('*_"') for line in reply.splitlines() if (found := _BULLET.match(line))]
    if questions := read_questions(bullets or _json_list(reply) or _question_lines(reply), echoes):
        return questions
    raise ReplyFormatError(f"no list of questions; the reply starts {reply[:80]!r}")


def _json_list(reply: str) -> list[object]:
    for value in read_json(reply):
        listed = next(iter(value.values()), None) if isinstance(value, dict) else value
        if isinstance(listed, list):
            return listed
    return []


def _question_lines(reply: str) -> list[str]:
    return [line.strip() for line in reply.splitlines() if line.rstrip().endswith(("?", "\uff1f"))]


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
    reports = [*_ask_about_reports(asked, context)]
    lists = [one for one in reports if lists_names(index, one.about[0].title)]
    entities = _ask_about_entities(index, asked, context, named)
    others = [*_take_turns(entities, (one for one in reports if one not in lists)), *lists]
    return [*leads[:MOST_OF_A_KIND], *others[:1], *leads[MOST_OF_A_KIND:], *others[1:]]


def lists_names(index: IndexReader, title: str) -> bool:
    """Return whether a title is several names of entities; these may hold a comma, too."""
    start, _, last = title.rpartition(" and ")
    firsts = (start[: comma.start()] for comma in re.finditer(", |$", start))
    return bool(index.names.find_by_key(last)) and any(map(index.names.find_by_key, firsts))


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
    """Yield a question for each entity of the context that no question names; those mentioned only once come last."""
    entities = sorted(context.entities, key=lambda entity: -entity.rank)
    if not asked:  # one of each type before a second one, and a second person last
        types = [entity.type.upper() for entity in entities]
        places = [(one in types[:i]) * (2 if one == PERSON else 1) for i, one in enumerate(types)]
        entities = [entities[i] for i in np.argsort(places, kind="stable")]
    rows = index.snapshot.rows_of("entities", [entity.id for entity in entities]).tolist()
    finder = LeadFinder(index, asked[-1] if asked else "")
    n_units = index.column("entities", "frequency")[rows].tolist()
    is_rare = [n < 2 and entity.type != DOCUMENT for n, entity in zip(n_units, entities, strict=True)]
    for place in np.argsort(is_rare, kind="stable").tolist():
        row, entity = rows[place], entities[place]
        if row not in named and finder.has_names(Lead(0, (row,))):
            [name] = finder.names_of([row])
            about = (OpenRecord("entity", entity.human_readable_id, entity.title),)
            yield SuggestedQuestion(_ask_about(name, entity, asked), about)


def _ask_about(name: str, entity: EntityRecord, asked: Sequence[str]) -> str:
    if not is_latin(asked[-1] if asked else name):
        return name
    if entity.type.upper() == DOCUMENT:
        return f"What is “{name}” about?" if " " in name else f"What is {name} about?"
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


N_TOP = 20
"""Reports, and entities, that stand for an index that nothing was asked about yet."""


def suggest_questions(
    index: IndexReader, question: str = "", history: Sequence[Turn] = (), n: int = 5
) -> SuggestedQuestions:
    """Return at most `n` questions that a user might ask next; none repeats one that was asked.

    Args:
        question: the latest question; "" is the latest of the history.
        history: turns before it, oldest first.

    Raises:
        PipelineError: `n` is not 1 to `MAX_QUESTIONS`; no model call can be answered, or the root's budget is spent.
    """
    if not 1 <= n <= MAX_QUESTIONS:
        raise PipelineError(f"{n} suggested questions: ask for 1 to {MAX_QUESTIONS}")
    started = time.perf_counter()
    asked = [content for role, content in history if role == "user" and content.strip()]
    asked = [read_question(text) for text in [*asked, *filter(str.strip, [question])]]
    counted = index.for_question(QuestionCalls(scope=index.calls.scope))
    context = Context() if counted.nothing_to_read else _choose_context(counted, asked, history, bool(question.strip()))
    asks_model = index.settings.answers.uses_model and not context.is_empty
    reply = request_questions(counted, asked, context, n) if asks_model else None
    is_by_model = isinstance(reply, list)
    found = reply if isinstance(reply, list) else find_open_ends(counted, asked, context)
    return SuggestedQuestions(
        questions=without_asked(found, asked, n),
        engine="model" if is_by_model else "embedded",
        failure=reply.reason if isinstance(reply, Failure) else "",
        snapshot=index.snapshot.id,
        seconds=time.perf_counter() - started,
        usage=QueryUsage(counted.calls.account.by_model(index.settings)),
    )


def _choose_context(index: IndexReader, asked: Sequence[str], history: Sequence[Turn], is_given: bool) -> Context:
    """Return what a local search of the latest question reads; before any question, the top of the index."""
    if not asked:
        return _read_top(index)
    turns = list(history)
    if not is_given:  # the latest question is in the history: what was said before it is
        turns = turns[: max(place for place, (role, text) in enumerate(turns) if role == "user" and text.strip())]
    before = [turn for turn in turns if turn[1].strip()]
    settings = index.settings.search("local", conversation_history=tuple(before))
    return select_local_context(index, asked[-1], settings)


def _read_top(index: IndexReader) -> Context:
    """Return the reports of the widest communities by rank, and the entities with the most relationships."""
    reports = _highest(index, "community_reports", "rank", index.column("community_reports", "level") == 0)
    entities = _highest(index, "entities", "degree")
    return Context(
        entities=records.read_entities(index, entities, np.zeros(len(entities)), ["top"] * len(entities)),
        reports=records.read_reports(index, reports, np.zeros(len(reports))),
    )


def _highest(index: IndexReader, table: str, column: str, among: np.ndarray | None = None) -> np.ndarray:
    """Return the readable rows with the highest values of a column, at most `N_TOP`; equal ones in file order."""
    mask = index.row_mask(table) if among is None else index.row_mask(table) & among
    rows = np.flatnonzero(mask)
    order = np.argsort(-index.column(table, column)[rows], kind="stable")
    return rows[order][:N_TOP]
