"""Resolution by meaning: the choice of similar pairs, and the effect of the model's verdict."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from graphrag_pipeline.indexing.graph.semantic_resolution import (
    Pair,
    choose_verdict_pairs,
    merge_similar,
    propose_similar,
    request_verdicts,
    show_entities,
    verdict_request,
)
from graphrag_pipeline.models.ports import Failure
from graphrag_pipeline.models.prompts import load_prompt
from graphrag_pipeline.settings.settings import ResolutionSettings
from graphrag_pipeline_tests.model_server import running_model_server
from graphrag_pipeline_tests.support.corpora.stage_graph import StageGraph, make_graph
from graphrag_pipeline_tests.support.models.model_clients import chat_model

SAME = "The Prime Minister of the United Kingdom."


class TableOfVectors:
    """Vectors by title; other titles get vectors that are similar to none."""

    dimensions = 3
    fingerprint = "test:table"

    def __init__(self, angles: dict[str, float]) -> None:
        self._angles = angles

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        rows = []
        for text in texts:
            angle = self._angles.get(text.partition(":")[0])
            rows.append([0.0, 0.0, 1.0] if angle is None else [np.cos(angle), np.sin(angle), 0.0])
        return np.array(rows, dtype=np.float32)

    def try_embed(self, texts: Sequence[str]) -> tuple[np.ndarray, list[Failure]]:
        return self.embed(texts), []


NEAR = {"ROBERT GASCOYNE-CECIL": 0.0, "LORD SALISBURY": 0.1, "HENRY 7": 0.0, "HENRY 8": 0.05, "ANNE": 0.9, "ANN": 1.0}


def graph() -> StageGraph:
    return make_graph(
        {("ANN", "ANNE"): ["Ann met Anne."], ("LORD SALISBURY", "LONDON"): ["He lived in London."]},
        entities={title: [SAME] for title in NEAR},
    )


def propose(made: StageGraph, min_similarity: float) -> list[Pair]:
    settings = ResolutionSettings(min_similarity=min_similarity)
    return propose_similar(made.entities, made.relationships, TableOfVectors(NEAR), settings)


def pairs(min_similarity: float) -> list[tuple[str, str]]:
    made = graph()
    titles = made.entities["title"].to_pylist()
    found = propose(made, min_similarity)
    return [(titles[pair.row], titles[pair.into]) for pair in found]


def test_near_entities_of_one_type_are_a_pair_unless_their_numbers_differ_or_they_meet() -> None:
    found = {frozenset(pair) for pair in pairs(0.99)}
    assert frozenset({"ROBERT GASCOYNE-CECIL", "LORD SALISBURY"}) in found
    assert frozenset({"HENRY 7", "HENRY 8"}) not in found
    assert frozenset({"ANN", "ANNE"}) not in found


def test_entities_of_different_types_are_not_a_pair() -> None:
    made = graph()
    position = made.entities.schema.get_field_index("type")
    types = ["GEO" if title == "LORD SALISBURY" else "PERSON" for title in made.entities["title"].to_pylist()]
    entities = made.entities.set_column(position, made.entities.schema.field(position), pa.array(types))
    titles = entities["title"].to_pylist()
    found = propose_similar(entities, made.relationships, TableOfVectors(NEAR), ResolutionSettings(min_similarity=0.99))
    assert "LORD SALISBURY" not in {titles[pair.row] for pair in found} | {titles[pair.into] for pair in found}


def test_vectors_merge_from_the_least_cosine_on_and_leave_the_rest_to_the_model() -> None:
    made = graph()
    found = propose(made, 0.5)
    settings = ResolutionSettings(engine="model", min_similarity=0.999, min_asked_similarity=0.9, max_asked=1)
    merged, undecided = merge_similar(made.entities, found, settings), choose_verdict_pairs(found, settings)
    assert merged == [] or all(merge.score >= 0.999 and merge.rule == "embedding" for merge in merged)
    assert len(undecided) == 1 and 0.9 <= undecided[0].similarity < 0.999


def test_the_order_of_a_pair_does_not_change_the_prompt() -> None:
    shown = show_entities(graph().entities)
    prompt = load_prompt(None, "resolve_entities")
    made = graph()
    [first, *_] = propose(made, 0.5)
    turned = type(first)(first.into, first.row, first.similarity)
    assert verdict_request(shown, first, prompt).messages == verdict_request(shown, turned, prompt).messages


@pytest.mark.parametrize(("reply", "n_merges", "n_failures"), [
    ('{"same": true, "reason": "Both are the 3rd Marquess."}', 1, 0),
    ('{"same": false, "reason": "Two people."}', 0, 0),
    ("I cannot tell.", 0, 1),
])  # fmt: skip
def test_a_verdict_merges_keeps_apart_or_fails_alone(
    tmp_path: Path, reply: str, n_merges: int, n_failures: int
) -> None:
    made = graph()
    found = propose(made, 0.99)
    with running_model_server(script=lambda request: reply) as server:
        model = chat_model(server.base_url, tmp_path)
        merges, failures = request_verdicts(made.entities, found[:1], load_prompt(None, "resolve_entities"), model)
    assert (len(merges), len(failures)) == (n_merges, n_failures)
    assert all(merge.rule == "verdict" and "3rd Marquess" in merge.evidence for merge in merges)
