"""Answers written by a chat model from a context or from points, each statement cited; streamed where somebody listens.

The model is told to say NOT IN THE INDEX where the data does not answer: the reader then learns what was looked at. A
reply that cannot be had is replaced by the embedded engine's answer, which says so. Keep out: choosing the context,
making the points (`model_points.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from graphrag_pipeline.models.ports import CallFailedError, ChatRequest, Failure, Message
from graphrag_pipeline.query.answers.model_citations import CitedText, Shown, cited_numbers, shown_numbers
from graphrag_pipeline.query.context import ROW_OVERHEAD, pack_rows
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.model_requests import as_data, ask_all, open_question
from graphrag_pipeline.query.rendering import render_context
from graphrag_pipeline.query.results import Answer, Context
from graphrag_pipeline.query.streams import OnToken
from graphrag_pipeline.query.token_budget import admit, reply_tokens, settle
from graphrag_pipeline.query.understanding.conversation import read_history
from graphrag_pipeline.query.usage import booked
from graphrag_pipeline.settings.settings import LocalSearchSettings
from graphrag_pipeline.text.tokens import count_tokens_each

if TYPE_CHECKING:
    from graphrag_pipeline.query.search.global_ import Point

NOT_IN_INDEX = "NOT IN THE INDEX"
"""What the prompts ask for where the data does not answer."""
UNCITED = "\n\n(No statement of this answer cites a record of the index.)"
_AROUND = " \t\r\n*#_`>\"'.:"


def write_from_context(
    index: IndexReader,
    question: str,
    context: Context,
    on_token: OnToken | None = None,
    local: LocalSearchSettings | None = None,
) -> Answer:
    """The answer to a local, basic or lazy search.

    Args:
        local: of a local search: the conversation before the question, the columns shown, the form of the answer.

    Raises:
        CallFailedError: the model gives none.
    """
    name = "local_search_answer" if context.entities or context.reports else "basic_search_answer"
    local = local or LocalSearchSettings()
    shown = [read_history(local).render(), render_context(context, local.shown_columns)]
    data = {"context_data": as_data("\n\n".join(filter(None, shown)))}
    messages = _open(index, name, question, local.response_type, **data)
    return _write(index, messages, shown_numbers(context), f"looked at {_count_records(context)}", on_token)


def write_from_points(
    index: IndexReader,
    question: str,
    points: Sequence[Point],
    max_tokens: int,
    looked: str,
    on_token: OnToken | None = None,
) -> Answer:
    """The answer to a global search, from points by score, best first, within `max_tokens`.

    Raises:
        CallFailedError: the model gives none.
    """
    costs = [n + ROW_OVERHEAD for n in count_tokens_each([point.explanation for point in points])]
    chosen = [points[row] for row in pack_rows(costs, max_tokens) or [0]]
    texts = [
        f"----Analyst {number}----\nImportance Score: {point.score}\n{point.explanation}"
        for number, point in enumerate(chosen, start=1)
    ]
    messages = _open(index, "global_search_reduce", question, report_data=as_data("\n\n".join(texts)))
    return _write(index, messages, cited_numbers("\n".join(texts)), looked, on_token)


def replaced_answer(extractive: Answer, reason: str) -> Answer:
    """The embedded engine's answer in place of a model's."""
    text = f"The model gave no answer ({reason}); the embedded engine answers instead.\n\n{extractive.text}"
    return replace(extractive, text=text, failure=reason)


def _open(index: IndexReader, name: str, question: str, response_type: str | None = None, **data: str) -> list[Message]:
    settings = index.settings.answers
    form = {"response_type": response_type or settings.response_type, "max_length": str(settings.max_words)}
    return open_question(index.prompt(name), settings.language, question, **form, **data)


def _write(index: IndexReader, messages: list[Message], shown: Shown, looked: str, on_token: OnToken | None) -> Answer:
    request = ChatRequest("answer", messages, str)
    cited = CitedText(index, shown)
    written: list[str] = []
    opening, is_open = "", False
    for piece in _pieces(index, request, on_token is not None):
        opening += piece
        if not is_open and NOT_IN_INDEX.startswith(opening.lstrip(_AROUND)[: len(NOT_IN_INDEX)]):
            continue  # may yet be that there is no answer
        _tell(cited.add(piece if is_open else opening), written, on_token)
        is_open = True
    bare = opening.lstrip(_AROUND)
    if not is_open and bare.startswith(NOT_IN_INDEX):
        rest = cited.add(bare[len(NOT_IN_INDEX) :].lstrip(_AROUND)) + cited.rest()
        _tell(f"Not in the index: {looked}. {rest}".strip(), written, on_token)
    else:
        _tell(("" if is_open else cited.add(opening)) + cited.rest(), written, on_token)
        _tell("" if cited.citations else UNCITED, written, on_token)
    return Answer("".join(written), tuple(cited.citations), "model", cited.n_invented)


def _tell(text: str, written: list[str], on_token: OnToken | None) -> None:
    if text:
        written.append(text)
        if on_token:
            on_token(text)


def _pieces(index: IndexReader, request: ChatRequest[str], is_streamed: bool) -> Iterator[str]:
    from graphrag_pipeline.models.endpoints.streaming import iterate_in_loop

    if is_streamed and admit([request], reply_tokens(index.settings, "answers")):
        written = []
        with booked("answers"):
            for piece in iterate_in_loop(index.chat_model("answers").stream(request)):
                written.append(piece)
                yield piece
        settle([request], ["".join(written)])
        return
    [reply] = ask_all(index, "answers", [request])
    if isinstance(reply, Failure):
        raise CallFailedError(reply.reason, reply.request_key, reply.reply)
    yield reply.text


def _count_records(context: Context) -> str:
    """Such as "8 entities, 12 relationships and 5 text units"."""
    counts = [f"{len(records)} {name.replace('_', ' ')}" for name, records in vars(context).items() if records]
    return " and ".join(filter(None, (", ".join(counts[:-1]), counts[-1] if counts else "nothing")))
