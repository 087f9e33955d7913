from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.engines.embedded.reports import write_reports
from graphrag_pipeline.identity import entity_id
from graphrag_pipeline.indexing.communities.detection import detect_communities
from graphrag_pipeline.indexing.reports.community_reports import report_communities
from graphrag_pipeline.indexing.reports.evidence import EarlierReports
from graphrag_pipeline.settings.settings import CommunitiesSettings, ReportsSettings
from graphrag_pipeline.tables import COMMUNITIES
from graphrag_pipeline_tests.support.corpora.random_graphs import described_graphs
from graphrag_pipeline_tests.support.corpora.stage_graph import StageGraph, describe, make_graph
from graphrag_pipeline_tests.support.models.hashing_embeddings import HashingEmbeddings

PAIRS = {("ANN", "BOB"): ["Ann met Bob."], ("BOB", "CYD"): ["Bob met Cyd."], ("ANN", "CYD"): ["Ann met Cyd."]}
FACTS = [f"Ann did {number} things on that day." for number in range(40)]
BY_MODEL = ReportsSettings(engine="model", rewrite_share=0.1, min_report_size=1)


class CountingWriter:
    """The embedded engine as a model; counts the contexts it writes on."""

    def __init__(self) -> None:
        self.n_written = 0

    def __call__(self, contexts):
        self.n_written += len(contexts)
        return write_reports(contexts, BY_MODEL, HashingEmbeddings())


def trio(n_facts: int, *, claims=()) -> StageGraph:
    """Return three people in one community, with some facts on Ann."""
    return make_graph(PAIRS, {"ANN": FACTS[:n_facts]}, list(claims))


def report(graph, known=None, *, basis="", may_defer=True, descriptions=None, options=BY_MODEL):
    writer = CountingWriter()
    rows = report_communities(
        detect_communities(graph.entities, graph.relationships, CommunitiesSettings(max_cluster_size=4)),
        *graph,
        describe(graph) if descriptions is None else descriptions,
        options,
        writer,
        EarlierReports(known, basis, may_defer),
    )
    return rows, writer.n_written


def share_of(rows: pa.Table) -> float:
    return max(rows["new_share"].to_pylist())


def test_a_report_with_little_new_evidence_is_deferred_with_its_share():
    first, _ = report(trio(30))
    again, n_written = report(trio(32), first)
    assert n_written == 0
    assert share_of(again) == pytest.approx(2 / 41)  # 32 facts, 3 entities, 3 relationships and their 3 descriptions
    assert again.drop_columns("new_share").equals(first.drop_columns("new_share"))


def test_small_additions_add_up_until_it_is_written_again():
    rows, _ = report(trio(30))
    written = []
    for n_facts in range(31, 40):
        rows, n_written = report(trio(n_facts), rows)
        written.append(n_written)
    assert written == [0, 0, 0, 0, 1, 0, 0, 0, 0]  # 5 of 44 is over a tenth, and from there on 4 of 48 is not


def test_a_report_with_lost_evidence_is_never_deferred():
    first, _ = report(trio(30))
    rows, n_written = report(trio(29), first)
    assert n_written == 1
    assert rows.equals(report(trio(29))[0])


def test_a_new_claim_may_defer_a_report_and_a_lost_one_may_not():
    claim = ("ANN", "NONE", "Ann stole the ring.")
    first, _ = report(trio(30))
    with_claim, n_written = report(trio(30, claims=[claim]), first)
    assert (n_written, share_of(with_claim) > 0) == (0, True)
    knowing, _ = report(trio(30, claims=[claim]))
    assert report(trio(30), knowing)[1] == 1


def test_descriptions_by_another_prompt_defer_no_report():
    first, _ = report(trio(30), basis="one prompt")
    assert report(trio(31), first, basis="one prompt")[1] == 0
    assert report(trio(31), first, basis="another prompt")[1] == 1


def flag_fallback(rows: pa.Table) -> pa.Table:
    position = rows.schema.get_field_index("is_fallback")
    return rows.set_column(position, rows.schema.field(position), pa.repeat(pa.scalar(True), rows.num_rows))


def test_a_fallback_description_defers_no_report():
    first, _ = report(trio(30), descriptions=flag_fallback(describe(trio(30))))
    assert report(trio(31), first)[1] == 1


def test_a_fallback_report_is_not_deferred():
    first, _ = report(trio(30))
    assert report(trio(31), flag_fallback(first))[1] == 1


@pytest.mark.parametrize(
    "options",
    [BY_MODEL.model_copy(update={"rewrite_share": 0.0}), BY_MODEL.model_copy(update={"engine": "embedded"})],
)
def test_complete_and_free_reports_are_never_deferred(options):
    first, _ = report(trio(30), options=options)
    rows, n_written = report(trio(31), first, options=options)
    assert n_written == 1
    assert share_of(rows) == 0


def test_no_report_is_deferred_after_a_recluster():
    first, _ = report(trio(30))
    rows, n_written = report(trio(31), first, may_defer=False)
    assert n_written == 1
    assert rows.equals(report(trio(31))[0])


def test_a_reverted_change_costs_nothing():
    first, _ = report(trio(30))
    waiting, _ = report(trio(31), first)
    back, n_written = report(trio(30), waiting)
    assert n_written == 0
    assert back.equals(first)


@given(described_graphs, described_graphs, st.sampled_from([0.05, 0.3, 0.9]))
def test_every_report_is_fresh_or_rests_on_evidence_that_holds(old, new, share):
    options = BY_MODEL.model_copy(update={"rewrite_share": share})
    first, _ = report(old, options=options)
    fresh, _ = report(new, options=options)
    rows, _ = report(new, first, options=options)
    texts = {row["context_key"]: row["title"] for row in first.to_pylist()}
    for row, best in zip(rows.to_pylist(), fresh.to_pylist(), strict=True):
        if row["new_share"] == 0:
            assert set(row["evidence"]) == set(best["evidence"])
        else:
            assert row["new_share"] <= share
            assert set(row["evidence"]) < set(best["evidence"])
            assert row["title"] == texts[row["context_key"]]
    assert report(new, rows, options=options)[0].equals(rows)


def two_trios(n_facts: int) -> StageGraph:
    """Return Ann, with some facts, Bob and Cyd, and three others."""
    others = {("DAN", "EVE"): ["Dan met Eve."], ("EVE", "FAY"): ["Eve met Fay."], ("CYD", "DAN"): ["Cyd met Dan."]}
    return make_graph(PAIRS | others, {"ANN": FACTS[:n_facts], "DAN": FACTS[:30]})


def nested() -> pa.Table:
    """Return one community of all six, and the two of three in it."""
    trios = {"first": ["ANN", "BOB", "CYD"], "second": ["DAN", "EVE", "FAY"]}
    members = {"all": trios["first"] + trios["second"]} | trios
    return COMMUNITIES.from_rows(
        [
            {
                "id": name,
                "level": 0 if name == "all" else 1,
                "parent_id": None if name == "all" else "all",
                "entity_ids": [entity_id(title) for title in titles],
                "size": len(titles),
            }
            for name, titles in members.items()
        ]
    )


def test_a_report_written_from_a_deferred_report_knows_no_more_than_it():
    options = BY_MODEL.model_copy(update={"max_input_tokens": 600, "rewrite_share": 0.1})

    def report_nested(graph, known=None):
        arguments = (nested(), *graph, describe(graph), options, CountingWriter(), EarlierReports(known))
        return report_communities(*arguments)

    first = report_nested(two_trios(30))
    of_trios = first.filter(pc.equal(first["level"], 1))  # so that the report on all six is written again
    rows = {row["community_id"]: row for row in report_nested(two_trios(33), of_trios).to_pylist()}
    assert rows["first"]["new_share"] > 0
    assert rows["second"]["new_share"] == 0
    assert rows["first"]["new_share"] == pytest.approx(3 / 42)  # 3 facts more; records, their descriptions, 30 facts
    assert rows["all"]["new_share"] == pytest.approx(3 / (len(rows["all"]["evidence"]) + 3))


def test_a_complete_report_is_not_rewritten_for_another_order():
    first, _ = report(trio(30))
    other = first.set_column(
        first.schema.get_field_index("inputs_key"), first.schema.field("inputs_key"), pa.array(["other"])
    )
    other = other.set_column(
        first.schema.get_field_index("context_key"), first.schema.field("context_key"), pa.array(["other"])
    )
    rows, n_written = report(trio(30), other)
    assert (n_written, share_of(rows)) == (0, 0)
