"""Pages of records: lookup by every kind of name, what a page holds, and what a filter hides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_pipeline.commands.showing import render_page
from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.identity import best_name
from graphrag_pipeline.query.index_reader import IndexReader, SnapshotReader
from graphrag_pipeline.reading.lists import read_relationship
from graphrag_pipeline.reading.lookup import RecordNameError, find_record, list_names
from graphrag_pipeline.reading.records import read_community, read_document, read_entity, read_report
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline_tests.support.corpora import small_index
from graphrag_pipeline_tests.support.roots import open_built


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexReader]:
    snapshot = small_index.freeze(tmp_path_factory.mktemp("read"))
    with IndexReader(snapshot, Settings(), load_static_embeddings()) as opened:
        yield opened


@pytest.mark.parametrize("name", ["SCROOGE", "Scrooge", " scrooge ", "the scrooge", "`Scrooge`"])
def test_an_entity_is_found_by_its_name_in_any_form(reader: SnapshotReader, name: str) -> None:
    page = read_entity(reader, name)
    assert page.title == "SCROOGE"
    assert read_entity(reader, page.id) == read_entity(reader, f"#{page.number}") == page


def test_an_entity_has_its_relationships_communities_and_sentences(reader: SnapshotReader) -> None:
    page = read_entity(reader, "Scrooge")
    assert (page.type, page.names, page.degree, page.n_relationships) == ("PERSON", ("Scrooge",), 2, 2)
    assert page.name == "Scrooge"
    assert {(one.title, one.name) for one in page.relationships} == {
        ("BOB CRATCHIT", "Bob Cratchit"),
        ("MARLEY", "Marley"),
    }
    assert [(one.level, one.size) for one in page.communities] == [(0, 4), (1, 2)]
    assert {(one.path, one.text) for one in page.sentences} == {
        ("b.txt", "Scrooge hired Bob Cratchit."),
        ("a.txt", "Marley haunted Scrooge."),
    }
    for one in page.sentences:
        assert small_index.TEXTS[one.path][one.start : one.end] == one.text
    assert (page.n_text_units, page.n_unnamed, page.has_more_sentences) == (2, 0, False)


@pytest.mark.parametrize(
    ("names", "best"),
    [(("TINY TIM", "Tim", "Tiny Tim"), "Tiny Tim"), (("TINY TIM",), "TINY TIM"), (("Tim",), "Tim"), ((), "TINY TIM")],
)
def test_the_name_to_show_is_a_form_of_the_title_in_small_letters(names: tuple[str, ...], best: str) -> None:
    assert best_name("TINY TIM", names) == best


def test_lists_are_cut_and_counted(reader: SnapshotReader) -> None:
    page = read_entity(reader, "Bob Cratchit", n_most=1)
    assert (len(page.relationships), page.n_relationships) == (1, 2)
    assert (len(page.sentences), page.has_more_sentences) == (1, True)


def test_a_document_is_found_by_path_and_has_its_text_and_entities(reader: SnapshotReader) -> None:
    page = read_document(reader, "B.TXT")
    assert (page.text, page.path, page.metadata) == (small_index.TEXTS["b.txt"], "b.txt", {})
    assert [(one.start, one.end, one.n_entities) for one in page.text_units] == [(0, len(page.text), 3)]
    assert {one.title: one.n_text_units for one in page.entities} == {"BOB CRATCHIT": 1, "SCROOGE": 1, "TINY TIM": 1}


@pytest.mark.parametrize("name", ["ticket-118", "It was late", "2025-03-04_TICKET-118", "TICKET-118: it was late"])
def test_a_document_is_found_by_code_part_of_its_title_and_file_stem(tmp_path: Path, name: str) -> None:
    texts = {
        "a/2025-03-04_TICKET-118.md": "# TICKET-118: it was late\n\nAna Roy slept.\n",
        "b.txt": "TICKET-118 again.",
    }
    with open_built(tmp_path, texts) as index:
        assert read_document(index, name).path == "a/2025-03-04_TICKET-118.md"


def test_a_relationship_that_a_label_makes_is_called_as_the_label(tmp_path: Path) -> None:
    text = "# TICKET-118: it was late\n\n**Incident commander:** Maria Xenakis\n\nMaria Xenakis went home.\n"
    with open_built(tmp_path, {"late.md": text}) as index:
        [neighbour] = read_entity(index, "Maria Xenakis", 10).relationships
        assert (neighbour.title, neighbour.predicates) == ("TICKET-118", ("incident commander",))
        page = read_relationship(index, str(neighbour.number))
        assert page.predicates == neighbour.predicates
        lines = [line.text.strip() for line in render_page(read_entity(index, "maria xenakis"), 0)]
        shown = f"number {page.number}, weight 1, mentions {page.n_mentions}, predicates incident commander"
        assert f"TICKET-118 ({shown})" in lines


def test_a_community_has_its_place_entities_and_report(reader: SnapshotReader) -> None:
    whole = next(page for page in (read_community(reader, str(n)) for n in range(4)) if page.size == 4)
    assert whole.parent is None and {link.level for link in whole.children} == {1}
    assert whole.entities[0].title in ("BOB CRATCHIT", "SCROOGE") and whole.n_relationships == 3
    below = read_community(reader, str(whole.children[0].number))
    assert below.parent is not None and below.parent.number == whole.number
    assert whole.report is not None
    assert read_report(reader, str(whole.report.number)) == whole.report
    assert read_community(reader, whole.id) == whole


def test_a_report_names_what_it_cites_and_the_text_units_behind_it(reader: SnapshotReader) -> None:
    pages = [read_report(reader, str(n)) for n in reader.column("community_reports", "human_readable_id").tolist()]
    assert all(page.content and page.passages and page.n_passages >= len(page.passages) for page in pages)
    assert all(one.path in small_index.TEXTS for page in pages for one in page.passages)


@pytest.mark.parametrize("kind", ["entity", "document", "report"])
def test_a_name_that_is_like_no_other_lists_none_but_says_where_to_look(reader: SnapshotReader, kind: str) -> None:
    with pytest.raises(RecordNameError, match=f"no {kind} is called `Quetzalcoatl`; `graphrag-pipeline sql") as caught:
        find_record(reader, kind, "Quetzalcoatl")
    assert caught.value.nearest == ()


def test_an_unknown_name_lists_the_nearest(reader: SnapshotReader) -> None:
    with pytest.raises(RecordNameError, match="no entity is called `Scroge`; the nearest: SCROOGE") as caught:
        read_entity(reader, "Scroge")
    assert caught.value.nearest[0].title == "SCROOGE" and not caught.value.is_ambiguous


@pytest.mark.parametrize("name", ["", "  ", "#", "-1", "9" * 40, "\x00", "zzzzqqqq", "'; DROP TABLE"])
def test_any_other_text_is_a_clear_error(reader: SnapshotReader, name: str) -> None:
    for read in (read_entity, read_report, read_document, read_community):
        with pytest.raises(RecordNameError, match="is called"):
            read(reader, name)


def test_a_name_of_several_records_lists_their_numbers(tmp_path: Path) -> None:
    tables = small_index.contract_tables()
    titles = ["same"] * tables["documents"].num_rows
    place = tables["documents"].schema.get_field_index("title")
    tables["documents"] = tables["documents"].set_column(place, "title", [titles])
    snapshot = small_index.freeze(tmp_path, tables)
    with pytest.raises(RecordNameError, match=r"names 3 documents: .*number \d.*use one of these") as caught:
        read_document(SnapshotReader(snapshot), "same")
    assert caught.value.is_ambiguous and len(caught.value.nearest) == 3
    snapshot.close()


def test_a_page_under_a_filter_holds_only_records_that_pass(reader: IndexReader) -> None:
    view = reader.where(["path=a.txt"])
    page = read_entity(view, "Scrooge")
    assert {one.title for one in page.relationships} == {"MARLEY"} and page.n_relationships == 1
    assert [one.path for one in page.sentences] == ["a.txt"] and page.n_text_units == 1
    for read, name in ((read_entity, "Tiny Tim"), (read_document, "b.txt")):
        with pytest.raises(RecordNameError):
            read(view, name)
    assert list_names(view, "entity", "", 10) == ["MARLEY", "Marley", "SCROOGE", "Scrooge"]


def test_names_are_completed_in_any_case(reader: SnapshotReader) -> None:
    assert list_names(reader, "entity", "ti", 5) == ["TINY TIM", "Tiny Tim"]
    assert sorted(list_names(reader, "document", "", 9)) == ["a.txt", "b.txt", "c.txt"]
