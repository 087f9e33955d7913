"""Measure searches with evaluation questions: their figures and the changes against an earlier result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from graphrag_pipeline.errors import NoSnapshotError, PipelineError
from graphrag_pipeline.evaluation import answer_figures, retrieval_figures
from graphrag_pipeline.evaluation.answer_figures import (
    AnswerFigures,
    compare_answers,
    list_changed,
    measure_answers,
    name_failures,
    render_answers,
)
from graphrag_pipeline.evaluation.conditions import Condition, parse_condition
from graphrag_pipeline.evaluation.confidence import PairedDifference
from graphrag_pipeline.evaluation.figures_store import (
    load_answers,
    load_retrieval,
    name_answers,
    name_retrieval,
    save_answers,
    save_retrieval,
)
from graphrag_pipeline.evaluation.questions import Question, find_repeated, read_gold
from graphrag_pipeline.evaluation.retrieval_figures import (
    RetrievalFigures,
    compare_retrieval,
    measure_retrieval,
    parse_methods,
    render_figures,
)
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.storage.history import find_snapshot
from graphrag_pipeline.text.counted import counted

_MAX_REPEATED = 3


@dataclass(frozen=True)
class Measured:
    """Figures of some methods on one snapshot; either part may be empty."""

    retrieval: tuple[RetrievalFigures, ...] = ()
    answers: tuple[AnswerFigures, ...] = ()


@dataclass(frozen=True)
class Evaluation:
    """Figures of an index on gold questions.

    Attributes:
        with_evidence, with_answers: the questions that measure retrieval and answers.
        unknown_evidence: "place: name" of evidence that the snapshot does not have.
        against: the snapshot or method compared with; "" without a comparison.
        other: its figures, one for each of `figures`.
        unmeasured: why reference answers were not used; "" if they were, or if no question has one.
        same: names of measured methods that are the one compared with; they have no difference.
    """

    snapshot: str
    k: int
    with_evidence: tuple[Question, ...]
    with_answers: tuple[Question, ...]
    figures: Measured
    unknown_evidence: tuple[str, ...] = ()
    against: str = ""
    other: Measured = field(default_factory=Measured)
    unmeasured: str = ""
    same: frozenset[str] = frozenset()

    def differences(self) -> dict[str, list[PairedDifference]]:
        """Return the paired differences of each method from what it is compared with, by method."""
        found: dict[str, list[PairedDifference]] = {}
        for one, other in zip(self.figures.retrieval, self.other.retrieval, strict=False):
            found.setdefault(one.method, []).extend(compare_retrieval(one, other))
        for answers, others in zip(self.figures.answers, self.other.answers, strict=False):
            found.setdefault(answers.method, []).extend(compare_answers(answers, others))
        return {method: rows for method, rows in found.items() if method not in self.same}

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, dictionaries, strings and numbers."""
        record: dict[str, Any] = {
            "snapshot": self.snapshot,
            "figures": [row.to_dict() for row in self.figures.retrieval],
            "answers": [row.to_dict() for row in self.figures.answers],
            "unknown_evidence": list(self.unknown_evidence),
            "failed_judgements": self.list_failures(),
            "repeated_questions": find_repeated(list(dict.fromkeys((*self.with_evidence, *self.with_answers)))),
        }
        if not self.against:
            return record
        return record | {
            "against": self.against,
            "figures_against": [row.to_dict() for row in self.other.retrieval],
            "answers_against": [row.to_dict() for row in self.other.answers],
            "differences": {method: [asdict(d) for d in rows] for method, rows in self.differences().items()},
        }

    def render(self) -> list[str]:
        """Return lines of text: the tables, the differences, and what was measured."""
        lines: list[str] = []
        if self.figures.retrieval:
            subject = _count(self.with_evidence, "with evidence")
            lines += [*render_figures(self.figures.retrieval), subject, ""]
        if self.figures.answers:
            subject = _count(self.with_answers, "with reference answers")
            lines += [*render_answers(self.figures.answers), subject, ""]
        return lines + self._render_differences()

    def _render_differences(self) -> list[str]:
        lines = []
        for method, rows in self.differences().items():
            lines.append(f"{method} minus {self.against}: mean difference, questions won, lost, tied, sign test")
            for row in rows:
                counts = f"{row.wins:>4} {row.losses:>4} {row.ties:>4}  p {row.p_value:.3f}"
                lines.append(f"  {row.figure:16}  {row.difference.render(sign='+'):26}  {counts}")
        for answers, others in zip(self.figures.answers, self.other.answers, strict=False):
            changed = [] if answers.method in self.same else list_changed(self.with_answers, answers, others)
            lines += [f"{answers.method}: largest changes of token F1", *changed] if changed else []
        return [*lines, ""] if lines else []

    def list_failures(self) -> list[str]:
        """Return lines that name each judgement without a usable reply."""
        rows = (*self.figures.answers, *self.other.answers)
        return list(dict.fromkeys(line for row in rows for line in name_failures(self.with_answers, row)))


def _count(questions: tuple[Question, ...], what: str) -> str:
    repeated = find_repeated(questions)
    named = ", ".join(repeated[:_MAX_REPEATED]) + (" and others" if len(repeated) > _MAX_REPEATED else "")
    note = f"; asked before, and each counts: {named}" if repeated else ""
    return f"{counted(len(questions), 'questions')} {what}{note}"


OnProgress = Callable[[str], None]


@dataclass(frozen=True)
class Wanted:
    """What to measure.

    Attributes:
        methods: names of ways to answer; empty means the defaults of retrieval and of answers.
        k: number of text units in which evidence is looked for.
        with_answers: whether answers are measured; None measures them if reference answers exist and no model is paid.
        is_judged: whether a model judges the answers; None judges if answers are measured on request and a model of
            `evaluation` is named.
    """

    methods: tuple[str, ...] = ()
    k: int = 5
    with_answers: bool | None = None
    is_judged: bool | None = None


def evaluate_index(
    root: Root,
    questions: str | Path,
    methods: Sequence[str] = (),
    k: int = 5,
    snapshot: str | None = None,
    against: str | None = None,
    with_answers: bool | None = None,
    is_judged: bool | None = None,
) -> Evaluation:
    """Measure an index on a file of gold questions, and store the figures in the root.

    Args:
        questions: JSONL or CSV file with `question`, and `evidence`, `answer` or both.
        methods: ways to answer, such as "basic", "local:graph"; default: retrieval by every ranker, answers by every
            search.
        snapshot: id or its first digits; None is the published one.
        against: another snapshot, or another way to answer.
        with_answers: None measures answers if the file has reference answers and no model is paid for them.
        is_judged: whether a model judges claims and faithfulness; None does if a model is named and `with_answers` is
            true.

    Raises:
        PipelineError: the file, a method or a snapshot cannot be used, or a model cannot be called.
    """
    wanted = Wanted(tuple(methods), k, with_answers, is_judged)
    chosen = find_snapshot(root.snapshots, snapshot) if snapshot else None
    with GraphIndex.of_root(root, chosen) as index:
        return measure(root, index, read_gold(Path(questions)), wanted, against)


def measure(
    root: Root,
    index: GraphIndex,
    questions: Sequence[Question],
    wanted: Wanted,
    against: str | None = None,
    on_progress: OnProgress = lambda line: None,
) -> Evaluation:
    """Measure an opened index, store the figures, and compare them with `against` if it is given.

    Raises:
        PipelineError: like `evaluate_index`.
    """
    wanted, unmeasured = _decide(index, questions, wanted)
    with_evidence = [question for question in questions if question.evidence]
    with_answers = [question for question in questions if question.answers] if wanted.with_answers else []
    rankers, answerers = _choose_methods(wanted, bool(with_evidence), bool(with_answers))
    other_snapshot, other_method = _find_other(root, against)
    same = _names_of(other_method, (*rankers, *answerers)) if other_method else frozenset()
    job = _Job(root, with_evidence, with_answers, rankers, answerers, wanted, on_progress)
    figures, unknown = job.measure(index)
    other = Measured()
    if other_snapshot:
        other = job.recall_or_measure(other_snapshot)
    elif other_method:
        other = job.measure_method(index, other_method)
    return Evaluation(
        index.snapshot.id,
        wanted.k,
        tuple(with_evidence),
        tuple(with_answers),
        figures,
        unknown,
        other_snapshot or (other_method.name if other_method else ""),
        other,
        unmeasured,
        same,
    )


def _decide(index: GraphIndex, questions: Sequence[Question], wanted: Wanted) -> tuple[Wanted, str]:
    """Return what to measure with its defaults filled in, and why reference answers are not used."""
    has_answers = any(question.answers for question in questions)
    if wanted.with_answers and not has_answers:
        raise PipelineError("no question has a reference answer; write one under `answer` in the question file")
    is_paid = any(getattr(index.settings, name).engine == "model" for name in ("answers", "rating"))
    with_answers = has_answers and not is_paid if wanted.with_answers is None else wanted.with_answers
    is_judged = wanted.is_judged
    if is_judged is None:
        is_judged = bool(wanted.with_answers and index.settings.chat_model_for("evaluation").model)
    n = sum(bool(question.answers) for question in questions)
    why = f"{n:,} questions have reference answers; a model answers them, which costs money: add `--answers`"
    unmeasured = why if has_answers and wanted.with_answers is None and is_paid else ""
    return Wanted(wanted.methods, wanted.k, with_answers, is_judged and with_answers), unmeasured


def _choose_methods(wanted: Wanted, has_evidence: bool, has_answers: bool) -> tuple[list[Condition], list[Condition]]:
    """Return the methods that rank and those that answer.

    Raises:
        PipelineError: a name is unknown, or a method measures nothing.
    """
    if not has_evidence and not has_answers:
        raise PipelineError("no question has evidence, so there is no recall to measure; add `--answers`, or evidence")
    named = [parse_condition(name) for name in wanted.methods if name.strip()]
    if not named:
        rankers = parse_methods(retrieval_figures.DEFAULT_METHODS) if has_evidence else []
        answerers = [parse_condition(name) for name in answer_figures.DEFAULT_METHODS] if has_answers else []
        return rankers, answerers
    if not has_answers:
        return parse_methods(wanted.methods), []
    return [one for one in named if one.finds_text_units] if has_evidence else [], named


def _find_other(root: Root, against: str | None) -> tuple[str, Condition | None]:
    """Return the snapshot or the method that `against` names.

    Raises:
        NoSnapshotError: neither has the name.
    """
    if not against:
        return "", None
    try:
        return find_snapshot(root.snapshots, against), None
    except NoSnapshotError as error:
        try:
            return "", parse_condition(against)
        except PipelineError as unknown:
            raise NoSnapshotError(f"{error}; nor is it a way to answer: {unknown}") from None


def _names_of(other: Condition, measured: Sequence[Condition]) -> frozenset[str]:
    """Return the names of the measured conditions that answer as another one does, however they are written.

    Raises:
        PipelineError: all do, so that nothing is compared.
    """
    names = frozenset(one.name for one in measured if (one.method, one.options) == (other.method, other.options))
    if names and all(one.name in names for one in measured):
        raise PipelineError(
            f"`--against {other.name}` is the only method that is measured; name another one in `--methods`, or "
            "another method or snapshot in `--against`"
        )
    return names


@dataclass(frozen=True)
class _Job:
    """Questions and methods to measure on one snapshot or two."""

    root: Root
    with_evidence: Sequence[Question]
    with_answers: Sequence[Question]
    rankers: Sequence[Condition]
    answerers: Sequence[Condition]
    wanted: Wanted
    on_progress: OnProgress

    def measure(self, index: GraphIndex) -> tuple[Measured, tuple[str, ...]]:
        """Measure and store; return the figures, and the evidence that the snapshot does not have."""
        retrieval, unknown = self._rank(index, self.rankers)
        return Measured(tuple(retrieval), tuple(self._answer(index, self.answerers))), unknown

    def recall_or_measure(self, snapshot: str) -> Measured:
        """Return stored figures of another snapshot if questions and settings are the same; else measure it."""
        path, settings = self.root.path, self.root.settings
        ranked = load_retrieval(path, snapshot, name_retrieval(self.with_evidence, self.wanted.k, settings))
        is_judged = bool(self.wanted.is_judged)
        answered = load_answers(path, snapshot, name_answers(self.with_answers, is_judged, self.root))
        if {one.name for one in self.rankers} <= ranked.keys() and {
            one.name for one in self.answerers
        } <= answered.keys():
            return Measured(
                tuple(ranked[one.name] for one in self.rankers), tuple(answered[one.name] for one in self.answerers)
            )
        with GraphIndex.of_root(self.root, snapshot) as index:
            return self.measure(index)[0]

    def measure_method(self, index: GraphIndex, other: Condition) -> Measured:
        """Measure one other method on the same snapshot, and set it beside each method."""
        ranks = self.rankers and other.finds_text_units
        [retrieval] = self._rank(index, [other])[0] if ranks else [None]
        [answers] = self._answer(index, [other]) if self.answerers else [None]
        return Measured(
            (retrieval,) * len(self.rankers) if retrieval else (), (answers,) * len(self.answerers) if answers else ()
        )

    def _rank(
        self, index: GraphIndex, methods: Sequence[Condition]
    ) -> tuple[Sequence[RetrievalFigures], tuple[str, ...]]:
        if not methods:
            return (), ()
        figures, evidence = measure_retrieval(index, self.with_evidence, methods, self.wanted.k)
        name = name_retrieval(self.with_evidence, self.wanted.k, self.root.settings)
        save_retrieval(self.root.path, index.snapshot.id, name, figures)
        return figures, evidence.unknown

    def _answer(self, index: GraphIndex, methods: Sequence[Condition]) -> Sequence[AnswerFigures]:
        if not methods:
            return ()
        is_judged = bool(self.wanted.is_judged)
        figures = measure_answers(index, self.with_answers, methods, is_judged, self.on_progress)
        name = name_answers(self.with_answers, is_judged, self.root)
        save_answers(self.root.path, index.snapshot.id, name, figures)
        return figures
