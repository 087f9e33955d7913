"""Requests to chat models about an index: a prompt that holds the data, then the user's question as its own turn.

Text from documents is data: it is placed between the prompt's <data> marks, which it cannot close.

The text of a model's answer that is its own: sentences copied from the prompt are dropped, or the reply is refused.

A reply is refused if more than half of its sentences repeat the prompt file, or if it shows the tables of its data. A
sentence that the shown data or the question holds, too, is the model's own, and so is one that says that the data does
not answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from graphrag_pipeline.citations import remove_written
from graphrag_pipeline.models.ports import ChatReply, ChatRequest, Failure, Message, ReplyFormatError
from graphrag_pipeline.models.prompt_echoes import PromptEchoes, shows_context
from graphrag_pipeline.models.prompts import AUTO, Prompt, instruct_language
from graphrag_pipeline.models.reply_json import clean_text
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import fold_question
from graphrag_pipeline.query.token_budget import reply_tokens
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.sentences import split_sentences

DECLINED = "NOT IN THE INDEX"
"""Text that the prompts ask for where the data does not answer."""
AROUND = " \t\r\n*#_`>\"'.:"
"""Characters that a model writes around it."""

_DECLINES = late_re(r"\W*(?:the|these) (?:data|points) (?:do|does)(?: not|n['\u2019]t) answer\b", re.IGNORECASE)
_NO_ANSWER = (
    f"the reply repeats the prompt: answer the question from the data, or write {DECLINED} if the data does not answer"
)


@dataclass(frozen=True)
class OwnText:
    """The text of a reply without the sentences that it copied from the prompt, and their number."""

    text: str
    n_copied: int = 0


def read_own_text(reply: str, echoes: PromptEchoes, question: str = "", data: str = "") -> OwnText:
    """Return what a reply says in words of its own.

    Args:
        echoes: of the prompt.
        question: of the user; a reply that says nothing else has no answer.
        data: what the prompt showed in the place of a placeholder; text that it or the question holds is not copied.

    Raises:
        ReplyFormatError: the text shows the tables of the data, only repeats the question, or more than half of its
            sentences repeat the prompt, unless it starts with DECLINED.
    """
    if shows_context(reply):
        raise ReplyFormatError(_NO_ANSWER)
    if question and fold_question(remove_written(reply)) == fold_question(question):
        raise ReplyFormatError(_NO_ANSWER)
    known = f"{question}\n{data}"
    bare = reply.lstrip(AROUND)
    start = len(reply) - len(bare) + len(DECLINED) if bare.startswith(DECLINED) else 0
    lines = [list(_judge_sentences(line, echoes, known)) for line in reply[start:].split("\n")]
    verdicts = [is_copied for line in lines for sentence, is_copied in line if _has_words(sentence)]
    n_copied = sum(verdicts)
    if not n_copied:
        return OwnText(reply)
    if 2 * n_copied > len(verdicts) and not start:
        raise ReplyFormatError(_NO_ANSWER)
    own = "\n".join(kept for kept in map(_keep_own, lines) if kept is not None)
    return OwnText((reply[:start] + re.sub(r"\n{3,}", "\n\n", own)).strip(), n_copied)


def _judge_sentences(line: str, echoes: PromptEchoes, data: str) -> Iterator[tuple[str, bool]]:
    """Yield the sentences of a line with the blanks behind them, and whether each is copied.

    A citation behind a full stop goes with the sentence before it.
    """
    starts = [start for start, _ in split_sentences(line)] if line.strip() else []
    is_copied = False
    for start, end in zip([0, *starts[1:]], [*starts[1:], len(line)], strict=True):
        sentence = line[start:end]
        if _has_words(sentence):
            is_copied = not _DECLINES.match(sentence) and echoes.holds(sentence, data)
        yield sentence, is_copied


def _keep_own(line: list[tuple[str, bool]]) -> str | None:
    """Return a line without its copied sentences; None if nothing is left of it."""
    if not any(is_copied for _, is_copied in line):
        return "".join(sentence for sentence, _ in line)
    own = "".join(sentence for sentence, is_copied in line if not is_copied)
    return own.rstrip() if _has_words(own) else None


def _has_words(text: str) -> bool:
    return re.search(r"\w", remove_written(text)) is not None


T = TypeVar("T")

MAX_QUESTION_CHARS = 500
"""Most characters of a question that a model writes."""

_CLOSING = late_re(r"<\s*/(?=\s*(?:data|question))", re.IGNORECASE)
_ANSWER_LANGUAGE = "Write in the language of the user's question; leave names as the data writes them."


def open_question(prompt: Prompt, language: str, question: str, **values: str) -> list[Message]:
    """Return the turns of a request about data: the prompt as the system's turn, the question as the user's.

    If the prompt has no `{language}` (Microsoft GraphRAG's have none), a named language is added as a line.
    """
    is_auto = language.strip().lower() == AUTO
    instruction = _ANSWER_LANGUAGE if is_auto else instruct_language(language)
    system = prompt.render(language=instruction, question=question, **values)
    if not is_auto and "language" not in prompt.placeholders:
        system = f"{system}\n\n{instruction}"
    return [{"role": "system", "content": system}, {"role": "user", "content": question}]


def as_data(text: str) -> str:
    """Return a text that cannot end the part of a prompt that holds it."""
    return _CLOSING.sub(r"<\\/", text).strip()


def mark_question(question: str) -> str:
    """Return the user's turn for a question that a model wrote from documents: it is marked, since it is data too."""
    return f"<question>\n{as_data(question)}\n</question>"


def read_questions(listed: Sequence[object], echoes: PromptEchoes | None = None) -> tuple[str, ...]:
    """Return the texts of a list that can be used as questions, each once, on one line; none repeats the prompt."""
    echoes = echoes or PromptEchoes()
    texts = [" ".join(clean_text(item).split()) for item in listed if isinstance(item, str)]
    fit = (text for text in texts if re.search(r"\w", text) and len(text) <= MAX_QUESTION_CHARS)
    return tuple(dict.fromkeys(text for text in fit if not echoes.holds(text)))


def request_all(
    index: IndexReader,
    section: str,
    requests: Sequence[ChatRequest[T]],
    reserve: int = 0,
) -> list[ChatReply[T] | Failure]:
    """Send requests to the chat model of a section, all at once; results in order, counted in the section.

    A request that the token budget of the question does not admit becomes a Failure, and so does one whose reply cannot
    be used and whose repeat the budget does not admit.

    Args:
        reserve: tokens of that budget that stay for later calls.

    Raises:
        PipelineError: no request can be answered, or the budget of the root is spent.
    """
    from graphrag_pipeline.models.pool import complete_all

    budget = index.calls.budget
    sent, model = budget.gated(requests, reply_tokens(index.settings, section), reserve), index.chat_model(section)
    replies = complete_all(model, sent, scope=index.calls.scope) if sent else []
    budget.settle(sent, [reply.text for reply in replies if isinstance(reply, ChatReply)])
    return replies + [budget.refuse(section, request) for request in requests[len(sent) :]]
