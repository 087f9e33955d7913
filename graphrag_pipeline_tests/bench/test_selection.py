from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.search.local import select_with_candidates
from graphrag_pipeline.settings.settings import LocalSearchSettings, Settings
from graphrag_pipeline_tests.bench.selection import measure_aims
from graphrag_pipeline_tests.support.corpora import small_index


def test_aims_of_a_selection_that_takes_two_of_three_text_units(tmp_path: Path) -> None:
    index = GraphIndex(small_index.freeze(tmp_path), Settings(), load_static_embeddings())
    settings = LocalSearchSettings(strategy="round_robin", include_entity_names=("Scrooge", "Fog"), top_k_entities=2)
    found = select_with_candidates(index, "Who haunted Scrooge?", settings)
    aims = measure_aims(index, "Who haunted Scrooge?", found)
    units = found.context.text_units
    assert aims.coverage == 1.0
    assert aims.density == pytest.approx(1000 * 2 / sum(unit.n_tokens for unit in units))
    assert 0 < aims.relevance < 1 and 0 < aims.diversity < 1
    one = select_with_candidates(index, "Who haunted Scrooge?", settings.model_copy(update={"max_context_tokens": 100}))
    assert not one.context.text_units and len(one.unheard) == 2
