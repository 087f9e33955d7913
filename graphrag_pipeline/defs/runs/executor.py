"""The executor of all jobs: every step in the process of the run, which holds the run's lock meanwhile."""

from collections.abc import Iterator

import dagster as dg
from dagster._core.definitions.executor_definition import IN_PROC_CONFIG
from dagster._core.execution.context.system import PlanOrchestrationContext
from dagster._core.execution.plan.plan import ExecutionPlan
from dagster._core.execution.retries import RetryMode
from dagster._core.executor.in_process import InProcessExecutor

from graphrag_pipeline.defs.runs.live import host_tags, working
from graphrag_pipeline.pipeline.root import Root


class LockedExecutor(InProcessExecutor):
    """Dagster's in-process executor, seen to be alive."""

    def __init__(self, root: Root, retries: RetryMode) -> None:
        super().__init__(retries)
        self._root = root

    def execute(
        self, plan_context: PlanOrchestrationContext, execution_plan: ExecutionPlan
    ) -> Iterator[dg.DagsterEvent]:
        """Events of the steps; the run is tagged with its host once its lock is held."""
        run_id = plan_context.run_id
        with working(self._root, run_id):
            plan_context.instance.add_run_tags(run_id, host_tags())
            yield from super().execute(plan_context, execution_plan)


def build_executor(root: Root) -> dg.ExecutorDefinition:
    """One process for all steps: a step costs milliseconds, not seconds; model calls are concurrent inside an asset."""

    @dg.executor(name="in_process", config_schema=IN_PROC_CONFIG)
    def in_process(context: dg.InitExecutorContext) -> LockedExecutor:
        return LockedExecutor(root, RetryMode.from_config(context.executor_config["retries"]))  # type: ignore[arg-type]

    return in_process
