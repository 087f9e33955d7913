"""Extractive answers: quoted and cited passages of the index, laid out; no other statement is made.

Local, basic, drift and lazy search answer with the passages of the context's text units that answer best
(`query/selection/answer_passages.py`), global search with findings of reports. Each has a marker `[1]` whose citation
resolves to record, text unit, document and offsets. The first line says that no model wrote the answer. If the passages
have too few of the question's words, the answer says "Not in the index" and shows the nearest ones.

DRIFT search without a model: follow-up questions from the parts of the graph that are near the question.

A lead (`query/search/global_.py`) whose entities no question has named yet becomes a follow-up question: it asks for
the connection of its two entities, or of one with the first entity that the question names.

Keep out: choosing the context.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from textwrap import dedent

import numpy as np

from graphrag_pipeline.citations import split_cited, strip_citations
from graphrag_pipeline.query.answers.answering import MappedPoints, estimate_static
from graphrag_pipeline.query.answers.evidence import EvidenceFinder, cite
from graphrag_pipeline.query.cited_records import CitedRecord
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import is_overview, repeats_question, topic_words
from graphrag_pipeline.query.results import Answer, Citation, Context
from graphrag_pipeline.query.search.basic import select_within
from graphrag_pipeline.query.search.community_selection import Selection, rate_without_model, select_global_context
from graphrag_pipeline.query.search.drift import Drift, DriftStep, Primer, merge_contexts, read_locally, read_primer
from graphrag_pipeline.query.search.global_ import Lead, LeadFinder, Point, map_points, reduce_points
from graphrag_pipeline.query.search.lazy import LazySelection, select_lazy_context
from graphrag_pipeline.query.selection.answer_passages import AnswerPassage, RankedPassages, rank_passages, show_span
from graphrag_pipeline.query.selection.passages import BULLET, passages_of, sentences_of, text_of
from graphrag_pipeline.query.streams import OnToken
from graphrag_pipeline.settings.settings import (
    AnswersSettings,
    DriftSearchSettings,
    GlobalSearchSettings,
    LazySearchSettings,
    LocalSearchSettings,
)
from graphrag_pipeline.text.counted import counted
from graphrag_pipeline.text.extractive import is_near_repeat, rank_sentences, words_of
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.sentence_forms import fold, is_sentence
from graphrag_pipeline.text.sentences import split_sentences
from graphrag_pipeline.text.stems import stem
from graphrag_pipeline.text.structure import CODE, FRONT_MATTER, LIST, PARAGRAPH, TABLE

MAX_FOLLOW_UPS = 10
"""Follow-up questions kept of one step."""


class GraphFollower:
    """Follows names through the graph (see the module); a `drift.Follower`.

    Args:
        question: the user's.
    """

    def __init__(self, index: IndexReader, question: str, settings: DriftSearchSettings) -> None:
        self._index = index
        self._question = question
        self._settings = settings
        self._named = index.names.find(question)
        self._leads = LeadFinder(index, question)

    def start(self, selection: Selection) -> Primer:
        """Return the first step: a local search of the question, and what it and the findings leave open.

        Nothing can be followed for a question that names nothing specific: then only the reports are read.
        """
        limit = min(self._settings.budget, self._index.settings.local_search.max_context_tokens)
        if selection.is_overview:
            context = read_primer(self._index, self._question, selection, limit)
            return Primer(selection, (DriftStep(self._question, 0, context),))
        primer = select_global_context(self._index, selection)
        context = read_locally(self._index, self._question, limit)
        leads = [*self._leads.of_findings(selection), *self._leads.of_relationships(context)]
        return Primer(selection, (self._step(self._question, 0, merge_contexts([context, primer]), leads),))

    def follow(self, questions: Sequence[str], depth: int, steps: Sequence[DriftStep]) -> list[DriftStep]:
        """Make steps as `drift.Follower.follow` says."""
        left = self._settings.budget - sum(step.context.n_tokens for step in steps)
        made = []
        for question in questions:
            if left < self._settings.max_context_tokens:
                break
            context = read_locally(self._index, question, self._settings.max_context_tokens)
            made.append(self._step(question, depth, context, self._leads.of_relationships(context)))
            left -= context.n_tokens
        return made

    def _step(self, question: str, depth: int, context: Context, leads: Sequence[Lead]) -> DriftStep:
        asked = {*self._named, *self._index.names.find(question)}
        best = sorted(leads, key=lambda lead: (-lead.score, lead.entities))
        new = [lead for lead in best if not asked.issuperset(lead.entities)][:MAX_FOLLOW_UPS]
        follow_ups = tuple(dict.fromkeys(self._leads.ask(lead) for lead in new))
        return DriftStep(question, depth, context, score=new[0].score if new else 0, follow_ups=follow_ups)


MAX_PASSAGES = 5
"""Most passages, or findings of reports, in an answer."""
MAX_SENTENCES_PER_POINT = 2
MAX_NEAREST, MIN_NEAREST = 3, 1 / 3
"""Passages that are shown where none answers, and the confidence that they need."""
NOTHING_TO_LOOK_FOR = (
    "Not answered: the question has no word to look for in the texts. Ask about a name or a subject, or use global "
    "search for an overview."
)
NOTHING_READ = (
    "Not answered: no text unit was read. None is near the question, or none fits into `max_context_tokens`: raise it."
)
_BULLET = late_re(rf"{BULLET}\s+")
_NUMBER = late_re(r"\d{1,9}[.)]\s")
_WORD = late_re(r"[^\W_]+(?:['\u2019._-]+[^\W_]+)*")
_JOINT = late_re(r"[._-]+")
WEAK_SCORE = 15
"""A best point below this score is as likely a coincidence as an answer."""


class EmbeddedAnswerer:
    """Quotes an index; a `query.answers.answering.Answerer`."""

    def __init__(self, index: IndexReader, on_token: OnToken | None = None) -> None:
        self._index = index

    def write_from_context(self, question: str, context: Context, local: LocalSearchSettings | None = None) -> Answer:
        """Quote passages; for an overview question about filtered documents, the most central ones."""
        is_about_some = self._index.document_mask is not None and context.text_units and is_overview(question)
        write = write_overview if is_about_some else write_answer
        return write(self._index, question, context, self._index.settings.answers)

    # ------------------------------------------------------------------------------------------------------- global

    def map_reports(self, question: str, selection: Selection, settings: GlobalSearchSettings) -> MappedPoints:
        """Score the findings of the kept reports."""
        points = map_points(self._index, question, selection)
        return MappedPoints(points, static=estimate_static(self._index, settings))

    def write_from_reports(
        self, question: str, mapped: MappedPoints, selection: Selection, settings: GlobalSearchSettings
    ) -> Answer:
        """Quote the best findings; of reports that are all irrelevant, none.

        If a model kept none because the token budget does not let it rate all, the embedded engine rates them instead.
        """
        if selection.is_unpaid:
            selection = rate_without_model(self._index, question, settings)
            mapped = MappedPoints(map_points(self._index, question, selection))
        if selection.is_irrelevant:
            return Answer(f"Not in the index: {selection.describe()}.")
        limits = settings.max_answer_tokens, MAX_PASSAGES
        chosen = reduce_points(self._index, mapped.points, *limits)
        return write_global_answer(self._index, question, chosen, selection, settings.max_context_tokens)

    # -------------------------------------------------------------------------------------------------------- drift

    def imagine_answer(self, question: str) -> str:
        """Return the question itself."""
        return question

    def follower(self, question: str, settings: DriftSearchSettings) -> GraphFollower:
        """Follow names through the graph."""
        return GraphFollower(self._index, question, settings)

    def write_from_steps(self, question: str, drift: Drift, settings: DriftSearchSettings) -> Answer:
        """Quote what all steps read; for an overview question, the findings of the reports."""
        if is_overview(question) and drift.selection.kept:
            points = MappedPoints(map_points(self._index, question, drift.selection))
            return self.write_from_reports(question, points, drift.selection, self._index.settings.search("global"))
        context = drift.context
        if not context.text_units:  # a model's steps may have read reports alone
            units = select_within(self._index, question, settings.max_answer_tokens).context.text_units
            context = replace(context, text_units=units)
        return self.write_from_context(question, context)

    # --------------------------------------------------------------------------------------------------------- lazy

    def split_question(self, question: str, max_subqueries: int) -> tuple[str, ...]:
        """Return the question alone."""
        return (question,)

    def map_text_units(self, question: str, selection: LazySelection, settings: LazySearchSettings) -> MappedPoints:
        """Return no points: passages are quoted from the text units themselves."""
        return MappedPoints(())

    def write_from_text_units(
        self, question: str, mapped: MappedPoints, selection: LazySelection, settings: LazySearchSettings
    ) -> Answer:
        """Quote the relevant text units that fit a context."""
        if selection.tested and not selection.relevant:
            return Answer(f"Not in the index: {selection.describe()}; none says anything about the question.")
        context = select_lazy_context(self._index, selection, settings.max_context_tokens)
        write = write_overview if is_overview(question) else write_answer
        return write(self._index, question, context, self._index.settings.answers)


def write_answer(index: IndexReader, question: str, context: Context, settings: AnswersSettings) -> Answer:
    """Return the passages of the context that answer best, at most `MAX_PASSAGES`."""
    if index.nothing_to_read:
        return Answer(index.nothing_to_read)
    if not topic_words(question):
        return Answer(NOTHING_TO_LOOK_FOR)
    if not context.text_units:
        return Answer(NOTHING_READ)
    ranked = rank_passages(index, question, context.text_units, MAX_PASSAGES)
    looked = f"looked at {counted(len(context.text_units), 'text units')}"
    return _show(question, ranked, looked, "the passages nearest to the question, best first")


def _show(question: str, ranked: RankedPassages, looked: str, introduction: str) -> Answer:
    absent = " or ".join(f'"{word}"' for word in ranked.unknown or ranked.absent)
    if ranked.is_answer:
        without = f"; none of them says {absent}" if absent else ""
        return compose(question, f"Extractive answer (no model): {introduction}{without}.", ranked.passages)
    reason = f"no text says {absent}" if absent else "no passage has enough of the question's words"
    refusal = f"Not in the index: {looked}; {reason}."
    nearest = ranked.passages[:MAX_NEAREST] if ranked.confidence >= MIN_NEAREST else ()
    return compose(question, f"{refusal} The nearest (extractive, no model):", nearest) if nearest else Answer(refusal)


def write_overview(index: IndexReader, question: str, context: Context, settings: AnswersSettings) -> Answer:
    """Return the most central passage of each of the first text units, for a question that names nothing specific.

    Passages that name entities with many relationships count more.
    """
    if not context.text_units:
        return write_answer(index, question, context, settings)
    degrees = index.column("entities", "degree")
    picked = []
    for unit in context.text_units[:MAX_PASSAGES]:
        passages = list(passages_of(sentences_of(unit)))
        texts = [text_of(passage) for passage in passages]
        prior = 1 + np.log1p([degrees[index.names.find(text)].sum() for text in texts])
        picked += [passages[i] for i in rank_sentences(texts, index.embed_passages(texts), 1, prior=prior)]
    read = counted(len(context.text_units), "text units")
    introduction = f"Extractive overview (no model): the question names nothing specific; what {read} say most."
    return compose(question, introduction, [show_span(run[0].unit, run[0].start, run[-1].end) for run in picked])


# ---------------------------------------------------------------------------------------------------------------global


def write_global_answer(
    index: IndexReader, question: str, points: Sequence[Point], selection: Selection, max_context_tokens: int
) -> Answer:
    """Return the findings of the points; passages of text units if none is near the question.

    Args:
        max_context_tokens: of the texts that are read then.
    """
    if index.nothing_to_read:
        return Answer(index.nothing_to_read)
    if not points or (points[0].score < WEAK_SCORE and not selection.is_overview):
        return _answer_from_texts(index, question, selection, max_context_tokens)
    finder = EvidenceFinder(index)
    vector = None if selection.is_overview else index.embed_passages([question])[0]
    citations: list[Citation] = []
    lines = [_introduce(points, selection), ""]
    for point in points:
        statements = []
        for statement, cited in _statements(index, question, point, vector):
            found = finder.find(statement, finder.resolve(cited, point.report_row))
            if found:
                passage, record = found
                citations.append(cite(len(citations) + 1, passage[0].unit, passage[0].start, passage[-1].end, record))
            statements.append(f"{statement} [{len(citations)}]" if found else statement)
        heading = _heading(point, () if selection.is_overview else statements)
        lines.append(f"- {heading}{' '.join(statements)}")
    return Answer("\n".join(lines), tuple(citations))


def _answer_from_texts(index: IndexReader, question: str, selection: Selection, max_context_tokens: int) -> Answer:
    """Return passages of the text units of basic search, or what was looked at, if no report answers."""
    looked = f"{counted(len(selection.rated), 'community reports')} looked at, {len(selection.kept)} of them read"
    units = select_within(index, question, max_context_tokens).context.text_units
    if not units:
        return Answer(f"{NOTHING_READ} {looked}; no finding answers.")
    ranked = rank_passages(index, question, units, MAX_PASSAGES)
    said = f"{looked}, but no finding answers; the nearest passages of the texts themselves"
    answer = _show(question, ranked, f"{looked}, then {counted(len(units), 'text units')}", said)
    return replace(answer, text_units=units)


def _introduce(points: Sequence[Point], selection: Selection) -> str:
    n_used = len({point.report_row for point in points})
    if selection.is_overview:
        read = counted(len(selection.kept), "community reports")
        said = f"{counted(len(points), 'findings')} of {n_used} of the {read} ranked highest"
        return f"Extractive answer (no model): {said}, best first."
    used = counted(n_used, "community reports")
    return f"Extractive answer (no model): findings of {used}, nearest to the question first."


def _heading(point: Point, statements: Sequence[str]) -> str:
    heading = strip_citations(point.summary).rstrip(". ")
    repeats = is_near_repeat(words_of(heading), (words_of(statement) for statement in statements))
    return "" if repeats or not heading else f"**{heading}.** "


def _close(statement: str) -> str:
    """Return a statement without the punctuation around its removed citation: none in front, one mark at the end."""
    bare = statement.lstrip(".,;:) ").rstrip(",;: ")
    return bare if bare.endswith((".", "!", "?", "'", '"', "\u2019", "\u201d")) or not bare.isascii() else f"{bare}."


def _statements(index: IndexReader, question: str, point: Point, vector: np.ndarray | None) -> list[tuple[str, str]]:
    """Return the sentences of a finding nearest to the question, in order, each with its citations.

    Args:
        vector: of the question. None if it names nothing specific: then the first sentences, since reports put the most
            important first.
    """
    everything = f"{point.summary} {point.explanation}"
    statements = [
        (_close(" ".join(text[start:end].split())), citation or everything)
        for text, citation in split_cited(point.explanation or point.summary)
        for start, end in split_sentences(text)
        if not repeats_question(question, text[start:end])
    ]
    statements = [(text, citation) for text, citation in statements if is_sentence(text)] or statements
    if vector is None:
        return statements[:MAX_SENTENCES_PER_POINT]
    texts = [text for text, _ in statements]
    picked = rank_sentences(texts, index.embed_passages(texts), MAX_SENTENCES_PER_POINT, vector)
    return [statements[i] for i in sorted(picked)]


# -------------------------------------------------------------------------------------------------------------- layout


def compose(question: str, introduction: str, passages: Sequence[AnswerPassage]) -> Answer:
    """Return the passages under their titles, numbered in that order; the title of a document comes once in a row."""
    lines, before = [introduction], None
    asked = topic_words(question)
    for number, passage in enumerate(passages, start=1):
        if before is None or passage.title != before.title:
            is_same = before is not None and before.unit.document_id == passage.unit.document_id
            lines += ["", f"**{passage.title_in_document if is_same else passage.title}**", ""]
        elif len(passage.parts) > 1:
            lines.append("")
        before = passage
        lines.append(f"{lay_out(passage, asked)} [{number}]")
    return Answer(
        "\n".join(lines), tuple(_cite_passage(number, passage) for number, passage in enumerate(passages, start=1))
    )


def lay_out(passage: AnswerPassage, asked: frozenset[str]) -> str:
    """Return a passage in Markdown: items of a list and rows of a table on lines of their own, code as code."""
    blocks = []
    for kind, parts in groupby(passage.parts or [(PARAGRAPH, passage.text)], key=itemgetter(0)):
        texts = [text for _, text in parts]
        if kind == CODE:
            code = "\n".join(texts)
            blocks.append(f"```\n{dedent(code)}\n```")
        elif kind in (LIST, TABLE):
            blocks.append("\n".join(_as_item(mark_words(text, asked)) for text in texts))
        else:
            blocks.append(_as_item(mark_words(("; " if kind == FRONT_MATTER else " ").join(texts), asked)))
    is_closed = blocks[-1].endswith("```")
    return "\n\n".join([*blocks, ""] if is_closed else blocks)


def _as_item(text: str) -> str:
    bullet = _BULLET.match(text)
    return text if _NUMBER.match(text) else f"- {text[bullet.end() :] if bullet else text}"


def mark_words(text: str, asked: frozenset[str]) -> str:
    """Return a text with the words of some stems in bold, neighbours together: "The **service owner** is Ana".

    A name such as `event-relay` is bold if one of its words is asked.
    """

    def mark(found: re.Match[str]) -> str:
        is_asked = any(stem(fold(word)) in asked for word in _JOINT.split(found[0]))
        return f"**{found[0]}**" if is_asked else found[0]

    return _WORD.sub(mark, text).replace("** **", " ")


def _cite_passage(number: int, passage: AnswerPassage) -> Citation:
    unit = passage.unit
    record = CitedRecord("text_unit", unit.id, unit.human_readable_id, ())
    return cite(number, unit, passage.start, passage.end, record)
