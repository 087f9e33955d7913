"""Bodies of the stages in the group `graph`: extraction, merging, descriptions.

Keep out: loops, parsing, files, networks.
"""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from graphrag_pipeline.defs.assets.pages import metadata
from graphrag_pipeline.defs.assets.stage_run import StageRun
from graphrag_pipeline.models.ports import Failure

if TYPE_CHECKING:
    from graphrag_pipeline.indexing.graph.resolution import Merge
    from graphrag_pipeline.indexing.ports import CallingExtractor, Extracted


def extracted_graph(run: StageRun) -> None:
    units = run.read("text_units")
    run.details |= metadata.of_tokens("text units", units["n_tokens"])
    found = _take_pooled(run, units)
    if found is None:
        earlier = None if run.uses_chat_model else run.earlier()  # the replies of a model are stored
        found = run.root.extractor().extract(run.read("documents"), units, earlier, run.progress())
    run.details |= metadata.of_counts("types outside the list", found.outside_types)
    run.count_problems(found.problems)
    run.write(found.failures, **found.tables)


def _take_pooled(run: StageRun, units: pa.Table) -> "Extracted | None":
    """Return the mentions of text units whose calls were sent ahead with those of other buckets."""
    ids = units["id"].to_pylist()
    results = run.session.pooled.take_mentions(run.partition, ids) if run.uses_chat_model else None
    return None if results is None else cast("CallingExtractor", run.root.extractor()).collect(results)


def graph(run: StageRun) -> None:
    from graphrag_pipeline.indexing.graph.merge import merge_graph
    from graphrag_pipeline.indexing.graph.overrides import find_unused, read_overrides
    from graphrag_pipeline.indexing.graph.titles import NamePolicy
    from graphrag_pipeline.settings.settings import OVERRIDES_FILE

    overrides = read_overrides(run.root.read_file(OVERRIDES_FILE))
    merge = partial(
        merge_graph,
        run.scan("entity_mentions"),
        run.scan("relationship_mentions"),
        run.scan("claim_mentions"),
        run.settings.graph,
        text_units=run.scan("text_units"),
    )
    policy = NamePolicy(overrides, rules=run.settings.resolution.applied_rules)
    tables = merge(policy=policy)
    failures: list[Failure] = []
    if run.settings.resolution.is_semantic:
        proposals, failures = _propose_by_meaning(run, tables)
        tables = merge(policy=replace(policy, proposals=proposals)) if proposals else tables
    unused = find_unused(overrides, tables["entities"])
    run.details["overrides without effect"] = len(unused)
    run.details |= metadata.of_lines("overrides without effect, each", unused)
    run.count_tokens("entity titles", tables["entities"]["title"])
    run.write(failures, **tables)


def _propose_by_meaning(run: StageRun, tables: dict[str, pa.Table]) -> "tuple[list[Merge], list[Failure]]":
    from graphrag_pipeline.indexing.graph.semantic_resolution import propose_by_meaning

    root = run.root
    model = run.chat_model if run.uses_chat_model else None
    prompt, settings = root.prompt("resolve_entities"), root.settings.resolution
    return propose_by_meaning(
        tables["entities"], tables["relationships"], root.embedder, settings, prompt, model, run.progress()
    )


def summarized_descriptions(run: StageRun) -> None:
    known = run.known("descriptions")
    if known is None and run.uses_chat_model:  # a summary that was paid for stays, so that reports on it stay, too
        known = run.paid("descriptions", "descriptions.max_joined")
    made = run.root.describer().describe(run.read("entities"), run.read("relationships"), known, run.progress())
    run.count_problems(made.problems)
    run.count_tokens("descriptions", made.descriptions["description"])
    run.write(made.failures, descriptions=made.descriptions)
