"""Measure searches with evaluation questions: their figures and the changes against an earlier result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
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
    load_figures,
    name_answers,
    name_retrieval,
    save_figures,
)
from graphrag_pipeline.evaluation.questions import Question, read_gold
from graphrag_pipeline.evaluation.retrieval_figures import (
    RetrievalFigures,
    compare_retrieval,
    measure_retrieval,
    parse_methods,
    render_figures,
)
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.storage.snapshot_store import find_snapshot
from graphrag_pipeline.text.counted import counted


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
            subject = f"{counted(len(self.with_evidence), 'questions')} with evidence"
            lines += [*render_figures(self.figures.retrieval), subject, ""]
        if self.figures.answers:
            subject = f"{counted(len(self.with_answers), 'questions')} with reference answers"
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
    measured = {one.name: (one.method, one.options) for one in (*rankers, *answerers)}
    how = (other_method.method, other_method.options) if other_method else None
    same = {name for name in measured if measured[name] == how}
    if same and len(same) == len(measured):
        raise PipelineError(
            f"`--against {against}` is the only method that is measured; name another one in `--methods`, or another "
            "method or snapshot in `--against`"
        )
    is_judged = bool(wanted.is_judged)
    ranked_as = name_retrieval(with_evidence, wanted.k, root.settings)
    answered_as = name_answers(with_answers, is_judged, root)
    unknown: tuple[str, ...] = ()

    def rank(index: GraphIndex, methods: Sequence[Condition]) -> list[RetrievalFigures]:
        nonlocal unknown
        if not methods or not rankers:
            return []
        figures, evidence = measure_retrieval(index, with_evidence, methods, wanted.k)
        unknown = evidence.unknown
        save_figures(root.path, index.snapshot.id, ranked_as, figures)
        return figures

    def answer(index: GraphIndex, methods: Sequence[Condition]) -> list[AnswerFigures]:
        if not methods or not answerers:
            return []
        figures = measure_answers(index, with_answers, methods, is_judged, on_progress)
        save_figures(root.path, index.snapshot.id, answered_as, figures)
        return figures

    figures = Measured(tuple(rank(index, rankers)), tuple(answer(index, answerers)))
    found = Evaluation(index.snapshot.id, wanted.k, tuple(with_evidence), tuple(with_answers), figures, unknown,
                       unmeasured=unmeasured, same=frozenset(same))  # fmt: skip
    if other_method:
        # One other method on the same snapshot, set beside each method.
        ranked = rank(index, [other_method] if other_method.finds_text_units else [])
        answered = answer(index, [other_method])
        other = Measured(tuple(ranked * len(rankers)), tuple(answered * len(answerers)))
        return replace(found, against=other_method.name, other=other)
    if other_snapshot:
        ranks = load_figures(root.path, other_snapshot, ranked_as, RetrievalFigures)
        answers = load_figures(root.path, other_snapshot, answered_as, AnswerFigures)
        if not ({one.name for one in rankers} <= ranks.keys() and {one.name for one in answerers} <= answers.keys()):
            with GraphIndex.of_root(root, other_snapshot) as other_index:
                ranks = {row.method: row for row in rank(other_index, rankers)}
                answers = {row.method: row for row in answer(other_index, answerers)}
        other = Measured(tuple(ranks[one.name] for one in rankers), tuple(answers[one.name] for one in answerers))
        return replace(found, against=other_snapshot, other=other)
    return found


def _decide(index: GraphIndex, questions: Sequence[Question], wanted: Wanted) -> tuple[Wanted, str]:
    """Return what to measure with its defaults filled in, and why reference answers are not used."""
    n = sum(bool(question.answers) for question in questions)
    if wanted.with_answers and not n:
        raise PipelineError("no question has a reference answer; write one under `answer` in the question file")
    is_paid = any(getattr(index.settings, name).engine == "model" for name in ("answers", "rating"))
    with_answers = bool(n) and not is_paid if wanted.with_answers is None else wanted.with_answers
    is_judged = wanted.is_judged
    if is_judged is None:
        is_judged = bool(wanted.with_answers and index.settings.chat_model_for("evaluation").model)
    why = f"{n:,} questions have reference answers; a model answers them, which costs money: add `--answers`"
    unmeasured = why if n and wanted.with_answers is None and is_paid else ""
    return Wanted(wanted.methods, wanted.k, with_answers, is_judged and with_answers), unmeasured


def _choose_methods(wanted: Wanted, has_evidence: bool, has_answers: bool) -> tuple[list[Condition], list[Condition]]:
    """Return the methods that rank and those that answer.

    Raises:
        PipelineError: a name is unknown, or a method measures nothing.
    """
    if not has_evidence and not has_answers:
        raise PipelineError("no question has evidence, so there is no recall to measure; add `--answers`, or evidence")
    named = [name for name in wanted.methods if name.strip()]
    if not has_answers:
        return parse_methods(named or retrieval_figures.DEFAULT_METHODS), []
    answerers = [parse_condition(name) for name in named or answer_figures.DEFAULT_METHODS]
    if not has_evidence:
        return [], answerers
    rankers = answerers if named else parse_methods(retrieval_figures.DEFAULT_METHODS)
    return [one for one in rankers if one.finds_text_units], answerers


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
