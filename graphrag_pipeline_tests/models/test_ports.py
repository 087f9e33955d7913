from __future__ import annotations

import numpy as np

from graphrag_pipeline.models.ports import embed_distinct
from graphrag_pipeline_tests.support.models.hashing_embeddings import HashingEmbeddings

ONCE = "Scrooge is a miser who counts money in a cold office."
REPEATED = "Scrooge counts his money in a cold office every day."


def test_a_repeated_text_is_embedded_once_and_every_place_has_its_vector():
    embedded = []

    class Counting(HashingEmbeddings):
        def embed(self, texts):
            embedded.extend(texts)
            return super().embed(texts)

    texts = [REPEATED, ONCE, REPEATED]
    assert np.array_equal(embed_distinct(texts, Counting()), HashingEmbeddings().embed(texts))
    assert embedded == [REPEATED, ONCE]
    assert embed_distinct([], Counting()).shape == (0, Counting().dimensions)
