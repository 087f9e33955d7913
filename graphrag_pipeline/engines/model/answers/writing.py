"""Answers written by a chat model from a context or from points, each statement cited; streamed if a receiver is given.

The prompts ask for NOT IN THE INDEX where the data does not answer; the answer then lists what was looked at. Under the
answer there are notes (`query/answers/notes.py`) on what could not be read and on sentences that cite nothing. If the
model gives no reply, or one that repeats the prompt (`query/model_requests.py`), the embedded engine's answer replaces
it and says so.

Sentences of a model's answer that cite nothing, matched to what the model was shown.

Support is by words: a statement is supported by `WINDOW` neighbouring sentences if they have at least `LEAST_SHARE` of
its content words, and all its numbers. The title of the record counts, too. The rule is about words, not about meaning:
it can support a false sentence made of true words, and miss a paraphrase. A sentence with a citation behind it in its
line may rest on that one. Headings, questions, and sentences about the data itself ("The sources do not say ...") are
left out.

Keep out: choosing the context, making the points (`points.py`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from graphrag_pipeline.citations import parse_citations, strip_citations
from graphrag_pipeline.engines.model.answers.shown import (
    CitedText,
    Shown,
    cited_numbers,
    count_records,
    shorten_context,
    shown_numbers,
)
from graphrag_pipeline.models.pool import MAX_SHORTENED
from graphrag_pipeline.models.ports import CallFailedError, ChatRequest, Failure, Message
from graphrag_pipeline.query.answers.notes import NOT_IN_INDEX, PARTIAL, UNCITED, note_uncited, note_unread
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.model_requests import (
    AROUND,
    DECLINED,
    OwnText,
    as_data,
    open_question,
    read_own_text,
    request_all,
)
from graphrag_pipeline.query.question import content_words
from graphrag_pipeline.query.rendering import PLAIN, ContextStyle, render_context
from graphrag_pipeline.query.results import Answer, Context, TextUnitRecord, UncitedSentence, Unread
from graphrag_pipeline.query.search.global_ import Point
from graphrag_pipeline.query.streams import OnToken
from graphrag_pipeline.query.token_budget import reply_tokens
from graphrag_pipeline.query.understanding.conversation import read_history
from graphrag_pipeline.settings.settings import LocalSearchSettings
from graphrag_pipeline.text.cut_texts import cut_note, drop_cut_note, drop_repeated_sentences
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.sentence_forms import find_words, fold
from graphrag_pipeline.text.sentences import split_sentences
from graphrag_pipeline.text.stems import stem
from graphrag_pipeline.text.tokens import count_tokens_each

if TYPE_CHECKING:
    from graphrag_pipeline.query.search.global_ import Point

LEAST_SHARE = 0.65
WINDOW = 2
"""Neighbouring sentences that support one together."""
MIN_WORDS = 2
"""Content words of a statement below which words show nothing."""
SOURCES = r"(?:data|sources?|passages?|reports?|records?|documents?|texts?|contexts?|index|information|points?)"
"""Words for what was read."""


def read_windows(text: str, title: str = "") -> list[frozenset[str]]:
    """Return the stems of the content words of each run of `WINDOW` sentences, and of the title."""
    sentences = [content_words(text[start:end]) for start, end in split_sentences(text)] if text else []
    of_title = content_words(title)
    return [frozenset().union(of_title, *sentences[i : i + WINDOW]) for i in range(max(len(sentences), 1))]


_MARKER = late_re(r"\[\d+\]")
_BEHIND_STOP = late_re(r"([.!?\u2026\u3002\uff01\uff1f][\"'\u201d\u2019)]*)[ \t]*((?:\[\d+\])+)")
_DECORATION = late_re(r"^[\s>*+\-\u2022]*(?:\d{1,3}[.)]\s+)?|[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}")
_NO_STATEMENT = late_re(r"\s*+(?:#|\||-{3,})|(?:.*\w)?+[^\w:\uff1a?\uff1f]*+[:\uff1a?\uff1f]", re.DOTALL)
_ABOUT_DATA = late_re(
    rf"\b{SOURCES}\b.{{0,60}}\b(?:not|no|nothing|neither|open)\b|\bno (?:information|mention|record|evidence)\b|"
    r"\b(?:not|n't) (?:say|state|mention|specif|provid|answer|known|clear|stated|mentioned|specified|given)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ShownText:
    """A text that the model was shown, and the record that it may be cited by; `kind` as in a citation."""

    kind: str
    number: int
    title: str
    text: str

    @cached_property
    def windows(self) -> list[frozenset[str]]:
        """The words of each run of sentences that may support a statement, and of the title."""
        return read_windows(strip_citations(self.text), self.title)

    def supports(self, words: frozenset[str], numbers: frozenset[str]) -> bool:
        """Return whether neighbouring sentences have most of the stems of a statement, and all its numbers."""
        least = LEAST_SHARE * len(words)
        return any(numbers <= window and len(words & window) >= least for window in self.windows)


@dataclass(frozen=True)
class CheckedSentence:
    """A sentence without a citation, and the text that supports it; None if nothing shown does."""

    text: str
    support: ShownText | None


def show_context(context: Context) -> list[ShownText]:
    """Return the texts of a context, those of documents first."""
    return [
        *(ShownText("Sources", unit.human_readable_id, unit.document_title, unit.text) for unit in context.text_units),
        *(ShownText("Claims", c.human_readable_id, f"{c.subject} {c.object}", c.description) for c in context.claims),
        *(
            ShownText("Relationships", pair.human_readable_id, f"{pair.source} {pair.target}", pair.description)
            for pair in context.relationships
        ),
        *(
            ShownText("Entities", entity.human_readable_id, entity.title, entity.description)
            for entity in context.entities
        ),
        *(ShownText("Reports", report.human_readable_id, report.title, report.content) for report in context.reports),
    ]


def show_points(points: Sequence[Point]) -> list[ShownText]:
    """Return the texts of points, each with the first record that it cites; a point without one is left out."""
    cited = [(point.explanation, parse_citations(point.explanation)) for point in points]
    first = [(text, found[0][0], found[0][1][0]) for text, found in cited if found]
    return [ShownText(kind, int(number), "", text) for text, kind, number in first if number.isdecimal()]


def check_sentences(answer: str, shown: Sequence[ShownText]) -> list[CheckedSentence]:
    """Return the sentences of an answer that cite nothing and need a source, with what supports them (see the module).

    Args:
        answer: with markers such as [1].
    """
    checked = []
    for sentence in _uncited(answer):
        words = content_words(sentence)
        numbers = frozenset(stem(fold(word)) for word in find_words(sentence) if any(map(str.isdigit, word)))
        if len(words) >= MIN_WORDS:
            checked.append(CheckedSentence(sentence, next((s for s in shown if s.supports(words, numbers)), None)))
    return checked


def _uncited(answer: str) -> Iterator[str]:
    """Yield the sentences that state something without a marker in them, or behind them in their line."""
    for line in answer.splitlines():
        line = _BEHIND_STOP.sub(r"\2\1", line)
        if _NO_STATEMENT.match(line) or not line.strip():
            continue
        sentences = [line[start:end] for start, end in split_sentences(line)]
        last = max((place for place, sentence in enumerate(sentences) if _MARKER.search(sentence)), default=-1)
        for sentence in sentences[last + 1 :]:
            bare = _DECORATION.sub("", sentence).strip()
            if bare and not _NO_STATEMENT.match(bare) and not _ABOUT_DATA.search(bare):
                yield bare


@dataclass(frozen=True)
class _Material:
    """What a model was shown: the records that it may cite, their texts, how they were written, and excerpts.

    Attributes:
        parse: reads a reply; refuses one that repeats the prompt.
    """

    parse: Callable[[str], OwnText]
    numbers: Shown
    texts: Sequence[ShownText]
    style: ContextStyle = PLAIN
    excerpts: Sequence[TextUnitRecord] = ()


class AnswerWriter:
    """Writer of answers with the chat model of `answers`.

    Args:
        on_token: gets the answer's text as it comes.
    """

    def __init__(self, index: IndexReader, on_token: OnToken | None = None) -> None:
        self._index = index
        self._on_token = on_token

    def write_from_context(self, question: str, context: Context, local: LocalSearchSettings | None = None) -> Answer:
        """Return the answer to a local, basic or lazy search, from fewer records if all do not fit the model's window.

        Args:
            local: of a local search: the conversation before the question, the columns shown, the form of the answer.

        Raises:
            CallFailedError: the model gives no reply.
        """
        shown, style = context, ContextStyle.of_settings(local or LocalSearchSettings())
        for _ in range(MAX_SHORTENED):
            try:
                answer = self._write_about(question, shown, local)
                return replace(answer, n_left_out=count_records(context) - count_records(shown))
            except CallFailedError as error:
                shorter = shorten_context(shown, error.n_excess, style) if error.n_excess else None
                if shorter is None:
                    raise
                shown = shorter
        return self._write_about(question, shown, local)

    def _write_about(self, question: str, context: Context, local: LocalSearchSettings | None) -> Answer:
        name = "local_search_answer" if context.entities or context.reports else "basic_search_answer"
        local = local or LocalSearchSettings()
        style = ContextStyle.of_settings(local)
        shown = [read_history(local).text.strip(), render_context(context, style)]
        data = as_data("\n\n".join(filter(None, shown)))
        messages = self._open(name, question, local.response_type, context_data=data)
        parse = self._parser(name, question, data)
        material = _Material(parse, shown_numbers(context), show_context(context), style, context.excerpts)
        return self._write(messages, material, f"looked at {_count_records(context)}")

    def write_from_points(
        self, question: str, points: Sequence[Point], max_tokens: int, looked: str, unread: Unread | None = None
    ) -> Answer:
        """Return the answer from points by score, best first, until one exceeds `max_tokens`.

        Args:
            looked: what was looked at, for an answer that says that the index does not answer.
            unread: what could not be read, and is noted.

        Raises:
            CallFailedError: the model gives no reply.
        """
        texts, name = list_points(points, max_tokens), "global_search_reduce"
        data = as_data("\n\n".join(texts))
        messages = self._open(name, question, report_data=data)
        parse = self._parser(name, question, data)
        material = _Material(parse, cited_numbers("\n".join(texts)), show_points(points[: len(texts)]))
        try:
            return self._write(messages, material, looked, unread)
        except CallFailedError as error:
            n_fit = sum(count_tokens_each(texts)) - error.n_excess
            if not error.n_excess or len(texts) < 2:
                raise
            answer = self.write_from_points(question, points, n_fit, looked, unread)
            return replace(answer, n_left_out=answer.n_left_out + len(texts) - len(list_points(points, n_fit)))

    def _open(self, name: str, question: str, response_type: str | None = None, **data: str) -> list[Message]:
        settings = self._index.settings.answers
        form = {
            "response_type": response_type or settings.response_type,
            "max_length": str(self._index.settings.words_for("answers")),
        }
        return open_question(self._index.prompt(name), settings.language, question, **form, **data)

    def _parser(self, name: str, question: str, data: str) -> Callable[[str], OwnText]:
        return partial(read_own_text, echoes=self._index.prompt(name).echoes, question=question, data=data)

    def _write(self, messages: list[Message], material: _Material, looked: str, unread: Unread | None = None) -> Answer:
        cited = CitedText(self._index, material.numbers, material.style.kinds_of_names, material.excerpts)
        written: list[str] = []
        opening, is_open = "", False
        n_copied = 0
        request = ChatRequest("answer", messages, material.parse, keep_whole=drop_repeated_sentences)
        for piece, n_dropped in self._pieces(request):
            opening, n_copied = opening + piece, n_copied + n_dropped
            if not is_open and DECLINED.startswith(opening.lstrip(AROUND)[: len(DECLINED)]):
                continue  # it may still become DECLINED
            self._hand_on(cited.add(piece if is_open else opening), written)
            is_open = True
        bare = opening.lstrip(AROUND)
        uncited: tuple[UncitedSentence, ...] = ()
        if not is_open and bare.startswith(DECLINED):
            rest = cited.add(bare[len(DECLINED) :].lstrip(AROUND)) + cited.rest()
            self._hand_on(f"{PARTIAL if unread else NOT_IN_INDEX}: {looked}. {rest}".strip(), written)
        else:
            self._hand_on(("" if is_open else cited.add(opening)) + cited.rest(), written)
            checked = check_sentences(drop_cut_note("".join(written)), material.texts)
            supports = {sentence.text: sentence.support for sentence in checked}
            uncited = tuple(
                UncitedSentence(text, cited.add_support(found.kind, found.number, text) if found else None)
                for text, found in supports.items()
            )
            self._hand_on(note_uncited(uncited) + ("" if cited.citations else UNCITED), written)
        self._hand_on(note_unread(unread), written)
        answer = Answer("".join(written), tuple(cited.citations), "model", cited.n_invented, n_copied=n_copied)
        return replace(answer, unread=unread, uncited=uncited)

    def _hand_on(self, text: str, written: list[str]) -> None:
        if text:
            written.append(text)
            if self._on_token:
                self._on_token(text)

    def _pieces(self, request: ChatRequest[OwnText]) -> Iterator[tuple[str, int]]:
        """Yield the reply in pieces if it is streamed, else whole without the sentences copied from the prompt.

        Beside each piece is the number of copied sentences that it settles. Those of a stream stay in the text, since
        they have been read.
        """
        from graphrag_pipeline.models.endpoints.streaming import iterate_in_loop

        calls = self._index.calls
        n_reply = reply_tokens(self._index.settings, "answers")
        if self._on_token and (admitted := calls.budget.gated([request], n_reply)):
            written = []
            for piece in iterate_in_loop(self._index.chat_model("answers").stream(admitted[0]), calls.scope):
                written.append(piece)
                yield piece, 0
            calls.budget.settle([request], ["".join(written)])
            yield "", request.parse(drop_cut_note("".join(written))).n_copied
            return
        [reply] = request_all(self._index, "answers", [request])
        if isinstance(reply, Failure):
            raise CallFailedError(reply.reason, reply.request_key, reply.reply, n_excess=reply.n_excess)
        yield reply.value.text + (cut_note(reply.text) if reply.is_cut else ""), reply.value.n_copied


def list_points(points: Sequence[Point], max_tokens: int) -> list[str]:
    """Return the texts of points for the final answer, in order, until one does not fit; the first is always taken."""
    texts = [
        f"----Analyst {point.batch + 1}----\nImportance Score: {point.score}\n{point.explanation}" for point in points
    ]
    spent = itertools.accumulate(count_tokens_each(texts))
    n_fit = sum(1 for _ in itertools.takewhile(lambda n_tokens: n_tokens <= max_tokens, spent))
    return texts[: max(n_fit, 1)]


def _count_records(context: Context) -> str:
    """Return counts such as "8 entities, 12 relationships and 5 text units"."""
    counts = [f"{len(records)} {name.replace('_', ' ')}" for name, records in vars(context).items() if records]
    return " and ".join(filter(None, (", ".join(counts[:-1]), counts[-1] if counts else "nothing")))
