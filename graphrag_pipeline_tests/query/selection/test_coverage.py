"""Which matched entities a local context hears, whole or by an excerpt, on Microsoft's index of A Christmas Carol."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.question import content_words
from graphrag_pipeline.query.search.local import LocalSelection, select_with_candidates
from graphrag_pipeline.query.selection.coverage import (
    MIN_EXCERPT_TOKENS,
    cost_of,
    pick_for_entities,
    pick_with_excerpts,
)
from graphrag_pipeline.query.selection.excerpts import ExcerptFinder
from graphrag_pipeline.query.selection.local_text_units import TextUnitPool, gather_offers, join_offers
from graphrag_pipeline.query.selection.mentions import WordedText, find_half, find_mentions, words_of_name
from graphrag_pipeline.query.selection.reranking import Candidates, Pick
from graphrag_pipeline.query.selection.strategies import STRATEGIES
from graphrag_pipeline.query.understanding.entity_matching import begin_matching, name_entities
from graphrag_pipeline.settings.settings import LocalSearchSettings
from graphrag_pipeline.text.tokens import count_tokens
from graphrag_pipeline_tests.model_server import running_model_server
from graphrag_pipeline_tests.support.models.model_index import open_with_model
from graphrag_pipeline_tests.support.thoroughness import sums

QUESTIONS = (
    "How does the Cratchit family keep Christmas?",
    "What happens to Tiny Tim?",
    "What did the Ghost of Christmas Past show Scrooge?",
    "Who are Ignorance and Want?",
)
OVERLAPPING = (
    "How do the Cratchits celebrate Christmas?",
    "Which portly gentlemen collect for charity?",
)
"""Questions whose matched entities are mentioned where two of the text units overlap."""
WITH_EXCERPTS = sorted(set(STRATEGIES) - {"depth_first"})
COVERING = ("minimum_guarantee", "round_robin", "weighted_quota", "per_entity_cap", "balanced", "graph")


def select(index: GraphIndex, question: str, **options: object) -> LocalSelection:
    return select_with_candidates(index, question, LocalSearchSettings(**options))


def matched(index: GraphIndex, question: str, **options: object) -> list[str]:
    return [
        entity.title for entity in select(index, question, **{**options, "max_context_tokens": 60_000}).context.entities
    ]


@pytest.mark.parametrize(("strategy", "max_tokens"), sums(STRATEGIES, [100, 400, 1_500, 4_000, 12_000]))
def test_a_matched_entity_is_heard_or_named_and_the_budget_holds(
    carol: GraphIndex, strategy: str, max_tokens: int
) -> None:
    for question in QUESTIONS:
        found = select(carol, question, strategy=strategy, max_context_tokens=max_tokens)
        heard = {title for unit in found.context.text_units for title in unit.entities}
        assert heard.isdisjoint(found.unheard)
        assert heard | set(found.unheard) == set(matched(carol, question, strategy=strategy))
        assert found.context.n_tokens <= max_tokens


@pytest.mark.parametrize("strategy", COVERING)
def test_default_contexts_hear_all_entities_that_their_texts_name(carol: GraphIndex, strategy: str) -> None:
    without, unheard = 0, []
    for question in QUESTIONS:
        without += len(select(carol, question, strategy=strategy, excerpts=False).unheard)
        unheard += select(carol, question, strategy=strategy).unheard
    assert without >= 5
    assert len(unheard) <= 1
    units = carol.snapshot.table("text_units")["text"].to_pylist()
    for row in carol.snapshot.rows_of("entities", unheard, "title"):
        texts = [units[unit] for unit in carol.snapshot.adjacency.of("entity_text_units", int(row))]
        names = carol.snapshot.take("entities", [int(row)], ["names"])[0]["names"]
        assert not any(list(find_mentions(text, names)) for text in texts)
        assert not find_half(
            [WordedText.of(text) for text in texts], [words for name in names for words in words_of_name(name)]
        )


@pytest.mark.parametrize("strategy", WITH_EXCERPTS)
def test_an_excerpt_has_a_name_of_each_entity_or_half_the_words_of_one(carol: GraphIndex, strategy: str) -> None:
    excerpts = [unit for question in QUESTIONS for unit in select(carol, question, strategy=strategy).context.excerpts]
    assert excerpts
    for unit in excerpts:
        for title in unit.entities:
            [row] = carol.snapshot.rows_of("entities", [title], "title")
            names = [title, *carol.snapshot.take("entities", [int(row)], ["names"])[0]["names"]]
            parts = [part for name in names for part in (name, *re.split(r"[()]", name)) if part.strip()]
            shared = [len(content_words(part) & content_words(unit.text)) / len(content_words(part)) for part in parts]
            assert max(shared) >= 0.5, (title, unit.text)


def test_depth_first_has_no_excerpts_unless_they_are_set(carol: GraphIndex) -> None:
    options = {"strategy": "depth_first", "max_context_tokens": 6_000}
    plain = select(carol, QUESTIONS[0], **options)
    assert not plain.context.excerpts and plain.unheard
    assert select(carol, QUESTIONS[0], excerpts=True, packing="shared", **options).context.excerpts
    for without in ({"excerpts": False}, {"packing": "strict"}):
        assert not select(carol, QUESTIONS[0], strategy="round_robin", **without).context.excerpts
    with pytest.raises(ValueError, match="excerpts are not possible with strict packing"):
        LocalSearchSettings(strategy="depth_first", excerpts=True)


@pytest.mark.parametrize("strategy", WITH_EXCERPTS)
def test_an_excerpt_has_exact_offsets_mentions_its_entities_and_is_no_repetition(
    carol: GraphIndex, strategy: str
) -> None:
    n_excerpts = 0
    for question in (*QUESTIONS, *OVERLAPPING):
        context = select(carol, question, strategy=strategy).context
        whole = [unit for unit in context.text_units if not unit.is_excerpt]
        shown = {(unit.document_id, place) for unit in whole for place in range(unit.start or 0, unit.end or 0)}
        for unit in context.excerpts:
            n_excerpts += 1
            [row] = carol.snapshot.rows_of("text_units", [unit.id])
            [text] = [record["text"] for record in carol.snapshot.take("text_units", [int(row)], ["text"])]
            [document] = carol.snapshot.rows_of("documents", [unit.document_id])
            [source] = [record["text"] for record in carol.snapshot.take("documents", [int(document)], ["text"])]
            assert text[unit.excerpt_start : unit.excerpt_end] == unit.text == source[unit.start : unit.end]
            assert unit.entities and unit.n_tokens < 300
            places = {(unit.document_id, place) for place in range(unit.start or 0, unit.end or 0)}
            assert not places & shown
            shown |= places
        assert [u.is_excerpt for u in context.text_units] == sorted(u.is_excerpt for u in context.text_units)
    assert n_excerpts >= 3


def test_with_room_for_hardly_a_text_unit_balanced_takes_the_windows_that_answer(carol: GraphIndex) -> None:
    for question in (*QUESTIONS, "What is Marley's chain made of?"):
        context = select(carol, question, max_context_tokens=2_400).context
        assert context.excerpts == context.text_units and len(context.excerpts) > 2
        scores = [unit.score for unit in context.text_units]
        assert scores == sorted(scores, reverse=True) and min(scores) > 0
        shown: list[tuple[int, int]] = []
        [source] = carol.snapshot.table("documents")["text"].to_pylist()
        for unit in context.excerpts:
            assert unit.text == source[unit.start : unit.end] and count_tokens(unit.text) == unit.n_tokens
            assert all(unit.end <= start or end <= unit.start for start, end in shown)
            shown.append((unit.start or 0, unit.end or 0))
    assert "cash-boxes, keys, padlocks, ledgers, deeds" in " ".join(
        " ".join(unit.text.split()) for unit in context.text_units
    )


def test_text_units_of_which_three_fit_are_read_whole(carol: GraphIndex) -> None:
    context = select(carol, QUESTIONS[0], max_context_tokens=12_000).context
    assert sum(not unit.is_excerpt for unit in context.text_units) >= 3


def test_picks_that_fit_the_budget_exactly_are_taken_and_one_token_less_takes_fewer() -> None:
    candidates = Candidates((np.arange(3),), (np.zeros(3, int),), np.ones(1), np.array([70, 50, 30]))
    pool = TextUnitPool(np.arange(3), candidates, np.arange(0), tuple(Pick(unit, 0) for unit in (2, 0, 1)))
    for budget, units in ((150, [2, 0, 1]), (149, [2, 0]), (100, [2, 0]), (99, [2, 1]), (30, [2]), (29, [])):
        assert [pick.text_unit for pick in pick_for_entities(LocalSearchSettings(), pool, budget)] == units


def test_a_text_unit_and_excerpts_that_fit_the_budget_exactly_are_all_taken(carol: GraphIndex) -> None:
    question, settings = QUESTIONS[0], LocalSearchSettings()
    matches = begin_matching(carol, question, 5, name_entities(carol, question, settings), settings)()
    rows, candidates = join_offers(carol, matches, gather_offers(carol, matches), np.zeros(0, np.int64))
    finder = ExcerptFinder(carol, question, matches, TextUnitPool(rows, candidates, np.zeros(0, np.int64)))
    whole = Pick(int(candidates.text_units[0][0]), 0)

    def pick(budget: int) -> list[Pick]:
        def choose(left: int) -> list[Pick]:
            return [whole] if left >= cost_of(candidates, [whole]) else []

        return pick_with_excerpts(choose, candidates, budget, finder, max_tokens=MIN_EXCERPT_TOKENS)

    everything = pick(10_000)
    cost = cost_of(candidates, everything)
    assert everything[0].excerpt is None and len(everything) > 1
    assert pick(cost) == everything != pick(cost - 1)


def test_an_entity_whose_mention_lies_in_a_picked_neighbour_is_heard_there(carol: GraphIndex) -> None:
    context = select(carol, OVERLAPPING[1], strategy="per_entity_cap").context
    [row] = carol.snapshot.rows_of("entities", ["GENTLEMAN"], "title")
    own = carol.snapshot.take("entities", [int(row)], ["text_unit_ids"])[0]["text_unit_ids"]
    heard = [unit for unit in context.text_units if "GENTLEMAN" in unit.entities]
    assert heard and all(not unit.is_excerpt and unit.id not in own and "gentleman" in unit.text for unit in heard)


def test_results_say_what_is_an_excerpt_and_who_is_unheard(carol: GraphIndex) -> None:
    result = carol.search(QUESTIONS[0], context_only=True, strategy="minimum_guarantee", max_context_tokens=3_000)
    plain = json.loads(result.to_json())
    excerpts = [unit for unit in plain["context"]["text_units"] if unit["is_excerpt"]]
    assert plain["selection"]["excerpts"] == len(excerpts) > 0
    assert plain["selection"]["unheard"] == list(
        select(carol, QUESTIONS[0], strategy="minimum_guarantee", max_context_tokens=3_000).unheard
    )
    shown = result.to_markdown()
    for unit in excerpts:
        assert f"[{unit['human_readable_id']}] {unit['document_title']} (excerpt)\n{unit['text']}" in shown
    assert shown.count("(excerpt)") == len(excerpts)


def test_an_answer_quotes_an_excerpt_with_the_offsets_of_the_document(carol: GraphIndex) -> None:
    result = carol.search("What is said of Old Joe?", strategy="round_robin", max_context_tokens=1_200)
    excerpts = result.context.excerpts
    of_units = [c for c in result.citations if c.kind == "text_unit"]
    quoted = [c for c in of_units if any(c.text_unit_id == unit.id for unit in excerpts)]
    assert quoted
    for citation in quoted:
        [document] = carol.snapshot.rows_of("documents", [citation.document_id])
        text = carol.snapshot.take("documents", [int(document)], ["text"])[0]["text"]
        assert text[citation.start : citation.end] == citation.quote
        assert any(
            u.start <= citation.start and citation.end <= u.end for u in excerpts if u.id == citation.text_unit_id
        )


def test_a_model_that_cites_an_excerpt_is_resolved_to_the_excerpt(carol: GraphIndex, tmp_path: Path) -> None:
    options = {"strategy": "minimum_guarantee", "max_context_tokens": 2_000}
    [excerpt, *_] = carol.search(QUESTIONS[0], context_only=True, **options).context.excerpts
    with running_model_server(lambda request: f"It is so [Data: Sources ({excerpt.human_readable_id})].") as server:
        result = open_with_model(carol, tmp_path, server).search(QUESTIONS[0], **options)
    [citation] = result.citations
    assert citation.text_unit_id == excerpt.id
    excerpts = [unit for unit in result.context.excerpts if unit.id == excerpt.id]
    assert any(unit.start <= citation.start and citation.end <= unit.end for unit in excerpts)
