"""The report of the checks of the state after an index run. If nothing changed, Dagster is not even imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from graphrag_pipeline.defs.runs.instance import dagster_home, open_instance
from graphrag_pipeline.defs.runs.names import SHOWN_STATE
from graphrag_pipeline.defs.runs.naming import full_name
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.inspection.index_state import AssetState, find_state
from graphrag_pipeline.pipeline.data_versions import stage_data_version
from graphrag_pipeline.pipeline.detected_input import input_versions
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES

if TYPE_CHECKING:
    import pyarrow as pa

_REPORTED = "graphrag_state_reported"
"""File in the Dagster home: a hash of the state at the last report of an index run, and of what was shown then."""


def report_changed_state(root: Root, manifests: Mapping[str, pa.Table]) -> None:
    """Report the checks of the state unless all is as the last index run reported it.

    Args:
        manifests: the present input folder, from `detect_input`.
    """
    marker = dagster_home(root) / full_name(root, _REPORTED)
    found = list(find_state(root, input_versions(manifests), manifests))
    if marker.exists() and marker.read_text(encoding="utf-8") == _hash_state(root, found):
        return
    from graphrag_pipeline.defs.assets.state_checks import report_found

    with open_instance(root) as instance:
        report_found(instance, root, found)
    files.replace(marker, _hash_state(root, found).encode())


def _hash_state(root: Root, found: Sequence[AssetState]) -> str:
    made = [
        stage_data_version(root, stage, key) or ""
        for stage in ALL_STAGES.values()
        for key in stage.partitions(root.settings)
    ]
    shown = dagster_home(root) / full_name(root, SHOWN_STATE)  # an observation may have shown another state since
    return stable_hash(*map(repr, found), *made, files.content_hash(shown.read_bytes() if shown.exists() else b""))
