"""Bodies of the stages in the group `documents`: the input folder read and cut into text units.

Keep out: loops, parsing, files, networks.
"""

from graphrag_pipeline.defs.assets.stage_run import StageRun


def corpus_manifest(run: StageRun) -> None:
    from graphrag_pipeline.inputs.documents import build_corpus_manifest
    from graphrag_pipeline.pipeline.detected_input import INPUT, input_version

    manifest = build_corpus_manifest(run.root.read_input({run.partition}))
    run.add_input(INPUT, input_version(manifest))
    run.write(corpus_manifest=manifest)


def documents(run: StageRun) -> None:
    from graphrag_pipeline.inputs.documents import build_documents, match_manifest

    records = match_manifest(run.root.read_input({run.partition}), run.read("corpus_manifest"))
    tables = build_documents(records)
    run.count_tokens("documents", tables["text"])
    run.write(documents=tables)


def text_units(run: StageRun) -> None:
    from graphrag_pipeline.indexing.aggregation_report import describe_aggregation, measure_aggregation
    from graphrag_pipeline.indexing.text_units import split_documents

    documents, settings = run.read("documents"), run.settings
    units = split_documents(documents, settings.text_units)
    run.details |= describe_aggregation(measure_aggregation(documents, units, settings.embedding_model))
    run.write(text_units=units)
