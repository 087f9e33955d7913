"""Bodies of the stages in the group `communities`: communities and their reports.

Keep out: loops, parsing, files, networks.
"""

from functools import partial
from typing import TYPE_CHECKING

from graphrag_pipeline.defs.assets.pages import metadata
from graphrag_pipeline.defs.assets.stage_run import StageRun

if TYPE_CHECKING:
    from graphrag_pipeline.indexing.communities.stable import PublishedGraph
    from graphrag_pipeline.indexing.model_stages import ModelWriter
    from graphrag_pipeline.indexing.reports.community_reports import Writer


def communities(run: StageRun) -> None:
    from graphrag_pipeline.indexing.communities.detection import detect_communities

    published = _published_graph(run)
    found = detect_communities(
        run.read("entities"), run.read("relationships"), run.settings.communities, published, run.log
    )
    run.details |= metadata.of_kept_communities(found, published.communities if published else None)
    run.write(communities=found)


def _published_graph(run: StageRun) -> "PublishedGraph | None":
    from graphrag_pipeline.indexing.communities.stable import PublishedGraph

    tables = None if run.is_reclustering else run.published("entities", "relationships", "communities")
    return PublishedGraph(*tables) if tables else None


def community_reports(run: StageRun) -> None:
    from graphrag_pipeline.indexing.reports.community_reports import report_communities
    from graphrag_pipeline.indexing.reports.evidence import EarlierReports
    from graphrag_pipeline.publishing.contract_tables import with_full_content
    from graphrag_pipeline.text.tokens import count_tokens_each

    writer = _model_writer(run) if run.uses_chat_model else None
    reports = report_communities(
        run.read("communities"),
        run.read("entities"),
        run.read("relationships"),
        run.read("covariates"),
        run.read("descriptions"),
        run.settings.reports,
        writer or _extractive_writer(run),
        EarlierReports(run.known("community_reports"), run.code_behind("descriptions"), not run.is_reclustering),
        partial(count_tokens_each, encoding=run.settings.text_units.encoding),
    )
    if writer:
        run.count_problems(writer.problems)
    run.count_tokens("reports", with_full_content(reports)["full_content"])
    run.write(writer.failures if writer else [], community_reports=reports)


def _extractive_writer(run: StageRun) -> "Writer":
    from graphrag_pipeline.indexing.reports.extractive import write_reports

    return partial(write_reports, settings=run.settings.reports, embedder=run.root.static_embedder)


def _model_writer(run: StageRun) -> "ModelWriter":
    from graphrag_pipeline.indexing.model_stages import ModelWriter
    from graphrag_pipeline.pipeline.plans import plan_reports

    least = run.settings.reports.min_report_size
    return ModelWriter(plan_reports(run.root), run.chat_model, least, _extractive_writer(run), run.progress())
