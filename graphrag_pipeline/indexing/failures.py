"""Failures as data: records for which the model of their stage gave no usable reply.

Each stage that can call a model owns a table of failures. The contract table `failures` joins these tables and adds the
number of records requested of the stage's model, so that readers can compute a share. Keep out: the replacement of a
failed record, and the share of failures that may be published.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.models.ports import Failure
from graphrag_pipeline.tables import CONTRACT_FAILURES, MODEL_STAGES, failures_table

FAILURE_TABLES = tuple(f"{stage}_failures" for stage in MODEL_STAGES)
_WRITTEN_TABLES = {"summarized_descriptions": "descriptions", "community_reports": "community_reports"}
"""Stage whose model writes only some rows -> table of the stage."""
_INPUT_TABLES = {
    "graph": "entities",
    "entity_embeddings": "entities",
    "relationship_embeddings": "relationships",
    "report_embeddings": "community_reports",
}
"""Other stage -> table whose rows are all requested of the model, where that is not `text_units`."""


def failure_rows(stage: str, failures: Iterable[Failure]) -> pa.Table:
    """Build the table of failures of a stage, one row per record and request."""
    distinct = {(failure.record, failure.request_key): failure for failure in failures}
    return failures_table(stage).from_rows(
        [
            {"record": record, "reason": failure.reason, "reply": failure.reply, "request_key": request_key}
            for (record, request_key), failure in distinct.items()
        ]
    )


def join_failures(stage: Mapping[str, pa.Table]) -> pa.Table:
    """Build the contract table `failures`.

    Args:
        stage: stage tables by name with all partitions in one table: the tables of failures and those that
            `contract_tables` joins.
    """
    parts = [CONTRACT_FAILURES.empty()]
    for name in MODEL_STAGES:
        failures = stage[f"{name}_failures"]
        if failures.num_rows:
            n_asked = pa.repeat(pa.scalar(_count_records(name, stage)), failures.num_rows)
            stages = pa.repeat(pa.scalar(name), failures.num_rows)
            columns = {"stage": stages, **{column: failures[column] for column in failures.schema.names}}
            parts.append(pa.table(columns | {"n_asked": n_asked}, CONTRACT_FAILURES.schema))
    return CONTRACT_FAILURES.sort(*parts)


def _count_records(name: str, stage: Mapping[str, pa.Table]) -> int:
    """Count the records requested of the model of a stage, failed or not."""
    if name in _WRITTEN_TABLES:
        return count_requested(stage[_WRITTEN_TABLES[name]])
    return stage[_INPUT_TABLES.get(name, "text_units")].num_rows


def count_requested(rows: pa.Table) -> int:
    """Count the rows of a stage's table that are requested of its model, failed or not.

    Short descriptions, and reports on small communities, are made without a call; they do not count.
    """
    if "request_key" not in rows.schema.names:
        return rows.num_rows
    return pc.sum(pc.or_(rows["is_fallback"], pc.is_valid(rows["request_key"]))).as_py() or 0
