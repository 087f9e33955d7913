"""Regression gate: golden questions compare a candidate with the published snapshot before it is published.

The gate is optional (`publishing.golden_questions`). It measures both with the current settings (`golden_figures.py`):
recall of the evidence, token F1 of the answers if `publishing.max_f1_drop` is set, and the names in their first lines
if `publishing.max_passage_drop` is set. Evidence that a snapshot lacks counts as not found, so a document that can no
longer be read lowers the recall. Evidence that was deleted from the input counts in neither, and its question's
reference answer does not count. Otherwise deleted text would stay published for ever. Keep out: publishing.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.golden_figures import GoldenFigure, measure_golden, naming_snapshot
from graphrag_pipeline.evaluation.questions import Question, find_evidence, read_gold
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline.storage.snapshot_store import clear_refusal, record_refusal
from graphrag_pipeline.storage.snapshots import Snapshot

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
    worse = [pair for pair in zip(new, old, strict=True) if pair[0].is_too_low(pair[1])]
    if worse:
        reason = "; ".join(_explain(path, now, published, was) for now, was in worse)
        record_refusal(root.snapshots, candidate, reason)
        options = " and ".join(dict.fromkeys(f"`{now.setting}`" for now, _ in worse))
        raise PipelineError(
            f"candidate {candidate} is not published: {reason}. The published snapshot stays, and the candidate is "
            f"kept. Compare them with `graphrag-pipeline evaluate --snapshot {candidate} --against {published}`, fix "
            f"what changed and run `graphrag-pipeline index`, or raise {options}"
        )
    return shown | {f"golden {figure.name} before": figure.mean for figure in old}


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
