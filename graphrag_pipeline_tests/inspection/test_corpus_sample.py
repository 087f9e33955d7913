from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_pipeline.inputs.documents import build_documents
from graphrag_pipeline.inspection.corpus_sample import CorpusSample, measure_sample
from graphrag_pipeline_tests.support.roots import make_root


def sample(n_units: int, n_half: int, whole: int, half: int) -> CorpusSample:
    return CorpusSample(n_units, n_half, {"community_reports": whole}, {"community_reports": half})


def test_a_corpus_that_is_the_sample_is_counted() -> None:
    assert sample(10, 5, 40, 18).scale("community_reports", 10) == 40


@pytest.mark.parametrize(
    ("half", "expected"),
    [(20, 400), (16, 838), (40, 160), (0, 400), (1, 1005)],  # linear, faster, slower (bounded), no half, bounded
)
def test_counts_go_on_as_they_grew_in_the_sample(half: int, expected: int) -> None:
    assert sample(10, 5, 40, half).scale("community_reports", 100) == pytest.approx(expected, rel=0.01)


def test_documents_that_name_the_same_things_need_more_descriptions(tmp_path: Path) -> None:
    same = {f"{n}.txt": f"Maud Harlan met Piet Maas in Brantwick on day {n}. Piet Maas paid." for n in range(8)}
    names = ("Abel", "Bruno", "Carla", "Doris", "Edgar", "Frida", "Gustav", "Helga")
    other = {f"{name}.txt": f"{name} Kestrel{name.lower()} went home. It rained." for name in names}
    counts = [
        measure_sample(build_documents(list(root.read_input())), root).counts
        for root in [make_root(tmp_path / key, texts) for key, texts in (("same", same), ("other", other))]
    ]
    assert counts[0]["summarized_descriptions"] >= 3 and counts[1]["summarized_descriptions"] == 0
    assert counts[0]["entity_embeddings"] < counts[1]["entity_embeddings"]


def test_an_equal_sample_is_read_once_and_other_settings_read_it_again(tmp_path: Path) -> None:
    root = make_root(tmp_path / "root", {"a.txt": "Maud Harlan met Piet Maas."})
    documents = build_documents(list(root.read_input()))
    first = measure_sample(documents, root)
    assert measure_sample(documents, root) is first
    other = make_root(root.path, settings="communities: {max_cluster_size: 7}")
    assert measure_sample(documents, other) is not first
