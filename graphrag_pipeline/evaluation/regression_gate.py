"""The regression gate: golden questions are asked of a candidate, and of what is published, before it is published.

Optional (`publishing.golden_questions`). Both are measured with the settings there are now: recall of the evidence
among the first `publishing.golden_k` text units of local search. Evidence that a snapshot lacks counts as not found, so
a document that went missing shows. Keep out: publishing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.figures_store import load_retrieval, name_retrieval, save_retrieval
from graphrag_pipeline.evaluation.questions import Question, read_gold
from graphrag_pipeline.evaluation.retrieval_figures import RetrievalFigures, measure_retrieval, parse_methods
from graphrag_pipeline.query.graph_index import GraphIndex
from graphrag_pipeline.root import Root

METHOD = "local"
_MAX_NAMED = 3


def check_golden_questions(root: Root, candidate: str) -> dict[str, Any]:
    """Refuse a candidate that finds less than what is published; does nothing where no golden questions are set.

    Returns:
        Figures to show: recall of the candidate, and of the published snapshot if there is one.

    Raises:
        PipelineError: recall falls by more than `publishing.max_recall_drop`, the file of questions cannot be read, or
            a snapshot cannot be measured.
    """
    settings = root.settings.publishing
    if not settings.golden_questions:
        return {}
    path = root.path / settings.golden_questions
    questions = read_gold(path)
    new = measure_golden(root, candidate, questions)
    shown = {f"golden recall@{settings.golden_k}": new.recall}
    published = root.snapshots.current()
    if published in (None, candidate):
        return shown
    old = measure_golden(root, published, questions)
    if round(old.recall - new.recall, 6) > settings.max_recall_drop:
        raise PipelineError(_explain(path, questions, candidate, new, published, old, settings.max_recall_drop))
    return shown | {f"golden recall@{settings.golden_k} before": old.recall}


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
    try:
        with GraphIndex(root.snapshots.open(snapshot), root.settings, root.embedder, root) as index:
            [figures], _ = measure_retrieval(index, questions, parse_methods([METHOD]), k)
    except PipelineError as error:
        raise PipelineError(
            f"the golden questions cannot be asked of snapshot {snapshot} ({error}); empty publishing.golden_questions "
            "to publish without them"
        ) from None
    save_retrieval(root.path, snapshot, name, [figures])
    return figures


def _explain(
    path: Path,
    questions: Sequence[Question],
    candidate: str,
    new: RetrievalFigures,
    published: str,
    old: RetrievalFigures,
    margin: float,
) -> str:
    lost = [q for q, was, now in zip(questions, old.recalls, new.recalls, strict=True) if now < was]
    named = "; ".join(f"{q.question[:80]!r}" for q in lost[:_MAX_NAMED])
    more = f" and {len(lost) - _MAX_NAMED} more" if len(lost) > _MAX_NAMED else ""
    return (
        f"candidate {candidate} is not published: recall@{new.k} of {path.name} is {new.recall:.3f}, that of the "
        f"published snapshot {published} {old.recall:.3f}, which is more than publishing.max_recall_drop = {margin:g} "
        f"below; less is found for {named}{more}. The published snapshot stays, the candidate waits: compare them with "
        f"`graphrag-pipeline evaluate --snapshot {candidate} --against {published}`, mend what changed and run "
        "`graphrag-pipeline index`, or raise publishing.max_recall_drop"
    )
