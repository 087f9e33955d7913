"""Differences between two snapshots: entities, relationships, communities and reports, and the documents behind them.

Records are compared by id. Communities are compared by number, which a snapshot takes over from the one before. A
removed entity counts as merged if its title is a written form of an entity of the new snapshot. Keep out: the choice of
snapshots.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.pipeline.code_changes import find_version_changes
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.tables import STAGE_TABLES

_Record = dict[str, Any]
_Causes = tuple[Mapping[str, set[str]], ...]
"""Per snapshot: id of an entity or relationship -> paths of the changed documents that mention it."""


@dataclass(frozen=True)
class DocumentChange:
    """A document that was added, edited or removed; `record` is its place inside a structured file, or ""."""

    change: str
    path: str
    record: str


@dataclass(frozen=True)
class EntityChange:
    """An entity that was added, removed, merged into `into` by `rule`, or whose description changed.

    Attributes:
        documents: paths of changed documents that mention it.
    """

    change: str
    number: int
    title: str
    documents: tuple[str, ...]
    into: str = ""
    rule: str = ""


@dataclass(frozen=True)
class RelationshipChange:
    """A relationship that was added or removed.

    Attributes:
        documents: paths of changed documents that mention it.
    """

    change: str
    number: int
    source: str
    target: str
    weight: float
    documents: tuple[str, ...]


@dataclass(frozen=True)
class ReportChange:
    """A community that was added or removed, or whose report changed.

    Attributes:
        documents: paths of changed documents that mention one of its entities.
    """

    change: str
    community: int
    level: int
    title: str
    documents: tuple[str, ...] = ()


@dataclass(frozen=True)
class StageChange:
    """A stage whose prompts, model, settings or code changed.

    Attributes:
        changes: changed parts, old -> new; empty if a snapshot does not record them.
    """

    stage: str
    changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SnapshotDiff:
    """Everything that changed from `old` to `new`.

    Attributes:
        rows: contract table -> its number of rows before and after.
        relationships: those that were added or removed, by change, the heaviest first.
        stages: stages whose prompts, model, settings or code changed.
    """

    old: str
    new: str
    rows: dict[str, tuple[int, int]]
    documents: tuple[DocumentChange, ...]
    entities: tuple[EntityChange, ...]
    relationships: tuple[RelationshipChange, ...]
    reports: tuple[ReportChange, ...]
    stages: tuple[StageChange, ...]


def diff_snapshots(old: Snapshot, new: Snapshot) -> SnapshotDiff:
    """Compare two snapshots of one root."""
    tables = sorted({*old.manifest.tables, *new.manifest.tables})
    documents = diff_documents(old, new)
    causes = _causes(old, documents), _causes(new, documents)
    # Changes of entities, sorted by change and number.
    before = _records(old, "entities", "id", ["title", "description"])
    after = _records(new, "entities", "id", ["title", "description"])
    numbers = {**_numbers(old), **_numbers(new)}
    merged_into = _merges(new)
    found = []
    for key, change in _changes(before, after):
        title = (after.get(key) or before[key])["title"]
        paths = _paths_behind([key], causes)
        into, rule = merged_into.get(title, ("", "")) if change == "removed" else ("", "")
        found.append(EntityChange("merged" if into else change, numbers[key], title, paths, into, rule))
    return SnapshotDiff(
        old=old.id,
        new=new.id,
        rows={name: (_n_rows(old, name), _n_rows(new, name)) for name in tables if name != "record_numbers"},
        documents=tuple(documents.values()),
        entities=tuple(sorted(found, key=lambda entity: (entity.change, entity.number))),
        relationships=tuple(_diff_relationships(old, new, causes)),
        reports=tuple(_diff_reports(old, new, causes)),
        stages=tuple(_diff_code(old, new)),
    )


def _n_rows(snapshot: Snapshot, name: str) -> int:
    return snapshot.n_rows(name) if name in snapshot.manifest.tables else 0


def _records(snapshot: Snapshot, table: str, key: str, columns: Sequence[str]) -> dict[Any, _Record]:
    """Records by their key, in file order."""
    return {row[key]: row for row in snapshot.table(table).select([key, *columns]).to_pylist()}


def _changes(old: Mapping[Any, _Record], new: Mapping[Any, _Record]) -> Iterable[tuple[Any, str]]:
    """Yield (key, change) of every record that differs."""
    for key in [*old, *(key for key in new if key not in old)]:
        if key not in new:
            yield key, "removed"
        elif key not in old:
            yield key, "added"
        elif old[key] != new[key]:
            yield key, "changed"


def diff_documents(old: Snapshot, new: Snapshot) -> dict[str, DocumentChange]:
    """Return changes by document id, sorted by path."""
    columns = ["path", "record", "title", "text", "metadata"]
    before, after = _records(old, "documents", "id", columns), _records(new, "documents", "id", columns)
    words = {"changed": "edited"}
    found = {}
    for key, change in _changes(before, after):
        row = after.get(key) or before[key]
        found[key] = DocumentChange(words.get(change, change), row["path"], row["record"])
    return dict(sorted(found.items(), key=lambda item: (item[1].path, item[1].record)))


def _paths_behind(records: Iterable[str], causes: _Causes) -> tuple[str, ...]:
    """Return paths of the changed documents that mention one of the records in either snapshot."""
    return tuple(sorted({path for record in records for cause in causes for path in cause.get(record, ())}))


def _numbers(snapshot: Snapshot) -> dict[str, int]:
    rows = snapshot.table("entities")
    return dict(zip(rows["id"].to_pylist(), rows["human_readable_id"].to_pylist(), strict=True))


def _causes(snapshot: Snapshot, documents: Mapping[str, DocumentChange]) -> dict[str, set[str]]:
    """Id of an entity or relationship -> paths of the changed documents that mention it in this snapshot."""
    causes: dict[str, set[str]] = {}
    units = snapshot.table("text_units").select(["document_id", "entity_ids", "relationship_ids"])
    for unit in units.to_pylist():
        if unit["document_id"] in documents:
            for record in (*unit["entity_ids"], *unit["relationship_ids"]):
                causes.setdefault(record, set()).add(documents[unit["document_id"]].path)
    return causes


def _merges(snapshot: Snapshot) -> dict[str, tuple[str, str]]:
    """Normalised written form -> (title of the entity it became, the rule that merged it, "" if not recorded)."""
    merges: dict[str, tuple[str, str]] = {}
    for row in snapshot.table("entities").select(["title", "names"]).to_pylist():
        merges |= {normalize_title(name): (row["title"], "") for name in row["names"]}
    head = snapshot.manifest.heads.get("entity_merges/all", {"files": []})
    for file in head.get("files", ()):
        path = snapshot.folder.parent / "tables" / "entity_merges" / "all" / file["name"]
        if path.exists():
            rows = pq.read_table(path, columns=["name", "title", "rule"]).to_pylist()
            merges |= {normalize_title(row["name"]): (row["title"], row["rule"]) for row in rows}
    return merges


def _diff_relationships(old: Snapshot, new: Snapshot, causes: _Causes) -> list[RelationshipChange]:
    columns = ["id", "human_readable_id", "source", "target", "weight"]
    before, after = (snapshot.table("relationships").select(columns) for snapshot in (old, new))
    found = []
    for change, rows, others in (("added", after, before), ("removed", before, after)):
        is_known = pc.is_in(rows["id"], value_set=others["id"].combine_chunks())
        for row in rows.filter(pc.invert(is_known)).to_pylist():
            number, source, target, weight = (row[column] for column in columns[1:])
            paths = _paths_behind([row["id"]], causes)
            found.append(RelationshipChange(change, number, source, target, weight, paths))
    return sorted(found, key=lambda one: (one.change, -one.weight, one.number))


def _diff_reports(old: Snapshot, new: Snapshot, causes: _Causes) -> list[ReportChange]:
    """Return changes of communities and their reports, sorted by change, level and number."""
    columns = ["level", "title", "summary", "findings", "rank"]
    before, after = (_records(s, "community_reports", "community", columns) for s in (old, new))
    members = _members(old), _members(new)
    words = {"changed": "re-reported"}
    found = []
    for community, change in _changes(before, after):
        row = after.get(community) or before[community]
        paths = _paths_behind((i for known in members for i in known.get(community, ())), causes)
        found.append(ReportChange(words.get(change, change), community, row["level"], row["title"], paths))
    return sorted(found, key=lambda report: (report.change, report.level, report.community))


def _members(snapshot: Snapshot) -> dict[int, list[str]]:
    """Community -> ids of its entities."""
    rows = _records(snapshot, "communities", "community", ["entity_ids"])
    return {community: row["entity_ids"] for community, row in rows.items()}


def _diff_code(old: Snapshot, new: Snapshot) -> list[StageChange]:
    """Return stages of both snapshots whose prompts, model, settings or code changed, by name."""
    before, after = old.manifest.heads, new.manifest.heads
    found: dict[str, dict[str, None]] = {}
    for key in sorted(before.keys() & after.keys()):
        was, now = before[key]["code_version"], after[key]["code_version"]
        if was != now:
            table = key.split("/")[0]
            stage = STAGE_TABLES[table].owner if table in STAGE_TABLES else table
            code, new_code = old.manifest.code.get(was), new.manifest.code.get(now)
            changes = find_version_changes(code, new_code) if code and new_code else []
            found.setdefault(stage, {}).update(dict.fromkeys(change.to_line() for change in changes))
    return [StageChange(stage, tuple(changes)) for stage, changes in sorted(found.items())]


_MAX_SHOWN = 20
_MAX_NAMED = 5


def render_diff(diff: SnapshotDiff, max_shown: int = _MAX_SHOWN) -> list[str]:
    """Render a diff; of more than `max_shown` changes of one kind the first are shown, JSON has all."""
    lines = [f"{name}: {before:,} -> {after:,} rows" for name, (before, after) in diff.rows.items() if before != after]
    documents = [(d.change, f"{d.path} ({d.record})" if d.record else d.path) for d in diff.documents]
    lines += _shown("document", documents, max_shown)
    lines += [
        f"stage changed: {stage.stage}{': ' if stage.changes else ''}{'; '.join(stage.changes)}"
        for stage in diff.stages
    ]
    lines += _shown("entity", [(entity.change, _describe_entity(entity)) for entity in diff.entities], max_shown)
    pairs = [(r.change, f"{r.number} {r.source} - {r.target} (weight {r.weight:g}){_by(r.documents)}")
             for r in diff.relationships]  # fmt: skip
    lines += _shown("relationship", pairs, max_shown)
    reports = [(r.change, f"{r.community} (level {r.level}): {r.title}{_by(r.documents)}") for r in diff.reports]
    lines += _shown("community", reports, max_shown)
    return [f"from {diff.old} to {diff.new}", *(lines or ["no differences"])]


def _describe_entity(entity: EntityChange) -> str:
    into = f" into {entity.into}{f' ({entity.rule})' if entity.rule else ''}" if entity.into else ""
    return f"{entity.number} {entity.title}{into}{_by(entity.documents)}"


def _by(documents: Sequence[str]) -> str:
    """Render the documents that caused a change; of many, the first."""
    if not documents:
        return ""
    more = f" and {len(documents) - _MAX_NAMED:,} more" if len(documents) > _MAX_NAMED else ""
    return f", by {', '.join(documents[:_MAX_NAMED])}{more}"


def _shown(kind: str, changes: Sequence[tuple[str, str]], max_shown: int) -> list[str]:
    lines: list[str] = []
    for change in dict.fromkeys(change for change, _ in changes):
        texts = [text for other, text in changes if other == change]
        lines += [f"{kind} {change}: {text}" for text in texts[:max_shown]]
        if len(texts) > max_shown:
            lines.append(f"{kind} {change}: and {len(texts) - max_shown:,} more, see --json")
    return lines
