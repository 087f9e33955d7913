"""Checks that show the state of an index on each asset: `up_to_date`, `documents_readable`, `failures`, `coverage`.

They warn and block nothing. A run of assets and the button in the UI execute them. Besides, an index run, an
observation, the sensor and `stale_report` report them. Keep out: the state
(`inspection/index_state.py`).
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import dagster as dg
import pyarrow as pa

from graphrag_pipeline.defs.assets.pages.metadata import as_table
from graphrag_pipeline.defs.assets.sources import observe_whole_input
from graphrag_pipeline.defs.runs.executor import IndexRoot
from graphrag_pipeline.defs.runs.instance import dagster_home
from graphrag_pipeline.defs.runs.naming import SHOWN_STATE, asset_key, full_name
from graphrag_pipeline.defs.runs.private_api import AssetCheckEvaluationTargetMaterializationData
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.inspection.index_state import AssetState, find_state, list_checks, read_versions
from graphrag_pipeline.pipeline.data_versions import stage_data_version
from graphrag_pipeline.pipeline.detected_input import detect_input, input_versions
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.text.safe_output import as_code_block, neutralize_markdown

_MAX_CELL = 400  # characters
_MAX_DIFF = 20_000


def build_state_checks(of: Root) -> dg.AssetChecksDefinition:
    """Return the checks of a root in one op."""
    index_root = IndexRoot.of(of)
    specs = [
        dg.AssetCheckSpec(name, asset=asset_key(of, stage), description=text) for stage, name, text in list_checks()
    ]

    @dg.multi_asset_check(name=full_name(of, "index_state"), specs=specs, can_subset=True)
    def index_state(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        root, chosen = index_root.open(), context.selected_asset_check_keys
        # A run of assets has just read its part of the folder. Only a run of checks alone reads all of it.
        manifests = detect_input(root) if context.run.asset_selection == frozenset() else None
        versions = read_versions(root) if manifests is None else input_versions(manifests)
        for finding in find_state(root, versions, manifests):
            key = asset_key(root, finding.stage)
            if dg.AssetCheckKey(key, finding.check) in chosen:
                yield dg.AssetCheckResult(asset_key=key, check_name=finding.check, **_arguments(finding))

    return index_state


def report_state(instance: dg.DagsterInstance, root: Root, manifests: Mapping[str, pa.Table]) -> int:
    """Report the checks whose state differs from the last report; returns how many.

    Args:
        manifests: the present input folder, from `detect_input`.
    """
    observe_whole_input(instance, root, input_versions(manifests))
    return report_found(instance, root, find_state(root, input_versions(manifests), manifests))


def report_versions(instance: dg.DagsterInstance, root: Root, versions: Mapping[str, str]) -> int:
    """Do as `report_state`, given only the version of each bucket; documents are those that were indexed last."""
    observe_whole_input(instance, root, versions)
    return report_found(instance, root, find_state(root, versions))


def report_found(instance: dg.DagsterInstance, root: Root, findings: Iterable[AssetState]) -> int:
    """Do as `report_state`, given the state."""
    marker = dagster_home(root) / full_name(root, SHOWN_STATE)
    shown = _read_marker(marker.read_bytes() if marker.exists() else b"{}")
    n_reported = 0
    for finding in findings:
        key = asset_key(root, finding.stage)
        made = next(iter(instance.fetch_materializations(key, limit=1).records), None)
        name, state = f"{finding.stage}/{finding.check}", _state_of(root, finding, made)
        if shown.get(name) == state:
            continue
        arguments = _arguments(finding)
        if made:
            arguments["target_materialization_data"] = AssetCheckEvaluationTargetMaterializationData(
                storage_id=made.storage_id, run_id=made.run_id, timestamp=made.timestamp
            )
        instance.report_runless_asset_event(dg.AssetCheckEvaluation(key, finding.check, blocking=False, **arguments))
        shown[name] = state
        n_reported += 1
    if n_reported:
        files.replace(marker, json.dumps(shown, sort_keys=True).encode())
    return n_reported


def _read_marker(content: bytes) -> dict[str, str]:
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _state_of(root: Root, finding: AssetState, record: dg.EventLogRecord | None) -> str:
    """Return a hash of a finding and of the materialization that it is about: a new one hides the checks before it."""
    made = str(record.timestamp) if record else ""
    version = stage_data_version(root, ALL_STAGES[finding.stage], "all") or ""
    return stable_hash(finding.check, finding.line, str(finding.numbers), str(finding.texts), version, made)


def _arguments(finding: AssetState) -> dict[str, Any]:
    """Return the arguments that a result of a check and an evaluation without a run share."""
    tables = {
        name: dg.MetadataValue.md(as_table(names, rows, _MAX_CELL)) for name, (names, rows) in finding.tables.items()
    }
    texts = {name: dg.MetadataValue.md(as_code_block(text[:_MAX_DIFF], "diff")) for name, text in finding.texts.items()}
    return {
        "passed": finding.is_good,
        "severity": dg.AssetCheckSeverity.WARN,
        "description": neutralize_markdown(finding.line[: 3 * _MAX_CELL]),
        "metadata": {**finding.numbers, **texts, **tables},
    }
