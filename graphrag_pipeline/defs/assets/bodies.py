"""The bodies of the stages. Keep out: loops, parsing, files, networks."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from graphrag_pipeline.defs.assets.pages import metadata
from graphrag_pipeline.defs.assets.stage_run import StageRun
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.ports import Failure
from graphrag_pipeline.tables import STAGE_TABLES, VECTOR_TABLES

if TYPE_CHECKING:
    from graphrag_pipeline.indexing.communities.stable import PublishedGraph
    from graphrag_pipeline.indexing.graph.resolution import Merge
    from graphrag_pipeline.indexing.ports import CallingExtractor, Extracted
    from graphrag_pipeline.storage.manifests import Manifest


def corpus_manifest(run: StageRun) -> None:
    from graphrag_pipeline.inputs.documents import build_corpus_manifest
    from graphrag_pipeline.pipeline.detected_input import INPUT, input_version

    detected = run.session.manifests.get(run.partition)
    manifest = build_corpus_manifest(run.read_input()) if detected is None else detected
    run.add_input(INPUT, input_version(manifest))
    run.write(corpus_manifest=manifest)


def documents(run: StageRun) -> None:
    from graphrag_pipeline.inputs.documents import build_documents, match_manifest

    records = match_manifest(run.read_input(), run.read("corpus_manifest"))
    tables = build_documents(records)
    run.write(documents=tables)


def text_units(run: StageRun) -> None:
    from graphrag_pipeline.indexing.aggregation_report import describe_aggregation, measure_aggregation
    from graphrag_pipeline.indexing.text_units import split_documents

    documents, settings = run.read("documents"), run.settings
    units = split_documents(documents, settings.text_units)
    run.details |= describe_aggregation(measure_aggregation(documents, units, settings.embedding_model))
    run.write(text_units=units)


def extracted_graph(run: StageRun) -> None:
    from graphrag_pipeline.indexing.document_entities import add_documents, without_documents

    documents, units = run.read("documents"), run.read("text_units")
    run.details |= metadata.of_tokens("text units", units["n_tokens"])
    found = _take_pooled(run, units)
    if found is None:
        earlier = None if run.uses_chat_model else run.earlier()  # the replies of a model are stored
        earlier = earlier and without_documents(earlier)
        found = run.root.extractor().extract(documents, units, earlier, run.progress())
    run.details |= metadata.of_counts("types outside the list", found.outside_types)
    run.count_problems(found.problems)
    settings = run.settings
    tables = add_documents(
        documents, units, found.tables, settings.input, names_documents=settings.extraction.document_entities
    )
    run.write(found.failures, **tables)


def _take_pooled(run: StageRun, units: pa.Table) -> "Extracted | None":
    """Return the mentions of text units whose calls were sent ahead with those of other buckets."""
    results = run.session.pooled.take_mentions(run.partition, units["id"].to_pylist())
    return None if results is None else cast("CallingExtractor", run.root.extractor()).collect(results)


def graph(run: StageRun) -> None:
    from graphrag_pipeline.indexing.graph.merge import merge_in_slices
    from graphrag_pipeline.indexing.graph.overrides import find_unused, read_overrides
    from graphrag_pipeline.indexing.graph.titles import NamePolicy
    from graphrag_pipeline.settings.settings import OVERRIDES_FILE

    overrides = read_overrides(run.root.read_file(OVERRIDES_FILE))
    merge = partial(
        merge_in_slices,
        run.scan("entity_mentions"),
        run.scan("relationship_mentions"),
        run.scan("claim_mentions"),
        run.settings.graph,
        text_units=run.scan("text_units"),
        n_threads=run.session.workers.n,
        folder=run.root.path / "cache",
    )
    policy = NamePolicy(overrides, rules=run.settings.resolution.applied_rules)
    failures: list[Failure] = []
    if run.settings.resolution.is_semantic:
        with merge(policy=policy) as tables:
            found = pa.concat_tables(tables["entities"]), pa.concat_tables(tables["relationships"])
        proposals, failures = _propose_by_meaning(run, *found)
        policy = replace(policy, proposals=proposals)
    with merge(policy=policy) as tables:
        run.write(failures, **tables)
    unused = find_unused(overrides, run.root.tables.dataset([run.root.tables.need("entities")]))
    run.details["overrides without effect"] = len(unused)
    run.details |= metadata.of_lines("overrides without effect, each", unused)


def _propose_by_meaning(
    run: StageRun, entities: pa.Table, relationships: pa.Table
) -> "tuple[list[Merge], list[Failure]]":
    from graphrag_pipeline.indexing.graph.semantic_resolution import propose_by_meaning

    root = run.root
    model = run.chat_model if run.uses_chat_model else None
    prompt, settings = root.prompt("resolve_entities"), root.settings.resolution
    return propose_by_meaning(entities, relationships, root.embedder, settings, prompt, model, run.progress())


def summarized_descriptions(run: StageRun) -> None:
    from graphrag_pipeline.indexing.parts import choose_part

    known = run.known("descriptions")
    if known is None and run.uses_chat_model:  # a summary that was paid for stays, so that reports on it stay, too
        known = run.paid("descriptions", "descriptions.max_joined")
    entities, relationships = (choose_part(run.read(name), *run.part) for name in ("entities", "relationships"))
    made = run.root.describer().describe(entities, relationships, known, run.progress())
    run.count_problems(made.problems)
    run.write(made.failures, descriptions=made.descriptions)


def communities(run: StageRun) -> None:
    from graphrag_pipeline.indexing.communities.detection import detect_communities

    published = _published_graph(run)
    entities, relationships = run.scan("entities").to_table(columns=["id"]), run.scan("relationships")
    found = detect_communities(entities, relationships, run.settings.communities, published, run.log)
    run.details |= metadata.of_kept_communities(found, published.communities if published else None)
    run.write(communities=found)


def _published_graph(run: StageRun) -> "PublishedGraph | None":
    from graphrag_pipeline.indexing.communities.stable import PublishedGraph

    tables = None if run.is_reclustering else run.published("entities", "relationships", "communities")
    return PublishedGraph(*tables) if tables else None


def community_reports(run: StageRun) -> None:
    from graphrag_pipeline.indexing.parts import choose_subtrees
    from graphrag_pipeline.indexing.reports.community_reports import report_communities
    from graphrag_pipeline.indexing.reports.evidence import EarlierReports
    from graphrag_pipeline.text.tokens import count_tokens_each

    reporter = run.root.reporter()
    reports = report_communities(
        choose_subtrees(run.read("communities"), *run.part),
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
    run.write(reporter.failures, community_reports=reports)


def sentence_embeddings(run: StageRun) -> None:
    from graphrag_pipeline.indexing.sentence_embeddings import embed_sentences

    units = run.read("text_units")
    run.details |= metadata.of_tokens("text units", units["n_tokens"])
    run.write(sentence_embeddings=embed_sentences(units, run.root.static_embedder))


def text_unit_embeddings(run: StageRun) -> None:
    from graphrag_pipeline.indexing.aggregation_report import choose_sample
    from graphrag_pipeline.indexing.embeddings import embedded_unit_texts

    units = run.read("text_units")
    texts, has_model = embedded_unit_texts(units), run.settings.embeddings.engine == "model"
    _embed(run, "default-text_unit-text", units, choose_sample(texts, run.settings) if has_model else ())
    if has_model:
        _show_calls(run, texts)


def _show_calls(run: StageRun, texts: list[str]) -> None:
    """Show how many inputs the texts and the comparison are, and compare averaged vectors with those of whole texts."""
    from graphrag_pipeline.indexing import aggregation_report as report

    limits = run.settings.embedding_model
    n_inputs = report.count_calls_together(texts, limits).n_inputs
    run.details["distinct embedding inputs of this bucket"] = n_inputs
    comparisons = report.choose_comparisons(texts, limits, run.settings.embeddings.n_compared)
    sample = report.texts_to_compare(comparisons)
    n_more = report.count_calls_together([*texts, *sample], limits).n_inputs - n_inputs
    cosines = report.compare_averages(comparisons, run.embed_stored(sample), limits)
    run.details |= report.describe_averages(cosines, n_more)


def entity_embeddings(run: StageRun) -> None:
    from graphrag_pipeline.publishing.contract_tables import with_descriptions

    _embed(
        run, "default-entity-description", with_descriptions(run.read_described("entities"), run.read("descriptions"))
    )


def relationship_embeddings(run: StageRun) -> None:
    from graphrag_pipeline.publishing.contract_tables import with_descriptions

    rows = with_descriptions(run.read_described("relationships"), run.read("descriptions"))
    _embed(run, "default-relationship-description", rows.select(["source", "target", "description"]))


def report_embeddings(run: StageRun) -> None:
    from graphrag_pipeline.publishing.contract_tables import with_full_content

    _embed(run, "default-community-full_content", with_full_content(run.read("community_reports")))


def _embed(run: StageRun, vector_table: str, rows: pa.Table, beside: Sequence[str] = ()) -> None:
    from graphrag_pipeline.indexing.embeddings import embed_texts, embedded_texts

    name = VECTOR_TABLES[vector_table][1]
    texts = embedded_texts(vector_table, rows)
    table, embedder, progress = STAGE_TABLES[name], run.root.embedder, run.progress()
    rows, failures = embed_texts(texts, table, embedder, run.known(name), progress, beside)
    run.write(failures, **{name: rows})


def index_candidate(run: StageRun) -> None:
    from graphrag_pipeline.indexing.embeddings import look_up_all_vectors
    from graphrag_pipeline.publishing.candidates import freeze_candidate
    from graphrag_pipeline.publishing.contract_tables import COUNTED_TEXTS, JOINED_TABLES, join_contract_tables
    from graphrag_pipeline.text.tokens import count_tokens_each

    last = run.root.tables.head(run.stage.name)
    previous = run.root.snapshots.last_manifest(last.data_version if last else None)
    numbers = _carried_numbers(run, previous)
    count_tokens = partial(count_tokens_each, encoding=run.settings.text_units.encoding)
    counted = run.frozen_before(COUNTED_TEXTS)
    tables = join_contract_tables(
        {name: run.read_described(name) for name in JOINED_TABLES}, numbers, count_tokens, counted
    )
    del counted
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


def index_snapshot(run: StageRun) -> None:
    from graphrag_pipeline.defs.assets.checks import of_quality
    from graphrag_pipeline.defs.assets.published import of_review, of_snapshot
    from graphrag_pipeline.evaluation.regression_gate import check_golden_questions, try_searches
    from graphrag_pipeline.pipeline.stages import CANDIDATE
    from graphrag_pipeline.publishing.candidates import open_published, publish
    from graphrag_pipeline.storage.snapshot_store import (
        hold_for_review,
        read_review,
        record_refusal,
        refusal_of,
        refuse_rejected,
    )

    candidate = run.root.tables.need(CANDIDATE.name).data_version
    pinned = run.root.snapshots.pinned()
    if pinned not in (None, candidate):
        run.log(
            f"candidate {candidate} is not published: snapshot {pinned} is pinned; run "
            "`graphrag-pipeline snapshots unpin` to publish it"
        )
        run.details |= {"snapshot": pinned, "waiting for unpin": candidate}
        run.is_withheld = True
        return
    state = read_review(run.root.snapshots, candidate)
    is_new = candidate != run.root.snapshots.current()
    if run.approved == "*":  # of a user who has perhaps not seen the review
        refuse_rejected(run.root.snapshots, candidate)
    if is_new and (run.is_reviewed or state) and run.approved not in (candidate, "*"):
        if not state:
            hold_for_review(run.root.snapshots, candidate)
        run.log(f"candidate {candidate} is not published: {refusal_of(run.root.snapshots, candidate)}")
        run.details |= of_review(run.root, candidate)
        run.is_withheld = True
        return
    refusal = refusal_of(run.root.snapshots, candidate) if state else ""
    trial = partial(try_searches, run.root)
    try:
        run.details |= check_golden_questions(run.root, candidate)
        before = open_published(run.root.snapshots)
        publish(run.root.snapshots, candidate, run.settings.publishing, trial, run.allows_removal)
    except PipelineError:
        if refusal:  # what a reviewer could not publish still waits for one
            record_refusal(run.root.snapshots, candidate, refusal)
        raise
    if is_new:
        run.details |= of_snapshot(run.root, candidate, before) | metadata.of_calls(run.session.costs.total)
        run.details |= of_quality(run.root, candidate, before)
