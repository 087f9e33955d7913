"""Mean vectors of text units: the same whether they are kept or computed, in one thread or in several."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from graphrag_pipeline.storage.arrays import Sentences, write_arrays
from graphrag_pipeline.storage.sentence_means import SentenceMeans

N_UNITS = 30


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> Sentences:
    random = np.random.default_rng(3)
    indptr = np.r_[0, np.cumsum(random.integers(0, 5, N_UNITS))]
    vectors = random.integers(-127, 128, (indptr[-1], 256), dtype=np.int8)
    vectors[indptr[4] : indptr[5]] = 0
    folder = tmp_path_factory.mktemp("sentences")
    scales = random.random(indptr[-1], dtype=np.float32)
    arrays = {"text_unit_sentences_indptr": indptr, "sentence_vectors": vectors, "sentence_scales": scales}
    return Sentences(folder / write_arrays(folder, arrays))


def mean_of(sentences: Sentences, row: int) -> np.ndarray:
    places = slice(*sentences.indptr[row : row + 2])
    total = (sentences.scales[places, None] * sentences.vectors[places].astype(np.float64)).sum(axis=0)
    return total / (np.linalg.norm(total) or 1)


@pytest.mark.parametrize("n_kept", [1, 7, N_UNITS, 10 * N_UNITS])
def test_a_mean_is_that_of_its_sentences_however_many_are_kept(sentences: Sentences, n_kept: int) -> None:
    means = SentenceMeans(sentences, max_bytes=n_kept * 4 * 256)
    expected = np.array([mean_of(sentences, row) for row in range(N_UNITS)])
    for rows in ([3, 4, 29, 0], [29, 3, 28, 21, 14, 7, 0], list(range(N_UNITS)), [], [5, 5]):
        found = means.read(np.array(rows, dtype=np.int64))
        assert found.dtype == np.float32 and found == pytest.approx(expected[rows], abs=1e-6)


def test_threads_that_share_places_read_their_own_rows(sentences: Sentences) -> None:
    means = SentenceMeans(sentences, max_bytes=7 * 4 * 256)
    alone = SentenceMeans(sentences).read(np.arange(N_UNITS))
    orders = [np.random.default_rng(seed).permutation(N_UNITS) for seed in range(200)]
    with ThreadPoolExecutor(4) as threads:
        for rows, found in zip(orders, threads.map(means.read, orders), strict=True):
            assert np.array_equal(found, alone[rows])
