"""Query jobs, one per search method: its steps as visible ops, run from the Launchpad; the answer shows as markdown.

The configuration of a job is flat (`question_config.py`) and goes to the first op, which records an observation of
`index_snapshot`, so that lineage shows which index answered. The job of `auto` holds the ops of all methods and runs
those of the one it picks. Keep out: how a method searches, and what an op does (`query_ops.py`).
"""

from typing import Any

import dagster as dg

from graphrag_pipeline.defs.jobs.query_ops import (
    build_answering_op,
    build_choosing_op,
    build_opening_op,
    build_step_op,
    method_output,
    opening_op_name,
    pin_question,
)
from graphrag_pipeline.defs.jobs.question_config import question_config
from graphrag_pipeline.defs.runs.executor import job_options
from graphrag_pipeline.defs.runs.names import ASK, KIND_TAG, SEARCH_JOB
from graphrag_pipeline.defs.runs.naming import full_name
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.query.methods.method import SearchMethod, SearchStep
from graphrag_pipeline.query.methods.registry import METHODS
from graphrag_pipeline.settings.search_names import CHOOSABLE_METHODS

_ALIASES = {"local": "answer_locally", "basic": "answer_basically"}
"""Names in the job of `auto` of a step that several methods share, as run histories know them."""


def _build_ops() -> dict[str, dg.OpDefinition]:
    """Build the op of each step, once for steps that methods share."""
    ops: dict[str, dg.OpDefinition] = {}
    for name in CHOOSABLE_METHODS:
        *steps, last = METHODS[name].steps
        ops |= {step.name: build_step_op(step) for step in steps if step.name not in ops}
        ops.setdefault(last.name, build_answering_op(last))
    return ops


_OPENING = {method.name: build_opening_op(method) for method in METHODS.values()}
_OPS = _build_ops()
_CHOOSING = build_choosing_op(METHODS["auto"].steps[0])


def _chain(steps: tuple[SearchStep, ...], state: Any, alias: str = "") -> None:
    """Compose the ops of steps in a row.

    Args:
        alias: of the last op.
    """
    *others, last = steps
    for step in others:
        state = _OPS[step.name](state)
    answering = _OPS[last.name].alias(alias) if alias else _OPS[last.name]
    answering(state)


def _chain_chosen(method: SearchMethod, state: Any) -> None:
    """Compose the ops of all methods behind the op that picks one of them."""
    chosen = _CHOOSING(state)
    names = [METHODS[name].steps[-1].name for name in CHOOSABLE_METHODS]
    for name in CHOOSABLE_METHODS:
        last = METHODS[name].steps[-1].name
        alias = _ALIASES.get(name, f"{last}_{name}") if names.count(last) > 1 else ""
        _chain(METHODS[name].steps, getattr(chosen, method_output(name)), alias)


def build_query_jobs(root: Root) -> list[dg.JobDefinition]:
    """Build the jobs of a root, one for each method."""
    return [_build_job(root, method) for method in METHODS.values()]


def _map_question(root: Root, method: SearchMethod) -> dg.ConfigMapping:
    """Return the mapping of a job's configuration to that of its first op."""
    config_type = question_config(method, root.settings)

    @dg.config_mapping
    def hand_on(config: config_type) -> dg.RunConfig:  # type: ignore[valid-type]
        return dg.RunConfig(ops={opening_op_name(method): pin_question(config)})

    return hand_on


def _build_job(root: Root, method: SearchMethod) -> dg.JobDefinition:
    """Build a method's job; the Launchpad shows a question to replace."""

    @dg.job(
        name=full_name(root, f"{method.name}{SEARCH_JOB}"),
        description=method.description,
        config=_map_question(root, method),
        tags={KIND_TAG: ASK},
        **job_options(root),
    )
    def job() -> None:
        state = _OPENING[method.name]()
        if method.name in CHOOSABLE_METHODS:
            _chain(method.steps, state)
        else:
            _chain_chosen(method, state)

    return job
