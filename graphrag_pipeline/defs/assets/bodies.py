"""The assets' bodies, one sentence each: read these tables, call that step, write the result.

`build_assets` makes Dagster assets of them. Add an asset by adding its stage to `stages.py` and its sentence here.
Keep out: loops, parsing, files, networks.
"""

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from graphrag_pipeline.defs.assets import metadata
from graphrag_pipeline.defs.assets.stage_run import StageRun, stage_body
from graphrag_pipeline.models.ports import Failure
from graphrag_pipeline.tables import STAGE_TABLES, VECTOR_TABLES

if TYPE_CHECKING:
    from graphrag_pipeline.indexing.communities.stable import PublishedGraph
    from graphrag_pipeline.indexing.graph.resolution import Merge
    from graphrag_pipeline.indexing.model_stages import ModelWriter, Summarize
    from graphrag_pipeline.indexing.reports.community_reports import Writer
    from graphrag_pipeline.storage.manifests import Manifest


@stage_body("corpus_manifest")
def corpus_manifest(run: StageRun) -> None:
    from graphrag_pipeline.inputs.documents import build_corpus_manifest, refuse_lost_converters
    from graphrag_pipeline.pipeline.staleness import INPUT, input_version

    manifest = build_corpus_manifest(run.root.read_input({run.partition}))
    refuse_lost_converters(manifest, run.previous("corpus_manifest"))
    run.add_input(INPUT, input_version(manifest))
    run.details |= metadata.of_problems(manifest)
    run.write(corpus_manifest=manifest)


@stage_body("documents")
def documents(run: StageRun) -> None:
    from graphrag_pipeline.inputs.documents import build_documents, match_manifest

    records = match_manifest(run.root.read_input({run.partition}), run.read("corpus_manifest"))
    tables = build_documents(records)
    run.count_tokens(tables["text"])
    run.write(documents=tables)


@stage_body("text_units")
def text_units(run: StageRun) -> None:
    from graphrag_pipeline.indexing.aggregation_report import report_aggregation
    from graphrag_pipeline.indexing.text_units import split_documents

    documents, settings = run.read("documents"), run.settings
    units = split_documents(documents, settings.text_units)
    run.details |= metadata.of_tokens(units["n_tokens"])
    run.details |= report_aggregation(
        documents, units, settings.embedding_model, run.root.static_embedder, settings.text_units.encoding
    )
    run.write(text_units=units)


@stage_body("extracted_graph")
def extracted_graph(run: StageRun) -> None:
    units = run.read("text_units")
    run.details |= metadata.of_tokens(units["n_tokens"])
    extract = _extract_by_model if run.asks_model else _extract_by_rule
    extract(run, units)


def _extract_by_rule(run: StageRun, units: pa.Table) -> None:
    from graphrag_pipeline.indexing.extraction.unchanged_documents import extract_changed_documents

    run.write(**extract_changed_documents(run.read("documents"), units, run.settings.extraction, run.earlier()))


def _extract_by_model(run: StageRun, units: pa.Table) -> None:
    from graphrag_pipeline.defs.index_runs.call_pool import take_mentions
    from graphrag_pipeline.indexing.model_stages import collect_extracted, extract_text_units, extraction_works
    from graphrag_pipeline.pipeline.plans import is_extraction_proven, plan_extraction

    results = take_mentions(run.root, run.partition, units["id"].to_pylist())
    if results is None:
        plan = plan_extraction(run.root)
        works = extraction_works(units, plan, run.chat_model)
        is_proven = is_extraction_proven(run.root)
        results = extract_text_units(works, plan, run.chat_model, run.model_name, run.progress(), is_proven)
    found = collect_extracted(results)
    run.details |= metadata.of_counts("types outside the list", found.outside_types)
    run.details |= metadata.of_counts("records mended or left out", found.problems)
    run.write(found.failures, **found.tables)


@stage_body("graph")
def graph(run: StageRun) -> None:
    from graphrag_pipeline.indexing.graph.merge import merge_graph
    from graphrag_pipeline.indexing.graph.overrides import find_unused, read_overrides
    from graphrag_pipeline.settings.settings import OVERRIDES_FILE

    overrides = read_overrides(run.root.read_file(OVERRIDES_FILE))
    merge = partial(
        merge_graph,
        run.scan("entity_mentions"),
        run.scan("relationship_mentions"),
        run.scan("claim_mentions"),
        run.settings.graph,
        overrides=overrides,
    )
    tables = merge()
    failures: list[Failure] = []
    if run.settings.resolution.is_semantic:
        proposals, failures = _propose_by_meaning(run, tables)
        tables = merge(proposals=proposals) if proposals else tables
    run.details["overrides without effect"] = find_unused(overrides, tables["entities"])
    run.details |= metadata.of_degrees(tables["entities"])
    run.count_tokens(tables["entities"]["title"])
    run.write(failures, **tables)


def _propose_by_meaning(run: StageRun, tables: dict[str, pa.Table]) -> "tuple[list[Merge], list[Failure]]":
    from graphrag_pipeline.pipeline.plans import propose_by_meaning

    asked = run.chat_model if run.asks_model else None
    return propose_by_meaning(run.root, tables["entities"], tables["relationships"], asked, run.progress())


@stage_body("summarized_descriptions")
def summarized_descriptions(run: StageRun) -> None:
    from graphrag_pipeline.indexing.graph.summarized_descriptions import summarize_descriptions

    summarize = partial(summarize_descriptions, settings=run.settings.descriptions, embedder=run.root.static_embedder)
    known = run.known("descriptions")
    failures: list[Failure] = []
    if run.asks_model:
        descriptions, failures = _summarize_by_model(run, summarize, known)
    else:
        descriptions = summarize(run.read("entities"), run.read("relationships"), known=known)
    run.details |= metadata.of_descriptions(descriptions)
    run.count_tokens(descriptions["description"])
    run.write(failures, descriptions=descriptions)


def _summarize_by_model(
    run: StageRun, fall_back: "Summarize", known: pa.Table | None
) -> tuple[pa.Table, list[Failure]]:
    from graphrag_pipeline.indexing.model_stages import summarize_descriptions_by_model
    from graphrag_pipeline.pipeline.plans import plan_summaries

    return summarize_descriptions_by_model(
        run.read("entities"),
        run.read("relationships"),
        plan_summaries(run.root),
        run.chat_model,
        fall_back,
        known,
        run.progress(),
    )


@stage_body("communities")
def communities(run: StageRun) -> None:
    from graphrag_pipeline.indexing.communities.detection import detect_communities

    published = _published_graph(run)
    found = detect_communities(
        run.read("entities"), run.read("relationships"), run.settings.communities, published, run.log
    )
    run.details |= metadata.of_community_sizes(found)
    run.details |= metadata.of_kept_communities(found, published.communities if published else None)
    run.write(communities=found)


def _published_graph(run: StageRun) -> "PublishedGraph | None":
    from graphrag_pipeline.indexing.communities.stable import PublishedGraph

    tables = None if run.is_reclustering else run.published("entities", "relationships", "communities")
    return PublishedGraph(*tables) if tables else None


@stage_body("community_reports")
def community_reports(run: StageRun) -> None:
    from graphrag_pipeline.indexing.reports.community_reports import report_communities
    from graphrag_pipeline.indexing.reports.evidence import EarlierReports
    from graphrag_pipeline.publishing.contract_tables import with_full_content
    from graphrag_pipeline.text.tokens import count_tokens_each

    writer = _model_writer(run) if run.asks_model else None
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
    run.details |= metadata.of_lag(reports)
    if writer:
        run.details |= metadata.of_counts("records mended or left out", writer.problems)
    run.count_tokens(with_full_content(reports)["full_content"])
    run.write(writer.failures if writer else [], community_reports=reports)


def _extractive_writer(run: StageRun) -> "Writer":
    from graphrag_pipeline.indexing.reports.extractive import write_reports

    return partial(write_reports, settings=run.settings.reports, embedder=run.root.static_embedder)


def _model_writer(run: StageRun) -> "ModelWriter":
    from graphrag_pipeline.indexing.model_stages import ModelWriter
    from graphrag_pipeline.pipeline.plans import plan_reports

    least = run.settings.reports.min_report_size
    return ModelWriter(plan_reports(run.root), run.chat_model, least, _extractive_writer(run), run.progress())


@stage_body("sentence_embeddings")
def sentence_embeddings(run: StageRun) -> None:
    from graphrag_pipeline.indexing.sentence_embeddings import embed_sentences
    from graphrag_pipeline.models.static_embeddings import load_static_embeddings

    units = run.read("text_units")
    run.details |= metadata.of_tokens(units["n_tokens"])
    run.write(sentence_embeddings=embed_sentences(units, load_static_embeddings()))


@stage_body("text_unit_embeddings")
def text_unit_embeddings(run: StageRun) -> None:
    _embed(run, "default-text_unit-text", run.read("text_units"))


@stage_body("entity_embeddings")
def entity_embeddings(run: StageRun) -> None:
    from graphrag_pipeline.publishing.contract_tables import with_descriptions

    _embed(run, "default-entity-description", with_descriptions(run.read("entities"), run.read("descriptions")))


@stage_body("relationship_embeddings")
def relationship_embeddings(run: StageRun) -> None:
    from graphrag_pipeline.publishing.contract_tables import with_descriptions

    rows = with_descriptions(run.read("relationships"), run.read("descriptions"))
    _embed(run, "default-relationship-description", rows.select(["source", "target", "description"]))


@stage_body("report_embeddings")
def report_embeddings(run: StageRun) -> None:
    from graphrag_pipeline.publishing.contract_tables import with_full_content

    _embed(run, "default-community-full_content", with_full_content(run.read("community_reports")))


def _embed(run: StageRun, vector_table: str, rows: pa.Table) -> None:
    from graphrag_pipeline.indexing.embeddings import embed_texts, embedded_texts

    name = VECTOR_TABLES[vector_table][1]
    texts = embedded_texts(vector_table, rows)
    run.count_tokens(texts)
    rows, failures = embed_texts(texts, STAGE_TABLES[name], run.root.embedder, run.known(name), run.progress())
    run.write(failures, **{name: rows})


@stage_body("index_candidate")
def index_candidate(run: StageRun) -> None:
    from graphrag_pipeline.indexing.embeddings import look_up_all_vectors
    from graphrag_pipeline.publishing.candidates import freeze_candidate
    from graphrag_pipeline.publishing.contract_tables import JOINED_TABLES, join_contract_tables
    from graphrag_pipeline.text.tokens import count_tokens_each

    last = run.root.tables.head(run.stage.name)
    previous = run.root.snapshots.last_manifest(last.data_version if last else None)
    numbers = _carried_numbers(run, previous)
    count_tokens = partial(count_tokens_each, encoding=run.settings.text_units.encoding)
    tables = join_contract_tables({name: run.read(name) for name in JOINED_TABLES}, numbers, count_tokens)
    run.details |= metadata.of_contract(tables)
    vectors = look_up_all_vectors(tables, run.scan, run.root.embedder.dimensions)
    snapshot_id = freeze_candidate(
        run.root.snapshots,
        tables,
        vectors,
        run.root.embedder.fingerprint,
        sentences=run.read("sentence_embeddings"),
        heads=run.pinned,
        previous=previous,
        code=run.pinned_code,
    )
    run.details["snapshot"] = snapshot_id
    run.write_candidate(snapshot_id)


def _carried_numbers(run: StageRun, previous: "Manifest | None") -> pa.Table | None:
    from graphrag_pipeline.indexing.communities.numbers import carry_community_numbers

    numbers = run.root.snapshots.record_numbers(previous)
    old = run.root.snapshots.whole_table(previous, "communities")
    return numbers if numbers is None or old is None else carry_community_numbers(numbers, old, run.read("communities"))


@stage_body("index_snapshot")
def index_snapshot(run: StageRun) -> None:
    from graphrag_pipeline.defs.assets.published import of_snapshot, open_published
    from graphrag_pipeline.defs.index_runs.costs import paid_by_run
    from graphrag_pipeline.evaluation.regression_gate import check_golden_questions
    from graphrag_pipeline.pipeline.stages import CANDIDATE
    from graphrag_pipeline.publishing.candidates import publish

    candidate = run.root.tables.need(CANDIDATE.name).data_version
    pinned = run.root.snapshots.pinned()
    if pinned not in (None, candidate):
        run.log(f"candidate {candidate} waits: snapshot {pinned} is pinned until `graphrag-pipeline snapshots unpin`")
        run.details |= {"snapshot": pinned, "waiting for unpin": candidate}
        run.is_waiting = True
        return
    run.details |= check_golden_questions(run.root, candidate)
    before = open_published(run.root)
    publish(run.root.snapshots, candidate, run.settings.publishing)
    run.details |= of_snapshot(run.root, candidate, before) | metadata.of_calls(paid_by_run())
