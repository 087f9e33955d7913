"""Failures as data: the records that got no usable reply of their stage's model.

Each stage that may ask a model owns a table of them; the contract table `failures` is all of these together, beside how
many records the stage asked about, so that a share can be told. Keep out: what replaces a failed record, and how large
a share may be published.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.models.ports import Failure
from graphrag_pipeline.tables import CONTRACT_FAILURES, MODEL_STAGES, failures_table

FAILURE_TABLES = tuple(f"{stage}_failures" for stage in MODEL_STAGES)
_WRITTEN_TABLES = {"summarized_descriptions": "descriptions", "community_reports": "community_reports"}
"""Stage that writes only some of its rows by a model -> its table."""
_INPUT_TABLES = {
    "graph": "entities",
    "entity_embeddings": "entities",
    "relationship_embeddings": "relationships",
    "report_embeddings": "community_reports",
}
"""Other stage -> the table all of whose rows it asks about, where it is not `text_units`."""


def failure_rows(stage: str, failures: Iterable[Failure]) -> pa.Table:
    """The table of failures of a stage; one row per record and request."""
    distinct = {(failure.record, failure.request_key): failure for failure in failures}
    return failures_table(stage).from_rows(
        [
            {"record": record, "reason": failure.reason, "reply": failure.reply, "request_key": request_key}
            for (record, request_key), failure in distinct.items()
        ]
    )


def join_failures(stage: Mapping[str, pa.Table]) -> pa.Table:
    """The contract table `failures`.

    Args:
        stage: by name, all partitions in one, the tables of failures and what `contract_tables` joins.
    """
    parts = [CONTRACT_FAILURES.empty()]
    for name in MODEL_STAGES:
        failures = stage[f"{name}_failures"]
        if failures.num_rows:
            n_asked = pa.repeat(pa.scalar(_count_records(name, stage)), failures.num_rows)
            stages = pa.repeat(pa.scalar(name), failures.num_rows)
            columns = {"stage": stages, **{column: failures[column] for column in failures.schema.names}}
            parts.append(pa.table(columns | {"n_asked": n_asked}, CONTRACT_FAILURES.schema))
    return CONTRACT_FAILURES.sort(pa.concat_tables(parts))


def _count_records(name: str, stage: Mapping[str, pa.Table]) -> int:
    """Records that the model of a stage was asked about, failed or not."""
    if name in _WRITTEN_TABLES:
        return count_requested(stage[_WRITTEN_TABLES[name]])
    return stage[_INPUT_TABLES.get(name, "text_units")].num_rows


def count_requested(rows: pa.Table) -> int:
    """Rows of a stage's table that its model is asked about: all but what is taken over as it is.

    That is one description alone, and a community too small for a report of its own.
    """
    if "n_descriptions" in rows.schema.names:
        return pc.sum(pc.greater(rows["n_descriptions"], 1)).as_py() or 0
    if "is_verbatim" in rows.schema.names:
        return pc.sum(pc.invert(rows["is_verbatim"])).as_py() or 0
    return rows.num_rows
