"""Refusals of an index run before it computes anything: mistakes that would replace an index the user has.

Keep out: the checks of a snapshot (`publishing/checks.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING

from graphrag_pipeline.errors import NoSnapshotError, PipelineError
from graphrag_pipeline.pipeline.root import Root

if TYPE_CHECKING:
    import pyarrow as pa

    from graphrag_pipeline.storage.shared.shared_store import SharedStore

_MAX_PROBLEMS_NAMED = 20


def refuse_import(root: Root) -> None:
    if root.is_imported:
        raise PipelineError(
            f"{root.path}: holds an imported index, which an index of {root.shown_input} would replace; index "
            "documents in another root (`graphrag-pipeline init DIR`), or import again to update this one"
        )


def refuse_empty(root: Root, problems: list[tuple[str, str]]) -> None:
    reasons = "".join(f"\n  {path}: {problem}" for path, problem in problems[:_MAX_PROBLEMS_NAMED])
    more = f"\n  and {len(problems) - _MAX_PROBLEMS_NAMED} more" if len(problems) > _MAX_PROBLEMS_NAMED else ""
    kept = "; the published index stays unchanged (`index --allow-empty` publishes an empty one)"
    kept = "" if root.snapshots.current() is None else kept
    raise PipelineError(
        f"{root.shown_input}: no readable documents; put txt, md, csv, json, jsonl or parquet files there{kept}"
        f"{reasons}{more}"
    )


def refuse_unreadable_gold(root: Root) -> None:
    """Read the golden questions before anything is paid for; they are answered only at the end."""
    if not root.settings.publishing.golden_questions:
        return
    from graphrag_pipeline.evaluation.questions import read_gold
    from graphrag_pipeline.evaluation.regression_gate import find_golden_questions

    read_gold(find_golden_questions(root))


def refuse_other_corpus(root: Root, shared: SharedStore, manifests: Mapping[str, pa.Table]) -> None:
    """Refuse to remove documents from a store's index from a root that is new to it.

    The root may name the store by mistake, or lack documents that other machines have.
    """
    here = {i for rows in manifests.values() for i in rows["document_id"].to_pylist()}
    heads = [root.tables.head("corpus_manifest", key) for key in manifests]
    there = {i for head in heads if head for i in root.tables.read_head(head)["document_id"].to_pylist()}
    if here and there and not here & there:
        raise PipelineError(
            f"{shared.shown_url}: holds an index of {len(there):,} documents, none of which is in {root.shown_input}. "
            "If storage.url is wrong, name an empty place there and remove tables/, heads/ and snapshots/ here, which "
            "are copies; if these documents are to replace those, index them where that index was made"
        )
    if here and (missing := there - here):
        raise PipelineError(
            f"{shared.shown_url}: its index has {len(there):,} documents, and {len(missing):,} of them are not in "
            f"{root.shown_input}; the first `index` of a copy would delete them for all readers. Put them there, or "
            "run `graphrag-pipeline index --allow-removal` if they are to go"
        )


def refuse_removal(root: Root, manifests: Mapping[str, pa.Table]) -> None:
    """Refuse a run that would lose many published documents, before it pays for what the loss changes.

    Raises:
        PipelineError: more than `publishing.max_removed_share` of the published documents are gone.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from graphrag_pipeline.publishing.checks import find_removal_problem

    try:
        published = root.snapshots.open()
    except NoSnapshotError:
        return
    with closing(published):
        documents = published.table("documents")
        readable = pa.concat_tables([rows.filter(pc.is_null(rows["problem"])) for rows in manifests.values()])
        kept = readable["document_id"].to_pylist()
        if problem := find_removal_problem(documents, kept, root.settings.publishing):
            moved = root.last_known().ids_of_contents(readable["content_hash"].to_pylist())
            problem = find_removal_problem(documents, [*kept, *moved], root.settings.publishing)
    if problem:
        raise PipelineError(f"{root.shown_input}: {problem}. The published index stays unchanged")
