"""The job `evaluation_job`: recall on gold questions as a table and as numbers that plot over runs.

Keep out: how recall is measured (`evaluation/`), and comparisons by a model, which cost money: the command line runs
them.
"""

from typing import Any

import dagster as dg
from pydantic import Field

from graphrag_pipeline.defs.assets.metadata import as_table
from graphrag_pipeline.defs.runs.resources import IndexRoot
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.figures_store import name_retrieval, save_retrieval
from graphrag_pipeline.evaluation.questions import read_gold
from graphrag_pipeline.evaluation.retrieval_figures import DEFAULT_METHODS, measure_retrieval, parse_methods
from graphrag_pipeline.pipeline.stages import SNAPSHOT
from graphrag_pipeline.query.index.graph_index import GraphIndex


class EvaluationConfig(dg.Config):
    """The measurement to run."""

    questions: str = Field(
        default="",
        description="JSONL or CSV file in the root: question, evidence; default: publishing.golden_questions.",
    )
    methods: list[str] = Field(
        default=list(DEFAULT_METHODS), description="Methods to measure, such as bm25, basic, local:graph."
    )
    k: int = Field(default=5, description="Number of text units in which evidence is looked for.")
    snapshot: str | None = Field(default=None, description="Snapshot id; default: the published snapshot.")


@dg.op(description="Search for the evidence of the gold questions by every method.")
def measure_gold_questions(context: dg.OpExecutionContext, config: EvaluationConfig, index_root: IndexRoot) -> None:
    root = index_root.open()
    name = config.questions or root.settings.publishing.golden_questions
    if not name:
        raise PipelineError("no questions: name a file in the config, or set `publishing.golden_questions`")
    questions = read_gold(root.path / name)
    with GraphIndex.open(root.path, config.snapshot) as index:
        figures, evidence = measure_retrieval(index, questions, parse_methods(config.methods), config.k)
        save_retrieval(root.path, index.snapshot.id, name_retrieval(questions, config.k, root.settings), figures)
        rows = ((row.method, f"{row.recall:.3f}", f"{row.all_evidence:.3f}") for row in figures)
        shown: dict[str, Any] = {
            "snapshot": index.snapshot.id,
            "questions": len(questions),
            "unknown evidence": len(evidence.unknown),
            "figures": dg.MetadataValue.md(as_table(("method", f"recall@{config.k}", "all evidence"), rows)),
            **{f"recall@{config.k} {row.method}": row.recall for row in figures},
        }
    context.add_output_metadata(shown)
    context.log_event(dg.AssetObservation(asset_key=SNAPSHOT.name, metadata=shown))


@dg.job(description="Recall on gold questions: baselines, and local search with every strategy.")
def evaluation_job() -> None:
    measure_gold_questions()
