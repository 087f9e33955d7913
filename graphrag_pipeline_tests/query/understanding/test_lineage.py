"""Questions about what is upstream or downstream of a name, answered by path and text."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline_tests.support.roots import built_root, open_built


def model(name: str, *parents: str) -> dict[str, object]:
    return {"name": name, "resource_type": "model", "depends_on": {"nodes": [f"model.shop.{one}" for one in parents]}}


MANIFEST = {
    "metadata": {"dbt_schema_version": "https://schemas.getdbt.com/dbt/manifest/v12.json"},
    "nodes": {
        "model.shop.raw_pay": model("raw_pay"),
        "model.shop.stg_pay": model("stg_pay", "raw_pay"),
        "model.shop.fct_sales": model("fct_sales", "stg_pay", "fct_sales"),
        "model.shop.fct_stock": model("fct_stock"),
    },
}
TEXTS = {
    "dbt/manifest.json": json.dumps(MANIFEST),
    "incidents/late.md": "# TICKET-7: Late file\n\nThe file came late, so `raw_pay` had no rows of the day.\n",
    "incidents/full.md": "# TICKET-8: Full disk\n\nThe disk of `fct_stock` was full.\n",
    "minutes/april.md": "# SYNC-4: Data guild\n\nWe talked about `stg_pay`, and who may change it.\n",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphIndex]:
    with open_built(tmp_path_factory.mktemp("lineage"), TEXTS) as opened:
        yield opened


@pytest.mark.parametrize(
    ("question", "note", "cited"),
    [
        ("Which incidents touched models upstream of fct_sales?",
         "Upstream of FCT_SALES, by depends_on: STG_PAY, RAW_PAY. See TICKET-7.", "TICKET-7: Late file"),
        ("What depends on raw_pay?", "Downstream of RAW_PAY, by depends_on: STG_PAY, FCT_SALES.", "stg_pay"),
        ("What does fct_sales depend on?", "Upstream of FCT_SALES, by depends_on: STG_PAY, RAW_PAY.", "stg_pay"),
        ("What is downstream of raw_pay?", "Downstream of RAW_PAY, by depends_on: STG_PAY, FCT_SALES.", "stg_pay"),
    ],
)  # fmt: skip
def test_a_question_of_lineage_is_answered_by_path_and_text(
    index: GraphIndex, question: str, note: str, cited: str
) -> None:
    result = index.search(question)
    assert result.answer.endswith(note)
    assert cited in [citation.document_title for citation in result.citations[:3]]
    assert result.selection["lineage"]["names"] == note.partition(": ")[2].partition(".")[0].split(", ")


@pytest.mark.parametrize("question", ["What is upstream of raw_pay?", "What is upstream?", "Who changed stg_pay?"])
def test_a_question_without_a_path_stays_as_it_is(index: GraphIndex, question: str) -> None:
    assert "lineage" not in index.search(question).selection


MAPPED = {
    "feeds.csv": "job,reads_from,feeds,runs_on,owner\n"
    "load-pay,pay-topic,stg-pay,pg-1,Ana Roy\nload-web,web-log,,pg-1,Bo Li\n"
    "stg-pay,,mart-pay,pg-2,Ana Roy\n",
    "minutes.md": "# Guild\n\nWe talked about `mart-pay` and `pay-topic`.\n",
}
TABLES = """
storage: {n_buckets: 2}
input:
  tables:
    - files: feeds.csv
      entity: job
      type: JOB
      relationships:
        reads_from: {lineage: upstream}
        feeds: {lineage: downstream}
        runs_on: {}
        owner: {type: PERSON}
"""


@pytest.fixture(scope="module")
def mapped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphIndex]:
    with GraphIndex.of_root(built_root(tmp_path_factory.mktemp("mapped"), MAPPED, TABLES, ALL_STAGES)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("question", "note"),
    [
        (
            "What is downstream of pay-topic?",
            "Downstream of PAY-TOPIC, by reads_from, feeds: LOAD-PAY, STG-PAY, MART-PAY.",
        ),
        ("What reads from pay-topic?", "Downstream of PAY-TOPIC, by reads_from, feeds: LOAD-PAY, STG-PAY, MART-PAY."),
        ("What depends on stg-pay?", "Downstream of STG-PAY, by feeds: MART-PAY."),
        ("What feeds mart-pay?", "Upstream of MART-PAY, by feeds, reads_from: STG-PAY, LOAD-PAY, PAY-TOPIC."),
        ("What does load-pay feed?", "Downstream of LOAD-PAY, by feeds: STG-PAY, MART-PAY."),
        ("What runs on pg-1?", ""),
    ],
)
def test_a_mapping_says_which_other_columns_are_lineage(mapped: GraphIndex, question: str, note: str) -> None:
    result = mapped.search(question)
    assert result.answer.endswith(note) and ("lineage" in result.selection) == bool(note)
