"""Filters over a few documents: the documents that pass each operator, and the errors with their reasons."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filters import parse_filter, read_span
from graphrag_pipeline.query.filtering.document_mask import DocumentFields
from graphrag_pipeline.tables import CONTRACT_TABLES

NEWS = {
    "a": ({"source": "Reuters", "stars": 4, "tags": ["oil", "coal"], "author": {"name": "Dickens, Charles"}},
          "2023-12-31"),
    "b": ({"source": "BBC", "stars": "5", "tags": "oil", "is_draft": True}, "2024"),
    "c": ({"source": "reuters", "stars": None, "tags": []}, "2024-05-17T10:30:00+02:00"),
    "d": ({"source": "AP = Associated"}, None),
}  # fmt: skip


def fields_of(documents: dict[str, tuple[dict, str | None]]) -> DocumentFields:
    rows = [
        {"id": name, "human_readable_id": number, "title": name, "text": "", "text_unit_ids": [], "path": f"in/{name}",
         "metadata": json.dumps(metadata), "creation_date": date, "record": ""}
        for number, (name, (metadata, date)) in enumerate(documents.items())
    ]  # fmt: skip
    return DocumentFields(CONTRACT_TABLES["documents"].from_rows(rows))


def names_that_pass(text: str, documents: dict[str, tuple[dict, str | None]] = NEWS) -> str:
    mask = fields_of(documents).mask_of(parse_filter(text))
    return "".join(name for name, passes in zip(documents, mask, strict=True) if passes)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("tenant=1234567890123456789", "ab"),
        ("tenant!=1234567890123456789", "cde"),
        ("tenant>1234567890123456789", "ce"),
        ("tenant<=1234567890123456789", "abd"),
        ("tenant=0e123", "d"),
        ("tenant=1e400", "e"),
    ],
)
def test_numbers_are_compared_with_all_their_digits(text, names):
    held = {"a": "1234567890123456789", "b": 1234567890123456789, "c": 1234567890123456790, "d": "0e999", "e": 10**400}
    assert names_that_pass(text, {name: ({"tenant": value}, None) for name, value in held.items()}) == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("source=reuters", "ac"),
        (" Source == REUTERS ", "ac"),
        ("source!=reuters", "bd"),
        ("source=reuters,bbc", "abc"),
        ("source in reuters, bbc", "abc"),
        ("source!=reuters,bbc", "d"),
        ("source~ss", "d"),
        ('source="AP = Associated"', "d"),
        ('source="reuters","bbc"', "abc"),
        ("source<b", "d"),
        ("stars>=4", "ab"),
        ("stars=5.0", "b"),
        ("stars<5", "a"),
        ("stars!=4", "bcd"),
        ("tags=coal", "a"),
        ("tags!=oil", "cd"),
        ("is_draft=true", "b"),
        ("author.name=Dickens, Charles", "a"),
        ("author.name='Dickens, Charles'", "a"),
        ("year>=2024", "bc"),
        ("year=2023", "a"),
        ("date<=2023", "a"),
        ("date>=2024-05", "c"),
        ("date=2024", "bc"),
        ("date=2024-05-17", "c"),
        ("date<2024-05-17", "a"),
        ("creation_date>2023-12-31", "bc"),
        ("creation_date!=2024", "ad"),
        ("path~in/", "abcd"),
        ("id=d", "d"),
    ],
)
def test_documents_that_pass_a_filter(text: str, names: str) -> None:
    assert names_that_pass(text) == names


def test_metadata_take_precedence_over_derived_fields_and_columns_over_metadata() -> None:
    documents = {"a": ({"year": 1843, "title": "Stave"}, "2024"), "b": ({"year": 2024, "title": "a"}, "2023")}
    assert names_that_pass("year=2024", documents) == "b"
    assert names_that_pass("title=a", documents) == "a"
    assert names_that_pass("metadata.title=a", documents) == "b"


def test_without_creation_dates_the_year_is_that_of_a_dated_field() -> None:
    documents = {"a": ({"published": "2024-03-05"}, None), "b": ({"published": "March 5, 2023"}, None)}
    assert names_that_pass("year>=2024", documents) == "a"


@pytest.mark.parametrize("text", ["year>=2024", "Date!=2024"])
def test_without_any_date_the_error_says_so(text: str) -> None:
    with pytest.raises(PipelineError, match=r"no document has a date: .*published.*; there are id, title"):
        names_that_pass(text, {"a": ({"source": "BBC"}, None)})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("reuters", "write FIELD OPERATOR VALUE, such as year>=2024"),
        ("=reuters", "write FIELD OPERATOR VALUE"),
        ("source=", "write FIELD OPERATOR VALUE"),
        ("sorce=reuters", r"no field 'sorce'; did you mean 'source'\? There are id, title, .*author.name"),
        ("weather=fog", "no field 'weather'; there are id, title"),
        ("stars>many", "'many' cannot be compared with the values of 'stars', such as '4', '5'; numbers compare with"),
        ("year=soon", "'soon' cannot be compared with the values of 'year', such as '2023'"),
        ("source>=7", "'7' cannot be compared with the values of 'source', such as 'reuters'"),
    ],
)
def test_an_invalid_filter_is_an_error_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(PipelineError, match=reason):
        names_that_pass(text)


def test_metadata_that_is_not_an_object_has_no_field() -> None:
    documents = {"a": (["x"], None), "b": ("x", None), "c": ({"source": "bbc"}, None)}
    assert names_that_pass("source=bbc", documents) == "c"  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["2024-13", "2024-02-30", "20240301", "spring 2024", "2024-05-01 later", ""])
def test_text_that_is_not_a_date_has_no_span(text: str) -> None:
    assert read_span(text) is None


VALUES = st.one_of(
    st.integers(-99, 99), st.sampled_from(["2024", "2024-05", "2023-12-31", "fog", "Fog", "10"]), st.none()
)


@given(st.lists(VALUES, min_size=1, max_size=8), st.sampled_from(["2024", "5", "fog"]))
def test_equal_and_not_equal_part_the_documents(stored: list, value: str) -> None:
    documents = {f"{number}": ({"x": held, "y": 1}, None) for number, held in enumerate(stored)}
    try:
        mask, rest = (fields_of(documents).mask_of(parse_filter(f"x{sign}{value}")) for sign in ("=", "!="))
    except PipelineError:
        return  # nothing to compare with
    assert (mask != rest).all()


@given(st.lists(st.integers(-9, 9) | st.none(), min_size=1, max_size=8), st.integers(-9, 9))
def test_a_number_is_less_equal_or_greater(stored: list, value: int) -> None:
    documents = {f"{number}": ({"x": held, "y": 1}, None) for number, held in enumerate([*stored, 0])}
    masks = [fields_of(documents).mask_of(parse_filter(f"x{sign}{value}")) for sign in ("<", "=", ">")]
    assert [sum(passes) for passes in zip(*masks, strict=True)] == [held is not None for held in [*stored, 0]]
