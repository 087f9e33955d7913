"""The law of the index: after any history of edits, the tables equal those of a rebuild, byte for byte.

Communities continue the published ones. So they and their reports equal those of a rebuild only if nothing was
published since, or after `index --recluster`.
"""

from __future__ import annotations

import functools
import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphrag_pipeline import arrow_columns
from graphrag_pipeline.indexing.communities import leiden
from graphrag_pipeline.indexing.graph import merge
from graphrag_pipeline.pipeline.detected_input import detect_input
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES, STAGES
from graphrag_pipeline.pipeline.staleness import find_stale
from graphrag_pipeline_tests.bench.articles import iterate_articles
from graphrag_pipeline_tests.support.roots import (
    CAROL,
    GOING_ON,
    TWO_BUCKETS,
    build_tables,
    built_root,
    contract_bytes,
    make_root,
    put,
    recluster,
    table_bytes,
)
from graphrag_pipeline_tests.support.thoroughness import repetitions

names = st.sampled_from(["a.txt", "b.md", "folder/a.txt", "c d'é.txt", "records.jsonl"])
sentences = st.sampled_from(
    [
        "They say that Scrooge met Marley.",
        "At noon Bob Cratchit saw Tiny Tim.",
        "It was Scrooge's nephew Fred who laughed.",
        "In London the fog hid Bob Cratchit.",
        "\n\n## A heading\n\n",
        "Nobody spoke.",
    ]
)
texts = st.lists(sentences, min_size=1, max_size=6).map(" ".join)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), names, texts),
        st.tuples(st.just("delete"), names),
        st.tuples(st.just("move"), names, names),
    ),
    min_size=1,
    max_size=4,
)


def content_of(name: str, text: str) -> str:
    if not name.endswith(".jsonl"):
        return text
    import json

    return "\n".join(json.dumps({"id": i, "title": f"t{i}", "text": line}) for i, line in enumerate(text.split(". ")))


def apply(root: Root, step: tuple[str, ...]) -> None:
    folder = root.path / "input"
    target = folder / step[1]
    if step[0] == "write":
        put(root.path, step[1], content_of(step[1], step[2]))
    elif step[0] == "delete":
        target.unlink(missing_ok=True)
    elif target.exists() and step[1].endswith(".jsonl") == step[2].endswith(".jsonl"):
        (folder / step[2]).parent.mkdir(parents=True, exist_ok=True)
        target.rename(folder / step[2])


@functools.cache
def built_once() -> tempfile.TemporaryDirectory[str]:
    """The root that all examples start from, in a folder that is removed at the end."""
    folder = tempfile.TemporaryDirectory()
    build_tables(make_root(Path(folder.name) / "root", {"a.txt": "They say that Scrooge met Marley."}))
    return folder


@settings(max_examples=repetitions(4, thorough=50), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(steps, min_size=1, max_size=3))
def test_an_updated_index_equals_a_rebuild(history: list[list[tuple[str, ...]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(Path(built_once().name) / "root", Path(folder) / "updated")
        updated = Root(Path(folder) / "updated")
        for batch in history:
            for step in batch:
                apply(updated, step)
            build_tables(updated)
        rebuilt = make_root(Path(folder) / "rebuilt", {})
        shutil.copytree(updated.path / "input", rebuilt.path / "input", dirs_exist_ok=True)
        build_tables(rebuilt)
        assert table_bytes(updated) == table_bytes(rebuilt)


def test_a_published_index_equals_a_rebuild_but_for_communities_and_wholly_after_a_recluster(tmp_path: Path) -> None:
    made = iterate_articles(repetitions(3, thorough=5))
    articles = {article.name: f"{article.title}\n\n{article.text}\n" for article in made}
    last = max(articles)
    updated = make_root(tmp_path / "updated", {name: text for name, text in articles.items() if name != last})
    build_tables(updated, ALL_STAGES)
    first = updated.snapshots.current()
    put(updated.path, last, articles[last])
    build_tables(updated, ALL_STAGES)
    assert updated.tables.need("communities").based_on == first
    assert build_tables(updated, ALL_STAGES) == []  # publishing makes nothing stale
    rebuilt = make_root(tmp_path / "rebuilt", articles)
    build_tables(rebuilt)
    independent = set(STAGES) - set(GOING_ON)
    assert table_bytes(updated, independent) == table_bytes(rebuilt, independent)
    recluster(updated)
    assert table_bytes(updated) == table_bytes(rebuilt)
    assert build_tables(updated, ALL_STAGES) == []


def test_two_builds_in_two_folders_are_equal_byte_for_byte(tmp_path: Path) -> None:
    everything = tuple(ALL_STAGES)
    one, two = (
        built_root(tmp_path / "one", stages=everything),
        make_root(tmp_path / "two", dict(reversed(CAROL.items()))),
    )
    build_tables(two, everything)
    assert table_bytes(one) == table_bytes(two)
    assert contract_bytes(one) == contract_bytes(two)
    assert one.snapshots.current() == two.snapshots.current()


def test_a_corpus_too_large_for_narrow_columns_and_one_range_is_equal_byte_for_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if 64 bytes of text were 2 GiB, and 20 mentions a million."""
    everything = tuple(ALL_STAGES)
    small, large = built_root(tmp_path / "small", stages=everything), make_root(tmp_path / "large")
    monkeypatch.setattr(arrow_columns, "MAX_BYTES", 64)
    monkeypatch.setattr(merge, "RANGE_ROWS", 20)
    monkeypatch.setattr(merge, "MAX_ROWS_IN_MEMORY", 0)
    monkeypatch.setattr(leiden, "_SLICE_ROWS", 3)
    build_tables(large, everything)
    entities = large.tables.read("entities")
    assert entities.schema.field("descriptions").type == pa.large_list(entities["descriptions"].type.value_field)
    assert pa.types.is_large_string(entities["title"].type)
    assert table_bytes(small) == table_bytes(large)
    assert contract_bytes(small) == contract_bytes(large)
    put(large.path, "one.txt", CAROL["one.txt"] + " Scrooge frowned at Fezziwig.")
    build_tables(large, everything)  # it goes on from the index of before


def test_an_edit_runs_its_bucket_and_nothing_of_the_others(tmp_path: Path) -> None:
    root = built_root(tmp_path, settings="storage:\n  n_buckets: 4\n")
    put(root.path, "one.txt", CAROL["one.txt"] + " Scrooge frowned at Fezziwig.")
    ran = build_tables(root)
    assert len({partition for _, partition in ran if partition != "all"}) == 1


_FROM_GRAPH = {
    "graph", "summarized_descriptions", "communities", "community_reports", "entity_embeddings",
    "relationship_embeddings", "report_embeddings",
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("reports:\n  max_input_tokens: 4000\n", {"community_reports", "report_embeddings"}),
        ("local_search:\n  top_k_entities: 3\n", set()),
        ("graph:\n  max_memory: 1GB\n", set()),
        ("graph:\n  weight: n_mentions\n", _FROM_GRAPH),
        ("resolution:\n  rules: false\n", _FROM_GRAPH),
        ("resolution:\n  rules: [unicode, alias]\n", _FROM_GRAPH),
    ],
)
def test_a_changed_setting_makes_its_stages_stale(tmp_path: Path, change: str, expected: set[str]) -> None:
    built_root(tmp_path)
    (tmp_path / "settings.yaml").write_text(TWO_BUCKETS + change)
    root = Root(tmp_path)
    stale = find_stale(root, detect_input(root))
    assert {item.stage for item in stale} - {"index_candidate", "index_snapshot"} == expected


def test_a_touched_file_is_not_stale(tmp_path: Path) -> None:
    root = built_root(tmp_path)
    for file in (root.path / "input").iterdir():
        file.write_bytes(file.read_bytes())
    assert build_tables(root) == []
