"""Searches under metadata filters: nothing of a document that does not pass is read, said, cited or sent to a model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.query.filtering import restricted_snapshot
from graphrag_pipeline.query.index.explain import explain_strategies
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.index_reader import MAX_VIEWS
from graphrag_pipeline.query.methods.registry import METHODS
from graphrag_pipeline.query.search_result import SearchResult
from graphrag_pipeline.query.selection.strategies import STRATEGIES
from graphrag_pipeline.settings.settings import LocalSearchSettings
from graphrag_pipeline_tests.bench.large_index import Shape, name_of, publish_large_index
from graphrag_pipeline_tests.model_server import running_model_server
from graphrag_pipeline_tests.support.models.model_index import open_with_model
from graphrag_pipeline_tests.support.roots import build_tables, make_root, put

NEWS = [
    ("2022-01-05", "Reuters", "Anna Keller joined Nordwerk in Bergen. Anna Keller designed the quokka turbine. "
     "Nordwerk paid Anna Keller in wombats. Olga Brandt audited Nordwerk."),
    ("2023-06-11", "BBC", "Nordwerk opened a plant in Oslo. Anna Keller greeted Mayor Lund. Mayor Lund praised "
     "Nordwerk for its narwhal harbour. Anna Keller thanked Mayor Lund."),
    ("2024-02-20", "Reuters", "Anna Keller left Nordwerk in spring. Anna Keller founded Sudwind with Piet Maas. "
     "Piet Maas invested in Sudwind. Nordwerk sued Sudwind."),
    ("2024-09-30", "BBC", "Piet Maas sold Sudwind to Nordwerk. Anna Keller returned to Nordwerk. Piet Maas moved to "
     "Lisbon. Anna Keller met Piet Maas in Lisbon."),
]  # fmt: skip
SECRETS = ("quokka", "wombats", "narwhal", "harbour", "olga", "brandt", "lund", "praised")
"""Words that only documents before 2024 say."""
SINCE_2024 = ["year>=2024"]
QUESTIONS = [
    "What did Anna Keller do at Nordwerk?",
    "What is it about?",
    "Who praised the narwhal harbour of Nordwerk?",
]


@pytest.fixture(scope="module")
def news(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphIndex]:
    root = make_root(tmp_path_factory.mktemp("news") / "root", {})
    rows = [
        {"id": str(n), "title": f"Item {n}", "creation_date": date, "source": source, "text": text}
        for n, (date, source, text) in enumerate(NEWS)
    ]
    put(root.path, "news.jsonl", "\n".join(json.dumps(row) for row in rows))
    build_tables(root, tuple(ALL_STAGES))
    with GraphIndex.open(root.path) as index:
        yield index


def said(result: SearchResult) -> str:
    """All that a result holds but the question itself."""
    written = result.to_dict() | {"question": ""}
    return json.dumps(written, ensure_ascii=False).casefold().replace(result.question.casefold(), "")


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    ("method", "options"),
    [
        *((method, {}) for method in METHODS),
        *(("local", {"strategy": strategy}) for strategy in STRATEGIES),
        ("global", {"selection": "static", "level": 0}),
        ("global", {"threshold": 0, "keep_parent": True}),
    ],
)
def test_nothing_of_other_documents_is_told(
    news: GraphIndex, method: str, options: dict[str, object], question: str
) -> None:
    result = news.search(question, method=method, filters=SINCE_2024, **options)
    asked = set(question.casefold().rstrip("?").split())
    assert not [word for word in SECRETS if word in said(result) and word not in asked]
    assert result.selection["filters"] == SINCE_2024 and result.selection["documents_passing"] == 2
    for citation in result.citations:
        assert citation.document_title in ("Item 2", "Item 3")
        assert not any(word in citation.quote.casefold() for word in SECRETS)
    titles = {unit.document_title for unit in result.context.text_units}
    assert titles <= {"Item 2", "Item 3"}
    assert titles or method in ("global", "drift", "lazy", "auto")


@pytest.mark.parametrize("method", METHODS)
def test_no_model_reads_other_documents(news: GraphIndex, tmp_path: Path, method: str) -> None:
    with running_model_server() as server:
        index = open_with_model(news, tmp_path, server, answers={"engine": "model"}, rating={"engine": "model"})
        result = index.search(QUESTIONS[0], method=method, filters=SINCE_2024)
    sent = json.dumps([call.body for call in server.calls]).casefold()
    assert "anna keller" in sent.replace(QUESTIONS[0].casefold(), "")
    assert not [word for word in SECRETS if word in sent + said(result)]


@pytest.mark.parametrize("method", METHODS)
def test_a_filter_that_all_documents_pass_changes_nothing(news: GraphIndex, method: str) -> None:
    filtered, whole = (news.search(QUESTIONS[0], method=method, filters=f) for f in (["title~item"], []))
    assert (filtered.answer, filtered.citations, filtered.context) == (whole.answer, whole.citations, whole.context)


@pytest.mark.parametrize("method", METHODS)
def test_where_no_document_passes_the_answer_says_so(news: GraphIndex, method: str) -> None:
    filters = ["year>2024", "source=bbc"]
    result = news.search(QUESTIONS[0], method=method, filters=filters)
    assert result.answer == (
        "No document passes year>2024 and source=bbc (4 documents looked at). Passing each alone: year>2024: 0, "
        "source=bbc: 2."
    )
    assert result.context.is_empty and result.selection["documents_passing"] == 0
    bare = news.search(QUESTIONS[0], method=method, filters=filters, context_only=True)
    assert bare.answer == "" and "that passes year>2024 and source=bbc" in bare.to_markdown()


def test_a_description_that_other_documents_share_is_made_again_from_those_that_pass(news: GraphIndex) -> None:
    [keller] = news.names.find("Anna Keller")
    [whole] = news.snapshot.take("entities", [keller])
    assert "quokka" in whole["description"]
    view = news.where(SINCE_2024)
    [shown] = view.snapshot.take("entities", [keller])
    sentences = [sentence for _, _, text in NEWS[2:] for sentence in text.split(". ")]
    assert shown["description"]
    assert all(part.rstrip(".") in {s.rstrip(".") for s in sentences} for part in shown["description"].split(". "))
    [maas] = news.names.find("Piet Maas")  # only documents that pass speak of him
    assert view.snapshot.take("entities", [maas]) == news.snapshot.take("entities", [maas])
    [titles, descriptions] = view.snapshot.take_columns("entities", [maas, keller], ["title", "description"])
    assert titles == ["PIET MAAS", "ANNA KELLER"] and descriptions[1] == shown["description"]


def test_what_does_not_pass_cannot_be_read_or_found(news: GraphIndex) -> None:
    view = news.where(SINCE_2024)
    [brandt] = news.names.find("Olga Brandt")
    assert view.names.find("Olga Brandt") == []
    with pytest.raises(PipelineError, match=r"entities: row .* does not pass year>=2024"):
        view.snapshot.take("entities", [brandt])
    with pytest.raises(PipelineError, match=r"entities: row .* does not pass year>=2024"):
        view.snapshot.take_columns("entities", [brandt], ["title"])
    for table in ("entities", "text_units", "community_reports", "relationships"):
        numbers = news.column(table, "human_readable_id").tolist()
        rows = view.rows_of_numbers(table, "human_readable_id", numbers)
        assert (rows >= 0).tolist() == view.row_mask(table).tolist()


def test_filters_are_anded_whatever_their_order_and_nest(news: GraphIndex) -> None:
    both = news.where(["year>=2024", "source=bbc"])
    other = news.where(["source=bbc"]).where(["year>=2024"])
    assert both.document_mask is not None and other.document_mask is not None
    for table, mask in both.document_mask.masks.items():
        assert np.array_equal(mask, other.document_mask.masks[table])
    assert news.where([]) is news and news.where(["source=bbc"]) is news.where(" source=bbc ")


def test_only_the_last_views_are_kept(news: GraphIndex) -> None:
    views = [news.where([f"year>={year}"]) for year in range(2000, 2001 + MAX_VIEWS)]
    assert news.where([f"year>={2000 + MAX_VIEWS}"]) is views[-1]
    assert news.where(["year>=2000"]) is not views[0]


def test_streams_async_code_and_explanations_hold_filters(news: GraphIndex) -> None:
    *_, streamed = news.stream(QUESTIONS[0], filters=SINCE_2024)
    awaited = asyncio.run(news.asearch(QUESTIONS[0], filters=SINCE_2024))
    assert isinstance(streamed, SearchResult)
    assert streamed.answer == awaited.answer == news.search(QUESTIONS[0], filters=SINCE_2024).answer
    picks = explain_strategies(news.where(SINCE_2024), QUESTIONS[0], LocalSearchSettings())
    assert {pick.document for pick in picks} == {"Item 2", "Item 3"}


@pytest.mark.parametrize("kept", ["a.txt", "b.txt", "c.txt", "a.txt,b.txt", "a.txt,c.txt", "b.txt,c.txt"])
def test_masks_say_what_the_tables_say(small: GraphIndex, kept: str) -> None:
    """By hand, from the lists of ids in the contract tables."""
    document_mask = small.where([f"title in {kept}"]).document_mask
    assert document_mask is not None
    tables = {name: small.snapshot.table(name).to_pylist() for name in document_mask.masks}
    documents = {d["id"] for d in tables["documents"] if d["title"] in kept.split(",")}
    units = {u["id"] for u in tables["text_units"] if u["document_id"] in documents}
    whole = {e["id"] for e in tables["entities"] if set(e["text_unit_ids"]) <= units}
    told_of = {c["subject_id"]: c["text_unit_id"] in units for c in tables["covariates"]}
    titles = {e["id"]: e["title"] for e in tables["entities"]}
    communities = {
        c["community"]
        for c in tables["communities"]
        if set(c["entity_ids"]) <= whole and all(told_of.get(titles[e], True) for e in c["entity_ids"])
    }
    expected = {
        "documents": [d["id"] in documents for d in tables["documents"]],
        "text_units": [u["id"] in units for u in tables["text_units"]],
        "covariates": [c["text_unit_id"] in units for c in tables["covariates"]],
        "entities": [bool(units & set(e["text_unit_ids"])) for e in tables["entities"]],
        "relationships": [bool(units & set(r["text_unit_ids"])) for r in tables["relationships"]],
        "communities": [c["community"] in communities for c in tables["communities"]],
        "community_reports": [r["community"] in communities for r in tables["community_reports"]],
    }
    assert {name: mask.tolist() for name, mask in document_mask.masks.items()} == expected


# ---------------------------------------------------------------------------------------------- k of a large index


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphIndex]:
    root = tmp_path_factory.mktemp("large") / "root"
    publish_large_index(root, Shape(1_200, 2_000, 1_200, 50, n_units_per_document=6, n_sentences=2))
    with GraphIndex.open(root) as index:
        yield index


@pytest.mark.parametrize("max_ids", [0, restricted_snapshot.MAX_IDS])
@pytest.mark.parametrize(("condition", "share"), [("title in report 77,report 78", 0.01), ("title!=report 7", 0.995)])
def test_a_search_finds_exactly_k_that_pass(
    large: GraphIndex, monkeypatch: pytest.MonkeyPatch, max_ids: int, condition: str, share: float
) -> None:
    """Told the ids of what passes, or looking for more than k: the k best of what passes."""
    monkeypatch.setattr(restricted_snapshot, "MAX_IDS", max_ids)
    view = large.where([condition])
    assert view.row_mask("documents").mean() == pytest.approx(share, abs=0.001)
    question = large.embed([f"What did {name_of(3)} write?"])[0]
    for name, table, k in (("default-text_unit-text", "text_units", 5), ("default-entity-description", "entities", 9)):
        ids = np.array(large.snapshot.table(table)["id"].to_pylist())[view.row_mask(table)]
        scores = large.snapshot.vectors(name).vectors(ids.tolist()) @ question
        found = view.snapshot.vectors(name).search(question, k)
        assert len(found) == k and {record_id for record_id, _ in found} <= set(ids)
        assert [score for _, score in found] == pytest.approx(sorted(scores, reverse=True)[:k], abs=1e-4)
    units = view.snapshot.vectors("default-text_unit-text")
    by_words = large.snapshot.vectors("default-text_unit-text").search_text("the letter", 7, units.ids())
    assert len(by_words) == 7
    assert [score for _, score in units.search_text("the letter", 7)] == [score for _, score in by_words]
    assert len(view.search(f"What did {name_of(3)} write?", context_only=True).context.entities) == 10
