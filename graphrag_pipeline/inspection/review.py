"""The review of a candidate before it is published: what changed and why, its cost, gold questions, quality.

A candidate that waits for review was refused with a fixed reason, so every place that knows refusals knows it, too.
Keep out: publishing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import datetime

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.index_quality.measurement import measure_quality
from graphrag_pipeline.evaluation.questions import read_gold
from graphrag_pipeline.evaluation.regression_gate import explain_worse, find_golden_questions, without_models
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
    """A gold question whose first passages differ.

    Attributes:
        before, after: the first passages of local search without a model, as "title: text", best first.
    """

    question: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class FigureChange:
    """A quality figure; None if it was not measured.

    Attributes:
        advice: what to do if `after` is beyond its threshold; "" if it is not.
    """

    meaning: str
    before: float | None
    after: float | None
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
        problems += [f"golden_questions: {text}" for text in explain_worse(root, candidate)]
        n_questions, questions = _compare_questions(root, old, new)
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
            tuple(_compare_figures(root, old, new)),
        )


def _compare_questions(root: Root, old: Snapshot | None, new: Snapshot) -> tuple[int, tuple[QuestionChange, ...]]:
    """Return how many gold questions there are, and those whose first passages differ; no question without a file."""
    if not root.settings.publishing.golden_questions or old is None:
        return 0, ()
    questions = [question.question for question in read_gold(find_golden_questions(root))]
    before, after = (_ask(root, snapshot, questions) for snapshot in (old, new))
    compared = zip(questions, before, after, strict=True)
    return len(questions), tuple(QuestionChange(text, was, now) for text, was, now in compared if was != now)


def _ask(root: Root, snapshot: Snapshot, questions: Sequence[str]) -> list[tuple[str, ...]]:
    index = GraphIndex(snapshot, without_models(root.settings), root.embedder, root)
    found = [index.search(question, "local").citations[:_N_PASSAGES] for question in questions]
    return [tuple(f"{one.document_title}: {_shorten(one.quote or '')}" for one in citations) for citations in found]


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_QUOTED else f"{line[:_MAX_QUOTED]}..."


def _paid_since(root: Root, published: Snapshot | None) -> tuple[int, float]:
    """Return calls and cost of the runs that ended after the published snapshot was made."""
    made = (published.manifest.created_ns if published else 0) / 1e9
    paid = [run for run in report_ledger(root).runs if not run.ended or _seconds(run.ended) > made]
    return sum(run.n_calls for run in paid), sum(run.cost for run in paid)


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def _compare_figures(root: Root, old: Snapshot | None, new: Snapshot) -> Iterator[FigureChange]:
    """Yield the quality figures; none if they cannot be measured or are switched off."""
    if not root.settings.quality.measure_after_publishing:
        return
    try:
        after = measure_quality(root, new, old).figures
        before = {figure.name: figure.value for figure in measure_quality(root, old).figures} if old else {}
    except PipelineError:
        return
    for figure in after:
        advice = figure.kind.advice if figure.is_low(root.settings.quality) else ""
        yield FigureChange(figure.kind.meaning, before.get(figure.name), figure.value, advice)


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
        yield 2, "Gold questions", [f"{changed:,} of {counted(review.n_questions, 'questions')} find other passages"]
        for one in review.questions:
            yield 3, one.question, [*_passages("before", one.before), *_passages("after", one.after)]
    if review.figures:
        measured = [figure for figure in review.figures if figure.after is not None or figure.before is not None]
        yield 2, "Quality", [_describe_figure(figure) for figure in measured]


def _passages(when: str, passages: Sequence[str]) -> list[str]:
    return [f"{when}: {passage}" for passage in passages] or [f"{when}: nothing"]


def _describe_figure(figure: FigureChange) -> str:
    before, after = ("not measured" if v is None else f"{round(v, _DIGITS):g}" for v in (figure.before, figure.after))
    values = after if figure.before is None else f"{before} -> {after}"
    return f"{figure.meaning}: {values}{f' ({figure.advice})' if figure.advice else ''}"


def to_markdown(review: Review) -> str:
    """Return a review as Markdown, such as for a comment of a CI job; no text in it makes a link, image or HTML."""
    parts = []
    for level, heading, lines in render_review(review):
        shown = [f"- {neutralize_markdown(line)}" for line in lines]
        parts.append("\n".join([f"{'#' * level} {neutralize_markdown(heading)}", "", *shown]))
    return "\n\n".join(parts) + "\n"
