"""Counting is offline, exact on ordinary text and linear on pathological text."""

import os
import time

import pytest
import tiktoken
from hypothesis import example, given
from hypothesis import strategies as st

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.text import tokens
from graphrag_pipeline.text.tokens import count_tokens, count_tokens_each, load_encoding, token_boundaries
from graphrag_pipeline_tests.support.thoroughness import usually

odd_texts = st.text(st.sampled_from("ab ,.\n\t\u00a0\u3000\u6f22\u00e9<|>1"), max_size=20)


@given(st.lists(odd_texts, max_size=8), st.integers(1, 40))
def test_many_texts_have_the_counts_of_each_alone(texts: list[str], max_characters: int) -> None:
    alone = [count_tokens(text) for text in texts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "MANY_TEXTS", 1)
        patch.setattr(tokens, "MAX_CHARACTERS", max_characters)
        assert count_tokens_each(texts) == alone


def test_long_texts_tables_and_surrogates_are_counted_beside_many_others() -> None:
    texts = [
        *(f"Scrooge met ghost {n} at {n} o'clock." for n in range(600)),
        "fog " * 20_000,
        "x" * 60_000,
        ",a,b c,d",
        "",
        " ",
        "a\ud800 b",
    ]
    assert count_tokens_each(texts) == [count_tokens(text) for text in texts]
    assert count_tokens_each(texts[:-1]) == [count_tokens(text) for text in texts[:-1]]


@pytest.fixture
def unloaded(monkeypatch):
    """No loaded encoding, and no network to fetch one."""

    def refuse(url):
        raise ConnectionError(f"no network in tests: {url}")

    monkeypatch.setattr("tiktoken.load.read_file", _only_local(tiktoken.load.read_file, refuse))
    monkeypatch.setattr("tiktoken.registry.ENCODINGS", {})
    tokens._load.cache_clear()
    yield
    tokens._load.cache_clear()


def _only_local(read_file, refuse):
    return lambda path: refuse(path) if "://" in path else read_file(path)


@pytest.mark.parametrize(
    ("text", "n_tokens"), [("", 0), ("hello world", 2), ("<|endoftext|>", 7), ("萧炎是谁？", 5), ("\ud800", 1)]
)
def test_a_text_has_a_fixed_number_of_tokens_special_strings_included(text, n_tokens):
    assert count_tokens(text) == n_tokens


def test_many_texts_are_counted_in_order():
    assert count_tokens_each(["hello world", "", "hello"]) == [2, 0, 1]


def test_counting_no_text_loads_no_encoding():
    assert count_tokens_each([], "an encoding that does not exist") == []


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
    with pytest.raises(PipelineError, match=r"text_units\.encoding` to 'o200k_base'"):
        load_encoding(name)


_WORDS = (
    "word", "Scrooge's", "1843", "counting-house", "...", "://", "I'll", "<|endoftext|>", "x" * 40, "a,b", "1,400",
)  # fmt: skip
_PARTS = st.sampled_from([*"aZ9.,\"'-é萧\u0301\ud800 \n\t\u00a0\u3000\u2028\x1c", "  ", " \n ", "\r\n", *_WORDS])


@given(st.lists(st.lists(_PARTS, max_size=12).map("".join), max_size=4))
@example(["  two spaces  ", " \n \n a", "a\t b", "a \u00a0 b", "a\u00a0 b", "", " ", "a "])
def test_counting_word_by_word_equals_encoding(texts):
    encode = load_encoding("o200k_base").encode_ordinary
    assert count_tokens_each(texts) == [len(encode(text)) for text in texts]


def test_an_encoding_is_loaded_once_under_any_of_its_names():
    assert load_encoding() is load_encoding("o200k_base") is load_encoding(name="o200k_base")


def test_a_full_memory_of_words_changes_no_count(monkeypatch):
    monkeypatch.setattr(tokens, "MAX_KNOWN_WORDS", 3)
    texts = ["Marley was dead: to begin with.", "There is no doubt whatever about that."] * 2
    counter = tokens._WordCounter(load_encoding())
    assert [counter.count(text) for text in texts] == count_tokens_each(texts)
    assert max(len(counter._opening), len(counter._following)) == 3


def test_a_long_text_has_the_same_count_as_if_encoded_at_once():
    text = "It was the best of times,\n\nit was the worst of times  (1859). " * 4_000
    assert len(text) > 4 * tokens.MAX_PIECE
    assert count_tokens(text) == len(load_encoding("o200k_base").encode_ordinary(text))


@pytest.mark.parametrize("unit", usually(["a", " ", "\n", ".", "萧", "é", "ab\u0301", "{[("], "a", "{[("))
def test_a_megabyte_without_a_place_to_cut_takes_no_more_than_seconds(unit):
    start = time.process_time()
    assert count_tokens(unit * (1_000_000 // len(unit)) + "x") > 0
    assert time.process_time() - start < 10


@given(st.text(alphabet=st.sampled_from("ab .\n\u4e2d\u0301\U0001f600\U0001f469\u200d"), max_size=60))
def test_boundaries_lie_between_tokens_and_between_characters(text):
    n_before, offsets = token_boundaries(text)
    assert (n_before[-1], offsets[-1]) == (count_tokens(text), len(text))
    tokens = load_encoding().encode_ordinary(text)
    for n, offset in zip(n_before, offsets, strict=True):
        assert load_encoding().decode(tokens[:n]) == text[:offset]


def test_boundaries_of_a_long_text_are_counted_through():
    text = "word " * 30_000
    n_before, offsets = token_boundaries(text)
    assert (n_before[-1], offsets[-1]) == (count_tokens(text), len(text)) and n_before == sorted(n_before)
