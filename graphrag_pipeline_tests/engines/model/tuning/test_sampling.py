from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.engines.model.tuning.sampling import choose_units, nearest_to_clusters, nearest_to_mean
from graphrag_pipeline.identity import bucket_of

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


def test_a_text_without_a_letter_is_never_chosen() -> None:
    assert ids({"a": "12 -- 34", "b": "words"}, "random", 5) == ["b"]


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
