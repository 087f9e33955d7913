"""The job `evaluation_job`: retrieval and answers on gold questions, as tables and as numbers that plot over runs.

Keep out: how they are measured (`evaluation/`), and pairwise comparisons by a model: the command line runs them.
"""

from typing import Any

import dagster as dg
from pydantic import Field

from graphrag_pipeline.defs.runs.executor import IndexRoot, job_options
from graphrag_pipeline.defs.runs.naming import EVALUATE, EVALUATION_JOB, KIND_TAG, asset_key, full_name
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.answer_figures import FIGURES
from graphrag_pipeline.evaluation.confidence import INTERVALS
from graphrag_pipeline.evaluation.measurement import Evaluation, Wanted, measure
from graphrag_pipeline.evaluation.questions import read_gold
from graphrag_pipeline.models.accounting import paid_run
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import SNAPSHOT
from graphrag_pipeline.query.index.graph_index import GraphIndex


class EvaluationConfig(dg.Config):
    """The measurement to run."""

    questions: str = Field(
        default="",
        description="JSONL or CSV file in the root: question, evidence, answer; default: publishing.golden_questions.",
    )
    methods: list[str] = Field(
        default=[],
        description="Methods to measure, such as bm25, basic, local:graph; default: retrieval by baselines and by "
        "local search with every strategy, answers by every search.",
    )
    k: int = Field(default=5, ge=1, description="Number of text units in which evidence is looked for.")
    snapshot: str | None = Field(default=None, description="Snapshot id; default: the published snapshot.")
    against: str | None = Field(default=None, description="Another snapshot or another method to compare with.")
    answers: bool | None = Field(
        default=None,
        description="Whether to compare answers with reference answers; default: yes, unless a model writes them.",
    )
    judge: bool | None = Field(
        default=None,
        description="Whether a model judges covered claims and faithfulness; default: yes if `answers` is true and a "
        "model is named.",
    )


@dg.op(description="Search for the evidence of the gold questions, and compare answers with reference answers.")
def measure_gold_questions(context: dg.OpExecutionContext, config: EvaluationConfig, index_root: IndexRoot) -> None:
    opened = index_root.open()
    name = config.questions or opened.settings.publishing.golden_questions
    if not name:
        raise PipelineError("no questions: name a file in the config, or set `publishing.golden_questions`")
    questions = read_gold(opened.path / name)
    wanted = Wanted(tuple(config.methods), config.k, config.answers, config.judge)
    with paid_run("evaluate", EVALUATION_JOB), GraphIndex.of_root(opened, config.snapshot) as index:
        found = measure(opened, index, questions, wanted, config.against, context.log.info)
    for line in (*found.list_failures(), *filter(None, [found.unmeasured])):
        context.log.warning(line)
    shown = {"questions": len(questions), **_show(found)}
    context.add_output_metadata(shown)
    context.log_event(dg.AssetObservation(asset_key(opened, SNAPSHOT.name), metadata=shown))


def _show(found: Evaluation) -> dict[str, Any]:
    """Return the tables of the command `evaluate` as text, and the means as numbers."""
    tables = "\n".join(["```", *found.render(), "```", "", INTERVALS])
    shown: dict[str, Any] = {
        "snapshot": found.snapshot,
        "unknown evidence": len(found.unknown_evidence),
        "figures": dg.MetadataValue.md(tables),
    }
    shown |= {f"recall@{found.k} {row.method}": row.recall for row in found.figures.retrieval}
    for answered in found.figures.answers:
        means = ((FIGURES[name], one.mean) for name, one in answered.estimates().items())
        shown |= {f"{name} {answered.method}": mean for name, mean in means if mean is not None}
    if found.figures.answers:
        shown["failed judgements"] = len(found.list_failures())
    return shown | ({"against": found.against} if found.against else {})


@dg.config_mapping
def _hand_on(config: EvaluationConfig) -> dg.RunConfig:
    """Give the configuration of the job to its op."""
    return dg.RunConfig(ops={"measure_gold_questions": config})


def build_evaluation_job(root: Root) -> dg.JobDefinition:
    """Build the job of a root."""

    @dg.job(
        name=full_name(root, EVALUATION_JOB),
        description="Retrieval and answers on gold questions: baselines, local search with every strategy, each "
        "search.",
        config=_hand_on,
        tags={KIND_TAG: EVALUATE},
        **job_options(root),
    )
    def evaluation_job() -> None:
        measure_gold_questions()

    return evaluation_job
