from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import graphrag_pipeline
from graphrag_pipeline.engines.embedded.names.spacy_pipeline import BUNDLED, find_entities, load_pipeline, tag_words
from graphrag_pipeline.errors import PipelineError

FOLDER = Path(graphrag_pipeline.__file__).parent / "bundled" / BUNDLED
TEXT = "Angela Merkel met the Bank of England in London on Friday.\n| Ana Ruiz | Tom Okafor |\nShe paid 20 dollars."


def named(text: str, name: str = "") -> list[tuple[str, str]]:
    return [(text[start:end], kind) for start, end, kind in find_entities(text, name)]


def test_people_bodies_and_places_have_our_types_and_amounts_are_no_names() -> None:
    found = dict(named(TEXT))
    assert found["Angela Merkel"] == "PERSON" and found["London"] == "GEO"
    assert found["the Bank of England"] == "ORGANIZATION"
    assert found["Friday"] == found["20 dollars"] == ""


def test_cells_of_a_table_are_apart() -> None:
    assert ("Tom Okafor", "PERSON") in named(TEXT)


def test_a_path_names_the_same_pipeline() -> None:
    assert find_entities(TEXT, str(FOLDER)) == find_entities(TEXT)


def test_a_long_text_is_read_in_parts_with_the_right_places() -> None:
    text = "\n".join(f"Number {n}: Angela Merkel met Tom Okafor in London." for n in range(1_000))
    found = named(text)
    assert len(text) > 40_000 and found.count(("Angela Merkel", "PERSON")) > 900


def test_another_process_finds_the_same() -> None:
    code = f"from {find_entities.__module__} import find_entities; print(find_entities({TEXT!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(find_entities(TEXT))


def test_tags_are_those_of_the_penn_treebank() -> None:
    (tagged,) = tag_words(["The connection pool failed."])
    assert [tag for _, _, tag in tagged] == ["DT", "NN", "NN", "VBD", "."]


def test_names_and_tags_share_one_pipeline() -> None:
    load_pipeline.cache_clear()
    find_entities(TEXT)
    list(tag_words([TEXT]))
    assert load_pipeline.cache_info().currsize == 1


@pytest.mark.parametrize("name", ["no_such_pipeline", "/no/such/folder"])
def test_a_pipeline_that_is_not_there_is_an_error_with_the_way_out(name: str) -> None:
    with pytest.raises(PipelineError, match=r"extraction\.spacy_model.*spacy download"):
        load_pipeline(name)


def test_a_pipeline_without_entities_is_refused(tmp_path: Path) -> None:
    import spacy

    spacy.blank("en").to_disk(tmp_path)
    with pytest.raises(PipelineError, match="no named entities"):
        load_pipeline(str(tmp_path))


def test_the_bundled_files_are_those_of_the_provenance() -> None:
    rows = re.findall(r"\| `(.+?)` \| (\d+) \| `([0-9a-f]{64})` \|", (FOLDER / "PROVENANCE.md").read_text())
    assert len(rows) == 8
    for name, size, sha256 in rows:
        content = (FOLDER / name).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (int(size), sha256), name
