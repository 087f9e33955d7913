""""""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem.listed_folders import write_file_list
from graphrag_pipeline.query import records
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.search import local as local_search
from graphrag_pipeline.query.search import local_ranking
from graphrag_pipeline.query.search.basic import select_basic
from graphrag_pipeline.query.selection import hybrid_ranking, local_text_units
from graphrag_pipeline.query.selection.strategies import RANKED, STRATEGIES
from graphrag_pipeline.query.understanding.entity_matching import ENTITY_VECTORS
from graphrag_pipeline.settings.settings import BasicSearchSettings, LocalSearchSettings
from graphrag_pipeline.storage.vectors.folders import connect
from graphrag_pipeline.text.tokens import count_tokens
from graphrag_pipeline_tests.bench import parity, parity_local
from graphrag_pipeline_tests.model_server import running_model_server
from graphrag_pipeline_tests.support.models.model_index import open_with_model
from graphrag_pipeline_tests.support.roots import open_built

RECORD_AGAIN = "record again: python -m graphrag_pipeline_tests.bench parity --record"


@pytest.fixture(scope="module")
def recorded() -> Any:
    return parity.read_recording(parity_local.RECORDING)


@pytest.fixture(scope="module")
def ours(carol: GraphIndex, recorded: Any) -> Callable[[str], Any]:
    """Return the contexts of all questions with one limit."""
    return functools.cache(functools.partial(parity_local.run_ours, carol, recorded["matched"]))


@pytest.mark.parametrize("limit", parity_local.LIMITS)
def test_contexts_of_100_questions_are_those_of_microsoft_graphrag(
    ours: Callable[[str], Any], recorded: Any, limit: str
) -> None:
    assert len(recorded["questions"]) == parity.N_QUESTIONS
    contexts = ours(limit)
    theirs = recorded["runs"][f"exported {limit}"]
    compared = parity_local.compare_contexts(recorded["questions"], contexts, theirs, limit)
    assert [c.n_equal for c in compared] == [parity.N_QUESTIONS] * len(parity_local.PARTS), (
        f"{parity.describe_unexplained(compared)}\n{RECORD_AGAIN}"
    )


@pytest.mark.parametrize("limit", parity_local.TALK_LIMITS)
def test_contexts_after_a_conversation_are_those_of_microsoft_graphrag(
    carol: GraphIndex, recorded: Any, limit: str
) -> None:
    described = parity_local.run_talks(carol, recorded["matched"], limit)
    name = f"talk {limit}"
    compared = parity_local.compare_descriptions(
        parity_local.PARTS, recorded["questions"], described, recorded["runs"][name], name
    )
    assert {c.n_equal for c in compared} == {parity.N_QUESTIONS}, parity.describe_unexplained(compared)


@pytest.mark.parametrize("style", parity_local.STYLES)
def test_tables_in_another_style_are_those_of_microsoft_graphrag(carol: GraphIndex, recorded: Any, style: str) -> None:
    described = parity_local.run_styled(carol, recorded["matched"], style)
    theirs = recorded["runs"][f"{style} usual"]
    compared = parity_local.compare_descriptions(parity_local.PARTS, recorded["questions"], described, theirs, style)
    assert {c.n_equal for c in compared} == {parity.N_QUESTIONS}, parity.describe_unexplained(compared)


def test_the_recorded_questions_are_those_of_the_bench(carol: GraphIndex, recorded: Any) -> None:
    assert parity_local.make_questions(carol, parity.N_QUESTIONS) == recorded["questions"], RECORD_AGAIN
    assert {len(ids) for ids in recorded["matched"]} == {10}


def test_two_repairs_of_the_import_are_the_only_differences_on_the_tables_of_the_source(
    ours: Callable[[str], Any], recorded: Any
) -> None:
    contexts = ours("usual")
    compared = parity_local.compare_source(recorded["questions"], contexts, recorded["runs"])
    assert not parity.describe_unexplained(compared), RECORD_AGAIN
    equal = {comparison.what.removeprefix("local, "): comparison.n_equal for comparison in compared}
    assert {n for what, n in equal.items() if what.startswith("repaired")} == {100}
    assert equal["source usual context: community reports"] >= 99 and equal["source usual context: text units"] >= 85


def test_a_question_has_the_context_of_its_matched_entities(carol: GraphIndex) -> None:
    question = "What have Bob Cratchit and Tiny Tim to do with each other?"
    result = carol.search(question, strategy="depth_first", context_only=True)
    [ids] = parity_local.match_ids(carol, [question])
    assert [entity.id for entity in result.context.entities] == ids
    settings = carol.settings.search("local", strategy="depth_first")
    again = parity_local.select_ours(carol, ids, settings)
    numbers = parity_local.describe_context(again, settings)
    assert parity_local.describe_context(result.context, settings) == numbers


def test_each_part_keeps_to_its_share_and_ends_at_the_first_row_that_does_not_fit(carol: GraphIndex) -> None:
    options = {"strategy": "depth_first", "context_only": True, "max_context_tokens": 3_000}
    strict = carol.search("Who is Scrooge?", **options)
    shared = carol.search("Who is Scrooge?", packing="shared", **options)
    assert strict.selection["packing"] == "strict" and "packing" not in shared.selection
    assert strict.context.n_tokens < shared.context.n_tokens <= 3_000
    assert len(strict.context.text_units) == 1  # 1,500 tokens hold one of about 1,200
    assert "-----Sources-----\nid|text\n" in strict.to_markdown() and "# Sources" in shared.to_markdown()


def test_reports_of_all_levels_or_of_the_frontier_are_read(carol: GraphIndex) -> None:
    options = {"context_only": True, "max_context_tokens": 60_000}
    levels = {
        name: {report.level for report in carol.search("Who is Scrooge?", **given, **options).context.reports}
        for name, given in {
            "all": {"report_levels": "all"},
            "frontier": {},
            "depth_first": {"strategy": "depth_first", "community_level": 1},
        }.items()
    }
    assert levels["all"] == {0, 1, 2} and levels["depth_first"] == {0, 1}
    parents = {r.community for r in carol.search("Who is Scrooge?", **options).context.reports}
    children = carol.snapshot.table("communities").to_pylist()
    assert not {row["parent"] for row in children if row["community"] in parents} & parents


def test_a_ranked_table_of_reports_is_sorted_by_rank(carol: GraphIndex) -> None:
    options = {"strategy": "depth_first", "include_community_rank": True, "max_context_tokens": 40_000}
    result = carol.search("Who is Scrooge?", context_only=True, **options)
    ranks = [report.rank for report in result.context.reports]
    assert len(ranks) > 2 and ranks == sorted(ranks, reverse=True)
    assert "-----Reports-----\nid|title|content|rank\n" in result.to_markdown()


def test_names_and_the_delimiter_of_the_tables_are_options(carol: GraphIndex) -> None:
    names = {
        "rank_description": "degree",
        "column_delimiter": "\t",
        "community_context_name": "Communities",
        "entity_context_name": "Nodes",
        "relationship_context_name": "Edges",
        "claim_context_name": "Covariates",
        "text_unit_context_name": "Chunks",
    }
    options = {"context_only": True, "max_context_tokens": 40_000}
    for strategy, heading in (("depth_first", "-----{}-----"), ("balanced", "# {}")):
        result = carol.search("Who is Scrooge?", strategy=strategy, **names, **options)
        lines = result.to_markdown().splitlines()
        for name in ("Communities", "Nodes", "Edges", "Covariates", "Chunks"):
            assert heading.format(name) in lines
        header = lines[lines.index(heading.format("Nodes")) + 1]
        assert header.startswith("id\t") and header.endswith("\tdegree")
        plain = carol.search("Who is Scrooge?", strategy=strategy, **options).to_markdown()
        assert "number of relationships" in plain and "Communities" not in plain.splitlines()


def test_long_names_stay_within_the_budget(carol: GraphIndex) -> None:
    names = {name: f"{name} {'一二三四五六七八九十' * 3}"[:60] for name in ("rank_description", "entity_context_name")}
    for packing in ("strict", "shared"):
        options = {"context_only": True, "max_context_tokens": 3_000, "packing": packing}
        shown = carol.search("Who is Scrooge?", **options, **names).to_markdown()
        assert names["rank_description"] in shown and count_tokens(shown) <= 3_000


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"column_delimiter": "a"}, "column_delimiter"),
        ({"column_delimiter": "||"}, "column_delimiter"),
        ({"packing": "loose"}, "packing"),
        ({"entity_context_name": "Reports"}, "entity_context_name|Reports"),
        ({"rank_description": "a|b"}, "holds the column_delimiter"),
        ({"rank_description": "a, b", "column_delimiter": ","}, "holds the column_delimiter"),
        *(
            ({"entity_context_name": f"Ent{mark}ities"}, "without brackets, commas")
            for mark in "()[],;\uff08\u3010\uff0c"
        ),
        *(
            ({name: value}, said)
            for name in ("rank_description", "entity_context_name")
            for value, said in (
                ("a\nb", r"'a\\nb' has a line break; write a name of 1 to 60 characters on one line"),
                ("a\u2028", "has a line break; write a name of 1 to 60"),
                (" a", "' a' begins or ends with white space; write the name without it"),
                ("a" * 61, "'a{20}'... has 61 characters; write a name of 1 to 60"),
                ("", "is empty; write a name"),
                (" ", "is empty; write a name"),
                (None, "is empty; write a name"),
            )
        ),
    ],
)
def test_a_name_that_breaks_the_tables_is_rejected(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        LocalSearchSettings(**options)


def test_names_that_fit_are_taken_as_they_are() -> None:
    assert LocalSearchSettings(entity_context_name="a" * 60).entity_context_name == "a" * 60
    assert LocalSearchSettings(rank_description="a|b", column_delimiter=";").rank_description == "a|b"


@pytest.mark.parametrize(
    "name", ["Chunks", "\u8282\u70b9", "Text-units 2", "Entit\u00e9s d'ici", "My Reports", "Report"]
)
def test_a_citation_by_a_changed_heading_resolves(carol: GraphIndex, tmp_path: Path, name: str) -> None:
    options = {"strategy": "depth_first", "text_unit_context_name": name}
    number = carol.search("Who is Scrooge?", context_only=True, **options).context.text_units[0].human_readable_id
    with running_model_server(lambda request: f"Scrooge is a miser [Data: {name} ({number})].") as server:
        result = open_with_model(carol, tmp_path, server).search("Who is Scrooge?", **options)
    assert [citation.human_readable_id for citation in result.citations] == [number]
    assert result.answer == "Scrooge is a miser [1]." and result.answering["invented_citations"] == 0


# ------------------------------------------------------------------------------------------------------ joining vectors


@pytest.fixture(scope="module")
def titled_root(carol_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of A Christmas Carol with a vector table of entities whose ids are titles."""
    root = tmp_path_factory.mktemp("titled") / "root"
    shutil.copytree(carol_root, root)
    with GraphIndex.open(root) as index:
        titles = dict(zip(*index.snapshot.table("entities").select(["id", "title"]).to_pydict().values(), strict=True))
        vectors = index.snapshot.vectors(ENTITY_VECTORS)
        place = vectors.folder.path(root / "snapshots" / "vectors")
    table = connect(place).open_table(vectors.folder.name)
    rows = table.to_arrow()
    named = pa.array([titles[entity_id] for entity_id in rows["id"].to_pylist()])
    table.delete("true")
    table.add(rows.set_column(rows.schema.get_field_index("id"), "id", named))
    write_file_list(place)
    return root


def test_vectors_join_entities_by_id_or_by_title(carol: GraphIndex, titled_root: Path) -> None:
    question = "Whom does the miser visit at Christmas?"
    with GraphIndex.open(titled_root) as index:
        found = index.search(question, context_only=True, entity_key="title").context
        assert found.entities == carol.search(question, context_only=True).context.entities
        assert [entity.match for entity in found.entities].count("vector") >= 5
        with pytest.raises(PipelineError, match="set `entity_key` of local search to title"):
            index.search(question, context_only=True)
    with pytest.raises(PipelineError, match="set `entity_key` of local search to id"):
        carol.search(question, context_only=True, entity_key="title")


def test_only_entities_of_a_community_are_matched_if_the_scope_says_so(carol: GraphIndex) -> None:
    n_communities = carol.snapshot.adjacency.counts("entity_communities")
    options = {"context_only": True, "top_k_entities": 561, "max_context_tokens": 200_000}
    every = carol.search("christmas", **options).context.entities
    scoped = carol.search("christmas", entity_scope="in_communities", **options).context.entities
    assert len(every) == 561
    named = sum(entity.match == "name" for entity in every)
    assert int((n_communities > 0).sum()) <= len(scoped) <= int((n_communities > 0).sum()) + named


def test_only_communities_of_the_level_count_for_the_scope(carol: GraphIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hierarchy whose highest level is 1, as an index of another program may have it."""
    read_column = GraphIndex.column

    def lower(index: GraphIndex, table: str, column: str) -> Any:
        values = read_column(index, table, column)
        return values + 1 if (table, column) == ("communities", "level") else values

    monkeypatch.setattr(GraphIndex, "column", lower)
    options = {"context_only": True, "top_k_entities": 9, "entity_scope": "in_communities"}
    ways = [carol.search("christmas", community_level=level, **options).context.entities for level in (0, 1)]
    assert {entity.match for entity in ways[0]} <= {"name"} and "vector" in {entity.match for entity in ways[1]}


def rows_of(index, *titles):
    return index.snapshot.rows_of("entities", list(titles), "title")


def titles_of(index, rows):
    return [record["title"] for record in index.snapshot.take("entities", rows, ["title"])]


def test_the_entities_a_question_names_come_first_then_the_nearest(carol):
    matches = local_search.begin_matching(carol, "Who is Jacob Marley?", 10)()
    assert titles_of(carol, [matches[0].row]) == ["JACOB MARLEY"]
    assert [match.is_named for match in matches] == [True] + [False] * 9
    near = [match.score for match in matches[1:]]
    assert near == sorted(near, reverse=True)
    assert len({match.row for match in matches}) == 10


@pytest.mark.parametrize("k", [1, 3, 10, 561, 1000])
def test_exactly_k_entities_where_that_many_exist(carol, k):
    assert len(local_search.begin_matching(carol, "Scrooge and Bob Cratchit at Christmas", k)()) == min(k, 561)


def test_a_question_without_words_matches_nothing(carol):
    assert local_search.select_local_context(carol, "\U0001f384", LocalSearchSettings()).is_empty


def test_reports_are_ordered_by_matched_entities_then_rank_and_never_nested(carol):
    entities = np.array([m.row for m in local_search.begin_matching(carol, "Bob Cratchit and Tiny Tim", 10)()])
    rows, n_inside = local_ranking.rank_reports(carol, entities, LocalSearchSettings())
    ranks = carol.column("community_reports", "rank")[rows]
    assert list(zip(-n_inside, -ranks, strict=True)) == sorted(zip(-n_inside, -ranks, strict=True))
    assert carol.column("community_reports", "level")[rows].max() <= 2
    numbers = set(carol.column("community_reports", "community")[rows].tolist())
    assert not numbers & set(carol.column("community_reports", "parent")[rows].tolist())
    assert n_inside.sum() == len(entities)


def test_relationships_inside_the_network_come_first_then_the_best_connected_outside(small):
    entities = rows_of(small, "SCROOGE", "TINY TIM")
    found = local_ranking.rank_relationships(small, entities, max_outside=10)
    ends = [(r["source"], r["target"]) for r in small.snapshot.take("relationships", found.rows)]
    assert ends == [("BOB CRATCHIT", "SCROOGE"), ("BOB CRATCHIT", "TINY TIM"), ("MARLEY", "SCROOGE")]
    assert found.n_touched.tolist() == [2, 2, 1]
    assert not found.is_inside.any()
    found = local_ranking.rank_relationships(small, rows_of(small, "SCROOGE", "MARLEY"), max_outside=1)
    assert found.is_inside.tolist() == [True, False]


def test_relationships_agree_with_a_scan_of_the_table(carol):
    entities = rows_of(carol, "SCROOGE", "BOB CRATCHIT", "FRED")
    entities = entities[entities >= 0]
    found = local_ranking.rank_relationships(carol, entities, max_outside=10**6)
    titles = set(titles_of(carol, entities))
    table = carol.snapshot.table("relationships").to_pylist()
    n_ends = [(r["source"] in titles) + (r["target"] in titles) for r in table]
    assert set(found.rows.tolist()) == {i for i, n in enumerate(n_ends) if n}
    assert set(found.rows[found.is_inside].tolist()) == {i for i, n in enumerate(n_ends) if n == 2}


@pytest.mark.parametrize("attribute", ["rank", "weight"])
def test_the_best_few_outside_are_the_first_of_all(carol, attribute):
    entities = rows_of(carol, "SCROOGE", "BOB CRATCHIT", "FRED")
    entities = entities[entities >= 0]
    every = local_ranking.rank_relationships(carol, entities, 10**6, attribute)
    for n in (0, 1, 7, 40):
        few = local_ranking.rank_relationships(carol, entities, n, attribute)
        assert few.rows.tolist() == every.rows[: int(every.is_inside.sum()) + n].tolist()


def test_a_network_that_leaves_out_what_is_never_first_ranks_as_with_all(carol, monkeypatch):
    entities = rows_of(carol, "FRED", "SCROOGE", "BOB CRATCHIT", "TINY TIM")
    entities = entities[entities >= 0]
    rank = local_ranking.rank_relationships_of_prefixes
    pruned = {
        (n, attribute): list(rank(carol, entities, n, attribute)) for n in (1, 2, 5) for attribute in ("rank", "weight")
    }
    keep_all = lambda network, rows, owners, *_: np.arange(len(owners))  # noqa: E731
    monkeypatch.setattr(local_ranking._Network, "_may_be_first", keep_all)
    for (n, attribute), few in pruned.items():
        for found, expected in zip(few, rank(carol, entities, n, attribute), strict=True):
            assert found.rows.tolist() == expected.rows.tolist()
            assert found.n_touched.tolist() == expected.n_touched.tolist()


def test_claims_come_by_entity_or_take_turns(carol):
    entities = rows_of(carol, "SCROOGE", "JACOB MARLEY")
    rows, claimants = local_ranking.rank_claims(carol, entities)
    n_first = int((claimants == 0).sum())
    assert claimants.tolist() == sorted(claimants) and 1 < n_first < len(claimants) - 1
    turns = local_ranking.take_turns(claimants)
    assert claimants[turns][:4].tolist() == [0, 1, 0, 1]
    assert [place for place in turns if place < n_first] == list(range(n_first))
    subjects = [claim["subject_id"] for claim in carol.snapshot.take("covariates", rows)]
    assert subjects == [["SCROOGE", "JACOB MARLEY"][claimant] for claimant in claimants]


def candidates_of(index, matches, max_offered=local_text_units.MIN_OFFERED):
    offers = local_text_units.gather_offers(index, matches, max_offered)
    return local_text_units.join_offers(index, matches, offers, np.zeros(0, dtype=np.int64))


def test_candidates_count_the_matched_entities_relationships_per_text_unit(small):
    matches = [local_text_units.Match(int(row), 0.5, False) for row in rows_of(small, "SCROOGE", "FOG")]
    rows, candidates = candidates_of(small, matches)
    texts = [unit["text"] for unit in small.snapshot.take("text_units", rows, ["text"])]
    assert [t.split()[0] for t in texts] == ["Marley", "Scrooge", "The"]
    assert [units.tolist() for units in candidates.text_units] == [[0, 1], [2]]
    assert [counts.tolist() for counts in candidates.n_of_entity] == [[1, 1], [0]]


def test_candidates_count_the_relationships_of_each_entity_as_a_scan_of_the_tables_does(carol):
    matches = local_search.begin_matching(carol, "How does the Cratchit family keep Christmas?", 10)()
    rows, candidates = candidates_of(carol, matches)
    ids = [unit["id"] for unit in carol.snapshot.take("text_units", rows, ["id"])]
    pairs = carol.snapshot.table("relationships").to_pylist()
    assert len(matches) > 0
    for title, units, counts in zip(
        titles_of(carol, [match.row for match in matches]), candidates.text_units, candidates.n_of_entity, strict=True
    ):
        own = [pair["text_unit_ids"] for pair in pairs if title in (pair["source"], pair["target"])]
        assert counts.tolist() == [sum(ids[unit] in stated for stated in own) for unit in units]
        fewer = candidates_of(carol, matches, 2)[1]
        assert all(len(units) <= 2 for units in fewer.text_units)


def test_the_most_related_text_units_are_offered(carol):
    [match, *_] = local_search.begin_matching(carol, "Scrooge", 1)()
    _, every = candidates_of(carol, [match])
    _, few = candidates_of(carol, [match], 3)
    assert few.n_of_entity[0].tolist() == [n for n in every.n_of_entity[0] if n in sorted(every.n_of_entity[0])[-3:]]


def test_a_context_holds_what_surrounds_the_entities(small):
    context = local_search.select_local_context(small, "Who haunted Scrooge?", LocalSearchSettings(top_k_entities=2))
    assert context.entities[0].title == "SCROOGE"
    assert {unit.document_title for unit in context.text_units} >= {"a.txt", "b.txt"}
    assert all("SCROOGE" in unit.entities for unit in context.text_units if "Scrooge" in unit.text)


def test_claims_of_a_matched_entity_are_in_the_context(small):
    context = local_search.select_local_context(small, "Marley", LocalSearchSettings(top_k_entities=1))
    assert [claim.description for claim in context.claims] == ["Marley is dead."]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_fills_the_context_with_distinct_text_units(carol, strategy):
    settings = LocalSearchSettings(strategy=strategy)
    context = local_search.select_local_context(carol, "How does the Cratchit family keep Christmas?", settings)
    ids = [unit.id for unit in context.text_units]
    assert len(ids) == len(set(ids)) >= 3
    assert len(context.entities) == 10


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("basic_share", [None, 0.0, 0.9])
def test_basic_search_has_its_share_alone(carol, strategy, basic_share):
    question = "What happens to Tiny Tim?"
    settings = LocalSearchSettings(
        strategy=strategy, max_context_tokens=30_000, basic_share=basic_share, max_text_units_per_entity=1
    )
    context = local_search.select_local_context(carol, question, settings)
    n_reserved = local_text_units.N_RESERVED if strategy in RANKED else local_text_units.N_BASIC
    best = select_basic(carol, question, BasicSearchSettings()).context.text_units[:n_reserved]
    found = [unit.id for unit in context.text_units]
    if strategy in RANKED:
        assert basic_share == 0.0 or found[: len(best)] == [unit.id for unit in best]
        return
    assert all(unit.entities for unit in context.text_units) or basic_share
    if basic_share and strategy != "per_entity_cap":
        assert found[: local_text_units.N_BASIC] == [unit.id for unit in best]
    if strategy == "per_entity_cap":
        assert len(found) <= len(context.entities) + len(best) * bool(basic_share)


@pytest.mark.parametrize("packing", ["strict", "shared"])
@pytest.mark.parametrize(("basic_share", "n_basic"), [(0.1, 0), (0.25, 1), (0.5, 2)])
def test_a_share_for_basic_search_is_of_the_tokens_of_text_units(carol, packing, basic_share, n_basic):
    """Half of 12,000 tokens are for text units of about 1,200, of which a share of 0.5 holds two."""

    def find(share):
        settings = LocalSearchSettings(strategy="depth_first", packing=packing, basic_share=share)
        units = local_search.select_local_context(carol, "Who is Bob Cratchit?", settings).text_units
        return [unit.id for unit in units]

    best = select_basic(carol, "Who is Bob Cratchit?", BasicSearchSettings()).context.text_units
    reserved = [unit.id for unit in best[:n_basic]]
    found = find(basic_share)
    assert found == (reserved + [unit for unit in find(0) if unit not in reserved])[: len(found)]


@pytest.mark.parametrize(("cap", "k"), [(1, 1), (1, 3), (3, 1)])
def test_a_cap_is_a_cap(carol, cap, k):
    settings = LocalSearchSettings(
        strategy="per_entity_cap", top_k_entities=k, max_text_units_per_entity=cap, max_context_tokens=60_000
    )
    context = local_search.select_local_context(carol, "What happens to Scrooge?", settings)
    assert len(context.text_units) == cap * k


def test_strategies_that_rank_put_the_most_relevant_first(carol):
    for strategy in RANKED:
        settings = LocalSearchSettings(strategy=strategy)
        units = local_search.select_local_context(carol, "Who is Fred?", settings).text_units
        scores = [unit.score for unit in units if not unit.is_excerpt]
        assert scores == sorted(scores, reverse=True)
        assert scores[0] > 0


def test_without_a_known_name_graph_keeps_the_order_of_basic_search(carol):
    question = "how cold was it outside?"
    settings = LocalSearchSettings(strategy="graph")
    assert not carol.names.take_apart(question).names
    context = local_search.select_local_context(carol, question, settings)
    best = [unit_id for unit_id, _ in hybrid_ranking.rank_text_units(carol, question, local_text_units.N_SEEDS)]
    found = [unit.id for unit in context.text_units if not unit.is_excerpt]
    assert found == [unit_id for unit_id in best if unit_id in found]


@pytest.mark.parametrize("max_tokens", [100, 1_000, 3_000, 12_000])
def test_the_budget_holds_with_them(carol, max_tokens):
    settings = LocalSearchSettings(max_context_tokens=max_tokens)
    assert local_search.select_local_context(carol, "What happens to Tiny Tim?", settings).n_tokens <= max_tokens


def test_where_no_entity_matches_the_context_is_that_of_basic_search(story, monkeypatch):
    monkeypatch.setattr(local_search, "begin_matching", lambda *_: list)
    context = local_search.select_local_context(story, "萧炎是谁？", LocalSearchSettings())
    assert context == select_basic(story, "萧炎是谁？", BasicSearchSettings()).context
    assert "萧炎" in context.text_units[0].text


def test_the_frontier_has_each_entity_once(carol):
    for level, n_own in ((0, 23), (1, 76), (2, 97)):
        mask = records.frontier_mask(carol, level)
        communities = carol.snapshot.table("communities").filter(mask)
        members = [entity for ids in communities["entity_ids"].to_pylist() for entity in ids]
        assert len(members) == len(set(members)) == 561
        assert sum(number < 122 for number in communities["community"].to_pylist()) == n_own


@pytest.mark.parametrize("strategy", sorted(RANKED))
def test_of_equal_texts_of_several_documents_one_is_read(tmp_path, strategy):
    sent = "Mayor Greta Lund opened the bridge at Ardmere. Greta Lund thanked the builders of the bridge."
    other = "Greta Lund closed the mill at Ardmere. The bridge at Ardmere is near the mill."
    documents = {"agency_one.txt": sent, "agency_two.txt": sent, "paper.txt": other}
    with open_built(tmp_path / "root", documents) as index:
        settings = LocalSearchSettings(strategy=strategy)
        found = local_search.select_local_context(index, "What did Greta Lund open?", settings)
        assert [unit.text for unit in found.text_units] == [sent, other]
        equal = [row for row, unit in enumerate(index.snapshot.take("text_units", range(3))) if unit["text"] == sent]
        assert local_text_units.find_copies(index, np.array(equal[::-1])).tolist() == equal[:1]
        assert not len(local_text_units.find_copies(index, np.array([], dtype=np.int64)))


def test_of_ten_reports_that_nearly_repeat_each_other_at_most_two_are_read_by_balanced(tmp_path):
    body = (
        "Mayor Greta Lund opened the bridge at Ardmere. Greta Lund thanked the builders of the bridge and walked over "
        "it with the school choir, the ferry crew, the smith and all of the council, while the old ferry lay at the "
        "quay for the last time and its bell rang until noon. The crowd counted {} people."
    )
    subjects = ["mill", "harbour", "school", "market", "library", "station", "hospital", "museum", "garden", "theatre"]
    documents = {f"copy_{n}.txt": body.format(400 + n) for n in range(10)}
    documents |= {
        f"other_{n}.txt": f"Greta Lund spoke in Ardmere about the {subject}. "
        + f"The {subject} needs {n + 3} new rooms."
        for n, subject in enumerate(subjects)
    }
    with open_built(tmp_path / "root", documents) as index:
        found = local_search.select_local_context(index, "What did Greta Lund open?", LocalSearchSettings())
        texts = [unit.text for unit in found.text_units]
    assert 1 <= sum("walked over" in text for text in texts) <= 2
    assert sum("needs" in text for text in texts) >= 8
