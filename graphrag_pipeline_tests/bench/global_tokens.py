"""Dynamic against static global search: tokens read, and the share of relevant reports that is kept.

A news corpus has 40 topics (`articles.iterate_topical_articles`). Each topic has its cast; all share the places, so
communities have subjects as in real news. There is one question per topic. Relevance is known by construction. An
entity belongs to a topic if more than half of its text units do, and a community if more than half of its entities do.
The *gold* reports of a topic are those of its communities on the frontier at level 1. Reports on fewer entities than
`reports.min_report_size` are one sentence each; they are not gold, but their tokens count. A report is kept if dynamic
selection to level 1 reads it.

Tokens are those of prompts and replies of all calls, with ratings by a model; ratings of the embedded engine make no
call. The test model server answers. As a model it rates a report 4 if it names the topic, else 0. `WAYS` are measured:
the published method by its plain settings, on all communities and on those of three entities and more, and options that
go beyond it. Microsoft GraphRAG has no reports on isolated entities; here they are most of the reports. All this is at
level 1; the tokens of the published method on communities of three entities and more are measured at each level down
to `DEEPEST`, too, with those of static search at the same level. The bench is
called `global_tokens`; by itself

    python -m graphrag_pipeline_tests.bench.global_tokens [FOLDER]

keeps the index in FOLDER and uses it again.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from graphrag_pipeline.evaluation.answer_judging import MeteredIndex
from graphrag_pipeline.evaluation.conditions import answer_question, parse_condition
from graphrag_pipeline.query import records
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.search.community_selection import rate_reports
from graphrag_pipeline.query.search_result import SearchResult
from graphrag_pipeline_tests.bench.articles import TOPICS, iterate_topical_articles
from graphrag_pipeline_tests.bench.measuring import Figure, measure_command, print_table
from graphrag_pipeline_tests.model_server import ReceivedRequest, running_model_server
from graphrag_pipeline_tests.support.models.model_index import open_with_model

N_ARTICLES = 1_000
LEVEL = 1
DEEPEST = 3
N_ANSWERED = 8
"""Topics whose questions the model server answers, to count tokens; what is kept is measured for all topics."""
MAX_SHARE = 0.23
"""Of the tokens of static search: what Microsoft publishes for dynamic community selection."""
MIN_KEPT = 0.9


def _list(options: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {value}" for name, value in options.items())


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


@dataclass(frozen=True)
class Kept:
    """How much of the gold reports dynamic selection keeps, on average over questions.

    Attributes:
        reports: share of the reports.
        entities: the same with each report counted by the entities of its community, since half of the gold reports
            are on a few entities that several topics share.
    """

    reports: float
    entities: float


def share_kept(index: GraphIndex, gold: Gold, options: Mapping[str, int] | None = None) -> Kept:
    """Return what is kept for the questions on all topics of `gold`."""
    update = {"selection": "dynamic", "max_level": LEVEL, **(options or {})}
    settings = index.settings.search("global", **update)
    sizes = dict(zip(*(index.column("communities", name).tolist() for name in ("community", "size")), strict=True))
    shares, weighted = [], []
    for topic, golden in gold.items():
        kept = {report.community for report in rate_reports(index, ask_about(topic), settings).kept} & golden
        shares.append(len(kept) / len(golden))
        weighted.append(sum(sizes[number] for number in kept) / sum(sizes[number] for number in golden))
    return Kept(float(np.mean(shares)), float(np.mean(weighted)))


# ---------------------------------------------------------------------------------------------------------------- bench


def run(folder: Path | None = None) -> list[Figure]:
    """Index the corpus (in a temporary folder, or in `folder`, whose index is used again) and measure."""
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:
            return run(Path(temporary))
    root = folder / "topical"
    if not root.exists():
        write_topical_articles(root / "input")
        measure_command(root, "init", str(root))
    measure_command(root, "index")
    with GraphIndex.open(root) as index:
        gold = find_gold(index, {article.name: topic for topic, article in iterate_topical_articles(N_ARTICLES)})
        n_reports = index.snapshot.n_rows("community_reports")
        n_gold = sum(map(len, gold.values()))
        return [
            Figure("global search: reports", n_reports, "reports", least=1_000),
            Figure(f"reports that matter to {len(gold)} questions", n_gold, "reports"),
            Figure("the same, kept by dynamic selection", share_kept(index, gold).reports, "", least=MIN_KEPT),
            *_measure_tokens(index, gold),
            *_measure_levels(index, gold),
            *_compare_answers(index, gold),
        ]


@dataclass(frozen=True)
class Way:
    """One way to choose reports, compared with static search.

    Attributes:
        options: of global search, for static search too.
        dynamic: options of dynamic selection alone.
        rated_text: what a model rates; "" if the embedded engine rates.
        limit: of the share of static search's tokens.
    """

    name: str
    options: Mapping[str, int] = field(default_factory=dict)
    dynamic: Mapping[str, int] = field(default_factory=dict)
    rated_text: str = ""
    limit: float | None = None

    def condition(self, selection: str, level: int = LEVEL) -> str:
        """Return the name of the condition, such as "global:dynamic:max_level=1"."""
        levels = {"max_level": level, **self.dynamic} if selection == "dynamic" else {"level": level}
        return ":".join(["global", selection, *(f"{k}={v}" for k, v in (levels | dict(self.options)).items())])


LARGE = {"min_community_size": 3}
ADDED = {"small_reports_per_call": 20, "max_rated_per_level": 100}
BEYOND = f"with {_list(ADDED)}"
WAYS = (
    Way("dynamic, rated by the embedded engine", limit=MAX_SHARE),
    Way("dynamic, rated by a model", rated_text="full_content"),
    Way("dynamic, summaries rated by a model", rated_text="summary"),
    Way("communities of 3 entities and more: dynamic, rated by a model", LARGE, {}, "full_content", MAX_SHARE),
    Way("communities of 3 entities and more: dynamic, summaries rated by a model", LARGE, rated_text="summary"),
    Way(f"dynamic, rated by a model, {BEYOND}", dynamic=ADDED, rated_text="full_content", limit=MAX_SHARE),
    Way(
        f"dynamic, summaries rated by a model, {BEYOND}",
        dynamic=ADDED,
        rated_text="summary",
        limit=MAX_SHARE,
    ),
)


def _measure_tokens(index: GraphIndex, gold: Gold) -> list[Figure]:
    topics = _choose_topics(gold)
    static: dict[str, int] = {}
    figures = []
    for way in WAYS:
        condition = way.condition("static")
        if condition not in static:
            static[condition] = _count_tokens(index, condition, topics)[0]
            name = f"static search at level {LEVEL}{' of communities of 3 entities and more' if way.options else ''}"
            figures.append(Figure(f"{name}: tokens of a question", static[condition] / len(topics) / 1000, "thousand"))
        rating = {"engine": "model", "rated_text": way.rated_text} if way.rated_text else {"engine": "embedded"}
        options = {**way.options, **way.dynamic}
        tokens, kept = _count_tokens(index, way.condition("dynamic"), topics, gold, options, rating=rating)
        figures.append(Figure(f"{way.name}: share of these", tokens / static[condition], "", limit=way.limit))
        figures.append(Figure("the same: reports that matter to all questions, kept", kept.reports, ""))
        figures.append(Figure("the same, weighted by entities", kept.entities, ""))
    return figures


def _choose_topics(gold: Gold) -> list[str]:
    return list(gold)[:: max(1, len(gold) // N_ANSWERED)][:N_ANSWERED]


def _measure_levels(index: GraphIndex, gold: Gold) -> Iterator[Figure]:
    """Yield the tokens of a question, in thousands, of static and of dynamic search at each level."""
    topics, way = _choose_topics(gold), Way("", LARGE, rated_text="full_content")
    for level in range(DEEPEST + 1):
        for selection in ("static", "dynamic"):
            rating = {"engine": "model", "rated_text": way.rated_text}
            tokens, _ = _count_tokens(index, way.condition(selection, level), topics, rating=rating)
            name = f"communities of 3 entities and more, {selection}, level {level}: tokens of a question"
            yield Figure(name, tokens / len(topics) / 1000, "thousand")


def _compare_answers(index: GraphIndex, gold: Gold) -> Iterator[Figure]:
    """Yield what static and dynamic search answer to the questions on all topics, by the embedded engine.

    A cited sentence that names the topic is a fact of it. The facts of both answers to a question are the reference,
    since neither answer cites all that the articles say.
    """
    ways: dict[str, dict[str, Any]] = {
        "static": {"selection": "static", "level": LEVEL},
        "dynamic": {"selection": "dynamic", "max_level": LEVEL},
    }
    cited = {
        name: [_cited_sentences(index.search(ask_about(topic), "global", **options)) for topic in gold]
        for name, options in ways.items()
    }
    facts = {name: [_naming(topic, of) for topic, of in zip(gold, each, strict=True)] for name, each in cited.items()}
    known = [first | second for first, second in zip(*facts.values(), strict=True)]
    for name in ways:
        on_topic = [len(found) / len(of) for found, of in zip(facts[name], cited[name], strict=True) if of]
        recall = [len(found) / len(either) for found, either in zip(facts[name], known, strict=True) if either]
        what = f"{name} answers at level {LEVEL}: share of cited sentences that name the topic"
        yield Figure(what, float(np.mean(on_topic)), "")
        yield Figure("the same: share of the facts that either answer cites", float(np.mean(recall)), "")


def _cited_sentences(result: SearchResult) -> frozenset[str]:
    return frozenset(citation.quote for citation in result.citations)


def _naming(topic: str, sentences: frozenset[str]) -> frozenset[str]:
    return frozenset(sentence for sentence in sentences if topic in sentence)


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


def _count_tokens(
    index: GraphIndex,
    condition: str,
    topics: Sequence[str],
    gold: Gold | None = None,
    options: Mapping[str, int] | None = None,
    **sections: dict,
) -> tuple[int, Kept]:
    """Tokens of the answers to the topics' questions; with gold reports, what is kept of them for all topics."""
    with running_model_server(rate_carefully) as server, tempfile.TemporaryDirectory() as folder:
        asking = open_with_model(index, Path(folder), server, **sections)
        metered = MeteredIndex(asking)
        for topic in topics:
            answer_question(parse_condition(condition), metered, ask_about(topic))
        return metered.meter.tokens, share_kept(asking, gold, options) if gold else Kept(0.0, 0.0)


def main(arguments: Sequence[str]) -> int:
    """Print every row; 1 if a limit does not hold."""
    rows = run(Path(arguments[0]) if arguments else None)
    print_table(rows)
    return int(any(row.is_over or row.is_under for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
