"""The sensor that goes on with an index whose model calls are in batches, once all of them are over."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from graphrag_pipeline.defs.automation.sensors import why_busy
from graphrag_pipeline.defs.runs.executor import IndexRoot
from graphrag_pipeline.defs.runs.naming import BATCHES_TAG, INDEX_IN_BATCHES, full_name
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.endpoints.batching import BATCHED, find_under_way
from graphrag_pipeline.pipeline.root import Root

_LOOK_S = 60


def build_batch_sensors(root: Root, jobs: Sequence[Any]) -> list[dg.SensorDefinition]:
    """Return the sensor of a root that asks a model; else none.

    Args:
        jobs: all jobs of the root.
    """
    index_root = IndexRoot.of(root)
    name = full_name(root, INDEX_IN_BATCHES)
    job = next((job for job in jobs if job.name == name), None)
    if job is None:
        return []

    @dg.sensor(
        name=full_name(root, "batch_sensor"),
        job=job,
        minimum_interval_seconds=_LOOK_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Runs {INDEX_IN_BATCHES} again once the batches that its last run waits for are over.",
    )
    def batch_sensor(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        newest = context.instance.get_runs(dg.RunsFilter(job_name=name), limit=1)
        if not newest or BATCHES_TAG not in newest[0].tags:
            return dg.SkipReason(f"no run of {name} waits for a batch")
        opened = index_root.open()
        if busy := why_busy(context.instance, opened):
            return dg.SkipReason(busy)
        models = [opened.settings.model_for(section) for section in BATCHED]
        try:
            under_way = find_under_way(models, newest[0].tags[BATCHES_TAG].split())
        except PipelineError as error:
            return dg.SkipReason(str(error))
        if under_way:
            return dg.SkipReason(f"under way: {'; '.join(under_way.values())}")
        return dg.RunRequest(run_key=newest[0].run_id)

    return [batch_sensor]
