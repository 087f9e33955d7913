""""""

import threading
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_pipeline.engines.embedded.extraction import extract_graph
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import entity_id, relationship_id, stable_hash
from graphrag_pipeline.indexing.graph import merge as graph
from graphrag_pipeline.indexing.graph.merge import fold_claims, merge_graph
from graphrag_pipeline.indexing.graph.overrides import find_unused, read_overrides
from graphrag_pipeline.indexing.graph.resolution import RULES
from graphrag_pipeline.indexing.graph.titles import NamePolicy
from graphrag_pipeline.indexing.text_units import split_documents
from graphrag_pipeline.settings.settings import ExtractionSettings, GraphSettings, TextUnitsSettings
from graphrag_pipeline.tables import (
    CLAIM_MENTIONS,
    COVARIATES,
    DOCUMENTS,
    ENTITIES,
    ENTITY_MENTIONS,
    ENTITY_MERGES,
    RELATIONSHIP_MENTIONS,
    RELATIONSHIPS,
    TEXT_UNITS,
)
from graphrag_pipeline_tests.support.corpora.mention_generator import write_mentions
from graphrag_pipeline_tests.support.thoroughness import repetitions


def claim(unit: str, position: int = 0, **changed: Any) -> dict[str, Any]:
    """Return a claim of document `d`, unless named otherwise; the number in the id of a text unit is its position."""
    row = {
        "text_unit_id": unit, "position": position, "document_id": "d", "unit_position": int(unit[-1]),
        "subject_id": "ACME", "object_id": "NONE", "type": "FRAUD", "status": "TRUE", "start_date": "2020-01-01",
        "end_date": None, "description": "Acme was fined.", "source_text": "Acme paid a fine.", "request_key": None,
    }  # fmt: skip
    return row | changed


def units_of(*claims: dict[str, Any]) -> list[list[str]]:
    return sorted(row["text_unit_ids"] for row in fold_claims(claims))


def test_a_claim_of_two_text_units_is_one_row_with_both() -> None:
    (row,) = fold_claims([claim("u2", description="ACME  was\nfined. "), claim("u1"), claim("u1", position=3)])
    assert (row["text_unit_id"], row["text_unit_ids"], row["description"]) == ("u1", ["u1", "u2"], "Acme was fined.")


def test_claims_that_differ_in_anything_stay_apart() -> None:
    changes = [
        {"subject_id": "BETA"}, {"object_id": "BETA"}, {"type": "TAX"}, {"status": "FALSE"}, {"start_date": None},
        {"end_date": "2021"}, {"description": "Acme was sued.", "source_text": "Acme was in court."},
    ]  # fmt: skip
    for changed in changes:
        assert units_of(claim("u1"), claim("u2", **changed)) == [["u1"], ["u2"]]


def test_other_words_about_the_same_quote_are_one_claim_if_each_text_unit_has_one() -> None:
    other = claim("u2", description="Acme got a fine.")
    assert units_of(claim("u1"), other) == [["u1", "u2"]]
    two = claim("u1", position=1, description="Acme had money.")
    assert units_of(claim("u1"), two, other) == [["u1"], ["u1"], ["u2"]]
    assert units_of(claim("u1", source_text=""), claim("u2", source_text="", description="x")) == [["u1"], ["u2"]]


def test_each_document_keeps_its_own_claim() -> None:
    assert units_of(claim("u1"), claim("v1", document_id="e")) == [["u1"], ["v1"]]


_CLAIMS = st.lists(
    st.builds(
        claim,
        st.sampled_from(["u1", "u2", "u3"]),
        st.integers(0, 3),
        description=st.sampled_from(["a", "A ", "b"]),
        source_text=st.sampled_from(["", "q", "Q", "r"]),
    ),
    max_size=8,
    unique_by=lambda row: (row["text_unit_id"], row["position"]),
)


@given(_CLAIMS, st.randoms(use_true_random=False))
def test_the_order_of_mentions_does_not_matter_and_no_text_unit_is_lost(claims: list[dict], random: Random) -> None:
    folded = fold_claims(claims)
    assert fold_claims(random.sample(claims, len(claims))) == folded
    assert {unit for row in folded for unit in row["text_unit_ids"]} == {row["text_unit_id"] for row in claims}
    assert len({row["id"] for row in folded}) == len(folded)


SETTINGS = GraphSettings()


def entities(*rows: tuple[str, str, str, str]) -> pa.Table:
    """Return entity mentions from (text unit, name, type, description)."""
    return ENTITY_MENTIONS.from_rows(
        [
            {"text_unit_id": unit, "position": n, "name": name, "type": kind, "description": text}
            for n, (unit, name, kind, text) in enumerate(rows)
        ]
    )


def relationships(*rows: tuple[str, str, str, str, float]) -> pa.Table:
    """Return relationship mentions from (text unit, source, target, description, strength)."""
    return RELATIONSHIP_MENTIONS.from_rows(
        [
            {"text_unit_id": unit, "position": n, "source": a, "target": b, "description": text, "strength": strength}
            for n, (unit, a, b, text, strength) in enumerate(rows)
        ]
    )


def merge(
    entity_mentions: pa.Table | None = None,
    relationship_mentions: pa.Table | None = None,
    claim_mentions: pa.Table | None = None,
    graph_settings: GraphSettings = SETTINGS,
    overrides: str = "",
    text_units: pa.Table | None = None,
    rules: Collection[str] = RULES,
) -> dict[str, list[dict]]:
    merged = merge_graph(
        ENTITY_MENTIONS.empty() if entity_mentions is None else entity_mentions,
        RELATIONSHIP_MENTIONS.empty() if relationship_mentions is None else relationship_mentions,
        CLAIM_MENTIONS.empty() if claim_mentions is None else claim_mentions,
        graph_settings,
        text_units=text_units,
        policy=NamePolicy(read_overrides(f"action,a,b\n{overrides}".encode()), rules=rules),
    )
    return {name: table.to_pylist() for name, table in merged.items()}


def test_mentions_of_one_title_become_one_entity() -> None:
    merged = merge(
        entities(
            ("u2", "Scrooge", "PERSON", "He is a miser."),
            ("u1", "SCROOGE", "person", "He is cold."),
            ("u1", '"Scrooge"', "GEO", "He is cold."),
            ("u1", "scrooge", "", " "),
        )
    )
    descriptions = ["He is a miser.", "He is cold."]
    assert merged["entities"] == [
        {
            "id": entity_id("SCROOGE"),
            "title": "SCROOGE",
            "type": "PERSON",
            "types": ["PERSON", "GEO", "UNKNOWN"],
            "names": ['"Scrooge"', "SCROOGE", "Scrooge", "scrooge"],
            "descriptions": descriptions,
            "description_key": stable_hash("entity", "SCROOGE", *descriptions),
            "text_unit_ids": ["u1", "u2"],
            "frequency": 2,
            "n_mentions": 4,
            "degree": 0,
        }
    ]


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["UNKNOWN", "UNKNOWN", "GEO"], "GEO"),
        (["PERSON", "GEO"], "GEO"),
        (["PERSON", "GEO", "PERSON"], "PERSON"),
        (["", "UNKNOWN"], "UNKNOWN"),
    ],
)
def test_type_is_voted_ties_by_name_unknown_last(kinds: list[str], expected: str) -> None:
    merged = merge(entities(*((f"u{n}", "Marley", kind, "") for n, kind in enumerate(kinds))))
    assert merged["entities"][0]["type"] == expected


def test_a_doubtful_name_is_an_entity_if_another_mention_confirms_it() -> None:
    merged = merge(
        entities(
            ("u1", "billing-api", "DOUBTFUL", ""), ("u1", "real-time", "DOUBTFUL", ""), ("u1", "Ana", "PERSON", ""),
            ("u2", "Billing-API", "SERVICE", ""), ("u3", "real-time", "DOUBTFUL", ""),
        ),
        relationships(("u1", "Ana", "real-time", "", 1.0), ("u1", "billing-api", "Ana", "", 1.0)),
    )  # fmt: skip
    found = {row["title"]: (sorted(row["types"]), row["text_unit_ids"]) for row in merged["entities"]}
    assert found == {"ANA": (["PERSON"], ["u1"]), "BILLING-API": (["IDENTIFIER", "SERVICE"], ["u1", "u2"])}
    assert [(row["source"], row["target"]) for row in merged["relationships"]] == [("ANA", "BILLING-API")]


def test_both_directions_of_a_pair_are_one_relationship() -> None:
    merged = merge(
        entities(("u1", "Scrooge", "PERSON", ""), ("u1", "Marley", "PERSON", "")),
        relationships(
            ("u2", "Scrooge", "Marley", "partners", 0.1),
            ("u1", "MARLEY", "Scrooge", "old friends", 0.2),
            ("u1", "Scrooge", "London", "", 3.0),
        ),
    )
    pair = next(row for row in merged["relationships"] if row["source"] == "MARLEY")
    assert pair == {
        "id": relationship_id("SCROOGE", "MARLEY"),
        "source": "MARLEY",
        "target": "SCROOGE",
        "source_id": entity_id("MARLEY"),
        "target_id": entity_id("SCROOGE"),
        "descriptions": ["old friends", "partners"],
        "description_key": stable_hash("relationship", "MARLEY\tSCROOGE", "old friends", "partners"),
        "weight": 0.3,
        "n_mentions": 2,
        "combined_degree": 3,
        "text_unit_ids": ["u1", "u2"],
        "predicates": [],
        "pmi": 0.0,
    }


def test_weight_can_be_the_number_of_mentions() -> None:
    mentions = relationships(("u1", "A", "B", "", 7.0), ("u2", "B", "A", "", 9.0))
    assert merge(None, mentions, None, GraphSettings(weight="n_mentions"))["relationships"][0]["weight"] == 2.0


@pytest.mark.parametrize("strength", [float("nan"), float("inf"), -1.0])
def test_a_strength_that_is_not_a_number_counts_nothing(strength: float) -> None:
    mentions = relationships(("u1", "A", "B", "", strength), ("u2", "A", "B", "", 2.0))
    assert merge(None, mentions)["relationships"][0]["weight"] == 2.0


def test_ends_without_an_entity_become_unknown_entities() -> None:
    merged = merge(
        entities(("u1", "Scrooge", "PERSON", "")),
        relationships(("u1", "Scrooge", "London", "", 1.0), ("u3", "Scrooge", "London", "", 1.0)),
    )
    london = next(row for row in merged["entities"] if row["title"] == "LONDON")
    assert (london["type"], london["types"], london["n_mentions"]) == ("UNKNOWN", ["UNKNOWN"], 0)
    assert (london["text_unit_ids"], london["degree"], london["names"]) == (["u1", "u3"], 1, ["London"])


def test_pairs_of_one_entity_and_empty_names_are_dropped() -> None:
    merged = merge(
        entities(("u1", " ", "PERSON", "nobody"), ("u1", '""', "PERSON", "nobody")),
        relationships(("u1", "Scrooge", "SCROOGE", "", 1.0), ("u1", "Scrooge", " ", "", 1.0)),
    )
    assert merged["relationships"] == [] and merged["entities"] == []


def test_claims_become_covariates_with_titles() -> None:
    claim = {
        "text_unit_id": "u1", "position": 0, "subject": "Scrooge", "object": "nobody else", "type": "AVARICE",
        "status": "TRUE", "description": "a miser", "source_text": "Scrooge!",
    }  # fmt: skip
    merged = merge(None, None, CLAIM_MENTIONS.from_rows([claim, claim | {"position": 1, "description": "mean"}]))
    first, second = merged["covariates"]
    assert (first["subject_id"], first["object_id"], first["covariate_type"]) == ("SCROOGE", "NOBODY ELSE", "claim")
    assert first["start_date"] is None and first["id"] != second["id"]


_WALK = "Fred met Scrooge on Monday."
_TALK = "Fred talked to Scrooge for an hour, and Belle listened."
_PATH = "Tim ran home."


def overlapping(document: str, before: str, shared: str, after: str) -> pa.Table:
    """Return two text units, `{document}1` and `{document}2`, of one document that share a text in the middle."""
    spans = [(0, len(before + shared)), (len(before), len(before + shared + after))]
    whole = before + shared + after
    return TEXT_UNITS.from_rows(
        [
            {"id": f"{document}{n + 1}", "document_id": document, "position": n, "start": start, "end": end,
             "text": whole[start:end], "n_tokens": 1}
            for n, (start, end) in enumerate(spans)
        ]
    )  # fmt: skip


def test_a_mention_in_the_overlap_of_two_text_units_counts_once() -> None:
    units = overlapping("d", _PATH, _WALK, _TALK)
    start, end = len(_PATH), len(_PATH + _WALK)
    mentions = tied(*((unit, name, name, start + _WALK.index(name)) for unit in ("d1", "d2")
                      for name in ("Fred", "Scrooge")), ("d2", "Fred", "Fred", end))  # fmt: skip
    pairs = placed(
        ("d1", "Fred", "Scrooge", start, end), ("d2", "Fred", "Scrooge", start, end),
        ("d2", "Scrooge", "Fred", end, end + len(_TALK)),
    )  # fmt: skip
    merged = merge(mentions, pairs, text_units=units)
    (pair,) = merged["relationships"]
    assert (pair["weight"], pair["n_mentions"], pair["text_unit_ids"]) == (2.0, 2, ["d1", "d2"])
    counts = {row["title"]: (row["n_mentions"], row["frequency"]) for row in merged["entities"]}
    assert counts == {"FRED": (2, 2), "SCROOGE": (1, 2)}
    elsewhere = units.set_column(1, "document_id", pa.array(["d", "other"]))
    assert merge(mentions, pairs, text_units=elsewhere)["relationships"][0]["weight"] == 3.0


@pytest.mark.parametrize(
    ("after", "second", "weight"),
    [
        (_PATH, "they met", 2.0),  # only the overlap contains both names
        (_TALK, "they met", 5.0),  # the rest of the second text unit contains both, too
        (_TALK, " They  MET on Monday.", 2.0),  # but this is what the first text unit says
        ("Fred went home.", "they met", 2.0),
        ("Fred went home. Scrooge stayed.", "they parted", 2.0),  # both names, but in no sentence together
    ],
)
def test_a_models_mention_counts_once_if_its_evidence_is_in_the_overlap(after: str, second: str, weight: float) -> None:
    units = overlapping("d", _PATH, _WALK, after)
    pairs = relationships(
        ("d1", "FRED", "EBENEZER SCROOGE", "they met on monday.", 2.0), ("d2", "EBENEZER SCROOGE", "FRED", second, 3.0)
    )
    (pair,) = merge(None, pairs, text_units=units)["relationships"]
    assert (pair["weight"], pair["text_unit_ids"], len(pair["descriptions"])) == (weight, ["d1", "d2"], 2)
    people = entities(("d1", "FRED", "PERSON", "a"), ("d2", "FRED", "PERSON", "b"))
    (fred,) = merge(people, None, text_units=units)["entities"]
    assert (fred["n_mentions"], fred["frequency"]) == (1 if "Fred" not in after else 2, 2)


@pytest.mark.parametrize("first", ["They quarrelled.", "They met on Monday."])
def test_a_models_statement_in_the_overlap_counts_once_beside_another_one_before_it(first: str) -> None:
    """The first text unit has both sentences, and one mention of the pair: as if the text units did not overlap."""
    units = overlapping("d", "Fred quarrelled with Scrooge. ", _WALK, _PATH)
    pairs = relationships(("d1", "FRED", "SCROOGE", first, 1.0), ("d2", "FRED", "SCROOGE", "They met on Monday.", 1.0))
    (pair,) = merge(None, pairs, text_units=units)["relationships"]
    assert (pair["weight"], pair["n_mentions"]) == (1.0, 1)


def test_a_pair_outside_the_overlap_counts_in_both_text_units() -> None:
    pairs = relationships(("d1", "Fred", "Scrooge", "met", 1.0), ("d2", "Fred", "Scrooge", "met", 1.0))
    (pair,) = merge(None, pairs, text_units=overlapping("d", _WALK, _PATH, _WALK))["relationships"]
    assert pair["weight"] == 2.0


@settings(max_examples=repetitions(5, thorough=15), deadline=None)
@given(st.integers(20, 60), st.integers(0, 11), st.lists(st.integers(0, 4), min_size=2, max_size=30))
def test_counts_do_not_depend_on_the_overlap(size: int, overlap: int, kinds: list[int]) -> None:
    people = ["TASK-11", "TASK-22", "TASK-33"]
    sentences = ["Here TASK-11 blocks TASK-22.", "Then TASK-22 follows TASK-33.", "Now TASK-33 closes TASK-11.",
                 "It rained for hours and hours.", "Here TASK-11 ends."]  # fmt: skip
    text = " ".join(sentences[kind] for kind in kinds)
    documents = DOCUMENTS.from_rows([{"id": "d", "title": "t", "text": text, "path": "t", "record": "",
                                      "content_hash": "", "metadata": "{}"}])  # fmt: skip
    units = split_documents(documents, TextUnitsSettings(size=size, overlap=overlap, markdown_blocks=False))
    mentions = extract_graph(documents, units, ExtractionSettings())
    merged = merge_graph(*mentions.values(), SETTINGS, text_units=units)
    found = {(row["source"], row["target"]): row["n_mentions"] for row in merged["relationships"].to_pylist()}
    expected = Counter(
        tuple(sorted(name.upper() for name in people if name in sentences[kind])) for kind in kinds if kind < 3
    )
    assert {pair: n for pair, n in found.items() if set(pair) <= {name.upper() for name in people}} == expected


def test_without_rules_only_equal_names_are_one_entity() -> None:
    names = ["Fred", "FRED ", "The Fred", "Fréd"]
    mentions = entities(*(("u1", name, "PERSON", "") for name in names))
    assert [row["title"] for row in merge(mentions)["entities"]] == ["FRED"]
    exact = merge(mentions, rules=())
    assert sorted(row["title"] for row in exact["entities"]) == ["FRED", "FRÉD", "THE FRED"]
    assert exact["entity_merges"] == []
    one = merge(mentions, rules=("alias",))
    assert sorted(row["title"] for row in one["entities"]) == ["FRED", "FRÉD"]


def test_without_their_rule_forms_tied_inside_a_document_are_entities() -> None:
    assert sorted(row["title"] for row in merge(TIED, TIED_PAIRS, rules=("acronym",))["entities"]) == [
        "FRED", "JACOB MARLEY", "MARLEY", "WORLD HEALTH ORGANIZATION",
    ]  # fmt: skip
    exact = merge(TIED, TIED_PAIRS, rules=())
    assert sorted((row["source"], row["target"]) for row in exact["relationships"]) == [
        ("FRED", "MARLEY"), ("FRED", "WHO"),
    ]  # fmt: skip
    again = merge(TIED, TIED_PAIRS, overrides="merge,Marley,Jacob Marley", rules=())
    assert "MARLEY" not in {row["title"] for row in again["entities"]}


def test_merges_are_listed_with_their_rule() -> None:
    merged = merge(
        entities(
            ("u1", "Scrooge", "PERSON", ""), ("u2", "Ebenezer Scrooge", "PERSON", ""), ("u3", "Ｓcrooge", "PERSON", "")
        ),
        relationships(("u1", "Scrooge", "Fred", "", 1.0), ("u2", "Fred", "Ebenezer Scrooge", "", 1.0)),
    )
    assert [(row["name"], row["title"], row["rule"]) for row in merged["entity_merges"]] == [
        ("Scrooge", "EBENEZER SCROOGE", "alias"),
        ("Ｓcrooge", "EBENEZER SCROOGE", "alias"),
    ]
    assert [row["source"] for row in merged["relationships"]] == ["EBENEZER SCROOGE"]
    assert merged["relationships"][0]["n_mentions"] == 2


def tied(*rows: tuple[str, str, str, int]) -> pa.Table:
    """Return entity mentions from (text unit, name, written, start)."""
    return ENTITY_MENTIONS.from_rows(
        [
            {"text_unit_id": unit, "position": n, "name": name, "type": "PERSON", "description": written,
             "written": written, "start": start, "end": start + len(written)}
            for n, (unit, name, written, start) in enumerate(rows)
        ]
    )  # fmt: skip


def placed(*rows: tuple[str, str, str, int, int]) -> pa.Table:
    """Return relationship mentions from (text unit, source, target, start, end)."""
    return RELATIONSHIP_MENTIONS.from_rows(
        [
            {"text_unit_id": unit, "position": n, "source": source, "target": target, "description": "",
             "strength": 1.0, "start": start, "end": end, "predicate": "met" if n == 0 else None}
            for n, (unit, source, target, start, end) in enumerate(rows)
        ]
    )  # fmt: skip


TIED = tied(
    ("u1", "Jacob Marley", "Marley", 0), ("u1", "Fred", "Fred", 9), ("u1", "Jacob Marley", "Jacob\nMarley", 50),
    ("u2", "World Health Organization", "WHO", 0), ("u2", "Fred", "fred", 9),
)  # fmt: skip
TIED_PAIRS = placed(("u1", "Jacob Marley", "Fred", 0, 20), ("u2", "World Health Organization", "Fred", 0, 20))


def test_forms_tied_inside_a_document_are_names_and_have_their_reason() -> None:
    merged = merge(TIED, TIED_PAIRS)
    assert {row["title"]: row["names"] for row in merged["entities"]} == {
        "FRED": ["Fred", "fred"],
        "JACOB MARLEY": ["Jacob Marley", "Marley"],
        "WORLD HEALTH ORGANIZATION": ["WHO", "World Health Organization"],
    }
    assert [(row["name"], row["title"], row["rule"]) for row in merged["entity_merges"]] == [
        ("Marley", "JACOB MARLEY", "alias"),
        ("WHO", "WORLD HEALTH ORGANIZATION", "acronym"),
    ]
    assert [row["predicates"] for row in merged["relationships"]] in ([["met"], []], [[], ["met"]])


def test_two_reasons_for_one_form_are_both_listed() -> None:
    mentions = tied(("u1", "Mr. Scrooge", "Scrooge", 0), ("u2", "Ebenezer Scrooge", "Ebenezer Scrooge", 0))
    pairs = relationships(("u1", "Mr. Scrooge", "Fred", "", 1.0), ("u2", "Ebenezer Scrooge", "Fred", "", 1.0))
    row = next(row for row in merge(mentions, pairs)["entity_merges"] if row["name"] == "Scrooge")
    assert (row["title"], row["rule"], row["score"]) == ("EBENEZER SCROOGE", "alias", 0.9)
    assert row["evidence"] == (
        "stands for MR. SCROOGE in one document; EBENEZER SCROOGE is the only full name with SCROOGE; both meet FRED"
    )


def test_a_person_can_merge_against_the_rules_and_undo_it() -> None:
    mentions = entities(
        ("u1", "Scrooge", "PERSON", "a"), ("u2", "old miser", "UNKNOWN", "b"), ("u3", "Humbug Ltd", "ORGANIZATION", "c")
    )
    rows = "merge,OLD MISER,Scrooge\nmerge,humbug ltd,old miser\n"
    merged = merge(mentions, overrides=rows)
    (scrooge,) = merged["entities"]
    assert (scrooge["title"], scrooge["descriptions"], scrooge["text_unit_ids"]) == (
        "SCROOGE", ["a", "b", "c"], ["u1", "u2", "u3"],
    )  # fmt: skip
    assert scrooge["types"] == ["ORGANIZATION", "PERSON", "UNKNOWN"]
    assert {(row["name"], row["rule"]) for row in merged["entity_merges"]} == {
        ("old miser", "override"), ("Humbug Ltd", "override"),
    }  # fmt: skip
    assert len(merge(mentions)["entities"]) == 3


def test_a_person_can_keep_apart_entities_that_rules_merge() -> None:
    mentions = entities(("u1", "Zürich", "GEO", ""), ("u1", "Zurich", "GEO", ""), ("u1", "The Zurich", "GEO", ""))
    assert [row["title"] for row in merge(mentions)["entities"]] == ["ZURICH"]
    apart = merge(mentions, overrides="keep_apart,Zurich,Zürich")
    assert sorted(row["title"] for row in apart["entities"]) == ["ZURICH", "ZÜRICH"]


def test_a_person_can_part_and_remerge_forms_that_one_document_tied() -> None:
    apart = merge(TIED, TIED_PAIRS, overrides="keep_apart,Marley,Jacob Marley")
    assert sorted((row["title"], row["names"]) for row in apart["entities"])[1:3] == [
        ("JACOB MARLEY", ["Jacob Marley"]), ("MARLEY", ["Marley"]),
    ]  # fmt: skip
    assert sorted((row["source"], row["target"]) for row in apart["relationships"])[0] == ("FRED", "MARLEY")
    elsewhere = merge(TIED, TIED_PAIRS, overrides="merge,Marley,WHO")
    assert sorted(row["title"] for row in elsewhere["entities"]) == [
        "FRED",
        "JACOB MARLEY",
        "WORLD HEALTH ORGANIZATION",
    ]
    merged = {row["name"]: row for row in elsewhere["entity_merges"]}
    assert (merged["Marley"]["title"], merged["Marley"]["rule"]) == ("WORLD HEALTH ORGANIZATION", "override")


def test_overrides_without_such_names_are_reported_and_do_nothing() -> None:
    rows = read_overrides(b"action,a,b\nmerge,Fred,Nobody\nkeep_apart,Marley,Fred\n")
    merged = merge_graph(TIED, TIED_PAIRS, CLAIM_MENTIONS.empty(), SETTINGS, policy=NamePolicy(rows))
    assert merged == merge_graph(TIED, TIED_PAIRS, CLAIM_MENTIONS.empty(), SETTINGS)
    (message,) = find_unused(rows, ds.dataset(merged["entities"]))
    assert "merge,FRED,NOBODY" in message and "'NOBODY'" in message


def test_pmi_is_high_for_a_rare_pair_and_none_for_a_hub() -> None:
    rows = [(f"u{n}", "Hub", "", "") for n in range(8)] + [("u0", "A", "", ""), ("u0", "B", "", "")]
    pairs = relationships(("u0", "A", "B", "", 1.0), ("u0", "A", "Hub", "", 1.0))
    assert {row["target"]: row["pmi"] for row in merge(entities(*rows), pairs)["relationships"]} == {
        "B": 3.0,
        "HUB": 0.0,
    }


def test_a_merge_without_enough_memory_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"raise graph\.max_memory"):
        merge_graph(TIED, TIED_PAIRS, CLAIM_MENTIONS.empty(), GraphSettings(max_memory="1MB"), folder=tmp_path)
    assert not list(tmp_path.iterdir())


def test_nothing_merges_to_empty_tables_with_schema() -> None:
    merged = merge_graph(ENTITY_MENTIONS.empty(), RELATIONSHIP_MENTIONS.empty(), CLAIM_MENTIONS.empty(), SETTINGS)
    for table in (ENTITIES, RELATIONSHIPS, COVARIATES, ENTITY_MERGES):
        assert merged[table.name] == table.empty()


_UNIT = st.sampled_from(["u1", "u2", "u3"])
_NAME = st.sampled_from(
    ["Scrooge", "SCROOGE", "Ebenezer Scrooge", "Fred", "Élan", "Elan", "THE FRED", "x'); --", " ", "漢"]
)
_KIND = st.sampled_from(["PERSON", "GEO", "UNKNOWN", ""])
_TEXT = st.sampled_from(["", "a", "b\tc", "é", "\U0001f600"])
_STRENGTH = st.floats(min_value=0, max_value=10, allow_nan=False)
_ENTITIES = st.lists(st.tuples(_UNIT, _NAME, _KIND, _TEXT), max_size=12)
_RELATIONSHIPS = st.lists(st.tuples(_UNIT, _NAME, _NAME, _TEXT, _STRENGTH), max_size=12)


@settings(max_examples=repetitions(6, thorough=15), deadline=None)
@given(_ENTITIES, _RELATIONSHIPS, st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(entity_rows: list, relationship_rows: list, random: Random) -> None:
    first = merge_graph(entities(*entity_rows), relationships(*relationship_rows), CLAIM_MENTIONS.empty(), SETTINGS)
    one, two = [table.take(random.sample(range(table.num_rows), table.num_rows)) if table.num_rows else table
                for table in (entities(*entity_rows), relationships(*relationship_rows))]  # fmt: skip
    second = merge_graph(one, two, CLAIM_MENTIONS.empty(), SETTINGS, n_threads=1)
    for name, table in first.items():
        assert table == second[name]


@settings(max_examples=repetitions(6, thorough=15), deadline=None)
@given(_ENTITIES, _RELATIONSHIPS)
def test_references_hold_and_rows_are_in_file_order(entity_rows: list, relationship_rows: list) -> None:
    merged = merge_graph(entities(*entity_rows), relationships(*relationship_rows), CLAIM_MENTIONS.empty(), SETTINGS)
    for table in (ENTITIES, RELATIONSHIPS, COVARIATES, ENTITY_MERGES):
        assert table.sort(merged[table.name]) == merged[table.name]
    ids = set(merged["entities"]["id"].to_pylist())
    assert len(ids) == merged["entities"].num_rows
    assert ids >= set(
        merged["relationships"]["source_id"].to_pylist() + merged["relationships"]["target_id"].to_pylist()
    )
    titles = set(merged["entities"]["title"].to_pylist())
    assert titles >= set(merged["entity_merges"]["title"].to_pylist())


@settings(max_examples=repetitions(4, thorough=10), deadline=None)
@given(_ENTITIES, _RELATIONSHIPS)
def test_a_document_that_came_and_went_leaves_no_trace(entity_rows: list, relationship_rows: list) -> None:
    kept = [entities(*entity_rows), relationships(*relationship_rows)]
    gone = [
        entities(("u9", "Ebenezer Scrooge", "PERSON", "b"), ("u9", "Fred", "GEO", "c")),
        relationships(("u9", "Ebenezer Scrooge", "Fred", "y", 1.0), ("u9", "Scrooge", "Fred", "y", 1.0)),
    ]
    both = [pa.concat_tables(tables) for tables in zip(gone, kept, strict=True)]
    between = merge_graph(both[0], both[1], CLAIM_MENTIONS.empty(), SETTINGS)
    assert "u9" in pc.list_flatten(between["entities"]["text_unit_ids"]).to_pylist()
    left = [table.filter(pc.not_equal(table["text_unit_id"], "u9")) for table in both]
    after = merge_graph(left[0], left[1], CLAIM_MENTIONS.empty(), SETTINGS)
    assert after == merge_graph(kept[0], kept[1], CLAIM_MENTIONS.empty(), SETTINGS)


def test_files_threads_and_order_of_many_rows_do_not_matter(tmp_path: Path) -> None:
    write_mentions(tmp_path, n_entity=3_000, n_relationship=9_000, n_names=400, seed=3)
    folders = [tmp_path / name for name in ("entity_mentions", "relationship_mentions")]
    whole = [pq.read_table(folder) for folder in folders]
    expected = merge_graph(whole[0], whole[1], CLAIM_MENTIONS.empty(), SETTINGS, n_threads=1)
    for folder, table in zip(folders, whole, strict=True):
        (folder / "000.parquet").unlink()
        for part in range(3):
            rows = list(range(part, table.num_rows, 3))[::-1]
            pq.write_table(table.take(rows), folder / f"{part}.parquet")
    got = merge_graph(ds.dataset(folders[0]), ds.dataset(folders[1]), CLAIM_MENTIONS.empty(), SETTINGS)
    assert expected["relationships"].num_rows > 4_000
    for name, table in expected.items():
        assert got[name] == table


def test_a_merge_by_ranges_in_files_equals_one_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n = repetitions(150, thorough=500)
    write_mentions(tmp_path, n_entity=n, n_relationship=3 * n, n_names=repetitions(30, thorough=80), seed=5)
    mentions = [pq.read_table(tmp_path / name) for name in ("entity_mentions", "relationship_mentions")]
    in_memory = merge_graph(mentions[0], mentions[1], CLAIM_MENTIONS.empty(), SETTINGS)
    monkeypatch.setattr(graph, "MAX_ROWS_IN_MEMORY", 0)
    for range_rows in (10_000, repetitions(150, thorough=400), 7):
        monkeypatch.setattr(graph, "RANGE_ROWS", range_rows)
        folder = tmp_path / "it's [a] folder"
        by_ranges = merge_graph(mentions[0], mentions[1], CLAIM_MENTIONS.empty(), SETTINGS, n_threads=3, folder=folder)
        assert by_ranges == in_memory
        assert not list(folder.iterdir())
    assert in_memory["relationships"].num_rows > n


@settings(max_examples=repetitions(4, thorough=10), deadline=None)
@given(_ENTITIES, _RELATIONSHIPS, st.integers(1, 9))
def test_the_number_of_ranges_does_not_matter(entity_rows: list, relationship_rows: list, range_rows: int) -> None:
    claims = CLAIM_MENTIONS.from_rows(
        [
            {"text_unit_id": f"u{n % 3}", "position": n, "subject": "Fred", "object": "NONE", "type": "T",
             "status": "TRUE", "description": f"claim {n % 2}", "source_text": "q", "request_key": None}
            for n in range(6)
        ]
    )  # fmt: skip
    mentions = entities(*entity_rows), relationships(*relationship_rows), claims
    units = overlapping("d", _WALK, _PATH, _WALK)
    expected = merge_graph(*mentions, SETTINGS, text_units=units)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph, "RANGE_ROWS", range_rows)
        assert merge_graph(*mentions, SETTINGS, text_units=units) == expected


def test_ranges_without_a_relationship_are_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "RANGE_ROWS", 1)
    merged = merge(TIED, relationships(("u1", "Fred", "Fred", "", 1.0), ("u1", "FRED", "Fred", "", 1.0)))
    assert merged["relationships"] == []


def test_merges_in_threads_do_not_disturb_each_other() -> None:
    mentions = entities(("u1", "Scrooge", "PERSON", "a"))
    results: list[dict] = []
    threads = [threading.Thread(target=lambda: results.append(merge(mentions))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results[0] == results[1] == merge(mentions)
