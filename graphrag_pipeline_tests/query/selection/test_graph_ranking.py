"""The order that joins basic search and PageRank: bridges where documents are articles, else basic search first."""

from __future__ import annotations

import pytest

from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.selection.graph_ranking import rank_with_graph
from graphrag_pipeline.query.selection.hybrid_ranking import rank_text_units
from graphrag_pipeline_tests.support.roots import open_built

ARTICLES = {
    "Silver Harbour": "Silver Harbour is a 1971 film directed by Ada Marsh and starring Tom Pell.",
    "Ada Marsh": "Ada Marsh grew up in Lisbon. Her mother was a baker.",
    "Tom Pell": "Tom Pell played cricket before he acted.",
    "Green Lantern Road": "Green Lantern Road is a film about the director of a bank.",
}


def open_index(folder, documents: dict[str, str]) -> GraphIndex:
    files = {f"{i}.csv": f'id,title,text\n1,{title},"{text}"\n' for i, (title, text) in enumerate(documents.items())}
    return open_built(folder / "root", files)


def rank(index: GraphIndex, question: str) -> tuple[list[int], list[int]]:
    """Return the rows of basic search, and those of the joined order."""
    ranked = rank_text_units(index, question, 30)
    found = index.snapshot.rows_of("text_units", [unit_id for unit_id, _ in ranked]).tolist()
    scored = list(zip(found, [score for _, score in ranked], strict=True))
    rows, scores = rank_with_graph(index, index.names.take_apart(question), scored)
    assert scores.tolist() == sorted(scores, reverse=True)
    return found, rows.tolist()


def text_of(index: GraphIndex, row: int) -> str:
    return index.snapshot.take("text_units", [row], ["text"])[0]["text"]


def test_bridges_come_before_a_document_that_shares_more_words(tmp_path) -> None:
    with open_index(tmp_path, ARTICLES) as index:
        found, rows = rank(index, "In which city did the director of the film Silver Harbour grow up?")
        assert text_of(index, found[1]).startswith("Green Lantern Road")
        first = [" ".join(text_of(index, row).split()[:2]) for row in rows]
        assert (first[0], {*first[1:3]}) == ("Silver Harbour", {"Ada Marsh", "Tom Pell"})


@pytest.mark.parametrize("question", ["Where did Ada Marsh grow up?", "What is a film about the director of a bank?"])
def test_basic_search_keeps_the_first_places_where_no_document_is_about_a_name(tmp_path, question: str) -> None:
    headlines = {f"{i}. Report of the day": text for i, text in enumerate(ARTICLES.values())}
    with open_index(tmp_path, headlines) as index:
        found, rows = rank(index, question)
        assert rows[: len(found)] == found[: len(rows)]
