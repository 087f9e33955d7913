"""The resource and the executor of all jobs: the root to work on, and one process that holds the run's lock."""

from collections.abc import Iterator
from typing import Any

import dagster as dg
from pydantic import Field

from graphrag_pipeline.defs.runs.live import host_tags, working
from graphrag_pipeline.pipeline.root import Root, find_root


class LockedExecutor(dg.Executor):
    """Dagster's in-process executor, which holds the lock of its run."""

    def __init__(self, root: Root, inner: dg.Executor) -> None:
        self._root, self._inner = root, inner

    @property
    def retries(self) -> Any:
        """How steps are retried."""
        return self._inner.retries

    def execute(self, plan_context: Any, execution_plan: Any) -> Iterator[dg.DagsterEvent]:
        """Yield the events of the steps; tag the run with its host once its lock is held.

        The buckets of all its steps go into the shared store together.
        """
        with working(self._root, plan_context.run_id), self._root.collecting():
            plan_context.instance.add_run_tags(plan_context.run_id, host_tags())
            yield from self._inner.execute(plan_context, execution_plan)


def job_options(root: Root) -> dict[str, Any]:
    """Return the arguments of a root's jobs that bind them to it: the resource of their ops, and the executor.

    The resource has no configuration, so a Launchpad cannot point a job at another root.
    """
    bound = dg.ResourceDefinition.hardcoded_resource(IndexRoot.of(root))
    return {"resource_defs": {"index_root": bound}, "executor_def": build_executor(root)}


def build_executor(root: Root) -> dg.ExecutorDefinition:
    """Return an executor that uses one process, so that a step starts in milliseconds; model calls are concurrent."""
    inner: Any = dg.in_process_executor

    @dg.executor(name="in_process", config_schema=inner.config_schema)
    def in_process(context: dg.InitExecutorContext) -> LockedExecutor:
        return LockedExecutor(root, inner.executor_creation_fn(context))

    return in_process


class IndexRoot(dg.ConfigurableResource):
    """One project root.

    The root is opened at each use, so that settings and prompts are always those on disk.

    Attributes:
        path: the folder that holds settings.yaml.
        key_prefix: beginning of the keys of its assets.
    """

    path: str
    key_prefix: list[str] = Field(default=[])

    @classmethod
    def of(cls, root: Root) -> "IndexRoot":
        return cls(path=str(root.path), key_prefix=list(root.key_prefix))

    def open(self) -> Root:
        return Root(find_root(self.path), self.key_prefix)
