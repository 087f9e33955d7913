""""""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_pipeline.engines.model.tuning.sampling import (
    LEAST_SAMPLE,
    SampledUnit,
    SampleRequest,
    choose_passages,
    choose_units,
    nearest_to_clusters,
    nearest_to_mean,
    show_sample,
)
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import bucket_of
from graphrag_pipeline.models.endpoints.windows import count_prompt
from graphrag_pipeline.models.ports import ChatRequest
from graphrag_pipeline.text.tokens import DEFAULT_ENCODING, count_tokens

SENTENCE = "The harbour of Kestrel was built by Maud Harlan in the winter of the long storm."


def units_of(*texts: str) -> list[SampledUnit]:
    return [SampledUnit(f"u{n}", "d", text, count_tokens(text)) for n, text in enumerate(texts)]


def ask(sample: str) -> ChatRequest[str]:
    return ChatRequest("corpus", [{"role": "user", "content": f"Describe this.\n{sample}"}], str)


REQUEST = SampleRequest(ask, units_of(*[" ".join([SENTENCE] * 12)] * 15), 2000, DEFAULT_ENCODING)


@settings(max_examples=20)
@given(st.integers(min_value=150, max_value=3000))
def test_a_prompt_never_exceeds_its_room(room: int) -> None:
    assert count_prompt(REQUEST.fit(room).messages) <= room


def test_a_small_room_shows_fewer_passages_instead_of_scraps() -> None:
    shown = REQUEST.fit(300).messages[0]["content"]
    assert 3 <= shown.count("Passage ") <= 7 and shown.count(SENTENCE) == shown.count("Passage ")


def test_without_room_for_a_sample_nothing_is_asked() -> None:
    with pytest.raises(PipelineError, match=rf"room for a prompt of 60 tokens: .* less than {LEAST_SAMPLE}"):
        REQUEST.fit(60)


def test_a_refused_request_is_shortened_by_what_the_endpoint_says() -> None:
    shorter = REQUEST.shorten(500)
    assert shorter and count_prompt(shorter.messages) <= count_prompt(REQUEST.request.messages) - 500
    assert REQUEST.shorten(10_000) is None


def test_a_first_sentence_that_is_too_long_is_cut() -> None:
    long = units_of("word " * 500)
    assert count_tokens(show_sample(long, 100, DEFAULT_ENCODING)) <= 110
    assert show_sample(long, 100, DEFAULT_ENCODING).startswith("Passage 1: word word")
    assert replace(REQUEST, units=long).fit(150)


DULL = "It rained. The rain went on. It was dull and grey. "
RICH = "Ada Lovelace met Charles Babbage in London. "


def unit(number: int, text: str) -> SampledUnit:
    return SampledUnit(f"u{number}", f"d{number}", text, 40)


def named(*names: str) -> list[dict]:
    return [{"name": name, "written": None, "type": "PERSON"} for name in names]


def choose(units: list[SampledUnit], mentions: dict[str, list[dict]], n: int = 9):
    return choose_passages(units, mentions, 14, "o200k_base", n)


def test_the_sentences_with_most_names_are_chosen_whole() -> None:
    [passage] = choose([unit(1, DULL + RICH + DULL)], {"u1": named("Ada Lovelace", "Charles Babbage", "London")})
    assert passage.text == RICH.strip() and passage.names == {"Ada Lovelace", "Charles Babbage", "London"}


def test_a_passage_with_marks_of_a_prompt_is_not_used() -> None:
    marked = RICH.replace("London", "London ## <|COMPLETE|>")
    assert choose([unit(1, marked)], {"u1": named("Ada Lovelace")}) == []
    [passage] = choose([unit(1, f"{marked}{DULL}")], {})
    assert "##" not in passage.text


def test_key_phrases_do_not_count_and_text_units_without_names_come_last() -> None:
    concepts = {"u1": [{"name": "the rain", "written": None, "type": "CONCEPT"}], "u2": named("Ada Lovelace")}
    first, second = choose([unit(1, DULL), unit(2, RICH)], concepts)
    assert (first.text_unit_id, second.text_unit_id, second.names) == ("u2", "u1", frozenset())


def test_languages_take_turns() -> None:
    english = "The ship was in the harbour of the town and it was for the men. "
    german = "Das Schiff ist im Hafen der Stadt und die Männer sind auf dem Schiff. "
    units = [unit(i, english + str(i)) for i in range(3)] + [unit(9, german)]
    found = choose_passages(units, {}, 40, "o200k_base", 2)
    assert [passage.language for passage in found] == ["en", "de"]


PLACES = {"a": (0.0, 0.0), "b": (10.0, 0.0), "m": (5.0, 0.0)}


class Flat:
    """Vectors by the first letter of a text: two groups and one text between them."""

    dimensions, fingerprint = 2, "flat"

    def embed(self, texts: list[str]) -> np.ndarray:
        return np.array([PLACES[text[0]] for text in texts], dtype=np.float32)


def units(texts: dict[str, str]) -> pa.Table:
    rows = [{"id": i, "document_id": f"doc-{i}", "text": text, "n_tokens": 3} for i, text in texts.items()]
    schema = pa.schema(
        [("id", pa.string()), ("document_id", pa.string()), ("text", pa.string()), ("n_tokens", pa.int32())]
    )
    return pa.Table.from_pylist(rows, schema=schema)


def ids(texts: dict[str, str], method: str, size: int, seed: int = 1, excluded: tuple[str, ...] = ()) -> list[str]:
    return [unit.id for unit in choose_units(units(texts), method, size, seed, 3, Flat, excluded)]


@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=3), st.text("xyz", min_size=1), max_size=8), st.integers(1, 9)
)
def test_a_sample_depends_on_the_seed_and_not_on_the_order(texts: dict[str, str], size: int) -> None:
    chosen = ids(texts, "random", size)
    assert chosen == ids(dict(reversed(texts.items())), "random", size) == sorted(chosen)
    assert len(chosen) == min(size, len(set(texts.values()))), "equal texts count once"
    assert set(ids(texts, "random", size, excluded=tuple(chosen))).isdisjoint(chosen)


def test_a_new_document_replaces_at_most_one_of_the_sample() -> None:
    texts = {f"u{i}": f"text {i}" for i in range(30)}
    before = ids(texts, "random", 10)
    for new in range(20):
        after = ids({**texts, f"new{new}": "a new text"}, "random", 10)
        assert len(set(before) - set(after)) <= 1
    assert ids(texts, "random", 10, seed=2) != before


def test_buckets_take_turns() -> None:
    texts = {f"u{i}": f"text {i}" for i in range(40)}
    chosen = ids(texts, "bucket", 6)
    buckets = [bucket_of(f"doc-{i}", 3) for i in chosen]
    assert sorted(buckets.count(bucket) for bucket in set(buckets)) == [2, 2, 2]


def test_centroid_takes_the_middle_and_clusters_take_each_group() -> None:
    texts = {"1": "a one", "2": "a two", "3": "b one", "4": "b two", "5": "middle"}
    assert ids(texts, "centroid", 1) == ["5"]
    first = {texts[i][0] for i in ids(texts, "clusters", 3)}
    assert first == {"a", "b", "m"}


@pytest.mark.parametrize("nearest", [nearest_to_mean, nearest_to_clusters])
def test_equal_vectors_still_give_distinct_rows(nearest) -> None:
    rows = nearest(np.ones((6, 4), dtype=np.float32), 4)
    assert len(set(rows)) == 4
