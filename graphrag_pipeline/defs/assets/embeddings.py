"""Bodies of the stages in the group `embeddings`.

Keep out: loops, parsing, files, networks.
"""

from collections.abc import Sequence

import pyarrow as pa

from graphrag_pipeline.defs.assets.pages import metadata
from graphrag_pipeline.defs.assets.stage_run import StageRun
from graphrag_pipeline.tables import STAGE_TABLES, VECTOR_TABLES


def sentence_embeddings(run: StageRun) -> None:
    from graphrag_pipeline.indexing.sentence_embeddings import embed_sentences
    from graphrag_pipeline.models.ports import load_static_embedder

    units = run.read("text_units")
    run.details |= metadata.of_tokens("text units", units["n_tokens"])
    run.write(sentence_embeddings=embed_sentences(units, load_static_embedder()))


def text_unit_embeddings(run: StageRun) -> None:
    from graphrag_pipeline.indexing.aggregation_report import choose_sample

    units = run.read("text_units")
    texts, has_model = units["text"].to_pylist(), run.settings.embeddings.engine == "model"
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

    _embed(run, "default-entity-description", with_descriptions(run.read("entities"), run.read("descriptions")))


def relationship_embeddings(run: StageRun) -> None:
    from graphrag_pipeline.publishing.contract_tables import with_descriptions

    rows = with_descriptions(run.read("relationships"), run.read("descriptions"))
    _embed(run, "default-relationship-description", rows.select(["source", "target", "description"]))


def report_embeddings(run: StageRun) -> None:
    from graphrag_pipeline.publishing.contract_tables import with_full_content

    _embed(run, "default-community-full_content", with_full_content(run.read("community_reports")))


def _embed(run: StageRun, vector_table: str, rows: pa.Table, beside: Sequence[str] = ()) -> None:
    from graphrag_pipeline.indexing.embeddings import embed_texts, embedded_texts

    name = VECTOR_TABLES[vector_table][1]
    texts = embedded_texts(vector_table, rows)
    run.count_tokens("embedded texts", texts)
    table, embedder, progress = STAGE_TABLES[name], run.root.embedder, run.progress()
    rows, failures = embed_texts(texts, table, embedder, run.known(name), progress, beside)
    run.write(failures, **{name: rows})
