"""Suggested questions by the chat model of `answers`.

As in the question generation of Microsoft GraphRAG, the model reads the context of a local search of the latest
question with the conversation before it, and lists candidates for the next question. Keep out: choosing the context.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from graphrag_pipeline.models.ports import ChatRequest, Failure, ReplyFormatError
from graphrag_pipeline.models.prompt_echoes import PromptEchoes
from graphrag_pipeline.models.reply_json import read_json
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.model_requests import as_data, open_question, read_questions, request_all
from graphrag_pipeline.query.rendering import render_context
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.suggestions.suggested import OpenRecord, SuggestedQuestion
from graphrag_pipeline.text.late_patterns import late_re

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
