"""Entities and tags are those of spaCy itself."""

from graphrag_pipeline.engines.embedded.names.spacy_layers import can_follow, follow_moves, tag_tokens
from graphrag_pipeline.engines.embedded.names.spacy_pipeline import load_pipeline
from graphrag_pipeline_tests.support.paths import TEST_DATA


def test_entities_and_tags_are_those_of_spacy():
    pipeline = load_pipeline("")
    ner = pipeline.get_pipe("ner")
    texts = [path.read_text()[:5_000] for path in (TEST_DATA / "terms").glob("*.txt")] + ["Paris", "\n", ""]
    docs = [pipeline.make_doc(text) for text in texts]

    entities = [follow_moves(ner, doc) for doc in docs]
    tags = tag_tokens(pipeline, docs)

    read = [pipeline(text) for text in texts]
    assert can_follow(ner)
    assert sum(map(len, entities)) > 100
    assert entities == [[(found.start, found.end, found.label_) for found in doc.ents] for doc in read]
    assert tags == [[token.tag_ for token in doc] for doc in read]
