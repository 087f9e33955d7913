"""Texts too long for an embedding model: near-equal pieces, a weighted mean, full batches."""

from __future__ import annotations

import contextlib
import math

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.models.pieces import (
    PieceLimit,
    TextPiece,
    average_vectors,
    fingerprint_of,
    identity_of,
    pack_batches,
    piece_limit,
    query_fingerprint_of,
    split_to_pieces,
)
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.settings.models import EmbeddingModelSettings
from graphrag_pipeline.text.tokens import count_tokens
from graphrag_pipeline_tests.support.models.model_roots import ModelIndex


def words(n_tokens: int) -> str:
    """Return a text of this many tokens without a sentence end."""
    text = "word" + " word" * (n_tokens - 1)
    assert count_tokens(text) == n_tokens
    return text


def sizes(text: str, max_tokens: int) -> list[int]:
    pieces = split_to_pieces(text, max_tokens)
    assert "".join(piece.text for piece in pieces) == text
    assert [piece.n_tokens for piece in pieces] == [count_tokens(piece.text) for piece in pieces]
    return [piece.n_tokens for piece in pieces]


def test_600_tokens_at_450_are_300_and_300() -> None:
    assert sizes(words(600), 450) == [300, 300]


def test_1200_tokens_at_450_are_3_times_400() -> None:
    assert sizes(words(1200), 450) == [400, 400, 400]


@pytest.mark.parametrize(
    ("n_tokens", "pieces"),
    [(402, 1), (450, 1), (451, 2), (900, 2), (901, 3), (1350, 3), (1500, 4), (2000, 5)],
)
def test_the_number_of_pieces_is_the_least_possible(n_tokens: int, pieces: int) -> None:
    found = sizes(words(n_tokens), 450)
    assert len(found) == pieces and max(found) - min(found) <= 1


def test_a_margin_is_stated_in_the_settings() -> None:
    exact = EmbeddingModelSettings(model="bge-large-en", batch_max_tokens=450)
    careful = EmbeddingModelSettings(model="bge-large-en", batch_max_tokens=450, token_margin=0.12)
    assert (piece_limit(exact), piece_limit(careful)) == (PieceLimit(450), PieceLimit(401))


def test_the_tokenizer_is_stated_in_the_settings() -> None:
    own = EmbeddingModelSettings(model="text-embedding-3-small", tokenizer="model")
    assert piece_limit(own).encoding == "cl100k_base"
    assert piece_limit(EmbeddingModelSettings(model="text-embedding-3-small")).encoding == "o200k_base"
    with pytest.raises(PipelineError, match=r"no tokenizer for 'bge-large-en'; set `embedding_model.tokenizer`"):
        piece_limit(EmbeddingModelSettings(model="bge-large-en", tokenizer="model"))
    with pytest.raises(ValidationError, match="'bert' is not a tokenizer; set 'model' or one of gpt2"):
        EmbeddingModelSettings(tokenizer="bert")


def test_a_text_that_fits_is_one_piece() -> None:
    assert split_to_pieces(words(450), 450) == [TextPiece(words(450), 450)]
    assert len(split_to_pieces(words(451), 450)) == 2


def test_a_cut_moves_to_a_sentence_end_that_is_near() -> None:
    sentence = "The ghost of Jacob Marley came to Scrooge that night. "
    text = sentence * 60
    pieces = split_to_pieces(text, 450)
    assert len(pieces) == math.ceil(count_tokens(text) / 450)
    assert all(piece.text.strip().startswith("The") and piece.text.strip().endswith(".") for piece in pieces)


def test_letters_keep_their_marks_and_emoji_stay_whole() -> None:
    text = "e\u0301" * 400 + "\U0001f469\u200d\U0001f680" * 200
    pieces = split_to_pieces(text, 100)
    assert len(pieces) > 1
    for piece in pieces:
        assert piece.text[0] not in "\u0301\u200d"


@given(
    text=st.text(alphabet=st.sampled_from("ab .!\n\u4e2d\u3002\u0301\U0001f600"), min_size=1, max_size=800),
    max_tokens=st.integers(16, 200),
)
def test_pieces_are_the_text_and_fit(text: str, max_tokens: int) -> None:
    assert max(sizes(text, max_tokens)) <= max_tokens


@given(lengths=st.lists(st.integers(1, 40), min_size=1, max_size=60), max_tokens=st.integers(60, 300))
def test_prose_is_cut_into_the_fewest_pieces_of_near_equal_size(lengths: list[int], max_tokens: int) -> None:
    text = " ".join("word " * length + "end." for length in lengths)
    n_tokens = count_tokens(text)
    found = sizes(text, max_tokens)
    assert len(found) == math.ceil(n_tokens / max_tokens)
    assert max(found) - min(found) <= 0.3 * n_tokens / len(found) + 8


def test_sentences_that_fill_the_limit_exactly_are_not_cut_more_often() -> None:
    sentence = " Marley was dead."  # 4 tokens
    for n_sentences in (113, 225, 226, 338):
        text = sentence * n_sentences
        assert len(sizes(text, 450)) == math.ceil(count_tokens(text) / 450)


def test_the_mean_is_weighted_by_tokens_and_normalised() -> None:
    mean = average_vectors([np.array([1.0, 0.0]), np.array([0.0, 1.0])], [300, 100])
    assert mean == pytest.approx(np.array([3.0, 1.0]) / math.sqrt(10))
    assert mean.dtype == np.float32
    assert average_vectors([np.array([1.0]), np.array([-1.0])], [5, 5]).tolist() == [0.0]


@given(n_tokens=st.lists(st.integers(1, 50), max_size=60), max_items=st.integers(1, 9), max_tokens=st.integers(1, 120))
def test_batches_hold_all_in_order_within_both_limits(n_tokens: list[int], max_items: int, max_tokens: int) -> None:
    batches = pack_batches(n_tokens, max_items, max_tokens)
    assert [index for batch in batches for index in batch] == list(range(len(n_tokens)))
    assert all(batch for batch in batches)
    assert all(len(batch) <= max_items for batch in batches)
    assert all(len(batch) == 1 or sum(n_tokens[i] for i in batch) <= max_tokens for batch in batches)


def test_limit_tokenizer_margin_and_averaging_are_in_the_identity() -> None:
    identity = identity_of(EmbeddingModelSettings(model="m", batch_max_tokens=450))
    assert identity["embedding_model.batch_max_tokens"] == 450
    assert identity["embedding_model.tokenizer"] == "o200k_base"
    assert identity["embedding_model.token_margin"] == 0.0
    assert identity["embedding_model.averaging"] == "by_tokens"


def test_a_tokenizer_counts_by_the_encoding_that_it_means() -> None:
    named = EmbeddingModelSettings(model="text-embedding-3-small", tokenizer="cl100k_base")
    own = EmbeddingModelSettings(model="text-embedding-3-small", tokenizer="model")
    assert fingerprint_of(named) == fingerprint_of(own)


def test_the_prefix_of_texts_is_in_the_identity_and_that_of_questions_is_not() -> None:
    plain = EmbeddingModelSettings(model="m")
    prefixed = EmbeddingModelSettings(model="m", passage_prefix="passage: ")
    asked = EmbeddingModelSettings(model="m", query_prefix="query: ")
    assert identity_of(prefixed)["embedding_model.passage_prefix"] == "passage: "
    assert len({fingerprint_of(plain), fingerprint_of(prefixed)}) == 2
    assert fingerprint_of(plain) == fingerprint_of(asked) == query_fingerprint_of(plain)
    assert query_fingerprint_of(asked) != fingerprint_of(asked)


def test_another_machine_with_another_margin_is_refused_and_told_the_difference(model_index: ModelIndex) -> None:
    path = model_index.root.path / "settings.yaml"
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    values["embedding_model"] |= {"token_margin": 0.2, "batch_max_tokens": 450}
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    other = Root(model_index.root.path)
    changes = r"embedding_model.batch_max_tokens 8000 -> 450, embedding_model.token_margin 0.0 -> 0.2; run `graphrag"
    with contextlib.closing(other.snapshots.open()) as snapshot, pytest.raises(PipelineError, match=changes):
        GraphIndex(snapshot, other.settings, other.embedder, other)
