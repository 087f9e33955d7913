"""Dynamic against static global search: tokens read, and the share of relevant reports that is kept.

A news corpus has 40 topics (`articles.iterate_topical_articles`). Each topic has its cast; all share the places, so
communities have subjects as in real news. There is one question per topic. Relevance is known by construction. An
entity belongs to a topic if more than half of its text units do, and a community if more than half of its entities do.
The *gold* reports of a topic are those of its communities on the frontier at level 1. Reports on fewer entities than
`reports.min_report_size` are one sentence each; they are not gold, but their tokens count. A report is kept if dynamic
selection to level 1 reads it.

Tokens are those of prompts and replies of all calls, with ratings by a model; ratings of the embedded engine make no
call. The test model server answers. As a model it rates a report 4 if it names the topic, else 0. Microsoft GraphRAG
has no reports on isolated entities; here they are most of the reports, so communities of three entities and more are
measured, too.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from graphrag_pipeline.evaluation.answer_judging import MeteredIndex
from graphrag_pipeline.evaluation.conditions import answer_question, parse_condition
from graphrag_pipeline.query import records
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.search.community_selection import rate_reports
from graphrag_pipeline_tests.bench.articles import TOPICS, iterate_topical_articles
from graphrag_pipeline_tests.bench.measuring import Figure, measure_command
from graphrag_pipeline_tests.model_server import ReceivedRequest, running_model_server
from graphrag_pipeline_tests.support.models.model_index import open_with_model

N_ARTICLES = 1_000
N_FEW = 100
"""Articles of a small corpus, where static search reads little and the ratings weigh more; without limits."""
LEVEL = 1
N_ANSWERED = 8
"""Topics whose questions the model server answers, to count tokens; what is kept is measured for all topics."""
MAX_SHARE = 0.23
"""Of the tokens of static search: what Microsoft publishes for dynamic community selection."""
MIN_KEPT = 0.9
Gold = Mapping[str, frozenset[int]]
"""Topic -> numbers of the communities with gold reports; topics without any are left out."""


def ask_about(topic: str) -> str:
    return f"What is reported about {topic}?"


def write_topical_articles(folder: Path, n: int = N_ARTICLES) -> None:
    """A file per article."""
    folder.mkdir(parents=True, exist_ok=True)
    for _, article in iterate_topical_articles(n):
        (folder / article.name).write_text(f"{article.title}\n\n{article.text}\n", encoding="utf-8")


# ----------------------------------------------------------------------------------------------------------------- gold


def find_gold(index: GraphIndex, topic_of_path: Mapping[str, str]) -> Gold:
    """Return the gold reports by topic."""
    snapshot = index.snapshot
    documents = {row["id"]: topic_of_path[row["path"]] for row in _rows(index, "documents", "id", "path")}
    units = {row["id"]: documents[row["document_id"]] for row in _rows(index, "text_units", "id", "document_id")}
    entities = {
        row["id"]: _majority([units[i] for i in row["text_unit_ids"]])
        for row in _rows(index, "entities", "id", "text_unit_ids")
    }
    frontier = np.flatnonzero(records.frontier_mask(index, LEVEL))
    gold: dict[str, set[int]] = {}
    for community in snapshot.take("communities", frontier, ["community", "entity_ids", "size"]):
        topic = _majority([entities[i] for i in community["entity_ids"]])
        if topic and community["size"] >= index.settings.reports.min_report_size:
            gold.setdefault(topic, set()).add(community["community"])
    return {topic: frozenset(gold[topic]) for topic in TOPICS if topic in gold}


def _rows(index: GraphIndex, table: str, *columns: str) -> list[dict]:
    rows: list[dict] = index.snapshot.table(table).select(list(columns)).to_pylist()
    return rows


def _majority(values: Sequence[str]) -> str:
    """Return the value of more than half of the values, or ""."""
    [(value, count)] = Counter(values).most_common(1) or [("", 0)]
    return value if 2 * count > len(values) else ""


def share_kept(index: GraphIndex, gold: Gold, options: Mapping[str, int]) -> float:
    """Return the share of the gold reports that dynamic selection keeps, on average over the topics of `gold`."""
    settings = index.settings.search("global", selection="dynamic", max_level=LEVEL, **options)
    shares = []
    for topic, golden in gold.items():
        kept = {report.community for report in rate_reports(index, ask_about(topic), settings).kept}
        shares.append(len(kept & golden) / len(golden))
    return float(np.mean(shares))


# ---------------------------------------------------------------------------------------------------------------- bench


def run(folder: Path) -> Iterator[Figure]:
    """Index the corpora in `folder`, whose indexes are used again, and measure."""
    yield from _measure(folder / "topical", N_ARTICLES, "")
    for figure in _measure(folder / "few", N_FEW, f"{N_FEW} articles: "):
        yield replace(figure, limit=None, least=None)


def _measure(root: Path, n: int, prefix: str) -> Iterator[Figure]:
    if not root.exists():
        write_topical_articles(root / "input", n)
        measure_command(root, "init", str(root))
    measure_command(root, "index")
    with GraphIndex.open(root) as index:
        gold = find_gold(index, {article.name: topic for topic, article in iterate_topical_articles(n)})
        topics = list(gold)[:: max(1, len(gold) // N_ANSWERED)][:N_ANSWERED]
        static: dict[str, int] = {}
        for name, engine, options, limit, least in WAYS:
            shown = "".join(f":{key}={value}" for key, value in options.items())
            condition = f"global:static:level={LEVEL}{shown}"
            if condition not in static:
                static[condition] = _answer(index, condition, topics, gold, options, "embedded")[0]
                tokens = static[condition] / len(topics) / 1000
                yield Figure(f"{prefix}static search at level {LEVEL}{shown}: tokens of a question", tokens, "thousand")
            dynamic = f"global:dynamic:max_level={LEVEL}{shown}"
            tokens, kept = _answer(index, dynamic, topics, gold, options, engine)
            yield Figure(f"{prefix}{name}: share of these", tokens / static[condition], "", limit=limit)
            yield Figure("the same: reports that matter to all questions, kept", kept, "", least=least)


LARGE = {"min_community_size": 3}
ALONE = {"small_reports_per_call": 1}
WAYS: tuple[tuple[str, str, Mapping[str, int], float | None, float | None], ...] = (
    ("dynamic, rated by the embedded engine", "embedded", {}, MAX_SHARE, MIN_KEPT),
    ("dynamic, rated by a model", "model", {}, MAX_SHARE, None),
    ("each report rated alone, as published", "model", ALONE, None, None),
    ("communities of 3 entities and more: dynamic, rated by a model", "model", LARGE, MAX_SHARE, None),
)
"""Name, engine that rates, options of both searches, most share of static search's tokens, least share kept."""


def rate_carefully(request: ReceivedRequest) -> Any:
    """Rate a report by whether it names the topic; leave other requests to the server's rules."""
    topic = next((topic for topic in TOPICS if ask_about(topic) in request.prompt), None)
    if topic is None or request.kind not in ("rating", "ratings"):
        return None
    given = request.prompt.replace(ask_about(topic), "")
    if request.kind == "rating":
        return {"reason": "", "rating": 4 * (topic in given)}
    rows = re.findall(r"^\[(\d+)\](.*?)(?=^\[\d+\]|\Z)", given, re.MULTILINE | re.DOTALL)
    return {"ratings": [{"number": int(number), "rating": 4 * (topic in text)} for number, text in rows]}


def _answer(
    index: GraphIndex, condition: str, topics: Sequence[str], gold: Gold, options: Mapping[str, int], engine: str
) -> tuple[int, float]:
    """Return the tokens of the answers to the topics' questions, and the share of gold reports kept for all topics."""
    with running_model_server(rate_carefully) as server, tempfile.TemporaryDirectory() as folder:
        asking = open_with_model(index, Path(folder), server, rating={"engine": engine})
        metered = MeteredIndex(asking)
        for topic in topics:
            answer_question(parse_condition(condition), metered, ask_about(topic))
        return metered.meter.tokens, share_kept(asking, gold, options)
