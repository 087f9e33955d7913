"""The job `verify_files`: every immutable file against its hash, and repairs, as the command `verify --repair` does."""

from typing import Any

import dagster as dg

from graphrag_pipeline.defs.assets.pages.metadata import as_table
from graphrag_pipeline.defs.runs.executor import job_options
from graphrag_pipeline.defs.runs.names import INSPECT, KIND_TAG, VERIFY_FILES
from graphrag_pipeline.defs.runs.naming import full_name
from graphrag_pipeline.defs.runs.resources import IndexRoot
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.verification import Verification, verify_root

_MAX_CELL = 400  # characters


@dg.op(description="Compare every file of the index with its hash, and repair what is damaged.")
def verify_all_files(context: dg.OpExecutionContext, index_root: IndexRoot) -> None:
    found = verify_root(index_root.open(), is_repairing=True)
    context.add_output_metadata(describe_verification(found))
    if not found.is_whole:
        lost = [finding for finding in found.findings if not finding.is_repaired]
        raise dg.Failure(f"{lost[0].path} is damaged: {lost[0].outcome}", describe_verification(found))


def describe_verification(found: Verification) -> dict[str, Any]:
    """Return counts and the damaged files as metadata of an op's output."""
    rows = [(finding.path, finding.kind, finding.outcome) for finding in found.findings]
    listed = as_table(("file", "kind", "what was done"), rows, _MAX_CELL) if rows else "no file is damaged"
    return {
        "files and folders": found.n_parts,
        "bytes": found.n_bytes,
        "damaged": len(rows),
        "damaged files": dg.MetadataValue.md(listed),
    }


def build_verify_files(root: Root) -> dg.JobDefinition:
    """Build the job of a root."""

    @dg.job(
        name=full_name(root, VERIFY_FILES),
        description="Compares every file of the index with its hash, and repairs damaged ones.",
        tags={KIND_TAG: INSPECT},
        **job_options(root),
    )
    def verify_files() -> None:
        verify_all_files()

    return verify_files
