"""Counting is offline, exact on ordinary text and linear on pathological text."""

import os
import time

import pytest
import tiktoken

from graphrag_pipeline import tokens
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.tokens import count_tokens, count_tokens_each, load_encoding


@pytest.fixture
def unloaded(monkeypatch):
    """Every encoding forgotten, and no network to fetch one from."""

    def refuse(url):
        raise ConnectionError(f"no network in tests: {url}")

    monkeypatch.setattr("tiktoken.load.read_file", _only_local(tiktoken.load.read_file, refuse))
    monkeypatch.setattr("tiktoken.registry.ENCODINGS", {})
    load_encoding.cache_clear()
    yield
    load_encoding.cache_clear()


def _only_local(read_file, refuse):
    return lambda path: refuse(path) if "://" in path else read_file(path)


@pytest.mark.parametrize(
    ("text", "n_tokens"), [("", 0), ("hello world", 2), ("<|endoftext|>", 7), ("萧炎是谁？", 5), ("\ud800", 1)]
)
def test_a_text_has_a_fixed_number_of_tokens_special_strings_included(text, n_tokens):
    assert count_tokens(text) == n_tokens


def test_many_texts_are_counted_in_order():
    assert count_tokens_each(["hello world", "", "hello"]) == [2, 0, 1]


def test_the_default_encoding_needs_no_network_and_leaves_the_environment_alone(unloaded, monkeypatch, tmp_path):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    before = dict(os.environ)
    assert count_tokens("hello world") == 2
    assert dict(os.environ) == before
    assert not list(tmp_path.iterdir())


def test_damaged_ranks_are_an_error_not_a_download(unloaded, monkeypatch, tmp_path):
    ranks = tmp_path / "ranks"
    ranks.write_bytes(b"damaged")
    monkeypatch.setattr(tokens, "_RANKS", ranks)
    with pytest.raises(PipelineError, match="reinstall"):
        load_encoding("o200k_base")
    assert ranks.read_bytes() == b"damaged"


@pytest.mark.parametrize("name", ["cl100k_base", "no_such_encoding"])
def test_an_encoding_that_cannot_be_loaded_names_the_fix(unloaded, monkeypatch, tmp_path, name):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with pytest.raises(PipelineError, match=r"text_units\.encoding to 'o200k_base'"):
        load_encoding(name)


def test_a_long_text_has_the_same_count_as_if_encoded_at_once():
    text = "It was the best of times,\n\nit was the worst of times  (1859). " * 4_000
    assert len(text) > 4 * tokens.MAX_PIECE
    assert count_tokens(text) == len(load_encoding("o200k_base").encode_ordinary(text))


@pytest.mark.parametrize("unit", ["a", " ", "\n", ".", "萧", "é", "ab\u0301", "{[("])
def test_a_megabyte_without_a_place_to_cut_takes_no_more_than_seconds(unit):
    start = time.perf_counter()
    assert count_tokens(unit * (1_000_000 // len(unit)) + "x") > 0
    assert time.perf_counter() - start < 10
