"""Checks that a candidate must pass before it is published, derived from the table contract if possible.

Each check is a function from a snapshot to a list of problems in words, empty if it passes. A check in `CHECKS` blocks
publishing and shows in the UI. Add a check that depends on settings to `POLICY_CHECKS`. Keep out: repairs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from graphrag_pipeline.arrow_columns import list_pairs
from graphrag_pipeline.models.ports import NOT_ASKED_AGAIN
from graphrag_pipeline.settings.settings import PublishingSettings
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.tables import CONTRACT_TABLES, STAGE_TABLES, VECTOR_TABLES

_MIN_REMOVED = 5
"""Fewer documents may always go, so that small corpora can be edited."""


def find_removal_problem(published: pa.Table, kept_ids: Collection[str], settings: PublishingSettings) -> str:
    """Return why a publication waits that loses too many of the published documents; "" if it need not.

    Args:
        published: documents of the published snapshot; needs `id` and `path`.
        kept_ids: ids of the documents after the publication, and of those that are there under another path.
    """
    is_lost = pc.invert(pc.is_in(published["id"], value_set=pa.array(kept_ids, pa.string())))
    n_lost, n_published = pc.sum(is_lost).as_py() or 0, published.num_rows
    if n_lost < _MIN_REMOVED or n_lost <= settings.max_removed_share * n_published:
        return ""
    first = min(published["path"].filter(is_lost).to_pylist())
    return (
        f"{n_lost:,} of {n_published:,} published documents are gone, such as `{first}`: more than "
        f"publishing.max_removed_share = {settings.max_removed_share:g}. If they are to go, run "
        "`graphrag-pipeline index --allow-removal`; else restore them, then run `graphrag-pipeline index`"
    )


def check_removal(published: Snapshot | None, candidate: Snapshot, settings: PublishingSettings) -> list[str]:
    """No more than `publishing.max_removed_share` of the published documents are gone, or fewer than 5."""
    if published is None:
        return []
    before, after = published.table("documents"), candidate.table("documents")
    is_there = pc.is_in(before["text"], value_set=after["text"])  # a file that moved has another id
    kept = [*after["id"].to_pylist(), *before["id"].filter(is_there).to_pylist()]
    problem = find_removal_problem(before, kept, settings)
    return [problem] if problem else []


NEEDED = ("files", "schemas")
"""Checks that the others rely on."""


@dataclass(frozen=True)
class CheckResult:
    """The result of one check; `problems` is empty if it passed."""

    name: str
    problems: list[str]

    @property
    def passed(self) -> bool:
        return not self.problems


def check_snapshot(snapshot: Snapshot) -> list[CheckResult]:
    """Run every check, in order; after a damaged file or a schema problem the others are skipped."""
    results: list[CheckResult] = []
    for name, check in CHECKS.items():
        results.append(CheckResult(name, check(snapshot)))
        if name in NEEDED and not results[-1].passed:
            break
    return results


def check_files(snapshot: Snapshot) -> list[str]:
    """Every file has the content that its hash names."""
    return [f"{path} is damaged" for path in snapshot.changed_parts()]


def check_schemas(snapshot: Snapshot) -> list[str]:
    """Every contract table exists with exactly its columns, and columns that are not nullable have no nulls."""
    problems = []
    for name, table in CONTRACT_TABLES.items():
        if name not in snapshot.manifest.tables:
            problems.append(f"{name}: table is missing")
            continue
        path = snapshot.table_path(name)
        schema = pq.read_schema(path).remove_metadata()
        if not schema.equals(table.schema):
            ours, wanted = list(schema), list(table.schema)
            odd = [field.name for field in (*wanted, *ours) if field not in ours or field not in wanted]
            problems.append(f"{name}: not as in the contract: {', '.join(dict.fromkeys(odd)) or 'order of columns'}")
            continue
        rows = snapshot.table(name)
        nulls = [field.name for field in table.schema if not field.nullable and rows[field.name].null_count]
        problems += [f"{name}.{column}: {rows[column].null_count} nulls" for column in nulls]
    return problems


def check_unique_keys(snapshot: Snapshot) -> list[str]:
    """Keys, ids, record numbers and entity titles are unique."""
    problems = []
    for name, table in CONTRACT_TABLES.items():
        rows = snapshot.table(name)
        has_ids = "human_readable_id" in table.schema.names
        uniques = [table.key, *([("id",), ("human_readable_id",)] if has_ids else [])]
        uniques += [("title",)] if name == "entities" else []
        for columns in dict.fromkeys(uniques):
            n_distinct = rows.select(columns).group_by(list(columns)).aggregate([]).num_rows
            if n_distinct != rows.num_rows:
                problems.append(f"{name}: {rows.num_rows - n_distinct} rows repeat a value of {', '.join(columns)}")
    return problems


def check_numbers(snapshot: Snapshot) -> list[str]:
    """No number of a table is NaN or infinite."""
    problems = []
    for name, table in CONTRACT_TABLES.items():
        for field in table.schema:
            if pa.types.is_floating(field.type):
                wrong = pc.invert(pc.is_finite(snapshot.table(name)[field.name].drop_null()))
                n_wrong = pc.sum(wrong).as_py()
                problems += [f"{name}.{field.name}: {n_wrong} values are not finite"] if n_wrong else []
    return problems


def check_references(snapshot: Snapshot) -> list[str]:
    """Every id that a table names exists in the referenced table."""
    problems = []
    for name, table in CONTRACT_TABLES.items():
        for column, (other, key) in table.references.items():
            values = snapshot.table(name)[column].combine_chunks()
            if pa.types.is_nested(values.type):
                values = values.flatten()
            missing = pc.invert(pc.is_in(values.drop_null(), value_set=snapshot.table(other)[key].combine_chunks()))
            if pc.any(missing).as_py():
                example = values.drop_null().filter(missing)[0].as_py()
                n_missing = pc.sum(missing).as_py()
                problems.append(f"{name}.{column}: {n_missing} values are not in {other}.{key}, such as `{example}`")
    return problems


def check_communities(snapshot: Snapshot) -> list[str]:
    """Every entity is in one root community, and children partition their parent."""
    communities, entities = snapshot.table("communities"), snapshot.table("entities")
    rows, members = list_pairs(communities["entity_ids"], entities["id"])
    levels, parents = communities["level"].to_numpy(), communities["parent"].to_numpy()
    problems = []
    if ((levels == 0) != (parents == -1)).any():
        problems.append("a community of level 0 has a parent, or one of a deeper level has none")
    for level in np.unique(levels):
        n_communities = np.bincount(members[levels[rows] == level], minlength=len(entities))
        if level == 0 and (n_communities == 0).any():
            problems.append(f"{int((n_communities == 0).sum())} entities are in no community")
        if (n_communities > 1).any():
            problems.append(f"level {level}: {int((n_communities > 1).sum())} entities are in several communities")
    return problems + _check_children(communities, rows, members)


def _check_children(communities: pa.Table, rows: np.ndarray, members: np.ndarray) -> list[str]:
    numbers, levels = communities["community"].to_numpy(), communities["level"].to_numpy()
    row_of = {int(number): row for row, number in enumerate(numbers)}
    parent_rows = np.array([row_of.get(int(parent), -1) for parent in communities["parent"].to_numpy()], dtype=np.int64)
    problems = []
    has_parent = parent_rows >= 0
    if (levels[has_parent] != levels[parent_rows[has_parent]] + 1).any():
        problems.append("a community is not one level below its parent")
    n_entities = int(members.max(initial=-1)) + 1
    inner = has_parent[rows]
    of_children = np.unique(parent_rows[rows[inner]] * n_entities + members[inner])
    is_split = np.zeros(len(communities), dtype=bool)
    is_split[parent_rows[has_parent]] = True
    of_parents = np.unique(rows[is_split[rows]] * n_entities + members[is_split[rows]])
    if not np.array_equal(of_children, of_parents):
        n_odd = len(np.setxor1d(of_children, of_parents))
        problems.append(f"{n_odd} entities are in a parent and none of its children, or in a child alone")
    listed = {(int(n), int(c)) for n, cs in zip(numbers, communities["children"].to_pylist(), strict=True) for c in cs}
    implied = {(int(p), int(n)) for p, n in zip(communities["parent"].to_numpy(), numbers, strict=True) if p != -1}
    if listed != implied:
        problems.append(f"columns children and parent disagree on {len(listed ^ implied)} pairs")
    return problems


def check_reports(snapshot: Snapshot) -> list[str]:
    """Every community has one report, and it is not empty."""
    reports = snapshot.table("community_reports")
    communities = set(snapshot.table("communities")["community"].to_pylist())
    missing = communities - set(reports["community"].to_pylist())
    problems = [f"{len(missing)} communities have no report, such as {min(missing)}"] if missing else []
    n_empty = pc.sum(pc.equal(reports["full_content"], "")).as_py() or 0
    return problems + ([f"{n_empty} reports are empty"] if n_empty else [])


def check_vectors(snapshot: Snapshot) -> list[str]:
    """Each vector table holds exactly the ids of the table it embeds."""
    problems = []
    for name, (table, _) in VECTOR_TABLES.items():
        if name not in snapshot.manifest.vectors:
            problems.append(f"{name}: vector table is missing")
            continue
        vectors = snapshot.vectors(name)
        if vectors.count() != snapshot.n_rows(table):
            problems.append(f"{name}: {vectors.count()} vectors for {snapshot.n_rows(table)} rows of {table}")
        elif set(vectors.ids()) != set(snapshot.table(table)["id"].to_pylist()):
            problems.append(f"{name}: its ids are not those of {table}")
    return problems


def check_sentences(snapshot: Snapshot) -> list[str]:
    """The sentences of every text unit cover it, in order and without a gap, each with its vector."""
    if not snapshot.manifest.sentences:
        return ["sentence vectors are missing"]
    sentences, text_units = snapshot.sentences, snapshot.table("text_units")
    indptr, starts, ends = sentences.indptr, sentences.starts, sentences.ends
    n_sentences = len(starts)
    lengths = {len(ends), len(sentences.vectors), len(sentences.scales), len(sentences.window_scales), int(indptr[-1])}
    if len(indptr) != len(text_units) + 1 or lengths != {n_sentences} or (np.diff(indptr) < 0).any():
        found = f"{len(indptr) - 1} text units with {' or '.join(map(str, sorted(lengths)))} sentences"
        return [f"{found}, but the table has {len(text_units)} text units"]
    text_lengths = pc.utf8_length(text_units["text"]).to_numpy()
    has_sentences = np.diff(indptr) > 0
    first, last = indptr[:-1][has_sentences], indptr[1:][has_sentences] - 1
    follows = np.ones(n_sentences, dtype=bool)
    follows[1:] = starts[1:] == ends[:-1]
    follows[first] = starts[first] == 0
    is_whole = np.array(text_lengths == 0)
    is_whole[has_sentences] = ends[last] == text_lengths[has_sentences]
    n_odd = int((~is_whole).sum()) + int((~follows | (starts >= ends)).sum())
    problem = f"{n_odd} text units are not covered by their sentences, or sentences are outside their text unit"
    return [problem] if n_odd else []


def check_heads(snapshot: Snapshot) -> list[str]:
    """No stage partition was built from older inputs than the ones pinned here."""
    heads = snapshot.manifest.heads
    problems = []
    for name, head in sorted(heads.items()):
        for read, version in sorted(head["inputs"].items()):
            if read in heads and heads[read]["data_version"] != version:
                problems.append(f"{name} was built from an older {read}; materialize {name.split('/')[0]} again")
    return problems


RUN_AGAIN = (
    "Run `graphrag-pipeline index` or the job reindex_stale, which request these records again (a re-execution from "
    "failure does not)"
)
CHANGE_MODEL = (
    "These records were asked for several times and are not asked again: change the prompt, the model or its parameters"
)


def check_failures(snapshot: Snapshot, settings: PublishingSettings) -> list[str]:
    """No stage has more than `publishing.max_failed_share` of its records without a usable model reply.

    `publishing.tolerated_failures` records may fail whatever their share, unless all that were asked for failed.
    """
    problems = []
    failures = snapshot.table("failures")
    is_final = pc.match_substring(failures["reason"], NOT_ASKED_AGAIN)
    counted = failures.append_column("is_final", is_final).group_by("stage")
    for row in counted.aggregate([("n_asked", "max"), ([], "count_all"), ("is_final", "all")]).to_pylist():
        n_failed, n_asked = row["count_all"], row["n_asked_max"]
        is_few = n_failed <= settings.tolerated_failures and n_failed < n_asked
        if n_failed > settings.max_failed_share * n_asked and not is_few:
            way_out = CHANGE_MODEL if row["is_final_all"] else RUN_AGAIN
            problems.append(
                f"{row['stage']}: {n_failed:,} of {n_asked:,} records failed, over publishing.max_failed_share = "
                f"{settings.max_failed_share:g}; `graphrag-pipeline status` shows the reasons. {way_out}, or raise the "
                "share or publishing.tolerated_failures"
            )
    return sorted(problems)


def check_mixed_prompts(snapshot: Snapshot, settings: PublishingSettings) -> list[str]:
    """All buckets of a stage were made by one version of its prompts, model, settings and code.

    During a backfill after a change, buckets have different versions; `publishing.allow_mixed_prompts` allows to
    publish such an index.
    """
    return [] if settings.allow_mixed_prompts else find_mixed(snapshot.manifest.heads, snapshot.manifest.code)


def find_mixed(heads: Mapping[str, Mapping[str, Any]], code: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the stages whose buckets come from different versions, with the buckets of each and the way out.

    Args:
        heads: by "table/partition"; needs `code_version`.
        code: prompts, model and settings of each code version, by name.
    """
    buckets: dict[str, dict[str, dict[str, None]]] = {}  # stage -> code version -> its buckets, each once
    for name, head in sorted(heads.items()):
        table, _, partition = name.partition("/")
        if table not in STAGE_TABLES:
            continue  # of an older release
        versions = buckets.setdefault(STAGE_TABLES[table].owner, {})
        versions.setdefault(head["code_version"], {})[partition] = None
    return [
        f"{stage}: its buckets come from {len(versions)} versions of {_differing(code, versions)} (buckets "
        + "; others: ".join(" ".join(keys) for keys in versions.values())
        + "); materialize the other buckets, or run `graphrag-pipeline index`, or set publishing.allow_mixed_prompts"
        for stage, versions in buckets.items()
        if len(versions) > 1
    ]


def _differing(code: Mapping[str, Mapping[str, Any]], versions: Iterable[str]) -> str:
    """Return the names of the prompts, models and settings in which code versions differ."""
    known = [code.get(version, {}) for version in versions]
    names = sorted({name for code in known for name in code})
    return (
        ", ".join(name for name in names if any(code.get(name) != known[0].get(name) for code in known)) or "its code"
    )


CHECKS: dict[str, Callable[[Snapshot], list[str]]] = {
    "files": check_files,
    "schemas": check_schemas,
    "unique_keys": check_unique_keys,
    "numbers": check_numbers,
    "references": check_references,
    "communities": check_communities,
    "reports": check_reports,
    "vectors": check_vectors,
    "sentences": check_sentences,
    "heads": check_heads,
}
POLICY_CHECKS: dict[str, Callable[[Snapshot, PublishingSettings], list[str]]] = {
    "failures": check_failures,
    "mixed_prompts": check_mixed_prompts,
}
"""Checks that also depend on settings, so that a pass is not saved."""
