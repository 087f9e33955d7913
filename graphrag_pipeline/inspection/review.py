"""The review of a candidate before it is published: what changed and why, its cost, gold questions, quality.

A candidate that waits for review was refused with a fixed reason, so every place that knows refusals knows it, too.
Keep out: publishing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import datetime

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.answer_figures import MAX_ANSWER_CHARS, answer_body, shorten
from graphrag_pipeline.evaluation.index_quality.measurement import measure_quality
from graphrag_pipeline.evaluation.questions import read_gold
from graphrag_pipeline.evaluation.regression_gate import (
    GoldenFigure,
    compare_golden,
    find_golden_questions,
    without_models,
)
from graphrag_pipeline.inspection.index_reports import report_ledger
from graphrag_pipeline.inspection.snapshot_diff import SnapshotDiff, diff_snapshots, render_diff
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import CANDIDATE
from graphrag_pipeline.publishing.candidates import check_candidate, open_published
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.storage.snapshot_store import find_snapshot, read_review, refusal_of
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.text.counted import counted
from graphrag_pipeline.text.safe_output import neutralize_markdown

_N_PASSAGES = 3
_MAX_QUOTED = 200
"""Characters of a passage that are shown."""
_DIGITS = 3
_MAX_SHOWN = 8
"""Changes of one kind that are shown; `--json` has all."""


@dataclass(frozen=True)
class QuestionChange:
    """A gold question whose answer or first passages differ.

    Attributes:
        answer_before, answer_after: the beginning of the answers of local search: by the model, if one answered for the
            golden questions in both snapshots, else as the embedded engine quotes them.
        before, after: the first passages of local search without a model, as "title: text", best first.
    """

    question: str
    answer_before: str
    answer_after: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class FigureChange:
    """A figure of the index or of golden questions; None if it was not measured.

    Attributes:
        threshold: in words, such as "at least 0.9"; "" if none is set.
        verdict: `within` or `beyond` the threshold; "" without a threshold or a value.
        advice: what to do if `after` is beyond its threshold; "" if it is not.
    """

    meaning: str
    before: float | None
    after: float | None
    threshold: str
    verdict: str
    advice: str


@dataclass(frozen=True)
class Review:
    """What a reviewer has to know of a candidate.

    Attributes:
        state: `waiting`, `rejected`, `published`, or "" for a candidate that needs no review.
        reason: why it is not published; "" if it is.
        published: id of the published snapshot; None: nothing is published.
        diff: from the published snapshot; None without one.
        problems: of the checks that it does not pass.
        n_calls, cost: model calls since the publication, and US dollars.
        n_questions: gold questions that were compared.
    """

    candidate: str
    state: str
    reason: str
    published: str | None
    diff: SnapshotDiff | None
    problems: tuple[str, ...]
    n_calls: int
    cost: float
    n_questions: int
    questions: tuple[QuestionChange, ...]
    figures: tuple[FigureChange, ...]


def find_candidate(root: Root, start: str = "") -> str:
    """Return the id of the newest candidate, or the snapshot with these first digits.

    Raises:
        PipelineError: nothing was indexed, or no snapshot is called so.
    """
    if start:
        return find_snapshot(root.snapshots, start)
    head = root.tables.head(CANDIDATE.name)
    if head is None:
        raise PipelineError("there is no candidate yet; run `graphrag-pipeline index`")
    return head.data_version


def review_candidate(root: Root, candidate: str) -> Review:
    """Compare a candidate with the published snapshot; no model is asked, but an embedding model embeds gold questions.

    Raises:
        PipelineError: the candidate cannot be read.
    """
    published = root.snapshots.current()
    is_published = candidate == published
    with ExitStack() as opened:
        new = opened.enter_context(closing(root.snapshots.open(candidate)))
        old = None if is_published else open_published(root.snapshots)
        if old:
            opened.enter_context(closing(old))
        results = check_candidate(root.snapshots, new, old, root.settings.publishing)
        problems = [f"{result.name}: {text}" for result in results for text in result.problems]
        before, after, worse = compare_golden(root, candidate)
        problems += [f"golden_questions: {text}" for text in worse]
        n_questions, questions = _compare_questions(root, old, new, (_answers(before), _answers(after)))
        n_calls, cost = _paid_since(root, old)
        return Review(
            candidate,
            "published" if is_published else read_review(root.snapshots, candidate),
            "" if is_published else refusal_of(root.snapshots, candidate),
            published,
            diff_snapshots(old, new) if old else None,
            tuple(problems),
            n_calls,
            cost,
            n_questions,
            questions,
            (*_compare_golden_figures(before, after), *_compare_figures(root, old, new)),
        )


def _answers(figures: Sequence[GoldenFigure]) -> dict[str, str]:
    """Return what a model answered, by question."""
    return {
        asked.question: answer
        for figure in figures
        for asked, answer in zip(figure.questions, figure.answers, strict=False)
        if answer
    }


def _compare_questions(
    root: Root, old: Snapshot | None, new: Snapshot, by_model: tuple[Mapping[str, str], Mapping[str, str]]
) -> tuple[int, tuple[QuestionChange, ...]]:
    """Return how many gold questions there are, and those whose answers or first passages differ; none without a file.

    Args:
        by_model: answers of a model before and after, by question.
    """
    if not root.settings.publishing.golden_questions or old is None:
        return 0, ()
    questions = [question.question for question in read_gold(find_golden_questions(root))]
    found = (_ask(root, snapshot, questions) for snapshot in (old, new))
    changes = []
    for question, (answer, passages), (new_answer, new_passages) in zip(questions, *found, strict=True):
        if all(question in answers for answers in by_model):
            answer, new_answer = (answers[question] for answers in by_model)
        if (answer, passages) != (new_answer, new_passages):
            changes.append(QuestionChange(question, answer, new_answer, passages, new_passages))
    return len(questions), tuple(changes)


def _ask(root: Root, snapshot: Snapshot, questions: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the answer to each question without a model, and its first passages."""
    index = GraphIndex(snapshot, without_models(root.settings), root.embedder, root)
    for question in questions:
        found = index.search(question, "local")
        quoted = [(one.document_title, one.quote or "") for one in found.citations[:_N_PASSAGES]]
        passages = tuple(f"{title}: {shorten(text, _MAX_QUOTED)}" for title, text in quoted)
        yield shorten(answer_body(found.answer, "embedded"), MAX_ANSWER_CHARS), passages


def _paid_since(root: Root, published: Snapshot | None) -> tuple[int, float]:
    """Return calls and cost of the runs that ended after the published snapshot was made."""
    made = (published.manifest.created_ns if published else 0) / 1e9
    paid = [run for run in report_ledger(root).runs if not run.ended or _seconds(run.ended) > made]
    return sum(run.n_calls for run in paid), sum(run.cost for run in paid)


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def _compare_golden_figures(before: Sequence[GoldenFigure], after: Sequence[GoldenFigure]) -> Iterator[FigureChange]:
    for was, now in zip(before, after, strict=True):
        threshold = f"at most {now.max_drop:g} lower, `{now.setting}`"
        verdict = "beyond" if now.is_too_low(was) else "within"
        yield FigureChange(f"{now.name} of gold questions", was.mean, now.mean, threshold, verdict, "")


def _compare_figures(root: Root, old: Snapshot | None, new: Snapshot) -> Iterator[FigureChange]:
    """Yield the quality figures; none if they cannot be measured or are switched off."""
    if not root.settings.quality.measure_after_publishing:
        return
    try:
        after = measure_quality(root, new, old).figures
        before = {figure.name: figure.value for figure in measure_quality(root, old).figures} if old else {}
    except PipelineError:
        return
    settings = root.settings.quality
    for figure in after:
        threshold, is_low = figure.render_threshold(settings), figure.is_low(settings)
        verdict = "beyond" if is_low else "within" if threshold and figure.value is not None else ""
        advice = figure.kind.advice if is_low else ""
        yield FigureChange(figure.kind.meaning, before.get(figure.name), figure.value, threshold, verdict, advice)


def render_review(review: Review) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the level, the heading and the lines of each part of a review, the most important first."""
    facts = [f"published: {review.published or 'nothing'}", *([review.reason] if review.state == "rejected" else [])]
    facts.append(f"model calls since the publication: {review.n_calls:,}, {review.cost:.4f} USD")
    yield 2, f"Candidate {review.candidate}{f': {review.state}' if review.state else ''}", facts
    yield 2, "Checks", list(review.problems) or ["all passed"]
    if review.diff:
        yield 2, "Changes", render_diff(review.diff, _MAX_SHOWN)[1:]
    if review.n_questions:
        changed = len(review.questions)
        asked = counted(review.n_questions, "questions")
        cut = f"; of an answer, the first {MAX_ANSWER_CHARS} characters are shown" if changed else ""
        yield 2, "Gold questions", [f"{changed:,} of {asked} have another answer or other evidence{cut}"]
        for one in review.questions:
            answers = [f"answer before: {one.answer_before}", f"answer after: {one.answer_after}"]
            yield 3, one.question, [*answers, *_passages("before", one.before), *_passages("after", one.after)]
    if review.figures:
        measured = [figure for figure in review.figures if figure.after is not None or figure.before is not None]
        yield 2, "Quality", [_describe_figure(figure) for figure in measured]


def _passages(when: str, passages: Sequence[str]) -> list[str]:
    return [f"evidence {when}: {passage}" for passage in passages] or [f"evidence {when}: nothing"]


def _describe_figure(figure: FigureChange) -> str:
    before, after = ("not measured" if v is None else f"{round(v, _DIGITS):g}" for v in (figure.before, figure.after))
    values = after if figure.before is None else f"{before} -> {after}"
    judged = "" if figure.threshold else ", no threshold"
    if figure.verdict:
        judged = f", {figure.verdict} its threshold ({figure.threshold})"
    return ". ".join(filter(None, [f"{figure.meaning}: {values}{judged}", figure.advice]))


def to_markdown(review: Review) -> str:
    """Return a review as Markdown, such as for a comment of a CI job; no text in it makes a link, image or HTML."""
    parts = []
    for level, heading, lines in render_review(review):
        shown = [f"- {neutralize_markdown(line)}" for line in lines]
        parts.append("\n".join([f"{'#' * level} {neutralize_markdown(heading)}", "", *shown]))
    return "\n\n".join(parts) + "\n"
