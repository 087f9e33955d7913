"""Contract tables: the stage tables joined into Microsoft GraphRAG's layout, with cross references and record numbers.

Pure: stage tables in, contract tables out. Numbers (`human_readable_id`, `community`) are carried over from the last
published snapshot and never reused. A new record gets the next number, in reading order. Lists of ids are ordered by
number. Keep out: computations of a stage.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.arrow_columns import compress, list_pairs, one_chunk, positions, take
from graphrag_pipeline.citations import number_citations, parse_citations, render_full_content
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.indexing.failures import FAILURE_TABLES, join_failures
from graphrag_pipeline.tables import CONTRACT_TABLES, RECORD_NUMBERS
from graphrag_pipeline.text.tokens import TokenCounter

COUNTED_TEXTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "entities": {"n_tokens": ("title", "description")},
    "relationships": {"n_tokens": ("source", "target", "description")},
    "covariates": {"n_tokens": ("subject_id", "object_id", "description")},
    "community_reports": {"n_tokens": ("full_content",), "n_summary_tokens": ("summary",)},
}
"""Contract table -> column of counts -> columns whose texts, joined by a space, are counted."""
_SLICE_ROWS = 65_536


class TokenCounts:
    """Adds the columns of token counts to contract tables.

    Args:
        count_tokens_each: function that counts the tokens of each text.
        counted: contract tables of an earlier snapshot, whose tokens the same function counted.
    """

    def __init__(self, count_tokens_each: TokenCounter, counted: Mapping[str, pa.Table]) -> None:
        self._count = count_tokens_each
        self._counted = counted

    def add(self, table: str, rows: pa.Table) -> pa.Table:
        """Return the rows of a contract table with its columns of token counts."""
        for column, texts in COUNTED_TEXTS[table].items():
            counts = self._count_rows(rows.select(["id", *texts]), texts, column, self._counted.get(table))
            at = rows.schema.get_field_index(column)
            rows = rows.append_column(column, counts) if at < 0 else rows.set_column(at, column, counts)
        return rows

    def _count_rows(self, rows: pa.Table, texts: tuple[str, ...], column: str, known: pa.Table | None) -> pa.Array:
        counts = np.full(len(rows), -1, dtype=np.int64)
        if known is not None and len(known):
            found = positions(rows["id"], known["id"])
            for start in range(0, len(rows), _SLICE_ROWS):
                kept = _keep_equal(rows, known, found, np.arange(start, min(start + _SLICE_ROWS, len(rows))), texts)
                counts[kept] = one_chunk(known[column]).take(pa.array(found[kept])).to_numpy(zero_copy_only=False)
        missing = np.flatnonzero(counts < 0)
        for start in range(0, len(missing), _SLICE_ROWS):
            here = missing[start : start + _SLICE_ROWS]
            values = (one_chunk(rows[name]).take(pa.array(here)).to_pylist() for name in texts)
            counts[here] = self._count([" ".join(parts) for parts in zip(*values, strict=True)])
        return pa.array(counts, pa.int64())


def _keep_equal(
    rows: pa.Table, known: pa.Table, found: np.ndarray, chosen: np.ndarray, texts: tuple[str, ...]
) -> np.ndarray:
    """Return those of the chosen rows whose texts are those of the known row `found` for them."""
    kept = chosen[found[chosen] >= 0]
    for name in texts:
        now, before = (one_chunk(table[name]) for table in (rows, known))
        is_equal = pc.equal(now.take(pa.array(kept)), before.take(pa.array(found[kept])))
        kept = kept[is_equal.to_numpy(zero_copy_only=False)]
    return kept


JOINED_TABLES = (
    "documents", "text_units", "entities", "relationships", "covariates", "descriptions", "communities",
    "community_reports", *FAILURE_TABLES,
)  # fmt: skip
"""Stage tables that contract tables are joined from."""

_REPORT_COLUMNS = ("human_readable_id", "community", "level", "parent", "children", "period", "size")
"""Columns that a report takes from its community."""
_SLICE_REPORTS = 2_000

CITED_KINDS = {
    "Entities": "entity", "Relationships": "relationship", "Claims": "covariate", "Reports": "community",
    "Sources": "text_unit",
}  # fmt: skip
"""Kind in a citation -> kind in `record_numbers`."""


def join_contract_tables(
    stage: Mapping[str, pa.Table],
    previous_numbers: pa.Table | None,
    count_tokens_each: TokenCounter,
    counted: Mapping[str, pa.Table] | None = None,
) -> dict[str, pa.Table]:
    """Return all contract tables by name, in file order.

    Args:
        stage: `JOINED_TABLES` by name, all partitions in one.
        previous_numbers: `record_numbers` of the last published snapshot.
        count_tokens_each: function that counts the tokens of each text.
        counted: contract tables of an earlier snapshot, whose tokens the same function counted.
    """
    count = TokenCounts(count_tokens_each, counted or {})
    stage = dict(stage)  # each stage table is released after its join: together they are large
    failures = join_failures(stage)
    numbers = Numbering(previous_numbers)
    documents = numbers.number("document", stage.pop("documents"), _document_order)
    by_document = partial(_text_unit_order, document_ids=documents["id"])
    text_units = numbers.number("text_unit", stage.pop("text_units"), by_document)
    unit_ids, descriptions = text_units["id"], stage.pop("descriptions")
    by_unit = partial(_graph_order, text_unit_ids=unit_ids)
    entities = numbers.number("entity", _described(stage.pop("entities"), descriptions), by_unit)
    relationships = numbers.number("relationship", _described(stage.pop("relationships"), descriptions), by_unit)
    del descriptions
    covariates = numbers.number("covariate", stage.pop("covariates"), partial(_claim_order, text_unit_ids=unit_ids))
    communities = numbers.number("community", stage.pop("communities"), _community_order)
    tables = {
        "documents": _documents(documents, text_units),
        "text_units": _text_units(text_units, entities, relationships, covariates),
        "entities": count.add("entities", _in_unit_order(entities, unit_ids)),
        "relationships": count.add("relationships", _in_unit_order(relationships, unit_ids)),
        "covariates": count.add("covariates", _in_unit_order(covariates, unit_ids)),
        "communities": _communities(communities, entities, relationships, unit_ids),
        "record_numbers": numbers.table(),
        "failures": failures,
    }
    del documents, text_units, entities, relationships, covariates, communities
    del unit_ids, by_document, by_unit
    reports = stage.pop("community_reports")
    tables["community_reports"] = count.add("community_reports", _reports(tables["communities"], reports, numbers))
    return {name: CONTRACT_TABLES[name].sort(tables.pop(name)) for name in list(tables)}


class Numbering:
    """Record numbers by kind: old numbers are carried over, new records get the next ones."""

    def __init__(self, previous: pa.Table | None) -> None:
        self._old = RECORD_NUMBERS.empty() if previous is None else previous
        self._parts: dict[str, pa.Table] = {}

    def assign(self, kind: str, ids: pa.Array) -> np.ndarray:
        """Return the numbers of `ids`, int64; new ids get the next free numbers, in order."""
        old = self._old.filter(pc.equal(self._old["kind"], kind))
        found = positions(ids, old["id"])
        old_numbers = old["number"].to_numpy()
        free = old_numbers[pc.index(old["id"], "").as_py()] if len(old) else 0
        is_new = found < 0
        numbers = np.empty(len(ids), dtype=np.int64)
        numbers[~is_new] = old_numbers[found[~is_new]]
        numbers[is_new] = free + np.arange(int(is_new.sum()))
        columns = {
            "kind": pa.repeat(kind, len(ids) + 1),
            "id": pa.chunked_array([ids, pa.array([""], ids.type)]),
            "number": np.append(numbers, free + int(is_new.sum())),
        }
        self._parts[kind] = pa.table(columns)
        return numbers

    def number(self, kind: str, rows: pa.Table, order: Callable[[pa.Table], np.ndarray]) -> pa.Table:
        """Return `rows` with their `human_readable_id`, sorted by it; `order` returns row numbers in reading order."""
        in_order = order(rows)
        numbers = np.empty(len(rows), dtype=np.int64)
        numbers[in_order] = self.assign(kind, one_chunk(rows["id"]).take(pa.array(in_order)))
        numbered = rows.append_column("human_readable_id", pa.array(numbers))
        return numbered.take(pa.array(np.argsort(numbers))).combine_chunks()

    def find(self, kind: str, ids: Sequence[str]) -> dict[str, int]:
        """Return the numbers of those of `ids` that have one."""
        known = self._parts[kind]
        rows = positions(pa.array(ids, pa.string()), known["id"])
        found = np.flatnonzero(rows >= 0)
        numbers = known["number"].take(pa.array(rows[found])).to_pylist()
        return dict(zip((ids[i] for i in found.tolist()), numbers, strict=True))

    def table(self) -> pa.Table:
        """Return the `record_numbers` table; the row with an empty id holds the next free number of its kind."""
        return RECORD_NUMBERS.sort(*self._parts.values())


# ---------------------------------------------------------- reading order: row numbers, first record first


def _order_by(*keys: np.ndarray) -> np.ndarray:
    """Return row numbers sorted by the keys, the first key first."""
    return np.lexsort(keys[::-1])


def _document_order(documents: pa.Table) -> np.ndarray:
    return pc.sort_indices(documents, [(name, "ascending") for name in ("path", "record", "id")]).to_numpy()


def _text_unit_order(text_units: pa.Table, document_ids: pa.ChunkedArray) -> np.ndarray:
    return _order_by(positions(text_units["document_id"], document_ids), text_units["position"].to_numpy())


def _graph_order(rows: pa.Table, text_unit_ids: pa.ChunkedArray) -> np.ndarray:
    """Return rows of entities or relationships by their first text unit, then by id."""
    parents, units = list_pairs(rows["text_unit_ids"], text_unit_ids)
    first = np.full(len(rows), np.iinfo(np.int64).max)
    np.minimum.at(first, parents, units)
    return _order_by(first, _ranks(rows["id"]))


def _claim_order(covariates: pa.Table, text_unit_ids: pa.ChunkedArray) -> np.ndarray:
    return _order_by(positions(covariates["text_unit_id"], text_unit_ids), _ranks(covariates["id"]))


def _community_order(communities: pa.Table) -> np.ndarray:
    return _order_by(communities["level"].to_numpy(), -communities["size"].to_numpy(), _ranks(communities["id"]))


def _ranks(ids: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(pc.rank(one_chunk(ids), tiebreaker="first")).astype(np.int64)


# ------------------------------------------------------------------------------------------------------------ the joins


def _lists(pairs: tuple[np.ndarray, np.ndarray], n_rows: int, ids: pa.ChunkedArray) -> pa.ListArray:
    """Return a list of ids per row from (row, id row) pairs: distinct, in the order of `ids`."""
    indptr, indices = compress(*pairs, n_rows)
    return pa.ListArray.from_arrays(pa.array(indptr.astype(np.int32)), take(ids, indices))


def with_descriptions(rows: pa.Table, descriptions: pa.Table) -> pa.Table:
    """Return entities or relationships with their `description`.

    Raises:
        KeyError: a row has no description, so the descriptions are older than the graph.
    """
    found = positions(rows["description_key"], descriptions["description_key"])
    if (found < 0).any():
        raise KeyError(f"{int((found < 0).sum())} rows have no description: descriptions are older than the graph")
    return rows.append_column("description", take(descriptions["description"], found))


def _described(rows: pa.Table, descriptions: pa.Table) -> pa.Table:
    """Return entities or relationships with one description instead of the list."""
    described = with_descriptions(rows, descriptions)
    return described.select(
        [name for name in described.schema.names if name not in ("descriptions", "description_key")]
    )


def with_full_content(reports: pa.Table) -> pa.Table:
    """Return stage reports with their `full_content`, which cites stable ids."""
    columns = (reports[name].to_pylist() for name in ("title", "summary", "findings"))
    texts = [render_full_content(*values) for values in zip(*columns, strict=True)]
    return reports.append_column("full_content", pa.array(texts, pa.string()))


def _documents(documents: pa.Table, text_units: pa.Table) -> pa.Table:
    owner = positions(text_units["document_id"], documents["id"])
    units = _lists((owner, np.arange(len(text_units))), len(documents), text_units["id"])
    return documents.append_column("text_unit_ids", units)


def _text_units(text_units: pa.Table, entities: pa.Table, relationships: pa.Table, covariates: pa.Table) -> pa.Table:
    ids, n_rows = text_units["id"], len(text_units)
    joined = text_units.append_column(
        "entity_ids", _lists(list_pairs(entities["text_unit_ids"], ids)[::-1], n_rows, entities["id"])
    ).append_column(
        "relationship_ids", _lists(list_pairs(relationships["text_unit_ids"], ids)[::-1], n_rows, relationships["id"])
    )
    return joined.append_column(
        "covariate_ids", _lists(list_pairs(covariates["text_unit_ids"], ids)[::-1], n_rows, covariates["id"])
    )


def _in_unit_order(rows: pa.Table, text_unit_ids: pa.ChunkedArray) -> pa.Table:
    """Return `rows` with their text unit ids ordered by number."""
    ordered = _lists(list_pairs(rows["text_unit_ids"], text_unit_ids), len(rows), text_unit_ids)
    return rows.set_column(rows.schema.get_field_index("text_unit_ids"), "text_unit_ids", ordered)


def _communities(
    communities: pa.Table, entities: pa.Table, relationships: pa.Table, unit_ids: pa.ChunkedArray
) -> pa.Table:
    n_rows = len(communities)
    members = list_pairs(communities["entity_ids"], entities["id"])
    inside = relationships_inside(communities, entities, relationships)
    by_entities = _through(members, list_pairs(entities["text_unit_ids"], unit_ids), len(entities))
    by_relationships = _through(inside, list_pairs(relationships["text_unit_ids"], unit_ids), len(relationships))
    units = np.r_[by_entities[0], by_relationships[0]], np.r_[by_entities[1], by_relationships[1]]
    parent_rows = positions(communities["parent_id"], communities["id"])
    numbers = communities["human_readable_id"].to_numpy()
    has_parent = np.flatnonzero(parent_rows >= 0)
    child_indptr, child_rows = compress(parent_rows[has_parent], has_parent, n_rows)
    parents = np.where(parent_rows >= 0, numbers[parent_rows], -1) if n_rows else numbers
    return pa.table(
        {
            "id": communities["id"],
            "human_readable_id": communities["human_readable_id"],
            "community": communities["human_readable_id"],
            "level": communities["level"],
            "parent": pa.array(parents, pa.int64()),
            "children": pa.ListArray.from_arrays(
                pa.array(child_indptr.astype(np.int32)), pa.array(numbers[child_rows], pa.int64())
            ),
            "title": pa.array([f"Community {number}" for number in numbers], pa.string()),
            "entity_ids": _lists(members, n_rows, entities["id"]),
            "relationship_ids": _lists(inside, n_rows, relationships["id"]),
            "text_unit_ids": _lists(units, n_rows, unit_ids),
            "period": pa.nulls(n_rows, pa.string()),
            "size": communities["size"],
        }
    )


def relationships_inside(
    communities: pa.Table, entities: pa.Table, relationships: pa.Table
) -> tuple[np.ndarray, np.ndarray]:
    """Return (community row, relationship row) pairs of relationships with both ends in the community."""
    community_rows, entity_rows = list_pairs(communities["entity_ids"], entities["id"])
    levels = communities["level"].to_numpy()
    source = positions(relationships["source_id"], entities["id"])
    target = positions(relationships["target_id"], entities["id"])
    pairs = [(np.empty(0, np.int64), np.empty(0, np.int64))]
    for level in np.unique(levels):
        here = levels[community_rows] == level
        community_of = np.full(len(entities), -1, dtype=np.int64)
        community_of[entity_rows[here]] = community_rows[here]
        inside = np.flatnonzero((community_of[source] >= 0) & (community_of[source] == community_of[target]))
        pairs.append((community_of[source[inside]], inside))
    return np.concatenate([p[0] for p in pairs]), np.concatenate([p[1] for p in pairs])


def _through(
    first: tuple[np.ndarray, np.ndarray], second: tuple[np.ndarray, np.ndarray], n_middle: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return (a, c) pairs from (a, b) and (b, c) pairs."""
    indptr, indices = compress(*second, n_middle)
    lengths = np.diff(indptr)[first[1]]
    rows = np.repeat(first[0], lengths)
    starts = np.repeat(indptr[first[1]], lengths)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return rows, indices[starts + within].astype(np.int64)


def _reports(communities: pa.Table, reports: pa.Table, numbers: Numbering) -> pa.Table:
    found = positions(communities["id"], reports["community_id"])
    if (found < 0).any():
        raise KeyError(f"{int((found < 0).sum())} communities have no report: reports are older than the communities")
    communities = communities.select(["id", *_REPORT_COLUMNS])
    parts: list[pa.Table] = []
    for start in range(0, len(communities), _SLICE_REPORTS):
        here = slice(start, start + _SLICE_REPORTS)
        stage_rows = reports.take(pa.array(found[here])).to_pylist()
        cited = _find_cited(stage_rows, numbers)
        pairs = zip(communities[here].to_pylist(), stage_rows, strict=True)
        rows = [_report_row(community, report, cited) for community, report in pairs]
        parts.append(CONTRACT_TABLES["community_reports"].from_rows(rows))
    return CONTRACT_TABLES["community_reports"].sort(*parts)


def _find_cited(reports: Sequence[dict], numbers: Numbering) -> dict[str, dict[str, int]]:
    """Return kind in a citation -> id -> number, for all citations of some reports."""
    cited: dict[str, dict[str, None]] = {}
    for report in reports:
        for text in (report["summary"], *(text for finding in report["findings"] for text in finding.values())):
            for kind, ids in parse_citations(text):
                cited.setdefault(kind, {}).update(dict.fromkeys(ids))
    return {kind: numbers.find(CITED_KINDS[kind], list(ids)) for kind, ids in cited.items() if kind in CITED_KINDS}


def _report_row(community: dict, report: dict, cited: Mapping[str, Mapping[str, int]]) -> dict:
    summary = number_citations(report["summary"], cited)
    findings = [{k: number_citations(text, cited) for k, text in finding.items()} for finding in report["findings"]]
    content = {
        "title": report["title"],
        "summary": summary,
        "findings": findings,
        "rating": report["rank"],
        "rating_explanation": report["rating_explanation"],
    }
    return {
        "id": stable_hash("report", community["id"]),
        **{column: community[column] for column in _REPORT_COLUMNS},
        "title": report["title"],
        "summary": summary,
        "full_content": render_full_content(report["title"], summary, findings),
        "rank": report["rank"],
        "rating_explanation": report["rating_explanation"],
        "findings": findings,
        "full_content_json": json.dumps(content, ensure_ascii=False),
        "is_verbatim": report["is_verbatim"],
        "is_fallback": report["is_fallback"],
        **dict.fromkeys(COUNTED_TEXTS["community_reports"], 0),  # counted later, all together
    }
