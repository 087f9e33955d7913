"""Checks of a candidate snapshot before publication: golden questions against the published one, trial searches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.answer_figures import AnswerFigures, measure_answers
from graphrag_pipeline.evaluation.conditions import parse_condition
from graphrag_pipeline.evaluation.confidence import Estimate, estimate_share
from graphrag_pipeline.evaluation.figures_store import (
    Figures,
    load_figures,
    name_answers,
    name_retrieval,
    save_figures,
)
from graphrag_pipeline.evaluation.questions import Question, find_evidence, read_gold
from graphrag_pipeline.evaluation.retrieval_figures import RetrievalFigures, measure_retrieval
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.settings.search_names import CHOOSABLE_METHODS
from graphrag_pipeline.storage.snapshot_store import clear_refusal, record_refusal
from graphrag_pipeline.storage.snapshots import Snapshot

if TYPE_CHECKING:
    from graphrag_pipeline.models.ports import Failure
    from graphrag_pipeline.pipeline.root import Root
    from graphrag_pipeline.settings.settings import Settings
    from graphrag_pipeline.storage.snapshots import Snapshot

METHOD = "local"
GOLDEN_K = 5
"""Text units of local search in which recall looks for evidence: about what a model reads of a small context."""
_DIGITS = 6


@dataclass(frozen=True)
class GoldenFigure:
    """One figure of golden questions that a candidate must keep.

    Attributes:
        values: of each question, in order; more is better.
        setting: the option with the largest drop that is allowed, `max_drop`.
        worse: what a snapshot with a lower value does, for messages.
        answers: what a model answered to each question, shortened; "" if no model did.
    """

    name: str
    questions: tuple[Question, ...]
    values: tuple[float, ...]
    setting: str
    max_drop: float
    worse: str
    answers: tuple[str, ...] = ()

    @cached_property
    def estimate(self) -> Estimate:
        """The mean with its confidence interval, which takes thousands of samples."""
        return estimate_share(self.values)

    @property
    def mean(self) -> float:
        return self.estimate.mean or 0.0

    def is_too_low(self, before: GoldenFigure) -> bool:
        """Whether the mean is lower than another one by more than is allowed."""
        return round(before.mean - self.mean, _DIGITS) > self.max_drop


def measure_golden(root: Root, snapshot: str, questions: Sequence[Question]) -> list[GoldenFigure]:
    """Measure a snapshot: recall if questions have evidence, and what has a limit if they have answers.

    `max_f1_drop` measures token F1, `max_passage_drop` the first three passages of extractive answers.

    Raises:
        PipelineError: the snapshot cannot be opened with the current settings, or has none of the evidence.
    """
    settings = root.settings.publishing
    local = [parse_condition(METHOD)]
    figures = []
    if found := tuple(question for question in questions if question.evidence):
        name = name_retrieval(found, GOLDEN_K, root.settings)
        recalls = _recall_or_measure(
            root, snapshot, name, RetrievalFigures, lambda index: measure_retrieval(index, found, local, GOLDEN_K)[0]
        ).recalls
        limit = "publishing.max_recall_drop", settings.max_recall_drop
        figures.append(GoldenFigure(f"recall@{GOLDEN_K}", found, recalls, *limit, "finds less"))
    answered = tuple(question for question in questions if question.answers)
    is_extractive = settings.max_passage_drop is not None and root.settings.answers.engine == "embedded"
    has_passages = is_extractive and any(not question.is_unanswerable for question in answered)
    if not answered or not (has_passages or settings.max_f1_drop is not None):
        return figures
    name = name_answers(answered, False, root)
    scores = _recall_or_measure(
        root, snapshot, name, AnswerFigures, lambda index: measure_answers(index, answered, local)
    ).answers
    if settings.max_f1_drop is not None:
        limit = "publishing.max_f1_drop", settings.max_f1_drop
        values = tuple(answer.f1 for answer in scores)
        texts = tuple(answer.answer for answer in scores)
        figures.append(GoldenFigure("token F1", answered, values, *limit, "answers worse", texts))
    if has_passages:
        pairs = zip(answered, scores, strict=True)
        held = [(question, one.in_three) for question, one in pairs if one.in_three is not None]
        asked, shares = zip(*held, strict=True)
        most = settings.max_passage_drop or 0.0
        name = "answers in three passages"
        figures.append(GoldenFigure(name, asked, shares, "publishing.max_passage_drop", most, "shows the answer later"))
    return figures


def _recall_or_measure(
    root: Root, snapshot: str, name: str, kind: type[Figures], measure: Callable[[GraphIndex], Sequence[Figures]]
) -> Figures:
    """Return stored figures of local search, else measure and store them."""
    kept = load_figures(root.path, snapshot, name, kind).get(METHOD)
    if kept is None:
        with (
            naming_snapshot(snapshot),
            GraphIndex(root.snapshots.open(snapshot), root.settings, root.embedder, root) as index,
        ):
            [kept] = measure(index)
        save_figures(root.path, snapshot, name, [kept])
    return kept


@contextmanager
def naming_snapshot(snapshot: str) -> Iterator[None]:
    """Name the snapshot that cannot be measured, and the way out, in a PipelineError."""
    try:
        yield
    except PipelineError as error:
        raise PipelineError(
            f"the golden questions cannot be measured on snapshot {snapshot} ({error}); clear "
            "`publishing.golden_questions` to publish without them"
        ) from None


_MAX_NAMED = 3
_MAX_LEFT_OUT = 20
_log = logging.getLogger(__name__)


def check_golden_questions(root: Root, candidate: str) -> dict[str, Any]:
    """Refuse a candidate that finds or answers less than the published snapshot; return {} without golden questions.

    Returns:
        Figures to show: of the candidate, and of the published snapshot if one exists; evidence left out.

    Raises:
        PipelineError: a figure falls by more than `publishing.max_recall_drop`, `publishing.max_f1_drop` or
            `publishing.max_passage_drop`, the question file cannot be read, or a snapshot cannot be measured.
    """
    settings = root.settings.publishing
    clear_refusal(root.snapshots, candidate)
    if not settings.golden_questions:
        return {}
    path = find_golden_questions(root)
    questions = read_gold(path)
    shown: dict[str, Any] = {}
    published = root.snapshots.current()
    if published is not None:
        counted, left_out = leave_out_deleted(root, candidate, published, questions)
        _warn_about(left_out)
        shown = {"golden evidence left out": left_out} if left_out else {}
        shown |= {"golden questions skipped": n} if (n := len(questions) - len(counted)) else {}
        questions = counted
    try:
        new = measure_golden(root, candidate, questions)
    except PipelineError as error:
        record_refusal(root.snapshots, candidate, str(error))
        raise
    for figure in new:
        shown |= {f"golden {figure.name}": figure.mean, f"golden {figure.name} interval": figure.estimate.render()}
    if published in (None, candidate) or not new:
        return shown
    old = measure_golden(root, published, questions)
    worse = _find_worse(path, new, published, old)
    if worse:
        reason = "; ".join(worse)
        record_refusal(root.snapshots, candidate, reason)
        options = " and ".join(dict.fromkeys(f"`{setting}`" for setting in worse.values()))
        raise PipelineError(
            f"candidate {candidate} is not published: {reason}. The published snapshot stays, and the candidate is "
            f"kept. Compare them with `graphrag-pipeline evaluate --snapshot {candidate} --against {published}`, fix "
            f"what changed and run `graphrag-pipeline index`, or raise {options}"
        )
    return shown | {f"golden {figure.name} before": figure.mean for figure in old}


def compare_golden(root: Root, candidate: str) -> tuple[list[GoldenFigure], list[GoldenFigure], list[str]]:
    """Return the golden figures of the published snapshot and of a candidate, and what would refuse the candidate.

    All are empty if there is nothing to compare. Nothing is refused.

    Raises:
        PipelineError: as of `check_golden_questions`.
    """
    published = root.snapshots.current()
    if not root.settings.publishing.golden_questions or published in (None, candidate):
        return [], [], []
    path = find_golden_questions(root)
    questions, _ = leave_out_deleted(root, candidate, str(published), read_gold(path))
    new, old = (measure_golden(root, str(snapshot), questions) for snapshot in (candidate, published))
    return old, new, list(_find_worse(path, new, str(published), old))


def _find_worse(path: Path, new: Sequence[GoldenFigure], published: str, old: Sequence[GoldenFigure]) -> dict[str, str]:
    """Return what is said of each figure that fell by more than is allowed -> the option that allows it."""
    pairs = zip(new, old, strict=True)
    return {_explain(path, now, published, was): now.setting for now, was in pairs if now.is_too_low(was)}


def find_golden_questions(root: Root) -> Path:
    """Return the path that `publishing.golden_questions` names, relative to the root.

    Raises:
        PipelineError: the setting is empty, or the file does not exist.
    """
    name = root.settings.publishing.golden_questions
    if not name:
        raise PipelineError("no question file: name one, or set `publishing.golden_questions` in settings.yaml")
    path = (root.path / name).absolute()
    if not path.exists():
        raise PipelineError(
            f"{path}: no such file; `publishing.golden_questions` in settings.yaml names it, relative to "
            f"{root.path.absolute()}"
        )
    return path


def _warn_about(left_out: Sequence[str]) -> None:
    """Log which evidence does not count."""
    for name in left_out[:_MAX_LEFT_OUT]:
        _log.warning("golden questions: not counted, because it was deleted from the input: %s", name)
    if len(left_out) > _MAX_LEFT_OUT:
        _log.warning("golden questions: and %s more are not counted", f"{len(left_out) - _MAX_LEFT_OUT:,}")


def leave_out_deleted(
    root: Root, candidate: str, published: str, questions: Sequence[Question]
) -> tuple[list[Question], list[str]]:
    """Return the questions with the evidence that counts, and what was left out as "place: name".

    Evidence that the candidate lacks counts if the published snapshot has it and its document is still in the input,
    readable or not. Then the index lost it. A question that lost evidence lost its reference answer, too, and one with
    neither is dropped.

    Raises:
        PipelineError: a snapshot cannot be read.
    """
    with naming_snapshot(candidate):
        here = find_evidence(root.snapshots.open(candidate), questions)
    with naming_snapshot(published):
        snapshot = root.snapshots.open(published)
        there = find_evidence(snapshot, questions)
        is_lost = _find_lost(root, snapshot, {row for rows in there.rows for found in rows for row in found})
    counted, left_out = [], []
    for question, new, old in zip(questions, here.rows, there.rows, strict=True):
        is_counted = [bool(found) or not is_lost.isdisjoint(was) for found, was in zip(new, old, strict=True)]
        named = list(zip(question.evidence, is_counted, strict=True))
        left_out += [f"{question.place}: {name}" for name, counts in named if not counts]
        kept = tuple(name for name, counts in named if counts)
        answers = question.answers if kept == question.evidence else ()
        counted.append(replace(question, evidence=kept, answers=answers))
    return [question for question in counted if question.evidence or question.answers], left_out


def _find_lost(root: Root, snapshot: Snapshot, units: set[int]) -> set[int]:
    """Return those rows of text units whose document is still in the input that was last indexed."""
    manifests = [root.tables.read("corpus_manifest", p) for p in STAGES["corpus_manifest"].partitions(root.settings)]
    rows = pa.concat_tables(manifests).select(["document_id", "path", "record", "problem"])
    is_whole = pc.equal(rows["record"], "")  # an unreadable file of records has this one row
    unreadable = rows.filter(pc.and_(is_whole, pc.is_valid(rows["problem"])))["path"].to_pylist()
    documents = snapshot.table("documents").select(["id", "path"])
    of_unreadable = documents.filter(pc.is_in(documents["path"], value_set=pa.array(unreadable, pa.string())))["id"]
    present = {*rows["document_id"].to_pylist(), *of_unreadable.to_pylist()}
    listed = sorted(units)
    document_ids = snapshot.table("text_units")["document_id"].take(pa.array(listed, pa.int64())).to_pylist()
    return {row for row, document_id in zip(listed, document_ids, strict=True) if document_id in present}


def _explain(path: Path, new: GoldenFigure, published: str, old: GoldenFigure) -> str:
    changes = zip(new.questions, old.values, new.values, strict=True)
    lost = [question for question, was, now in changes if now < was]
    named = "; ".join(f"{question.question[:80]!r}" for question in lost[:_MAX_NAMED])
    more = f" and {len(lost) - _MAX_NAMED} more" if len(lost) > _MAX_NAMED else ""
    return (
        f"{new.name} of {path.name} is {new.mean:.3f}, but {old.mean:.3f} in the published snapshot {published}, a "
        f"drop of more than `{new.setting}` = {new.max_drop:g}; it {new.worse} for {named}{more}"
    )


_VECTORS = "default-text_unit-text"


class _StoredEmbedder:
    """An embedder that knows one vector of the candidate, and gives it to every text."""

    def __init__(self, fingerprint: str, vector: np.ndarray) -> None:
        self.fingerprint = fingerprint
        self.dimensions = len(vector)
        self._vector = vector

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        return np.tile(self._vector, (len(texts), 1))

    def try_embed(
        self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None
    ) -> tuple[np.ndarray, list[Failure]]:
        return self.embed(texts), []


def try_searches(root: Root, snapshot: Snapshot) -> None:
    """Search a snapshot once by each method; an index without text units is not searched.

    Raises:
        PipelineError: a search failed, or basic search found nothing; the message names method and reason.
    """
    if not snapshot.n_rows("text_units"):
        return
    index: GraphIndex | None = None
    for method in CHOOSABLE_METHODS:
        try:
            index = index or GraphIndex(snapshot, without_models(root.settings), _embedder_of(snapshot), root)
            # The title of the first entity, else of the first document.
            table = "entities" if snapshot.n_rows("entities") else "documents"
            found = index.search(f"{snapshot.take(table, [0], ['title'])[0]['title']}?", method)
        except Exception as error:  # whatever is wrong with a candidate, it is not published
            raise _refusal(snapshot, method, str(error)) from error
        if method == "basic" and not found.context.text_units:
            raise _refusal(snapshot, method, "it found no text unit")


def _refusal(snapshot: Snapshot, method: str, reason: str) -> PipelineError:
    return PipelineError(
        f"candidate {snapshot.id} is not published, since a trial search by the method {method} failed: {reason}. Run "
        "`graphrag-pipeline verify --repair`, then `graphrag-pipeline index`"
    )


def _embedder_of(snapshot: Snapshot) -> _StoredEmbedder:
    first = snapshot.take("text_units", [0], ["id"])[0]["id"]
    return _StoredEmbedder(snapshot.manifest.embedding_fingerprint, snapshot.vectors(_VECTORS).vectors([first])[0])


def without_models(settings: Settings) -> Settings:
    """Return settings by which searches ask no model."""
    changes = {}
    for name in type(settings).model_fields:
        section = getattr(settings, name)
        free = {"engine": "embedded", "rerank": False, "breadth": 1, "depth": 1}  # one follow-up question of DRIFT
        known = {key: value for key, value in free.items() if hasattr(section, key)}
        changes[name] = section.model_copy(update=known) if known else section
    return settings.model_copy(update=changes)
