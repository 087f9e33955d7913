from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.text.extractive import (
    MAX_CANDIDATES,
    rank_sentences,
    sentences_of,
)
from graphrag_pipeline.text.sentence_forms import MAX_REMEMBERED_LENGTH
from graphrag_pipeline_tests.support.models.hashing_embeddings import HashingEmbeddings

CAROL = [
    "Scrooge is a miser who counts money in a cold office.",
    "Scrooge counts his money in a cold office every day.",
    "The miser Scrooge keeps his clerk in a cold office.",
    "Tiny Tim walks with a crutch and loves Christmas pudding.",
    "A choir sang in the street below.",
]

sentences = st.lists(
    st.builds(
        "{} {} {} {}.".format,
        st.sampled_from(["Scrooge", "Bob", "Marley", "Fred"]),
        st.sampled_from(["counts", "sees", "fears", "likes"]),
        st.sampled_from(["money", "ghosts", "pudding", "snow"]),
        st.sampled_from(["daily", "at night", "in the office", "with Tim"]),
    ),
    max_size=12,
)


def rank(texts, n, **options):
    return [texts[i] for i in rank_sentences(texts, HashingEmbeddings().embed(texts), n, **options)]


def test_sentences_of_a_text_have_their_white_space_folded():
    assert sentences_of("Marley was\ndead.  There is no doubt.\n") == ["Marley was dead.", "There is no doubt."]


def test_the_central_sentence_comes_first_and_the_next_differs():
    first, second = rank(CAROL, 2)
    assert "office" in first
    assert "office" not in second


def test_a_question_counts_before_centrality():
    question = HashingEmbeddings().embed(["Tiny Tim crutch"])[0]
    assert rank(CAROL, 1, query=question) == [CAROL[3]]


def test_real_vectors_find_the_answer():
    embedder = load_static_embeddings()
    question = embedder.embed(["Which boy cannot walk well?"])[0]
    assert rank_sentences(CAROL, embedder.embed(CAROL), 1, query=question) == [3]


def test_a_prior_moves_a_sentence_up():
    assert rank(CAROL, 1, prior=np.array([1, 1, 1, 1, 5])) == [CAROL[4]]


def test_a_repeat_in_other_case_or_punctuation_is_not_picked():
    texts = ["Scrooge is a miser.", "SCROOGE is a miser!", "Scrooge is a real miser.", "Fred invites his uncle."]
    assert len(rank(texts, 9)) == 2


def test_headings_are_picked_only_without_sentences():
    assert rank(["STAVE ONE", "Marley was dead as a door-nail."], 5) == ["Marley was dead as a door-nail."]
    assert rank(["STAVE ONE", "miser"], 5) != []


@pytest.mark.parametrize("texts", [[], [""], ["...", "!!!"]])
def test_nothing_is_picked_from_nothing(texts):
    assert rank(texts, 3) == []


def test_zero_vectors_are_accepted():
    assert len(rank_sentences(CAROL, np.zeros((5, 8), dtype=np.float32), 3)) == 3


def test_more_sentences_than_candidates_are_cut_not_refused():
    texts = [f"Guest number {i} brings gift {i * 7} to the house." for i in range(MAX_CANDIDATES * 2)]
    embedder = HashingEmbeddings()
    assert 0 < len(rank_sentences(texts, embedder.embed(texts), 5)) <= 5


@settings(deadline=None)
@given(sentences, st.integers(1, 5), st.randoms(use_true_random=False), st.booleans())
def test_the_order_of_arrival_does_not_matter(texts, n, random, has_query):
    query = HashingEmbeddings().embed(["Scrooge sees ghosts"])[0] if has_query else None
    mixed = random.sample(texts, len(texts))
    assert rank(texts, n, query=query) == rank(mixed, n, query=query)


@settings(deadline=None)
@given(sentences, st.integers(1, 5))
def test_the_limit_holds_and_no_sentence_is_picked_twice(texts, n):
    picked = rank(texts, n)
    assert len(picked) <= n
    assert len({text.casefold() for text in picked}) == len(picked)
    assert bool(picked) == bool(texts)


def test_long_texts_are_read_like_short_ones():
    text = " ".join(CAROL * (MAX_REMEMBERED_LENGTH // 100))
    assert len(text) > MAX_REMEMBERED_LENGTH
    assert sentences_of(text) == CAROL * (MAX_REMEMBERED_LENGTH // 100)
    sentences_of(CAROL[0]).append("not remembered")
    assert sentences_of(CAROL[0]) == [CAROL[0]]
