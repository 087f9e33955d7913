"""Repair of an imported index, on tiny literal rows and on random broken ones."""

import random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.identity import entity_id, normalize_title
from graphrag_pipeline.interchange.imported_tables import locate_text, repair_tables
from graphrag_pipeline.publishing import checks
from graphrag_pipeline.tables import CONTRACT_TABLES

_DEFAULTS = {
    "documents": {
        "title": "d", "text": "", "text_unit_ids": [], "creation_date": None, "metadata": None, "raw_data": None,
    },
    "text_units": {"text": "", "n_tokens": 1, "document_ids": ["d"], "entity_ids": [], "relationship_ids": []},
    "entities": {"type": "PERSON", "description": "", "text_unit_ids": [], "frequency": None, "degree": None},
    "relationships": {"description": "", "weight": 1.0, "text_unit_ids": []},
    "covariates": {
        "covariate_type": "claim", "type": "T", "description": "", "subject_id": "A", "object_id": "NONE",
        "status": "TRUE", "start_date": None, "end_date": None, "source_text": "", "text_unit_id": "t",
    },
    "communities": {
        "level": 0, "parent": -1, "title": None, "entity_ids": [], "relationship_ids": [], "text_unit_ids": [],
        "period": None,
    },
    "community_reports": {
        "title": "r", "summary": "s", "full_content": "# r", "rank": 5.0, "rating_explanation": "", "findings": [],
        "full_content_json": None, "period": None,
    },
}  # fmt: skip
_KEY = {"communities": "community", "community_reports": "community"}


def repair(**tables):
    """Repair rows given by the columns that matter; other tables are empty, except document `d` and text unit `t`."""
    tables = {"documents": [{"id": "d"}], "text_units": [{"id": "t"}]} | tables
    source = {}
    for name, defaults in _DEFAULTS.items():
        numbered = enumerate(tables.get(name, []))
        rows = [{"id": f"{name}{i}", _KEY.get(name, "human_readable_id"): i} | defaults | row for i, row in numbered]
        source[name] = rows
    return repair_tables(source, 1000, lambda texts: [len(text.split()) for text in texts])


def rows_of(repaired, table, *columns):
    return [tuple(row[column] for column in columns) for row in repaired.tables[table].to_pylist()]


def failed_checks(repaired):
    snapshot = SimpleNamespace(table=repaired.tables.__getitem__)
    found = [check(snapshot) for check in (checks.check_unique_keys, checks.check_references)]
    found += [check(snapshot) for check in (checks.check_communities, checks.check_reports)]
    return [problem for problems in found for problem in problems]


def test_entities_with_one_normalised_title_are_folded():
    repaired = repair(
        text_units=[{"id": "t"}, {"id": "u"}],
        entities=[
            {"id": "a", "title": "scrooge", "description": "B", "text_unit_ids": ["t"]},
            {"id": "b", "title": "SCROOGE", "description": "A", "text_unit_ids": ["u"]},
        ],
    )
    columns = ("id", "title", "names", "description", "text_unit_ids")
    assert rows_of(repaired, "entities", *columns) == [("a", "SCROOGE", ["SCROOGE", "scrooge"], "A\nB", ["t", "u"])]
    assert "1 entity with the title of another was folded into it" in repaired.notes
    assert ("entities", "a") in repaired.changed


def test_relationships_of_an_unordered_pair_are_folded_and_degrees_counted():
    repaired = repair(
        entities=[{"id": "a", "title": "A"}, {"id": "b", "title": "B"}],
        relationships=[
            {"id": "r", "source": "B", "target": "A", "description": "y", "weight": 2.0, "text_unit_ids": ["t"]},
            {"id": "s", "source": "A", "target": "B", "description": "x", "weight": 3.0},
        ],
    )
    columns = ("id", "source", "target", "description", "weight", "combined_degree", "text_unit_ids")
    assert rows_of(repaired, "relationships", *columns) == [("r", "B", "A", "x\ny", 5.0, 2, ["t"])], (
        "the direction of the first row stays"
    )
    assert (
        repaired.tables["record_numbers"]
        .filter(
            [k == "relationship" and i == "" for k, i, _ in rows_of(repaired, "record_numbers", "kind", "id", "number")]
        )
        .to_pylist()[0]["number"]
        == 2
    ), "the number of the folded row is never used again"


def test_a_weight_that_is_missing_or_below_0_becomes_1():
    repaired = repair(
        entities=[{"id": "a", "title": "A"}, {"id": "b", "title": "B"}, {"id": "c", "title": "C"}],
        relationships=[
            {"id": "r", "source": "A", "target": "B", "weight": -3.0},
            {"id": "s", "source": "A", "target": "C", "weight": None},
            {"id": "t", "source": "B", "target": "C", "weight": 0.0},
        ],
    )
    assert sorted(rows_of(repaired, "relationships", "id", "weight")) == [("r", 1.0), ("s", 1.0), ("t", 0.0)]
    assert "1 relationship with a weight below 0 was given the weight 1" in repaired.notes
    assert "1 relationship without a weight was given the weight 1" in repaired.notes


def test_an_endpoint_without_a_row_is_placed_where_its_relationships_are_listed():
    repaired = repair(
        entities=[{"id": "a", "title": "A"}, {"id": "b", "title": "B"}],
        relationships=[{"id": "r", "source": "A", "target": "Ghost", "text_unit_ids": ["t"]}],
        communities=[
            {"community": 0, "entity_ids": ["a", "b"], "relationship_ids": ["r"]},
            {"community": 1, "level": 1, "parent": 0, "entity_ids": ["a"], "relationship_ids": ["r"]},
            {"community": 2, "level": 1, "parent": 0, "entity_ids": ["b"]},
        ],
        community_reports=[{"community": 0}, {"community": 1}, {"community": 2}],
    )
    ghost = entity_id("GHOST")
    assert rows_of(repaired, "communities", "entity_ids") == [(["a", "b", ghost],), (["a", ghost],), (["b"],)]
    assert rows_of(repaired, "entities", "type", "description", "text_unit_ids")[2] == ("UNKNOWN", "", ["t"])
    assert rows_of(repaired, "text_units", "entity_ids") == [([ghost],)]
    assert not failed_checks(repaired)


def test_an_entity_in_no_community_gets_one_with_a_verbatim_report():
    repaired = repair(
        entities=[{"id": "a", "title": "A"}, {"id": "b", "title": "B", "description": "Lonely."}],
        communities=[{"community": 7, "entity_ids": ["a"]}],
        community_reports=[{"community": 7}],
    )
    columns = ("community", "title", "summary", "is_verbatim", "is_fallback")
    assert rows_of(repaired, "community_reports", *columns)[1] == (8, "B", "Lonely.", True, False)
    assert rows_of(repaired, "communities", "community", "level", "parent", "entity_ids")[1] == (8, 0, -1, ["b"])


def test_parents_are_repaired_to_contain_their_children():
    repaired = repair(
        entities=[{"id": i, "title": i} for i in "abc"],
        communities=[
            {"community": 0, "entity_ids": ["a", "c"]},
            {"community": 1, "level": 1, "parent": 99, "entity_ids": ["a", "b"]},
        ],
        community_reports=[{"community": 0}, {"community": 1}],
    )
    columns = ("community", "level", "parent", "children", "entity_ids")
    assert rows_of(repaired, "communities", *columns) == [
        (0, 0, -1, [1, 2], ["a", "b", "c"]),
        (1, 1, 0, [], ["a", "b"]),
        (2, 1, 0, [], ["c"]),
    ]
    assert not failed_checks(repaired)


def test_an_entity_in_two_branches_stays_in_the_one_that_lists_it_most():
    repaired = repair(
        entities=[{"id": "a", "title": "A"}, {"id": "b", "title": "B"}],
        communities=[
            {"community": 0, "entity_ids": ["a", "b"]},
            {"community": 1, "entity_ids": ["a"]},
            {"community": 2, "level": 1, "parent": 1, "entity_ids": ["a"]},
        ],
        community_reports=[{"community": n} for n in range(3)],
    )
    assert rows_of(repaired, "communities", "entity_ids") == [(["b"],), (["a"],), (["a"],)]
    assert any(note.startswith("1 entity listing was taken out of communities") for note in repaired.notes)


def test_citations_of_a_folded_row_name_the_one_that_survives():
    repaired = repair(
        entities=[{"id": "a", "title": "A"}, {"id": "b", "title": "B"}],
        relationships=[{"id": "r", "source": "A", "target": "B"}, {"id": "s", "source": "B", "target": "A"}],
        communities=[{"community": 0, "entity_ids": ["a", "b"]}],
        community_reports=[
            {"community": 0, "full_content": "In 1 (1) [Data: Entities (1); Relationships (1, 0, +more)]."}
        ],
    )
    assert rows_of(repaired, "community_reports", "full_content") == [
        ("In 1 (1) [Data: Entities (1); Relationships (0, +more)].",)
    ]


def test_numbers_are_kept_where_unique():
    repaired = repair(
        entities=[{"id": i, "title": i, "human_readable_id": n} for i, n in zip("abc", [5, 5, 9], strict=True)]
    )
    assert rows_of(repaired, "entities", "id", "human_readable_id") == [("a", 5), ("c", 9), ("b", 10)]
    assert "1 entity whose human_readable_id was missing or taken was numbered again" in repaired.notes


@pytest.mark.parametrize(
    ("text", "start", "found"),
    [
        ("one", 0, (0, "one")),
        ("one", 1, (8, "one")),
        ("title: x.txt.\nsource: y.\ntwo", 0, (4, "two")),
        ("one", 9, (0, "one")),
        ("three", 0, None),
        ("title: x.txt.\n", 0, None),
    ],
)
def test_a_text_unit_is_found_forward_then_anywhere_then_without_metadata(text, start, found):
    assert locate_text(text, "one two one", start) == found


def test_metadata_lines_move_to_the_document():
    repaired = repair(
        documents=[{"id": "d", "title": "x.txt", "text": "Hello world. Bye."}],
        text_units=[{"id": "t", "text": "title: x.txt.\nsource: reuters.\nworld. Bye."}, {"id": "u", "text": "gone"}],
    )
    assert rows_of(repaired, "text_units", "text", "start", "end", "n_tokens") == [
        ("world. Bye.", 6, 17, 2),
        ("gone", None, None, 1),
    ]
    assert rows_of(repaired, "documents", "metadata") == [('{"source": "reuters"}',)]
    assert "1 text unit that was not found in the document's text have no character offsets" in repaired.notes


def test_claims_keep_foreign_subjects_and_lose_only_missing_text_units():
    repaired = repair(
        entities=[{"id": "a", "title": "A"}],
        covariates=[{"subject_id": "a"}, {"subject_id": "Nobody", "object_id": None}, {"text_unit_id": "gone"}],
    )
    assert rows_of(repaired, "covariates", "subject_id", "object_id") == [("A", "NONE"), ("NOBODY", "")]
    assert "1 claim of a text unit that is not there was left out" in repaired.notes
    assert "1 claim whose subject is no entity was kept" in repaired.notes


# ----------------------------------------------------------------------------------------------- laws on broken indexes

_UNITS, _TITLES = ["t0", "t1", "t2", "gone"], ["A", "a", " b ", "B", "C", "\u201cD\u201d", ""]
_ENTITIES, _RELATIONSHIPS = [f"e{i}" for i in range(5)], [f"r{i}" for i in range(5)]
_description = st.sampled_from(["", "one", "two", "three", None])


def _some(values):
    return st.lists(st.sampled_from(values), max_size=4)


def _table(ids, **columns):
    return st.lists(st.fixed_dictionaries({"id": st.sampled_from(ids), **columns}), max_size=6)


_BROKEN = st.fixed_dictionaries(
    {
        "text_units": _table(
            _UNITS[:3], text=st.sampled_from(["x", "x y", "q: r.\ny z", "no"]), document_ids=_some(["d", "z"]),
            entity_ids=_some(_ENTITIES), relationship_ids=_some(_RELATIONSHIPS),
        ),
        "entities": _table(
            _ENTITIES, title=st.sampled_from(_TITLES), description=_description, text_unit_ids=_some(_UNITS)
        ),
        "relationships": _table(
            _RELATIONSHIPS, source=st.sampled_from([*_TITLES, "Ghost"]), target=st.sampled_from([*_TITLES, "Spirit"]),
            description=_description, text_unit_ids=_some(_UNITS), weight=st.sampled_from([1.0, 2.0, -3.0, None]),
        ),
        "communities": _table(
            ["c0", "c1", "c2"], community=st.integers(-1, 4), level=st.integers(0, 2),
            parent=st.sampled_from([None, -1, 0, 1, 2, 7]), entity_ids=_some(_ENTITIES),
            relationship_ids=_some(_RELATIONSHIPS), text_unit_ids=_some(_UNITS),
        ),
        "community_reports": _table(
            ["p", "q", None], community=st.sampled_from([None, -1, 0, 1, 2, 3, 9]),
            full_content=st.sampled_from(["", "# r", "# r [Data: Relationships (0, 1)]"]),
            summary=st.sampled_from(["", "s"]),
        ),
        "covariates": _table(["k", "l"], text_unit_id=st.sampled_from(_UNITS), subject_id=st.sampled_from(_TITLES)),
    }
)  # fmt: skip


def _broken_source(tables):
    """Return rows with explicit numbers, so that they can be shuffled."""
    return {
        name: [{_KEY.get(name, "human_readable_id"): i} | row for i, row in enumerate(rows)]
        for name, rows in tables.items()
    } | {"documents": [{"id": "d", "title": "d", "text": "x y z", "human_readable_id": 0}]}


@given(_BROKEN)
def test_a_broken_index_is_repaired_to_pass_the_checks(tables):
    repaired = repair(**_broken_source(tables))
    assert not failed_checks(repaired)
    documents = dict(rows_of(repaired, "documents", "id", "text"))
    for text, document_id, start, end in rows_of(repaired, "text_units", "text", "document_id", "start", "end"):
        assert start is None or documents[document_id][start:end] == text


@given(_BROKEN)
def test_no_entity_description_text_unit_or_relationship_is_lost(tables):
    repaired = repair(**_broken_source(tables))
    units = set(repaired.tables["text_units"]["id"].to_pylist())
    entities = {row["title"]: row for row in repaired.tables["entities"].to_pylist()}
    pairs = {frozenset((row["source"], row["target"])): row for row in repaired.tables["relationships"].to_pylist()}

    def title(name):
        return normalize_title(name) or "UNNAMED"

    def survives(row, kept):
        assert (row["description"] or "") in kept["description"]
        assert set(row["text_unit_ids"]) & units <= set(kept["text_unit_ids"])

    for row in tables["entities"]:
        survives(row, entities[title(row["title"])])
    for row in tables["relationships"]:
        ends = (title(row["source"]), title(row["target"]))
        survives(row, entities[ends[0]] if ends[0] == ends[1] else pairs[frozenset(ends)])


@given(_BROKEN, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(tables, chance: random.Random):
    source = _broken_source(tables)
    shuffled = {name: chance.sample(rows, len(rows)) for name, rows in source.items()}
    first, second = repair(**source), repair(**shuffled)
    assert first.notes == second.notes
    assert all(first.tables[name].equals(second.tables[name]) for name in CONTRACT_TABLES)
