import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.storage.lookups import (
    find_all_rows,
    find_rows,
    hash_strings,
    name_arrays,
    name_key,
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


def test_chinese_characters_are_words_beside_latin_letters_and_in_one_form():
    assert name_key("Python语言") == "python 语 言"
    assert name_key("蕭炎") == name_key("萧炎")


def test_a_snapshot_finds_rows_by_id_as_a_scan_does(tmp_path):
    snapshot = small_index.freeze(tmp_path)
    for table in ("documents", "text_units", "entities", "relationships", "community_reports"):
        ids = snapshot.table(table)["id"].to_pylist()
        assert np.array_equal(snapshot.rows_of(table, [*ids[::-1], "none"]), [*range(len(ids) - 1, -1, -1), -1])
