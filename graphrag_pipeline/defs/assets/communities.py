"""Bodies of the stages in the group `communities`: communities and their reports.

Keep out: loops, parsing, files, networks.
"""

from functools import partial
from typing import TYPE_CHECKING

from graphrag_pipeline.defs.assets.pages import metadata
from graphrag_pipeline.defs.assets.stage_run import StageRun

if TYPE_CHECKING:
    from graphrag_pipeline.indexing.communities.stable import PublishedGraph


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

    reporter = run.root.reporter()
    reports = report_communities(
        run.read("communities"),
        run.read("entities"),
        run.read("relationships"),
        run.read("covariates"),
        run.read("descriptions"),
        run.settings.reports,
        partial(reporter.write, progress=run.progress()),
        EarlierReports(run.known("community_reports"), run.code_behind("descriptions"), not run.is_reclustering),
        partial(count_tokens_each, encoding=run.settings.text_units.encoding),
    )
    run.count_problems(reporter.problems)
    run.count_tokens("reports", with_full_content(reports)["full_content"])
    run.write(reporter.failures, community_reports=reports)
