"""The assets' bodies, one sentence each: read these tables, call that step, write the result.

`build_assets` makes Dagster assets of them. Add an asset by adding its stage to `stages.py` and its sentence here.
Keep out: loops, parsing, files, networks.
"""

from functools import partial

import pyarrow as pa

from graphrag_pipeline.defs import metadata
from graphrag_pipeline.defs.stage_run import StageRun, stage_body
from graphrag_pipeline.tables import STAGE_TABLES, VECTOR_TABLES


@stage_body("corpus_manifest")
def corpus_manifest(run: StageRun) -> None:
    from graphrag_pipeline.indexing.documents import build_corpus_manifest, refuse_lost_converters
    from graphrag_pipeline.staleness import INPUT, input_version

    manifest = build_corpus_manifest(run.root.read_input({run.partition}))
    refuse_lost_converters(manifest, run.previous("corpus_manifest"))
    run.add_input(INPUT, input_version(manifest))
    run.details |= metadata.of_problems(manifest)
    run.write(corpus_manifest=manifest)


@stage_body("documents")
def documents(run: StageRun) -> None:
    from graphrag_pipeline.indexing.documents import build_documents, match_manifest

    records = match_manifest(run.root.read_input({run.partition}), run.read("corpus_manifest"))
    tables = build_documents(records)
    run.count_tokens(tables["text"])
    run.write(documents=tables)


@stage_body("text_units")
def text_units(run: StageRun) -> None:
    from graphrag_pipeline.indexing.text_units import split_documents

    units = split_documents(run.read("documents"), run.settings.text_units)
    run.details |= metadata.of_tokens(units["n_tokens"])
    run.write(text_units=units)


@stage_body("extracted_graph")
def extracted_graph(run: StageRun) -> None:
    from graphrag_pipeline.indexing.extracted_graph import extract_graph

    units = run.read("text_units")
    run.details |= metadata.of_tokens(units["n_tokens"])
    run.write(**extract_graph(run.read("documents"), units, run.settings.extraction))


@stage_body("graph")
def graph(run: StageRun) -> None:
    from graphrag_pipeline.indexing.graph import merge_graph
    from graphrag_pipeline.indexing.overrides import find_unused, read_overrides
    from graphrag_pipeline.settings import OVERRIDES_FILE

    overrides = read_overrides(run.root.read_file(OVERRIDES_FILE))
    tables = merge_graph(
        run.scan("entity_mentions"),
        run.scan("relationship_mentions"),
        run.scan("claim_mentions"),
        run.settings.graph,
        overrides=overrides,
    )
    run.details["overrides without effect"] = find_unused(overrides, tables["entities"])
    run.details |= metadata.of_degrees(tables["entities"])
    run.count_tokens(tables["entities"]["title"])
    run.write(**tables)


@stage_body("summarized_descriptions")
def summarized_descriptions(run: StageRun) -> None:
    from graphrag_pipeline.indexing.summarized_descriptions import summarize_descriptions

    descriptions = summarize_descriptions(
        run.read("entities"),
        run.read("relationships"),
        run.settings.descriptions,
        run.root.embedder,
        known=run.known("descriptions"),
    )
    run.details |= metadata.of_descriptions(descriptions)
    run.count_tokens(descriptions["description"])
    run.write(descriptions=descriptions)


@stage_body("communities")
def communities(run: StageRun) -> None:
    from graphrag_pipeline.indexing.communities import detect_communities

    found = detect_communities(run.read("entities"), run.read("relationships"), run.settings.communities)
    run.details |= metadata.of_community_sizes(found)
    run.write(communities=found)


@stage_body("community_reports")
def community_reports(run: StageRun) -> None:
    from graphrag_pipeline.indexing.community_reports import report_communities
    from graphrag_pipeline.indexing.contract_tables import with_full_content
    from graphrag_pipeline.tokens import count_tokens_each

    reports = report_communities(
        run.read("communities"),
        run.read("entities"),
        run.read("relationships"),
        run.read("covariates"),
        run.read("descriptions"),
        run.settings.reports,
        run.root.embedder,
        known=run.known("community_reports"),
        count_tokens=partial(count_tokens_each, encoding=run.settings.text_units.encoding),
    )
    run.count_tokens(with_full_content(reports)["full_content"])
    run.write(community_reports=reports)


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
    from graphrag_pipeline.indexing.contract_tables import with_descriptions

    _embed(run, "default-entity-description", with_descriptions(run.read("entities"), run.read("descriptions")))


@stage_body("relationship_embeddings")
def relationship_embeddings(run: StageRun) -> None:
    from graphrag_pipeline.indexing.contract_tables import with_descriptions

    relationships = with_descriptions(run.read("relationships"), run.read("descriptions"))
    _embed(run, "default-relationship-description", relationships)


@stage_body("report_embeddings")
def report_embeddings(run: StageRun) -> None:
    from graphrag_pipeline.indexing.contract_tables import with_full_content

    _embed(run, "default-community-full_content", with_full_content(run.read("community_reports")))


def _embed(run: StageRun, vector_table: str, rows: pa.Table) -> None:
    from graphrag_pipeline.indexing.embeddings import embed_texts, embedded_texts

    name = VECTOR_TABLES[vector_table][1]
    texts = embedded_texts(vector_table, rows)
    run.count_tokens(texts)
    run.write(**{name: embed_texts(texts, STAGE_TABLES[name], run.root.embedder, known=run.known(name))})


@stage_body("index_candidate")
def index_candidate(run: StageRun) -> None:
    from graphrag_pipeline.indexing.contract_tables import JOINED_TABLES, join_contract_tables
    from graphrag_pipeline.indexing.embeddings import look_up_all_vectors
    from graphrag_pipeline.storage.candidates import freeze_candidate
    from graphrag_pipeline.tokens import count_tokens_each

    previous = run.root.snapshots.current_manifest()
    numbers = run.root.snapshots.record_numbers(previous)
    count_tokens = partial(count_tokens_each, encoding=run.settings.text_units.encoding)
    tables = join_contract_tables({name: run.read(name) for name in JOINED_TABLES}, numbers, count_tokens)
    vectors = look_up_all_vectors(tables, run.read, run.root.embedder.dimensions)
    snapshot_id = freeze_candidate(
        run.root.snapshots,
        tables,
        vectors,
        run.root.embedder.fingerprint,
        sentences=run.read("sentence_embeddings"),
        heads=run.pinned,
        previous=previous,
    )
    run.details |= metadata.of_contract(snapshot_id, tables)
    run.write_candidate(snapshot_id)


@stage_body("index_snapshot")
def index_snapshot(run: StageRun) -> None:
    from graphrag_pipeline.stages import CANDIDATE
    from graphrag_pipeline.storage.candidates import publish

    candidate = run.root.tables.need(CANDIDATE.name)
    publish(run.root.snapshots, candidate.data_version)
    run.details["snapshot"] = candidate.data_version
