"""The regression gate: golden questions are asked of a candidate, and of what is published, before it is published.

Optional (`publishing.golden_questions`). Both are measured with the settings there are now: recall of the evidence
among the first `publishing.golden_k` text units of local search. Evidence that a snapshot lacks counts as not found, so
a document that can be read no more shows. Evidence that somebody deleted from the input counts in neither, else a
deleted text would stay published for ever. Keep out: publishing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.figures_store import load_retrieval, name_retrieval, save_retrieval
from graphrag_pipeline.evaluation.questions import Question, find_evidence, read_gold
from graphrag_pipeline.evaluation.retrieval_figures import RetrievalFigures, measure_retrieval, parse_methods
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline.query.graph_index import GraphIndex
from graphrag_pipeline.storage.history import clear_refusal, record_refusal
from graphrag_pipeline.storage.snapshots import Snapshot

METHOD = "local"
_MAX_NAMED = 3
_MAX_LEFT_OUT = 20
_log = logging.getLogger(__name__)


def check_golden_questions(root: Root, candidate: str) -> dict[str, Any]:
    """Refuse a candidate that finds less than what is published; does nothing where no golden questions are set.

    Returns:
        Figures to show: recall of the candidate, and of the published snapshot if there is one; evidence left out.

    Raises:
        PipelineError: recall falls by more than `publishing.max_recall_drop`, the file of questions cannot be read, or
            a snapshot cannot be measured.
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
        _warn_of(left_out)
        shown = {"golden evidence left out": left_out} if left_out else {}
        shown |= {"golden questions skipped": n} if (n := len(questions) - len(counted)) else {}
        questions = counted
    if not questions:
        return shown
    try:
        new = measure_golden(root, candidate, questions)
    except PipelineError as error:
        record_refusal(root.snapshots, candidate, str(error))
        raise
    shown |= {f"golden recall@{settings.golden_k}": new.recall}
    if published in (None, candidate):
        return shown
    old = measure_golden(root, published, questions)
    if round(old.recall - new.recall, 6) > settings.max_recall_drop:
        reason = _explain(path, questions, new, published, old, settings.max_recall_drop)
        record_refusal(root.snapshots, candidate, reason)
        raise PipelineError(
            f"candidate {candidate} is not published: {reason}. The published snapshot stays, the candidate waits: "
            f"compare them with `graphrag-pipeline evaluate --snapshot {candidate} --against {published}`, mend what "
            "changed and run `graphrag-pipeline index`, or raise publishing.max_recall_drop"
        )
    return shown | {f"golden recall@{settings.golden_k} before": old.recall}


def find_golden_questions(root: Root) -> Path:
    """The file that `publishing.golden_questions` names, from the root on.

    Raises:
        PipelineError: it names none, or what is not there.
    """
    name = root.settings.publishing.golden_questions
    if not name:
        raise PipelineError("which questions? name a file, or set publishing.golden_questions in settings.yaml")
    path = (root.path / name).absolute()
    if not path.exists():
        raise PipelineError(
            f"{path}: cannot be read: there is no such file; publishing.golden_questions of settings.yaml names it, "
            f"from {root.path.absolute()} on"
        )
    return path


def _warn_of(left_out: Sequence[str]) -> None:
    """Tell whoever runs the gate which evidence does not count."""
    for name in left_out[:_MAX_LEFT_OUT]:
        _log.warning("golden questions: deleted from the input, so it does not count: %s", name)
    if len(left_out) > _MAX_LEFT_OUT:
        _log.warning("golden questions: and %s more that do not count", f"{len(left_out) - _MAX_LEFT_OUT:,}")


def leave_out_deleted(
    root: Root, candidate: str, published: str, questions: Sequence[Question]
) -> tuple[list[Question], list[str]]:
    """Questions with the evidence that counts, and what was left out, "place: name".

    Evidence that the candidate lacks counts if the published snapshot has it and its document is still in the input,
    readable or not: then it was lost, not deleted. A question without any evidence left is no question.

    Raises:
        PipelineError: a snapshot cannot be read.
    """
    with _blaming(candidate):
        here = find_evidence(root.snapshots.open(candidate), questions)
    with _blaming(published):
        snapshot = root.snapshots.open(published)
        there = find_evidence(snapshot, questions)
        is_lost = _find_lost(root, snapshot, {row for rows in there.rows for found in rows for row in found})
    counted, left_out = [], []
    for question, new, old in zip(questions, here.rows, there.rows, strict=True):
        is_counted = [bool(found) or not is_lost.isdisjoint(was) for found, was in zip(new, old, strict=True)]
        named = list(zip(question.evidence, is_counted, strict=True))
        left_out += [f"{question.place}: {name}" for name, counts in named if not counts]
        counted.append(replace(question, evidence=tuple(name for name, counts in named if counts)))
    return [question for question in counted if question.evidence], left_out


def _find_lost(root: Root, snapshot: Snapshot, units: set[int]) -> set[int]:
    """Those rows of text units whose document is still in the input as it was last indexed."""
    manifests = [root.tables.read("corpus_manifest", p) for p in STAGES["corpus_manifest"].partitions(root.settings)]
    rows = pa.concat_tables(manifests).select(["document_id", "path", "record", "problem"])
    is_whole = pc.equal(rows["record"], "")  # a file of records that cannot be read has this one row
    unreadable = rows.filter(pc.and_(is_whole, pc.is_valid(rows["problem"])))["path"].to_pylist()
    documents = snapshot.table("documents").select(["id", "path"])
    of_unreadable = documents.filter(pc.is_in(documents["path"], value_set=pa.array(unreadable, pa.string())))["id"]
    present = {*rows["document_id"].to_pylist(), *of_unreadable.to_pylist()}
    listed = sorted(units)
    document_ids = snapshot.table("text_units")["document_id"].take(pa.array(listed, pa.int64())).to_pylist()
    return {row for row, document_id in zip(listed, document_ids, strict=True) if document_id in present}


def measure_golden(root: Root, snapshot: str, questions: Sequence[Question]) -> RetrievalFigures:
    """Figures of a snapshot; those kept of it, where questions and settings are the same.

    Raises:
        PipelineError: it cannot be opened with the settings there are, or has none of the evidence.
    """
    k = root.settings.publishing.golden_k
    name = name_retrieval(questions, k, root.settings)
    kept = load_retrieval(root.path, snapshot, name).get(METHOD)
    if kept is not None:
        return kept
    with (
        _blaming(snapshot),
        GraphIndex(root.snapshots.open(snapshot), root.settings, root.embedder, root) as index,
    ):
        [figures], _ = measure_retrieval(index, questions, parse_methods([METHOD]), k)
    save_retrieval(root.path, snapshot, name, [figures])
    return figures


@contextmanager
def _blaming(snapshot: str) -> Iterator[None]:
    try:
        yield
    except PipelineError as error:
        raise PipelineError(
            f"the golden questions cannot be asked of snapshot {snapshot} ({error}); empty publishing.golden_questions "
            "to publish without them"
        ) from None


def _explain(
    path: Path,
    questions: Sequence[Question],
    new: RetrievalFigures,
    published: str,
    old: RetrievalFigures,
    margin: float,
) -> str:
    lost = [q for q, was, now in zip(questions, old.recalls, new.recalls, strict=True) if now < was]
    named = "; ".join(f"{q.question[:80]!r}" for q in lost[:_MAX_NAMED])
    more = f" and {len(lost) - _MAX_NAMED} more" if len(lost) > _MAX_NAMED else ""
    return (
        f"recall@{new.k} of {path.name} is {new.recall:.3f}, that of the published snapshot {published} "
        f"{old.recall:.3f}, which is more than publishing.max_recall_drop = {margin:g} below; less is found for "
        f"{named}{more}"
    )
