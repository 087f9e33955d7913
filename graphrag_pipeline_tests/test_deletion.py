"""A deleted document leaves no trace in the next index: the tables are those of a corpus that never had it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, STAGES
from graphrag_pipeline.storage.vectors.folders import read_table
from graphrag_pipeline.tables import STAGE_TABLES
from graphrag_pipeline_tests.support.roots import build_tables, make_root, put, table_bytes
from graphrag_pipeline_tests.support.thoroughness import repetitions, usually

PEOPLE = ("Quillfeather", "Brambleton", "Ostrander", "Wimbleford")
STORIES = (
    "They say that {0} met Scrooge. Everyone knew that {0} and Marley were partners.",
    "At noon Bob Cratchit saw {0}. In London the fog hid {0} and Tiny Tim.",
    "Scrooge signed the register of {0}. {0} was Scrooge's friend, and Scrooge wept.",
)
corpora = st.dictionaries(st.sampled_from(PEOPLE), st.sampled_from(STORIES), min_size=2)


def name_of(person: str) -> str:
    return f"{person.lower()}.txt"


def write(root: Root, corpus: dict[str, str]) -> None:
    for person, story in corpus.items():
        put(root.path, name_of(person), story.format(person))


def snapshot_text(root: Root) -> str:
    """Return all text that readers of the published snapshot can get, in lower case."""
    snapshot = root.snapshots.open()
    parts = [str(snapshot.table(name).to_pylist()) for name in snapshot.manifest.tables]
    for name in snapshot.manifest.vectors:
        collection = snapshot.vectors(name)
        rows = read_table(collection.path, collection.folder.name)
        parts += [*rows.texts.to_pylist(), *rows.attributes.to_pylist()]
    return " ".join(parts).lower()


@settings(max_examples=repetitions(2, thorough=30), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(corpora, st.data())
def test_the_tables_are_those_of_a_corpus_that_never_had_it(corpus: dict[str, str], data: st.DataObject) -> None:
    deleted = data.draw(st.sets(st.sampled_from(sorted(corpus)), min_size=1))
    with tempfile.TemporaryDirectory() as folder:
        root, never = make_root(Path(folder) / "root", {}), make_root(Path(folder) / "never", {})
        write(root, corpus)
        build_tables(root)
        for person in deleted:
            (root.path / "input" / name_of(person)).unlink()
        build_tables(root)
        write(never, {person: story for person, story in corpus.items() if person not in deleted})
        build_tables(never)
        assert table_bytes(root) == table_bytes(never)


@settings(max_examples=repetitions(1, thorough=6), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(corpora, st.data())
def test_no_reader_finds_the_deleted_document(corpus: dict[str, str], data: st.DataObject) -> None:
    deleted = data.draw(st.sampled_from(sorted(corpus)))
    with tempfile.TemporaryDirectory() as folder:
        root = make_root(Path(folder) / "root", {})
        write(root, corpus)
        build_tables(root, tuple(ALL_STAGES))
        assert deleted.lower() in snapshot_text(root)
        (root.path / "input" / name_of(deleted)).unlink()
        build_tables(root, tuple(ALL_STAGES))
        assert deleted.lower() not in snapshot_text(root)


@pytest.mark.parametrize("stages", usually([tuple(STAGES), tuple(ALL_STAGES)], tuple(ALL_STAGES)))
def test_without_any_document_every_table_is_empty(tmp_path: Path, stages: tuple[str, ...]) -> None:
    root = make_root(tmp_path)
    build_tables(root, stages)
    for file in (root.path / "input").iterdir():
        file.unlink()
    build_tables(root, stages)
    n_rows = {
        name: sum(root.tables.need(name, p).n_rows for p in STAGES[table.owner].partitions(root.settings))
        for name, table in STAGE_TABLES.items()
    }
    assert set(n_rows.values()) == {0}
