from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_pipeline.models.extractive import (
    MAX_CANDIDATES,
    MAX_REMEMBERED_LENGTH,
    embed_distinct,
    is_sentence,
    leans_on_context,
    rank_sentences,
    sentences_of,
    weigh_form,
)
from graphrag_pipeline.models.static_embeddings import load_static_embeddings
from graphrag_pipeline_tests.hashing_embeddings import HashingEmbeddings

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


@pytest.mark.parametrize(
    "text",
    [
        "Scrooge was a miser.",
        '"Bah!" said Scrooge, "Humbug!"',
        "“I wear the chain I forged in life,” replied the Ghost.",
        "In 1843 the firm had been Scrooge and Marley for years.",
        "The team is credited as a producer of the eBook",
        "萧炎是乌坦城萧家的少爷。",
        "Скрудж был скупым человеком.",
    ],
)
def test_a_sentence_stands_alone(text):
    assert is_sentence(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "...",
        "STAVE ONE",
        "# Marley's Ghost",
        "The Last of the Spirits.",
        "A Christmas Carol in Prose, by Charles Dickens.",
        "and so he went to bed.",
        "He said:",
        "Bah! Humbug!",
        "| Name | Age | Town |",
        "- a list item that goes on for a while",
        "* * * * *",
        "第一章",
    ],
)
def test_a_heading_or_fragment_does_not(text):
    assert not is_sentence(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She also welcomes Martha.", True),
        ("Through these actions, Fred shows affection.", True),
        ("“He died seven years ago,” Scrooge replied.", True),
        ("Hermione reads.", False),
        ("Scrooge likes her.", False),
    ],
)
def test_a_sentence_that_points_back_is_known(text, expected):
    assert leans_on_context(text) is expected


@pytest.mark.parametrize(
    "text",
    [
        "She also welcomes her daughter Martha warmly.",
        '"Bah!" said Scrooge to his nephew and the clerk.',
        "Scrooge said, 'it is not my business to be kind.",
        "Is there nobody who would keep Christmas with him?",
        "Marley was dead.",
        "Scrooge " + "and the clerk and the nephew and the ghost " * 8 + "met.",
    ],
)
def test_a_sentence_that_reads_badly_alone_weighs_less(text):
    assert weigh_form(text) < weigh_form("Scrooge was the sole executor of Jacob Marley's will.") == 1.0


def test_sentences_of_a_text_have_their_white_space_folded():
    assert sentences_of("Marley was\ndead.  There is no doubt.\n") == ["Marley was dead.", "There is no doubt."]


def test_the_central_sentence_comes_first_and_the_next_says_something_else():
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


def test_headings_are_picked_only_where_there_is_nothing_else():
    assert rank(["STAVE ONE", "Marley was dead as a door-nail."], 5) == ["Marley was dead as a door-nail."]
    assert rank(["STAVE ONE", "miser"], 5) != []


@pytest.mark.parametrize("texts", [[], [""], ["...", "!!!"]])
def test_nothing_is_picked_from_nothing(texts):
    assert rank(texts, 3) == []


def test_zero_vectors_are_no_error():
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
def test_never_more_than_asked_and_never_twice(texts, n):
    picked = rank(texts, n)
    assert len(picked) <= n
    assert len({text.casefold() for text in picked}) == len(picked)
    assert bool(picked) == bool(texts)


def test_a_repeated_text_is_embedded_once_and_every_place_has_its_vector():
    embedded = []

    class Counting(HashingEmbeddings):
        def embed(self, texts):
            embedded.extend(texts)
            return super().embed(texts)

    texts = [CAROL[1], CAROL[0], CAROL[1]]
    assert np.array_equal(embed_distinct(texts, Counting()), HashingEmbeddings().embed(texts))
    assert embedded == [CAROL[1], CAROL[0]]
    assert embed_distinct([], Counting()).shape == (0, Counting().dimensions)


def test_long_texts_are_read_like_short_ones():
    text = " ".join(CAROL * (MAX_REMEMBERED_LENGTH // 100))
    assert len(text) > MAX_REMEMBERED_LENGTH
    assert sentences_of(text) == CAROL * (MAX_REMEMBERED_LENGTH // 100)
    sentences_of(CAROL[0]).append("not remembered")
    assert sentences_of(CAROL[0]) == [CAROL[0]]
