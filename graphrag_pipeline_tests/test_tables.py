"""The data contract: schemas, ids, names."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.identity import bucket_keys, bucket_of, normalize_title, relationship_id, stable_hash
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline.tables import CONTRACT_TABLES, STAGE_TABLES

names = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30)


@pytest.mark.parametrize("tables", [STAGE_TABLES, CONTRACT_TABLES])
def test_keys_order_and_references_name_columns_that_exist(tables: dict) -> None:
    for table in tables.values():
        assert set(table.key) | set(table.sort_columns) <= set(table.schema.names), table.name
        for column, (other, key) in table.references.items():
            assert column in table.schema.names
            assert key in tables[other].schema.names, f"{table.name}.{column}"


@pytest.mark.parametrize("tables", [STAGE_TABLES, CONTRACT_TABLES])
def test_every_table_and_column_has_a_description_outside_the_schema(tables: dict) -> None:
    for table in tables.values():
        assert table.description.endswith("."), table.name
        assert not [column.name for column in table.columns if not column.description.endswith(".")], table.name
        assert table.schema.metadata is None
        assert all(field.metadata is None for field in table.schema)
        assert table.schema.names == [column.name for column in table.columns]


def test_contract_columns_have_the_type_of_the_stage_column_they_are_derived_from() -> None:
    differing = {
        (name, field.name)
        for name in CONTRACT_TABLES.keys() & STAGE_TABLES.keys()
        for field in CONTRACT_TABLES[name].schema
        if field.name in STAGE_TABLES[name].schema.names and field != STAGE_TABLES[name].schema.field(field.name)
    }
    # GraphRAG counts in int64; offsets of an import may be unknown.
    assert differing == {("text_units", "n_tokens"), ("text_units", "start"), ("text_units", "end")}


def test_every_stage_table_is_owned_by_the_stage_that_lists_it() -> None:
    assert {table: stage.name for stage in STAGES.values() for table in stage.tables} == {
        name: table.owner for name, table in STAGE_TABLES.items()
    }


def test_stage_tables_read_only_earlier_stages() -> None:
    made: set[str] = set()
    for stage in STAGES.values():
        assert set(stage.reads) <= made, stage.name
        made |= set(stage.tables)


@given(st.lists(names, max_size=4), st.lists(names, max_size=4))
def test_stable_hash_distinguishes_sequences(a: list[str], b: list[str]) -> None:
    assert (stable_hash(*a) == stable_hash(*b)) == (a == b)


@given(names, st.integers(1, 96))
def test_bucket_is_one_of_the_keys(document_id: str, n_buckets: int) -> None:
    assert bucket_of(document_id, n_buckets) in bucket_keys(n_buckets)


@given(names)
def test_normalize_title_is_idempotent(name: str) -> None:
    assert normalize_title(normalize_title(name)) == normalize_title(name)


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("Scrooge\u2019s\n  nephew", "SCROOGE'S NEPHEW"),
        (' "Tiny Tim" ', "TINY TIM"),
        ("\uff33crooge", "SCROOGE"),
        ("'Change", "'CHANGE"),
        ("stra\u00dfe", "STRASSE"),
        ('""', ""),
        ("\"'x'\"", "X"),
        ("\"'x'", "X"),
    ],
)
def test_normalize_title_folds_case_space_quotes_and_width(name: str, title: str) -> None:
    assert normalize_title(name) == title


def test_relationship_id_is_that_of_the_unordered_pair() -> None:
    assert relationship_id("A", "B") == relationship_id("B", "A") != relationship_id("A", "C")


def test_rows_are_sorted_and_unknown_columns_refused() -> None:
    table = STAGE_TABLES["text_unit_embeddings"]
    rows = table.from_rows([{"text_hash": "b", "vector": [1.0]}, {"text_hash": "a", "vector": [2.0]}])
    assert rows["text_hash"].to_pylist() == ["a", "b"]
    assert isinstance(rows, pa.Table)
    with pytest.raises(KeyError, match="vectors"):
        table.from_rows([{"text_hash": "b", "vectors": [1.0]}])
