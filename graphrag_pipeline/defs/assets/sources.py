"""Observable source assets for the files that the user edits: the input folder by bucket and whole, and the overrides.

The input folder has the buckets' partitions: an unpartitioned source would make every bucket stale when one changes.
The first and the last asset of the whole corpus read one version of the whole folder besides, because Dagster marks an
asset only if a direct input changed. Those between show it by their check `up_to_date`: an edge to each would hide the
lineage.
Each materialization names the source version that it read. If no observation of that version exists, one is
recorded. Keep out: what is stale (`pipeline/staleness.py`).
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.defs.assets.pages.metadata import as_table, of_lines
from graphrag_pipeline.defs.runs.executor import IndexRoot
from graphrag_pipeline.defs.runs.naming import WHOLE_INPUT, asset_key, group_of
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.identity import WHOLE, bucket_keys, stable_hash
from graphrag_pipeline.inspection.index_state import read_versions
from graphrag_pipeline.pipeline.data_versions import owned_tables
from graphrag_pipeline.pipeline.detected_input import INPUT, detect_input, input_versions
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, SNAPSHOT, Stage
from graphrag_pipeline.settings.settings import OVERRIDES_FILE
from graphrag_pipeline.settings.urls import mask_url

INPUT_FOLDER = "input_folder"
ENTITY_OVERRIDES = "entity_overrides"
INPUT_TABLE = "corpus_manifest"
MARKED = ("graph", SNAPSHOT.name)
"""Assets that Dagster marks once a file of the input changed, before its bucket is indexed."""
_MAX_LISTED = 10
_SOURCES = {INPUT: INPUT_FOLDER, OVERRIDES_FILE: ENTITY_OVERRIDES}
"""Input of a head -> source asset."""


def sources_of(stage: Stage) -> list[str]:
    """Return the names of the source assets that a stage reads."""
    inputs = [*([INPUT] if stage is ALL_STAGES["corpus_manifest"] else []), *stage.files]
    return [*(_SOURCES[name] for name in inputs), *([WHOLE_INPUT] if stage.name in MARKED else [])]


def build_sources(root: Root) -> list[dg.SourceAsset]:
    """Return the source assets of a root."""

    index_root = IndexRoot.of(root)

    def input_folder(context: dg.OpExecutionContext) -> dg.DataVersionsByPartition:
        opened = index_root.open()
        for observation in _observe_folder(opened, detect_input(opened)):
            context.log_event(observation)
        return dg.DataVersionsByPartition({})  # Dagster would record the versions again, and without metadata

    def whole_input() -> dg.ObserveResult:
        opened = index_root.open()
        manifests = detect_input(opened)
        version = dg.DataVersion(_whole_version(opened, input_versions(manifests)))
        return dg.ObserveResult(data_version=version, metadata=_of_folder(opened, manifests))

    def entity_overrides() -> dg.ObserveResult:
        opened = index_root.open()
        version = dg.DataVersion(_overrides_version(opened))
        return dg.ObserveResult(data_version=version, metadata=_of_overrides(opened))

    shown = mask_url(root.settings.input.folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        return [
            dg.observable_source_asset(
                name=INPUT_FOLDER,
                key_prefix=root.key_prefix or None,
                group_name=group_of(root, ALL_STAGES["documents"].group),
                metadata={"path of the folder": _place(root)},
                description=f"Documents in {shown}, by bucket. Observe it to see what changed.",
                partitions_def=dg.StaticPartitionsDefinition(bucket_keys(root.settings.storage.n_buckets)),
            )(input_folder),
            dg.observable_source_asset(
                name=WHOLE_INPUT,
                key_prefix=root.key_prefix or None,
                group_name=group_of(root, ALL_STAGES["documents"].group),
                metadata={"path of the folder": _place(root)},
                description=f"All documents in {shown} and {OVERRIDES_FILE} as one version: a changed file shows "
                "on the graph and on the published snapshot at once, before its bucket is indexed.",
            )(whole_input),
            dg.observable_source_asset(
                name=ENTITY_OVERRIDES,
                key_prefix=root.key_prefix or None,
                group_name=group_of(root, ALL_STAGES["documents"].group),
                metadata={"path of the file": _path_of_overrides(root)},
                description=f"{OVERRIDES_FILE}: entities that the user merged or kept apart. The file may be missing.",
            )(entity_overrides),
        ]


def _observe_folder(root: Root, manifests: Mapping[str, pa.Table]) -> Iterator[dg.AssetObservation]:
    whole = _of_folder(root, manifests)
    for bucket, version in input_versions(manifests).items():
        yield _observation(root, INPUT_FOLDER, bucket, version, _of_bucket(root, bucket, manifests[bucket]) | whole)


def _of_overrides(root: Root) -> dict[str, Any]:
    """Return metadata of entity_overrides.csv."""
    n_bytes = len(root.read_file(OVERRIDES_FILE))
    return {"path of the file": _path_of_overrides(root), "bytes of the file (0: no file)": n_bytes}


def _path_of_overrides(root: Root) -> dg.MetadataValue:
    return dg.MetadataValue.path(str((root.path / OVERRIDES_FILE).resolve()))


def _overrides_version(root: Root) -> str:
    return files.content_hash(root.read_file(OVERRIDES_FILE))


def observe_sources_now(
    instance: dg.DagsterInstance, root: Root, manifests: Mapping[str, pa.Table]
) -> Iterator[tuple[dg.AssetObservation, bool]]:
    """Yield a new observation of every source, and whether its version differs from the last one.

    Args:
        manifests: the present input folder, from `detect_input`.
    """
    overrides = _observation(root, ENTITY_OVERRIDES, None, _overrides_version(root), _of_overrides(root))
    version = _whole_version(root, input_versions(manifests))
    whole = _observation(root, WHOLE_INPUT, None, version, _of_folder(root, manifests))
    for observation in [*_observe_folder(root, manifests), whole, overrides]:
        name = observation.asset_key.path[-1]
        before = _observed_version(_last_observation(instance, root, name, observation.partition))
        yield observation, before != observation.tags["dagster/data_version"]


def known_versions(instance: dg.DagsterInstance, root: Root) -> dict[str, str]:
    """Return the version of each bucket of the input folder as it was observed last, else as it was indexed."""
    observed = {
        bucket: _observed_version(_last_observation(instance, root, INPUT_FOLDER, bucket))
        for bucket in bucket_keys(root.settings.storage.n_buckets)
    }
    return read_versions(root) | {bucket: version for bucket, version in observed.items() if version}


def observe_whole_input(instance: dg.DagsterInstance, root: Root, versions: Mapping[str, str]) -> None:
    """Record a new version of the whole input, so that Dagster marks the assets of the whole corpus.

    Args:
        versions: of each bucket of the input folder.
    """
    _observation_of(instance, root, WHOLE_INPUT, None, _whole_version(root, versions))


def _whole_version(root: Root, versions: Mapping[str, str]) -> str:
    """Return one version of all buckets and of the overrides; of an imported index, that of what it read."""
    if root.is_imported:
        return _whole_version_read(root)
    return stable_hash(_overrides_version(root), *(versions[bucket] for bucket in sorted(versions)))


def _whole_version_read(root: Root) -> str:
    """Return the version of the buckets and of the overrides that the tables were made from."""
    versions, head = read_versions(root), root.tables.head(ALL_STAGES["graph"].tables[0], WHOLE)
    overrides = head.inputs.get(OVERRIDES_FILE, "") if head else ""
    return stable_hash(overrides, *(versions[bucket] for bucket in sorted(versions)))


def observe_what_was_read(instance: dg.DagsterInstance, root: Root, stage: Stage, partition: str) -> dict[str, str]:
    """Return tags that name the version of each source a materialization read; record missing observations now."""
    tags = {}
    for name, version in _versions_read(root, stage, partition).items():
        key = partition if name == INPUT_FOLDER else None
        shown = asset_key(root, name).to_user_string()
        tags[f"dagster/input_data_version/{shown}"] = version
        tags[f"dagster/input_event_pointer/{shown}"] = str(_observation_of(instance, root, name, key, version))
    return tags


def _versions_read(root: Root, stage: Stage, partition: str) -> Mapping[str, str]:
    tables = owned_tables(stage)
    head = root.tables.head(tables[0], partition) if tables and sources_of(stage) else None
    found = {_SOURCES[name]: version for name, version in head.inputs.items() if name in _SOURCES} if head else {}
    return found | {WHOLE_INPUT: _whole_version_read(root)} if stage.name in MARKED else found


def _observation_of(
    instance: dg.DagsterInstance, root: Root, name: str, partition: str | None, version: str
) -> int | str:
    """Return the storage id of an observation of this version, the source's last one; record it if it is missing."""
    record = _last_observation(instance, root, name, partition)
    if _observed_version(record) != version:
        instance.report_runless_asset_event(_observation(root, name, partition, version))
        record = _last_observation(instance, root, name, partition)
    return record.storage_id if record else "NULL"


def _last_observation(
    instance: dg.DagsterInstance, root: Root, name: str, partition: str | None
) -> dg.EventLogRecord | None:
    return instance.get_latest_data_version_record(asset_key(root, name), is_source=True, partition_key=partition)


def _of_folder(root: Root, manifests: Mapping[str, pa.Table]) -> dict[str, Any]:
    """Return metadata of the whole input folder: where it is, what it holds, and what is not indexed yet."""
    rows = pa.concat_tables(manifests.values())
    changed = sorted(path for bucket, manifest in manifests.items() for path in changed_paths(root, bucket, manifest))
    return {
        "path of the folder": _place(root),
        "documents in the folder": rows.num_rows,
        "bytes in the folder": pc.sum(rows["n_bytes"]).as_py() or 0,
        "documents in the folder by format": _by_format(rows),
        "documents in the folder not readable": rows.num_rows - rows["problem"].null_count,
        "files in the folder not indexed yet": len(changed),
    } | of_lines("files not indexed yet, each", _first(changed))


def _place(root: Root) -> Any:
    folder = root.input_folder
    return (
        dg.MetadataValue.url(root.shown_input)
        if isinstance(folder, str)
        else dg.MetadataValue.path(str(folder.resolve()))
    )


def _by_format(rows: pa.Table) -> Any:
    sums = rows.group_by("format").aggregate([("n_bytes", "count"), ("n_bytes", "sum")]).sort_by("format")
    columns = ("format", "n_bytes_count", "n_bytes_sum")
    table = as_table(("format", "documents", "bytes"), ([row[name] for name in columns] for row in sums.to_pylist()))
    return dg.MetadataValue.md(table)


def _of_bucket(root: Root, bucket: str, manifest: pa.Table) -> dict[str, Any]:
    """Return metadata of a bucket of the input folder: its documents, and the paths that differ from the index."""
    changed = changed_paths(root, bucket, manifest)
    counts = {
        "documents in this bucket": manifest.num_rows,
        "bytes in this bucket": pc.sum(manifest["n_bytes"]).as_py() or 0,
        "files in this bucket not indexed yet": len(changed),
    }
    return counts | ({"not indexed yet": ", ".join(_first(changed))} if changed else {})


def _first(paths: Sequence[str]) -> list[str]:
    more = [f"and {len(paths) - _MAX_LISTED:,} more"] if len(paths) > _MAX_LISTED else []
    return [*paths[:_MAX_LISTED], *more]


def changed_paths(root: Root, bucket: str, manifest: pa.Table) -> list[str]:
    """Return the paths of a bucket whose documents differ from those of the index."""
    names = ["path", "document_id", "content_hash", "problem"]
    head = root.tables.head(INPUT_TABLE, bucket)
    indexed = root.tables.read_head(head).select(names).to_pylist() if head else []
    present = {tuple(row.values()) for row in manifest.select(names).to_pylist()}
    return sorted({str(path) for path, *_ in present ^ {tuple(row.values()) for row in indexed}})


def _observation(
    root: Root, name: str, partition: str | None, version: str, shown: Mapping[str, Any] | None = None
) -> dg.AssetObservation:
    tags = {"dagster/data_version": version, "dagster/data_version_is_user_provided": "true"}
    return dg.AssetObservation(asset_key(root, name), partition=partition, tags=tags, metadata=shown)


def _observed_version(record: dg.EventLogRecord | None) -> str | None:
    observed = record.asset_observation if record else None
    return observed.tags.get("dagster/data_version") if observed else None
