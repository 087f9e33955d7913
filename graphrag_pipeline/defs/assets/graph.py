"""Bodies of the stages in the group `graph`: extraction, merging, descriptions.

Keep out: loops, parsing, files, networks.
"""

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from graphrag_pipeline.defs.assets.pages import metadata
from graphrag_pipeline.defs.assets.stage_run import StageRun
from graphrag_pipeline.models.ports import Failure

if TYPE_CHECKING:
    from graphrag_pipeline.indexing.graph.resolution import Merge
    from graphrag_pipeline.indexing.model_stages import Summarize


def extracted_graph(run: StageRun) -> None:
    units = run.read("text_units")
    run.details |= metadata.of_tokens("text units", units["n_tokens"])
    extract = _extract_by_model if run.uses_chat_model else _extract_by_rule
    extract(run, units)


def _extract_by_rule(run: StageRun, units: pa.Table) -> None:
    from graphrag_pipeline.engines.embedded.unchanged_documents import extract_changed_documents

    run.write(**extract_changed_documents(run.read("documents"), units, run.settings.extraction, run.earlier()))


def _extract_by_model(run: StageRun, units: pa.Table) -> None:
    from graphrag_pipeline.indexing.model_stages import collect_extracted, extract_text_units, extraction_works
    from graphrag_pipeline.pipeline.plans import is_extraction_proven, plan_extraction

    results = run.session.pooled.take_mentions(run.partition, units["id"].to_pylist())
    if results is None:
        plan = plan_extraction(run.root)
        works = extraction_works(units, plan, run.chat_model)
        is_proven = is_extraction_proven(run.root)
        results = extract_text_units(works, plan, run.chat_model, run.model_name, run.progress(), is_proven)
    found = collect_extracted(results)
    run.details |= metadata.of_counts("types outside the list", found.outside_types)
    run.count_problems(found.problems)
    run.write(found.failures, **found.tables)


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
    from graphrag_pipeline.pipeline.plans import propose_by_meaning

    model = run.chat_model if run.uses_chat_model else None
    return propose_by_meaning(run.root, tables["entities"], tables["relationships"], model, run.progress())


def summarized_descriptions(run: StageRun) -> None:
    from graphrag_pipeline.indexing.graph.summarized_descriptions import summarize_descriptions

    summarize = partial(summarize_descriptions, settings=run.settings.descriptions, embedder=run.root.static_embedder)
    known = run.known("descriptions")
    failures: list[Failure] = []
    if run.uses_chat_model:
        descriptions, failures = _summarize_by_model(run, summarize, known)
    else:
        descriptions = summarize(run.read("entities"), run.read("relationships"), known=known)
    run.count_tokens("descriptions", descriptions["description"])
    run.write(failures, descriptions=descriptions)


def _summarize_by_model(
    run: StageRun, fall_back: "Summarize", known: pa.Table | None
) -> tuple[pa.Table, list[Failure]]:
    from graphrag_pipeline.indexing.model_stages import summarize_descriptions_by_model
    from graphrag_pipeline.pipeline.plans import plan_summaries

    problems: Counter[str] = Counter()
    if known is None:  # a summary that was paid for stays, so that reports on it stay, too
        known = run.paid("descriptions", "descriptions.max_joined")
    made = summarize_descriptions_by_model(
        run.read("entities"),
        run.read("relationships"),
        plan_summaries(run.root),
        run.chat_model,
        fall_back,
        known,
        run.progress(),
        problems,
    )
    run.count_problems(+problems)
    return made
