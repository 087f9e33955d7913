"""Retrieval: the recall of each ranker of text units.

- 2WikiMultihopQA: 6,119 passages, each a document of one text unit, and 51 development questions that name the titles
  of all passages that they need (HippoRAG's corpus, MIT / Apache-2.0): recall@5 and all-evidence@5.
- A Christmas Carol, the sample, in text units of 300 and 1,200 tokens: 32 questions of ours in other words than the
  text, each with a phrase of its evidence: mean reciprocal rank among 10. It guards against tuning to the other corpus.
- Questions made by code from sentences (`support/corpora/retrieval_questions.py`): on the passages, on 1,400 generated
  articles, and on long dossiers.
- A manual: 109 pages of the documentation of PostgreSQL 15, many of them long, and 46 questions of ours in a user's
  words. `REPEAT` of `hybrid_ranking.py` was chosen with a look at them.

On the latter two kinds, local search with `balanced` and `graph` must not fall below the better of BM25 and `basic` by
more than `TOLERANCE` or one question. All are indexed by `graphrag-pipeline index` and live in `data/retrieval`.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from graphrag_pipeline.evaluation.conditions import Ranker, parse_condition, rank_text_units
from graphrag_pipeline.evaluation.questions import Question, find_evidence
from graphrag_pipeline.evaluation.retrieval_figures import recall_each
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline_tests.bench.measuring import Figure, measure_command
from graphrag_pipeline_tests.support.corpora.retrieval_questions import (
    Asked,
    ask_for_documents,
    ask_for_passages,
    write_articles_apart,
    write_dossiers,
)
from graphrag_pipeline_tests.support.paths import SAMPLE_ROOT, TEST_DATA

DATA = TEST_DATA / "retrieval"
SAMPLE = SAMPLE_ROOT / "input"
BM25_ANCHOR = (0.652, 0.333)
"""recall@5 and all-evidence@5 that a textbook BM25 reaches on the 51 questions."""
GRAPH_TARGET = (0.90, 0.75)
"""The least recall@5 of PageRank: HippoRAG 2 publishes recall@5 0.904 with a 70B model."""
STORY_SIZES = (300, 1200)
"""Tokens in a text unit."""
N_MADE = 60
"""Questions of each kind of a made corpus."""
N_MANY = 1_400
"""Articles of the largest made corpus, as many as in an archive of news."""
TOLERANCE = 1 / N_MADE
"""How far local search may be below the better of `FLOORS`, in recall@5 and all-evidence@5: one question in 60.

With fewer questions it is one of them.
"""


# --------------------------------------------------------------------------------------------------------------rankers


def rank_by(name: str) -> Ranker:
    """The text units of a condition, in its order; local search's are cut off by its token budget, not by k."""
    return partial(rank_text_units, parse_condition(name))


RANKERS: dict[str, Ranker] = {
    "BM25": rank_by("bm25"),
    "basic": rank_by("basic"),
    "local, balanced": rank_by("local:balanced"),
    "local, graph": rank_by("local:graph"),
    "lazy": rank_by("lazy"),
}
FLOORS = ("BM25", "basic")
LIMITS = {"basic": BM25_ANCHOR, "local, graph": GRAPH_TARGET, "local, balanced": BM25_ANCHOR}
"""recall@5 and all-evidence@5 that a ranker must reach."""


# -------------------------------------------------------------------------------------------------------2WikiMultihopQA


def read_passages() -> list[dict[str, str]]:
    """Passages with id, title (unique) and text."""
    return _read_lines("2wiki_corpus.jsonl.gz")


def _read_lines(name: str) -> list[dict[str, str]]:
    with gzip.open(DATA / name, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def read_questions() -> list[dict]:
    """Questions with `question` and `gold`, the titles of the passages needed."""
    return json.loads((DATA / "2wiki_dev.json").read_text(encoding="utf-8"))


def write_passages_root(root: Path, passages: Iterable[dict[str, str]]) -> None:
    """A root whose one input file holds the passages."""
    (root / "input").mkdir(parents=True)
    (root / "settings.yaml").write_text("", encoding="utf-8")
    lines = (json.dumps(passage, ensure_ascii=False) for passage in passages)
    (root / "input" / "passages.jsonl").write_text("\n".join(lines), encoding="utf-8")


def measure_recall(
    index: GraphIndex, questions: Sequence[str], evidence: Sequence[Sequence[frozenset[int]]], rank: Ranker
) -> tuple[float, float]:
    """Return the mean share of the pieces of evidence in the first 5 text units, and of questions with all of them."""
    recall = recall_each(index, questions, evidence, rank, 5)
    return float(np.mean(recall)), float(np.mean(np.array(recall) == 1))


def _figures_of(what: str, figures: Sequence[float], limits: Sequence[float | None]) -> list[Figure]:
    named = zip(("recall@5", "all-evidence@5"), figures, limits, strict=True)
    return [Figure(f"{what}, {name}", round(figure, 3), "", least=least) for name, figure, least in named]


def _measure_passages(index: GraphIndex) -> Iterator[Figure]:
    golden = [Question(question["question"], tuple(question["gold"])) for question in read_questions()]
    evidence = find_evidence(index.snapshot, golden).rows
    for name, rank in RANKERS.items():
        figures = measure_recall(index, [question.question for question in golden], evidence, rank)
        yield from _figures_of(f"2wiki: {name}", figures, LIMITS.get(name, (None, None)))


# -----------------------------------------------------------------------------------------------------A Christmas Carol


def write_story_root(root: Path, size: int) -> None:
    """A root with the sample in text units of at most `size` tokens."""
    shutil.copytree(SAMPLE, root / "input")
    (root / "settings.yaml").write_text(f"text_units:\n  size: {size}\n  overlap: {size // 12}\n", encoding="utf-8")


def open_stories(folder: Path) -> Iterator[tuple[int, GraphIndex]]:
    """Yield the text unit size and the open index of the sample, for each size; indexes are used again."""
    for size in STORY_SIZES:
        story = folder / f"story_{size}"
        if not story.exists():
            write_story_root(story, size)
        index_root(story)
        with GraphIndex.open(story) as index:
            yield size, index


def measure_reciprocal_rank(index: GraphIndex, rank: Ranker, k: int = 10) -> float:
    """Mean over questions of 1 / rank of the first text unit that holds the evidence; 0 where none of k does."""
    questions = json.loads((DATA / "carol_questions.json").read_text(encoding="utf-8"))
    reciprocal = []
    for question in questions:
        rows = index.snapshot.rows_of("text_units", rank(index, question["question"], k)[:k])
        texts = [_on_one_line(record["text"]) for record in index.snapshot.take("text_units", rows, ["text"])]
        places = [place for place, text in enumerate(texts, start=1) if question["evidence"] in text]
        reciprocal.append(1 / places[0] if places else 0.0)
    return float(np.mean(reciprocal))


def _on_one_line(text: str) -> str:
    return " ".join(text.replace("\u2019", "'").split())


def _measure_story(index: GraphIndex, size: int) -> Iterator[Figure]:
    figures = {name: round(measure_reciprocal_rank(index, rank), 3) for name, rank in RANKERS.items()}
    for name, figure in figures.items():
        least = figures["BM25"] if name == "basic" else None
        yield Figure(f"carol, {size} tokens: {name}, reciprocal rank", figure, "", least=least)


# ----------------------------------------------------------------------------------------------------------made corpora


def write_documents_root(root: Path, documents: Iterable[dict[str, str]], size: int) -> None:
    """A root whose one input file holds the documents, in text units of at most `size` tokens."""
    write_passages_root(root, documents)
    (root / "settings.yaml").write_text(f"text_units:\n  size: {size}\n  overlap: {size // 12}\n", encoding="utf-8")


def find_pieces(index: GraphIndex, asked: Sequence[Asked]) -> list[list[frozenset[int]]]:
    """Rows of the text units that hold each piece of evidence: a document's title, or a sentence; `|` joins choices."""
    names = tuple(name for one in asked for piece in one.evidence for name in piece.split("|"))
    by_title = dict(zip(names, find_evidence(index.snapshot, [Question("", names)]).rows[0], strict=True))
    n_units = index.snapshot.n_rows("text_units")
    texts = [
        " ".join(unit["text"].split()) for unit in index.snapshot.take("text_units", list(range(n_units)), ["text"])
    ]

    def rows_of(name: str) -> frozenset[int]:
        return by_title[name] or frozenset(i for i, text in enumerate(texts) if name in text)

    return [[frozenset[int]().union(*map(rows_of, piece.split("|"))) for piece in one.evidence] for one in asked]


def compare_with_floor(index: GraphIndex, corpus: str, asked: Sequence[Asked]) -> Iterator[Figure]:
    """Yield the figures of each ranker, those of local search with the better of `FLOORS` as their limit."""
    questions, pieces = [one.question for one in asked], find_pieces(index, asked)
    figures = {name: measure_recall(index, questions, pieces, rank) for name, rank in RANKERS.items()}
    floor = np.max([figures[name] for name in FLOORS], axis=0) - max(TOLERANCE, 1 / len(asked))
    for name, both in figures.items():
        limits = (None, None) if name in FLOORS else floor.round(3).tolist()
        yield from _figures_of(f"{corpus}: {name}", both, limits)


def _measure_made(folder: Path) -> Iterator[Figure]:
    gold = {title for question in read_questions() for title in question["gold"]}
    with GraphIndex.open(folder / "passages") as index:
        yield from compare_with_floor(index, "passages", ask_for_passages(read_passages(), gold, N_MADE))
    for name, documents, size in (
        (f"{N_MANY:,} articles", write_articles_apart(N_MANY), 1200),
        ("dossiers", write_dossiers(40), 300),
    ):
        root = folder / name.replace(" ", "_")
        if not root.exists():
            write_documents_root(root, documents, size)
        index_root(root)
        asked = [one for n_needed in (1, 2, 3) for one in ask_for_documents(documents, N_MADE, n_needed)]
        with GraphIndex.open(root) as index:
            yield from compare_with_floor(index, name, asked)


# ---------------------------------------------------------------------------------------------------------------manual


def read_manual() -> list[dict[str, str]]:
    """Pages with id, title (unique) and text."""
    return _read_lines("manual_corpus.jsonl.gz")


def read_manual_questions() -> list[Asked]:
    """Questions whose evidence are titles of pages."""
    rows = json.loads((DATA / "manual_questions.json").read_text(encoding="utf-8"))["pages"]
    return [Asked(one["question"], tuple(one["evidence"])) for one in rows]


# -----------------------------------------------------------------------------------------------------------------bench


def run(folder: Path) -> Iterator[Figure]:
    """Index all corpora in `folder`, whose indexes are used again, and measure them."""
    passages, manual = folder / "passages", folder / "manual"
    if not passages.exists():
        write_passages_root(passages, read_passages())
    if not manual.exists():
        write_documents_root(manual, read_manual(), 1200)
    index_root(passages)
    with GraphIndex.open(passages) as index:
        yield from _measure_passages(index)
    for size, story in open_stories(folder):
        yield from _measure_story(story, size)
    yield from _measure_made(folder)
    index_root(manual)
    with GraphIndex.open(manual) as index:
        yield from compare_with_floor(index, "manual", read_manual_questions())


def index_root(root: Path) -> None:
    """Run `index`."""
    measure_command(root, "index")
