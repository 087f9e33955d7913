"""A model's stored extraction beside the embedded engine: counts, matching by any written name, bounds."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.evaluation.index_quality import engine_agreement
from graphrag_pipeline.evaluation.index_quality.engine_agreement import (
    agreement_figures,
    compare_engines,
    count_agreement,
    find_extractor,
)
from graphrag_pipeline.indexing.ports import Extractor
from graphrag_pipeline.ports import load_port
from graphrag_pipeline.publishing.candidates import freeze_candidate
from graphrag_pipeline.settings.quality import QualitySettings
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.tables import VECTOR_TABLES
from graphrag_pipeline_tests.support.corpora.small_index import contract_tables, freeze
from graphrag_pipeline_tests.support.roots import make_root

HEAD = {"data_version": "d", "code_version": "c", "inputs": {}}
ENTITIES = st.dictionaries(st.sampled_from("abcdef"), st.frozensets(st.sampled_from("uvwxyz"), min_size=1), max_size=5)


@pytest.fixture(scope="module")
def by_model(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """The small index, extracted by the model `tiny`."""
    tables, embedder = contract_tables(), load_static_embeddings()
    vectors = {
        name: embedder.embed(["x"] * tables[table].num_rows) for name, (table, _) in VECTOR_TABLES.items()
    }  # not searched here
    store = SnapshotStore(tmp_path_factory.mktemp("by_model"))
    heads, code = {"entity_mentions/000": HEAD}, {"c": {"extraction model": "tiny"}}
    return store.open(freeze_candidate(store, tables, vectors, embedder.fingerprint, heads=heads, code=code))


@pytest.fixture
def embedded(tmp_path: Path) -> Extractor:
    return load_port("extractor")(make_root(tmp_path / "root"))


def test_an_index_of_the_embedded_engine_is_not_compared_with_itself(tmp_path: Path, embedded: Extractor) -> None:
    snapshot = freeze(tmp_path)
    assert find_extractor(snapshot) == "" and compare_engines(snapshot, embedded, 25) is None
    figures = agreement_figures(None, "")
    assert {figure.value for figure in figures} == {None} and "embedded engine" in figures[0].note


def test_the_stored_entities_of_a_model_are_counted_beside_those_of_the_embedded_engine(
    by_model: Snapshot, embedded: Extractor
) -> None:
    found = compare_engines(by_model, embedded, 25)
    assert found is not None and (found.model, found.n_text_units, found.n_model) == ("tiny", 3, 6)
    assert found.n_shared_model == found.n_shared_embedded == 5
    assert found.added == ("FOG",), "a common word is no name"
    ratio, overlap = agreement_figures(found, "tiny")
    assert ratio.value == found.n_model / found.n_embedded and overlap.value == 5 / 6
    assert ratio.note.startswith("2.0 entities a text unit by tiny, ") and not overlap.is_low(QualitySettings())


def test_the_sample_and_the_characters_read_are_bounded(
    by_model: Snapshot, embedded: Extractor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def n_compared(n: int) -> int:
        found = compare_engines(by_model, embedded, n)
        return found.n_text_units if found else 0

    assert [n_compared(n) for n in (0, 2, 25)] == [0, 2, 3]
    monkeypatch.setattr(engine_agreement, "MAX_CHARACTERS", 1)
    assert n_compared(25) == 1


def test_six_of_twentyone_entities_warn() -> None:
    """The case that the figure exists for: a small model sees a fraction of the names."""
    ours = {f"n{i}": {f"n{i}"} for i in range(21)}
    theirs = {f"n{i}": {f"n{i}"} for i in range(6)}
    found = count_agreement("small", [(theirs, ours)] * 10)
    ratio, overlap = agreement_figures(found, "small")
    assert ratio.note == (
        "6.0 entities a text unit by small, 21.0 by the embedded engine, 6.0 of which both find (10 text units)"
    )
    assert ratio.value == pytest.approx(6 / 21) and ratio.is_low(QualitySettings())
    assert overlap.value == 1 and ratio.examples == ("n10", "n11", "n12", "n13", "n14")


def test_entities_match_by_any_written_name_and_within_a_text_unit_only() -> None:
    theirs, ours = {"A": {"bob cratchit", "bob"}}, {"B": {"bob"}}
    assert count_agreement("m", [(theirs, ours)]).n_shared_model == 1
    assert count_agreement("m", [(theirs, {}), ({}, ours)]).n_shared_model == 0


@given(st.lists(st.tuples(ENTITIES, ENTITIES), min_size=1, max_size=5))
def test_shared_entities_never_exceed_either_engine_and_swap_with_them(units) -> None:
    found, swapped = count_agreement("m", units), count_agreement("m", [(b, a) for a, b in units])
    assert 0 <= found.n_shared_model <= found.n_model and 0 <= found.n_shared_embedded <= found.n_embedded
    assert (found.n_shared_model, found.n_shared_embedded) == (swapped.n_shared_embedded, swapped.n_shared_model)
    assert bool(found.n_shared_model) == bool(found.n_shared_embedded)
