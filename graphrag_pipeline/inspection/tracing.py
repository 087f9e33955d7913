"""Trace a record of an index back to its documents, as a tree of the steps that made it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from graphrag_pipeline.citations import KIND_OF_RECORD, KINDS, parse_citations, render_citation, split_written
from graphrag_pipeline.errors import NoSnapshotError, PipelineError
from graphrag_pipeline.identity import WHOLE, bucket_of, normalize_title
from graphrag_pipeline.pipeline.data_versions import asset_data_version
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import SNAPSHOT, STAGES, Stage
from graphrag_pipeline.query import records
from graphrag_pipeline.query.cited_records import CitedRecord, CitedRecords
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.storage.table_store import code_version_of
from graphrag_pipeline.tables import STAGE_TABLES

FindRun = Callable[[str, str, str], str | None]
"""(stage, partition, data version) -> id of the Dagster run that made it; None if not known."""


@dataclass(frozen=True)
class Origin:
    """Origin of a record.

    Attributes:
        stage, partition: the asset; "all" for one over the whole corpus.
        code_version: of prompts, model, settings and code together.
        model: model of the stage; "" for none, None if a snapshot of an older release does not record it.
        prompts: name -> hash of the prompts of the stage.
        request_key: key of the stored reply that the record was read from; None without a reply: the record was made
            by rule, copied unchanged, or written by the embedded engine because the model failed.
        reply: model, tokens and cost of that reply, if it is still stored.
        run: id of the Dagster run that materialised the partition; None if Dagster does not know.
    """

    stage: str
    partition: str
    code_version: str
    model: str | None
    prompts: Mapping[str, str] = field(default_factory=dict)
    request_key: str | None = None
    reply: Mapping[str, Any] | None = None
    run: str | None = None

    @property
    def asset(self) -> str:
        """Stage and bucket, in words."""
        return self.stage if self.partition == WHOLE else f"{self.stage} of bucket {self.partition}"

    @property
    def is_embedded(self) -> bool:
        """Whether the embedded engine made the record in a stage that can use a model."""
        return self.model == "" and bool(STAGES[self.stage].engine)


class StageRecords:
    """The stage tables behind a snapshot.

    Args:
        root: source of tables, heads and stored replies.
        find_run: called once per partition of a stage.
    """

    def __init__(self, root: Root, snapshot: Snapshot, find_run: FindRun) -> None:
        self._root = root
        self._heads, self._code = snapshot.manifest.heads, snapshot.manifest.code
        self._find_run = find_run
        self._n_buckets = sum(name.startswith("documents/") for name in self._heads)
        self._origins: dict[tuple[str, str], Origin | None] = {}

    def bucket_of(self, document_id: str) -> str:
        """Return the partition of a document's rows; "" if the snapshot has none (imported index)."""
        return bucket_of(document_id, self._n_buckets) if self._n_buckets else ""

    def rows(self, table: str, column: str, values: Collection[str], partition: str = WHOLE) -> list[dict[str, Any]]:
        """Return rows of a partition with one of the values in a column, in file order; none in an imported index."""
        paths = [str(path) for path in self._paths(table, partition) if path.is_file()]
        if not paths or not values:
            return []
        found = ds.dataset(paths, schema=STAGE_TABLES[table].schema, format="parquet")
        is_wanted = ds.field(column).isin(pa.array(sorted(values), pa.string()))
        rows: list[dict[str, Any]] = found.to_table(filter=is_wanted).to_pylist()
        return rows

    def _paths(self, table: str, partition: str) -> list[Path]:
        head = self._heads.get(f"{table}/{partition}", {})
        folder = self._root.path / "tables" / table / partition
        return [folder / file["name"] for file in head.get("files", ())]

    def origin(self, stage: str, partition: str = WHOLE, request_key: str | None = None) -> Origin | None:
        """Return the origin of a record of a stage; None in an imported index.

        Args:
            request_key: of the record.
        """
        key = (stage, partition)
        if key not in self._origins:
            self._origins[key] = self._read_origin(STAGES[stage], partition)
        origin = self._origins[key]
        if origin is None or request_key is None:
            return origin
        reply = self._root.models.cache.read([request_key]).get(request_key)
        figures = {name: getattr(reply, name) for name in ("model", "prompt_tokens", "completion_tokens", "cost")}
        run = self._find_first_run(STAGES[stage], partition, request_key) or origin.run
        return Origin(**{**vars(origin), "request_key": request_key, "reply": figures if reply else None, "run": run})

    @cached_property
    def _heads_of_all(self) -> list[dict[str, dict[str, Any]]]:
        """The heads of every snapshot, oldest first."""
        found = []
        for snapshot_id in self._root.snapshots.ids():
            with suppress(NoSnapshotError):  # a damaged snapshot has no heads
                found.append(self._root.snapshots.manifest(snapshot_id).heads)
        return found

    def _find_first_run(self, stage: Stage, partition: str, request_key: str) -> str | None:
        """Return the run of the oldest snapshot with a row from this reply; later runs may have copied the row."""
        for all_heads in self._heads_of_all:
            heads = [all_heads.get(f"{table}/{partition}") for table in stage.tables]
            if heads[0] and self._holds(stage, partition, heads, request_key):
                data_version = asset_data_version([head["data_version"] if head else None for head in heads])
                return self._find_run(stage.name, partition, data_version) if data_version else None
        return None

    def _holds(self, stage: Stage, partition: str, heads: Sequence[Mapping[str, Any] | None], request_key: str) -> bool:
        folder = self._root.path / "tables"
        for table, head in zip(stage.tables, heads, strict=True):
            if "request_key" in STAGE_TABLES[table].schema.names:
                paths = [folder / table / partition / file["name"] for file in (head or {}).get("files", ())]
                found = [str(path) for path in paths if path.is_file()]
                rows = ds.dataset(found, schema=STAGE_TABLES[table].schema, format="parquet") if found else None
                if rows and rows.count_rows(filter=ds.field("request_key") == request_key):
                    return True
        return False

    def _read_origin(self, stage: Stage, partition: str) -> Origin | None:
        heads = [self._heads.get(f"{table}/{partition}") for table in stage.tables]
        if heads[0] is None:
            return None
        code_version = str(heads[0]["code_version"])
        data_version = asset_data_version([head["data_version"] if head else None for head in heads])
        run = self._find_run(stage.name, partition, data_version) if data_version else None
        code = self._code.get(code_version) or self._read_code(stage, partition, code_version)
        if code is None:
            return Origin(stage.name, partition, code_version, None, run=run)
        prompts = {name.removeprefix("prompt "): value for name, value in code.items() if name.startswith("prompt ")}
        return Origin(stage.name, partition, code_version, code.get(f"{stage.engine} model", ""), prompts, run=run)

    def _read_code(self, stage: Stage, partition: str, code_version: str) -> Mapping[str, Any] | None:
        """Return the parts of a code version missing in the snapshot, from the head or the present settings."""
        head = self._root.tables.head(stage.tables[0], partition)
        if head and head.code_version == code_version:
            return head.code
        code = self._root.code_of(stage)
        return code if code_version_of(code) == code_version else None


Names = Sequence[Collection[str]]
"""Normalized names in a mention: of an entity or a subject, or of both ends of a relationship."""

Mentioned = Mapping[str, Names]
"""Table of mentions -> names whose mentions are wanted."""

_NAMED = {"entity_mentions": ("name",), "relationship_mentions": ("source", "target"), "claim_mentions": ("subject",)}
_MENTION_FACTS = ("type", "status", "description", "strength", "predicate", "written")
_TABLES = {"Entities": "entities", "Relationships": "relationships", "Claims": "covariates",
           "Reports": "community_reports", "Sources": "text_units"}  # fmt: skip
_KIND_NAMES = {name: kind for kind, name in KIND_OF_RECORD.items()}


@dataclass(frozen=True)
class TraceNode:
    """One record of a trace.

    Attributes:
        kind: report, community, finding, entity, relationship, claim, description, text unit, mention or document.
        number: its human-readable id, as in citations; None if it has none.
        facts: other facts, by name.
        text: whole text of a report, with its citations; "" for other kinds, whose text is their name or below them.
        origin: its origin; None in an imported index, and for parts of another record.
        below: its sources.
        n_left_out: number of sources beyond the requested maximum.
    """

    kind: str
    name: str
    id: str
    number: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    origin: Origin | None = None
    below: tuple[TraceNode, ...] = ()
    n_left_out: int = 0
    text: str = ""


class Tracer:
    """Follower of records of an index to their sources.

    Args:
        index: of the root.
        n_most: see `tracing.trace_citation`.
    """

    def __init__(self, root: Root, index: GraphIndex, find_run: FindRun, n_most: int) -> None:
        self._index = index
        self._cited = CitedRecords(index)
        self._stages = StageRecords(root, index.snapshot, find_run)
        self._n_most = n_most

    def find(self, kind: str, number: int) -> CitedRecord | None:
        """Return the record of a kind (see `citations.KINDS`) and number; None if it does not exist."""
        table = _TABLES[kind]
        [row] = self._index.rows_of_numbers(table, "human_readable_id", [number]).tolist()
        if row < 0:
            return None
        [record] = self._index.snapshot.take(table, [row], ["id"])
        return self._cited.read_record(_KIND_NAMES[kind], record["id"])

    def trace(self, record: CitedRecord) -> TraceNode:
        """Return a record with its sources."""
        follow = {
            "report": self._report,
            "entity": self._entity,
            "relationship": self._relationship,
            "claim": self._claim,
            "text_unit": self._text_unit,
        }
        return follow[record.kind](record)

    def _row(self, table: str, record: CitedRecord) -> dict[str, Any]:
        snapshot = self._index.snapshot
        found: dict[str, Any] = snapshot.take(table, snapshot.rows_of(table, [record.id]))[0]
        return found

    # ------------------------------------------------------------------------------------------------------- reports

    def _report(self, record: CitedRecord) -> TraceNode:
        report = self._row("community_reports", record)
        row = self._index.rows_of_numbers("communities", "community", [report["community"]])
        [community] = self._index.snapshot.take("communities", row, ["id", "level", "size", "parent", "children"])
        [made] = self._stages.rows("community_reports", "community_id", [community["id"]]) or [{}]
        findings = [
            TraceNode("finding", finding["summary"], "", facts={"cites": _list_cited(finding["explanation"])})
            for finding in report["findings"][: self._n_most]
        ]
        # A report without citations has the text units of its community as sources.
        parts = [self.trace(part) for part in record.through[: self._n_most]]
        units, n_units = ([], 0) if parts else self._units(record.text_unit_rows, {})
        n_left_out = len(report["findings"]) - len(findings) + len(record.through) - len(parts) + n_units
        return TraceNode(
            "report",
            report["title"],
            report["id"],
            report["human_readable_id"],
            {name: report[name] for name in ("rank", "is_verbatim", "is_fallback")},
            self._stages.origin("community_reports", request_key=made.get("request_key")),
            (self._community(report["community"], community), *findings, *parts, *units),
            n_left_out,
            report["full_content"],
        )

    def _community(self, number: int, community: Mapping[str, Any]) -> TraceNode:
        facts = {name: community[name] for name in ("level", "size", "parent", "children")}
        return TraceNode("community", "", community["id"], number, facts, self._stages.origin("communities"))

    # ---------------------------------------------------------------------------------------- entities, relationships

    def _entity(self, record: CitedRecord) -> TraceNode:
        entity = self._row("entities", record)
        merged = self._stages.rows("entity_merges", "title", [entity["title"]])
        names = self._names([entity["title"]])
        facts = {"type": entity["type"], "names": entity["names"], "n_mentions": entity["n_mentions"]}
        if merged:
            facts["merged by"] = sorted({f"{row['name']}: {row['rule']}" for row in merged})
        return self._described(record, "entities", entity, entity["title"], facts, {"entity_mentions": (names,)})

    def _relationship(self, record: CitedRecord) -> TraceNode:
        pair = self._row("relationships", record)
        ends = self._names([pair["source"]]), self._names([pair["target"]])
        facts = {"weight": pair["weight"], "n_mentions": pair["n_mentions"], "predicates": pair.get("predicates")}
        name = f"{pair['source']} -- {pair['target']}"
        return self._described(record, "relationships", pair, name, facts, {"relationship_mentions": ends})

    def _names(self, titles: Sequence[str]) -> frozenset[str]:
        """Return the normalized names of entities in mentions."""
        rows = self._stages.rows("entities", "title", titles)
        merged = self._stages.rows("entity_merges", "title", titles)
        written = [*titles, *(name for row in rows for name in row["names"]), *(row["name"] for row in merged)]
        return frozenset(map(normalize_title, written))

    def _described(
        self,
        record: CitedRecord,
        table: str,
        row: Mapping[str, Any],
        name: str,
        facts: Mapping[str, Any],
        mentioned: Mentioned,
    ) -> TraceNode:
        units, n_left_out = self._units(record.text_unit_rows, mentioned)
        [made] = self._stages.rows(table, "id", [record.id]) or [{}]
        below = (*self._description(row["description"], made.get("description_key")), *units)
        origin = self._stages.origin("graph")
        return TraceNode(record.kind, name, record.id, record.human_readable_id, facts, origin, below, n_left_out)

    def _description(self, text: str, key: str | None) -> list[TraceNode]:
        rows = self._stages.rows("descriptions", "description_key", [key] if key else [])
        return [
            TraceNode(
                "description",
                text,
                row["description_key"],
                facts={name: row[name] for name in ("n_descriptions", "is_fallback")},
                origin=self._stages.origin("summarized_descriptions", request_key=row["request_key"]),
            )
            for row in rows
        ]

    def _claim(self, record: CitedRecord) -> TraceNode:
        claim = self._row("covariates", record)
        facts = {name: claim[name] for name in ("type", "status", "description", "source_text")}
        name = f"{claim['subject_id']} -> {claim['object_id']}"
        units, n_left_out = self._units(
            record.text_unit_rows, {"claim_mentions": (self._names([claim["subject_id"]]),)}
        )
        origin = self._stages.origin("graph")
        return TraceNode("claim", name, record.id, record.human_readable_id, facts, origin, tuple(units), n_left_out)

    # -------------------------------------------------------------------------------- text units, mentions, documents

    def _text_unit(self, record: CitedRecord) -> TraceNode:
        return self._units(record.text_unit_rows, {})[0][0]

    def _units(self, rows: Sequence[int], mentioned: Mentioned) -> tuple[list[TraceNode], int]:
        """Return nodes of the first text units of some rows, with their mentions, and the number left out."""
        shown = np.array(rows[: self._n_most], dtype=np.int64)
        units = records.read_text_units(self._index, shown, np.zeros(len(shown)))
        return [self._unit(unit, mentioned) for unit in units], len(rows) - len(units)

    def _unit(self, unit: TextUnitRecord, mentioned: Mentioned) -> TraceNode:
        bucket = self._stages.bucket_of(unit.document_id)
        pages = {"first_page": unit.first_page, "last_page": unit.last_page} if unit.first_page is not None else {}
        facts = {"path": unit.document_path, **_place(unit.start, unit.end), **pages, "n_tokens": unit.n_tokens}
        document = TraceNode(
            "document",
            unit.document_title,
            unit.document_id,
            facts={"path": unit.document_path},
            origin=self._stages.origin("documents", bucket),
        )
        found = [node for table, names in mentioned.items() for node in self._mentions(table, names, unit.id, bucket)]
        return TraceNode(
            "text unit",
            unit.text,
            unit.id,
            unit.human_readable_id,
            facts,
            self._stages.origin("text_units", bucket),
            (*found[: self._n_most], document),
            max(len(found) - self._n_most, 0),
        )

    def _mentions(self, table: str, names: Names, unit_id: str, bucket: str) -> Iterable[TraceNode]:
        for row in self._stages.rows(table, "text_unit_id", [unit_id], bucket):
            ends = [row[column] for column in _NAMED[table] if column in row]
            if _fits([normalize_title(end) for end in ends], names):
                facts = {name: row[name] for name in _MENTION_FACTS if row.get(name) not in (None, "")}
                facts |= _place(row.get("start"), row.get("end"))
                origin = self._stages.origin("extracted_graph", bucket, row["request_key"])
                yield TraceNode("mention", " -- ".join(ends), f"{unit_id}/{row['position']}", None, facts, origin)


def _fits(called: Sequence[str], names: Names) -> bool:
    """Whether the names in a mention are these, in either order."""
    return any(all(call in known for call, known in zip(order, names, strict=True)) for order in (called, called[::-1]))


def _list_cited(text: str) -> str:
    """Return the citations of a text, without brackets."""
    return "; ".join(f"{kind} ({', '.join(numbers)})" for kind, numbers in parse_citations(text))


def _place(start: int | None, end: int | None) -> dict[str, int]:
    """Return character offsets in the document, if known."""
    return {} if start is None or end is None else {"start": start, "end": end}


_BARE = re.compile(r"\s*([A-Za-z][A-Za-z _]*?)\s*[:#(]?\s*((?:\d+\s*[-\u2013,]?\s*)+)\)?\s*")
_KINDS = {kind.lower(): kind for kind in KINDS} | {
    kind.replace("_", " "): name for kind, name in KIND_OF_RECORD.items()
}
_KINDS |= {"source": "Sources", "text units": "Sources", "covariate": "Claims", "covariates": "Claims"}


@dataclass(frozen=True)
class Trace:
    """Result of a trace.

    Attributes:
        citation: the citation in standard form.
        published_by: id of the Dagster run that published the snapshot.
        missing: "Entities 99" for each number without a record.
    """

    citation: str
    snapshot: str
    published_by: str | None
    nodes: tuple[TraceNode, ...]
    missing: tuple[str, ...]


def read_citation(text: str) -> dict[str, list[int]]:
    """Parse a citation into kind -> record numbers.

    Args:
        text: as in answers, `[Data: Entities (12, 13); Reports (3)]`, or shorter: `Entities (12)`, `Entities:12`,
            `entity 12`, several of them with `;` between them.

    Raises:
        PipelineError: the text names no record.
    """
    cited: dict[str, list[int]] = {}
    for kind, numbers in _read_bracketed(text) or _read_bare(text):
        if kind in KINDS:
            cited.setdefault(kind, []).extend(int(number) for number in numbers if number.isdecimal())
    if not any(cited.values()):
        raise PipelineError(
            f"{text!r} names no record; write it as answers do, such as '[Data: Entities (12, 13)]', or 'Entities:12', "
            f"of {', '.join(KINDS)}; the list of sources below an answer explains its plain [1]"
        )
    return {kind: list(dict.fromkeys(numbers)) for kind, numbers in cited.items()}


def _read_bracketed(text: str) -> list[tuple[str, list[str]]]:
    return [part for _, _, cited in split_written(text) for part in cited or ()]


def _read_bare(text: str) -> list[tuple[str, list[str]]]:
    found = [match for part in text.split(";") if (match := _BARE.fullmatch(part))]
    named = [(_KINDS.get(match.group(1).lower().replace("_", " ").strip()), match.group(2)) for match in found]
    bracketed = render_citation((kind, [numbers.strip()]) for kind, numbers in named if kind)
    return _read_bracketed(bracketed)


def trace_citation(root: Root, index: GraphIndex, citation: str, find_run: FindRun, n_most: int = 3) -> Trace:
    """Trace a citation in an index.

    Args:
        index: of the root.
        n_most: maximum text units of a record, mentions in a text unit, findings and cited records of a report.

    Raises:
        PipelineError: the citation names no record of the index.
    """
    cited = read_citation(citation)
    tracer = Tracer(root, index, find_run, n_most)
    nodes, missing = [], []
    for kind, numbers in cited.items():
        for number in numbers:
            found = tracer.find(kind, number)
            if found:
                nodes.append(tracer.trace(found))
            else:
                missing.append(f"{kind} {number}")
    normalized = render_citation((kind, map(str, numbers)) for kind, numbers in cited.items())
    if not nodes:
        raise PipelineError(f"{normalized}: snapshot {index.snapshot.id} has no such record")
    published_by = find_run(SNAPSHOT.name, WHOLE, index.snapshot.id)
    return Trace(normalized, index.snapshot.id, published_by, tuple(nodes), tuple(missing))
