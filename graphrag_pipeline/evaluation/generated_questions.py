"""Questions that a model generates from the text units and reports of an index."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.questions import SEED, Question
from graphrag_pipeline.models.ports import ChatRequest, Failure, ReplyFormatError
from graphrag_pipeline.models.prompt_echoes import PromptEchoes
from graphrag_pipeline.models.prompts import AUTO
from graphrag_pipeline.models.reply_json import MOST_CHARACTERS, clean_text, json_schema_format, list_limit, read_json
from graphrag_pipeline.query import records
from graphrag_pipeline.query.context import pack_rows, row_costs
from graphrag_pipeline.query.model_requests import (
    MAX_QUESTION_CHARS,
    as_data,
    open_question,
    read_questions,
    request_all,
)
from graphrag_pipeline.query.rendering import render_context
from graphrag_pipeline.query.results import Context, TextUnitRecord

if TYPE_CHECKING:
    from graphrag_pipeline.query.index.graph_index import GraphIndex

SECTION = "evaluation"
KINDS = ("global", "local")
N_PERSONAS = 5
N_TASKS = 5
"""Personas for whom questions are generated, and tasks of each (Edge et al. 2024, arXiv 2404.16130)."""
_TRIES = 5
"""Most rounds of requests when replies hold too few questions or repeat them."""


# The docstrings of these models are descriptions in the schema that is sent; request keys cover them.


class PersonaItem(BaseModel):
    """One reader of the schema that the model is asked for."""

    persona: str
    tasks: list[str]


class PersonasReply(BaseModel):
    """The schema that the model is asked for."""

    personas: list[PersonaItem]


class GlobalQuestion(BaseModel):
    """One global question of the schema that the model is asked for."""

    question: str
    answer: str


class GlobalQuestions(BaseModel):
    """The schema that the model is asked for."""

    questions: list[GlobalQuestion]


class LocalQuestion(BaseModel):
    """One local question of the schema that the model is asked for."""

    question: str
    answer: str
    sources: list[int]


class LocalQuestions(BaseModel):
    """The schema that the model is asked for."""

    questions: list[LocalQuestion]


PERSONAS_FORMAT = json_schema_format(PersonasReply, "personas")
FORMATS = {
    "global": json_schema_format(GlobalQuestions, "questions"),
    "local": json_schema_format(LocalQuestions, "questions"),
}


@dataclass(frozen=True)
class Task:
    """One task of one persona."""

    persona: str
    task: str


def generate_questions(index: GraphIndex, n: int, kinds: Sequence[str] = KINDS) -> list[Question]:
    """Generate at most n distinct questions with reference answers, the kinds and tasks in turn.

    Raises:
        PipelineError: no model is named, the index is empty, no call can be answered, or no question is found.
    """
    if not index.snapshot.n_rows("text_units"):
        raise PipelineError(f"snapshot {index.snapshot.id} has no text units, so no questions can be generated")
    if not index.settings.chat_model_for(SECTION).model:
        raise PipelineError("a chat model generates questions; set `chat_model.model` or `evaluation.model`")
    # The reports of the largest root communities that fit into the budget, as prompt text.
    roots = index.column("communities", "community")[np.flatnonzero(records.root_mask(index))]
    rows = index.rows_of_numbers("community_reports", "community", roots.tolist())
    rows = rows[rows >= 0]
    rows = rows[np.argsort(-index.column("community_reports", "size")[rows], kind="stable")]
    tokens = index.column("community_reports", "n_tokens")[rows].tolist()
    kept = rows[pack_rows(row_costs(tokens), index.settings.evaluation.max_context_tokens)]
    reports = as_data(render_context(Context(reports=records.read_reports(index, kept, np.zeros(len(kept))))))
    tasks = _request_tasks(index, reports)
    wanted = [(kind, task) for task in tasks for kind in kinds]
    found: dict[str, Question] = {}
    for attempt in range(_TRIES):
        missing = n - len(found)
        if missing <= 0:
            break
        shares = [missing // len(wanted) + (place < missing % len(wanted)) for place in range(len(wanted))]
        requested = [(kind, task, share) for (kind, task), share in zip(wanted, shares, strict=True) if share]
        for question in _request_questions(index, requested, reports, attempt):
            found.setdefault(question.question.casefold(), question)
    if not found:
        raise PipelineError("the model returned no readable question; check `evaluation.model` in settings.yaml")
    return list(found.values())[:n]


def _request_tasks(index: GraphIndex, reports: str) -> list[Task]:
    """Return the tasks of the personas in turn: the first task of each, then the second of each."""
    numbers = {"n_personas": str(N_PERSONAS), "n_tasks": str(N_TASKS)}
    prompt = index.prompt("benchmark_personas")
    messages = open_question(prompt, AUTO, "Name the readers.", context_data=reports, **numbers)
    parse = partial(read_tasks, echoes=prompt.echoes)
    tasks = list_limit(N_TASKS, MAX_QUESTION_CHARS)
    limits = {"personas": {"maxItems": N_PERSONAS}, "persona": {"maxLength": 1000}, "tasks": tasks}
    [reply] = request_all(index, SECTION, [ChatRequest("personas", messages, parse, PERSONAS_FORMAT, limits=limits)])
    if isinstance(reply, Failure):
        raise PipelineError(f"the model returned no personas for generated questions: {reply.reason}")
    of_readers = [tasks[:N_TASKS] for tasks in reply.value[:N_PERSONAS]]
    return [tasks[turn] for turn in range(N_TASKS) for tasks in of_readers if turn < len(tasks)]


def read_tasks(reply: str, echoes: PromptEchoes | None = None) -> list[list[Task]]:
    """Read the tasks of each persona from a reply; a task without text, or copied from the prompt, is dropped alone.

    Raises:
        ReplyFormatError: the reply has no persona with a task.
    """
    echoes = echoes or PromptEchoes()
    readers = []
    for item in _items(reply, "personas"):
        persona, tasks = item.get("persona"), item.get("tasks")
        if isinstance(persona, str) and isinstance(tasks, list):
            named = [Task(clean_text(persona).strip(), clean_text(t).strip()) for t in tasks if isinstance(t, str)]
            own = (task for task in named if not echoes.holds(task.persona) and not echoes.holds(task.task))
            readers.append([task for task in own if task.persona and task.task])
    if not any(readers):
        raise ReplyFormatError(f"no persona with a task; the reply starts {reply[:80]!r}")
    return [tasks for tasks in readers if tasks]


def _request_questions(
    index: GraphIndex, requested: Sequence[tuple[str, Task, int]], reports: str, attempt: int
) -> Iterator[Question]:
    source = random.Random(f"{SEED} {attempt}")
    requests = []
    for kind, task, n in requested:
        units = _draw_units(index, source) if kind == "local" else ()
        shown = as_data(render_context(Context(text_units=units))) if units else reports
        values = {"persona": task.persona, "task": task.task, "n_questions": str(n), "context_data": shown}
        prompt = index.prompt(f"benchmark_{kind}_questions")
        messages = open_question(prompt, AUTO, "Write the questions.", **values)
        record = f"{kind} questions: {task.task[:60]}"
        parse, limits = (
            _reader_of(kind, units, prompt.echoes),
            limit_questions(n, [unit.human_readable_id for unit in units]),
        )
        requests.append(ChatRequest(record, messages, parse, FORMATS[kind], attempt, limits=limits))
    for reply in request_all(index, SECTION, requests):
        if not isinstance(reply, Failure):
            yield from reply.value


def limit_questions(n: int, numbers: Sequence[int]) -> dict[str, dict[str, Any]]:
    """Return the limits of a reply with n questions that may cite the passages of these numbers."""
    return {
        "questions": {"maxItems": n},
        "question": {"maxLength": 2 * MAX_QUESTION_CHARS},
        "answer": {"maxLength": MOST_CHARACTERS},
        "sources": {"maxItems": len(numbers), "items": {"type": "integer", "enum": list(numbers)}},
    }


def _draw_units(index: GraphIndex, source: random.Random) -> tuple[TextUnitRecord, ...]:
    """Draw a text unit at random, and add text units that share an entity with it while the budget lasts."""
    n_units = index.snapshot.n_rows("text_units")
    start = source.randrange(n_units)
    adjacency = index.snapshot.adjacency
    entities = adjacency.of_all("text_unit_entities", np.array([start]))[1]
    near = np.unique(adjacency.of_all("entity_text_units", entities)[1]) if len(entities) else np.arange(0)
    others = [row for row in near.tolist() if row != start]
    rows = np.array([start, *source.sample(others, len(others))], dtype=np.int64)
    costs = row_costs(index.column("text_units", "n_tokens")[rows].tolist())
    kept = rows[pack_rows(costs, index.settings.evaluation.max_context_tokens) or [0]]
    return records.read_text_units(index, kept, np.zeros(len(kept)))


def _reader_of(kind: str, units: Sequence[TextUnitRecord], echoes: PromptEchoes) -> Callable[[str], list[Question]]:
    documents = {unit.human_readable_id: unit.document_id for unit in units}
    return lambda reply: read_generated(reply, kind, documents, echoes)


def read_generated(
    reply: str, kind: str, documents: dict[int, str], echoes: PromptEchoes | None = None
) -> list[Question]:
    """Read the questions from a reply.

    A question without text, or copied from the prompt, is dropped alone. So is a local question that cites no passage
    of the prompt. A copied answer is left out.

    Args:
        documents: number of each passage in the prompt -> id of its document.

    Raises:
        ReplyFormatError: the reply has no usable question.
    """
    echoes = echoes or PromptEchoes()
    found = []
    for item in _items(reply, "questions"):
        texts = read_questions([item.get("question")], echoes)
        sources, answer = item.get("sources"), item.get("answer")
        numbers = [n for n in sources if isinstance(n, int)] if isinstance(sources, list) else []
        evidence = tuple(dict.fromkeys(documents[number] for number in numbers if number in documents))
        if texts and (evidence or kind == "global"):
            written = clean_text(answer) if isinstance(answer, str) and not echoes.holds(answer) else ""
            answers = (written,) if written else ()
            found.append(Question(texts[0], evidence if kind == "local" else (), answers, kind))
    if not found:
        raise ReplyFormatError(f"no usable {kind} question; the reply starts {reply[:80]!r}")
    return found


def _items(reply: str, name: str) -> list[dict[str, Any]]:
    """Return the objects of the first list with this name, or of the first bare list."""
    for value in read_json(reply):
        listed = value.get(name) if isinstance(value, dict) else value
        if isinstance(listed, list) and any(isinstance(item, dict) for item in listed):
            return [item for item in listed if isinstance(item, dict)]
    return []
