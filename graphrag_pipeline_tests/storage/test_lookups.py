import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.storage.arrays import ArrayFolder, write_arrays
from graphrag_pipeline.storage.lookups import (
    find_all_rows,
    find_rows,
    hash_strings,
    name_arrays,
    name_key,
    name_key_of_version_1,
    read_name_arrays,
    sort_hashes,
)
from graphrag_pipeline_tests.support.corpora import small_index


@given(st.lists(st.text(max_size=8), unique=True), st.text(max_size=8))
def test_every_string_is_found_in_its_row_and_no_other(values, other):
    hashes, rows = sort_hashes(hash_strings(values))
    assert find_rows(hashes, rows, values).tolist() == list(range(len(values)))
    assert find_rows(hashes, rows, [other])[0] == (values.index(other) if other in values else -1)


def test_entities_that_share_a_name_are_all_found():
    hashes, rows = name_arrays(["HENRY KING", "HENRY KING (DIRECTOR)"], [["King Henry"], ["Henry King"]])
    assert find_all_rows(hashes, rows, "henry king") == [0, 1]
    assert find_all_rows(hashes, rows, "king henry") == [0]
    assert find_all_rows(hashes, rows, "henry") == []


def test_an_article_and_case_make_no_difference_to_a_name():
    assert name_key("The Ghost of  Christmas") == name_key("GHOST OF CHRISTMAS") == "ghost of christmas"
    assert name_key("萧炎") == "萧 炎"


def test_chinese_characters_are_words_beside_latin_letters_and_in_one_form():
    assert name_key("Python语言") == "python 语 言"
    assert name_key("蕭炎") == name_key("萧炎")
    assert name_key_of_version_1("Python语言") == "python语言" and name_key_of_version_1("蕭炎") == "蕭 炎"
    assert name_key_of_version_1("The Café-Bar") == name_key("The Café-Bar")


def test_name_keys_of_an_earlier_release_are_computed_again_only_if_they_may_differ(tmp_path):
    for titles, is_again in ((["BOB CRATCHIT", "CAFÉ"], False), (["BOB CRATCHIT", "蕭炎"], True)):
        names = pa.array([["Bob"], []], pa.list_(pa.string()))
        entities = pa.table({"title": titles, "names": names})
        hashes, rows = name_arrays(titles, entities["names"], name_key_of_version_1)
        arrays = ArrayFolder(tmp_path / write_arrays(tmp_path, {"name_hashes": hashes, "name_rows": rows}))
        read = read_name_arrays(arrays, lambda entities=entities: entities)
        assert np.array_equal(read[0], hashes) is not is_again
        assert find_all_rows(*read, name_key(titles[1])) == [1] and find_all_rows(*read, "bob") == [0]


def test_a_snapshot_of_this_release_needs_no_table_to_find_names(tmp_path):
    snapshot = small_index.freeze(tmp_path)
    hashes, rows = read_name_arrays(snapshot.lookups, lambda: pytest.fail("the table was read"))
    assert np.array_equal(hashes, snapshot.lookups.array("name_hashes")) and len(rows) == len(hashes)


def test_a_snapshot_finds_rows_by_id_as_a_scan_does(tmp_path):
    snapshot = small_index.freeze(tmp_path)
    for table in ("documents", "text_units", "entities", "relationships", "community_reports"):
        ids = snapshot.table(table)["id"].to_pylist()
        assert np.array_equal(snapshot.rows_of(table, [*ids[::-1], "none"]), [*range(len(ids) - 1, -1, -1), -1])
