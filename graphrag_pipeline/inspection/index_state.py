"""The state of each asset of an index now: stale partitions, unreadable documents, failed records, gaps.

Only heads and tables are read, and the input folder as the caller saw it. Keep out: Dagster's checks and events
(`defs/assets/state_checks.py`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from graphrag_pipeline.identity import WHOLE
from graphrag_pipeline.pipeline.code_changes import show_value
from graphrag_pipeline.pipeline.detected_input import INPUT, list_notes, list_problems
from graphrag_pipeline.pipeline.prompt_texts import diff_prompts
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, Stage
from graphrag_pipeline.pipeline.staleness import StalePartition, find_stale_versions, group_stale
from graphrag_pipeline.storage.table_store import Head
from graphrag_pipeline.tables import MODEL_STAGES
from graphrag_pipeline.text.counted import counted

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
    known = pc.unique(mentions.to_table(columns=["text_unit_id"])["text_unit_id"].combine_chunks())
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
