"""The state of an index: fresh or stale stages, documents that were not read, and figures of its vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from graphrag_pipeline.identity import WHOLE, text_hash
from graphrag_pipeline.indexing.aggregation_report import (
    WholeAndParts,
    choose_comparisons,
    compare_averages,
    count_calls_together,
    measure_aggregation,
    saved_percent,
    texts_to_compare,
)
from graphrag_pipeline.indexing.embeddings import embedded_unit_texts
from graphrag_pipeline.pipeline.code_changes import show_value
from graphrag_pipeline.pipeline.detected_input import INPUT, list_notes, list_problems
from graphrag_pipeline.pipeline.prompt_texts import diff_prompts
from graphrag_pipeline.pipeline.published_documents import read_published
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, STAGES, Stage
from graphrag_pipeline.pipeline.staleness import StalePartition, find_stale_versions, group_stale
from graphrag_pipeline.storage.manifests import Manifest
from graphrag_pipeline.storage.table_store import Head, TableStore
from graphrag_pipeline.tables import MODEL_STAGES
from graphrag_pipeline.text.counted import counted
from graphrag_pipeline.text.name_words import DOUBTFUL

_TABLE = "corpus_manifest"


@dataclass(frozen=True)
class UnreadDocument:
    """A document that the snapshot lacks, or has with a note.

    Attributes:
        path: relative to the input folder.
        record: id or row number inside a structured file; "" for a whole file.
        problem: the reason why it could not be read, with the remedy; "" if it was read.
        note: an oddity of a document that was read; "" for none.
    """

    path: str
    record: str
    n_bytes: int
    problem: str
    note: str


def list_unread_documents(tables: TableStore, manifest: Manifest) -> list[UnreadDocument]:
    """Return the documents with a problem or a note, those with a problem first, then by path and record.

    An imported index was made without documents, so its list is empty.

    Args:
        tables: of the root that published the snapshot.
        manifest: of the snapshot.

    Raises:
        DamagedFileError: a file of the snapshot is missing or damaged.
    """
    columns = ["path", "record", "n_bytes", "problem", "note"]
    partitions = [name.partition("/")[2] for name in sorted(manifest.heads) if name.startswith(f"{_TABLE}/")]
    rows = (
        row
        for partition in partitions
        for row in read_published(tables, manifest, _TABLE, partition).select(columns).to_pylist()
        if row["problem"] or row["note"]
    )
    found = [
        UnreadDocument(row["path"], row["record"], row["n_bytes"], row["problem"] or "", row["note"] or "")
        for row in rows
    ]
    return sorted(found, key=lambda one: (not one.problem, one.path, one.record))


def read_embedding_figures(root: Root) -> dict[str, Any]:
    """Return the figures by the keys of `status --json`: `aggregation` and `averaged_vectors`, None without any."""
    parts: list[tuple[pa.Table, pa.Table]] = []
    comparisons: list[WholeAndParts] = []
    for partition in STAGES["text_units"].partitions(root.settings):
        documents, units = (_read(root, table, partition) for table in ("documents", "text_units"))
        if documents is None or units is None:
            continue
        columns = ["document_id", "text", "heading_path"]
        parts.append((documents.select(["id", "text", "chunks"]), units.select(columns)))
        if root.settings.embeddings.engine == "model":
            n_compared = root.settings.embeddings.n_compared
            comparisons += choose_comparisons(embedded_unit_texts(units), root.settings.embedding_model, n_compared)
    return {"aggregation": _sum_up(root, parts), "averaged_vectors": _summarize(root, comparisons, parts)}


def _read(root: Root, table: str, partition: str) -> pa.Table | None:
    head = root.tables.head(table, partition)
    return root.tables.read_head(head) if head else None


def _sum_up(root: Root, parts: Sequence[tuple[pa.Table, pa.Table]]) -> dict[str, Any] | None:
    if not parts:
        return None
    documents, units = _join(parts)
    figures = measure_aggregation(documents, units, root.settings.embedding_model)
    if figures is None:
        return None
    return {
        "documents": figures.n_documents,
        "chunks": figures.n_chunks,
        "text_units": figures.n_text_units,
        "text_units_saved_percent": saved_percent(figures.n_chunks, figures.n_text_units),
        "inputs_before": figures.before.n_inputs,
        "inputs_after": figures.after.n_inputs,
        "inputs_saved_percent": saved_percent(figures.before.n_inputs, figures.after.n_inputs),
        "requests_before": figures.before.n_requests,
        "requests_after": figures.after.n_requests,
    }


def _join(parts: Sequence[tuple[pa.Table, pa.Table]]) -> tuple[pa.Table, pa.Table]:
    documents, units = (pa.concat_tables(tables) for tables in zip(*parts, strict=True))
    return documents, units


def _summarize(
    root: Root, comparisons: Sequence[WholeAndParts], parts: Sequence[tuple[pa.Table, pa.Table]]
) -> dict[str, Any] | None:
    """Return the cosines of the comparison, and its calls beside those of the text units; None without a comparison."""
    if not comparisons:
        return None
    text_of = {text_hash(text): text for text in texts_to_compare(comparisons)}
    cosines = compare_averages(comparisons, root.models.embedder.read_stored(text_of), root.settings.embedding_model)
    if not cosines:
        return None
    texts = embedded_unit_texts(_join(parts)[1])
    limits = root.settings.embedding_model
    alone, sent = count_calls_together(texts, limits), count_calls_together([*texts, *text_of.values()], limits)
    return {
        "n_compared": len(cosines),
        "mean_cosine": round(float(np.mean(cosines)), 4),
        "least_cosine": round(min(cosines), 4),
        "inputs": sent.n_inputs - alone.n_inputs,
        "requests": sent.n_requests - alone.n_requests,
        "inputs_with_text_units": sent.n_inputs,
        "requests_with_text_units": sent.n_requests,
    }


def render_embedding_figures(figures: dict[str, Any], has_model: bool, is_halving: bool = False) -> list[str]:
    """Return the lines of `status`; none without figures.

    Args:
        is_halving: whether texts that the endpoint refuses are cut in two, with calls that the figures do not have.
    """
    lines = []
    aggregation, averaged = figures["aggregation"], figures["averaged_vectors"]
    if aggregation:
        sent = "" if has_model else " (with a model; the bundled embeddings need none)"
        lines.append(
            f"chunks: {aggregation['chunks']:,} chunks of {counted(aggregation['documents'], 'documents')} are "
            f"{aggregation['text_units']:,} text units ({_describe_saving(aggregation['text_units_saved_percent'])})"
        )
        lines.append(
            f"embedding calls for text units: {aggregation['inputs_before']:,} inputs in "
            f"{aggregation['requests_before']:,} requests before aggregation, {aggregation['inputs_after']:,} in "
            f"{aggregation['requests_after']:,} after "
            f"({_describe_saving(aggregation['inputs_saved_percent'])} inputs){sent}"
        )
        if has_model and is_halving:
            lines.append("calls for halves of refused texts come on top (`embedding_model.refused_texts`)")
    if averaged:
        lines.append(
            f"averaged vectors of split texts: cosine to the whole text's {averaged['mean_cosine']:.4f} on average, "
            f"{averaged['least_cosine']:.4f} at least ({averaged['n_compared']:,} texts cut on purpose)"
        )
        lines.append(
            f"embedding calls for this comparison: {averaged['inputs']:,} more inputs in {averaged['requests']:,} more "
            f"requests; with the text units {averaged['inputs_with_text_units']:,} inputs in "
            f"{averaged['requests_with_text_units']:,} requests"
        )
    return lines


def _describe_saving(percent: float) -> str:
    return f"{abs(percent):g} % {'more' if percent < 0 else 'fewer'}"


UP_TO_DATE, READABLE, FAILURES, COVERAGE = "up_to_date", "documents_readable", "failures", "coverage"
_MANIFEST = "corpus_manifest"
_MAX_LISTED = 50
_COVERED = ("extracted_graph", "summarized_descriptions")


@dataclass(frozen=True)
class AssetState:
    """The state of one asset in one respect.

    Attributes:
        check: `UP_TO_DATE`, `READABLE`, `FAILURES` or `COVERAGE`.
        line: the state in one sentence.
        numbers: that plot over time, by name; at least one.
        tables: details by name: heads of columns, and rows.
        texts: details that are shown as they are, by name.
    """

    stage: str
    check: str
    is_good: bool
    line: str
    numbers: Mapping[str, float]
    tables: Mapping[str, tuple[Sequence[str], Sequence[Sequence[Any]]]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


def list_checks() -> Iterator[tuple[str, str, str]]:
    """Yield (stage, check, description) of every check."""
    for name in ALL_STAGES:
        yield (
            name,
            UP_TO_DATE,
            (
                "Input, prompts, models and settings are those that it was made with, as in `status`. Dagster's mark "
                "Unsynced follows prompts and settings only once the definitions are loaded again, as `dev` does; this "
                "check needs no reload."
            ),
        )
    yield _MANIFEST, READABLE, "Every document of the input folder was read, with its real encoding and without a note."
    for name in MODEL_STAGES:
        yield (
            name,
            FAILURES,
            "The model gave a usable reply for every record. The next index run tries the others again.",
        )
    yield _COVERED[0], COVERAGE, "Every text unit yields an entity."
    yield _COVERED[1], COVERAGE, "Every entity has a description."


def read_versions(root: Root) -> dict[str, str]:
    """Return the version of each bucket of the input folder that the index read last; the folder is not read."""
    return {key: head.inputs.get(INPUT, "") if head else "" for key, head in _manifest_heads(root).items()}


def _manifest_heads(root: Root) -> dict[str, Head | None]:
    return {key: root.tables.head(_MANIFEST, key) for key in ALL_STAGES[_MANIFEST].partitions(root.settings)}


def find_state(
    root: Root, versions: Mapping[str, str], manifests: Mapping[str, pa.Table] | None = None
) -> Iterator[AssetState]:
    """Yield the state of every asset in every respect.

    Args:
        versions: of each bucket of the input folder.
        manifests: the present input folder; None for the one that was indexed last.
    """
    stale = [] if root.is_imported else find_stale_versions(root, versions)
    for stage in ALL_STAGES.values():
        yield _judge_freshness(root, stage, [item for item in stale if item.stage == stage.name])
    yield _judge_documents(manifests if manifests is not None else _read_manifests(root))
    for name in MODEL_STAGES:
        yield _judge_failures(root, ALL_STAGES[name])
    yield _judge_text_units(root)
    yield _judge_descriptions(root)


# ----------------------------------------------------------------------------------------------------------- freshness


def _judge_freshness(root: Root, stage: Stage, stale: Sequence[StalePartition]) -> AssetState:
    n_partitions = len(stage.partitions(root.settings))
    numbers = {"stale partitions": len(stale), "partitions": n_partitions}
    if not stale:
        return AssetState(stage.name, UP_TO_DATE, True, "up to date", numbers)
    groups = group_stale(stale)
    reasons = [(why, "the whole corpus" if keys == [WHOLE] else ", ".join(keys)) for (_, why), keys in groups.items()]
    part = "" if n_partitions == 1 else f"{len(stale):,} of {n_partitions:,} buckets: "
    line = f"stale. {part}{'; '.join(dict.fromkeys(why for why, _ in reasons))}. Run `reindex_stale` or `index`."
    changes = {(c.name, show_value(c.old), show_value(c.new)): c for item in stale for c in item.changes}
    diffs = {f"difference of {name}": text for name, text in diff_prompts(root, changes.values()).items()}
    tables: dict[str, Any] = {"reasons": (("why", "partitions"), reasons)}
    others = [key for key, change in changes.items() if f"difference of {change.name}" not in diffs]
    if others:
        tables["changes of code and settings"] = (("name", "index was made with", "now"), others)
    return AssetState(stage.name, UP_TO_DATE, False, line, numbers, tables, diffs)


# ----------------------------------------------------------------------------------------------------------- documents


def _read_manifests(root: Root) -> dict[str, pa.Table]:
    return {key: root.tables.read_head(head) for key, head in _manifest_heads(root).items() if head}


def _judge_documents(manifests: Mapping[str, pa.Table]) -> AssetState:
    problems, notes = list_problems(manifests), list_notes(manifests)
    n_documents = sum(rows.num_rows for rows in manifests.values())
    numbers = {
        "documents not readable": len(problems),
        "documents read with a note": len(notes),
        "documents in the folder": n_documents,
    }
    if not problems and not notes:
        return AssetState(_MANIFEST, READABLE, True, f"all {n_documents:,} documents were read", numbers)
    first = "; ".join(f"{path}: {text}" for path, text in [*problems, *notes][:3])
    line = f"{len(problems):,} of {n_documents:,} documents were not read, {len(notes):,} with a note: {first}"
    tables = {}
    if problems:
        tables["documents not readable, each"] = (("file", "reason and remedy"), problems[:_MAX_LISTED])
    if notes:
        tables["documents read with a note, each"] = (("file", "note"), notes[:_MAX_LISTED])
    return AssetState(_MANIFEST, READABLE, False, line, numbers, tables)


# -------------------------------------------------------------------------------------------------- failures, coverage


def _scan(root: Root, table: str) -> ds.Dataset | None:
    """Return all partitions of a table, to be read by columns; None if it was never made."""
    stage = next(stage for stage in ALL_STAGES.values() if table in stage.tables)
    heads = [root.tables.head(table, key) for key in stage.partitions(root.settings)]
    made = [head for head in heads if head]
    return root.tables.dataset(made) if made else None


def _judge_failures(root: Root, stage: Stage) -> AssetState:
    made = _scan(root, f"{stage.name}_failures")
    rows = made.to_table(columns=["record", "reason"]) if made else None
    n_failed = rows.num_rows if rows is not None else 0
    numbers = {"records that the model failed at": n_failed}
    if not n_failed or rows is None:
        return AssetState(stage.name, FAILURES, True, "no record failed", numbers)
    counts = sorted(
        rows.group_by("reason").aggregate([("record", "count")]).to_pylist(), key=lambda r: -r["record_count"]
    )
    shown = [(row["record_count"], row["reason"]) for row in counts[:_MAX_LISTED]]
    failed = counted(n_failed, "records")
    line = f"the model failed at {failed}, most often: {shown[0][1]}. `reindex_stale` tries them again."
    return AssetState(
        stage.name, FAILURES, False, line, numbers, {"failures by reason": (("records", "reason"), shown)}
    )


def _judge_text_units(root: Root) -> AssetState:
    units, mentions = _scan(root, "text_units"), _scan(root, "entity_mentions")
    if units is None or mentions is None:
        return _not_made(_COVERED[0], "text units without entities")
    ids = units.to_table(columns=["id"])["id"].combine_chunks()
    sure = mentions.to_table(columns=["text_unit_id"], filter=pc.field("type") != DOUBTFUL)
    known = pc.unique(sure["text_unit_id"].combine_chunks())
    bare = ids.filter(pc.invert(pc.is_in(ids, value_set=known)))
    first = units.to_table(columns=["text"], filter=pc.field("id").isin(bare.slice(0, _MAX_LISTED)))
    rows = [(text,) for text in first["text"].to_pylist()]
    return _judge_gap(_COVERED[0], "text units without entities", len(bare), "text units", len(ids), rows)


def _judge_descriptions(root: Root) -> AssetState:
    made, descriptions = _scan(root, "entities"), _scan(root, "descriptions")
    if made is None or descriptions is None:
        return _not_made(_COVERED[1], "entities without a description")
    entities = made.to_table(columns=["title", "description_key"])
    is_full = pc.field("description") != ""
    full = descriptions.to_table(columns=["description_key"], filter=is_full)["description_key"].combine_chunks()
    bare = entities.filter(pc.invert(pc.is_in(entities["description_key"], value_set=full)))
    rows = [(title,) for title in bare["title"].slice(0, _MAX_LISTED).to_pylist()]
    return _judge_gap(_COVERED[1], "entities without a description", bare.num_rows, "entities", entities.num_rows, rows)


def _judge_gap(stage: str, subject: str, n_bare: int, of: str, n_all: int, rows: Sequence[Sequence[str]]) -> AssetState:
    share = n_bare / n_all if n_all else 0.0
    numbers = {subject: n_bare, f"all {of}": n_all, f"share of {subject}": round(share, 4)}
    tables = {f"{subject}, first {len(rows):,}": ((of,), rows)} if rows else {}
    return AssetState(stage, COVERAGE, not n_bare, f"{n_bare:,} of {n_all:,} {subject} ({share:.0%})", numbers, tables)


def _not_made(stage: str, subject: str) -> AssetState:
    return AssetState(stage, COVERAGE, True, "not made yet", {subject: 0})
