"""DRIFT search by a chat model: a hypothetical answer that finds reports, answered steps, and follow-up questions.

Each step is one call whose reply holds an answer with citations, a score of 0 to 100 and follow-up questions. The calls
of a round run side by side. A follow-up question is written from documents, so it is sent as data too. Citations of
records that a step was not shown are removed, and follow-up questions that repeat the prompt. An answer that repeats
the prompt or the question is no answer. A step whose call fails keeps its context and the reason. Tokens for the final
answer stay in the budget. Keep out: which questions are followed next (`query/search/drift.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pydantic import BaseModel

from graphrag_pipeline.engines.model.answers.points import cite_shown, read_score
from graphrag_pipeline.engines.model.answers.shown import Shown, shorten_context, shown_numbers
from graphrag_pipeline.models.pool import MAX_SHORTENED
from graphrag_pipeline.models.ports import ChatReply, ChatRequest, Failure, Message, ReplyFormatError
from graphrag_pipeline.models.prompt_echoes import PromptEchoes
from graphrag_pipeline.models.reply_json import clean_text, json_schema_format, list_limit, read_json
from graphrag_pipeline.query.context import pack_batches, row_costs
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.model_requests import (
    MAX_QUESTION_CHARS,
    as_data,
    mark_question,
    open_question,
    read_own_text,
    read_questions,
    request_all,
)
from graphrag_pipeline.query.question import fold_question
from graphrag_pipeline.query.rendering import render_context
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.search.community_selection import Selection, select_global_context
from graphrag_pipeline.query.search.drift import DriftStep, Primer, read_locally, read_primer
from graphrag_pipeline.query.search.global_ import NO_REPORT, Point
from graphrag_pipeline.query.token_budget import answer_cost, reply_tokens
from graphrag_pipeline.settings.settings import DriftSearchSettings

IMAGINED_WORDS = 150
UNSCORED = 1
"""Score of an answer whose own score cannot be read. It is no sign that the answer says nothing, as 0 is."""
MAX_FOLLOW_UPS = 5
"""Most follow-up questions of a step."""


class StepReply(BaseModel):
    """The schema that the model is asked for; what comes is read more leniently."""

    response: str
    score: int
    follow_up_queries: list[str]


RESPONSE_FORMAT = json_schema_format(StepReply, "step")
LIMITS = {"follow_up_queries": list_limit(MAX_FOLLOW_UPS, MAX_QUESTION_CHARS)}
"""The response may take the whole reply, so the cap of the reply is its limit."""


@dataclass(frozen=True)
class ReadStep:
    """A reply: an answer that cites human-readable ids, its score (0-100), follow-up questions; and what was removed:
    the number of invented citations, and of follow-up questions copied from the prompt.
    """

    answer: str
    score: int
    follow_ups: tuple[str, ...]
    n_invented: int
    n_copied: int = 0


def imagine_answer(index: IndexReader, question: str) -> str:
    """Return the question with a text that a report might have in answer to it; the question alone if no reply comes.

    The text is embedded to find reports.

    Raises:
        PipelineError: no call can be answered, or the budget of the root is spent.
    """
    prompt, language = index.prompt("drift_hypothetical_answer"), index.settings.answers.language
    messages = open_question(prompt, language, question, max_length=str(IMAGINED_WORDS))
    parse = partial(read_own_text, echoes=prompt.echoes, question=question)
    [reply] = request_all(index, "answers", [ChatRequest("hypothetical answer", messages, parse, keep_whole=str)])
    return question if isinstance(reply, Failure) else f"{question}\n\n{clean_text(reply.value.text)}"


class ModelFollower:
    """Makes steps with a chat model; a `drift.Follower`.

    Args:
        question: the user's.
    """

    def __init__(self, index: IndexReader, question: str, settings: DriftSearchSettings) -> None:
        self._index = index
        self._question = question
        self._settings = settings

    def start(self, selection: Selection) -> Primer:
        """Return the first steps: from the reports, in batches; without reports, from what local search finds.

        Raises:
            PipelineError: no call can be answered, or the budget of the root is spent.
        """
        reports = select_global_context(self._index, selection).reports
        costs = row_costs([report.n_tokens for report in reports])
        batches = pack_batches(costs, self._settings.max_context_tokens)
        contexts = [Context(reports=tuple(reports[i] for i in batch)) for batch in batches] or [
            read_primer(self._index, self._question, selection, self._settings.max_context_tokens)
        ]
        pairs = [(self._question, context) for context in contexts]
        return Primer(selection, tuple(self._send("drift_primer", pairs, [self._question] * len(pairs), 0)))

    def follow(self, questions: Sequence[str], depth: int, steps: Sequence[DriftStep]) -> list[DriftStep]:
        """Make steps as `drift.Follower.follow` says.

        Raises:
            PipelineError: no call can be answered, or the budget of the root is spent.
        """
        pairs = [(q, read_locally(self._index, q, self._settings.max_context_tokens)) for q in questions]
        requests = [self._build_request("drift_follow_up", q, context, mark_question(q)) for q, context in pairs]
        n_reply = reply_tokens(self._index.settings, "answers")
        n_admitted = self._index.calls.budget.admit(requests, n_reply, self._reserve)
        turns = [mark_question(q) for q in questions]
        return self._send("drift_follow_up", pairs[:n_admitted], turns[:n_admitted], depth)

    def _send(
        self, prompt: str, pairs: Sequence[tuple[str, Context]], turns: Sequence[str], depth: int, n_again: int = 0
    ) -> list[DriftStep]:
        """Make steps from questions and contexts; a context that does not fit the model's window is made shorter."""
        requests = [self._build_request(prompt, *pair, turn) for pair, turn in zip(pairs, turns, strict=True)]
        replies = request_all(self._index, "answers", requests, self._reserve)
        steps = []
        for (question, context), turn, reply in zip(pairs, turns, replies, strict=True):
            n_excess = reply.n_excess if isinstance(reply, Failure) and n_again < MAX_SHORTENED else 0
            shorter = shorten_context(context, n_excess) if n_excess else None
            again = self._send(prompt, [(question, shorter)], [turn], depth, n_again + 1) if shorter else []
            steps += again or [_make_step(question, context, depth, reply)]
        return steps

    @property
    def _reserve(self) -> int:
        """Tokens of the final call."""
        return answer_cost(self._index.settings, self._settings.max_answer_tokens)

    def _build_request(self, prompt: str, question: str, context: Context, turn: str) -> ChatRequest[ReadStep]:
        settings = self._index.settings.answers
        messages: list[Message] = open_question(
            self._index.prompt(prompt),
            settings.language,
            turn,
            context_data=as_data(render_context(context)),
            main_question=self._question,
            max_length=str(self._index.settings.words_for("answers")),
            max_follow_ups=str(MAX_FOLLOW_UPS),
        )
        shown = shown_numbers(context)
        parse = partial(read_step, shown=shown, question=question, echoes=self._index.prompt(prompt).echoes)
        return ChatRequest(f"question {question[:80]!r}", messages, parse, RESPONSE_FORMAT, limits=LIMITS)


def _make_step(question: str, context: Context, depth: int, reply: ChatReply[ReadStep] | Failure) -> DriftStep:
    if isinstance(reply, Failure):
        return DriftStep(question, depth, context, failure=reply.reason)
    read = reply.value
    found = DriftStep(question, depth, context, read.answer, read.score, read.follow_ups)
    return replace(found, n_invented=read.n_invented, n_copied=read.n_copied)


def points_of(steps: Sequence[DriftStep]) -> list[Point]:
    """Return the answers of the steps as points, best first; a step of score 0 is left out."""
    answered = [(place, step) for place, step in enumerate(steps) if step.score and step.answer]
    best_first = sorted(answered, key=lambda found: -found[1].score)
    return [Point(NO_REPORT, "", step.answer, step.score, place) for place, step in best_first]


def read_step(reply: str, shown: Shown, question: str = "", echoes: PromptEchoes | None = None) -> ReadStep:
    """Return the answer, score and follow-up questions in a reply.

    Without a score that can be read, the answer is kept with the lowest one, `UNSCORED`.

    Args:
        question: of the step; an answer that only repeats it is none.
        echoes: of the prompt; None accepts any text.

    Raises:
        ReplyFormatError: the reply has no JSON object with an answer of the model's own.
    """
    echoes = echoes or PromptEchoes()
    for value in read_json(reply):
        fields = value if isinstance(value, dict) else {}
        answer = next((fields[key] for key in ("response", "intermediate_answer", "answer") if key in fields), None)
        if isinstance(answer, str) and re.search(r"\w", answer):
            if echoes.holds(answer) or fold_question(answer) == fold_question(question):
                raise ReplyFormatError("the response repeats the prompt: say what the data says about the question")
            return _read_fields(fields, answer, shown, echoes)
    raise ReplyFormatError(f"no JSON object with a response; the reply starts {reply[:80]!r}")


def _read_fields(fields: Mapping[str, Any], answer: str, shown: Shown, echoes: PromptEchoes) -> ReadStep:
    listed = fields.get("follow_up_queries")
    questions = read_questions(listed) if isinstance(listed, list) else ()
    own = tuple(question for question in questions if not echoes.holds(question))
    lost: Counter[str] = Counter()
    text, score = cite_shown(clean_text(answer), shown, lost), read_score(fields.get("score"))
    return ReadStep(
        text, UNSCORED if score is None else score, own[:MAX_FOLLOW_UPS], lost.total(), len(questions) - len(own)
    )
